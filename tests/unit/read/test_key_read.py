"""Rows of primary-key tables: merged where keys overlap, with row kinds where they are changes."""

import pickle
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import emberlake.read.key_read as key_read
from builders import NUMBERED, Row, alter, create_key_table, forget_deletes, lift, numbered, upsert
from effort import examples
from emberlake import SchemaChange, Table
from emberlake.predicates import PredicateBuilder
from emberlake.read.projection import project_all
from emberlake.read.table_reader import TableReader
from emberlake.types import AtomicType, arrow_schema
from table_reads import planned_files, read_rows


def kinds_of(table: Table, **options: str) -> list[Row]:
    """The rows of a read with their kinds."""
    seen = table.copy({key.replace("_", "-"): value for key, value in options.items()})
    builder = seen.new_read_builder()
    splits = builder.new_scan().plan().splits()
    rows: list[Row] = builder.new_read().to_arrow(splits, with_row_kind=True).to_pylist()
    return rows


def streamed(table: Table, where: Any = None) -> list[Row]:
    builder = table.new_read_builder().with_filter(where)
    splits = builder.new_scan().plan().splits()
    rows: list[Row] = builder.new_read().to_arrow_batch_reader(splits).read_all().to_pylist()
    return rows


# --- merging --------------------------------------------------------------------------------------


def test_the_latest_record_of_a_key_is_its_row() -> None:
    table = create_key_table(NUMBERED)
    upsert(table, numbered([1, 2, 3]))
    upsert(table, numbered([2, 4], "b"))

    assert [row["v"] for row in read_rows(table)] == ["a1", "b2", "a3", "b4"]
    assert read_rows(table) == streamed(table)


def test_a_deleted_row_is_gone_until_it_is_written_again() -> None:
    table = create_key_table(NUMBERED)
    upsert(table, numbered([1, 2]))
    upsert(table, numbered([1, 2]), "-D")
    upsert(table, numbered([2], "c"))

    assert read_rows(table) == streamed(table) == numbered([2], "c")


def test_a_delete_that_meets_no_other_record_is_no_row() -> None:
    table = create_key_table(NUMBERED)
    upsert(table, numbered([1]), "-D")

    assert read_rows(table) == streamed(table) == []


def test_files_that_share_no_keys_are_not_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    table = create_key_table(NUMBERED)
    upsert(table, numbered([1, 2]))
    upsert(table, numbered([3, 4]))
    monkeypatch.setattr(key_read, "fold", None)
    monkeypatch.setattr(key_read, "merge_runs", None)

    assert [row["id"] for row in read_rows(table)] == [1, 2, 3, 4]


def test_sections_too_large_for_one_step_are_merged_run_by_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = create_key_table(NUMBERED)
    upsert(table, numbered([1, 2, 3]))
    upsert(table, numbered([2], "b"))
    expected = read_rows(table)
    monkeypatch.setattr(key_read, "_ROWS_AT_ONCE", 0)

    assert read_rows(table) == expected
    upsert(table, numbered([1, 2, 3]), "-D")
    assert read_rows(table) == []


def test_records_are_ordered_by_sequence_number_where_files_mix_them() -> None:
    table = create_key_table(NUMBERED, **{"sequence.field": "n"})
    upsert(table, numbered([1, 2], "old", 5))
    upsert(table, [*numbered([1], "late", 3), *numbered([2], "new", 7)])

    assert [row["v"] for row in read_rows(table)] == ["old1", "new2"]
    # The sequence column is read for the merge though nobody asked for it.
    assert read_rows(table, columns=["v"]) == [{"v": "old1"}, {"v": "new2"}]


def test_an_aggregate_is_of_all_records() -> None:
    options = {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}
    table = create_key_table(NUMBERED, **options)
    upsert(table, numbered([1, 2], number=1))
    upsert(table, numbered([1, 3], number=10))

    assert [row["n"] for row in read_rows(table, columns=["n"])] == [11, 1, 10]


def test_partition_columns_come_from_the_partition() -> None:
    columns = NUMBERED.append(pa.field("day", pa.string(), nullable=False))
    table = create_key_table(columns, ["day", "id"], ["day"])
    upsert(table, [{**row, "day": day} for row in numbered([1, 2]) for day in ("mon", "tue")])
    upsert(table, [{**row, "day": "tue"} for row in numbered([2], "b")])

    assert read_rows(table, "day = 'tue' AND id = 2", ["day", "v"]) == [{"day": "tue", "v": "b2"}]
    assert read_rows(table, "day > 'mon'", ["day"]) == [{"day": "tue"}] * 2


def test_files_of_an_older_schema_are_merged_with_those_of_a_newer() -> None:
    table = create_key_table(NUMBERED)
    upsert(table, numbered([1, 2]))
    table = alter(table, SchemaChange.add_column("extra", AtomicType("BIGINT")))
    table = alter(table, SchemaChange.rename_column("v", "w"))
    upsert(table, [{"id": 2, "w": "b2", "n": 0, "extra": 7}])

    assert read_rows(table, columns=["w", "extra"]) == [
        {"w": "a1", "extra": None},
        {"w": "b2", "extra": 7},
    ]


@pytest.mark.parametrize("partition_keys", [(), ("day",)])
@pytest.mark.parametrize("engine", ["deduplicate", "partial-update", "aggregation"])
def test_a_nested_row_without_the_wanted_field_is_a_row_nevertheless(
    engine: str, partition_keys: tuple[str, ...]
) -> None:
    key, day = (pa.field(*column, nullable=False) for column in (("id", "i8"), ("day", "utf8")))
    columns = pa.schema([key, day, ("s", pa.struct([("y", pa.int32())]))])
    before = create_key_table(
        columns, [*partition_keys, "id"], partition_keys, **{"merge-engine": engine}
    )
    table = alter(before, SchemaChange.add_column(["s", "x"], AtomicType("INT")))
    upsert(table, [{"id": 1, "day": "mon", "s": {"y": 1, "x": 1}}])
    upsert(before, [{"id": 1, "day": "mon", "s": {"y": 2}}])

    assert read_rows(table, columns=["s", "day"]) == [{"s": {"y": 2, "x": None}, "day": "mon"}]
    assert read_rows(table, columns=["s.x", "day"]) == [{"s_x": None, "day": "mon"}]


# --- filters --------------------------------------------------------------------------------------


def test_a_filter_on_values_sees_the_merged_row_only() -> None:
    table = create_key_table(NUMBERED)
    upsert(table, numbered([1, 2], "a", 100))
    upsert(table, numbered([1], "b", 1))

    assert [row["id"] for row in read_rows(table, "n >= 100")] == [2]
    assert [row["id"] for row in read_rows(table, "n < 100")] == [1]
    assert len(planned_files(table, "n >= 100")) == 2


def test_a_section_in_which_no_record_matches_is_left_out() -> None:
    table = create_key_table(NUMBERED)
    upsert(table, numbered([1, 5], "a", 1))
    upsert(table, numbered([1], "b", 2))
    upsert(table, numbered([7], "c", 50))

    assert len(planned_files(table, "n > 10")) == 1
    assert read_rows(table, "n > 10") == numbered([7], "c", 50)


def test_an_aggregate_may_match_where_no_record_does() -> None:
    options = {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}
    table = create_key_table(NUMBERED, **options)
    upsert(table, numbered([1], number=6))
    upsert(table, numbered([1], number=6))

    assert read_rows(table, "n = 12", ["id"]) == [{"id": 1}]


def test_a_filter_on_the_key_leaves_out_files() -> None:
    table = create_key_table(NUMBERED)
    upsert(table, numbered([1, 9]))
    upsert(table, numbered([4], "b"))
    upsert(table, numbered([8, 9], "c"))

    assert len(planned_files(table, "id = 9")) == 2
    assert read_rows(table, "id = 9 AND v = 'c9'") == numbered([9], "c")
    assert read_rows(table, "id = 9 AND v = 'a9'") == []


def test_a_filter_may_mix_keys_and_values() -> None:
    table = create_key_table(NUMBERED)
    upsert(table, numbered([1, 2, 3], "a", 1))
    upsert(table, numbered([2], "b", 2))

    assert [row["id"] for row in read_rows(table, "id = 1 OR n = 2")] == [1, 2]


def test_a_limit_is_kept() -> None:
    table = create_key_table(NUMBERED, bucket="3")
    upsert(table, numbered(range(20)))
    upsert(table, numbered(range(10)), "-D")

    assert len(read_rows(table, limit=4)) == 4
    assert len(read_rows(table, limit=40)) == 10


def test_a_limit_does_not_count_deletes_that_their_writer_has_not_counted() -> None:
    table = create_key_table(NUMBERED, bucket="4")
    builder = table.new_batch_write_builder()
    with builder.new_write() as write:
        rows = pa.Table.from_pylist(numbered(range(40)), arrow_schema(tuple(table.fields)))
        kinds = pa.array(["+I" if n % 4 == 0 else "-D" for n in range(40)])
        write.write_arrow(rows.append_column("_row_kind", kinds))
        builder.new_commit().commit(write.prepare_commit())
    forget_deletes(table)

    assert len(read_rows(table)) == 10
    assert len(read_rows(table, limit=9)) == 9


def test_splits_of_a_filter_on_the_key_have_no_outdated_rows_without_it() -> None:
    table = create_key_table(NUMBERED)
    upsert(table, numbered(range(5, 21), "old"))
    upsert(table, numbered(range(1, 11), "new"))
    # The newer file is left out: that it replaces rows of the older one is not known any more.
    splits = table.new_read_builder().with_filter("id > 15").new_scan().plan().splits()

    for where, count in ((None, 5), ("v > 'old17'", 3), ("id > 18", 2), ("id < 9", 0)):
        reading = table.new_read_builder().with_filter(where).with_projection(["v"]).new_read()
        rows = reading.to_arrow(splits).to_pylist()
        assert rows == [{"v": f"old{n}"} for n in range(21 - count, 21)]


# --- levels ---------------------------------------------------------------------------------------


def test_compacted_files_of_one_level_are_read_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    table = create_key_table(NUMBERED)
    upsert(table, numbered([1, 2]))
    upsert(table, numbered([3]))
    lift(table, {0: 5, 1: 5})
    (split,) = table.new_read_builder().new_scan().plan().splits()

    assert split.raw_convertible
    assert split.merged_row_count() == 3
    assert len(read_rows(table)) == 3


def test_level_0_of_a_first_row_table_is_not_seen() -> None:
    table = create_key_table(NUMBERED, **{"merge-engine": "first-row", "write-only": "true"})
    upsert(table, numbered([1, 2]))
    upsert(table, numbered([1, 3], "b"))
    assert read_rows(table) == []

    lift(table, {0: 5})
    assert read_rows(table) == numbered([1, 2])


def test_level_0_of_a_table_with_deletion_vectors_is_seen_when_asked_for() -> None:
    table = create_key_table(NUMBERED, **{"deletion-vectors.enabled": "true", "write-only": "true"})
    upsert(table, numbered([1, 2]))
    upsert(table, numbered([2, 3], "b"))
    lift(table, {0: 5})

    assert read_rows(table) == numbered([1, 2])
    seen = table.copy({"deletion-vectors.merge-on-read": "true"})
    assert [row["v"] for row in read_rows(seen)] == ["a1", "b2", "b3"]


# --- row kinds ------------------------------------------------------------------------------------


def test_changes_come_with_their_kinds() -> None:
    table = create_key_table(NUMBERED)
    upsert(table, numbered([1, 2]))
    upsert(table, numbered([1], "b"), "+U")
    upsert(table, numbered([2]), "-D")

    found = kinds_of(table, incremental_between="1,3")
    assert [(row["_row_kind"], row["v"]) for row in found] == [("+U", "b1"), ("-D", "a2")]


def test_changes_without_kinds_are_those_that_give_a_row() -> None:
    table = create_key_table(NUMBERED)
    upsert(table, numbered([1]))
    upsert(table, numbered([2], "b"))
    upsert(table, numbered([1]), "-D")

    assert read_rows(table.copy({"incremental-between": "1,3"})) == numbered([2], "b")


def test_a_filter_on_changes_is_exact() -> None:
    table = create_key_table(NUMBERED)
    upsert(table, numbered([1]))
    upsert(table, numbered([1, 2, 3], "b"))
    seen = table.copy({"incremental-between": "0,2"})

    assert [row["v"] for row in read_rows(seen, "id = 1")] == ["a1", "b1"]
    assert [row["v"] for row in read_rows(seen, "v >= 'b2'")] == ["b2", "b3"]


def test_two_states_differ_by_what_was_added_changed_and_removed() -> None:
    table = create_key_table(NUMBERED, bucket="2")
    upsert(table, numbered(range(1, 7)))
    upsert(table, numbered([2], "b"))
    upsert(table, numbered([3]))  # the same once more
    upsert(table, numbered([4]), "-D")
    upsert(table, numbered([7], "c"))
    mode = {"incremental_between": "1,5", "incremental_between_scan_mode": "diff"}

    found = kinds_of(table, **mode)
    assert sorted((row["id"], row["_row_kind"], row["v"]) for row in found) == [
        (2, "+U", "b2"),
        (4, "-D", "a4"),
        (7, "+I", "c7"),
    ]
    seen = table.copy({key.replace("_", "-"): value for key, value in mode.items()})
    assert sorted(row["id"] for row in read_rows(seen)) == [2, 7]
    assert read_rows(seen, "v = 'b2'") == numbered([2], "b")


def test_a_whole_read_has_kinds_too() -> None:
    table = create_key_table(NUMBERED)
    upsert(table, numbered([1, 2]))
    upsert(table, numbered([2], "b"), "+U")

    assert [row["_row_kind"] for row in kinds_of(table)] == ["+I", "+U"]


def test_a_read_with_deletes_has_the_last_record_of_every_key() -> None:
    table = create_key_table(NUMBERED)
    upsert(table, numbered([1, 2, 3]))
    upsert(table, numbered([1]), "-D")
    builder = table.new_read_builder()
    splits = builder.new_scan().plan().splits()
    every = TableReader(
        table.store, project_all(table.table_schema.fields), with_kind=True, with_deletes=True
    )

    rows = every.read_table(splits).to_pylist()
    streams = pa.Table.from_batches(list(every.read_batches(splits))).to_pylist()

    assert rows == streams
    assert [(row["_row_kind"], row["v"]) for row in rows] == [
        ("-D", "a1"),
        ("+I", "a2"),
        ("+I", "a3"),
    ]


def test_splits_are_read_elsewhere() -> None:
    table = create_key_table(NUMBERED)
    upsert(table, numbered([1, 2]))
    upsert(table, numbered([2], "b"))
    builder = table.new_read_builder()
    splits = pickle.loads(pickle.dumps(builder.new_scan().plan().splits()))

    assert builder.new_read().to_arrow(splits).to_pylist() == read_rows(table)


# --- a model --------------------------------------------------------------------------------------

CHANGES = st.lists(
    st.lists(
        st.tuples(st.integers(0, 8), st.sampled_from(["a", "b", None]), st.booleans()),
        min_size=1,
        max_size=6,
        unique_by=lambda change: change[0],
    ),
    min_size=1,
    max_size=5,
)


@examples(40)
@given(CHANGES, st.integers(0, 8), st.booleans())
def test_reads_agree_with_a_dictionary(
    commits: list[list[tuple[int, str | None, bool]]], bound: int, is_split: bool
) -> None:
    table = create_key_table(NUMBERED, **({"source.split.target-size": "1 b"} if is_split else {}))
    state: dict[int, str | None] = {}
    for changes in commits:
        for is_delete in (False, True):
            chosen = [(key, value) for key, value, gone in changes if gone == is_delete]
            if chosen:
                rows = [{"id": key, "v": value, "n": None} for key, value in chosen]
                upsert(table, rows, "-D" if is_delete else None)
            for key, value in chosen:
                state.pop(key, None) if is_delete else state.update({key: value})
    everything = [{"id": key, "v": state[key]} for key in sorted(state)]

    assert read_rows(table, columns=["id", "v"]) == everything
    assert [{"id": row["id"], "v": row["v"]} for row in streamed(table)] == everything
    build = PredicateBuilder(table.fields)
    tests = {
        build.greater_than("id", bound): lambda row: row["id"] > bound,
        build.equal("v", "a"): lambda row: row["v"] == "a",
        build.is_null("v"): lambda row: row["v"] is None,
    }
    for predicate, test in tests.items():
        expected = [row for row in everything if test(row)]
        assert read_rows(table, predicate, ["id", "v"]) == expected

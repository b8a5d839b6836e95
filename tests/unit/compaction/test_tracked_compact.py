"""Compaction of tables whose rows have ids: rows, ids and deletions stay."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import alter, create_table
from emberlake import SchemaChange
from emberlake.compaction.bucket import load_buckets
from emberlake.compaction.buckets import compact_buckets
from emberlake.errors import CommitConflict, ConflictReason
from emberlake.spec.manifest import FileSource
from emberlake.table import Table
from emberlake.types import AtomicType
from emberlake.wire import CommitMessage
from table_reads import index_entries, latest_snapshot, live_files, planned_files
from tracked_tables import (
    COLUMNS,
    TRACKED,
    VECTORS,
    changed_in,
    commit,
    delete,
    evolving_table,
    put,
    update,
    with_ids,
)


def compaction_of(table: Table) -> list[CommitMessage]:
    store, latest = table.store, latest_snapshot(table)
    return compact_buckets(store, list(load_buckets(store, latest)), latest, full=True)


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_rows_take_their_ids_along(file_format: str) -> None:
    options = {**TRACKED, **VECTORS, "file.format": file_format}
    table = create_table(columns=COLUMNS, options=options)
    for n in range(4):
        put(table, (n, "a", n), (n + 10, "b", n))
    delete(table, "id IN (1, 13)")
    before, changed = with_ids(table), changed_in(table)

    table.compact(full=True)  # files with deleted rows, and those without
    table.compact(full=True)

    (entry,) = live_files(table)
    assert (with_ids(table), changed_in(table)) == (before, changed)
    assert (entry.file.first_row_id, entry.file.file_source) == (None, FileSource.COMPACT)
    assert entry.file.write_cols == ("id", "v", "n", "_ROW_ID", "_SEQUENCE_NUMBER")
    assert (entry.file.min_sequence_number, entry.file.max_sequence_number) == (1, 4)
    assert index_entries(table) == []
    put(table, (99, "z", 9))
    assert with_ids(table) == {**before, 8: (99, "z", 9)}
    assert with_ids(table, "_ROW_ID = 5") == {5: before[5]}
    assert planned_files(table, "_ROW_ID > 7") == planned_files(table, "id = 99")


def test_compacted_rows_are_compacted_again_under_another_schema() -> None:
    table = create_table(columns=COLUMNS, options=TRACKED)
    put(table, (1, "a", 1))
    put(table, (2, "b", 2))
    table.compact(full=True)
    table = alter(table, SchemaChange.add_column("extra", AtomicType("INT")))
    table.append(pa.table({"id": [3], "v": ["c"], "n": pa.array([3], pa.int32()), "extra": [7]}))

    table.compact(full=True)

    assert with_ids(table) == {0: (1, "a", 1, None), 1: (2, "b", 2, None), 2: (3, "c", 3, 7)}
    assert len(live_files(table)) == 1


def test_files_side_by_side_become_one() -> None:
    table = evolving_table()
    put(table, (1, "a", 1), (2, "b", 2))
    put(table, (3, "c", 3))
    update(table, ids=[0], v=["x"])
    update(table, ids=[2, 1], n=[30, 20])

    table.compact(full=True)

    (entry,) = live_files(table)
    file = entry.file
    assert with_ids(table) == {0: (1, "x", 1), 1: (2, "b", 20), 2: (3, "c", 30)}
    assert (file.first_row_id, file.row_count, file.write_cols) == (0, 3, None)
    assert (file.min_sequence_number, file.max_sequence_number) == (1, 4)
    assert latest_snapshot(table).commit_kind == "COMPACT"
    assert latest_snapshot(table).total_record_count == 3
    update(table, ids=[2], v=["z"])
    assert with_ids(table)[2] == (3, "z", 30)


def test_marks_move_with_their_rows() -> None:
    table = evolving_table(has_vectors=True)
    put(table, (1, "a", 1), (2, "b", 2), (3, "c", 3))
    put(table, (4, "d", 4), (5, "e", 5))
    delete(table, "id IN (2, 5)")
    update(table, ids=[0], v=["x"])
    before = with_ids(table)

    table.compact(full=True)

    assert with_ids(table) == before == {0: (1, "x", 1), 2: (3, "c", 3), 3: (4, "d", 4)}
    assert live_files(table)[0].file.row_count == 5
    delete(table, "id = 4")
    assert list(with_ids(table)) == [0, 2]


def test_a_gap_in_the_ids_is_not_bridged() -> None:
    table = evolving_table()
    put(table, (1, "a", 1))
    table.overwrite(pa.table({"id": [2], "v": ["b"], "n": pa.array([2], pa.int32())}))
    put(table, (3, "c", 3))

    table.compact(full=True)

    assert [(e.file.first_row_id, e.file.row_count) for e in live_files(table)] == [(1, 2)]


def test_a_compaction_gives_way_to_writes_of_the_same_rows() -> None:
    table = evolving_table(has_vectors=True)
    put(table, (1, "a", 1))
    put(table, (2, "b", 2))
    ours = compaction_of(table)
    update(table, ids=[0], v=["x"])

    with pytest.raises(CommitConflict) as caught:
        commit(table, ours)
    assert caught.value.reason is ConflictReason.ROW_RANGE_CHANGED

    ours = compaction_of(table)
    delete(table, "id = 2")
    with pytest.raises(CommitConflict) as caught:
        commit(table, ours)
    assert caught.value.reason is ConflictReason.DELETION_VECTOR_CHANGED
    assert with_ids(table) == {0: (1, "x", 1)}


def test_a_compaction_of_one_group_and_an_update_of_it_go_together() -> None:
    table = evolving_table()
    put(table, (1, "a", 1), (2, "b", 2))
    update(table, ids=[0], v=["x"])
    ours = compaction_of(table)

    update(table, ids=[1], v=["y"])
    commit(table, ours)

    assert with_ids(table) == {0: (1, "x", 1), 1: (2, "y", 2)}


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(1, 4)),
        st.tuples(st.just("v"), st.integers(0, 30)),
        st.tuples(st.just("n"), st.integers(0, 30)),
        st.tuples(st.just("delete"), st.integers(0, 30)),
        st.tuples(st.just("compact"), st.just(0)),
    ),
    max_size=10,
)


@settings(max_examples=25, deadline=None)
@given(STEPS)
def test_whatever_is_done_rows_are_what_they_should_be(steps: list[tuple[str, int]]) -> None:
    """Every filter on every column agrees with the rows, after any changes in any order."""
    table = evolving_table(has_vectors=True)
    rows: dict[int, list[object]] = {}
    next_id = 0
    for count, (step, number) in enumerate(steps):
        alive = sorted(rows)
        if step == "put":
            new = [(next_id + n, f"p{count}", count) for n in range(number)]
            put(table, *new)
            rows |= {row[0]: list(row) for row in new}
            next_id += number
        elif step == "compact":
            table.compact(full=True)
        elif alive:
            target = alive[number % len(alive)]
            if step == "delete":
                delete(table, f"_ROW_ID = {target}")
                del rows[target]
            else:
                value = f"u{count}" if step == "v" else -count
                update(table, ids=[target], **{step: [value]})
                rows[target][1 if step == "v" else 2] = value
    expected = {key: tuple(row) for key, row in rows.items()}
    assert with_ids(table) == expected
    assert table.count() == len(rows)
    for place, name in ((1, "v"), (2, "n")):
        for value in {row[place] for row in expected.values()}:
            where = f"{name} = '{value}'" if name == "v" else f"{name} = {value}"
            assert with_ids(table, where) == {
                key: row for key, row in expected.items() if row[place] == value
            }

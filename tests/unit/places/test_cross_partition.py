"""Tables whose key is unique over partitions that it does not name."""

import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from builders import (
    append,
    create_key_table,
    data_of,
    open_table,
    overwrite,
    prepare,
    upsert,
)
from emberlake import (
    CommitConflict,
    ConflictReason,
    DataMismatch,
    InvalidState,
    MessageMismatch,
    Table,
    Unsupported,
)
from emberlake.places import writer
from table_reads import (
    check_whole,
    data_files,
    index_entries,
    latest_snapshot,
    live_files,
    read_rows,
    records_in,
)

COLUMNS = {"id": "INT", "day": "STRING", "v": "STRING"}
ENGINES = ["deduplicate", "partial-update", "aggregation", "first-row"]


def create(**options: str) -> Table:
    return create_key_table(COLUMNS, ["id"], ["day"], **{"bucket": "-1", **options})


def rows(table: Table, where: str | None = None) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in read_rows(table, where)), key=repr)


def commit_of(table: Table) -> Any:
    return table.new_batch_write_builder().new_commit()


@pytest.mark.parametrize(
    ("engine", "expected"),
    [
        ("deduplicate", [(1, "tue", None), (2, "mon", "b"), (3, None, "d")]),
        ("partial-update", [(1, "mon", "a"), (2, "mon", "b"), (3, "wed", "d")]),
        ("aggregation", [(1, "mon", "a"), (2, "mon", "b"), (3, "wed", "d")]),
        ("first-row", [(1, "mon", "a"), (2, "mon", "b"), (3, "wed", "c")]),
    ],
)
def test_a_record_of_another_partition_moves_joins_or_leaves_the_row(
    engine: str, expected: list[Any]
) -> None:
    table = create(**{"merge-engine": engine})
    upsert(table, [(1, "mon", "a"), (2, "mon", "b")])

    upsert(table, [(1, "tue", None), (3, "wed", "c"), (3, None, "d")])

    assert rows(table) == expected
    assert table.count() == 3
    table.compact(full=True)
    assert rows(table) == expected
    assert rows(table, "id = 1") == expected[:1]
    assert index_entries(table) == []
    check_whole(table)


@pytest.mark.parametrize(("producer", "deleted"), [("input", "b"), ("lookup", "a")])
def test_a_row_leaves_a_delete_behind_and_the_changelog_says_so(
    producer: str, deleted: str
) -> None:
    table = create(**{"changelog-producer": producer})
    upsert(table, [(1, "mon", "a")])
    first = latest_snapshot(table).id

    upsert(table, [(1, "tue", "b")])

    last = latest_snapshot(table).id
    changes = table.copy({"incremental-between": f"{first},{last}"})
    builder = changes.new_read_builder()
    read = builder.new_read()
    found = read.to_arrow(builder.new_scan().plan().splits(), with_row_kind=True)
    assert sorted(tuple(row.values()) for row in found.to_pylist()) == [
        ("+I", 1, "tue", "b"),
        ("-D", 1, "mon", deleted),
    ]


def test_a_delete_needs_the_key_alone() -> None:
    table = create()
    upsert(table, [(1, "mon", "a"), (2, "tue", "b"), (3, "wed", "c")])

    table.delete_keys(pa.table({"id": pa.array([1, 9], pa.int32())}))
    upsert(table, [(2, "wed", None)], "-U")

    assert rows(table) == [(3, "wed", "c")]
    with pytest.raises(DataMismatch, match=r"day.* is missing"):
        append(table, pa.table({"id": pa.array([3], pa.int32()), "v": ["x"]}))


def test_many_rows_wait_on_the_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(writer, "_SLICE_ROWS", 7)
    table = create(**{"write-buffer-size": "1 b", "dynamic-bucket.target-row-num": "50"})
    upsert(table, [(i, "mon", "a") for i in range(200)])
    builder = table.new_batch_write_builder()

    with builder.new_write() as write:
        for start in (0, 100):
            moved = [(i, "tue", f"b{i}") for i in range(start, start + 100, 2)]
            write.write_arrow(data_of(table, moved))
        assert list(tmp_path.iterdir())
        builder.new_commit().commit(write.prepare_commit())

    assert list(tmp_path.iterdir()) == []
    days = {row[0]: row[1] for row in rows(table)}
    assert days == {i: "mon" if i % 2 else "tue" for i in range(200)}
    assert {entry.bucket for entry in live_files(table)} == {0, 1, 2, 3}


def test_only_files_that_can_hold_the_keys_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    table = create()
    for start in (0, 100, 200):
        upsert(table, [(i, f"day {start}", "a") for i in range(start, start + 10)])
    read: list[int] = []
    original = writer.LiveKeys.of_split

    def counted(self: Any, split: Any, number: int) -> Any:
        read.extend(file.row_count for file in split.files)
        return original(self, split, number)

    monkeypatch.setattr(writer.LiveKeys, "of_split", counted)

    upsert(table, [(105, "tue", "b"), (999, "tue", "b")])

    assert read == [10]
    assert (105, "tue", "b") in rows(table)


@pytest.mark.parametrize("engine", ENGINES)
def test_two_writers_do_not_both_write_a_key(engine: str) -> None:
    table = create(**{"merge-engine": engine})
    upsert(table, [(1, "mon", "a")])
    one, apart = prepare(table, [(5, "mon", "x")]), prepare(table, [(9, "tue", "z")])
    two = prepare(table, [(5, "tue", "y")])
    commit_of(table).commit(one)

    commit_of(table).commit(apart)
    with pytest.raises(CommitConflict) as conflict:
        commit_of(table).commit(two)

    assert conflict.value.reason is ConflictReason.KEY_INDEX_CHANGED
    assert rows(table) == [(1, "mon", "a"), (5, "mon", "x"), (9, "tue", "z")]


def test_compaction_does_not_stand_in_the_way() -> None:
    table = create()
    upsert(table, [(1, "mon", "a"), (5, "mon", "b")])
    moved = prepare(table, [(5, "tue", "c")])

    table.compact(full=True)
    commit_of(table).commit(moved)

    assert rows(table) == [(1, "mon", "a"), (5, "tue", "c")]


def test_a_record_does_not_join_a_row_that_was_removed_meanwhile() -> None:
    table = create(**{"merge-engine": "partial-update"})
    upsert(table, [(1, "mon", "a")])
    joins = prepare(table, [(1, "tue", None)])

    commit_of(table).truncate_partitions([{"day": "mon"}])

    with pytest.raises(CommitConflict) as conflict:
        commit_of(table).commit(joins)
    assert conflict.value.reason is ConflictReason.KEY_INDEX_CHANGED


def test_several_writers_of_one_commit_keep_to_keys_of_their_own() -> None:
    table = create()
    messages = [prepare(table, [(1, "mon", "a")]), prepare(table, [(1, "tue", "b")])]

    with pytest.raises(CommitConflict, match="several writers wrote keys that overlap"):
        commit_of(table).commit([m for some in messages for m in some])
    apart = [prepare(table, [(1, "mon", "a")]), prepare(table, [(2, "tue", "b")])]
    commit_of(table).commit([m for some in apart for m in some])

    assert rows(table) == [(1, "mon", "a"), (2, "tue", "b")]


def test_what_a_stream_has_prepared_counts_before_it_is_committed() -> None:
    table = create()
    builder = table.new_stream_write_builder()
    with builder.new_write() as write:
        made = []
        for number, day in enumerate(("mon", "tue", "wed"), 1):
            write.write_arrow(data_of(table, [(1, day, day), (number, day, day)]))
            made.append(write.prepare_commit(number))
        for number, messages in enumerate(made, 1):
            builder.new_commit().commit(messages, number)

    assert rows(table) == [(1, "wed", "wed"), (2, "tue", "tue"), (3, "wed", "wed")]


def test_what_counts_on_an_earlier_commit_of_the_stream_is_refused_without_it() -> None:
    table = create()
    builder = table.new_stream_write_builder()
    with builder.new_write() as write:
        made = []
        for number, day in enumerate(("mon", "tue", "wed", "thu"), 1):
            write.write_arrow(data_of(table, [(1, day, day)]))
            made.append(write.prepare_commit(number))
            if number == 3:
                builder.new_commit().abort(made[1])
        first, _, third, fourth = made
        with pytest.raises(CommitConflict, match="of an earlier prepare"):
            builder.new_commit().commit(third, 3)
        builder.new_commit().commit(first, 1)

        with pytest.raises(CommitConflict, match="of an earlier prepare") as conflict:
            builder.new_commit().commit(fourth, 4)
        assert conflict.value.reason is ConflictReason.KEY_INDEX_CHANGED
        builder.new_commit().abort([*third, *fourth])
        write.write_arrow(data_of(table, [(1, "fri", "fri")]))
        builder.new_commit().commit(write.prepare_commit(5), 5)

    assert rows(table) == [(1, "fri", "fri")]
    check_whole(table)


def test_a_stream_does_not_count_on_rows_that_were_removed_after_its_commit() -> None:
    table = create(**{"merge-engine": "partial-update"})
    builder = table.new_stream_write_builder()
    with builder.new_write() as write:
        made = []
        for number, day in enumerate(("mon", "tue"), 1):
            write.write_arrow(data_of(table, [(1, day, day)]))
            made.append(write.prepare_commit(number))
    builder.new_commit().commit(made[0], 1)
    commit_of(table).truncate_partitions([{"day": "mon"}])

    with pytest.raises(CommitConflict, match="another writer removed"):
        builder.new_commit().commit(made[1], 2)

    assert rows(table) == []


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}, (1, "mon", 6)),
        ({"merge-engine": "partial-update", "fields.m.sequence-group": "n"}, (1, "mon", 3)),
        (
            {
                "merge-engine": "partial-update",
                "partial-update.remove-record-on-delete": "true",
            },
            (1, "tue", 3),
        ),
    ],
    ids=["retracts from a sum", "retracts a group", "removes the row"],
)
def test_a_retraction_in_a_stream_leaves_the_row_in_its_place(
    options: dict[str, str], expected: tuple[Any, ...]
) -> None:
    columns = {"id": "INT", "day": "STRING", "n": "INT", "m": "INT"}
    table = create_key_table(columns, ["id"], ["day"], **{"bucket": "-1", **options})
    builder = table.new_stream_write_builder()
    with builder.new_write() as write:
        made = []
        records = [("+I", (1, "mon", 5, 1)), ("-D", (1, "mon", 2, 2)), ("+I", (1, "tue", 3, 3))]
        for number, (kind, row) in enumerate(records, 1):
            write.write_arrow(data_of(table, [row]), kind)
            made.append(write.prepare_commit(number))
        for number, messages in enumerate(made, 1):
            builder.new_commit().commit(messages, number)

    assert [row[:3] for row in rows(table)] == [expected]


@pytest.mark.parametrize("engine", ENGINES)
def test_an_overwrite_leaves_no_key_twice(engine: str) -> None:
    table = create(**{"merge-engine": engine})
    upsert(table, [(1, "mon", "a"), (2, "tue", "b"), (3, "wed", "c")])

    with pytest.raises(DataMismatch, match=r"id = 1 is in partition .*mon.*would be in the table"):
        overwrite(table, [(1, "tue", "x")])
    static = table.copy({"dynamic-partition-overwrite": "false"})
    with pytest.raises(DataMismatch, match=r"id = 3 is in partition .*wed"):
        overwrite(static, [(3, "tue", "x")], {"day": "tue"})
    overwrite(table, [(1, "tue", "x"), (4, "mon", "y")])

    assert rows(table) == [(1, "tue", "x"), (3, "wed", "c"), (4, "mon", "y")]
    overwrite(table, [(3, "mon", "z")], {})
    assert rows(table) == [(3, "mon", "z")]
    assert table.check().ok


def test_what_was_written_to_append_does_not_replace_anything() -> None:
    table = create()
    upsert(table, [(1, "mon", "a")])
    messages = prepare(table, [(1, "tue", "b")])

    with pytest.raises(MessageMismatch, match="put where the keys are now"):
        commit_of(table).overwrite(messages, {"day": "tue"})
    commit_of(table).commit(messages)

    assert rows(table) == [(1, "tue", "b")]


def test_an_update_sets_the_partition_where_rows_move() -> None:
    table = create()
    upsert(table, [(1, "mon", "a"), (2, "mon", "b")])

    table.update({"day": "'tue'"}, "id = 1")

    assert rows(table) == [(1, "tue", "a"), (2, "mon", "b")]
    partial = create(**{"merge-engine": "partial-update"})
    with pytest.raises(Unsupported, match="day: columns of the primary key and of the partition"):
        partial.update({"day": "'tue'"}, "id = 1")


def test_keys_that_share_a_partition_column_are_keys_of_their_own() -> None:
    columns = {"id": "INT", "region": "STRING", "day": "STRING"}
    table = create_key_table(columns, ["region", "id"], ["region", "day"], bucket="-1")
    upsert(table, [(1, "eu", "mon"), (1, "us", "mon")])
    eu, us = prepare(table, [(1, "eu", "tue")]), prepare(table, [(1, "us", "wed")])

    commit_of(table).commit(eu)
    commit_of(table).commit(us)

    assert rows(table) == [(1, "eu", "tue"), (1, "us", "wed")]


def test_new_keys_go_to_buckets_with_room() -> None:
    few = {"dynamic-bucket.target-row-num": "2", "dynamic-bucket.max-buckets": "2"}
    table = create(**few)

    upsert(table, [(i, "mon", "a") for i in range(3)])
    upsert(table, [(i, "mon", "b") for i in range(7)])

    buckets: dict[int, set[int]] = {}
    for entry in live_files(table):
        for record in records_in(table, entry):
            buckets.setdefault(record[0], set()).add(entry.bucket)
    assert all(len(found) == 1 for found in buckets.values())
    assert {bucket for found in buckets.values() for bucket in found} == {0, 1}
    assert len(rows(table)) == 7


def test_a_writer_that_failed_is_closed_and_leaves_nothing() -> None:
    table = create()
    keys = {"id": pa.array([1], pa.int32()), "day": ["mon"]}
    good, bad = (pa.table({**keys, "v": values}) for values in (["a"], [1]))
    stream = pa.RecordBatchReader.from_batches(good.schema, iter(good.to_batches()))
    write = table.new_batch_write_builder().new_write()
    write.write_arrow(stream)

    with pytest.raises(DataMismatch):
        write.write_arrow(bad)
    write.abort()

    with pytest.raises(InvalidState, match="closed"):
        write.write_arrow(good)
    assert data_files(table) == set()
    assert open_table(table.store.storage).latest_snapshot() is None

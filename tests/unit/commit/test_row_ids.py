"""Row ids are given by the commit: to new rows only, in order, and never twice."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import append, create_table, overwrite, prepare, rows_of
from emberlake.commit.row_ids import assign_row_ids
from emberlake.errors import InvalidInput
from emberlake.session.write_session import WriteSession
from emberlake.spec.manifest import DataFile, FileKind, FileSource, ManifestEntry
from emberlake.table import Table
from table_reads import latest_snapshot, live_files
from tracked_tables import TRACKED, changed_in, with_ids


def an_entry(name: str, rows: int, partition: bytes = b"", **file: object) -> ManifestEntry:
    given = {"min_sequence_number": 0, "max_sequence_number": 0, "schema_id": 0, **file}
    return ManifestEntry(
        kind=FileKind.ADD,
        partition=partition,
        bucket=0,
        total_buckets=-1,
        file=DataFile(file_name=name, file_size=1, row_count=rows, **given),
    )


def ids_of(entries: tuple[ManifestEntry, ...]) -> list[int | None]:
    return [entry.file.first_row_id for entry in entries]


def test_new_rows_are_counted_on_from_the_latest_snapshot() -> None:
    given, next_id = assign_row_ids(
        [an_entry("a", 3), an_entry("b", 2)], snapshot_id=7, next_row_id=10
    )

    assert (ids_of(given), next_id) == ([10, 13], 15)
    assert {(e.file.min_sequence_number, e.file.max_sequence_number) for e in given} == {(7, 7)}


def test_ids_of_a_partition_are_contiguous_unless_the_table_says_otherwise() -> None:
    entries = [an_entry("a", 3, b"x"), an_entry("b", 2, b"y"), an_entry("c", 1, b"x")]

    by_partition, _ = assign_row_ids(entries, snapshot_id=1, next_row_id=0)
    in_order, _ = assign_row_ids(entries, snapshot_id=1, next_row_id=0, by_partition=False)

    assert ids_of(by_partition) == [0, 4, 3]
    assert ids_of(in_order) == [0, 3, 5]


def test_rows_that_have_ids_keep_them() -> None:
    stored = an_entry("a", 3, write_cols=("id", "_ROW_ID", "_SEQUENCE_NUMBER"))
    beside = an_entry("b", 2, first_row_id=4)
    compacted = an_entry(
        "c", 2, first_row_id=6, file_source=FileSource.COMPACT,
        min_sequence_number=2, max_sequence_number=5,
    )  # fmt: skip

    given, next_id = assign_row_ids([stored, beside, compacted], snapshot_id=9, next_row_id=10)

    assert (ids_of(given), next_id) == ([None, 4, 6], 10)
    numbers = [(e.file.min_sequence_number, e.file.max_sequence_number) for e in given]
    assert numbers == [(9, 9), (9, 9), (2, 5)]


def test_a_file_with_changed_and_unchanged_rows_goes_up_to_the_new_snapshot() -> None:
    entry = an_entry("a", 3, write_cols=("_ROW_ID",), min_sequence_number=2)

    (given,), _ = assign_row_ids([entry], snapshot_id=9, next_row_id=10)

    assert (given.file.min_sequence_number, given.file.max_sequence_number) == (2, 9)


def test_files_of_one_column_share_the_ids_of_the_file_before_them() -> None:
    entries = [
        an_entry("a.parquet", 5, write_cols=("id",)),
        an_entry("a-1.blob", 3, write_cols=("b",)),
        an_entry("a-2.blob", 2, write_cols=("b",)),
        an_entry("c.parquet", 1, write_cols=("id",)),
        an_entry("c-1.blob", 1, write_cols=("b",)),
    ]

    given, next_id = assign_row_ids(entries, snapshot_id=1, next_row_id=0)

    assert (ids_of(given), next_id) == ([0, 0, 3, 5, 5], 6)


def test_who_does_not_say_whether_rows_are_new_is_refused() -> None:
    with pytest.raises(InvalidInput, match="a does not say whether its rows are new"):
        assign_row_ids([an_entry("a", 1, file_source=None)], snapshot_id=1, next_row_id=0)


@given(st.lists(st.tuples(st.sampled_from([b"x", b"y", b"z"]), st.integers(1, 5)), max_size=12))
def test_no_id_is_given_twice(files: list[tuple[bytes, int]]) -> None:
    entries = [an_entry(str(n), rows, part) for n, (part, rows) in enumerate(files)]

    given, next_id = assign_row_ids(entries, snapshot_id=3, next_row_id=100)

    firsts = [(entry.file.first_row_id, entry.file.row_count) for entry in given]
    ids = [first + n for first, count in firsts for n in range(count)]
    assert sorted(ids) == list(range(100, next_id))


# --- whole commits --------------------------------------------------------------------------------


def tracked(**options: str) -> Table:
    return create_table(options={**TRACKED, **options})


def test_a_lost_race_gives_other_ids() -> None:
    table = tracked()
    append(table, rows_of([1]))
    ours = prepare(table, rows_of([2, 3]))

    append(table, rows_of([4]))
    table.new_batch_write_builder().new_commit().commit(ours)

    assert with_ids(table) == {0: (1, "mon"), 1: (4, "mon"), 2: (2, "mon"), 3: (3, "mon")}
    assert changed_in(table) == {0: 1, 1: 2, 2: 3, 3: 3}
    assert latest_snapshot(table).next_row_id == 4


def test_an_overwrite_goes_on_counting() -> None:
    table = tracked()
    append(table, rows_of([1, 2]))

    overwrite(table, rows_of([3]))

    assert with_ids(table) == {2: (3, "mon")}


def test_files_of_new_rows_store_no_ids() -> None:
    table = tracked(**{"target-file-row-num": "2"})

    append(table, rows_of([1, 2, 3]))

    files = [entry.file for entry in live_files(table)]
    assert [(f.first_row_id, f.write_cols) for f in files] == [(0, None), (2, None)]
    assert {(f.min_sequence_number, f.max_sequence_number) for f in files} == {(1, 1)}


def test_rows_that_move_store_their_ids() -> None:
    table = tracked()
    append(table, rows_of([1, 2, 3]))
    moved = pa.table({
        "id": [1, 2], "day": ["tue", "mon"], "_ROW_ID": [0, 1], "_SEQUENCE_NUMBER": [None, 1],
    })  # fmt: skip
    session = WriteSession(table.store, "tester")
    writer = session.new_writer(carries_ids=True)
    writer.write(moved)
    session.commit(writer.prepare())

    file = live_files(table)[-1].file
    assert file.first_row_id is None
    assert file.write_cols == ("id", "day", "_ROW_ID", "_SEQUENCE_NUMBER")
    assert (file.min_sequence_number, file.max_sequence_number) == (1, 2)
    read = table.to_arrow(["id", "_ROW_ID", "_SEQUENCE_NUMBER"], "day = 'tue' OR id = 2")
    assert read.to_pylist()[-2:] == [
        {"id": 1, "_ROW_ID": 0, "_SEQUENCE_NUMBER": 2},
        {"id": 2, "_ROW_ID": 1, "_SEQUENCE_NUMBER": 1},
    ]

"""How files are packed into splits, and which splits a limit needs."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

from builders import append, create_table, delete_rows, rows_of
from emberlake.options import TableOptions
from emberlake.scan.files import FilePlan, Funnel
from emberlake.scan.splits import DataSplit, limit_splits, pack_splits
from emberlake.spec.manifest import DataFile, FileKind, ManifestEntry
from emberlake.store.entries import EMPTY, ManifestEntries
from emberlake.table import Table
from table_reads import live_files, planned_files, read_rows

TARGET_100 = {"source.split.target-size": "100 b", "source.split.open-file-cost": "10 b"}


def an_entry(
    size: int, *, sequence: int = 0, bucket: int = 0, partition: bytes = b""
) -> ManifestEntry:
    file = DataFile(
        file_name=f"{partition.decode()}-{bucket}-{sequence}-{size}",
        file_size=size,
        row_count=1,
        min_sequence_number=sequence,
        max_sequence_number=sequence,
        schema_id=0,
    )
    return ManifestEntry(
        kind=FileKind.ADD, partition=partition, bucket=bucket, total_buckets=1, file=file
    )


def pack(*entries: ManifestEntry, options: dict[str, str] | None = None) -> list[DataSplit]:
    columns = ManifestEntries.from_entries(entries)
    plan = FilePlan(columns, np.ones(len(entries), bool), Funnel())
    return pack_splits(plan, 1, TableOptions(options or TARGET_100))


def sizes(splits: list[DataSplit]) -> list[list[int]]:
    return [[file.file_size for file in split.files] for split in splits]


@pytest.mark.parametrize(
    ("files", "packed"),
    [
        ([50, 50, 1], [[50, 50], [1]]),  # the last one weighs ten
        ([50, 51], [[50], [51]]),
        ([500, 20, 500], [[500], [20], [500]]),
        ([90, 10, 10], [[90, 10], [10]]),
        ([1] * 25, [[1] * 10, [1] * 10, [1] * 5]),
        ([100], [[100]]),
        ([0, 0], [[0, 0]]),
    ],
)
def test_files_are_packed_up_to_the_target_and_small_ones_weigh_what_opening_costs(
    files: list[int], packed: list[list[int]]
) -> None:
    entries = [an_entry(size, sequence=n) for n, size in enumerate(files)]

    assert sizes(pack(*entries)) == packed


def test_a_split_holds_files_of_one_bucket_in_the_order_they_were_written() -> None:
    splits = pack(
        an_entry(1, sequence=5, bucket=1, partition=b"a"),
        an_entry(2, sequence=1, bucket=0, partition=b"b"),
        an_entry(3, sequence=4, bucket=1, partition=b"a"),
        an_entry(4, sequence=9, bucket=0, partition=b"a"),
        an_entry(5, sequence=3, bucket=1, partition=b"b"),
    )

    assert [(s.partition, s.bucket) for s in splits] == [(b"a", 0), (b"a", 1), (b"b", 0), (b"b", 1)]
    assert sizes(splits) == [[4], [3, 1], [2], [5]]


def test_the_defaults_pack_thirty_two_small_files() -> None:
    splits = pack(*(an_entry(1, sequence=n) for n in range(70)), options={"bucket": "-1"})

    assert [len(split.files) for split in splits] == [32, 32, 6]


def test_the_options_of_a_copy_decide_on_the_packing() -> None:
    table = create_table()
    for number in range(4):
        append(table, rows_of([number]))

    def count(options: dict[str, object]) -> int:
        return len(table.copy(options).new_read_builder().new_scan().plan().splits())

    assert count({}) == 1
    assert count({"source.split.target-size": "1 b"}) == 4
    assert count({"source.split.open-file-cost": "64 mb"}) == 2


def test_a_plan_of_nothing_has_no_splits() -> None:
    plan = FilePlan(EMPTY, np.ones(0, bool), Funnel())

    assert pack_splits(plan, 1, TableOptions()) == []


def test_splits_are_values() -> None:
    first, second = pack(an_entry(60, sequence=0), an_entry(60, sequence=1))
    (again, _) = pack(an_entry(60, sequence=0), an_entry(60, sequence=1))

    assert first == again
    assert first != second
    assert len({first, again, second}) == 2
    assert first.row_count == 1
    assert first.file_size == 60
    assert first.raw_convertible


def test_a_split_pickles_alone_and_small() -> None:
    splits = pack(*(an_entry(1, sequence=n) for n in range(1000)))
    before = pickle.dumps(splits[3])
    files = splits[3].files

    after = pickle.dumps(splits[3])

    assert after == before  # what was looked at does not travel
    assert len(after) < 20_000
    assert pickle.loads(after) == splits[3]
    assert pickle.loads(after).files == files


# --- limits ---------------------------------------------------------------------------------------


def many_splits() -> Table:
    table = create_table(partition_keys=["day"], options={"source.split.target-size": "1 b"})
    for number in range(4):
        append(table, [*rows_of([number, 10 + number], "mon"), *rows_of([20 + number], "tue")])
    return table


@pytest.mark.parametrize(
    ("limit", "files"), [(0, 0), (1, 1), (2, 1), (3, 2), (8, 4), (9, 5), (99, 8)]
)
def test_a_limit_plans_no_more_files_than_it_needs(limit: int, files: int) -> None:
    table = many_splits()
    plan = table.new_read_builder().with_limit(limit).new_scan().plan()

    assert len(plan.splits()) == files
    assert len(read_rows(table, limit=limit)) == min(limit, 12)


def test_a_filter_on_partitions_does_not_hinder_the_limit() -> None:
    builder = many_splits().new_read_builder().with_limit(2).with_filter("day = 'tue'")

    assert len(builder.new_scan().plan().splits()) == 2


def test_a_filter_on_rows_keeps_all_splits_whatever_the_limit() -> None:
    table = many_splits()
    builder = table.new_read_builder().with_limit(1).with_filter("id >= 0 AND id <> 0")

    assert len(builder.new_scan().plan().splits()) == len(planned_files(table))
    assert len(read_rows(table, "id >= 0 AND id <> 0", limit=1)) == 1
    assert read_rows(table, "id = 23", limit=1) == rows_of([23], "tue")


def test_deleted_rows_do_not_count_towards_a_limit() -> None:
    table = create_table(options={"source.split.target-size": "1 b"})
    for number in range(3):
        append(table, rows_of([number, 10 + number]))
    names = [entry.file.file_name for entry in live_files(table)]
    delete_rows(table, {names[0]: [0, 1], names[1]: [0]})

    builder = table.new_read_builder().with_limit(2)

    assert len(builder.new_scan().plan().splits()) == 3
    assert read_rows(table, limit=2) == rows_of([11, 2])


def test_splits_of_unknown_row_count_never_satisfy_a_limit() -> None:
    first, second = pack(an_entry(60, sequence=0), an_entry(60, sequence=1))
    table = create_table()
    append(table, rows_of([1]))
    (entry,) = live_files(table)
    delete_rows(table, {entry.file.file_name: [0]})
    (split,) = table.new_read_builder().new_scan().plan().splits()
    (known,) = split.deletion_files.values()
    unknown = replace(known, range=replace(known.range, cardinality=None))
    blurred = replace(first, deletion_files={first.files[0].file_name: unknown})

    assert blurred.merged_row_count() is None
    assert limit_splits([blurred, second], 1) == [blurred, second]


def test_the_row_count_of_a_split_is_known_without_reading() -> None:
    table = create_table()
    append(table, rows_of([1, 2, 3]))
    (entry,) = live_files(table)
    delete_rows(table, {entry.file.file_name: [1]})

    (split,) = table.new_read_builder().new_scan().plan().splits()

    assert (split.row_count, split.merged_row_count()) == (3, 2)


def test_a_split_can_be_cut_by_file() -> None:
    table = create_table()
    for start in (0, 3, 6):
        append(table, rows_of(range(start, start + 3)))
    names = [entry.file.file_name for entry in live_files(table)]
    delete_rows(table, {names[1]: [0]})
    (split,) = table.new_read_builder().new_scan().plan().splits()

    assert [d is not None for d in split.data_deletion_files] == [False, True, False]
    assert split.total_buckets == -1
    assert split.file_paths == [f"/warehouse/db.db/t/bucket-0/{name}" for name in names]
    rest = split.filter_file(lambda file: file.file_name != names[1])
    assert [file.file_name for file in rest.files] == [names[0], names[2]]
    assert (rest.data_deletion_files, rest.merged_row_count()) == (None, 6)
    assert split.filter_file(lambda file: False) is None

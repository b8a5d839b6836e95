"""Shards and slices: every row once, in bounded memory, and only the files that are needed."""

import pickle
from collections import Counter
from itertools import chain

import pytest

from builders import (
    NUMBERED,
    append,
    create_key_table,
    create_table,
    delete_rows,
    lift,
    numbered,
    rows_of,
    upsert,
)
from emberlake.errors import InvalidInput, Unsupported
from emberlake.formats.parquet import ParquetReader
from emberlake.scan.share import _java_hash
from emberlake.scan.split_form import split_from_bytes, split_to_bytes
from emberlake.table import Table
from table_reads import OpenFiles, live_files


@pytest.fixture
def table() -> Table:
    """Files of 5, 3 and 7 rows, numbered through."""
    made = create_table()
    for start, stop in ((0, 5), (5, 8), (8, 15)):
        append(made, rows_of(range(start, stop)))
    return made


def ids_of(table: Table, where: str | None = None, limit: int | None = None, **share: object):
    builder = table.new_read_builder().with_filter(where).with_limit(limit)
    scan = builder.new_scan()
    for kind, ends in share.items():
        getattr(scan, f"with_{kind}")(*ends)
    return builder.new_read().to_arrow(scan.plan().splits())["id"].to_pylist()


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ((0, 1), [0]),
        ((0, 15), list(range(15))),
        ((3, 6), [3, 4, 5]),
        ((5, 8), [5, 6, 7]),
        ((7, 9), [7, 8]),
        ((14, 99), [14]),
        ((15, 99), []),
    ],
)
def test_a_slice_has_rows_by_where_they_are_stored(
    table: Table, rows: tuple[int, int], expected: list[int]
) -> None:
    assert ids_of(table, slice=rows) == expected


@pytest.mark.parametrize("count", [1, 2, 4, 7, 15, 20])
def test_shards_have_every_row_once_and_are_alike_in_size(table: Table, count: int) -> None:
    shards = [ids_of(table, shard=(index, count)) for index in range(count)]

    assert [*chain(*shards)] == list(range(15))
    assert max(map(len, shards)) - min(map(len, shards)) <= 1


def test_deleted_rows_count_but_do_not_come_out(table: Table) -> None:
    first, second, _ = (entry.file.file_name for entry in live_files(table))
    delete_rows(table, {first: [0, 3], second: [2]})

    assert ids_of(table, slice=(0, 7)) == [1, 2, 4, 5, 6]
    assert ids_of(table, slice=(7, 8)) == []


def test_rows_that_do_not_match_count_where_their_file_is_read(table: Table) -> None:
    # The statistics rule out the first two files: counting begins with the third.
    assert ids_of(table, "id >= 10", slice=(0, 3)) == [10]
    assert ids_of(table, "id >= 10", shard=(1, 2)) == [12, 13, 14]


def test_a_limit_is_of_the_shard(table: Table) -> None:
    assert ids_of(table, limit=2, shard=(1, 3)) == [5, 6]
    assert ids_of(table, limit=4, slice=(6, 15)) == [6, 7, 8, 9]


def test_only_the_files_of_a_slice_are_opened() -> None:
    storage = OpenFiles()
    made = create_table(storage)
    for start in (0, 10, 20):
        append(made, rows_of(range(start, start + 10)))
    storage.opened.clear()

    assert ids_of(made, slice=(12, 15)) == [12, 13, 14]
    assert len([path for path in storage.opened if "/bucket-" in path]) == 1


def test_only_the_row_groups_of_a_slice_are_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    made = create_table(options={"file.block-size": "1 b"})
    append(made, rows_of(range(9)))  # a row group each
    decoded: list[int] = []
    batches = ParquetReader._group_batches

    def watched(self: ParquetReader, group: int, *rest: object, **more: object):
        decoded.append(group)
        return batches(self, group, *rest, **more)

    monkeypatch.setattr(ParquetReader, "_group_batches", watched)

    assert ids_of(made, slice=(2, 4)) == [2, 3]
    assert decoded == [2, 3]


def test_a_split_knows_how_many_of_its_rows_are_read(table: Table) -> None:
    (split,) = table.new_read_builder().new_scan().with_slice(3, 6).plan().splits()

    assert (split.row_count, split.merged_row_count()) == (3, 3)
    assert len(split.files) == 2


def test_what_is_left_of_a_part_with_deletions_is_not_known(table: Table) -> None:
    first, *_ = (entry.file.file_name for entry in live_files(table))
    delete_rows(table, {first: [0]})
    scan = table.new_read_builder().new_scan()

    (split,) = scan.with_slice(0, 5).plan().splits()
    assert split.merged_row_count() == 4
    (split,) = scan.with_slice(0, 4).plan().splits()
    assert split.merged_row_count() is None


@pytest.mark.parametrize(
    "cross",
    [lambda s: split_from_bytes(split_to_bytes(s), None), lambda s: pickle.loads(pickle.dumps(s))],
)
def test_slices_cross_processes(table: Table, cross) -> None:
    read = table.new_read_builder().new_read()
    splits = table.new_read_builder().new_scan().with_slice(3, 6).plan().splits()

    assert read.to_arrow([cross(s) for s in splits])["id"].to_pylist() == [3, 4, 5]
    batches = read.to_arrow_batch_reader([cross(s) for s in splits])
    assert batches.read_all()["id"].to_pylist() == [3, 4, 5]


# --- tables with a primary key --------------------------------------------------------------------


def test_a_key_table_is_dealt_out_by_bucket() -> None:
    made = create_key_table(NUMBERED, bucket="4")
    upsert(made, numbered(range(20)))
    upsert(made, numbered(range(10, 30), "b"))

    def shard(index: int) -> set[int]:
        scan = made.new_read_builder().new_scan().with_shard(index, 3)
        return {split.bucket for split in scan.plan().splits()}

    assert [shard(index) for index in range(3)] == [{0, 3}, {1}, {2}]
    parts = [ids_of(made, shard=(index, 3)) for index in range(3)]
    assert Counter(chain(*parts)) == Counter(range(30))


@pytest.mark.parametrize(
    "options", [{"deletion-vectors.enabled": "true"}, {"merge-engine": "first-row"}]
)
def test_a_key_table_whose_files_share_no_keys_is_dealt_out_by_file(
    options: dict[str, str],
) -> None:
    made = create_key_table(NUMBERED, **{**options, "target-file-row-num": "3"})
    upsert(made, numbered(range(30)))
    upsert(made, numbered(range(20, 40), "b"))

    parts = [ids_of(made, shard=(index, 2)) for index in range(2)]

    assert min(map(len, parts)) > 0  # of one bucket
    assert Counter(chain(*parts)) == Counter(range(40))


def test_files_that_are_merged_stay_together_whatever_the_options_say() -> None:
    made = create_key_table(
        NUMBERED,
        **{
            "deletion-vectors.enabled": "true",
            "deletion-vectors.merge-on-read": "true",
            "write-only": "true",
        },
    )
    upsert(made, numbered(range(5)))
    upsert(made, numbered(range(5), "b"))
    lift(made, {0: 5})

    parts = [ids_of(made, shard=(index, 2)) for index in range(2)]

    assert parts == [list(range(5)), []]


def test_files_are_dealt_out_by_the_hash_that_java_has() -> None:
    assert _java_hash("") == 0
    assert _java_hash("hello") == 99162322
    assert _java_hash("polygenelubricants") == 1 << 31  # the smallest there is, without its sign
    assert _java_hash("😀") == 1772899


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize("shard", [(3, 3), (-1, 3), (0, 0), (0, -1), (0.5, 2), ("0", 2), (0, None)])
def test_a_shard_that_there_is_not_is_refused(table: Table, shard: tuple[int, int]) -> None:
    with pytest.raises(InvalidInput, match="shard"):
        table.new_read_builder().new_scan().with_shard(*shard)


@pytest.mark.parametrize("rows", [(3, 3), (4, 3), (-1, 3), (0, 2.5), (None, 1), (True, 2)])
def test_a_slice_of_no_rows_is_refused(table: Table, rows: tuple[int, int]) -> None:
    with pytest.raises(InvalidInput, match="slice"):
        table.new_read_builder().new_scan().with_slice(*rows)


def test_a_scan_has_a_slice_or_a_shard(table: Table) -> None:
    with pytest.raises(InvalidInput, match="not both"):
        table.new_read_builder().new_scan().with_slice(0, 1).with_shard(0, 1)
    with pytest.raises(InvalidInput, match="not both"):
        table.new_read_builder().new_scan().with_shard(0, 1).with_slice(0, 1)


def test_a_key_table_has_no_slices() -> None:
    with pytest.raises(Unsupported, match="with_shard"):
        create_key_table(NUMBERED).new_read_builder().new_scan().with_slice(0, 1)


def test_the_last_shard_that_was_asked_for_counts(table: Table) -> None:
    scan = table.new_read_builder().new_scan()
    scan.with_shard(0, 3)
    scan.with_shard(1, 5)

    assert sum(split.row_count for split in scan.plan().splits()) == 3


def test_a_table_without_a_snapshot_has_empty_shards() -> None:
    assert create_table().new_read_builder().new_scan().with_shard(1, 3).plan().splits() == []

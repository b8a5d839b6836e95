"""Buckets that are given out as keys arrive."""

import numpy as np
import pytest

from builders import create_key_table, data_of, prepare, upsert
from emberlake.errors import CommitConflict, ConflictReason, CorruptFile, InvalidInput
from emberlake.spec.manifest import HASH_INDEX
from emberlake.write.dynamic_bucket import PartitionIndex
from table_reads import files_under, index_entries, live_files, records_in

FEW = {"bucket": "-1", "dynamic-bucket.target-row-num": "3"}


def an_index(known=None, *, bucket_rows=3, max_buckets=-1) -> PartitionIndex:
    known = {bucket: np.array(hashes, np.int32) for bucket, hashes in (known or {}).items()}
    return PartitionIndex.of(known, {}, bucket_rows=bucket_rows, max_buckets=max_buckets)


def assign(index, *hashes) -> list[int]:
    return index.assign(np.array(hashes, np.int32)).tolist()


def buckets_of_keys(table) -> dict[int, set[int]]:
    found: dict[int, set[int]] = {}
    for entry in live_files(table):
        for record in records_in(table, entry):
            found.setdefault(record[0], set()).add(entry.bucket)
    return found


# --- giving out buckets ---------------------------------------------------------------------------


def test_new_hashes_fill_one_bucket_after_the_other() -> None:
    index = an_index()

    assert sorted(assign(index, 5, 4, 3, 2, 1, 1, 5)) == [0, 0, 0, 0, 1, 1, 1]
    assert index.rooms.counts == {0: 3, 1: 2}
    assert index.changed == {0, 1}


def test_a_known_hash_keeps_its_bucket() -> None:
    index = an_index({0: [1, 2, 3], 4: [-7, 9]})

    assert assign(index, 9, 1, -7, 9) == [4, 0, 4, 4]
    assert index.changed == set()


def test_buckets_with_room_come_before_new_ones() -> None:
    index = an_index({0: [1, 2, 3], 1: [4, 5]})

    assert assign(index, 100, 101) == [1, 2]
    assert sorted(index.hashes_of(1).tolist()) == [4, 5, 100]
    assert index.changed == {1, 2}


def test_a_new_bucket_has_the_smallest_unused_number() -> None:
    index = an_index({0: [1, 2, 3], 2: [4, 5, 6]})

    assert assign(index, 7) == [1]


def test_beyond_the_allowed_buckets_the_existing_ones_are_shared() -> None:
    index = an_index({0: [1, 2, 3]}, max_buckets=2)

    assert set(assign(index, *range(10, 30))) == {0, 1}
    assert sum(index.rooms.counts.values()) == 23


def test_too_many_buckets_are_refused() -> None:
    index = an_index({bucket: [bucket] for bucket in range(32_767)}, bucket_rows=1)

    with pytest.raises(InvalidInput, match=r"raise dynamic-bucket\.target-row-num"):
        assign(index, 40_000)


# --- tables ---------------------------------------------------------------------------------------


def test_a_key_stays_in_its_bucket_from_write_to_write() -> None:
    table = create_key_table(**FEW)

    upsert(table, [(n, "a") for n in range(5)])
    upsert(table, [(n, "b") for n in range(8)])

    buckets = buckets_of_keys(table)
    assert sorted(buckets) == list(range(8))
    assert all(len(found) == 1 for found in buckets.values())
    assert {entry.total_buckets for entry in live_files(table)} == {-1}


def test_the_index_lists_the_hashes_of_every_bucket_once() -> None:
    table = create_key_table(**FEW)

    upsert(table, [(n, "a") for n in range(5)])
    upsert(table, [(n, "b") for n in range(8)])

    indexes = index_entries(table)
    assert sorted((e.bucket, e.index_file.row_count) for e in indexes) == [(0, 3), (1, 3), (2, 2)]
    assert {e.index_file.index_type for e in indexes} == {HASH_INDEX}
    for entry in indexes:
        raw = table.store.storage.read(table.store.layout.index(entry.index_file.file_name))
        assert len(raw) == entry.index_file.file_size == 4 * entry.index_file.row_count


def test_the_index_has_the_bytes_that_other_engines_write() -> None:
    table = create_key_table(bucket="-1")

    upsert(table, [(1, "a"), (42, "b")])

    (entry,) = index_entries(table)
    raw = table.store.storage.read(table.store.layout.index(entry.index_file.file_name))
    assert sorted([raw[:4], raw[4:]]) == [bytes.fromhex("361c40b5"), bytes.fromhex("5759f99e")]


def test_only_changed_buckets_get_a_new_index_file() -> None:
    table = create_key_table(**FEW)
    upsert(table, [(n, "a") for n in range(5)])
    before = {e.bucket: e.index_file.file_name for e in index_entries(table)}

    upsert(table, [(n, "b") for n in range(5)])
    same = {e.bucket: e.index_file.file_name for e in index_entries(table)}
    upsert(table, [(5, "c")])
    after = {e.bucket: e.index_file.file_name for e in index_entries(table)}

    assert same == before
    assert after[0] == before[0]
    assert after[1] != before[1]


def test_every_partition_has_buckets_of_its_own() -> None:
    table = create_key_table(
        {"id": "INT", "day": "STRING", "v": "INT"}, ["id", "day"], ["day"], **FEW
    )

    upsert(table, [(n, day, 0) for n in range(3) for day in ("mon", "tue")])

    assert len(index_entries(table)) == 2
    assert {entry.bucket for entry in live_files(table)} == {0}


def test_a_stream_extends_its_own_index() -> None:
    table = create_key_table(**FEW)
    builder = table.new_stream_write_builder()

    with builder.new_write() as write, builder.new_commit() as commit:
        for number in (1, 2, 3):
            write.write_arrow(data_of(table, [(n, "a") for n in range(2 * number)]))
            commit.commit(write.prepare_commit(number), number)

    assert sum(e.index_file.row_count for e in index_entries(table)) == 6
    assert all(len(found) == 1 for found in buckets_of_keys(table).values())


def test_two_writers_that_extend_one_bucket_cannot_both_commit() -> None:
    table = create_key_table(bucket="-1")
    upsert(table, [(0, "a")])
    builders = [table.new_batch_write_builder() for _ in range(2)]
    first, second = (prepare(table, [(n, "a")], builder=b) for n, b in enumerate(builders, 1))

    builders[0].new_commit().commit(first)
    with pytest.raises(CommitConflict) as caught:
        builders[1].new_commit().commit(second)

    assert caught.value.reason is ConflictReason.KEY_INDEX_CHANGED
    assert sorted(buckets_of_keys(table)) == [0, 1]


def test_two_writers_of_a_new_table_cannot_both_commit() -> None:
    table = create_key_table(bucket="-1")
    builders = [table.new_batch_write_builder() for _ in range(2)]
    first, second = (prepare(table, [(n, "a")], builder=b) for n, b in enumerate(builders))

    builders[0].new_commit().commit(first)
    with pytest.raises(CommitConflict, match="key index of a bucket"):
        builders[1].new_commit().commit(second)


@pytest.mark.parametrize("overwrites", [False, True])
def test_two_writers_of_one_commit_cannot_both_extend_a_bucket(overwrites: bool) -> None:
    table = create_key_table(bucket="-1")
    builder = table.new_batch_write_builder()
    if overwrites:
        builder.overwrite()
    messages = [m for n in range(2) for m in prepare(table, [(n, "a")], builder=builder)]

    with pytest.raises(CommitConflict, match="one writer") as caught:
        builder.new_commit().commit(messages)

    assert caught.value.reason is ConflictReason.KEY_INDEX_CHANGED
    assert table.store.snapshots.latest() is None
    builder.new_commit().abort(messages)


def test_two_writers_of_one_commit_may_write_different_partitions() -> None:
    columns = {"id": "INT", "day": "STRING", "v": "INT"}
    table = create_key_table(columns, ["id", "day"], ["day"], bucket="-1")
    builder = table.new_batch_write_builder()
    messages = [
        message
        for day in ("mon", "tue")
        for message in prepare(table, [(1, day, 0)], builder=builder)
    ]

    builder.new_commit().commit(messages)

    assert len(index_entries(table)) == 2


def test_the_initial_buckets_are_as_many_as_there_are_assigners() -> None:
    table = create_key_table(**FEW, **{"dynamic-bucket.initial-buckets": "4"})

    upsert(table, [(n, "a") for n in range(4)])

    assert [(e.bucket, e.index_file.row_count) for e in index_entries(table)] == [(0, 3), (1, 1)]


def test_writers_that_only_update_do_not_disturb_each_other() -> None:
    table = create_key_table(bucket="-1")
    upsert(table, [(0, "a"), (1, "a")])
    builders = [table.new_batch_write_builder() for _ in range(2)]
    prepared = [prepare(table, [(n, "b")], builder=b) for n, b in enumerate(builders)]

    for builder, messages in zip(builders, prepared, strict=True):
        builder.new_commit().commit(messages)

    assert len(live_files(table)) == 3


def test_an_overwrite_starts_a_new_index() -> None:
    table = create_key_table(**FEW)
    upsert(table, [(n, "a") for n in range(8)])

    builder = table.new_batch_write_builder().overwrite()
    builder.new_commit().commit(prepare(table, [(100, "b")], builder=builder))

    assert [(e.bucket, e.index_file.row_count) for e in index_entries(table)] == [(0, 1)]


@pytest.mark.parametrize("in_data_folder", ["false", "true"])
def test_what_is_not_committed_leaves_no_index_file(in_data_folder: str) -> None:
    table = create_key_table(bucket="-1", **{"index-file-in-data-file-dir": in_data_folder})
    builder = table.new_batch_write_builder()
    before = files_under(table.store.storage, table.table_path)

    messages = prepare(table, [(1, "a")], builder=builder)
    assert len(files_under(table.store.storage, table.table_path)) == len(before) + 2
    builder.new_commit().abort(messages)

    assert files_under(table.store.storage, table.table_path) == before


def test_a_damaged_index_is_named() -> None:
    table = create_key_table(bucket="-1")
    upsert(table, [(1, "a")])
    (entry,) = index_entries(table)
    path = table.store.layout.index(entry.index_file.file_name)
    table.store.storage.put(path, b"12345")

    with pytest.raises(CorruptFile, match="5 bytes"):
        upsert(table, [(2, "b")])

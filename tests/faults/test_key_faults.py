"""A storage call fails while a primary-key table is written: keys, indexes and changelog agree."""

from functools import cache

import pytest

from builders import copy_of, create_key_table, data_of, open_table, prepare, upsert
from emberlake.errors import CommitUnknown, StorageError
from emberlake.io import MemoryStorage
from emberlake.table import Table
from places import new_storage
from table_reads import all_records, check_whole, data_files, files_under, index_entries, live_files
from watched_storage import FaultyStorage, WatchedStorage

OLD = [(1, "a"), (2, "a"), (3, "a")]
NEW = [(3, "b"), (4, "b"), (5, "b")]
OLD_IDS, ALL_IDS = [1, 2, 3], [1, 2, 3, 3, 4, 5]


@cache
def _template() -> MemoryStorage:
    storage = MemoryStorage()
    options = {"bucket": "-1", "dynamic-bucket.target-row-num": "2", "changelog-producer": "input"}
    upsert(create_key_table(storage=storage, **options), OLD)
    return storage


def count_calls() -> int:
    storage = WatchedStorage(copy_of(_template()))
    table = open_table(storage)
    storage.calls.clear()
    upsert(table, NEW)
    return len(storage.calls)


def ids_of(table: Table) -> list[int]:
    return sorted(record[0] for record in all_records(table))


def check_indexes(table: Table) -> None:
    """Every bucket has an index, and they know as many hashes as there are keys."""
    buckets = {entry.bucket for entry in live_files(table)}
    assert {entry.bucket for entry in index_entries(table)} == buckets
    for entry in index_entries(table):
        path = table.store.layout.index(entry.index_file.file_name)
        assert table.store.storage.size(path) == entry.index_file.file_size
    known = sum(entry.index_file.row_count for entry in index_entries(table))
    assert known == len(set(ids_of(table)))


@pytest.mark.parametrize("after_effect", [False, True], ids=["before", "after"])
def test_a_fault_anywhere_leaves_the_old_rows_or_the_new_ones_and_the_next_try_works(after_effect):
    for fail_at in range(1, count_calls() + 1):
        storage = copy_of(_template())
        faulty = FaultyStorage(storage, 0, after_effect=after_effect)
        broken = open_table(faulty)
        faulty.calls.clear()
        faulty.fail_at = fail_at
        try:
            upsert(broken, NEW)
            has_failed = False
        except (StorageError, CommitUnknown):
            has_failed = True
        table = open_table(storage)

        check_whole(table)
        check_indexes(table)
        assert ids_of(table) == (OLD_IDS if has_failed else ALL_IDS), faulty.failed
        if has_failed:
            upsert(table, NEW)
            check_whole(table)
            check_indexes(table)
            assert ids_of(table) == ALL_IDS, faulty.failed


@pytest.mark.also_on_s3
@pytest.mark.parametrize("after_effect", [False, True], ids=["before", "after"])
def test_a_prepare_that_fails_leaves_no_file(after_effect):
    before = copy_of(_template())
    root = open_table(before).table_path
    for method in ("close_output", "put_if_absent"):
        storage = copy_of(_template())
        faulty = FaultyStorage(storage, 0, after_effect=after_effect)
        table = open_table(faulty)
        write = table.new_batch_write_builder().new_write()
        write.write_arrow(data_of(table, [(9, "c")]))
        faulty.watch = fail_at_method(faulty, method)

        with pytest.raises(StorageError, match="injected"):
            write.prepare_commit()

        assert data_files(open_table(storage)) == data_files(open_table(before))
        assert files_under(storage, f"{root}/index") == files_under(before, f"{root}/index")


def fail_at_method(faulty, method):
    def watch(call):
        is_due = call.method == method and call.is_done is faulty.after_effect
        if is_due and faulty.failed is None:
            faulty.failed = call
            raise StorageError(f"injected: {call}")

    return watch


@pytest.mark.also_on_s3
def test_an_error_says_when_the_rows_stand_although_they_are_not_compacted():
    storage = new_storage()
    upsert(create_key_table(storage=storage, **{"deletion-vectors.enabled": "true"}), OLD)
    faulty = FaultyStorage(storage, 0, after_effect=False)
    table = open_table(faulty)
    messages = prepare(table, NEW)
    compacted = table.store.layout.snapshot(4)

    def watch(call):
        if call.path == compacted and call.method == "put_if_absent":
            raise StorageError(f"injected: {call}")

    faulty.watch = watch
    commit = table.copy({"commit.max-retries": "0"}).new_batch_write_builder().new_commit()

    with pytest.raises(CommitUnknown, match="snapshot 3 stands, but is not compacted"):
        commit.commit(messages)

    healed = open_table(storage)
    assert healed.latest_snapshot().id == 3
    healed.compact(full=True)
    assert sorted(set(ids_of(healed))) == sorted(set(ALL_IDS))

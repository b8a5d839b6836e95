"""A commit of files that are not there is refused before anything is published."""

import pytest

from builders import append, create_key_table, create_table, open_table, prepare, rows_of, upsert
from emberlake.commit.change import compact_change
from emberlake.commit.committer import Committer
from emberlake.errors import AlreadyCommitted, CommitConflict, FilesMissing, StorageError
from emberlake.io import MemoryStorage
from emberlake.maintenance.compact import prepare_compaction
from table_reads import data_files, files_under, manifest_files, read_ids
from watched_storage import WatchedStorage


def path_of(table, message, file):
    return table.store.data_file_path(message.partition, message.bucket, file)


def lose_first_file(table, messages):
    path = path_of(table, messages[0], messages[0].new_files[0])
    table.store.storage.delete(path)
    return path


def batch(table):
    return table.new_batch_write_builder().new_commit()


def stream(table):
    return table.new_stream_write_builder("me").new_commit()


COMMITS = {
    "append": lambda table, messages: batch(table).commit(messages),
    "overwrite": lambda table, messages: batch(table).overwrite(messages),
    "stream": lambda table, messages: stream(table).commit(messages, 1),
    "restart": lambda table, messages: stream(table).filter_and_commit({1: messages}),
}


@pytest.mark.parametrize("commit", COMMITS.values(), ids=COMMITS)
def test_a_lost_data_file_is_named_and_nothing_is_published(commit):
    table = create_table(partition_keys=["day"])
    append(table, rows_of([1]))
    messages = prepare(table, [*rows_of([2]), *rows_of([3], "tue")])
    path = lose_first_file(table, messages)
    manifests = manifest_files(table)

    with pytest.raises(FilesMissing) as caught:
        commit(table, messages)

    assert f"1 of 2 are gone: {path}. Help: nothing was published; write" in str(caught.value)
    assert isinstance(caught.value, CommitConflict)
    assert (table.latest_snapshot().id, manifest_files(table)) == (1, manifests)


def test_of_many_lost_files_the_first_are_named():
    table = create_table(partition_keys=["day"])
    messages = prepare(table, [{"id": n, "day": f"d{n}"} for n in range(9)])
    for path in data_files(table):
        table.store.storage.delete(path)

    with pytest.raises(FilesMissing, match=r"9 of 9 are gone: (\S+\.parquet, ){3}\.\.\."):
        batch(table).commit(messages)


def test_a_lost_index_file_is_noticed():
    table = create_key_table(bucket="-1")
    (message,) = prepare(table, [(1, "a")])
    path = table.store.index_file_path(message.partition, 0, message.new_index_files[0])
    table.store.storage.delete(path)

    with pytest.raises(FilesMissing, match=path):
        batch(table).commit([message])


def test_a_lost_changelog_file_is_noticed_where_it_counts():
    table = create_key_table(**{"changelog-producer": "input"})
    (message,) = prepare(table, [(1, "a")])
    path = path_of(table, message, message.changelog_files[0])
    table.store.storage.delete(path)

    with pytest.raises(FilesMissing, match=path):
        batch(table).commit([message])
    assert batch(table).overwrite([message]).rows_added == 1  # an overwrite has no changelog


def test_a_compaction_with_a_lost_file_is_not_committed():
    table = create_key_table()
    for number in range(2):
        upsert(table, [(number, "a")])
    messages = prepare_compaction(table.store, table.latest_snapshot(), full=True, where=None)
    (lost,) = messages[0].compact_after
    table.store.storage.delete(path_of(table, messages[0], lost))

    with pytest.raises(FilesMissing):
        Committer(table.store, "me").commit(compact_change(messages))

    assert table.latest_snapshot().id == 2


def compacted_and_lost():
    """Messages of a write whose rows exist, and whose compaction is gone."""
    table = create_key_table(**{"merge-engine": "first-row"})
    upsert(table, [(1, "a")])
    upsert(table, [(1, "b"), (2, "b")])
    messages = prepare(table, [(2, "c"), (3, "c")])
    (rewritten,) = (f for f in messages[0].written_files if f not in messages[0].new_files)
    table.store.storage.delete(path_of(table, messages[0], rewritten))
    return table, messages


def test_files_of_the_second_snapshot_are_looked_for_before_the_first():
    table, messages = compacted_and_lost()
    before = table.latest_snapshot().id
    lazy = table.copy({"write-only": True})

    with pytest.raises(FilesMissing):
        batch(lazy).commit(messages)

    assert table.latest_snapshot().id == before


def test_what_can_be_compacted_again_is():
    table, messages = compacted_and_lost()

    batch(table).commit(messages)

    builder = table.new_read_builder()
    rows = builder.new_read().to_arrow(builder.new_scan().plan().splits()).to_pylist()
    assert {row["id"]: row["v"] for row in rows} == {1: "a", 2: "b", 3: "c"}


def test_that_messages_were_committed_says_more_than_that_their_files_are_gone():
    table = create_table()
    messages = prepare(table, rows_of([1]))
    batch(table).commit(messages)
    lose_first_file(table, messages)

    for commit in COMMITS.values():
        with pytest.raises(AlreadyCommitted):
            commit(table, messages)


def committed_and_compacted_away():
    table = create_table(options={"compaction.min.file-num": "2"})
    messages = prepare(table, rows_of([1]))
    batch(table).commit(messages)
    append(table, rows_of([2]))
    table.compact(full=True)
    return table, messages


def test_files_that_were_committed_and_expired_are_recognised_by_the_snapshot_that_took_them_out():
    table, messages = committed_and_compacted_away()
    table.expire_snapshots(retain_max=1, retain_min=1)
    assert not table.store.storage.exists(path_of(table, messages[0], messages[0].new_files[0]))

    with pytest.raises(AlreadyCommitted):
        batch(table).commit(messages)


def test_without_a_snapshot_to_look_at_the_error_does_not_advise_to_write_again():
    table, messages = committed_and_compacted_away()
    append(table, rows_of([3]))
    table.expire_snapshots(retain_max=1, retain_min=1)

    with pytest.raises(FilesMissing, match="look for the rows in the table first"):
        batch(table).commit(messages)

    assert read_ids(table) == [1, 2, 3]


def test_the_look_can_be_switched_off():
    storage = WatchedStorage(MemoryStorage())
    table = create_table(storage)
    messages = prepare(table, rows_of([1]))
    unchecked = table.copy({"commit.check-files": False})
    lost = lose_first_file(table, messages)
    storage.calls.clear()

    batch(unchecked).commit(messages)

    assert table.latest_snapshot().id == 1
    assert not any(call.path == lost for call in storage.calls)


def test_one_look_a_file():
    storage = WatchedStorage(MemoryStorage())
    table = create_table(storage, partition_keys=["day"])
    messages = prepare(table, [{"id": n, "day": f"d{n}"} for n in range(9)])
    storage.calls.clear()

    batch(table).commit(messages)

    looks = [call for call in storage.calls if "/bucket-" in call.path]
    assert [call.method for call in looks] == ["size"] * 9


def test_a_look_that_fails_publishes_nothing():
    def fail(call):
        if call.method == "size" and "/bucket-" in call.path:
            raise StorageError("no answer")

    storage = MemoryStorage()
    table = create_table(storage)
    messages = prepare(table, rows_of([1]))
    before = files_under(storage, "")

    with pytest.raises(StorageError, match="no answer"):
        batch(open_table(WatchedStorage(storage, fail))).commit(messages)

    assert files_under(storage, "") == before
    batch(table).commit(messages)
    assert read_ids(table) == [1]

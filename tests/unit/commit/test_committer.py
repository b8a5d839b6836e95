"""What a commit writes, what it says of it, and what it refuses."""

import pickle
from dataclasses import replace

import pytest

from builders import (
    FakeEnv,
    append,
    create_key_table,
    create_table,
    open_catalog,
    open_table,
    overwrite,
    prepare,
    rows_of,
    upsert,
)
from emberlake.commit.change import NOTHING_COMMITTED, append_change
from emberlake.commit.committer import Committer
from emberlake.errors import AlreadyCommitted, CommitConflict, ConflictReason
from emberlake.io import MemoryStorage
from emberlake.spec.manifest import HASH_INDEX, FileKind, IndexFile, IndexManifestEntry
from emberlake.spec.schema_change import SchemaChange
from emberlake.spec.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind
from emberlake.types import AtomicType
from emberlake.wire import CommitMessage
from table_reads import (
    check_whole,
    data_files,
    latest_snapshot,
    manifest_files,
    read,
    read_ids,
    referenced_manifests,
)
from watched_storage import WatchedStorage


def commit_again(table, messages):
    return table.new_batch_write_builder().new_commit().commit(messages)


# --- what is written ------------------------------------------------------------------------------


def test_the_first_commit_makes_snapshot_one():
    world = FakeEnv()
    table = create_table(env=world.env())
    builder = table.new_batch_write_builder()

    builder.new_commit().commit(prepare(table, rows_of([1, 2]), builder=builder))

    snapshot = latest_snapshot(table)
    assert (snapshot.id, snapshot.schema_id, snapshot.version) == (1, 0, 3)
    assert snapshot.commit_kind is CommitKind.APPEND
    assert snapshot.commit_user == builder.commit_user
    assert snapshot.commit_identifier == BATCH_COMMIT_IDENTIFIER
    assert (snapshot.total_record_count, snapshot.delta_record_count) == (2, 2)
    assert snapshot.time_millis == world.time_ms
    assert (snapshot.next_row_id, snapshot.index_manifest, snapshot.watermark) == (0, None, None)
    assert snapshot.uuid
    assert snapshot.writer_version.startswith("emberlake-")


def test_both_manifest_lists_exist_with_the_sizes_that_are_written():
    table = create_table()
    append(table, rows_of([1]))
    snapshot, storage = latest_snapshot(table), table.store.storage

    for name, size in [
        (snapshot.base_manifest_list, snapshot.base_manifest_list_size),
        (snapshot.delta_manifest_list, snapshot.delta_manifest_list_size),
    ]:
        assert storage.size(table.store.layout.manifest(name)) == size
    assert table.store.manifests.read_list(snapshot.base_manifest_list) == ()


def test_a_hint_points_at_the_last_snapshot():
    table = create_table()
    layout, storage = table.store.layout, table.store.storage
    for number in range(3):
        append(table, rows_of([number]))

        assert storage.read(layout.latest_hint) == b"%d" % (number + 1)
        # As with other engines, the hint at the first one comes with the first expiration.
        assert not storage.exists(layout.earliest_hint)


def test_totals_go_on_from_the_snapshot_before():
    table = create_table(partition_keys=["day"])
    append(table, [*rows_of([1, 2], "mon"), *rows_of([3], "tue")])
    append(table, rows_of([4], "mon"))
    overwrite(table, rows_of([5, 6], "mon"))

    counts = [
        (s.total_record_count, s.delta_record_count, s.commit_kind)
        for s in map(table.store.snapshots.load, (1, 2, 3))
    ]
    assert counts == [
        (3, 3, CommitKind.APPEND),
        (4, 1, CommitKind.APPEND),
        (3, -1, CommitKind.OVERWRITE),
    ]


def test_a_snapshot_has_the_newest_schema_and_files_the_one_they_were_written_with():
    table = create_table()
    storage = table.store.storage
    open_catalog(storage).alter_table("db.t", [SchemaChange.add_column("x", AtomicType("INT"))])

    append(table, rows_of([1]))  # by a writer that has not heard of it

    assert latest_snapshot(table).schema_id == 1
    assert read(open_table(storage)) == [{"id": 1, "day": "mon", "x": None}]


def test_time_never_runs_backwards():
    world = FakeEnv()
    table = create_table(env=world.env())
    append(table, rows_of([1]))
    world.time_ms -= 60_000

    append(table, rows_of([2]))

    first, second = map(table.store.snapshots.load, (1, 2))
    assert second.time_millis == first.time_millis


def test_what_others_keep_in_snapshots_is_carried_on():
    table = create_table()
    append(table, rows_of([1]))
    store = table.store
    first = latest_snapshot(table)
    foreign = replace(first, watermark=77, statistics="stat-1", next_row_id=5)
    store.storage.put(store.layout.snapshot(1), foreign.encode())

    append(table, rows_of([2]))

    second = latest_snapshot(table)
    assert (second.watermark, second.statistics, second.next_row_id) == (77, "stat-1", 5)


def an_index_entry(table, partition):
    index_file = IndexFile(
        index_type=HASH_INDEX, file_name=f"index-{partition.hex()}", file_size=4, row_count=1
    )
    table.store.storage.put(table.store.index_file_path(partition, 0, index_file), bytes(4))
    return IndexManifestEntry(
        kind=FileKind.ADD, partition=partition, bucket=0, index_file=index_file
    )


def test_index_files_stay_until_their_partition_is_replaced():
    table = create_table(partition_keys=["day"])
    messages = prepare(table, [*rows_of([1], "mon"), *rows_of([2], "tue")])
    entries = tuple(an_index_entry(table, m.partition) for m in messages)
    change = replace(append_change(messages), index_added=entries)
    Committer(table.store, "me").commit(change)

    append(table, rows_of([3], "mon"))
    kept = latest_snapshot(table).index_manifest
    overwrite(table, rows_of([4], "mon"))
    left = latest_snapshot(table).index_manifest
    table.new_batch_write_builder().new_commit().truncate_table()

    assert table.store.manifests.read_index(kept) == entries
    assert [
        table.store.partition_spec(e.partition) for e in table.store.manifests.read_index(left)
    ] == [{"day": "tue"}]
    assert latest_snapshot(table).index_manifest is None


def test_changelog_files_get_a_list_of_their_own():
    table = create_table()
    messages = prepare(table, rows_of([1, 2]))
    changelog = append_change(prepare(table, rows_of([7, 8, 9]))).added
    Committer(table.store, "me").commit(replace(append_change(messages), changelog=changelog))

    snapshot = latest_snapshot(table)
    listed = table.store.manifests.read_list(snapshot.changelog_manifest_list)
    assert snapshot.changelog_record_count == 3
    assert len(table.store.manifests.read_manifests(listed)) == 1
    assert read_ids(table) == [1, 2]
    assert manifest_files(table) >= referenced_manifests(table)


def test_an_overwrite_leaves_no_changelog_files_behind_that_nothing_refers_to():
    table = create_key_table(**{"changelog-producer": "input"})
    upsert(table, [(1, "a")])
    before = data_files(table)
    messages = prepare(table, [(2, "b")])
    written = data_files(table) - before
    changelog = {path for path in written if "/changelog-" in path}

    table.new_batch_write_builder().new_commit().overwrite(messages)

    assert len(written) == 2
    assert len(changelog) == 1
    assert data_files(table) == before | (written - changelog)
    check_whole(table)


def test_changelog_files_stay_until_the_overwrite_is_committed():
    table = create_key_table(**{"changelog-producer": "input", "commit.max-retries": "0"})
    messages = prepare(table, [(2, "b")])
    written = data_files(table)

    def compete(call):
        if call.method == "put_if_absent" and not call.is_done:
            upsert(table, [(1, "a")])

    storage = WatchedStorage(table.store.storage, compete)
    with pytest.raises(CommitConflict):
        open_table(storage).new_batch_write_builder().new_commit().overwrite(messages)

    assert written < data_files(table)


def test_a_commit_reads_little_whatever_the_history():
    table = create_table()
    for number in range(25):
        append(table, rows_of([number]))
    storage = WatchedStorage(table.store.storage)
    short_table = create_table(MemoryStorage())
    append(short_table, rows_of([0]))
    short_storage = WatchedStorage(short_table.store.storage)

    append(open_table(storage), rows_of([99]))
    append(open_table(short_storage), rows_of([99]))
    open_table(storage).new_batch_write_builder().new_commit().truncate_table()

    reads = [c for c in storage.calls if c.method == "read" and "/snapshot-" in c.path]
    short_reads = [c for c in short_storage.calls if c.method == "read" and "/snapshot-" in c.path]
    assert len(reads) <= len(short_reads) + 2


# --- what is said of it ---------------------------------------------------------------------------


def test_a_result_counts_rows_files_and_bytes():
    table = create_table(partition_keys=["day"])
    first = append(table, [*rows_of([1, 2], "mon"), *rows_of([3], "tue")])
    sizes = {path: table.store.storage.size(path) for path in data_files(table)}
    second = overwrite(table, rows_of([4], "mon"))

    assert (first.snapshot_id, first.retries) == (1, 0)
    assert (first.rows_added, first.files_added, first.bytes_added) == (3, 2, sum(sizes.values()))
    assert (first.rows_deleted, first.files_deleted, first.bytes_deleted) == (0, 0, 0)
    assert (second.snapshot_id, second.rows_added, second.files_added) == (2, 1, 1)
    assert (second.rows_deleted, second.files_deleted) == (2, 1)
    assert second.bytes_deleted == next(s for p, s in sizes.items() if "day=mon" in p)


def test_an_empty_append_makes_no_snapshot():
    table = create_table()
    builder = table.new_batch_write_builder()

    assert builder.new_commit().commit([]) == NOTHING_COMMITTED
    assert append(table, []) == NOTHING_COMMITTED
    assert table.latest_snapshot() is None
    assert data_files(table) == set()


def test_properties_are_kept_in_the_snapshot():
    table = create_table()
    commit = table.new_batch_write_builder().new_commit()

    commit.commit(prepare(table, rows_of([1])), snapshot_properties={"job": "nightly"})

    assert latest_snapshot(table).properties == {"job": "nightly"}
    append(table, rows_of([2]))
    assert latest_snapshot(table).properties == {}


def test_callbacks_learn_of_each_commit():
    table = create_table(partition_keys=["day"])
    append(table, rows_of([1], "mon"))
    builder = table.new_batch_write_builder().overwrite()
    commit = builder.new_commit()
    seen = []
    commit.add_commit_callback(seen.append)

    commit.commit([])
    commit.commit(prepare(table, rows_of([2], "mon"), builder=builder))

    (context,) = seen
    assert context.snapshot == latest_snapshot(table)
    assert context.identifier == BATCH_COMMIT_IDENTIFIER
    assert [e.kind for e in context.commit_entries] == [FileKind.DELETE, FileKind.ADD]


def test_a_callback_may_be_an_object_with_a_method():
    class Callback:
        def call(self, context):
            self.context = context

    table, callback = create_table(), Callback()
    commit = table.new_batch_write_builder().new_commit()
    commit.add_commit_callback(callback)

    commit.commit(prepare(table, rows_of([1])))

    assert callback.context.snapshot == latest_snapshot(table)


@pytest.mark.parametrize(
    "error", [ValueError("no"), CommitConflict(ConflictReason.SCHEMA_CHANGED, "a", "b")]
)
def test_the_failure_of_a_callback_is_reported_and_the_commit_stands(error):
    table = create_table()
    commit = table.new_batch_write_builder().new_commit()
    messages = prepare(table, rows_of([1]))

    def fail(context):
        raise error

    commit.add_commit_callback(fail)

    with pytest.raises(type(error)):
        commit.commit(messages)

    check_whole(open_table(table.store.storage))
    assert read_ids(table) == [1]
    with pytest.raises(AlreadyCommitted):
        commit.commit(messages)


# --- what is refused ------------------------------------------------------------------------------


def over_the_wire(messages):
    return [CommitMessage.from_bytes(m.to_bytes()) for m in messages]


@pytest.mark.parametrize(
    "travel",
    [lambda m: m, over_the_wire, lambda m: pickle.loads(pickle.dumps(m))],
    ids=["as they are", "bytes", "pickle"],
)
@pytest.mark.parametrize("others", [0, 1, 3])
def test_messages_are_committed_once_whatever_happened_since(travel, others):
    table = create_table()
    append(table, rows_of([0]))
    messages = prepare(table, rows_of([1]))
    commit = table.new_batch_write_builder().new_commit()
    commit.commit(messages)
    for number in range(others):
        append(table, rows_of([10 + number]))
    before = manifest_files(table)

    for committer in (
        commit,
        open_table(table.store.storage).new_batch_write_builder().new_commit(),
    ):
        with pytest.raises(AlreadyCommitted):
            committer.commit(travel(messages))

    assert read_ids(table) == [0, 1, *range(10, 10 + others)]
    assert manifest_files(table) == before


def test_messages_whose_rows_were_overwritten_since_do_not_come_back():
    table = create_table()
    messages = prepare(table, rows_of([1]))
    commit_again(table, messages)
    overwrite(table, rows_of([2]))

    with pytest.raises(AlreadyCommitted):
        commit_again(table, messages)
    with pytest.raises(AlreadyCommitted):
        table.new_batch_write_builder().new_commit().overwrite(messages)
    assert read_ids(table) == [2]


def test_some_of_the_messages_are_enough_to_refuse_all():
    table = create_table()
    first, second = prepare(table, rows_of([1])), prepare(table, rows_of([2]))
    commit_again(table, first)

    with pytest.raises(AlreadyCommitted):
        commit_again(table, [*second, *first])
    assert read_ids(table) == [1]


def expire(table, *snapshot_ids):
    for snapshot_id in snapshot_ids:
        table.store.snapshots.delete(snapshot_id)
    table.store.snapshots.write_earliest_hint(max(snapshot_ids) + 1)


def test_messages_are_recognised_when_their_snapshot_has_expired():
    table = create_table()
    messages = prepare(table, rows_of([1]))
    commit_again(table, messages)
    for number in range(2, 5):
        append(table, rows_of([number]))
    expire(table, 1, 2)

    with pytest.raises(AlreadyCommitted):
        commit_again(table, messages)
    assert read_ids(table) == [1, 2, 3, 4]


def test_messages_are_recognised_when_their_snapshot_expired_and_their_rows_are_gone():
    table = create_table()
    messages = prepare(table, rows_of([1]))
    commit_again(table, messages)
    append(table, rows_of([2]))
    overwrite(table, rows_of([3]))
    expire(table, 1, 2)

    with pytest.raises(AlreadyCommitted):
        commit_again(table, messages)
    assert read_ids(table) == [3]


def test_messages_are_recognised_after_a_rollback_that_reused_ids():
    table = create_table()
    for number in range(4):
        append(table, rows_of([number]))
    messages = prepare(table, rows_of([10]))  # by a writer that saw snapshot 4
    table.rollback_to(1)
    commit_again(table, messages)  # becomes snapshot 2
    for number in range(20, 24):
        append(table, rows_of([number]))

    with pytest.raises(AlreadyCommitted):
        commit_again(table, messages)
    assert read_ids(table) == [0, 10, 20, 21, 22, 23]


def test_messages_that_were_rolled_back_can_be_committed_again():
    table = create_table()
    append(table, rows_of([1]))
    messages = prepare(table, rows_of([2]))
    commit_again(table, messages)
    table.rollback_to(1)

    commit_again(table, messages)

    assert read_ids(table) == [1, 2]


def test_a_message_that_is_given_twice_is_refused():
    table = create_table()
    messages = prepare(table, rows_of([1]))

    with pytest.raises(CommitConflict) as caught:
        commit_again(table, messages * 2)

    assert caught.value.reason is ConflictReason.FILE_ADDED_TWICE
    assert table.latest_snapshot() is None
    assert manifest_files(table) == set()


def test_files_to_delete_must_still_be_there():
    table = create_table()
    first = prepare(table, rows_of([1]))
    commit_again(table, first)
    rewrite = [
        replace(new, deleted_files=old.new_files)
        for new, old in zip(prepare(table, rows_of([5])), first, strict=True)
    ]
    again = [
        replace(new, deleted_files=old.new_files)
        for new, old in zip(prepare(table, rows_of([6])), first, strict=True)
    ]

    result = commit_again(table, rewrite)
    with pytest.raises(CommitConflict) as caught:
        commit_again(table, again)

    assert (result.rows_added, result.rows_deleted) == (1, 1)
    assert latest_snapshot(table).commit_kind is CommitKind.OVERWRITE
    assert caught.value.reason is ConflictReason.FILE_DELETED_ELSEWHERE
    assert read_ids(table) == [5]
    assert manifest_files(table) == referenced_manifests(table)

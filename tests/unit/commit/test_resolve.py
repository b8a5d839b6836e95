"""A commit finds every conflict before it writes anything."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from builders import (
    append,
    compaction_of,
    create_key_table,
    create_table,
    open_catalog,
    open_table,
    overwrite,
    prepare,
    rows_of,
    upsert,
)
from emberlake.commit.change import compact_change
from emberlake.commit.committer import Committer
from emberlake.errors import CommitConflict, ConflictReason, TableNotFound
from emberlake.io import MemoryStorage
from emberlake.session.write_session import WriteSession
from emberlake.spec.manifest import DELETION_VECTORS_INDEX, IndexFile
from emberlake.spec.snapshot import CommitKind
from emberlake.table import Table
from emberlake.wire import BaseSnapshot, CommitMessage
from table_reads import files_under, live_files
from tracked_tables import columns_for, evolving_table, put
from watched_storage import WatchedStorage

WRITES = {"open_output", "close_output", "create", "put", "put_hint", "put_if_absent"}
DYNAMIC = {"bucket": "-1"}
VECTORS = {"deletion-vectors.enabled": "true"}

# How to commit what; each case prepares it on a storage.
Case = tuple[Callable[[Table, list[CommitMessage]], None], list[CommitMessage]]


def commit(table: Table, messages: list[CommitMessage]) -> None:
    table.new_batch_write_builder().new_commit().commit(messages)


def compact(table: Table, messages: list[CommitMessage]) -> None:
    Committer(table.store, "compactor").commit(compact_change(messages))


def the_same_message_twice(storage: MemoryStorage) -> Case:
    return commit, prepare(create_table(storage), rows_of([1])) * 2


def committed_messages(storage: MemoryStorage) -> Case:
    table = create_table(storage)
    messages = prepare(table, rows_of([1]))
    commit(table, messages)
    return commit, messages


def lost_files(storage: MemoryStorage) -> Case:
    table = create_table(storage)
    (message,) = messages = prepare(table, rows_of([1]))
    storage.delete(table.store.data_file_path(message.partition, 0, message.new_files[0]))
    return commit, messages


def files_that_another_compaction_took(storage: MemoryStorage) -> Case:
    table = create_key_table(storage=storage)
    upsert(table, [(1, "a")])
    message = compaction_of(table)
    compact(table, [message])
    return compact, [message]


def runs_that_overlap(storage: MemoryStorage) -> Case:
    table = create_key_table(storage=storage)
    upsert(table, [(1, "a"), (5, "a")])
    compact(table, [compaction_of(table)])
    upsert(table, [(3, "b")])
    file = live_files(table)[1].file
    moved = (replace(file, level=5),)
    return compact, [replace(compaction_of(table), compact_before=(file,), compact_after=moved)]


def vectors_that_nobody_told_of(storage: MemoryStorage) -> Case:
    table = create_key_table(storage=storage)
    upsert(table, [(1, "a")])
    theirs, ours = (
        IndexFile(index_type=DELETION_VECTORS_INDEX, file_name=name, file_size=1, row_count=1)
        for name in ("theirs", "ours")
    )
    for file in (theirs, ours):
        storage.put(table.store.layout.index(file.file_name), b"x")
    nothing = replace(compaction_of(table), compact_before=(), compact_after=())
    compact(table, [replace(nothing, compact_new_index_files=(theirs,))])
    return compact, [replace(nothing, compact_new_index_files=(ours,))]


def keys_that_two_writers_gave_buckets(storage: MemoryStorage) -> Case:
    table = create_key_table(storage=storage, **DYNAMIC)
    one, other = prepare(table, [(1, "a")]), prepare(table, [(9, "b")])
    commit(table, one)
    return commit, other


def rows_of_the_same_key(storage: MemoryStorage) -> Case:
    table = create_key_table(storage=storage)
    one, other = prepare(table, [(1, "a")]), prepare(table, [(1, "b")])
    commit(table, one)
    return commit, other


def files_for_another_number_of_buckets(storage: MemoryStorage) -> Case:
    table = create_table(storage, options={"bucket": "2", "bucket-key": "id"})
    append(table, rows_of([1, 2, 3]))
    messages = prepare(table, rows_of([7]))
    changed = table.table_schema.with_options({"bucket": "4"})
    table.store.schemas.create(replace(changed, id=1))
    overwrite(open_table(storage), rows_of([8]))
    return commit, messages


def a_bucket_that_was_compacted_meanwhile(storage: MemoryStorage) -> Case:
    table = create_key_table(storage=storage, **VECTORS)
    upsert(table, [(1, "a")])
    latest = table.store.snapshots.latest()
    message = replace(
        compaction_of(table, level=4), base=BaseSnapshot(latest.id, latest.delta_manifest_list)
    )
    upsert(table, [(2, "b")])
    return compact, [message]


def rows_that_were_compacted_meanwhile(storage: MemoryStorage) -> Case:
    table = evolving_table(storage)
    put(table, (1, "a", 1))
    put(table, (2, "b", 2))
    messages = columns_for(table, {"_ROW_ID": [0], "v": ["x"]})
    table.compact(full=True)
    return commit, messages


def columns_that_another_writer_wrote(storage: MemoryStorage) -> Case:
    table = evolving_table(storage)
    put(table, (1, "a", 1))
    one, other = (columns_for(table, {"_ROW_ID": [0], "v": [v]}) for v in "xy")
    commit(table, one)
    return commit, other


def rows_that_were_added_since_the_table_was_read(storage: MemoryStorage) -> Case:
    table = create_table(storage)
    append(table, rows_of([1]))
    messages = prepare(table, rows_of([2]))
    append(table, rows_of([3]))

    def act(seen: Table, given: list[CommitMessage]) -> None:
        others = frozenset({CommitKind.APPEND})
        WriteSession(seen.store, "reader", stale_after=others).commit(given)

    return act, messages


CASES = {
    ConflictReason.ROWS_CHANGED_ELSEWHERE: rows_that_were_added_since_the_table_was_read,
    ConflictReason.ROW_RANGE_CHANGED: rows_that_were_compacted_meanwhile,
    ConflictReason.COLUMN_CHANGED: columns_that_another_writer_wrote,
    ConflictReason.FILE_ADDED_TWICE: the_same_message_twice,
    ConflictReason.ALREADY_COMMITTED: committed_messages,
    ConflictReason.FILES_MISSING: lost_files,
    ConflictReason.FILE_DELETED_ELSEWHERE: files_that_another_compaction_took,
    ConflictReason.KEY_RANGES_OVERLAP: runs_that_overlap,
    ConflictReason.DELETION_VECTOR_CHANGED: vectors_that_nobody_told_of,
    ConflictReason.KEY_INDEX_CHANGED: keys_that_two_writers_gave_buckets,
    ConflictReason.SEQUENCE_NUMBERS_TAKEN: rows_of_the_same_key,
    ConflictReason.BUCKET_COUNT_CHANGED: files_for_another_number_of_buckets,
    ConflictReason.BUCKET_COMPACTED_ELSEWHERE: a_bucket_that_was_compacted_meanwhile,
}
# No commit raises the first; only who has written something can lose a race for a snapshot, and
# only who has published one can lose that.
OTHERS = {
    ConflictReason.SCHEMA_CHANGED,
    ConflictReason.RETRIES_EXHAUSTED,
    ConflictReason.SNAPSHOT_OVERWRITTEN,
}


def test_every_reason_has_a_case() -> None:
    assert {*CASES, *OTHERS} == set(ConflictReason)


@pytest.mark.parametrize("reason", CASES, ids=lambda reason: reason.name)
def test_a_commit_that_conflicts_writes_no_file(reason: ConflictReason) -> None:
    storage = MemoryStorage()
    act, messages = CASES[reason](storage)
    before = files_under(storage, "")
    watched = WatchedStorage(storage)

    with pytest.raises(CommitConflict) as caught:
        act(open_table(watched), messages)

    assert caught.value.reason is reason
    assert [str(call) for call in watched.calls if call.method in WRITES] == []
    assert files_under(storage, "") == before


def test_a_commit_to_a_dropped_table_writes_no_file() -> None:
    storage = MemoryStorage()
    table = create_table(storage, options={"commit.check-files": "false"})
    append(table, rows_of([1]))
    messages = prepare(table, rows_of([2]))
    watched = WatchedStorage(storage)
    late = open_table(watched)
    open_catalog(storage).drop_table("db.t")

    with pytest.raises(TableNotFound):
        commit(late, messages)

    assert [str(call) for call in watched.calls if call.method in WRITES] == []

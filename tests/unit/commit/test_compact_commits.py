"""What was compacted becomes a snapshot of its own, right after what was written."""

from dataclasses import replace

import pytest

from builders import compaction_of, create_key_table, data_of, prepare, upsert
from emberlake.commit.change import compact_change
from emberlake.commit.committer import Committer
from emberlake.errors import AlreadyCommitted, CommitConflict, ConflictReason
from emberlake.spec.manifest import DELETION_VECTORS_INDEX, DeletionVectorRange, IndexFile
from emberlake.spec.snapshot import CommitKind
from emberlake.wire import CommitMessage
from table_reads import check_whole, data_files, index_entries, live_files


def written_and_compacted(table, rows, builder=None) -> CommitMessage:
    """A message whose files go up to the highest level as soon as they are written."""
    (message,) = prepare(table, rows, builder=builder)
    upgraded = tuple(replace(file, level=5) for file in message.new_files)
    return replace(message, compact_before=message.new_files, compact_after=upgraded)


def commit_compaction(table, message):
    return Committer(table.store, "compactor").commit(compact_change([message]))


def snapshots_of(table):
    return [table.store.snapshots.load(i) for i in table.store.snapshots.list_ids()]


def test_both_snapshots_have_the_user_and_the_identifier_of_the_commit():
    table = create_key_table()
    builder = table.new_batch_write_builder()

    result = builder.new_commit().commit([written_and_compacted(table, [(1, "a")], builder)])

    first, second = snapshots_of(table)
    assert (first.commit_kind, second.commit_kind) == (CommitKind.APPEND, CommitKind.COMPACT)
    assert first.commit_user == second.commit_user == builder.commit_user
    assert first.commit_identifier == second.commit_identifier
    assert (first.total_record_count, second.total_record_count) == (1, 1)
    assert [entry.file.level for entry in live_files(table)] == [5]
    assert result.snapshot_id == 2
    check_whole(table)


def test_a_stream_commits_both_under_one_identifier_and_only_once():
    table = create_key_table()
    builder = table.new_stream_write_builder()
    with builder.new_write() as write, builder.new_commit() as commit:
        write.write_arrow(data_of(table, [(1, "a")]))
        (message,) = write.prepare_commit(7)
        upgraded = tuple(replace(file, level=5) for file in message.new_files)
        message = replace(message, compact_before=message.new_files, compact_after=upgraded)
        commit.commit([message], 7)

    assert [snapshot.commit_identifier for snapshot in snapshots_of(table)] == [7, 7]
    again = table.new_stream_write_builder()
    again.commit_user = builder.commit_user
    with pytest.raises(AlreadyCommitted):
        again.new_commit().commit([message], 7)
    assert again.new_commit().filter_and_commit({7: [message]}) == 0
    assert len(snapshots_of(table)) == 2


def test_an_overwrite_and_its_compaction_are_seen_at_once():
    table = create_key_table()
    upsert(table, [(1, "a")])
    builder = table.new_batch_write_builder().overwrite()

    builder.new_commit().commit([written_and_compacted(table, [(2, "b")], builder)])

    kinds = [snapshot.commit_kind for snapshot in snapshots_of(table)]
    assert kinds == [CommitKind.APPEND, CommitKind.OVERWRITE]
    assert [(e.file.level, e.file.row_count) for e in live_files(table)] == [(5, 1)]


def test_a_compaction_of_files_that_are_gone_is_a_conflict():
    table = create_key_table()
    upsert(table, [(1, "a")])
    message = compaction_of(table)
    commit_compaction(table, message)

    with pytest.raises(CommitConflict) as caught:
        commit_compaction(table, message)

    assert caught.value.reason is ConflictReason.FILE_DELETED_ELSEWHERE


def test_two_compactions_onto_one_level_must_not_overlap():
    table = create_key_table()
    upsert(table, [(1, "a"), (5, "a")])
    commit_compaction(table, compaction_of(table))
    upsert(table, [(3, "b")])
    level_0 = replace(
        compaction_of(table),
        compact_before=(live_files(table)[1].file,),
        compact_after=(replace(live_files(table)[1].file, level=5),),
    )

    with pytest.raises(CommitConflict) as caught:
        commit_compaction(table, level_0)

    assert caught.value.reason is ConflictReason.KEY_RANGES_OVERLAP
    assert [entry.file.level for entry in live_files(table)] == [5, 0]


def test_a_compaction_beside_files_that_others_added_meanwhile_is_fine():
    table = create_key_table()
    upsert(table, [(1, "a")])
    message = compaction_of(table)
    upsert(table, [(1, "b")])

    commit_compaction(table, message)

    assert [entry.file.level for entry in live_files(table)] == [5, 0]


def test_a_conflict_of_the_compaction_says_that_the_rows_are_in_the_table():
    table = create_key_table()
    upsert(table, [(1, "a"), (9, "a")])
    commit_compaction(table, compaction_of(table))
    builder = table.new_batch_write_builder()
    message = written_and_compacted(table, [(5, "b")], builder)

    with pytest.raises(CommitConflict, match="snapshot 3 stands, but what follows it does not"):
        builder.new_commit().commit([message])

    assert sorted(entry.file.level for entry in live_files(table)) == [0, 5]


def test_abort_keeps_files_that_only_changed_their_level():
    table = create_key_table()
    upsert(table, [(1, "a")])
    before = data_files(table)

    table.new_batch_write_builder().new_commit().abort([compaction_of(table)])

    assert data_files(table) == before


def vectors_in(table, name, *ranges):
    file = IndexFile(
        index_type=DELETION_VECTORS_INDEX,
        file_name=name,
        file_size=1,
        row_count=1,
        deletion_vectors=ranges or None,
    )
    table.store.storage.put(table.store.layout.index(name), b"x")
    return file


def test_deletion_vectors_of_a_bucket_are_replaced_by_new_ones():
    table = create_key_table()
    upsert(table, [(1, "a")])
    one, two = vectors_in(table, "one"), vectors_in(table, "two")

    message = replace(compaction_of(table), compact_new_index_files=(one,))
    commit_compaction(table, message)
    commit_compaction(
        table,
        replace(
            message,
            compact_before=(),
            compact_after=(),
            compact_new_index_files=(two,),
            compact_deleted_index_files=(one,),
        ),
    )

    assert [entry.index_file.file_name for entry in index_entries(table)] == ["two"]


def test_deletion_vectors_that_the_compaction_has_not_seen_are_a_conflict():
    table = create_key_table()
    upsert(table, [(1, "a")])
    vectors = [vectors_in(table, name) for name in ("theirs", "ours")]
    message = replace(compaction_of(table), compact_new_index_files=(vectors[0],))
    commit_compaction(table, message)
    unaware = replace(message, compact_before=(), compact_after=())

    with pytest.raises(CommitConflict) as caught:
        commit_compaction(table, replace(unaware, compact_new_index_files=(vectors[1],)))

    assert caught.value.reason is ConflictReason.DELETION_VECTOR_CHANGED


def test_a_deletion_vector_of_a_file_that_is_gone_is_a_conflict():
    table = create_key_table()
    upsert(table, [(1, "a")])
    vector = vectors_in(table, "one", DeletionVectorRange("gone", 1, 2, 1))
    message = replace(compaction_of(table), compact_before=(), compact_after=())

    with pytest.raises(CommitConflict) as caught:
        commit_compaction(table, replace(message, compact_new_index_files=(vector,)))

    assert caught.value.reason is ConflictReason.FILE_DELETED_ELSEWHERE

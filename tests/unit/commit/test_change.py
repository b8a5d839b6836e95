"""From messages to changes."""

import json

import pytest

from emberlake.commit.change import (
    CommitResult,
    append_change,
    combined,
    overwrite_change,
    overwrite_changes,
    split_changes,
    written_change,
)
from emberlake.spec.manifest import (
    DELETION_VECTORS_INDEX,
    HASH_INDEX,
    DataFile,
    FileKind,
    IndexFile,
)
from emberlake.spec.snapshot import CommitKind
from emberlake.wire import BaseSnapshot, CommitMessage, WriteMode


def a_file(name):
    return DataFile(
        file_name=name,
        file_size=1,
        row_count=1,
        min_sequence_number=0,
        max_sequence_number=0,
        schema_id=0,
    )


def an_index(kind):
    return IndexFile(index_type=kind, file_name="i", file_size=1, row_count=1)


def a_message(**parts):
    return CommitMessage(
        table="/t", mode=WriteMode.APPEND, partition=b"p", bucket=3, total_buckets=4, **parts
    )


def names(entries):
    return [entry.file.file_name for entry in entries]


def test_new_files_are_appended_under_their_bucket():
    change = append_change([a_message(new_files=(a_file("a"), a_file("b")))])

    assert change.kind is CommitKind.APPEND
    assert [e.file.file_name for e in change.added] == ["a", "b"]
    assert {(e.kind, e.partition, e.bucket, e.total_buckets) for e in change.added} == {
        (FileKind.ADD, b"p", 3, 4)
    }


def test_no_message_and_empty_messages_are_an_empty_change():
    assert append_change([]).is_empty
    assert append_change([a_message(base=BaseSnapshot(1, "l"))]).is_empty
    assert not append_change([a_message(changelog_files=(a_file("c"),))]).is_empty
    assert not append_change([a_message(new_index_files=(an_index(HASH_INDEX),))]).is_empty
    assert not overwrite_change([], frozenset()).is_empty


@pytest.mark.parametrize(
    ("parts", "kind"),
    [
        ({"new_files": (a_file("a"),)}, CommitKind.APPEND),
        ({"new_index_files": (an_index(HASH_INDEX),)}, CommitKind.APPEND),
        ({"deleted_files": (a_file("a"),)}, CommitKind.OVERWRITE),
        ({"new_index_files": (an_index(DELETION_VECTORS_INDEX),)}, CommitKind.OVERWRITE),
        ({"deleted_index_files": (an_index(DELETION_VECTORS_INDEX),)}, CommitKind.OVERWRITE),
    ],
)
def test_what_takes_rows_away_is_an_overwrite(parts, kind):
    assert append_change([a_message(**parts)]).kind is kind


def test_an_overwrite_keeps_new_files_and_indexes_but_no_changelog():
    message = a_message(
        new_files=(a_file("a"),),
        changelog_files=(a_file("c"),),
        new_index_files=(an_index(HASH_INDEX),),
    )

    change = overwrite_change([message], frozenset({b"p"}))

    assert change.kind is CommitKind.OVERWRITE
    assert [e.file.file_name for e in change.added] == ["a"]
    assert [e.index_file.index_type for e in change.index_added] == [HASH_INDEX]
    assert change.changelog == ()
    assert [e.file.file_name for e in change.unused] == ["c"]


def test_what_was_written_and_what_was_compacted_are_two_snapshots():
    message = a_message(
        new_files=(a_file("a"),),
        new_index_files=(an_index(HASH_INDEX),),
        compact_before=(a_file("a"),),
        compact_after=(a_file("b"),),
        compact_changelog_files=(a_file("c"),),
        compact_new_index_files=(an_index(DELETION_VECTORS_INDEX),),
        compact_deleted_index_files=(an_index(DELETION_VECTORS_INDEX),),
    )

    written, compacted = split_changes([message])

    assert (written.kind, compacted.kind) == (CommitKind.APPEND, CommitKind.COMPACT)
    assert names(written.added) == ["a"]
    assert names(compacted.deleted) == ["a"]
    assert names(compacted.added) == ["b"]
    assert names(compacted.changelog) == ["c"]
    assert [e.index_file.index_type for e in written.index_added] == [HASH_INDEX]
    vectors = [*compacted.index_added, *compacted.index_deleted]
    assert [e.index_file.index_type for e in vectors] == [DELETION_VECTORS_INDEX] * 2


def test_what_is_compacted_after_an_overwrite_follows_it():
    message = a_message(
        new_files=(a_file("a"),), compact_before=(a_file("a"),), compact_after=(a_file("b"),)
    )

    changes = overwrite_changes([message], frozenset({b"p"}))

    assert [change.kind for change in changes] == [CommitKind.OVERWRITE, CommitKind.COMPACT]
    assert overwrite_changes([], frozenset({b"p"}))[0].replaces == {b"p"}


def test_nothing_written_or_compacted_is_no_snapshot():
    compacted = a_message(compact_before=(a_file("a"),), compact_after=(a_file("b"),))

    assert split_changes([a_message()]) == ()
    assert [change.kind for change in split_changes([compacted])] == [CommitKind.COMPACT]


def test_results_of_several_snapshots_add_up():
    results = [
        CommitResult(snapshot_id=3, rows_added=5, files_added=1, retries=1),
        CommitResult(snapshot_id=4, rows_added=5, rows_deleted=5, files_added=1, files_deleted=1),
    ]

    assert combined(results) == CommitResult(
        snapshot_id=4, rows_added=10, rows_deleted=5, files_added=2, files_deleted=1, retries=1
    )
    assert combined([]).snapshot_id is None


def test_every_written_file_can_be_searched_for():
    message = a_message(
        new_files=(a_file("a"),),
        deleted_files=(a_file("old"),),
        changelog_files=(a_file("b"),),
        compact_after=(a_file("c"),),
    )

    assert written_change([message]).new_names == {"a", "b", "c"}


def test_a_file_that_moves_to_another_level_is_not_new():
    message = a_message(deleted_files=(a_file("a"),), new_files=(a_file("a"), a_file("b")))

    assert append_change([message]).new_names == {"b"}


def test_the_search_starts_at_what_each_writer_saw():
    bases = [None, BaseSnapshot(3, "l"), BaseSnapshot(3, "l")]

    change = append_change([a_message(base=base) for base in bases])

    assert change.bases == {None, BaseSnapshot(3, "l")}


def test_a_result_is_a_dict_for_those_who_want_one():
    result = CommitResult(snapshot_id=3, rows_added=5)

    assert CommitResult(**result.to_dict()) == result
    assert json.loads(json.dumps(result.to_dict()))["rows_added"] == 5


def test_a_result_is_shown_without_what_did_not_happen():
    assert (
        repr(CommitResult(snapshot_id=3, rows_added=5))
        == "CommitResult(snapshot_id=3, rows_added=5)"
    )
    assert repr(CommitResult(snapshot_id=None)) == "CommitResult(snapshot_id=None)"

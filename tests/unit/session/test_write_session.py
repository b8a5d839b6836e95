"""Commit, or abort, or leave what may be needed: one rule for all who write."""

import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from builders import (
    COLUMNS,
    append,
    as_arrow,
    create_key_table,
    create_table,
    data_of,
    open_table,
    prepare,
    rows_of,
    upsert,
)
from emberlake import Schema, Table
from emberlake.catalog import FileSystemCatalog
from emberlake.errors import (
    AlreadyCommitted,
    CommitConflict,
    CommitUnknown,
    InvalidInput,
    MessageMismatch,
    StorageError,
)
from emberlake.io import MemoryStorage, open_storage
from emberlake.session.write_session import WriteSession
from emberlake.spec.replacement import Replacement
from emberlake.wire import CommitMessage
from table_reads import data_files, read_ids
from watched_storage import Call, WatchedStorage


def session_for(table: Table, replaces: Replacement | None = None) -> WriteSession:
    return WriteSession(table.store, "me", replaces)


def beaten(storage: MemoryStorage | None = None) -> tuple[Table, set[str], list[CommitMessage]]:
    """Messages that conflict; the files that were there before they were written."""
    table = create_key_table(storage=storage or MemoryStorage())
    ours = prepare(table, [(1, "ours")])
    lost = data_files(table)
    upsert(table, [(1, "theirs")])
    return table, data_files(table) - lost, ours


def failing(method: str, part: str) -> Callable[[Call], None]:
    def watch(call: Call) -> None:
        if call.method == method and part in call.path:
            raise StorageError(f"injected: {call}")

    return watch


def test_what_was_written_is_committed() -> None:
    table = create_table()

    result = session_for(table).commit_or_abort(prepare(table, rows_of([1, 2])))

    assert (result.snapshot_id, result.rows_added) == (1, 2)
    assert read_ids(table) == [1, 2]


def test_a_refused_commit_leaves_no_files() -> None:
    table, before, ours = beaten()

    with pytest.raises(CommitConflict):
        session_for(table).commit_or_abort(ours)

    assert data_files(table) == before


def test_a_commit_that_is_not_to_abort_leaves_its_files() -> None:
    table, before, ours = beaten()

    with pytest.raises(CommitConflict):
        session_for(table).commit(ours)

    assert data_files(table) > before


def test_properties_that_no_snapshot_can_hold_leave_no_files() -> None:
    table = create_table()
    messages = prepare(table, rows_of([1]))

    with pytest.raises(InvalidInput, match="not a character"):
        session_for(table).commit_or_abort(messages, properties={"who": "\ud800"})

    assert data_files(table) == set()


def test_files_that_are_in_the_table_stay() -> None:
    table = create_table()
    messages = prepare(table, rows_of([1]))
    session_for(table).commit_or_abort(messages)

    with pytest.raises(AlreadyCommitted):
        session_for(table).commit_or_abort(messages)

    assert read_ids(table) == [1]


def test_files_stay_when_it_is_unknown_whether_they_are_in_the_table() -> None:
    storage = MemoryStorage()
    create_table(storage)
    watched = WatchedStorage(storage)
    table = open_table(watched)
    messages = prepare(table, rows_of([1]))
    is_gone = False

    def lose_answers(call: Call) -> None:
        nonlocal is_gone
        is_gone = is_gone or (call.method == "put_if_absent" and call.is_done)
        if is_gone:
            raise StorageError("the network is gone")

    watched.watch = lose_answers
    with pytest.raises(CommitUnknown):
        session_for(table).commit_or_abort(messages)

    assert read_ids(open_table(storage)) == [1]


def test_files_of_another_table_are_neither_committed_nor_deleted() -> None:
    table, other = create_table(), create_table()
    foreign = [replace(message, table="/elsewhere") for message in prepare(other, rows_of([1]))]
    before = data_files(other)

    with pytest.raises(MessageMismatch, match="/elsewhere"):
        session_for(table).commit_or_abort(foreign)

    assert data_files(other) == before


def test_files_that_cannot_be_deleted_do_not_hide_why_the_commit_was_refused() -> None:
    storage = MemoryStorage()
    _, _, ours = beaten(storage)
    watched = WatchedStorage(storage, failing("delete", "bucket-0"))

    with pytest.raises(CommitConflict):
        session_for(open_table(watched)).commit_or_abort(ours)

    assert any(call.method == "delete" for call in watched.calls)


def test_messages_must_be_written_for_what_the_session_does() -> None:
    table = create_table()
    whole = Replacement.whole_table(table.table_schema)

    with pytest.raises(MessageMismatch, match="this commit overwrites"):
        session_for(table, whole).commit_or_abort(prepare(table, rows_of([1])))

    assert data_files(table) == set()


def test_a_session_goes_to_a_worker_and_its_messages_come_back(tmp_path: Path) -> None:
    storage, warehouse = open_storage(str(tmp_path), {})
    catalog = FileSystemCatalog(storage, warehouse)
    catalog.create_database("db")
    catalog.create_table("db.t", Schema.from_pyarrow_schema(COLUMNS))
    table = catalog.get_table("db.t")
    append(table, rows_of([1]))
    session = session_for(table, Replacement.whole_table(table.table_schema))

    writer = pickle.loads(pickle.dumps(session)).new_writer()
    writer.write(as_arrow(rows_of([5])))
    session.commit_or_abort(writer.prepare())

    assert read_ids(table) == [5]


def test_new_rows_of_a_table_that_hides_them_are_compacted_by_their_writer() -> None:
    table = create_key_table(**{"deletion-vectors.enabled": "true"})
    session = session_for(table)
    writer = session.new_writer()
    writer.write(data_of(table, [(1, "a")]))

    (message,) = writer.prepare()
    session.commit_or_abort([message])

    assert message.compact_after
    assert read_ids(table) == [1]

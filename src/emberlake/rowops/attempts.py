"""Run an operation on rows as one commit, and again if others have changed what it read.

An operation reads one snapshot. If a commit of others makes what it computed wrong, it is computed
again from the new snapshot, a few times; nothing is ever carried over from one attempt to the next.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Final

from emberlake.commit.committer import STANDS_REMEDY
from emberlake.compaction.buckets import (
    compact_buckets,
    existing_buckets,
    unseen_buckets,
    with_present_schema,
)
from emberlake.errors import CommitConflict, ConflictReason
from emberlake.expressions.query_auth import seeing_all
from emberlake.rowops.edits import Prepared
from emberlake.rowops.result import RowChangeResult, strategy_of
from emberlake.session.write_session import WriteSession
from emberlake.spec.snapshot import CommitKind, Operation, Snapshot
from emberlake.spec.support import check_readable, check_writable
from emberlake.store.table_store import TableStore

_ATTEMPTS: Final = 5
_STALE: Final = frozenset(
    {
        ConflictReason.FILE_DELETED_ELSEWHERE,
        ConflictReason.DELETION_VECTOR_CHANGED,
        ConflictReason.SEQUENCE_NUMBERS_TAKEN,
        ConflictReason.BUCKET_COMPACTED_ELSEWHERE,
        ConflictReason.KEY_INDEX_CHANGED,
        ConflictReason.ROWS_CHANGED_ELSEWHERE,
        ConflictReason.ROW_RANGE_CHANGED,
        ConflictReason.COLUMN_CHANGED,
        ConflictReason.SCHEMA_CHANGED,
    }
)

Prepare = Callable[[WriteSession, Snapshot | None], Prepared]
Grow = Callable[[TableStore], TableStore]


def run_change(
    session: WriteSession,
    prepare: Prepare,
    operation: Operation | None = None,
    grow: Grow | None = None,
) -> RowChangeResult:
    """Prepare an operation on the latest snapshot and commit it.

    Args:
        session: The write. Each attempt gets one with the columns that the table has then.
        prepare: Reads the snapshot, writes files and returns messages.
        operation: The operation that the snapshot records; None: a delete or an update.
        grow: Adds the columns that the commit brings.

    Raises:
        CommitConflict: others changed the same rows again and again; the table is unchanged by it.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        current, snapshot = _settled(session)
        if grow is not None:
            current = replace(current, store=grow(current.store))
        strategy = strategy_of(current.store.schema)
        with current.store.decoding_rows():
            prepared = prepare(current, snapshot)
        if prepared.tally.changes_nothing:
            return prepared.tally.result(strategy, None)
        done = operation or (Operation.UPDATE if prepared.tally.updated else Operation.DELETE)
        current = replace(current, operation=done)
        if prepared.tally.inserted:
            # An overwrite may have brought the rows that were missing, or have been meant for ours.
            current = replace(current, stale_after=current.stale_after | {CommitKind.OVERWRITE})
        try:
            committed = current.commit_or_abort(prepared.messages)
        except CommitConflict as error:
            is_over = error.remedy == STANDS_REMEDY or error.reason not in _STALE
            if is_over or attempt == _ATTEMPTS:
                raise
            continue
        return prepared.tally.result(strategy, committed)
    raise AssertionError  # the last attempt has returned or raised


def present(session: WriteSession) -> tuple[WriteSession, Snapshot | None]:
    """The session with the columns that the table has now, and the latest snapshot.

    Raises:
        Unsupported: the table cannot be read or written, or not all rows are shown to this user:
            those that are not would be lost, or changed by what stands for their values.
    """
    # In this order: then no file of the snapshot has a later schema.
    snapshot = session.store.snapshots.latest()
    store = seeing_all(with_present_schema(session.store), "changed")
    check_readable(store.schema, store.schema.fields)
    check_writable(store.schema)
    stale_after = session.stale_after
    if store.schema.profile.has_keys:
        # Records continue the sequence numbers of what they replace. An overwrite starts from the
        # beginning, so its rows would lose against them.
        stale_after |= {CommitKind.OVERWRITE}
    return replace(session, store=store, stale_after=stale_after), snapshot


def _settled(session: WriteSession) -> tuple[WriteSession, Snapshot | None]:
    """The same, once reads show all rows: those that wait for a compaction are compacted first.

    Otherwise an operation would miss what somebody wrote right before it, and undo it.
    """
    for _ in range(_ATTEMPTS):
        current, snapshot = present(session)
        waiting = unseen_buckets(current.store, snapshot)
        if not waiting:
            return current, snapshot
        buckets = list(existing_buckets(current.store, snapshot, waiting).values())
        with current.store.decoding_rows():
            messages = compact_buckets(current.store, buckets, snapshot, full=False)
        with suppress(CommitConflict):  # the writer of the rows compacts them, too
            WriteSession(current.store, session.commit_user).commit_or_abort(messages)
    return present(session)

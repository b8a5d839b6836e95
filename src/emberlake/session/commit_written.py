"""Commit what was written, then commit its compaction.

These are two snapshots. If another writer compacts the same buckets in between, the first snapshot
stands, and the compaction is done again on top of the other one.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

from emberlake.commit.change import Change, CommitResult, combined, compact_change
from emberlake.commit.discard import discard
from emberlake.compaction.bucket import Bucket, load_buckets
from emberlake.compaction.buckets import (
    compact_buckets,
    existing_buckets,
    passing_files,
    with_present_schema,
)
from emberlake.errors import (
    AlreadyCommitted,
    CommitConflict,
    CommitUnknown,
    SnapshotOverwritten,
    StorageError,
)
from emberlake.spec.snapshot import CommitKind
from emberlake.store.table_store import TableStore
from emberlake.wire import CommitMessage

# How often buckets are compacted again because others compact them too.
_MAX_REPEATS: Final = 10


def commit_written(
    store: TableStore,
    commit: Callable[[Sequence[Change]], CommitResult],
    changes: Sequence[Change],
    messages: Sequence[CommitMessage],
    *,
    full: bool = False,
) -> CommitResult:
    """Commit what was written, then its compaction, repeated if others compact the same buckets.

    Args:
        store: The table.
        commit: Turns changes into snapshots.
        changes: The snapshots that the messages become.
        messages: What was written and compacted.
        full: Whether everything that is not on the highest level is to be compacted, even if
            nothing was written.
    """
    written = [change for change in changes if change.kind is not CommitKind.COMPACT]
    is_compaction = bool(changes) and not written
    compacts = full or (bool(written) and store.schema.profile.compacts_on_write)
    if is_compaction or not compacts:
        return commit(changes)
    done = commit(written)
    try:
        return combined([done, _commit_compacted(store, commit, messages, done, full=full)])
    except (StorageError, CommitUnknown) as error:
        if done.snapshot_id is None:
            raise
        # Writing the rows again would duplicate them.
        hides = store.schema.profile.hides_level_0
        unseen = "its rows are" if hides else "what it changes is"
        raise type(error)(
            f"snapshot {done.snapshot_id} stands, but is not compacted, so {unseen} not seen "
            f"yet: {error}. Compact the table; do not write the rows again"
        ) from error


def _commit_compacted(
    store: TableStore,
    commit: Callable[[Sequence[Change]], CommitResult],
    messages: Sequence[CommitMessage],
    done: CommitResult,
    *,
    full: bool,
) -> CommitResult:
    todo = list(messages)
    top = store.schema.profile.num_levels - 1 if full else 1
    if done.snapshot_id is None or any(_is_left_out(message, top) for message in messages):
        discard(store, map(_compacted_part, todo))
        todo = _compact_again(store, messages, full=full)
    repeats = 0
    while True:
        try:
            return commit([compact_change(todo)])
        except AlreadyCommitted:
            raise
        except CommitConflict as error:
            # A writer that saw the snapshot before it was overwritten may have built on its files.
            if not isinstance(error, SnapshotOverwritten):
                discard(store, map(_compacted_part, todo))
            if repeats == _MAX_REPEATS and done.snapshot_id is None:
                raise
            if repeats == _MAX_REPEATS:
                detail = f"snapshot {done.snapshot_id} stands, but is not compacted: {error.detail}"
                raise CommitConflict(error.reason, detail, "compact the table") from error
        repeats += 1
        todo = _compact_again(store, messages, full=full)


def as_replacement(message: CommitMessage) -> CommitMessage:
    """A message of an overwrite that adds the compacted files right away.

    As one snapshot, the overwrite is visible at once. If the compaction also took in older files,
    it stays a snapshot of its own.
    """
    new = {file.file_name for file in message.new_files}
    gone = {file.file_name for file in message.compact_before}
    if not gone or not gone <= new or message.compact_deleted_index_files:
        return message
    stays = tuple(file for file in message.new_files if file.file_name not in gone)
    return replace(
        message,
        new_files=(*stays, *message.compact_after),
        changelog_files=(*message.changelog_files, *message.compact_changelog_files),
        new_index_files=(*message.new_index_files, *message.compact_new_index_files),
        compact_before=(),
        compact_after=(),
        compact_changelog_files=(),
        compact_new_index_files=(),
    )


def discard_passing(store: TableStore, messages: Iterable[CommitMessage]) -> None:
    """Delete new files that were compacted before any snapshot had them."""
    for m in messages:
        Bucket(store, m.partition, m.bucket, m.total_buckets, ()).discard(passing_files(m))


def _is_left_out(message: CommitMessage, least_level: int) -> bool:
    """Whether its rows are not compacted to some level.

    Its writer may not have compacted at all, because an older message was pending at that time, or
    because it did not know what the commit would ask for.
    """
    files = message.compact_after if message.compact_before else message.new_files
    return message.bucket >= 0 and any(file.level < least_level for file in files)


def _compact_again(
    store: TableStore, messages: Sequence[CommitMessage], *, full: bool
) -> list[CommitMessage]:
    """Compact the buckets of messages as they are now; all that are waiting, if fully."""
    snapshot = store.snapshots.latest()
    store = with_present_schema(store)
    if full:
        top = store.schema.profile.num_levels - 1
        found = load_buckets(store, snapshot)
        buckets = [bucket for bucket in found if any(file.level < top for file in bucket.files)]
    else:
        places = {(message.partition, message.bucket) for message in messages}
        buckets = list(existing_buckets(store, snapshot, places).values())
    return compact_buckets(store, buckets, snapshot, full=full)


def _compacted_part(message: CommitMessage) -> CommitMessage:
    """A message of the compaction alone: the files that were written count as existing ones."""
    return replace(
        message,
        new_files=(),
        changelog_files=(),
        new_index_files=(),
        compact_before=(*message.compact_before, *message.new_files),
    )

"""Compact a table: bucket by bucket in parallel, all of it in one commit.

A compaction changes no rows. It is committed only if all files that it replaces are still there;
what others added meanwhile stays.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from emberlake.base.parallel import parallel_map
from emberlake.commit.change import Change, CommitResult, combined, compact_change
from emberlake.commit.committer import Committer
from emberlake.errors import AlreadyCommitted, CommitConflict, CommitUnknown, StorageError
from emberlake.maintenance.append_compact import compact_append_bucket
from emberlake.maintenance.bucket import Bucket, Compacted, load_buckets
from emberlake.maintenance.key_compact import compact_key_bucket
from emberlake.maintenance.postpone_compact import load_postponed, passing_files, replay, settle
from emberlake.options import POSTPONE_BUCKET
from emberlake.predicates import Predicate
from emberlake.spec.profile import BucketMode
from emberlake.spec.snapshot import CommitKind, Snapshot
from emberlake.spec.support import check_compactable
from emberlake.store.table_store import TableStore
from emberlake.wire import BaseSnapshot, CommitMessage, WriteMode

# So often is a bucket compacted anew, because others compact it too.
_ATTEMPTS: Final = 10


def compact_table(
    store: TableStore, commit_user: str, *, full: bool, where: Predicate | None
) -> CommitResult:
    """Compact the buckets of all partitions, or of those that match, and commit it.

    Raises:
        CommitConflict: another writer replaced the same files; nothing changes.
    """
    snapshot = store.snapshots.latest()
    store = with_present_schema(store)
    check_compactable(store.schema)
    with store.decoding_rows():
        messages = prepare_compaction(store, snapshot, full=full, where=where)
    try:
        return Committer(store, commit_user).commit(compact_change(messages))
    except CommitConflict:
        discard(store, messages)
        raise


def prepare_compaction(
    store: TableStore, snapshot: Snapshot | None, *, full: bool, where: Predicate | None
) -> list[CommitMessage]:
    """Write what a compaction puts in the place of the files of a snapshot."""
    buckets = list(load_buckets(store, snapshot, where))
    if not _postpones(store):
        return _compact_buckets(store, buckets, snapshot, full=full)
    waiting = list(load_postponed(store, snapshot, where))
    return _compact_with_postponed(store, buckets, waiting, snapshot, full=full)


@dataclass(frozen=True, slots=True)
class Place:
    """What one worker compacts: a bucket, or a whole partition where rows wait for their bucket."""

    partition: bytes
    bucket: int
    file_size: int = 0


def compaction_places(
    store: TableStore, snapshot: Snapshot, where: Predicate | None
) -> list[Place]:
    """What there is to compact, for workers to share."""
    buckets = list(load_buckets(store, snapshot, where))
    if not _postpones(store):
        return [Place(b.partition, b.number, _file_size(b)) for b in buckets]
    sizes: Counter[bytes] = Counter()
    for bucket in (*buckets, *load_postponed(store, snapshot, where)):
        sizes[bucket.partition] += _file_size(bucket)
    return [Place(partition, POSTPONE_BUCKET, size) for partition, size in sizes.items()]


def compact_places(
    store: TableStore, snapshot: Snapshot, places: Sequence[Place], *, full: bool
) -> list[CommitMessage]:
    """Write what a compaction puts in the place of some buckets of a snapshot."""
    if not _postpones(store):
        wanted = {(place.partition, place.bucket) for place in places}
        buckets = list(_existing_buckets(store, snapshot, wanted).values())
        return _compact_buckets(store, buckets, snapshot, full=full)
    partitions = frozenset(place.partition for place in places)
    buckets = list(load_buckets(store, snapshot, partitions=partitions))
    waiting = [w for w in load_postponed(store, snapshot, None) if w.partition in partitions]
    return _compact_with_postponed(store, buckets, waiting, snapshot, full=full)


def _postpones(store: TableStore) -> bool:
    return store.schema.profile.bucket_mode is BucketMode.POSTPONED


def _file_size(bucket: Bucket) -> int:
    return sum(file.file_size for file in bucket.files)


def _compact_buckets(
    store: TableStore, buckets: Sequence[Bucket], snapshot: Snapshot | None, *, full: bool
) -> list[CommitMessage]:
    base = _base_of(snapshot)
    return [
        _message_of(bucket, compacted, base)
        for bucket, compacted in zip(buckets, _compact_all(store, buckets, full=full), strict=True)
        if compacted is not None
    ]


def _compact_with_postponed(
    store: TableStore,
    buckets: Sequence[Bucket],
    waiting: Sequence[Bucket],
    snapshot: Snapshot | None,
    *,
    full: bool,
) -> list[CommitMessage]:
    """Put postponed rows into their buckets, and compact these and the others."""
    known = {(bucket.partition, bucket.number): bucket for bucket in buckets}
    replayed: list[CommitMessage] = []
    try:
        for part in waiting:
            replayed += replay(part, known)
        written = {(m.partition, m.bucket): m for m in replayed if m.new_files}
        todo = known | {p: _with_files(store, known.get(p), m) for p, m in written.items()}
        compacted = _compact_all(store, list(todo.values()), full=full)
    except BaseException:
        discard(store, replayed)
        raise
    base = _base_of(snapshot)
    messages = [replace(m, base=base) for m in replayed if not m.new_files]
    for (place, bucket), change in zip(todo.items(), compacted, strict=True):
        message = _message_of(bucket, change, base)
        if place in written:
            message = _extended(replace(written[place], base=base), change)
            bucket.discard(passing_files(message))
        messages.append(settle(message))
    return [message for message in messages if not message.is_empty()]


class WrittenCompaction:
    """Takes up from level 0 what a writer writes, where reads would not see it otherwise.

    Args:
        store: The table.
        ignore_previous: The writer's commits replace what is there.
    """

    def __init__(self, store: TableStore, *, ignore_previous: bool) -> None:
        self._store = store
        self._ignore_previous = ignore_previous
        self._is_needed = store.schema.profile.compacts_on_write
        self._handed_over: list[CommitMessage] = []

    def compact(self, messages: list[CommitMessage]) -> list[CommitMessage]:
        """The messages with their files, and what is there of their buckets, compacted.

        Should it fail, the files of the messages are deleted. A bucket is left out while messages
        about it are not committed: what it consists of is not known before that.
        """
        if not self._is_needed:
            return messages
        try:
            compacted = self._compact(messages)
        except BaseException:
            discard(self._store, messages)
            raise
        self._handed_over += compacted
        return compacted

    def _compact(self, messages: list[CommitMessage]) -> list[CommitMessage]:
        self._handed_over = [m for m in self._handed_over if not _is_committed(self._store, m)]
        pending = {(m.partition, m.bucket) for m in self._handed_over}
        snapshot = None if self._ignore_previous else self._store.snapshots.latest()
        store = with_present_schema(self._store)
        touched = {
            place: m
            for m in messages
            if m.new_files and m.bucket >= 0 and (place := (m.partition, m.bucket)) not in pending
        }
        existing = _existing_buckets(store, snapshot, touched)
        buckets = [
            _with_files(store, existing.get(place), message) for place, message in touched.items()
        ]
        found = dict(zip(touched, _compact_all(store, buckets, full=False), strict=True))
        return [_extended(m, found.get((m.partition, m.bucket))) for m in messages]


def commit_written(
    store: TableStore,
    commit: Callable[[Sequence[Change]], CommitResult],
    changes: Sequence[Change],
    messages: Sequence[CommitMessage],
) -> CommitResult:
    """Commit what was written and then what was compacted of it.

    When another writer has compacted the same buckets meanwhile, what was written stands, and is
    compacted anew together with what the other one made.

    Args:
        store: The table.
        commit: Makes snapshots of changes.
        changes: The snapshots that the messages become.
        messages: What was written and compacted.
    """
    if not store.schema.profile.compacts_on_write:
        return commit(changes)
    written = [change for change in changes if change.kind is not CommitKind.COMPACT]
    compacted = [change for change in changes if change.kind is CommitKind.COMPACT]
    done = commit(written)
    if not written:
        return combined([done, commit(compacted)])
    try:
        return combined([done, _commit_compacted(store, commit, compacted, messages, done)])
    except (StorageError, CommitUnknown) as error:
        # Whoever writes the rows again would have them twice.
        raise type(error)(
            f"snapshot {done.snapshot_id} stands, but is not compacted, so that its rows are not "
            f"seen yet: {error}. Compact the table; do not write the rows again"
        ) from error


def _commit_compacted(
    store: TableStore,
    commit: Callable[[Sequence[Change]], CommitResult],
    compacted: Sequence[Change],
    messages: Sequence[CommitMessage],
    done: CommitResult,
) -> CommitResult:
    todo = list(messages)
    if any(_is_left_out(message) for message in messages):
        discard(store, map(_compacted_part, todo))
        todo = _compact_anew(store, messages)
        compacted = [compact_change(todo)]
    for attempt in itertools.count(1):
        try:
            return commit(compacted)
        except AlreadyCommitted:
            raise
        except CommitConflict as error:
            discard(store, map(_compacted_part, todo))
            if attempt > _ATTEMPTS:
                detail = f"snapshot {done.snapshot_id} stands, but is not compacted: {error.detail}"
                raise CommitConflict(error.reason, detail, "compact the table") from error
        todo = _compact_anew(store, messages)
        compacted = [compact_change(todo)]
    raise AssertionError("counting does not end")


def as_replacement(message: CommitMessage) -> CommitMessage:
    """A message of an overwrite, in which what was written is what became of it by compaction.

    An overwrite that is one snapshot, compacted files and all, is seen at once. Files that were
    there before belong to a compaction of their own.
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
    """Delete new files that were compacted before anybody saw them."""
    for m in messages:
        Bucket(store, m.partition, m.bucket, m.total_buckets, ()).discard(passing_files(m))


def _is_left_out(message: CommitMessage) -> bool:
    """Whether its rows would stay hidden: an older message was pending when it was prepared."""
    is_compacted = bool(message.compact_before) or all(f.level > 0 for f in message.new_files)
    return message.bucket >= 0 and not is_compacted


def _compact_anew(store: TableStore, messages: Sequence[CommitMessage]) -> list[CommitMessage]:
    """Compact the buckets of messages as they are by now."""
    snapshot = store.snapshots.latest()
    store = with_present_schema(store)
    places = {(message.partition, message.bucket) for message in messages}
    buckets = list(_existing_buckets(store, snapshot, places).values())
    return _compact_buckets(store, buckets, snapshot, full=False)


def _compacted_part(message: CommitMessage) -> CommitMessage:
    """A message without what was written, whose files stay: as deletes of them would have it."""
    return replace(
        message,
        new_files=(),
        changelog_files=(),
        new_index_files=(),
        compact_before=(*message.compact_before, *message.new_files),
    )


def _is_committed(store: TableStore, message: CommitMessage) -> bool:
    try:
        Committer(store, "").check_not_committed([message])
    except AlreadyCommitted:
        return True
    return False


def discard(store: TableStore, messages: Iterable[CommitMessage]) -> None:
    """Delete the files that messages, which are not committed, brought about."""
    for message in messages:
        paths = [
            store.data_file_path(message.partition, message.bucket, file)
            for file in message.written_files
        ]
        paths += [
            store.index_file_path(message.partition, message.bucket, file)
            for file in (*message.new_index_files, *message.compact_new_index_files)
        ]
        for path in paths:
            with suppress(StorageError):  # nothing refers to it: garbage, not a problem
                store.storage.delete(path)


def with_present_schema(store: TableStore) -> TableStore:
    """The table with the columns that it has by now, so that none is lost when files are rewritten.

    Who rewrites the files of a snapshot loads that first: then none of them is of a later schema.
    Options that this program alone has set stay.
    """
    latest = store.schemas.latest()
    if latest is None or latest.id == store.schema.id:
        return store
    return store.with_schema(latest.with_options(store.own_options()))


def _compact_all(
    store: TableStore, buckets: Sequence[Bucket], *, full: bool
) -> list[Compacted | None]:
    compact = compact_key_bucket if store.schema.profile.has_keys else compact_append_bucket
    done: dict[int, Compacted | None] = {}  # what threads finished, also after one has failed

    def compact_at(place: int) -> None:
        done[place] = compact(buckets[place], full=full)

    try:
        for _ in parallel_map(compact_at, range(len(buckets))):
            pass
    except BaseException:
        found = ((buckets[place], compacted) for place, compacted in done.items())
        discard(store, [_message_of(b, c, None) for b, c in found if c is not None])
        raise
    return [done[place] for place in range(len(buckets))]


def _existing_buckets(
    store: TableStore, snapshot: Snapshot | None, places: Iterable[tuple[bytes, int]]
) -> dict[tuple[bytes, int], Bucket]:
    wanted = frozenset(places)
    partitions = frozenset(partition for partition, _ in wanted)
    found = load_buckets(store, snapshot, partitions=partitions)
    return {
        (bucket.partition, bucket.number): bucket
        for bucket in found
        if (bucket.partition, bucket.number) in wanted
    }


def _with_files(store: TableStore, existing: Bucket | None, message: CommitMessage) -> Bucket:
    if existing is None:
        place = message.partition, message.bucket, message.total_buckets
        return Bucket(store, *place, message.new_files)
    return replace(existing, files=(*existing.files, *message.new_files))


def _base_of(snapshot: Snapshot | None) -> BaseSnapshot | None:
    return None if snapshot is None else BaseSnapshot(snapshot.id, snapshot.delta_manifest_list)


def _message_of(
    bucket: Bucket, compacted: Compacted | None, base: BaseSnapshot | None
) -> CommitMessage:
    message = CommitMessage(
        table=bucket.store.layout.metadata_root,
        mode=WriteMode.APPEND,
        partition=bucket.partition,
        bucket=bucket.number,
        total_buckets=bucket.total_buckets,
        base=base,
    )
    return _extended(message, compacted)


def _extended(message: CommitMessage, compacted: Compacted | None) -> CommitMessage:
    if compacted is None:
        return message
    return replace(
        message,
        compact_before=compacted.before,
        compact_after=compacted.after,
        compact_new_index_files=compacted.vectors.added,
        compact_deleted_index_files=compacted.vectors.deleted,
    )

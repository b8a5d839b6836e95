"""Compact a table: many buckets in parallel, all in one commit.

A compaction changes no rows. It is committed only if all files that it replaces are still there.
Files that others added meanwhile stay.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from emberlake.commit.change import CommitResult
from emberlake.commit.discard import discard
from emberlake.compaction.bucket import Bucket, load_buckets
from emberlake.compaction.buckets import (
    compact_all,
    compact_buckets,
    existing_buckets,
    extended,
    message_of,
    passing_files,
    with_files,
    with_present_schema,
)
from emberlake.compaction.postpone_compact import load_postponed, replay, settle
from emberlake.expressions.query_auth import seeing_all
from emberlake.options import POSTPONE_BUCKET
from emberlake.predicates import Predicate
from emberlake.session.write_session import WriteSession
from emberlake.spec.profile import BucketMode
from emberlake.spec.snapshot import Snapshot
from emberlake.spec.support import check_compactable
from emberlake.store.table_store import TableStore
from emberlake.wire import BaseSnapshot, CommitMessage


def compact_table(
    store: TableStore, commit_user: str, *, full: bool, where: Predicate | None
) -> CommitResult:
    """Compact the buckets of all partitions, or of those that match, and commit the result.

    Raises:
        CommitConflict: another writer replaced the same files; nothing changes.
    """
    snapshot = store.snapshots.latest()
    store = seeing_all(with_present_schema(store), "compacted")
    check_compactable(store.schema)
    with store.decoding_rows():
        messages = prepare_compaction(store, snapshot, full=full, where=where)
    return WriteSession(store, commit_user).commit_or_abort(messages)


def prepare_compaction(
    store: TableStore, snapshot: Snapshot | None, *, full: bool, where: Predicate | None
) -> list[CommitMessage]:
    """Write the files that are to replace those of a snapshot."""
    buckets = list(load_buckets(store, snapshot, where))
    if not _postpones(store):
        return compact_buckets(store, buckets, snapshot, full=full)
    waiting = list(load_postponed(store, snapshot, where))
    return _compact_with_postponed(store, buckets, waiting, snapshot, full=full)


@dataclass(frozen=True, slots=True)
class CompactionShare:
    """What one worker compacts: a bucket, or a whole partition if rows wait for their bucket."""

    partition: bytes
    bucket: int
    file_size: int = 0


def compaction_places(
    store: TableStore, snapshot: Snapshot, where: Predicate | None
) -> list[CompactionShare]:
    """Everything there is to compact, in parts for workers."""
    buckets = list(load_buckets(store, snapshot, where))
    if not _postpones(store):
        return [CompactionShare(b.partition, b.number, _file_size(b)) for b in buckets]
    sizes: Counter[bytes] = Counter()
    for bucket in (*buckets, *load_postponed(store, snapshot, where)):
        sizes[bucket.partition] += _file_size(bucket)
    return [CompactionShare(partition, POSTPONE_BUCKET, size) for partition, size in sizes.items()]


def compact_places(
    store: TableStore, snapshot: Snapshot, places: Sequence[CompactionShare], *, full: bool
) -> list[CommitMessage]:
    """Write the files that are to replace those of some buckets of a snapshot."""
    if not _postpones(store):
        wanted = {(place.partition, place.bucket) for place in places}
        buckets = list(existing_buckets(store, snapshot, wanted).values())
        return compact_buckets(store, buckets, snapshot, full=full)
    partitions = frozenset(place.partition for place in places)
    buckets = list(load_buckets(store, snapshot, partitions=partitions))
    waiting = [w for w in load_postponed(store, snapshot, None) if w.partition in partitions]
    return _compact_with_postponed(store, buckets, waiting, snapshot, full=full)


def _postpones(store: TableStore) -> bool:
    return store.schema.profile.bucket_mode is BucketMode.POSTPONED


def _file_size(bucket: Bucket) -> int:
    return sum(file.file_size for file in bucket.files)


def _compact_with_postponed(
    store: TableStore,
    buckets: Sequence[Bucket],
    waiting: Sequence[Bucket],
    snapshot: Snapshot | None,
    *,
    full: bool,
) -> list[CommitMessage]:
    """Put postponed rows into their buckets, then compact all buckets."""
    known = {(bucket.partition, bucket.number): bucket for bucket in buckets}
    replayed: list[CommitMessage] = []
    try:
        for part in waiting:
            replayed += replay(part, known)
        written = {(m.partition, m.bucket): m for m in replayed if m.new_files}
        todo = known | {p: with_files(store, known.get(p), m) for p, m in written.items()}
        compacted = compact_all(store, list(todo.values()), full=full)
    except BaseException:
        discard(store, replayed)
        raise
    base = BaseSnapshot.of(snapshot)
    messages = [replace(m, base=base) for m in replayed if not m.new_files]
    for (place, bucket), change in zip(todo.items(), compacted, strict=True):
        message = message_of(bucket, change, base)
        if place in written:
            message = extended(replace(written[place], base=base), change)
            bucket.discard(passing_files(message))
        messages.append(settle(message))
    return [message for message in messages if not message.is_empty()]

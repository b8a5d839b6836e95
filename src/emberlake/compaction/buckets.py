"""Compact many buckets in parallel, and describe the result in messages.

Nothing is committed here. Compaction of a table and compaction of what was just written share this.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from emberlake.base.parallel import parallel_map
from emberlake.commit.discard import discard
from emberlake.compaction.append_compact import compact_append_bucket
from emberlake.compaction.bucket import Bucket, Compacted, load_buckets
from emberlake.compaction.group_compact import compact_groups
from emberlake.compaction.key_compact import compact_key_bucket
from emberlake.scan.files import live_entries
from emberlake.spec.manifest import DataFile
from emberlake.spec.snapshot import Snapshot
from emberlake.store.table_store import TableStore
from emberlake.wire import BaseSnapshot, CommitMessage, WriteMode


def compact_buckets(
    store: TableStore, buckets: Sequence[Bucket], snapshot: Snapshot | None, *, full: bool
) -> list[CommitMessage]:
    """Compact buckets of a snapshot; one message for each in which something was due."""
    base = BaseSnapshot.of(snapshot)
    return [
        message_of(bucket, compacted, base)
        for bucket, compacted in zip(buckets, compact_all(store, buckets, full=full), strict=True)
        if compacted is not None
    ]


def compact_all(
    store: TableStore, buckets: Sequence[Bucket], *, full: bool, with_changelog: bool = True
) -> list[Compacted | None]:
    """Compact buckets in parallel; None for each in which nothing was due.

    If one of them fails, what the others have written is deleted. ``with_changelog`` is whether the
    changes are recorded, if the table asks for it.
    """
    has_keys = store.schema.profile.has_keys
    done: dict[int, Compacted | None] = {}  # what threads have finished, even after one has failed

    def compact_at(place: int) -> None:
        bucket = buckets[place]
        if has_keys:
            done[place] = compact_key_bucket(bucket, full=full, with_changelog=with_changelog)
        else:
            done[place] = _compact_append(bucket, full=full)

    try:
        for _ in parallel_map(compact_at, range(len(buckets))):
            pass
    except BaseException:
        found = ((buckets[place], compacted) for place, compacted in done.items())
        discard(store, [message_of(b, c, None) for b, c in found if c is not None])
        raise
    return [done[place] for place in range(len(buckets))]


def _compact_append(bucket: Bucket, *, full: bool) -> Compacted | None:
    is_grouped = bucket.store.schema.profile.evolves_data
    return (compact_groups if is_grouped else compact_append_bucket)(bucket, full=full)


def existing_buckets(
    store: TableStore, snapshot: Snapshot | None, places: Iterable[tuple[bytes, int]]
) -> dict[tuple[bytes, int], Bucket]:
    """The buckets of a snapshot by partition and number, for those that are asked for."""
    wanted = frozenset(places)
    partitions = frozenset(partition for partition, _ in wanted)
    found = load_buckets(store, snapshot, partitions=partitions)
    return {
        (bucket.partition, bucket.number): bucket
        for bucket in found
        if (bucket.partition, bucket.number) in wanted
    }


def unseen_buckets(store: TableStore, snapshot: Snapshot | None) -> set[tuple[bytes, int]]:
    """Partition and number of the buckets with rows that reads show only once they are compacted.

    Such rows are there between a write and its compaction, or because another engine wrote them.
    """
    if snapshot is None or not store.schema.profile.hides_level_0:
        return set()
    entries = live_entries(store, snapshot)
    waiting = entries.take((entries.bucket >= 0) & (entries.level == 0))
    partitions = (waiting.partitions[code] for code in waiting.partition_codes)
    return set(zip(partitions, map(int, waiting.bucket), strict=True))


def with_files(store: TableStore, existing: Bucket | None, message: CommitMessage) -> Bucket:
    """A bucket together with what a message has written to it."""
    if existing is None:
        place = message.partition, message.bucket, message.total_buckets
        return Bucket(store, *place, message.new_files)
    return replace(existing, files=(*existing.files, *message.new_files))


def message_of(
    bucket: Bucket, compacted: Compacted | None, base: BaseSnapshot | None
) -> CommitMessage:
    """The message of a bucket that was compacted, or of one in which nothing was due."""
    message = CommitMessage(
        table=bucket.store.layout.metadata_root,
        mode=WriteMode.APPEND,
        partition=bucket.partition,
        bucket=bucket.number,
        total_buckets=bucket.total_buckets,
        base=base,
    )
    return extended(message, compacted)


def extended(message: CommitMessage, compacted: Compacted | None) -> CommitMessage:
    """A message with the compaction of its bucket in it."""
    if compacted is None:
        return message
    return replace(
        message,
        compact_before=compacted.before,
        compact_after=compacted.after,
        compact_changelog_files=compacted.changelog,
        compact_new_index_files=compacted.vectors.added,
        compact_deleted_index_files=compacted.vectors.deleted,
        compact_vector_edits=compacted.edits,
    )


def with_present_schema(store: TableStore) -> TableStore:
    """The table with the columns that it has now: rewriting files must not lose any.

    Load the snapshot to rewrite before calling this: then none of its files has a later schema.
    Options that were set in this program alone stay.
    """
    latest = store.schemas.latest()
    if latest is None or latest.id <= store.schema.id:  # below: the next commit publishes ours
        return store
    return store.with_schema(latest.with_options(store.own_options()))


def passing_files(message: CommitMessage) -> list[DataFile]:
    """New files that were compacted before anybody saw them."""
    gone = {file.file_name for file in message.compact_before}
    after = {file.file_name for file in message.compact_after}
    return [f for f in message.new_files if f.file_name in gone and f.file_name not in after]

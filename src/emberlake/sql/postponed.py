"""INSERT into tables with ``bucket=-2`` assigns buckets at once, as Paimon's connector does."""

from dataclasses import replace

from emberlake.options import BUCKET, POSTPONE_BUCKET_COUNT, POSTPONE_BUCKETS_AT_ONCE
from emberlake.scan.files import live_entries
from emberlake.session.write_session import WriteSession
from emberlake.spec.profile import BucketMode


def with_buckets(session: WriteSession, *, is_new: bool = False) -> WriteSession:
    """The session for rows that get buckets at once, if all partitions have the same number.

    Otherwise, if rows are already waiting for their buckets, or if the table says that they shall
    (``postpone.batch-write-fixed-bucket``), compaction assigns them.

    Args:
        session: The write.
        is_new: Whether the table begins with these rows, whatever it was before.
    """
    store = session.store
    if not store.options.value(POSTPONE_BUCKETS_AT_ONCE):
        return session
    if store.schema.profile.bucket_mode is not BucketMode.POSTPONED:
        return session
    snapshot = None if is_new else store.snapshots.latest()
    given = store.options.value(POSTPONE_BUCKET_COUNT)
    counts: set[int] = set()
    if snapshot is not None:
        entries = live_entries(store, snapshot)
        if (entries.bucket < 0).any() and session.replaces is None:
            return session
        counts = set(entries.total_buckets[entries.bucket >= 0].tolist())
    if given is not None and store.schema.partition_keys:
        counts.add(given)
    if len(counts) > 1:
        return session
    count = next(iter(counts), given or 1)
    schema = store.schema.with_options({BUCKET.key: str(count)})
    return replace(session, store=store.with_schema(schema))

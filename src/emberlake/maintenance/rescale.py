"""Give partitions another number of buckets: their rows are written again, in one commit."""

from collections.abc import Sequence
from contextlib import closing

from emberlake.commit.change import NOTHING_COMMITTED, CommitResult
from emberlake.errors import InvalidInput, InvalidState, Unsupported
from emberlake.expressions.query_auth import seeing_all
from emberlake.options import BUCKET
from emberlake.predicates import Predicate
from emberlake.read.projection import project_all
from emberlake.read.table_reader import TableReader
from emberlake.scan.plan import plan_target
from emberlake.scan.splits import DataSplit
from emberlake.session.write_session import WriteSession
from emberlake.spec.profile import BucketMode
from emberlake.spec.replacement import Replacement
from emberlake.spec.snapshot import CommitKind
from emberlake.store.table_store import TableStore


def rescale_table(
    store: TableStore, commit_user: str, buckets: int | None, where: Predicate | None
) -> CommitResult:
    """Write the rows of all partitions, or of those that match, into a number of buckets.

    The option ``bucket`` of the table stays as it is, as in Java.

    Raises:
        InvalidState: the table has no snapshot.
        InvalidInput: the number of buckets is missing, or not positive.
        Unsupported: the table has no fixed number of buckets.
        CommitConflict: rows changed meanwhile; nothing changes.
    """
    store = seeing_all(store, "rescaled")
    snapshot = store.snapshots.latest()
    if snapshot is None:
        raise InvalidState("the table has no snapshot: there is nothing to rescale")
    mode = store.schema.profile.bucket_mode
    if mode not in (BucketMode.FIXED, BucketMode.POSTPONED):
        raise Unsupported("only tables with a fixed number of buckets, or bucket=-2, are rescaled")
    with store.decoding_rows():
        splits = plan_target(store, snapshot, where, None).splits
        if not splits:
            return NOTHING_COMMITTED
        count = buckets if buckets is not None else _present_count(store, splits)
        if count < 1:
            raise InvalidInput(f"a table cannot have {count} buckets")
        schema = store.schema.with_options({BUCKET.key: str(count)})
        session = WriteSession(
            store.with_schema(schema),
            commit_user,
            replaces=Replacement.dynamic(schema),
            stale_after=frozenset({CommitKind.APPEND, CommitKind.OVERWRITE}),
        )
        reader = TableReader(store, project_all(store.schema.fields), where)
        with closing(session.new_writer(as_of=snapshot)) as writer:
            for batch in reader.read_batches(splits):
                writer.write(batch)
            return session.commit_or_abort(writer.prepare())


def _present_count(store: TableStore, splits: Sequence[DataSplit]) -> int:
    if store.schema.profile.bucket_mode is BucketMode.POSTPONED:
        raise InvalidInput("give the number of buckets: with bucket=-2 there is no default")
    found = next((s.total_buckets for s in splits if s.total_buckets is not None), None)
    return store.options.value(BUCKET) if found is None else found

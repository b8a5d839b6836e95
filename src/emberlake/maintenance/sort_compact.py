"""Sort the rows of an append table, bucket by bucket, in one commit.

Only the order of rows changes, so that filters on the columns skip more files. It is committed like
a change of rows, as in Java: only if all files that it replaces are still there.
"""

from collections.abc import Sequence

from emberlake.base.names import choices
from emberlake.commit.change import CommitResult
from emberlake.commit.discard import discard
from emberlake.compaction.bucket import load_buckets
from emberlake.compaction.buckets import with_present_schema
from emberlake.compaction.curves import OrderKind
from emberlake.compaction.sort_compact import sort_bucket
from emberlake.errors import ColumnNotFound, InvalidInput, Unsupported
from emberlake.expressions.query_auth import seeing_all
from emberlake.predicates import Predicate
from emberlake.session.write_session import WriteSession
from emberlake.spec.schema import TableSchema
from emberlake.spec.support import check_compactable
from emberlake.store.table_store import TableStore
from emberlake.types import AtomicType
from emberlake.wire import BaseSnapshot, CommitMessage


def order_kind(text: str) -> OrderKind:
    """The order of that name.

    Raises:
        InvalidInput: there is no such order.
    """
    try:
        return OrderKind(text.lower())
    except ValueError as error:
        kinds = ", ".join(OrderKind)
        raise InvalidInput(f"there is no order {text!r}; there are {kinds}") from error


def sort_table(
    store: TableStore,
    commit_user: str,
    columns: Sequence[str],
    kind: OrderKind,
    where: Predicate | None,
) -> CommitResult:
    """Sort the buckets of all partitions, or of those that match; each is held in memory.

    Raises:
        CommitConflict: another writer replaced the same files; nothing changes.
    """
    snapshot = store.snapshots.latest()
    store = seeing_all(with_present_schema(store), "compacted")
    check_compactable(store.schema)
    _check_sortable(store.schema, columns)
    base = BaseSnapshot.of(snapshot)
    messages: list[CommitMessage] = []
    with store.decoding_rows():
        try:
            for bucket in load_buckets(store, snapshot, where):
                messages.append(sort_bucket(bucket, columns, kind, base))  # noqa: PERF401
        except BaseException:
            discard(store, messages)
            raise
    return WriteSession(store, commit_user).commit_or_abort(messages)


def _check_sortable(schema: TableSchema, columns: Sequence[str]) -> None:
    if schema.profile.has_keys or schema.profile.has_buckets or schema.profile.evolves_data:
        raise Unsupported(
            "only append tables without buckets and without data evolution can be sorted; other "
            "tables already order their rows"
        )
    if not columns:
        raise InvalidInput("say by which columns to sort")
    names = schema.field_by_name
    unknown = [name for name in columns if name not in names]
    if unknown:
        raise ColumnNotFound(
            f"no such columns: {', '.join(unknown)}; {choices(unknown, list(names), 'there are')}"
        )
    fixed = [name for name in columns if name in schema.partition_keys]
    nested = [name for name in columns if not isinstance(names[name].type, AtomicType)]
    if fixed or nested:
        raise InvalidInput(
            f"rows cannot be sorted by {', '.join(fixed + nested)}: partition columns are the same "
            "in all rows of a partition, and nested values have no order"
        )

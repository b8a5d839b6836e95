"""Delete and update the rows that a condition selects."""

from collections.abc import Iterable, Mapping

from emberlake.base.names import listed
from emberlake.errors import InvalidInput, Unsupported
from emberlake.expressions import bind_each
from emberlake.options import DELETION_VECTORS
from emberlake.predicates import Predicate, columns_of
from emberlake.rowops.attempts import present, run_change
from emberlake.rowops.clauses import Action, Clause, Editor
from emberlake.rowops.edits import FileEdit, Prepared, write_edits
from emberlake.rowops.find import bind_where, find_edits, table_scope
from emberlake.rowops.key_changes import check_key_changes, found_rows, write_key_changes
from emberlake.rowops.result import RowChangeResult, Strategy, Tally, strategy_of
from emberlake.session.write_session import WriteSession
from emberlake.spec.schema import TableSchema
from emberlake.spec.snapshot import Operation, Snapshot


def delete_rows(
    session: WriteSession, where: Predicate | str, *, is_dry: bool = False
) -> RowChangeResult:
    """Delete the rows for which a condition is true; not those for which it is unknown.

    Args:
        session: The write.
        where: Text, or a predicate.
        is_dry: Whether rows are only counted.

    Raises:
        InvalidExpression, InvalidPredicate, ColumnNotFound: the condition does not fit the table.
        Unsupported: rows of this table cannot be deleted.
        CommitConflict: others changed the same rows again and again.
    """
    if where is None:
        raise InvalidInput("say which rows to delete; all of them are deleted by truncate_table()")
    return _run(session, where, None, is_dry=is_dry)


def update_rows(
    session: WriteSession,
    values: Mapping[str, object],
    where: Predicate | str | None = None,
    *,
    is_dry: bool = False,
) -> RowChangeResult:
    """Set columns of the rows for which a condition is true.

    Args:
        session: The write.
        values: By column, an expression in text, or a value.
        where: Text, or a predicate; None: all rows.
        is_dry: Whether rows are only counted.

    Raises:
        InvalidExpression, InvalidPredicate, ColumnNotFound: values or condition do not fit.
        DataMismatch: a value cannot be computed, or does not fit its column; nothing changes.
        Unsupported: rows of this table cannot be updated like this.
        CommitConflict: others changed the same rows again and again.
    """
    if not values:
        raise InvalidInput(
            "say what to set: a dictionary of columns and their new values, such as "
            '{"price": "price * 1.1"}'
        )
    return _run(session, where, values, is_dry=is_dry)


def check_changes(
    schema: TableSchema, *, updates: bool, deletes: bool, assigned: frozenset[str]
) -> None:
    """Refuse changes that the table cannot take, before anything is read.

    Raises:
        Unsupported: says why.
    """
    match strategy_of(schema):
        case Strategy.KEYS:
            check_key_changes(schema, updates=updates, deletes=deletes, assigned=assigned)
        case Strategy.COLUMNS:
            fixed = assigned & set(schema.partition_keys)
            if fixed:
                raise Unsupported(
                    f"rows of a table with data evolution stay in their partition: "
                    f"{listed(sorted(fixed))} cannot be set. Delete the rows and append them again"
                )
            if deletes and not schema.profile.has_deletion_vectors:
                raise Unsupported(
                    "rows of a table with data evolution can only be marked as deleted, for which "
                    f"{DELETION_VECTORS.key} must be set when the table is created"
                )
        case _:
            pass


def tally_of(edits: Iterable[FileEdit], editor: Editor, session: WriteSession) -> Tally:
    """What edits would change."""
    tally = Tally()
    for edit in edits:
        if edit.positions is None:
            tally += Tally(deleted=edit.place.live_count(session.store))
        elif edit.chosen is not None:
            updated = int(editor.is_update(edit.chosen).sum())
            tally += Tally(updated=updated, deleted=len(edit.positions) - updated)
    return tally


def prepare_change(
    session: WriteSession, where: Predicate | str | None, values: Mapping[str, object] | None
) -> Prepared:
    """The messages of a delete (no values) or an update, for a commit of its own."""
    current, snapshot = present(session)
    with current.store.decoding_rows():
        return _prepare(current, snapshot, where, values)


def _run(
    session: WriteSession,
    where: Predicate | str | None,
    values: Mapping[str, object] | None,
    *,
    is_dry: bool,
) -> RowChangeResult:
    if not is_dry:
        done = Operation.TRUNCATE if values is None and _truncates(session, where) else None
        return run_change(
            session, lambda now, snapshot: _prepare(now, snapshot, where, values), done
        )
    current, snapshot = present(session)
    with current.store.decoding_rows():
        tally = _prepare(current, snapshot, where, values, is_dry=True).tally
    return tally.result(strategy_of(current.store.schema), None)


def _truncates(session: WriteSession, where: Predicate | str | None) -> bool:
    """Whether a delete takes whole partitions, which Java calls a truncation."""
    schema = session.store.schema
    condition = bind_where(where, schema)
    tested = frozenset() if condition.predicate is None else columns_of(condition.predicate)
    is_whole = condition.rest is None and tested <= set(schema.partition_keys)
    return is_whole and not schema.profile.has_keys


def _prepare(
    current: WriteSession,
    snapshot: Snapshot | None,
    where: Predicate | str | None,
    values: Mapping[str, object] | None,
    *,
    is_dry: bool = False,
) -> Prepared:
    store = current.store
    condition = bind_where(where, store.schema)
    clause = change_clause(store.schema, values)
    editor = Editor((clause,), now_ms=store.env.now_ms())
    if store.schema.profile.has_keys:
        choose = found_rows(condition, editor.now_ms)
        return write_key_changes(
            current, snapshot, editor, condition.predicate, choose, is_dry=is_dry
        )
    edits = find_edits(store, snapshot, condition, clause, editor.now_ms)
    if is_dry:
        return Prepared((), tally_of(edits, editor, current))
    return write_edits(current, snapshot, editor, edits)


def change_clause(schema: TableSchema, values: Mapping[str, object] | None) -> Clause:
    """The only clause of a delete (no values) or of an update."""
    if values is None:
        check_changes(schema, updates=False, deletes=True, assigned=frozenset())
        return Clause(Action.DELETE)
    if not isinstance(values, Mapping):
        raise InvalidInput(
            "an update takes a dictionary of columns, as in {'price': 'price * 2'}, not "
            f"{values!r}"
        )
    bound = bind_each(list(values.items()), schema.fields, table_scope(schema))
    check_changes(schema, updates=True, deletes=False, assigned=frozenset(bound))
    return Clause(Action.UPDATE, values=bound)

"""Carry out what a query has decided about rows: update, delete or insert, in one commit."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from emberlake.expressions import Scope, Source, bind_each
from emberlake.rowops.change import check_changes
from emberlake.rowops.clauses import Action, Choice, Clause, Editor
from emberlake.rowops.edits import FileEdit, Prepared, write_edits
from emberlake.rowops.key_changes import check_new_keys, write_key_changes
from emberlake.rowops.merge_plan import quoted
from emberlake.rowops.row_actions import ACTION, INSERT, RowActions
from emberlake.session.write_session import WriteSession
from emberlake.spec.column_buffers import I64
from emberlake.spec.schema import TableSchema
from emberlake.spec.snapshot import Snapshot
from emberlake.sql.merge_text import repeated_match
from emberlake.sql.on_duckdb.target_rows import FILE, PLACE, POSITION, ROW, TargetRows
from emberlake.types import DataField, arrow_schema


def prepare_changes(
    session: WriteSession,
    snapshot: Snapshot | None,
    rows: TargetRows,
    found: pa.Table,
    actions: RowActions,
) -> Prepared:
    """Write the files of changes.

    Args:
        session: The write.
        snapshot: The state that the rows were read from.
        rows: The rows of the table.
        found: What was decided: ``PLACE``, ``ACTION``, and new values by the names of columns.
        actions: What it may do.

    Raises:
        DataMismatch: a row is to be changed twice, or a value does not fit.
        Unsupported: the table does not take such changes.
    """
    schema = session.store.schema
    check_changes(
        schema,
        updates=bool(actions.sets),
        deletes=actions.deletes,
        assigned=frozenset(actions.sets),
    )
    is_new = pc.equal(found.column(ACTION), INSERT)
    new = found.filter(is_new).select(list(actions.inserts))
    changed = _in_order(found.filter(pc.invert(is_new)))
    fields = [schema.field_by_name[name] for name in actions.sets]
    values = changed.select(list(actions.sets)).cast(arrow_schema(_nullable(fields)))
    chosen: Choice = changed.column(ACTION).to_numpy().astype(np.int8)
    editor = Editor(_clauses(schema, fields), values, session.store.env.now_ms())
    inserts = [new] if new.num_rows else []
    if schema.profile.has_keys:
        check_new_keys(schema, inserts)
        old = _old_rows(changed, schema)
        matches = np.arange(changed.num_rows)
        return write_key_changes(
            session,
            snapshot,
            editor,
            None,
            lambda _: (matches, chosen, matches),
            inserts=lambda: inserts,
            given=[old] if changed.num_rows else [],
        )
    edits = _edits(rows, changed, chosen)
    return write_edits(session, snapshot, editor, edits, inserts)


def _nullable(fields: Sequence[DataField]) -> tuple[DataField, ...]:
    """The columns, before nulls have been ruled out."""
    return tuple(replace(f, type=f.type.with_nullable(True)) for f in fields)


def _clauses(schema: TableSchema, fields: Sequence[DataField]) -> tuple[Clause, ...]:
    scope = Scope((Source("t", schema.fields), Source("s", _nullable(fields))))
    given = [(f.name, quoted("s", f.name)) for f in fields]
    update = Clause(Action.UPDATE, values=bind_each(given, schema.fields, scope))
    return update, Clause(Action.DELETE)


def _in_order(changed: pa.Table) -> pa.Table:
    """Rows by their places, each of them once."""
    files, positions = _places(changed)
    order = np.lexsort((positions, files))
    files, positions = files[order], positions[order]
    if ((files[1:] == files[:-1]) & (positions[1:] == positions[:-1])).any():
        raise repeated_match()
    return changed.take(pa.array(order))


def _places(changed: pa.Table) -> tuple[I64, I64]:
    place = changed.column(PLACE).combine_chunks()
    parts = [pc.struct_field(place, name).to_numpy() for name in (FILE, POSITION)]
    return parts[0].astype(np.int64), parts[1]


def _old_rows(changed: pa.Table, schema: TableSchema) -> pa.Table:
    row = pc.struct_field(changed.column(PLACE).combine_chunks(), ROW)
    names: Sequence[str] = schema.field_names
    return pa.table({name: pc.struct_field(row, name) for name in names})


def _edits(rows: TargetRows, changed: pa.Table, chosen: Choice) -> Iterator[FileEdit]:
    files, positions = _places(changed)
    for number in np.unique(files).tolist():
        mine = np.flatnonzero(files == number)
        place = rows.reads[number].place
        yield FileEdit(place, positions[mine], chosen[mine], mine)

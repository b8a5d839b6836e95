"""DELETE, UPDATE and MERGE in this process.

Conditions and values go to the engine's own parser, which skips files that cannot match. DuckDB
decides what that parser cannot express, and MERGE (``row_queries``).
"""

from typing import Any

from emberlake.errors import InvalidExpression, Unsupported
from emberlake.spec.profile import BucketMode
from emberlake.spec.row_tracking import HIDDEN_FIELDS
from emberlake.sql.engine import Args
from emberlake.sql.evolving import is_evolving, with_new_columns
from emberlake.sql.merge_text import MergeText, columns_to_add, refuse_varying_conditions
from emberlake.sql.names import TableName, quoted
from emberlake.sql.on_duckdb.context import Local
from emberlake.sql.on_duckdb.expressions import Side, expression
from emberlake.sql.on_duckdb.row_queries import Changing
from emberlake.sql.on_duckdb.target_rows import PLACE
from emberlake.sql.parse_rows import with_ctes
from emberlake.sql.row_texts import (
    is_about_partitions,
    keeps_values,
    named,
    refuse_varying,
    takes_deletes,
)
from emberlake.sql.statements import Delete, Merge, Update
from emberlake.sql.targets import Target, changed_by
from emberlake.table import Table
from emberlake.types import AtomicType, DataField, TypeRoot


def delete(engine: Local, statement: Delete, args: Args) -> None:
    """Carry out DELETE.

    Whole partitions, or the whole table, are truncated, as in Paimon's connector.
    """
    table = engine.session.table(statement.table)
    refuse_varying(statement.where or "")
    if statement.where is None:
        table.new_batch_write_builder().new_commit().truncate_table()
        return
    if is_about_partitions(statement.where, table):
        _delete_partitions(engine, statement, args, table)
        return
    changing = Changing(engine, table, args)
    if not takes_deletes(table):
        changing.rewrite_without(statement)
        return
    side = _target(statement.table, statement.alias, table, None)
    if statement.ctes or _has_char(table) or _is_postponed(table):
        changing.delete(statement)
        return
    try:
        table.delete(expression(engine, statement.where, args, [side]))
    except _UNSAID:
        changing.delete(statement)


def _delete_partitions(engine: Local, statement: Delete, args: Args, table: Table) -> None:
    keys = ", ".join(map(quoted, table.partition_keys)) or "1"
    source = named(statement.table, statement.alias)
    text = f"{statement.ctes} SELECT DISTINCT {keys} FROM {source} WHERE ({statement.where}\n)"
    found = engine.database.stream(engine.prepare(text, args)).read_all()
    if not found.num_rows:
        return
    commit = table.new_batch_write_builder().new_commit()
    if table.partition_keys:
        commit.truncate_partitions(found.to_pylist())
    else:
        commit.truncate_table()


def update(engine: Local, statement: Update, args: Args) -> None:
    """Carry out UPDATE."""
    table = engine.session.table(statement.table)
    refuse_varying(statement.where or "")
    if not changed_by(statement, table):
        return
    changing = Changing(engine, table, args)
    if statement.ctes or _has_char(table) or _is_postponed(table) or keeps_values(table):
        changing.update(statement)
        return
    side = _target(statement.table, statement.alias, table, None)
    try:
        assigned = _assigned(engine, statement, args, table, [side])
        where = statement.where
        table.update(assigned, where and expression(engine, where, args, [side]))
    except _UNSAID:
        changing.update(statement)


# Raised for what the engine's own expressions cannot do: DuckDB can.
_UNSAID = (Unsupported, InvalidExpression)


def _has_char(table: Table) -> bool:
    """Whether strings are compared as if they were padded with spaces."""
    roots = (f.type.root for f in table.fields if isinstance(f.type, AtomicType))
    return any(root is TypeRoot.CHAR for root in roots)


def _is_postponed(table: Table) -> bool:
    """Whether SQL gives new records their buckets, which the table itself does not."""
    return table.table_schema.profile.bucket_mode is BucketMode.POSTPONED


def _target(name: TableName, alias: str | None, table: Table, called: str | None) -> Side:
    names = [(alias,)] if alias else [name.parts[-n:] for n in range(1, len(name.parts) + 1)]
    hidden = [f.name for f in HIDDEN_FIELDS if table.table_schema.profile.tracks_rows]
    return Side(tuple(names), called, (*table.field_names, *hidden))


def _assigned(
    engine: Local, statement: Update, args: Args, table: Table, sides: list[Side]
) -> dict[str, Any]:
    targets = changed_by(statement, table)
    inside = [target for target in targets if target.path]
    if inside:
        raise Unsupported(f"{inside[0].field.name} is not set as a whole")
    return {t.field.name: _value_for(engine, t, args, sides) for t in targets}


def _value_for(engine: Local, target: Target, args: Args, sides: list[Side]) -> str:
    """The value that a column gets, cast to its type; instead of NULL its default."""
    field = target.field
    text = (field.default_value or "NULL") if target.is_default else target.value
    said = _cast(expression(engine, text, args, sides), field)
    if field.default_value is None or target.is_default:
        return said
    default = _cast(expression(engine, field.default_value, args, sides), field)
    return f"coalesce({said}, {default})"


def _cast(said: str, field: DataField) -> str:
    return f"CAST({said} AS {field.type.type})" if isinstance(field.type, AtomicType) else said


# --- MERGE ----------------------------------------------------------------------------------------


def merge(engine: Local, statement: Merge, args: Args) -> None:
    """Carry out MERGE."""
    table = engine.session.table(statement.table)
    refuse_varying_conditions(statement)
    query = with_ctes(statement.ctes, f"SELECT * FROM {statement.source}")
    prepared = engine.prepare(query, args)
    evolves = statement.evolves_schema or is_evolving(engine.session)
    if evolves:
        given = columns_to_add(statement, engine.database.fields(prepared, table.fields))
        table = with_new_columns(table, statement.table, given, engine.session)
    names = [name for name, _ in engine.database.columns(prepared)]
    text = MergeText(statement, table, PLACE, names, fills=evolves)
    Changing(engine, table, args).merge(text)

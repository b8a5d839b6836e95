"""Adds columns that only the source of a write has, if a setting asks for it."""

from collections.abc import Iterator, Sequence
from typing import Final

from emberlake.spec.schema_change import SchemaChange
from emberlake.sql.commands.context import Session
from emberlake.sql.names import TableName
from emberlake.sql.targets import by_lower_name
from emberlake.table import Table
from emberlake.types import ArrayType, DataField, DataType, MapType, RowType

_MERGE_SCHEMA: Final = "spark.paimon.write.merge-schema"


def is_evolving(session: Session) -> bool:
    """Whether writes add columns."""
    return session.engine.settings().get(_MERGE_SCHEMA, "").lower() == "true"


def with_new_columns(
    table: Table,
    name: TableName,
    given: Sequence[DataField],
    session: Session,
    *,
    nested: bool = False,
) -> Table:
    """The table with the columns that only the source has, as nullable ones at its end.

    Args:
        table: The table.
        name: Its name in the statement.
        given: The columns of the source.
        session: Where the table is altered.
        nested: Whether fields of structs are added, too.
    """
    changes = list(_new_fields(table.fields, given, (), nested=nested))
    if not changes:
        return table
    session.catalog.alter_table(table.identifier, changes)
    return session.table(name)


def _new_fields(
    fields: Sequence[DataField],
    given: Sequence[DataField],
    path: tuple[str, ...],
    *,
    nested: bool,
) -> Iterator[SchemaChange]:
    known = by_lower_name(fields)
    for new in given:
        old = known.get(new.name.lower())
        if old is None:
            yield SchemaChange.add_column((*path, new.name), new.type.with_nullable(True))
        elif nested:
            yield from _new_inside(old.type, new.type, (*path, old.name))


def _new_inside(old: DataType, new: DataType, path: tuple[str, ...]) -> Iterator[SchemaChange]:
    match old, new:
        case RowType(fields=fields), RowType(fields=given):
            yield from _new_fields(fields, given, path, nested=True)
        case ArrayType(element=inner), ArrayType(element=given_inner):
            yield from _new_inside(inner, given_inner, (*path, "element"))
        case MapType(value=inner), MapType(value=given_inner):
            yield from _new_inside(inner, given_inner, (*path, "value"))
        case _:  # values are cast to the type that the column has
            return

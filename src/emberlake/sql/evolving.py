"""Adds columns that only the source of a write has, and widens others, if settings ask for it."""

from collections.abc import Iterator, Sequence
from typing import Final

from emberlake.errors import DataMismatch
from emberlake.spec.schema_change import SchemaChange
from emberlake.spec.widening import is_widening
from emberlake.sql.commands.context import Session
from emberlake.sql.names import TableName
from emberlake.sql.targets import by_lower_name
from emberlake.table import Table
from emberlake.types import ArrayType, AtomicType, DataField, DataType, MapType, RowType

_MERGE_SCHEMA: Final = "spark.paimon.write.merge-schema"
_WIDENING: Final = f"{_MERGE_SCHEMA}.type-widening"


def is_evolving(session: Session) -> bool:
    """Whether writes add columns."""
    return _is_set(session, _MERGE_SCHEMA)


def _is_set(session: Session, setting: str) -> bool:
    return session.engine.settings().get(setting, "").lower() == "true"


def with_new_columns(
    table: Table,
    name: TableName,
    given: Sequence[DataField],
    session: Session,
    *,
    nested: bool = False,
) -> Table:
    """The table with the columns that only the source has, as nullable ones at its end.

    Columns get the wider type of the source if ``write.merge-schema.type-widening`` is set.

    Args:
        table: The table.
        name: Its name in the statement.
        given: The columns of the source.
        session: Where the table is altered.
        nested: Whether fields of structs are added, too.

    Raises:
        DataMismatch: types are to be widened, and neither type of a column holds all values.
    """
    changes = list(_new_fields(table.fields, given, (), nested=nested))
    if _is_set(session, _WIDENING):
        changes += _widened(table.fields, given, ())
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


def _widened(
    fields: Sequence[DataField], given: Sequence[DataField], path: tuple[str, ...]
) -> Iterator[SchemaChange]:
    known = by_lower_name(fields)
    for new in given:
        old = known.get(new.name.lower())
        if old is None:
            continue
        inner = (*path, old.name)
        match old.type, new.type:
            case RowType(fields=inside), RowType(fields=given_inside):
                yield from _widened(inside, given_inside, inner)
            case (AtomicType() as present, AtomicType() as wanted) if not _holds(present, wanted):
                if not _holds(wanted, present):
                    raise DataMismatch(
                        f"{'.'.join(inner)} is {present} and the source gives {wanted}: types only "
                        "widen; CAST the values, or alter the column"
                    )
                yield SchemaChange.update_column_type(list(inner), wanted, keep_nullability=True)
            case _:
                continue


def _holds(wide: AtomicType, narrow: AtomicType) -> bool:
    """Whether a type holds all values of another one of its kind."""
    is_alike = (wide.root.is_number and narrow.root.is_number) or (
        wide.root.is_text and narrow.root.is_text
    )
    same = wide.with_nullable(True) == narrow.with_nullable(True)
    return same or (is_alike and is_widening(narrow, wide))

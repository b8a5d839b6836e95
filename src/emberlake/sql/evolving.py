"""Adds columns that only the source of a write has, if a setting asks for it."""

from collections.abc import Sequence
from typing import Final

from emberlake.spec.schema_change import SchemaChange
from emberlake.sql.commands.context import Session
from emberlake.sql.names import TableName
from emberlake.sql.targets import by_lower_name
from emberlake.table import Table
from emberlake.types import DataField

_MERGE_SCHEMA: Final = "spark.paimon.write.merge-schema"


def is_evolving(session: Session) -> bool:
    """Whether writes add columns."""
    return session.engine.settings().get(_MERGE_SCHEMA, "").lower() == "true"


def with_new_columns(
    table: Table, name: TableName, given: Sequence[DataField], session: Session
) -> Table:
    """The table with the columns that only the source has, as nullable ones at its end."""
    known = by_lower_name(table.fields)
    fields = [f for f in given if f.name.lower() not in known]
    if not fields:
        return table
    changes = [SchemaChange.add_column(f.name, f.type.with_nullable(True)) for f in fields]
    session.catalog.alter_table(table.identifier, changes)
    return session.table(name)

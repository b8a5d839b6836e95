"""The procedure that copies a table."""

from typing import Final

import pyarrow as pa

from emberlake.errors import InvalidInput
from emberlake.spec.schema import Schema
from emberlake.sql.commands.context import Session
from emberlake.sql.commands.procedures.arguments import (
    Arguments,
    Procedure,
    done,
    optional,
    required,
    table_name,
)
from emberlake.sql.commands.run_tables import identifier_of
from emberlake.sql.lexer import tokenize
from emberlake.sql.statements import Insert
from emberlake.table import Table


def copy(session: Session, given: Arguments) -> pa.Table:
    """Carry out ``sys.copy``: the partitions of one table replace those of another."""
    source, target = table_name(given["source_table"]), table_name(given["target_table"])
    table = session.table(source)
    condition = _condition(table, given["where"])
    if session.find(target) is None:
        _create_like(session, table, given["target_table"])
    if table.latest_snapshot() is not None:
        query = f"SELECT * FROM {source}{condition}"
        session.run(Insert(table=target, query=query, overwrite=True, is_dynamic=True), {})
    return done()


def _create_like(session: Session, table: Table, target: str) -> None:
    identifier = identifier_of(session, table_name(target))
    old = table.table_schema
    options = {key: value for key, value in old.options.items() if key != "path"}
    schema = Schema(old.fields, old.partition_keys, old.primary_keys, options, old.comment)
    session.catalog.create_database(identifier.database, True)
    session.catalog.create_table(identifier, schema)


def _condition(table: Table, said: str | None) -> str:
    """WHERE with a condition on partitions."""
    if said is None or not said.strip():
        return ""
    others = {name.lower() for name in table.field_names} - {
        name.lower() for name in table.partition_keys
    }
    named = sorted({t.name for t in tokenize(said) if t.is_name and t.name.lower() in others})
    if named:
        raise InvalidInput(
            f"sys.copy copies whole partitions of {table.identifier}: where cannot name "
            + ", ".join(named)
        )
    return f" WHERE {said}"


COPYING: Final = (
    Procedure(
        "copy", (required("source_table"), required("target_table"), optional("where")), copy
    ),
)

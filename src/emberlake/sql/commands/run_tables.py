"""Carry out CREATE and DROP TABLE."""

from collections.abc import Sequence
from typing import Final

from emberlake.base.names import choices
from emberlake.catalog.rules import first_schema
from emberlake.errors import ColumnNotFound, InvalidSchema, TableNotFound, Unsupported
from emberlake.spec.identifier import Identifier
from emberlake.spec.schema import Schema
from emberlake.sql.commands.context import Session
from emberlake.sql.commands.values import CreateTableLike, DropTable
from emberlake.sql.names import DEFAULT_DATABASE, TableName
from emberlake.sql.statements import CreateTable
from emberlake.types import DataField

# What Spark calls the format of Paimon's connector, and ours.
_PROVIDERS: Final = ("paimon", "emberlake")


def identifier_of(session: Session, name: TableName) -> Identifier:
    """The table of the lake that a name refers to.

    Raises:
        TableNotFound: it cannot be a table of the lake.
    """
    identifier = session.identify(name)
    if identifier is None:
        raise TableNotFound(
            f"[TABLE_OR_VIEW_NOT_FOUND] {name} is not a table name: names have the form t, db.t "
            f"or {session.name}.db.t"
        )
    return identifier


def create_table(command: CreateTable, session: Session) -> None:
    """Carry out CREATE TABLE, CREATE OR REPLACE TABLE and REPLACE TABLE."""
    _check_provider(command.provider)
    if command.location is not None:
        raise Unsupported("LOCATION is not supported: the catalog decides where its tables are")
    identifier, schema = identifier_of(session, command.table), declared_schema(command)
    _make_default_database(session, identifier)
    if not command.replace:
        session.catalog.create_table(identifier, schema, command.if_not_exists)
        return
    if not command.must_exist and not exists(session, identifier):
        session.catalog.create_table(identifier, schema)
        return
    if not starts_over(command, session):
        session.catalog.replace_table(identifier, schema)
        return
    first_schema(identifier, schema, {}, 0)  # nothing is dropped if the new table is invalid
    session.catalog.drop_table(identifier)
    session.catalog.create_table(identifier, schema)


def starts_over(command: CreateTable, session: Session) -> bool:
    """Whether REPLACE drops a table: snapshots with other partition columns cannot be kept.

    As in Java.
    """
    if not command.replace or not exists(session, identifier_of(session, command.table)):
        return False
    old = session.table(command.table)
    return tuple(old.partition_keys) != declared_schema(command).partition_keys


def create_table_like(command: CreateTableLike, session: Session) -> None:
    """Carry out CREATE TABLE ... LIKE."""
    _check_provider(command.provider)
    source = session.table(command.source).table_schema
    # Keys, and options that name columns, are those of the other table.
    schema = Schema(
        source.fields,
        source.partition_keys,
        source.primary_keys,
        {**source.options, **dict(command.properties)},
        source.comment,
    )
    identifier = identifier_of(session, command.table)
    _make_default_database(session, identifier)
    session.catalog.create_table(identifier, schema, command.if_not_exists)


def _check_provider(provider: str | None) -> None:
    if provider is not None and provider.lower() not in _PROVIDERS:
        raise Unsupported(
            f"USING {provider}: the tables of this catalog are Paimon tables; write USING paimon, "
            "or leave it out"
        )


def _make_default_database(session: Session, identifier: Identifier) -> None:
    """Create the default database with its first table, for users who name no database."""
    is_default = identifier.database == DEFAULT_DATABASE
    if is_default and DEFAULT_DATABASE not in session.catalog.list_databases():
        session.catalog.create_database(DEFAULT_DATABASE, True)


def drop_table(command: DropTable, session: Session) -> None:
    """Carry out DROP TABLE."""
    session.catalog.drop_table(identifier_of(session, command.table), command.if_exists)


def exists(session: Session, identifier: Identifier) -> bool:
    """Whether there is a table of that name."""
    return (
        identifier.database in session.catalog.list_databases()
        and identifier.table in session.catalog.list_tables(identifier.database)
    )


def declared_schema(command: CreateTable) -> Schema:
    """The schema that CREATE TABLE declares.

    Raises:
        InvalidSchema: two columns have the same name, ignoring case.
        ColumnNotFound: it is partitioned by a column that it does not have.
    """
    _refuse_twins(command.columns)
    names = {f.name.lower(): f.name for f in command.columns}
    unknown = [name for name in command.partitioned_by if name.lower() not in names]
    if unknown:
        there_are = choices(unknown, list(names.values()), "there are")
        raise ColumnNotFound(
            f"PARTITIONED BY ({', '.join(unknown)}): there is no such column; {there_are}"
        )
    options = dict(command.properties)
    said = options.pop("comment", None)
    partition_keys = [names[name.lower()] for name in command.partitioned_by]
    comment = said if command.comment is None else command.comment
    return Schema(command.columns, partition_keys, None, options, comment)


def _refuse_twins(fields: Sequence[DataField]) -> None:
    seen: set[str] = set()
    for field in fields:
        if field.name.lower() in seen:
            raise InvalidSchema(
                f"[COLUMN_ALREADY_EXISTS] column {field.name} is declared twice: column names are "
                "case-insensitive in SQL"
            )
        seen.add(field.name.lower())

"""Carry out statements about databases."""

import warnings

import pyarrow as pa

from emberlake.errors import DatabaseNotFound, EmberlakeWarning, Unsupported
from emberlake.spec.identifier import SYSTEM_DATABASE
from emberlake.sql.commands.answers import matching, texts_of
from emberlake.sql.commands.context import Session
from emberlake.sql.commands.types import quoted_if_needed
from emberlake.sql.commands.values import (
    CreateDatabase,
    DescribeDatabase,
    DropDatabase,
    ShowCurrentNamespace,
    ShowDatabases,
    Use,
    UseCatalog,
)
from emberlake.sql.names import DEFAULT_DATABASE, TableName


def database_of(session: Session, name: TableName | None) -> str:
    """The database that a name refers to: ``db`` or ``paimon.db``; None: the current one."""
    match name:
        case None:
            return session.database
        case TableName((database,)):
            return database
        case TableName((catalog, database)) if catalog.lower() == session.name.lower():
            return database
        case _:
            raise DatabaseNotFound(
                f"[SCHEMA_NOT_FOUND] there is no database {name}: names have the form db or "
                f"{session.name}.db"
            )


def is_missing_default(session: Session, database: str) -> bool:
    """Whether it is the default database, which is there for statements before it has a table."""
    return database == DEFAULT_DATABASE and database not in session.catalog.list_databases()


def create_database(command: CreateDatabase, session: Session) -> None:
    """Carry out CREATE DATABASE."""
    name = database_of(session, command.database)
    properties = dict(command.properties)
    try:
        session.catalog.create_database(name, command.if_not_exists, properties or None)
    except Unsupported:
        if not properties or "location" in properties:
            raise
        # As in Java: a folder has no properties, and is created without them.
        session.catalog.create_database(name, command.if_not_exists)
        warnings.warn(
            f"database {name} was created without {', '.join(sorted(properties))}: this catalog "
            "does not store database properties",
            EmberlakeWarning,
            stacklevel=2,
        )


def drop_database(command: DropDatabase, session: Session) -> None:
    """Carry out DROP DATABASE."""
    name = database_of(session, command.database)
    session.catalog.drop_database(name, command.if_exists, command.cascade)


def use(command: Use, session: Session) -> None:
    """Carry out USE."""
    is_catalog = command.database.parts == (session.name,)
    if is_catalog and session.name not in session.catalog.list_databases():
        return
    name = database_of(session, command.database)
    if name not in (SYSTEM_DATABASE, DEFAULT_DATABASE):  # these need not be there
        session.catalog.get_database(name)
    session.database = name


def use_catalog(command: UseCatalog, session: Session) -> None:
    """Carry out SET CATALOG."""
    if command.catalog.lower() != session.name.lower():
        raise Unsupported(
            f"SET CATALOG {command.catalog}: statements are about {session.name}; write "
            f"{command.catalog}.db.t for a table of another catalog"
        )


def describe_database(command: DescribeDatabase, session: Session) -> pa.Table:
    """Carry out DESCRIBE DATABASE."""
    name = database_of(session, command.database)
    rows = [("Catalog Name", session.name), ("Namespace Name", quoted_if_needed(name))]
    if is_missing_default(session, name):
        return texts_of(("info_name", "info_value"), rows)
    database = session.catalog.get_database(name)
    if database.comment:
        rows.append(("Comment", database.comment))
    if command.is_extended:
        shown = ", ".join(f"({key},{value})" for key, value in sorted(database.options.items()))
        rows.append(("Properties", f"({shown})" if shown else ""))
    return texts_of(("info_name", "info_value"), rows)


def show_databases(command: ShowDatabases, session: Session) -> pa.Table:
    """Carry out SHOW DATABASES."""
    if command.within is not None and command.within.parts != (session.name,):
        return texts_of(("namespace",), [])  # there are no databases in databases
    found = sorted({*session.catalog.list_databases(), DEFAULT_DATABASE})
    names = matching([quoted_if_needed(name) for name in found], command.pattern)
    return texts_of(("namespace",), [(name,) for name in names])


def show_current(_: ShowCurrentNamespace, session: Session) -> pa.Table:
    """Carry out SHOW CURRENT NAMESPACE."""
    return texts_of(("catalog", "namespace"), [(session.name, quoted_if_needed(session.database))])

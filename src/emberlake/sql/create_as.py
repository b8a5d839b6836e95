"""CREATE TABLE ... AS and REPLACE TABLE ... AS: if the query fails, everything is as before.

The rows are written before a table that is there changes. Only then is it replaced, which takes a
few requests.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from emberlake.catalog.target import dropped_unless_written, replaced
from emberlake.errors import EmberlakeError, InvalidState, TableAlreadyExists, Unsupported
from emberlake.sql.commands.context import Session
from emberlake.sql.commands.run_tables import (
    create_table,
    declared_schema,
    exists,
    identifier_of,
    starts_over,
)
from emberlake.sql.engine import Rows
from emberlake.sql.names import TableName
from emberlake.sql.statements import CreateTable, CreateTableAs

_ID_LENGTH: Final = 8  # of a name that nobody else has


def create_table_as(
    statement: CreateTableAs, rows_of: Callable[[str], Rows], session: Session
) -> None:
    """Make a table of the rows of a query.

    Args:
        statement: The statement.
        rows_of: Gives the rows of a query.
        session: Where the table is.
    """
    rows = rows_of(statement.query)
    create = replace(statement.create, columns=rows.fields, if_not_exists=False)
    is_there = create.replace and exists(session, identifier_of(session, create.table))
    if not is_there:
        try:
            _create(create, rows, session, replaces=create.replace)
        except TableAlreadyExists:
            if not statement.create.if_not_exists:
                raise
            # somebody else was faster
    elif starts_over(create, session):
        _start_over(create, rows, rows_of, session)
    else:
        _replace(create, rows, session)


def _create(create: CreateTable, rows: Rows, session: Session, *, replaces: bool) -> None:
    create_table(create, session)
    table = session.table(create.table)
    with dropped_unless_written(session.catalog, identifier_of(session, create.table), table):
        rows.write(table, replaces=replaces).commit()


def _replace(create: CreateTable, rows: Rows, session: Session) -> None:
    """Give a table other columns and rows; earlier snapshots stay readable."""
    identifier, schema = identifier_of(session, create.table), declared_schema(create)
    future = replaced(session.catalog, identifier, schema)
    written = rows.write(session.with_settings(future), replaces=True)
    try:
        session.catalog.replace_table(identifier, schema)
    except BaseException:
        written.discard()
        raise
    written.commit()


def _start_over(
    create: CreateTable, rows: Rows, rows_of: Callable[[str], Rows], session: Session
) -> None:
    """Put a new table in the place of one whose snapshots have other partition columns.

    The new one has a name of its own until it has all rows.
    """
    old = session.table(create.table)
    *database, name = create.table.parts
    aside = TableName((*database, f"{name}__{old.store.env.new_id()[:_ID_LENGTH]}"))
    _create(replace(create, table=aside, replace=False), rows, session, replaces=True)
    try:
        session.catalog.drop_table(identifier_of(session, create.table))
        _take_place(create, aside, rows_of, session)
    except EmberlakeError as error:
        raise InvalidState(
            f"{create.table} cannot be replaced ({error}); the rows of the query are in {aside}"
        ) from error


def _take_place(
    create: CreateTable, aside: TableName, rows_of: Callable[[str], Rows], session: Session
) -> None:
    new, identifier = identifier_of(session, aside), identifier_of(session, create.table)
    try:
        session.catalog.rename_table(new, identifier)
    except Unsupported:  # on object stores tables cannot be renamed
        rows = rows_of(f"SELECT * FROM {aside}")
        _create(replace(create, replace=False), rows, session, replaces=True)
        session.catalog.drop_table(new)

"""Bring a dropped table back.

The rows are written first, and the folder is moved before they become visible. A server that dies
between the two leaves a dropped table in its old folder, which is moved aside again.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from emberlake.errors import DatabaseNotFound, NotFound, TableAlreadyExists
from emberlake.options import TYPE
from emberlake.server.access.grants import Resource, ResourceKind
from emberlake.server.access.principals import own
from emberlake.server.calls import Services
from emberlake.server.database.database import Statements, TakenError
from emberlake.server.endpoints.creation import check_name_free
from emberlake.server.endpoints.dropping import BEING_DELETED
from emberlake.server.heads import schema_text
from emberlake.server.records import DATABASE, insert, new_audit
from emberlake.server.warehouses import Warehouse
from emberlake.spec.identifier import MAIN_BRANCH, Identifier
from emberlake.spec.layout import TableLayout
from emberlake.store.schemas import SchemaStore


@dataclass(frozen=True)
class _Dropped:
    """A row of a dropped table."""

    id: str
    database: str
    name: str
    path: str
    kept_at: str | None
    is_external: int
    owner: str


def restore(services: Services, warehouse: Warehouse, table_id: str, new_name: str | None) -> str:
    """Bring a dropped table back, under its old name or another; returns the name.

    Raises:
        NotFound: there is no such table, or no database for it.
        TableAlreadyExists: the name is taken.
    """
    try:
        with services.database.lock(table_id), services.database.transaction() as session:
            table = _find(session, warehouse, table_id)
            name = Identifier(table.database, new_name or table.name)
            _restore(services, session, warehouse, table, name)
    except TakenError:
        raise TableAlreadyExists(f"the folder of {table.name} belongs to another table") from None
    services.on_access_changed()
    return f"{name.database}.{name.table}"


def _find(session: Statements, warehouse: Warehouse, table_id: str) -> _Dropped:
    rows = session.run(
        "SELECT id, database_name, name, path, kept_at, is_external, owner FROM dropped "
        "WHERE catalog = ? AND id = ? AND dropped_at > ?",
        warehouse.name,
        table_id,
        BEING_DELETED,
    )
    if not rows:
        raise NotFound(f"no dropped table has the id {table_id}; its files may be deleted by now")
    return _Dropped(*rows[0])


def _restore(
    services: Services,
    session: Statements,
    warehouse: Warehouse,
    table: _Dropped,
    name: Identifier,
) -> None:
    database_id = _database_of(services, session, warehouse, table.database)
    try:
        check_name_free(session, database_id, name)
    except TableAlreadyExists as error:
        raise TableAlreadyExists(f"{error}; restore the table under another name") from error
    storage, aside = warehouse.storage, table.kept_at
    is_aside = aside is not None and storage.exists(aside)
    folder = table.path
    if is_aside and storage.exists(folder):
        folder = warehouse.table_path(name.database, name.table, table.id[:8])
    _add_rows(services, session, warehouse, table, (database_id, name, folder, is_aside))
    if is_aside and aside is not None:
        storage.move_folder(aside, folder)


def _database_of(
    services: Services, session: Statements, warehouse: Warehouse, database: str
) -> str:
    rows = session.run(DATABASE + services.database.lock_row, warehouse.name, database)
    if not rows:
        raise DatabaseNotFound(
            f"database {database!r} does not exist; create it first", database=database
        )
    return str(rows[0][0])


def _add_rows(
    services: Services,
    session: Statements,
    warehouse: Warehouse,
    table: _Dropped,
    place: tuple[str, Identifier, str, bool],
) -> None:
    database_id, name, folder, is_aside = place
    now = services.env.now_ms()
    files = table.kept_at if is_aside and table.kept_at is not None else folder
    schema = SchemaStore(warehouse.files, TableLayout(files)).latest()
    if schema is None:
        raise NotFound(f"the files of {table.database}.{table.name} are gone from {files}")
    rows: Mapping[str, Mapping[str, Any]] = {
        "tables": {
            "id": table.id,
            "database_id": database_id,
            "name": name.table,
            "path": folder,
            "is_external": table.is_external,
            **new_audit(table.owner, now),
        },
        "branches": {
            "table_id": table.id,
            "name": MAIN_BRANCH,
            "schema_id": schema.id,
            "schema": schema_text(schema),
            "type": schema.options.value(TYPE),
            "pending_since": now,  # the first request reads the snapshot
        },
    }
    for into, values in rows.items():
        sql, arguments = insert(into, values)
        session.run(sql, *arguments)
    session.run("DELETE FROM dropped WHERE id = ?", table.id)
    resource = Resource(ResourceKind.TABLE, name.database, name.table)
    own(session, warehouse.name, table.owner, resource, services.env)

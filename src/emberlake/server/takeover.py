"""Take over a filesystem warehouse, and give it back: only rows change, no file is moved.

A table that was renamed while the server had it is in a folder with its old name. Giving back moves
such folders only on request.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from emberlake.catalog.filesystem import FileSystemCatalog
from emberlake.errors import CorruptFile, InvalidState, Unsupported
from emberlake.options import TYPE
from emberlake.server.access.grants import Resource, ResourceKind
from emberlake.server.access.principals import forget_grants
from emberlake.server.calls import Services
from emberlake.server.database.database import Statements
from emberlake.server.endpoints.dropping import settle_dropped
from emberlake.server.heads import schema_text
from emberlake.server.records import DATABASE, insert, new_audit
from emberlake.server.warehouses import Warehouse
from emberlake.spec.layout import TableLayout
from emberlake.spec.schema import TableSchema
from emberlake.store.schemas import SchemaStore

_OWNER = "admin"


@dataclass(frozen=True)
class Takeover:
    """What was registered, what was known before, and what a server cannot have."""

    databases: tuple[str, ...]
    tables: tuple[str, ...]
    known: int
    left_out: tuple[str, ...]


@dataclass(frozen=True)
class Release:
    """What was given back, which folders were moved for it, and what is forgotten."""

    tables: int
    moved: tuple[str, ...]
    forgotten: tuple[str, ...]


def register_warehouse(services: Services, warehouse: Warehouse) -> Takeover:
    """Register all databases and tables of a folder that are not registered yet."""
    catalog = FileSystemCatalog(warehouse.files, warehouse.location, env=services.env)
    databases, tables, left_out, known = [], [], [], 0
    for database in catalog.list_databases():
        found = [
            (name, _schema_of(warehouse, database, name)) for name in catalog.list_tables(database)
        ]
        with services.database.transaction() as session:
            database_id, is_new = _add_database(services, session, warehouse, database)
            for name, schema in found:
                if schema is None:
                    left_out.append(f"{database}.{name}")
                elif _add_table(
                    services, session, warehouse, (database_id, database, name, schema)
                ):
                    tables.append(f"{database}.{name}")
                else:
                    known += 1
        databases.extend([database] if is_new else [])
    return Takeover(tuple(databases), tuple(tables), known, tuple(left_out))


def release_warehouse(services: Services, warehouse: Warehouse, *, move: bool) -> Release:
    """Forget a warehouse, so that it is a filesystem catalog again.

    Args:
        services: Those of the server, which must not be running.
        warehouse: Which one.
        move: Whether to move the folders of tables that were renamed.

    Raises:
        InvalidState: tables were renamed, and their folders are not to be moved.
    """
    settle_dropped(services, warehouse)
    tables = services.database.run(
        "SELECT d.name, t.name, t.path, t.is_external FROM databases d "
        "JOIN tables t ON t.database_id = d.id WHERE d.catalog = ? ORDER BY d.name, t.name",
        warehouse.name,
    )
    renamed = [
        (path, warehouse.table_path(database, name))
        for database, name, path, is_external in tables
        if not is_external and path != warehouse.table_path(database, name)
    ]
    if renamed and not move:
        lines = ", ".join(f"{old} -> {new}" for old, new in renamed[:5])
        raise InvalidState(
            f"{len(renamed)} tables are in folders with other names, as a filesystem catalog would "
            f"show them: {lines}; move the folders with --move, or rename the tables back"
        )
    if renamed and not warehouse.storage.traits.moves_folders:
        raise Unsupported(f"the storage of {warehouse.location} cannot move folders")
    _move_all(services, warehouse, renamed)
    objects = services.database.run(
        "SELECT o.kind, d.name, o.name FROM databases d JOIN objects o ON o.database_id = d.id "
        "WHERE d.catalog = ? ORDER BY d.name, o.name",
        warehouse.name,
    )
    external = [f"external table {d}.{t} at {p}" for d, t, p, is_external in tables if is_external]
    kept = _dropped_tables(services, warehouse)
    _forget(services, warehouse)
    return Release(
        sum(not is_external for *_, is_external in tables),
        tuple(new for _, new in renamed),
        (*external, *kept, *(f"{kind} {database}.{name}" for kind, database, name in objects)),
    )


def _dropped_tables(services: Services, warehouse: Warehouse) -> list[str]:
    """The dropped tables whose files are still there: from now on nobody deletes them."""
    rows = services.database.run(
        "SELECT database_name, name, path, kept_at FROM dropped "
        "WHERE catalog = ? AND is_external = 0 ORDER BY database_name, name",
        warehouse.name,
    )
    return [
        f"dropped table {d}.{t}, whose files are at {kept or path}" for d, t, path, kept in rows
    ]


def unregistered(services: Services, warehouse: Warehouse) -> int:
    """How many tables of the folder the server does not know, if it knows none at all."""
    if services.database.run("SELECT id FROM databases WHERE catalog = ? LIMIT 1", warehouse.name):
        return 0
    catalog = FileSystemCatalog(warehouse.files, warehouse.location, env=services.env)
    return sum(len(catalog.list_tables(name)) for name in catalog.list_databases())


def _schema_of(warehouse: Warehouse, database: str, name: str) -> TableSchema | None:
    """The schema of a table; None if a server cannot have such a table."""
    try:
        layout = TableLayout(warehouse.table_path(database, name))
        schema = SchemaStore(warehouse.files, layout).latest()
    except (CorruptFile, Unsupported, ValueError):
        return None
    is_table = schema is not None and schema.options.value(TYPE).lower() == TYPE.default
    return schema if is_table else None


def _add_database(
    services: Services, session: Statements, warehouse: Warehouse, name: str
) -> tuple[str, bool]:
    rows = session.run(DATABASE, warehouse.name, name)
    if rows:
        return rows[0][0], False
    values = {
        "id": services.env.new_id(),
        "catalog": warehouse.name,
        "name": name,
        "options": "{}",
        **new_audit(_OWNER, services.env.now_ms()),
    }
    sql, arguments = insert("databases", values)
    session.run(sql, *arguments)
    return str(values["id"]), True


def _add_table(
    services: Services,
    session: Statements,
    warehouse: Warehouse,
    table: tuple[str, str, str, TableSchema],
) -> bool:
    database_id, database, name, schema = table
    path = warehouse.table_path(database, name)
    known = "SELECT id FROM tables WHERE path = ? OR (database_id = ? AND name = ?)"
    being_created = "SELECT path FROM unfinished WHERE path = ?"
    if session.run(known, path, database_id, name) or session.run(being_created, path):
        return False
    now, table_id = services.env.now_ms(), services.env.new_id()
    rows = (
        (
            "tables",
            {
                "id": table_id,
                "database_id": database_id,
                "name": name,
                "path": path,
                "is_external": 0,
                **new_audit(_OWNER, now),
            },
        ),
        (
            "branches",
            {
                "table_id": table_id,
                "name": "main",
                "schema_id": schema.id,
                "schema": schema_text(schema),
                "type": schema.options.value(TYPE),
                "pending_since": now,  # the first request reads the snapshots
            },
        ),
    )
    for into, values in rows:
        sql, arguments = insert(into, values)
        session.run(sql, *arguments)
    return True


def _move_all(services: Services, warehouse: Warehouse, renamed: Sequence[tuple[str, str]]) -> None:
    """Move folders; those that swapped names go through a third place."""
    aside = [(old, f"{new}.{services.env.new_id()}", new) for old, new in renamed]
    for old, between, _ in aside:
        _move(services, warehouse, old, between)
    for _, between, new in aside:
        _move(services, warehouse, between, new)


def _move(services: Services, warehouse: Warehouse, old: str, new: str) -> None:
    warehouse.storage.move_folder(old, new)
    services.database.run("UPDATE tables SET path = ? WHERE path = ?", new, old)


def _forget(services: Services, warehouse: Warehouse) -> None:
    inside = "IN (SELECT id FROM databases WHERE catalog = ?)"
    tables = f"IN (SELECT id FROM tables WHERE database_id {inside})"  # noqa: S608
    with services.database.transaction() as session:
        for (name,) in session.run("SELECT name FROM databases WHERE catalog = ?", warehouse.name):
            forget_grants(session, warehouse.name, Resource(ResourceKind.DATABASE, name))
        session.run(f"DELETE FROM done_partitions WHERE table_id {tables}", warehouse.name)  # noqa: S608
        session.run(f"DELETE FROM branches WHERE table_id {tables}", warehouse.name)  # noqa: S608
        session.run(f"DELETE FROM tables WHERE database_id {inside}", warehouse.name)  # noqa: S608
        session.run(f"DELETE FROM objects WHERE database_id {inside}", warehouse.name)  # noqa: S608
        session.run("DELETE FROM grants WHERE catalog = ?", warehouse.name)
        # A later server must not delete what belongs to somebody else's table by then.
        session.run("DELETE FROM dropped WHERE catalog = ?", warehouse.name)
        for (path,) in session.run("SELECT path FROM unfinished"):
            if path.startswith(f"{warehouse.location}/"):
                session.run("DELETE FROM unfinished WHERE path = ?", path)
        session.run("DELETE FROM databases WHERE catalog = ?", warehouse.name)
        session.run("DELETE FROM catalogs WHERE name = ?", warehouse.name)

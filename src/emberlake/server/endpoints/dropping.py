"""Dropped tables: kept for a time, deleted after that.

A drop forgets the name first. Where the storage can, the folder is then moved aside in one step, so
that filesystem catalogs no longer find the table either. A table can be restored until somebody has
begun to delete its files.
"""

from contextlib import suppress
from typing import Any, Final

from emberlake.errors import EmberlakeError, StorageError
from emberlake.server.access.grants import Resource, ResourceKind
from emberlake.server.access.principals import forget_grants
from emberlake.server.calls import Call, Services
from emberlake.server.database.database import Statements
from emberlake.server.heads import table_missing
from emberlake.server.records import insert
from emberlake.server.warehouses import Warehouse
from emberlake.spec.layout import TableLayout

UNFINISHED_MS: Final = 3_600_000  # a table that takes longer to create was given up
BEING_DELETED: Final = 0  # instead of the time of the drop, once files may be gone
_TABLE: Final = (
    "SELECT t.id, t.path, t.is_external, t.owner FROM databases d "
    "JOIN tables t ON t.database_id = d.id WHERE d.catalog = ? AND d.name = ? AND t.name = ?"
)


def drop_table(services: Services, call: Call, database: str, table: str) -> None:
    """Forget a table; its files are kept for a time."""
    found = services.database.run(_TABLE, call.warehouse.name, database, table)
    if not found:
        raise table_missing(database, table)
    table_id, path, is_external, owner = found[0]
    kept_at = None
    if not is_external and call.warehouse.storage.traits.moves_folders:
        kept_at = call.warehouse.dropped_path(database, table, table_id)
    record = {
        "id": table_id,
        "catalog": call.warehouse.name,
        "database_name": database,
        "name": table,
        "path": path,
        "kept_at": kept_at,
        "is_external": is_external,
        "owner": owner,
        "dropped_at": services.env.now_ms(),
        "dropped_by": call.principal.name,
    }
    with services.database.lock(table_id), services.database.transaction() as session:
        check_named(session, call, database, table, table_id)
        sql, arguments = insert("dropped", record)
        session.run(sql, *arguments)
        session.run("DELETE FROM branches WHERE table_id = ?", table_id)
        session.run("DELETE FROM tables WHERE id = ?", table_id)
        resource = Resource(ResourceKind.TABLE, database, table)
        forget_grants(session, call.warehouse.name, resource)
    services.on_access_changed()
    if kept_at is not None:
        with suppress(EmberlakeError):  # `settle_dropped` tries again
            _move_aside(services, call.warehouse, table_id, path, kept_at)


def check_named(session: Statements, call: Call, database: str, table: str, table_id: str) -> None:
    """Refuse to change a table by a name that it no longer has: its grants have gone with it."""
    rows = session.run(_TABLE, call.warehouse.name, database, table)
    if not rows or rows[0][0] != table_id:
        raise table_missing(database, table)


def settle_dropped(services: Services, warehouse: Warehouse) -> None:
    """Move aside the folders of dropped tables that are still in place."""
    rows = services.database.run(
        "SELECT id, path, kept_at FROM dropped WHERE catalog = ? AND kept_at IS NOT NULL",
        warehouse.name,
    )
    for table_id, path, kept_at in rows:
        with suppress(EmberlakeError):
            if not warehouse.storage.exists(kept_at) and warehouse.storage.exists(path):
                _move_aside(services, warehouse, table_id, path, kept_at)


def _move_aside(
    services: Services, warehouse: Warehouse, table_id: str, path: str, kept_at: str
) -> None:
    """Move the folder of a dropped table, unless it was restored or belongs to another by now."""
    with services.database.lock(table_id), services.database.transaction() as session:
        is_dropped = session.run("SELECT id FROM dropped WHERE id = ?", table_id)
        is_taken = session.run("SELECT id FROM tables WHERE path = ?", path) or session.run(
            "SELECT path FROM unfinished WHERE path = ?", path
        )
        if is_dropped and not is_taken:
            warehouse.storage.move_folder(path, kept_at)


def purge(services: Services, warehouse: Warehouse) -> int:
    """Delete the files of tables that were dropped long ago; returns how many there were."""
    with services.database.try_lock(f"purge {warehouse.name}") as is_locked:
        if not is_locked:
            return 0
        settle_dropped(services, warehouse)
        _purge_unfinished(services, warehouse)
        rows = services.database.run(
            "SELECT id, path, kept_at, is_external FROM dropped "
            "WHERE catalog = ? AND dropped_at <= ?",
            warehouse.name,
            services.env.now_ms() - services.keep_dropped_ms,
        )
        return sum(_purge_one(services, warehouse, row) for row in rows)


def _purge_one(services: Services, warehouse: Warehouse, row: tuple[Any, ...]) -> bool:
    """Delete the files of a dropped table, unless it was restored meanwhile."""
    table_id, path, kept_at, is_external = row
    with services.database.lock(table_id), services.database.transaction() as session:
        if not session.run("SELECT id FROM dropped WHERE id = ?", table_id):
            return False
        session.run("UPDATE dropped SET dropped_at = ? WHERE id = ?", BEING_DELETED, table_id)
    if not is_external:
        _delete_files(services, warehouse, path, kept_at)
    services.database.run("DELETE FROM dropped WHERE id = ?", table_id)
    return True


def list_dropped(services: Services, warehouse: Warehouse) -> list[dict[str, Any]]:
    """The tables that can be restored, the last one first."""
    rows = services.database.run(
        "SELECT id, database_name, name, dropped_at FROM dropped "
        "WHERE catalog = ? AND dropped_at > ? ORDER BY dropped_at DESC",
        warehouse.name,
        BEING_DELETED,
    )
    return [
        {
            "id": table_id,
            "table": f"{database}.{name}",
            "dropped_at": dropped_at,
            "deleted_at": dropped_at + services.keep_dropped_ms,
        }
        for table_id, database, name, dropped_at in rows
    ]


def _delete_files(services: Services, warehouse: Warehouse, path: str, kept_at: str | None) -> None:
    if kept_at is not None:
        warehouse.storage.delete_folder(kept_at)
    elif not services.database.run("SELECT id FROM tables WHERE path = ?", path):
        _delete_folder(warehouse, path)


def _delete_folder(warehouse: Warehouse, path: str) -> None:
    # The schema goes last: until then, what is left still looks like a table to everybody.
    layout = TableLayout(path)
    warehouse.storage.delete_folder(layout.snapshot_folder)
    for info in warehouse.storage.list(path):
        if info.is_folder and info.path != layout.schema_folder:
            warehouse.storage.delete_folder(info.path)
    warehouse.storage.delete_folder(path)


def _purge_unfinished(services: Services, warehouse: Warehouse) -> None:
    """Delete the folders of tables whose creation was interrupted."""
    rows = services.database.run(
        "SELECT path FROM unfinished WHERE since < ?", services.env.now_ms() - UNFINISHED_MS
    )
    for (path,) in rows:
        if not path.startswith(f"{warehouse.location}/"):
            continue
        with suppress(StorageError):
            with services.database.transaction() as session:  # from here on it cannot be finished
                sql = "UPDATE unfinished SET since = ? WHERE path = ?"
                session.run(sql, BEING_DELETED, path)
            if not services.database.run("SELECT id FROM tables WHERE path = ?", path):
                _delete_folder(warehouse, path)
            services.database.run("DELETE FROM unfinished WHERE path = ?", path)

"""Dropped tables: kept for a time, restored on request, deleted after that.

A drop forgets the name first. Where the storage can, the folder is then moved aside in one step, so
that filesystem catalogs no longer find the table either.
"""

from contextlib import suppress
from typing import Any, Final

from emberlake.errors import (
    DatabaseNotFound,
    EmberlakeError,
    NotFound,
    StorageError,
    TableAlreadyExists,
)
from emberlake.server.access.grants import Resource, ResourceKind
from emberlake.server.access.principals import forget_grants, own
from emberlake.server.calls import Call, Services
from emberlake.server.database.database import TakenError
from emberlake.server.heads import schema_text, table_missing
from emberlake.server.records import DATABASE, insert, new_audit
from emberlake.server.warehouses import Warehouse
from emberlake.spec.layout import TableLayout
from emberlake.store.schemas import SchemaStore

UNFINISHED_MS: Final = 3_600_000  # a table that takes longer to create was given up
_COLUMNS: Final = "id, database_name, name, path, kept_at, is_external, owner, dropped_at"


def drop_table(services: Services, call: Call, database: str, table: str) -> None:
    """Forget a table; its files are kept for a time."""
    found = services.database.run(
        "SELECT t.id, t.path, t.is_external, t.owner FROM databases d "
        "JOIN tables t ON t.database_id = d.id WHERE d.catalog = ? AND d.name = ? AND t.name = ?",
        call.warehouse.name,
        database,
        table,
    )
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
        if not session.run("SELECT id FROM tables WHERE id = ?", table_id):
            raise table_missing(database, table)
        sql, arguments = insert("dropped", record)
        session.run(sql, *arguments)
        session.run("DELETE FROM branches WHERE table_id = ?", table_id)
        session.run("DELETE FROM tables WHERE id = ?", table_id)
        resource = Resource(ResourceKind.TABLE, database, table)
        forget_grants(session, call.warehouse.name, resource)
    services.on_access_changed()
    if kept_at is not None:
        with suppress(EmberlakeError):  # `settle_dropped` tries again
            call.warehouse.storage.move_folder(path, kept_at)


def settle_dropped(services: Services, warehouse: Warehouse) -> None:
    """Move aside the folders of dropped tables that are still in place."""
    rows = services.database.run(
        "SELECT path, kept_at FROM dropped WHERE catalog = ? AND kept_at IS NOT NULL",
        warehouse.name,
    )
    for path, kept_at in rows:
        taken = services.database.run("SELECT id FROM tables WHERE path = ?", path)
        storage = warehouse.storage
        with suppress(EmberlakeError):
            if not taken and not storage.exists(kept_at) and storage.exists(path):
                storage.move_folder(path, kept_at)


def purge(services: Services, warehouse: Warehouse) -> int:
    """Delete the files of tables that were dropped long ago; how many tables that were."""
    with services.database.try_lock(f"purge {warehouse.name}") as is_locked:
        if not is_locked:
            return 0
        settle_dropped(services, warehouse)
        _purge_unfinished(services, warehouse)
        before = services.env.now_ms() - services.keep_dropped_ms
        rows = services.database.run(
            f"SELECT {_COLUMNS} FROM dropped WHERE catalog = ? AND dropped_at <= ?",  # noqa: S608
            warehouse.name,
            before,
        )
        for row in rows:
            _delete_files(services, warehouse, row)
            services.database.run("DELETE FROM dropped WHERE id = ?", row[0])
        return len(rows)


def list_dropped(services: Services, warehouse: Warehouse) -> list[dict[str, Any]]:
    """The tables that can be restored, the last one first."""
    rows = services.database.run(
        f"SELECT {_COLUMNS} FROM dropped WHERE catalog = ? ORDER BY dropped_at DESC",  # noqa: S608
        warehouse.name,
    )
    return [
        {
            "id": row[0],
            "table": f"{row[1]}.{row[2]}",
            "dropped_at": row[7],
            "deleted_at": row[7] + services.keep_dropped_ms,
        }
        for row in rows
    ]


def restore(services: Services, warehouse: Warehouse, table_id: str, new_name: str | None) -> str:
    """Bring a dropped table back, under its old name or another; the name.

    Raises:
        NotFound: there is no such table, or no database for it.
        TableAlreadyExists: the name is taken.
    """
    rows = services.database.run(
        f"SELECT {_COLUMNS} FROM dropped WHERE catalog = ? AND id = ?",  # noqa: S608
        warehouse.name,
        table_id,
    )
    if not rows:
        raise NotFound(f"no dropped table has the id {table_id}; its files may be deleted by now")
    _, database, old_name, path, kept_at, is_external, owner, _ = rows[0]
    name, storage = new_name or old_name, warehouse.storage
    databases = services.database.run(DATABASE, warehouse.name, database)
    if not databases:
        raise DatabaseNotFound(
            f"database {database!r} does not exist; create it first", database=database
        )
    folder, was_moved = path, kept_at is not None and storage.exists(kept_at)
    if was_moved:
        if storage.exists(path):
            folder = warehouse.table_path(database, name, table_id[:8])
        storage.move_folder(kept_at, folder)
    schema = SchemaStore(warehouse.files, TableLayout(folder)).latest()
    if schema is None:
        raise NotFound(f"the files of {database}.{old_name} are gone from {folder}")
    values = {
        "id": table_id,
        "database_id": databases[0][0],
        "name": name,
        "path": folder,
        "is_external": is_external,
        **new_audit(owner, services.env.now_ms()),
    }
    branch = {
        "table_id": table_id,
        "name": "main",
        "schema_id": schema.id,
        "schema": schema_text(schema),
        "type": "table",
        "pending_since": services.env.now_ms(),  # the snapshot is read by whoever asks first
    }
    try:
        with services.database.transaction() as session:
            for table, row in (("tables", values), ("branches", branch)):
                sql, arguments = insert(table, row)
                session.run(sql, *arguments)
            session.run("DELETE FROM dropped WHERE id = ?", table_id)
            resource = Resource(ResourceKind.TABLE, database, name)
            own(session, warehouse.name, owner, resource, services.env)
    except TakenError:
        if was_moved:
            storage.move_folder(folder, kept_at)
        raise TableAlreadyExists(
            f"{database}.{name} exists; restore the table under another name"
        ) from None
    services.on_access_changed()
    return f"{database}.{name}"


def _delete_files(services: Services, warehouse: Warehouse, row: tuple[Any, ...]) -> None:
    _, _, _, path, kept_at, is_external, *_ = row
    if is_external:
        return
    if kept_at is not None:
        warehouse.storage.delete_folder(kept_at)
    elif not services.database.run("SELECT id FROM tables WHERE path = ?", path):
        _delete_folder(warehouse, path)


def _delete_folder(warehouse: Warehouse, path: str) -> None:
    # The schema goes last: until then nobody takes what is left for anything but a table.
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
            if not services.database.run("SELECT id FROM tables WHERE path = ?", path):
                _delete_folder(warehouse, path)
            services.database.run("DELETE FROM unfinished WHERE path = ?", path)

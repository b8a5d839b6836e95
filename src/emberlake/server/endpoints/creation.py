"""Create a table: its folder, its first schema, its rows, in an order that survives any crash.

    note the folder as unfinished ── write schema-0 ── add the rows and remove the note

A server that dies in between leaves a folder that is noted, and deleted after a while.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final

from emberlake.catalog import rules
from emberlake.errors import (
    InvalidInput,
    StorageError,
    TableAlreadyExists,
    TableNotFound,
    Unsupported,
)
from emberlake.io.local import local_path
from emberlake.io.object.location import SCHEMES, locate
from emberlake.io.registry import scheme_of
from emberlake.options import TYPE
from emberlake.server.access.grants import Resource, ResourceKind
from emberlake.server.access.principals import own
from emberlake.server.calls import Call, Refused, Services
from emberlake.server.database.database import Statements, TakenError
from emberlake.server.endpoints.databases import find_database, locked_database
from emberlake.server.endpoints.dropping import BEING_DELETED
from emberlake.server.heads import schema_text
from emberlake.server.records import insert, new_audit
from emberlake.spec.identifier import MAIN_BRANCH, Identifier
from emberlake.spec.layout import TableLayout
from emberlake.spec.schema import Schema, TableSchema
from emberlake.store.schemas import SchemaStore
from emberlake.store.snapshots import SnapshotStore

_TABLE = "table"
_NOTE: Final = "SELECT since FROM unfinished WHERE path = ?"


def add_table(
    services: Services,
    call: Call,
    identifier: Identifier,
    schema: Schema | TableSchema | None,
    path: str | None = None,
) -> str:
    """Create a table, or register the one in a folder if no schema is given; its id.

    Raises:
        DatabaseNotFound, TableAlreadyExists: by their names.
        InvalidSchema: the schema is not valid.
        TableNotFound: there is no table in the folder.
    """
    find_database(services, call, identifier.database)
    with services.database.transaction() as session:
        database = locked_database(services, session, call, identifier.database)
        check_name_free(session, database.id, identifier)
    outside = path or (None if schema is None else schema.options.get("path"))
    if outside is not None:
        return _add_external(services, call, identifier, schema, outside)
    assert schema is not None, "a registered table has a path"
    first = rules.first_schema(
        identifier,
        without_path(schema),
        call.warehouse.options,
        services.env.now_ms(),
        for_others=True,
    )
    table_id = services.env.new_id()
    folder = _claim_folder(services, call, identifier, table_id)
    if not SchemaStore(call.warehouse.files, TableLayout(folder)).create(first):
        _forget_note(services, folder)  # the folder belongs to somebody who was faster
        raise rules.table_exists(identifier)
    try:
        _add_rows(services, call, identifier, table_id, (folder, first), is_external=False)
    except (TableAlreadyExists, InvalidInput):
        _give_up(services, call, folder)
        raise
    return table_id


def _give_up(services: Services, call: Call, folder: str) -> None:
    """Delete the folder of a table that cannot be created, unless it was registered meanwhile."""
    with suppress(StorageError):  # if it fails, the note stays, and the folder is deleted later
        if not services.database.run("SELECT id FROM tables WHERE path = ?", folder):
            call.warehouse.storage.delete_folder(folder)
        _forget_note(services, folder)


def _forget_note(services: Services, folder: str) -> None:
    services.database.run("DELETE FROM unfinished WHERE path = ?", folder)


def check_name_free(session: Statements, database_id: str, identifier: Identifier) -> None:
    """Refuse a name that a table or a view has: both are found by it."""
    if session.run(
        "SELECT id FROM tables WHERE database_id = ? AND name = ?", database_id, identifier.table
    ):
        raise rules.table_exists(identifier)
    if session.run(
        "SELECT id FROM objects WHERE database_id = ? AND kind = 'view' AND name = ?",
        database_id,
        identifier.table,
    ):
        raise TableAlreadyExists(f"{identifier} is a view", identifier=identifier)


def _claim_folder(services: Services, call: Call, identifier: Identifier, table_id: str) -> str:
    """The folder of a new table: by its plain name, unless something is there already."""
    for suffix in ("", table_id[:8], table_id):
        folder = call.warehouse.table_path(identifier.database, identifier.table, suffix)
        if call.warehouse.storage.exists(folder):
            continue
        with suppress(TakenError), services.database.transaction() as session:
            if session.run("SELECT id FROM tables WHERE path = ?", folder) or session.run(
                "SELECT id FROM dropped WHERE path = ? AND kept_at IS NULL", folder
            ):
                continue  # its files may be in deletion right now
            sql, arguments = insert("unfinished", {"path": folder, "since": services.env.now_ms()})
            session.run(sql, *arguments)
            return folder
    raise StorageError(f"there is no free folder for {identifier}", had_no_effect=True)


def _add_rows(
    services: Services,
    call: Call,
    identifier: Identifier,
    table_id: str,
    place: tuple[str, TableSchema],
    *,
    is_external: bool,
) -> None:
    folder, schema = place
    now, name = services.env.now_ms(), call.principal.name
    table: dict[str, Any] = {
        "id": table_id,
        "name": identifier.table,
        "path": folder,
        "is_external": int(is_external),
        **new_audit(name, now),
    }
    branch = {
        "table_id": table_id,
        "name": MAIN_BRANCH,
        "schema_id": schema.id,
        "schema": schema_text(schema),
        "type": schema.options.value(TYPE),
        # A folder that is taken over may have snapshots: the first request reads them.
        "pending_since": now if is_external else None,
    }
    try:
        with services.database.transaction() as session:
            database = locked_database(services, session, call, identifier.database)
            check_name_free(session, database.id, identifier)
            table["database_id"] = database.id
            for into, row in (("tables", table), ("branches", branch)):
                sql, arguments = insert(into, row)
                session.run(sql, *arguments)
            if not is_external:
                _settle_note(services, session, folder)
            resource = Resource(ResourceKind.TABLE, identifier.database, identifier.table)
            own(session, call.warehouse.name, name, resource, services.env)
    except TakenError:
        raise TableAlreadyExists(
            f"{identifier} cannot be created: another table has that name, or its folder",
            identifier=identifier,
        ) from None
    services.on_access_changed()


def _settle_note(services: Services, session: Statements, folder: str) -> None:
    """Remove the note of a folder; a server whose clock is ahead may be deleting the folder."""
    rows = session.run(_NOTE + services.database.lock_row, folder)
    if not rows or rows[0][0] == BEING_DELETED:
        raise StorageError(f"{folder} is being deleted; create the table again", had_no_effect=True)
    session.run("DELETE FROM unfinished WHERE path = ?", folder)


# --- external tables ------------------------------------------------------------------------------


def _add_external(
    services: Services,
    call: Call,
    identifier: Identifier,
    schema: Schema | TableSchema | None,
    path: str,
) -> str:
    folder = _checked_path(services, call, path)
    layout = TableLayout(folder)
    schemas = SchemaStore(call.warehouse.files, layout)
    found = schemas.latest()
    if found is None:
        if schema is None:
            raise TableNotFound(f"{folder} has no table: there is no schema", identifier=identifier)
        left = SnapshotStore(call.warehouse.files, layout).list_ids()
        rules.check_no_snapshots(identifier, left, folder)
        found = rules.first_schema(
            identifier,
            without_path(schema),
            call.warehouse.options,
            services.env.now_ms(),
            for_others=True,
        )
        if not schemas.create(found):
            raise rules.table_exists(identifier)
    if found.options.value(TYPE).lower() != _TABLE:
        raise Unsupported(f"{folder} is a {found.options.value(TYPE)}; this server has only tables")
    table_id = services.env.new_id()
    _add_rows(services, call, identifier, table_id, (folder, found), is_external=True)
    return table_id


def _checked_path(services: Services, call: Call, path: str) -> str:
    """The folder of an external table, unless it must not be one.

    The server reads and writes there with its own rights, so only administrators may choose any
    folder. Nobody may choose one that overlaps with that of another table.
    """
    folder, real = local_path(path).rstrip("/"), _real(path)
    if not call.principal.is_admin and not _is_below(real, map(_real, call.warehouse.external)):
        raise Refused(403, "only administrators may choose a folder outside of all allowed ones")
    home = _real(call.warehouse.location)
    if real == home or _is_below(real, [home]):
        _refuse_inside(services, call, folder)
    others = _table_folders(services)
    if any(_is_below(real, [other]) or _is_below(other, [real]) for other in others):
        raise InvalidInput(f"{path} is inside of the folder of another table, or contains one")
    if real in others:
        raise TableAlreadyExists(f"another table has the folder {path}")
    return folder


def _table_folders(services: Services) -> list[str]:
    """The folders of all tables, spelled as ``_real`` does it."""
    rows = services.database.run(
        "SELECT t.path, t.is_external, c.location FROM tables t "
        "JOIN databases d ON d.id = t.database_id JOIN catalogs c ON c.name = d.catalog"
    )
    homes = {location: _real(location) for location in {location for *_, location in rows}}
    return [
        _real(path) if is_external else homes[location] + path.removeprefix(location)
        for path, is_external, location in rows
    ]


def _real(path: str) -> str:
    """One text for each folder, however it is spelled: links are followed, schemes are the same.

    Raises:
        InvalidInput: it is not an absolute path, or a part of it is not a name.
    """
    if scheme_of(path) in SCHEMES:
        found = locate(path)
        return f"{found.cloud}://{found.bucket}@{found.host}/{found.key}"
    folder = local_path(path).rstrip("/")
    names = folder.split("/")[1:]
    is_local = scheme_of(path) == "file"
    if is_local and (not folder.startswith("/") or not {"", ".", ".."}.isdisjoint(names)):
        raise InvalidInput(
            f"{path} cannot be the path of a table: give an absolute path, without '.' and '..'"
        )
    return os.path.realpath(folder) if is_local else folder


def _refuse_inside(services: Services, call: Call, folder: str) -> None:
    """Inside of the warehouse, only folders that hold an unregistered table may be chosen."""
    if not SchemaStore(call.warehouse.files, TableLayout(folder)).list_ids():
        raise InvalidInput(
            f"{folder} is inside of the warehouse, whose folders the server gives to tables; "
            "create the table without a path"
        )
    if services.database.run("SELECT path FROM unfinished WHERE path = ?", folder):
        raise InvalidInput(f"{folder} is being created")


def _is_below(path: str, folders: Iterable[str]) -> bool:
    return any(path.startswith(f"{folder.rstrip('/')}/") for folder in folders)


def without_path(schema: Schema | TableSchema) -> Schema:
    """The schema without a path, which is not an option that tables keep."""
    options = {key: value for key, value in schema.options.items() if key != "path"}
    return Schema(
        schema.fields, schema.partition_keys, schema.primary_keys, options, schema.comment
    )

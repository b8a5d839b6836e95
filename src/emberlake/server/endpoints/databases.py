"""Databases: options in the server's database, and a folder for their tables."""

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from emberlake.errors import (
    DatabaseAlreadyExists,
    DatabaseNotFound,
    InvalidState,
    StorageError,
    TableNotFound,
)
from emberlake.rest.reading import Fields
from emberlake.rest.values import DatabaseChanges, RemoteDatabase, page_to_json
from emberlake.server.access.grants import Resource, ResourceKind
from emberlake.server.access.principals import forget_grants, own
from emberlake.server.calls import Call, Paging, Services, name_matcher, page_of_rows
from emberlake.server.database.database import Rows, Statements, TakenError
from emberlake.server.endpoints.dropping import drop_table, settle_dropped
from emberlake.server.endpoints.shown_options import refuse_secrets
from emberlake.server.records import (
    DATABASE,
    DatabaseRecord,
    database_record,
    insert,
    new_audit,
)
from emberlake.server.warehouses import wire_path
from emberlake.spec.identifier import NameKind, check_name

_DROP_ATTEMPTS: Final = 10


def list_databases(services: Services, call: Call) -> Mapping[str, Any]:
    """The names of databases that somebody may see."""
    matches = name_matcher(call.query.get("databaseNamePattern"))

    def read(after: str, limit: int) -> Rows:
        return services.database.run(
            "SELECT name FROM databases WHERE catalog = ? AND name > ? ORDER BY name LIMIT ?",
            call.warehouse.name,
            after,
            limit,
        )

    rows, token = page_of_rows(
        read,
        Paging.of(call.query),
        lambda row: matches(row[0]) and call.principal.sees_database(row[0]),
    )
    return page_to_json("databases", [name for (name,) in rows], token)


def create_database(services: Services, call: Call) -> None:
    """Create a database and its folder."""
    fields = Fields(call.body, "the request")
    name, options = fields.text("name"), fields.text_map("options")
    check_name(NameKind.DATABASE, name)
    refuse_secrets(options)
    values = {
        "id": services.env.new_id(),
        "catalog": call.warehouse.name,
        "name": name,
        "options": json.dumps(options, ensure_ascii=False),
        **new_audit(call.principal.name, services.env.now_ms()),
    }
    owned = Resource(ResourceKind.DATABASE, name)
    try:
        with services.database.transaction() as session:
            sql, arguments = insert("databases", values)
            session.run(sql, *arguments)
            own(session, call.warehouse.name, call.principal.name, owned, services.env)
    except TakenError:
        raise DatabaseAlreadyExists(f"database {name!r} already exists", database=name) from None
    services.on_access_changed()
    call.warehouse.storage.make_folder(call.warehouse.database_path(name))


def get_database(services: Services, call: Call) -> Mapping[str, Any]:
    """A database with its options."""
    found = find_database(services, call, call.names["database"])
    return RemoteDatabase(
        name=found.name,
        id=found.id,
        location=wire_path(call.warehouse.database_path(found.name)),
        options=json.loads(found.options),
        audit=found.audit,
    ).to_json()


def alter_database(services: Services, call: Call) -> Mapping[str, Any]:
    """Set and remove options of a database."""
    changes = DatabaseChanges.from_json(call.body)
    refuse_secrets(changes.updates)
    name = call.names["database"]
    with services.database.transaction() as session:
        found = locked_database(services, session, call, name)
        options = json.loads(found.options)
        removed = [key for key in changes.removals if key in options]
        missing = [key for key in changes.removals if key not in options]
        for key in removed:
            del options[key]
        options.update(changes.updates)
        session.run(
            "UPDATE databases SET options = ?, updated_at = ?, updated_by = ? WHERE id = ?",
            json.dumps(options, ensure_ascii=False),
            services.env.now_ms(),
            call.principal.name,
            found.id,
        )
    return {"removed": removed, "updated": list(changes.updates), "missing": missing}


def drop_database(services: Services, call: Call) -> None:
    """Drop a database with everything in it; its tables can be restored for a time."""
    name = call.names["database"]
    for _ in range(_DROP_ATTEMPTS):
        if _drop_all(services, call, name):
            break
    else:
        raise InvalidState(f"database {name!r} keeps getting new tables; drop it later")
    services.on_access_changed()
    settle_dropped(services, call.warehouse)
    folder = call.warehouse.database_path(name)
    with suppress(StorageError):
        if not any(True for _ in call.warehouse.storage.list(folder)):
            call.warehouse.storage.delete_folder(folder)


def _drop_all(services: Services, call: Call, name: str) -> bool:
    """Drop what is in a database, and the database; False if a table was created meanwhile."""
    found = find_database(services, call, name)
    tables = services.database.run(
        "SELECT name FROM tables WHERE database_id = ? ORDER BY name", found.id
    )
    for (table,) in tables:
        with suppress(TableNotFound):  # somebody else was faster
            drop_table(services, call, name, table)
    try:
        with services.database.transaction() as session:
            if locked_database(services, session, call, name).id != found.id:
                raise database_missing(name)  # it was dropped, and another has its name
            session.run("DELETE FROM objects WHERE database_id = ?", found.id)
            session.run("DELETE FROM databases WHERE id = ?", found.id)
            forget_grants(session, call.warehouse.name, Resource(ResourceKind.DATABASE, name))
    except TakenError:
        return False
    return True


def find_database(services: Services, call: Call, name: str) -> DatabaseRecord:
    """A database of the warehouse."""
    rows = services.database.run(DATABASE, call.warehouse.name, name)
    if not rows:
        raise database_missing(name)
    return database_record(rows[0])


def locked_database(
    services: Services, session: Statements, call: Call, name: str
) -> DatabaseRecord:
    """A database in which nobody takes a name, and which nobody drops, until the session ends."""
    rows = session.run(DATABASE + services.database.lock_row, call.warehouse.name, name)
    if not rows:
        raise database_missing(name)
    return database_record(rows[0])


def database_missing(name: str) -> DatabaseNotFound:
    """The error for a database that does not exist; it reveals nothing about others."""
    return DatabaseNotFound(f"database {name!r} does not exist", database=name)

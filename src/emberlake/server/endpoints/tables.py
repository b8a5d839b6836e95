"""Tables: names and schemas. The server writes schema files, so that the files are complete."""

import json
from collections.abc import Mapping
from typing import Any

from emberlake.catalog import rules
from emberlake.errors import InvalidInput
from emberlake.rest.changes import changes_from_json
from emberlake.rest.values import NewTable, RegisteredTable, Rename, page_to_json
from emberlake.server.access.grants import Access, Resource, ResourceKind
from emberlake.server.access.principals import move_grants
from emberlake.server.calls import Call, Paging, Services, name_matcher, page_of_rows
from emberlake.server.database.database import Rows, TakenError
from emberlake.server.endpoints.creation import add_table, check_name_free
from emberlake.server.endpoints.databases import find_database, locked_database
from emberlake.server.endpoints.dropping import check_named
from emberlake.server.endpoints.dropping import drop_table as drop
from emberlake.server.endpoints.query_auth import check_columns, shows_columns
from emberlake.server.endpoints.shown_options import refuse_secrets
from emberlake.server.heads import table_missing
from emberlake.server.records import TABLE_BY_ID, TABLES_AFTER, TableRecord, table_record
from emberlake.server.warehouses import wire_path
from emberlake.spec.identifier import MAIN_BRANCH, Identifier
from emberlake.spec.schema_change import SetOption
from emberlake.store.schemas import SchemaStore


def list_tables(services: Services, call: Call) -> Mapping[str, Any]:
    """The names of the tables of a database that somebody may see."""
    database = call.names["database"]
    find_database(services, call, database)

    def read(after: str, limit: int) -> Rows:
        return services.database.run(
            "SELECT t.name, b.type FROM databases d JOIN tables t ON t.database_id = d.id "
            "JOIN branches b ON b.table_id = t.id AND b.name = 'main' "
            "WHERE d.catalog = ? AND d.name = ? AND t.name > ? ORDER BY t.name LIMIT ?",
            call.warehouse.name,
            database,
            after,
            limit,
        )

    rows, token = page_of_rows(read, Paging.of(call.query), _filter(call, database))
    return page_to_json("tables", [name for name, _ in rows], token)


def list_table_details(services: Services, call: Call) -> bytes:
    """The tables of a database that somebody may get, with their schemas."""
    database = call.names["database"]
    find_database(services, call, database)

    def read(after: str, limit: int) -> Rows:
        rows = services.database.run(TABLES_AFTER, call.warehouse.name, database, after, limit)
        return [(row[2], _type_of(row[7]), row) for row in rows]

    matches = _filter(call, database)
    rows, token = page_of_rows(
        read,
        Paging.of(call.query),
        lambda row: matches(row) and shows_columns(call, table_record(row[2])),
    )
    details = b", ".join(table_answer(table_record(row)) for _, _, row in rows)
    following = json.dumps(token, ensure_ascii=False).encode()
    return b'{"tableDetails": [%b], "nextPageToken": %b}' % (details, following)


def list_tables_globally(services: Services, call: Call) -> Mapping[str, Any]:
    """The tables of all databases that somebody may see."""
    in_database = name_matcher(call.query.get("databaseNamePattern"))
    matches = name_matcher(call.query.get("tableNamePattern"))

    def read(after: str, limit: int) -> Rows:
        database, _, table = after.partition(".")
        rows = services.database.run(
            "SELECT d.name, t.name FROM databases d JOIN tables t ON t.database_id = d.id "
            "WHERE d.catalog = ? AND (d.name > ? OR (d.name = ? AND t.name > ?)) "
            "ORDER BY d.name, t.name LIMIT ?",
            call.warehouse.name,
            database.replace("%2E", "."),
            database.replace("%2E", "."),
            table,
            limit,
        )
        # The token ends the name of the database at its first dot.
        return [(f"{db.replace('.', '%2E')}.{name}", db, name) for db, name in rows]

    rows, token = page_of_rows(
        read,
        Paging.of(call.query),
        lambda row: (
            in_database(row[1])
            and matches(row[2])
            and call.principal.sees(Resource(ResourceKind.TABLE, row[1], row[2]))
        ),
    )
    return page_to_json("tables", [{"database": db, "object": name} for _, db, name in rows], token)


def get_table(services: Services, call: Call) -> bytes:
    """A table, or a branch of one."""
    found = services.heads.find(call.warehouse, call.names["database"], call.names["table"])
    check_columns(call, found)
    return table_answer(found)


def get_table_by_id(services: Services, call: Call) -> bytes:
    """A table by its id."""
    rows = services.database.run(TABLE_BY_ID, call.warehouse.name, call.names["id"], MAIN_BRANCH)
    found = table_record(rows[0]) if rows else None
    if found is None or not call.principal.has_any(
        Resource(ResourceKind.TABLE, found.database, found.table)
    ):
        raise table_missing("id", call.names["id"])
    check_columns(call, found)
    return table_answer(services.heads.settled(call.warehouse, found))


def create_table(services: Services, call: Call) -> None:
    """Create a table; with the option ``path`` an external one."""
    new = NewTable.from_json(call.body)
    identifier = own_identifier(call, new.identifier)
    refuse_secrets(new.schema.options)
    add_table(services, call, identifier, new.schema)


def register_table(services: Services, call: Call) -> None:
    """Take over the table of an existing folder; its files stay whose they are."""
    new = RegisteredTable.from_json(call.body)
    if not new.path.strip():
        raise InvalidInput("the folder of the table is missing: path is empty")
    add_table(services, call, own_identifier(call, new.identifier), None, new.path)


def alter_table(services: Services, call: Call) -> None:
    """Change the schema of a table or a branch: all changes, or none."""
    changes = changes_from_json(call.body)
    refuse_secrets(each.key for each in changes if isinstance(each, SetOption))
    found = services.heads.find(call.warehouse, call.names["database"], call.names["table"])
    with services.heads.locked(call.warehouse, found) as table:
        identifier = Identifier(table.database, table.object_name)
        schemas = SchemaStore(call.warehouse.files, table.layout)
        services.heads.mark_pending(table)

        def attempt() -> bool:
            newest = schemas.latest()
            if newest is None:
                raise table_missing(table.database, table.object_name)
            changed = rules.altered_schema(
                identifier,
                newest,
                changes,
                has_snapshots=table.snapshot_id is not None,
                time_millis=services.env.now_ms(),
                for_others=True,
            )
            return changed.id == newest.id or schemas.create(changed)

        try:
            rules.alter_until_published(identifier, attempt)
            _touch(services, call, table)
        finally:
            services.heads.reread(call.warehouse, table)


def drop_table(services: Services, call: Call) -> None:
    """Forget a table; its files are kept for a time."""
    drop(services, call, call.names["database"], call.names["table"])


def rename_table(services: Services, call: Call) -> None:
    """Give a table another name; its files stay where they are."""
    asked = Rename.from_json(call.body)
    source = rules.plain_table(asked.source, "renamed")
    target = rules.plain_table(asked.destination, "renamed to")
    old = Resource(ResourceKind.TABLE, source.database, source.table)
    new = Resource(ResourceKind.TABLE, target.database, target.table)
    call.check(call.principal.may(Access.ALTER, old), old)
    there = Resource(ResourceKind.DATABASE, target.database)
    if source.database != target.database:
        call.check(call.principal.may(Access.CREATETABLE, there), there)
    find_database(services, call, source.database)
    found = services.heads.find(call.warehouse, source.database, source.table)
    try:
        with (
            services.database.lock(found.id),
            services.database.transaction() as session,
        ):
            check_named(session, call, source.database, source.table, found.id)
            database = locked_database(services, session, call, target.database)
            check_name_free(session, database.id, target)
            session.run(
                "UPDATE tables SET database_id = ?, name = ?, updated_at = ?, updated_by = ? "
                "WHERE id = ?",
                database.id,
                target.table,
                services.env.now_ms(),
                call.principal.name,
                found.id,
            )
            move_grants(session, call.warehouse.name, old, new)
    except TakenError:
        raise rules.table_exists(target) from None
    services.on_access_changed()


def table_answer(table: TableRecord) -> bytes:
    """The JSON of a table. Its schema is pasted as it is stored."""
    owner, created_at, created_by, updated_at, updated_by = table.audit
    head = json.dumps(
        {
            "id": table.id,
            "database": table.database,
            "name": table.object_name,
            "path": wire_path(table.path),
            "isExternal": table.is_external,
            "schemaId": table.schema_id,
            "owner": owner,
            "createdAt": created_at,
            "createdBy": created_by,
            "updatedAt": updated_at,
            "updatedBy": updated_by,
        },
        ensure_ascii=False,
    )
    return f'{head[:-1]}, "schema": {table.schema}}}'.encode()


def own_identifier(call: Call, identifier: Identifier) -> Identifier:
    """The identifier of a body, which must agree with the path."""
    if identifier.database != call.names["database"]:
        raise InvalidInput(
            f"the path names database {call.names['database']!r}, the body {identifier.database!r}"
        )
    return rules.plain_table(identifier, "created")


def _touch(services: Services, call: Call, table: TableRecord) -> None:
    services.database.run(
        "UPDATE tables SET updated_at = ?, updated_by = ? WHERE id = ?",
        services.env.now_ms(),
        call.principal.name,
        table.id,
    )


def _filter(call: Call, database: str) -> Any:
    matches = name_matcher(call.query.get("tableNamePattern"))
    wanted = call.query.get("tableType")

    def accept(row: tuple[Any, ...]) -> bool:
        resource = Resource(ResourceKind.TABLE, database, row[0])
        return (
            matches(row[0]) and (not wanted or row[1] == wanted) and call.principal.sees(resource)
        )

    return accept


def _type_of(schema: str) -> str:
    return str(json.loads(schema)["options"].get("type", "table"))

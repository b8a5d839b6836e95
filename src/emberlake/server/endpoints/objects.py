"""Views and functions: the server keeps them for engines, and returns what it was given."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from emberlake.errors import EmberlakeError, InvalidInput
from emberlake.rest.errors import ResourceType
from emberlake.rest.objects import Function, View
from emberlake.rest.reading import Fields
from emberlake.rest.values import Rename, identifier_from_json, page_to_json
from emberlake.server.access.grants import Access, Resource, ResourceKind
from emberlake.server.access.principals import forget_grants, move_grants, own
from emberlake.server.calls import (
    Call,
    Paging,
    Refused,
    Services,
    name_matcher,
    page_of_rows,
)
from emberlake.server.database.database import Rows, TakenError
from emberlake.server.endpoints.creation import check_name_free
from emberlake.server.endpoints.databases import find_database, locked_database
from emberlake.server.endpoints.object_changes import changed_function, changed_view
from emberlake.server.records import OBJECT, ObjectRecord, insert, new_audit, object_record
from emberlake.spec.identifier import Identifier, NameKind, check_name

_VIEW: Final = "view"
_FUNCTION: Final = "function"
_FUNCTION_NAME: Final = re.compile(r"(?=.*[A-Za-z])[A-Za-z0-9._-]{1,255}")
_KINDS: Final[Mapping[str, tuple[ResourceKind, ResourceType]]] = {
    _VIEW: (ResourceKind.VIEW, ResourceType.VIEW),
    _FUNCTION: (ResourceKind.FUNCTION, ResourceType.FUNCTION),
}


# --- views ----------------------------------------------------------------------------------------


def list_views(services: Services, call: Call) -> Mapping[str, Any]:
    """The names of views."""
    rows, token = _page(services, call, _VIEW)
    return page_to_json("views", [row[0] for row in rows], token)


def list_view_details(services: Services, call: Call) -> Mapping[str, Any]:
    """Views with their schemas, as far as somebody may get them."""
    rows, token = _page(services, call, _VIEW, with_content=True)
    return page_to_json("viewDetails", [_view(object_record(row[1])) for row in rows], token)


def list_views_globally(services: Services, call: Call) -> Mapping[str, Any]:
    """The views of all databases."""
    found, token = _global_page(services, call, _VIEW)
    return page_to_json("views", found, token)


def create_view(services: Services, call: Call) -> None:
    """Create a view. Tables and views share their names."""
    fields = Fields(call.body, "the request")
    identifier = fields.read("identifier", identifier_from_json)
    check_name(NameKind.TABLE, identifier.object_name)
    if identifier.database != call.names["database"]:
        raise InvalidInput("the path and the body name different databases")
    content = View.from_json({"name": identifier.table, "schema": fields.raw("schema")})
    _create(services, call, _VIEW, identifier.table, content.schema_to_json())


def get_view(services: Services, call: Call) -> Mapping[str, Any]:
    """A view."""
    return _view(_find(services, call, _VIEW, call.names["database"], call.names["view"]))


def alter_view(services: Services, call: Call) -> None:
    """Change options, comment or dialects of a view."""
    _alter(services, call, _VIEW, call.names["view"], changed_view)


def drop_view(services: Services, call: Call) -> None:
    """Drop a view."""
    _drop(services, call, _VIEW, call.names["view"])


def rename_view(services: Services, call: Call) -> None:
    """Give a view another name."""
    asked = Rename.from_json(call.body)
    source, target = asked.source, asked.destination
    old = Resource(ResourceKind.VIEW, source.database, source.table)
    new = Resource(ResourceKind.VIEW, target.database, target.table)
    call.check(call.principal.may(Access.ALTER, old), old)
    if source.database != target.database:
        there = Resource(ResourceKind.DATABASE, target.database)
        call.check(call.principal.may(Access.CREATEVIEW, there), there)
    found = _find(services, call, _VIEW, source.database, source.table)
    try:
        _move_view(services, call, found, (old, new), target)
    except TakenError:
        raise _taken(_VIEW, target.table) from None
    services.on_access_changed()


def _move_view(
    services: Services,
    call: Call,
    found: ObjectRecord,
    resources: tuple[Resource, Resource],
    target: Identifier,
) -> None:
    with services.database.transaction() as session:
        database = locked_database(services, session, call, target.database)
        try:
            check_name_free(session, database.id, target)
        except EmberlakeError as error:
            raise _taken(_VIEW, target.table) from error
        session.run(
            "UPDATE objects SET database_id = ?, name = ?, updated_at = ?, updated_by = ? "
            "WHERE id = ?",
            database.id,
            target.table,
            services.env.now_ms(),
            call.principal.name,
            found.id,
        )
        move_grants(session, call.warehouse.name, *resources)


# --- functions ------------------------------------------------------------------------------------


def list_functions(services: Services, call: Call) -> Mapping[str, Any]:
    """The names of functions."""
    rows, token = _page(services, call, _FUNCTION)
    return page_to_json("functions", [row[0] for row in rows], token)


def list_function_details(services: Services, call: Call) -> Mapping[str, Any]:
    """Functions with their definitions, as far as somebody may get them."""
    rows, token = _page(services, call, _FUNCTION, with_content=True)
    details = [_function(object_record(row[1])) for row in rows]
    return page_to_json("functionDetails", details, token)


def list_functions_globally(services: Services, call: Call) -> Mapping[str, Any]:
    """The functions of all databases."""
    found, token = _global_page(services, call, _FUNCTION)
    return page_to_json("functions", found, token)


def create_function(services: Services, call: Call) -> None:
    """Create a function."""
    function = Function.from_json(call.body)
    if not _FUNCTION_NAME.fullmatch(function.name):
        raise InvalidInput(
            f"{function.name!r} cannot be the name of a function: use letters, digits, '.', '_' "
            "and '-', and at least one letter"
        )
    _create(services, call, _FUNCTION, function.name, function.to_json())


def get_function(services: Services, call: Call) -> Mapping[str, Any]:
    """A function."""
    name = call.names["function"]
    return _function(_find(services, call, _FUNCTION, call.names["database"], name))


def alter_function(services: Services, call: Call) -> None:
    """Change options, comment or definitions of a function."""
    _alter(services, call, _FUNCTION, call.names["function"], changed_function)


def drop_function(services: Services, call: Call) -> None:
    """Drop a function."""
    _drop(services, call, _FUNCTION, call.names["function"])


# --- both -----------------------------------------------------------------------------------------


def _view(found: ObjectRecord) -> dict[str, Any]:
    content = json.loads(found.content)
    return {"id": found.id, "name": found.name, "schema": content, **found.audit.to_json()}


def _function(found: ObjectRecord) -> dict[str, Any]:
    content = json.loads(found.content)
    return {**content, "uuid": found.id, "name": found.name, **found.audit.to_json()}


def _find(services: Services, call: Call, kind: str, database: str, name: str) -> ObjectRecord:
    rows = services.database.run(OBJECT, call.warehouse.name, database, kind, name)
    if not rows:
        find_database(services, call, database)
        raise Refused(404, f"{kind} {database}.{name} does not exist", _KINDS[kind][1], name)
    return object_record(rows[0])


def _create(services: Services, call: Call, kind: str, name: str, content: object) -> None:
    database_name = call.names["database"]
    values = {
        "id": services.env.new_id(),
        "kind": kind,
        "name": name,
        "content": json.dumps(content, ensure_ascii=False),
        **new_audit(call.principal.name, services.env.now_ms()),
    }
    try:
        with services.database.transaction() as session:
            database = locked_database(services, session, call, database_name)
            if kind == _VIEW:
                try:
                    check_name_free(session, database.id, Identifier(database_name, name))
                except EmberlakeError as error:
                    raise _taken(kind, name) from error
            sql, arguments = insert("objects", {**values, "database_id": database.id})
            session.run(sql, *arguments)
            resource = Resource(_KINDS[kind][0], database_name, name)
            own(session, call.warehouse.name, call.principal.name, resource, services.env)
    except TakenError:
        raise _taken(kind, name) from None
    services.on_access_changed()


def _alter(
    services: Services,
    call: Call,
    kind: str,
    name: str,
    change: Callable[[dict[str, Any], Fields], dict[str, Any]],
) -> None:
    changes = Fields(call.body, "the request").objects("changes")
    found = _find(services, call, kind, call.names["database"], name)
    with services.database.lock(found.id):
        content = json.loads(_find(services, call, kind, call.names["database"], name).content)
        for each in changes:
            content = change(content, Fields(each, "the change"))
        services.database.run(
            "UPDATE objects SET content = ?, updated_at = ?, updated_by = ? WHERE id = ?",
            json.dumps(content, ensure_ascii=False),
            services.env.now_ms(),
            call.principal.name,
            found.id,
        )


def _drop(services: Services, call: Call, kind: str, name: str) -> None:
    found = _find(services, call, kind, call.names["database"], name)
    with services.database.transaction() as session:
        session.run("DELETE FROM objects WHERE id = ?", found.id)
        resource = Resource(_KINDS[kind][0], call.names["database"], name)
        forget_grants(session, call.warehouse.name, resource)
    services.on_access_changed()


def _page(
    services: Services, call: Call, kind: str, *, with_content: bool = False
) -> tuple[list[tuple[Any, ...]], str | None]:
    database = call.names["database"]
    is_shown = call.principal.has_any if with_content else call.principal.sees
    find_database(services, call, database)
    matches = name_matcher(call.query.get(f"{kind}NamePattern"))

    def read(after: str, limit: int) -> Rows:
        rows = services.database.run(
            OBJECT.replace("o.name = ?", "o.name > ?") + " ORDER BY o.name LIMIT ?",
            call.warehouse.name,
            database,
            kind,
            after,
            limit,
        )
        return [(row[1], row) for row in rows]

    return page_of_rows(
        read,
        Paging.of(call.query),
        lambda row: matches(row[0]) and is_shown(Resource(_KINDS[kind][0], database, row[0])),
    )


def _global_page(
    services: Services, call: Call, kind: str
) -> tuple[list[dict[str, str]], str | None]:
    in_database = name_matcher(call.query.get("databaseNamePattern"))
    matches = name_matcher(call.query.get(f"{kind}NamePattern"))

    def read(after: str, limit: int) -> Rows:
        database, _, name = after.partition(".")
        database = database.replace("%2E", ".")
        rows = services.database.run(
            "SELECT d.name, o.name FROM databases d JOIN objects o ON o.database_id = d.id "
            "WHERE d.catalog = ? AND o.kind = ? AND (d.name > ? OR (d.name = ? AND o.name > ?)) "
            "ORDER BY d.name, o.name LIMIT ?",
            call.warehouse.name,
            kind,
            database,
            database,
            name,
            limit,
        )
        return [(f"{db.replace('.', '%2E')}.{found}", db, found) for db, found in rows]

    rows, token = page_of_rows(
        read,
        Paging.of(call.query),
        lambda row: (
            in_database(row[1])
            and matches(row[2])
            and call.principal.sees(Resource(_KINDS[kind][0], row[1], row[2]))
        ),
    )
    return [{"database": db, "object": name} for _, db, name in rows], token


def _taken(kind: str, name: str) -> Refused:
    return Refused(409, f"{kind} {name} already exists", _KINDS[kind][1], name)

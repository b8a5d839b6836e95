"""Grants over HTTP, for principals that may grant."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from emberlake.errors import InvalidInput
from emberlake.rest.reading import Fields
from emberlake.rest.values import page_to_json
from emberlake.server.access.grants import (
    Access,
    Columns,
    Grant,
    Resource,
    ResourceKind,
    access_from,
    check_grant,
)
from emberlake.server.calls import Call, Paging, Services, page_of_names


def list_permissions(services: Services, call: Call) -> Mapping[str, Any]:
    """Grants that somebody has, or may change."""
    found = {
        f"{number:08d}": grant
        for number, grant in enumerate(services.principals.grants(call.warehouse.name))
        if (grant.principal == call.principal.name or _may_grant(call, grant.resource))
        and _matches(call.query, grant)
    }
    page, token = page_of_names([*found], Paging.of(call.query))
    return page_to_json("permissions", [grant_to_json(found[key]) for key in page], token)


def grant_permission(services: Services, call: Call) -> None:
    """Give a principal an access."""
    grant = grant_from_json(call.body)
    check_grant(grant)
    call.check(_may_grant(call, grant.resource), grant.resource)
    services.principals.grant(call.warehouse.name, grant, by=call.principal.name)
    services.on_access_changed()


def revoke_permission(services: Services, call: Call) -> None:
    """Take an access back."""
    fields = Fields(call.body, "the request")
    resource = fields.read("resource", Resource.from_json)
    access, principal = access_from(fields.text("access")), fields.text("principal")
    call.check(_may_grant(call, resource), resource)
    services.principals.revoke(call.warehouse.name, principal, resource, access)
    services.on_access_changed()


def grant_to_json(grant: Grant) -> dict[str, Any]:
    """A grant as the protocol has it."""
    expires = grant.expires_at
    out: dict[str, Any] = {
        "resource": grant.resource.to_json(),
        "access": grant.access.value,
        "principal": grant.principal,
        "columns": None if grant.columns is None else grant.columns.to_json(),
        "expireTime": None,
    }
    if expires is not None:
        moment = datetime.fromtimestamp(expires / 1000, tz=UTC)
        out["expireTime"] = moment.isoformat(timespec="seconds").replace("+00:00", "Z")
    return out


def grant_from_json(value: object) -> Grant:
    """The grant of a request."""
    fields = Fields(value, "the grant")
    columns, expires = fields.raw("columns"), fields.optional_text("expireTime")
    return Grant(
        fields.text("principal"),
        fields.read("resource", Resource.from_json),
        access_from(fields.text("access")),
        None if columns is None else Columns.from_json(columns),
        None if expires is None else _millis(expires),
    )


def _millis(text: str) -> int:
    """A moment, by default of UTC, in milliseconds since 1970."""
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return int(moment.astimezone(UTC).timestamp() * 1000)
    except (ValueError, OverflowError) as error:  # years before 1 and after 9999 in UTC
        raise InvalidInput(f"expireTime {text!r} is not a time such as 2026-01-01T00:00:00Z") from (
            error
        )


def _may_grant(call: Call, resource: Resource) -> bool:
    asked = resource
    if resource.kind is ResourceKind.COLUMN:
        asked = Resource(ResourceKind.TABLE, resource.database, resource.name)
    if resource.kind is ResourceKind.DATABASE_ALL:
        asked = Resource(ResourceKind.DATABASE, resource.database)
    if resource.kind is ResourceKind.CATALOG_ALL:
        asked = Resource(ResourceKind.CATALOG)
    return call.principal.may(Access.GRANT, asked)


def _matches(query: Mapping[str, str], grant: Grant) -> bool:
    resource = grant.resource
    names = (query.get("table"), query.get("view"), query.get("function"))
    return (
        query.get("resourceType") in (None, "", resource.kind.value)
        and query.get("database") in (None, "", resource.database)
        and query.get("principal") in (None, "", grant.principal)
        and query.get("access") in (None, "", grant.access.value)
        and all(name in (None, "", resource.name) for name in names)
    )

"""Storage credentials for one table, for as long as they last."""

from collections.abc import Mapping
from typing import Any

from emberlake.rest.commits import DataToken
from emberlake.server.access.grants import Access, Resource, ResourceKind
from emberlake.server.calls import Call, Services


def get_token(services: Services, call: Call) -> Mapping[str, Any]:
    """Credentials for the table's folder: to read and write for writers, otherwise only to read."""
    found = services.heads.find(call.warehouse, call.names["database"], call.names["table"])
    resource = Resource(ResourceKind.TABLE, found.database, found.table)
    writes = call.principal.may(Access.UPDATE, resource)
    options, expires_at = services.vend.credentials(
        call.warehouse, found.path, writes=writes, principal=call.principal.name
    )
    return DataToken(options, expires_at).to_json()

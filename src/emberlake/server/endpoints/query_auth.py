"""Access to some columns of a table: for clients that ask before they read."""

import json
from collections.abc import Mapping
from typing import Any, Final

from emberlake.errors import InvalidInput
from emberlake.rest.errors import ResourceType
from emberlake.rest.reading import Fields
from emberlake.server.access.grants import Access, Resource, ResourceKind
from emberlake.server.calls import Call, Refused, Services, forbidden
from emberlake.server.records import TableRecord

_ASKS: Final = "query-auth.enabled"


def check_columns(call: Call, table: TableRecord) -> None:
    """Refuse somebody who may read only some columns, if the table does not require query auth."""
    resource = Resource(ResourceKind.TABLE, table.database, table.table)
    if _reads_all(call, resource):
        return
    options: Mapping[str, str] = json.loads(table.schema)["options"]
    if options.get(_ASKS, "").lower() != "true":
        raise forbidden(resource)


def shows_columns(call: Call, table: TableRecord) -> bool:
    """Whether somebody may get the table, not only learn its name."""
    if not call.principal.has_any(Resource(ResourceKind.TABLE, table.database, table.table)):
        return False
    try:
        check_columns(call, table)
    except Refused:
        return False
    return True


def authorize(services: Services, call: Call) -> Mapping[str, Any]:
    """Whether somebody may read these columns; no rows are filtered, no columns masked."""
    found = services.heads.find(call.warehouse, call.names["database"], call.names["table"])
    check_columns(call, found)
    columns = [each["name"] for each in json.loads(found.schema)["fields"]]
    select = columns if call.body is None else Fields(call.body, "the request").raw("select")
    if select is None:
        select = columns
    if not isinstance(select, list) or not all(isinstance(each, str) for each in select):
        raise InvalidInput("select must be a list of column names")
    resource = Resource(ResourceKind.TABLE, found.database, found.table)
    if not call.principal.may_any((Access.SELECT, Access.UPDATE), resource):
        granted = call.principal.columns_of(found.database, found.table)
        refused = [name for name in select if not any(each.allow(name) for each in granted)]
        if refused:
            raise Refused(
                403,
                f"you have no permission to read {', '.join(refused)} of {found.database}."
                f"{found.table}",
                ResourceType.TABLE,
                found.table,
            )
    return {"filter": None, "columnMasking": None}


def _reads_all(call: Call, resource: Resource) -> bool:
    accesses = (Access.SELECT, Access.UPDATE, Access.ALTER, Access.DROP, Access.GRANT)
    return call.principal.may_any(accesses, resource)

"""What each endpoint needs: the table of who may do what."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from emberlake.rest.errors import ResourceType
from emberlake.rest.paths import Endpoint
from emberlake.server.access.grants import Access, Principal, Resource, ResourceKind
from emberlake.server.heads import split_object


class Scope(Enum):
    """How a need is checked."""

    ANYBODY = auto()  # every known principal; lists show what they may see
    SEES_DATABASE = auto()
    RESOURCE = auto()
    ANY_ACCESS = auto()  # any access to the table, view or function is enough
    ADMIN = auto()


@dataclass(frozen=True, slots=True)
class Need:
    """What a request needs: one of these accesses to what its path names."""

    scope: Scope
    kind: ResourceKind = ResourceKind.CATALOG
    accesses: tuple[Access, ...] = ()
    columns: bool = False  # whether access to some columns is enough, where query auth is on


def _need(kind: ResourceKind, *accesses: Access, columns: bool = False) -> Need:
    return Need(Scope.RESOURCE, kind, accesses, columns)


_ANYBODY: Final = Need(Scope.ANYBODY)
_SEES: Final = Need(Scope.SEES_DATABASE, ResourceKind.DATABASE)
_READ: Final = _need(ResourceKind.TABLE, Access.SELECT, Access.UPDATE)
_READ_SOME: Final = _need(ResourceKind.TABLE, Access.SELECT, Access.UPDATE, columns=True)
_WRITE: Final = _need(ResourceKind.TABLE, Access.UPDATE)
_ALTER: Final = _need(ResourceKind.TABLE, Access.ALTER)
_ANY_VIEW: Final = Need(Scope.ANY_ACCESS, ResourceKind.VIEW)
_ANY_FUNCTION: Final = Need(Scope.ANY_ACCESS, ResourceKind.FUNCTION)

NEEDS: Final[Mapping[Endpoint, Need]] = {
    Endpoint.LIST_DATABASES: _ANYBODY,
    Endpoint.CREATE_DATABASE: _need(ResourceKind.CATALOG, Access.CREATEDATABASE),
    Endpoint.GET_DATABASE: _SEES,
    Endpoint.ALTER_DATABASE: _need(ResourceKind.DATABASE, Access.ALTER),
    Endpoint.DROP_DATABASE: _need(ResourceKind.DATABASE, Access.DROP),
    Endpoint.LIST_TABLES: _SEES,
    Endpoint.CREATE_TABLE: _need(ResourceKind.DATABASE, Access.CREATETABLE),
    Endpoint.LIST_TABLE_DETAILS: _SEES,
    Endpoint.REGISTER_TABLE: _need(ResourceKind.DATABASE, Access.CREATETABLE),
    Endpoint.LIST_TABLES_GLOBALLY: _ANYBODY,
    Endpoint.GET_TABLE_BY_ID: _ANYBODY,  # checked once the table is known
    Endpoint.RENAME_TABLE: _ANYBODY,  # its names are in the body
    Endpoint.GET_TABLE: Need(Scope.ANY_ACCESS, ResourceKind.TABLE),
    Endpoint.ALTER_TABLE: _ALTER,
    Endpoint.DROP_TABLE: _need(ResourceKind.TABLE, Access.DROP),
    Endpoint.REPLACE_TABLE: _ALTER,
    Endpoint.COMMIT: _WRITE,
    Endpoint.GET_SNAPSHOT: _READ_SOME,
    Endpoint.LIST_SNAPSHOTS: _READ_SOME,
    Endpoint.GET_SNAPSHOT_VERSION: _READ_SOME,
    Endpoint.ROLLBACK: _WRITE,
    Endpoint.ROLLBACK_SCHEMA: _ALTER,
    Endpoint.GET_TOKEN: _READ,
    Endpoint.AUTHORIZE: _READ_SOME,
    Endpoint.LIST_PARTITIONS: _READ,
    Endpoint.CREATE_PARTITIONS: _WRITE,
    Endpoint.DROP_PARTITIONS: _WRITE,
    Endpoint.MARK_PARTITIONS_DONE: _WRITE,
    Endpoint.LIST_PARTITIONS_BY_NAMES: _READ,
    Endpoint.LIST_PARTITIONS_BY_FILTER: _READ,
    Endpoint.LIST_BRANCHES: _READ,
    Endpoint.CREATE_BRANCH: _WRITE,
    Endpoint.DROP_BRANCH: _WRITE,
    Endpoint.FORWARD_BRANCH: _WRITE,
    Endpoint.RENAME_BRANCH: _WRITE,
    Endpoint.LIST_TAGS: _READ,
    Endpoint.CREATE_TAG: _WRITE,
    Endpoint.GET_TAG: _READ,
    Endpoint.DELETE_TAG: _WRITE,
    Endpoint.LIST_CONSUMERS: _READ,
    Endpoint.RESET_CONSUMER: _WRITE,
    Endpoint.LIST_VIEWS: _SEES,
    Endpoint.CREATE_VIEW: _need(ResourceKind.DATABASE, Access.CREATEVIEW),
    Endpoint.LIST_VIEW_DETAILS: _SEES,
    Endpoint.LIST_VIEWS_GLOBALLY: _ANYBODY,
    Endpoint.GET_VIEW: _ANY_VIEW,
    Endpoint.ALTER_VIEW: _need(ResourceKind.VIEW, Access.ALTER),
    Endpoint.DROP_VIEW: _need(ResourceKind.VIEW, Access.DROP),
    Endpoint.RENAME_VIEW: _ANYBODY,  # its names are in the body
    Endpoint.LIST_FUNCTIONS: _SEES,
    Endpoint.CREATE_FUNCTION: _need(ResourceKind.DATABASE, Access.CREATEFUNCTION),
    Endpoint.LIST_FUNCTION_DETAILS: _SEES,
    Endpoint.LIST_FUNCTIONS_GLOBALLY: _ANYBODY,
    Endpoint.GET_FUNCTION: _ANY_FUNCTION,
    Endpoint.ALTER_FUNCTION: _need(ResourceKind.FUNCTION, Access.ALTER),
    Endpoint.DROP_FUNCTION: _need(ResourceKind.FUNCTION, Access.DROP),
    Endpoint.LIST_PERMISSIONS: _ANYBODY,  # shows what they may grant, and what they have
    Endpoint.GRANT_PERMISSION: _ANYBODY,  # its resource is in the body
    Endpoint.REVOKE_PERMISSION: _ANYBODY,
}


def resource_of(endpoint: Endpoint, names: Mapping[str, str]) -> Resource:
    """What the path of a request names."""
    kind, database = NEEDS[endpoint].kind, names.get("database", "")
    match kind:
        case ResourceKind.TABLE:
            return Resource(kind, database, split_object(names["table"])[0])
        case ResourceKind.VIEW:
            return Resource(kind, database, names["view"])
        case ResourceKind.FUNCTION:
            return Resource(kind, database, names["function"])
        case ResourceKind.DATABASE:
            return Resource(kind, database)
        case _:
            return Resource(ResourceKind.CATALOG)


def is_allowed(principal: Principal, need: Need, resource: Resource) -> bool:
    """Whether a principal has what a request needs."""
    match need.scope:
        case Scope.ANYBODY:
            return True
        case Scope.ADMIN:
            return principal.is_admin
        case Scope.SEES_DATABASE:
            return principal.sees_database(resource.database)
        case Scope.ANY_ACCESS:
            return principal.has_any(resource)
        case Scope.RESOURCE:
            return principal.may_any(need.accesses, resource) or (
                need.columns and bool(principal.columns_of(resource.database, resource.name))
            )


ERROR_TYPES: Final[Mapping[ResourceKind, ResourceType | None]] = {
    ResourceKind.CATALOG: None,
    ResourceKind.CATALOG_ALL: None,
    ResourceKind.DATABASE: ResourceType.DATABASE,
    ResourceKind.DATABASE_ALL: ResourceType.DATABASE,
    ResourceKind.TABLE: ResourceType.TABLE,
    ResourceKind.COLUMN: ResourceType.TABLE,
    ResourceKind.VIEW: ResourceType.VIEW,
    ResourceKind.FUNCTION: ResourceType.FUNCTION,
}

"""Grants: which principal may do what with which resource. Pure decisions.

A grant names a resource, an access and a principal. ``CATALOG_ALL`` stands for everything in a
warehouse, ``DATABASE_ALL`` for everything in a database, and the access ``ALL`` for all accesses.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, TypeVar

from emberlake.base.names import choices
from emberlake.errors import InvalidInput
from emberlake.rest.reading import Fields

E = TypeVar("E", bound=StrEnum)


class Access(StrEnum):
    """What a grant allows."""

    ALL = "ALL"
    DESCRIBE = "DESCRIBE"
    ALTER = "ALTER"
    DROP = "DROP"
    GRANT = "GRANT"
    CREATEDATABASE = "CREATEDATABASE"
    CREATETABLE = "CREATETABLE"
    CREATEVIEW = "CREATEVIEW"
    CREATEFUNCTION = "CREATEFUNCTION"
    LIST = "LIST"
    SELECT = "SELECT"
    UPDATE = "UPDATE"


class ResourceKind(StrEnum):
    """What a grant is for."""

    CATALOG = "CATALOG"
    CATALOG_ALL = "CATALOG_ALL"
    DATABASE = "DATABASE"
    DATABASE_ALL = "DATABASE_ALL"
    TABLE = "TABLE"
    COLUMN = "COLUMN"
    VIEW = "VIEW"
    FUNCTION = "FUNCTION"


_OF_DATABASES: Final = frozenset(
    {Access.DESCRIBE, Access.CREATETABLE, Access.CREATEVIEW, Access.CREATEFUNCTION, Access.LIST}
)
_COMMON: Final = frozenset({Access.ALL, Access.ALTER, Access.DROP, Access.GRANT})
_OF_ROWS: Final = frozenset({Access.SELECT, Access.UPDATE})
ACCESSES: Final[Mapping[ResourceKind, frozenset[Access]]] = {
    ResourceKind.CATALOG: _COMMON | {Access.CREATEDATABASE},
    ResourceKind.CATALOG_ALL: _COMMON | _OF_DATABASES | _OF_ROWS,
    ResourceKind.DATABASE: _COMMON | _OF_DATABASES,
    ResourceKind.DATABASE_ALL: _COMMON | _OF_ROWS,
    ResourceKind.TABLE: _COMMON | _OF_ROWS,
    ResourceKind.COLUMN: frozenset({Access.SELECT}),
    ResourceKind.VIEW: _COMMON | {Access.SELECT},
    ResourceKind.FUNCTION: _COMMON | {Access.SELECT},
}
_OBJECTS: Final[Mapping[ResourceKind, str]] = {
    ResourceKind.TABLE: "table",
    ResourceKind.COLUMN: "table",
    ResourceKind.VIEW: "view",
    ResourceKind.FUNCTION: "function",
}
_IN_DATABASE: Final = frozenset({ResourceKind.DATABASE, ResourceKind.DATABASE_ALL, *_OBJECTS})
MAX_PRINCIPAL: Final = 128


@dataclass(frozen=True, slots=True)
class Resource:
    """What may be accessed: a warehouse, or something in it."""

    kind: ResourceKind
    database: str = ""
    name: str = ""

    def to_json(self) -> dict[str, Any]:
        out = {"type": self.kind.value}
        if self.database:
            out["database"] = self.database
        if self.name:
            out[_OBJECTS[self.kind]] = self.name
        return out

    @staticmethod
    def from_json(value: object) -> "Resource":
        fields = Fields(value, "the resource")
        kind = _choice(ResourceKind, fields.text("type"), "resource type")
        word = _OBJECTS.get(kind)
        return Resource(
            kind,
            fields.text("database") if kind in _IN_DATABASE else "",
            fields.text(word) if word else "",
        )


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns by name: these, or all but these."""

    names: frozenset[str]
    are_excluded: bool = False

    def allow(self, column: str) -> bool:
        return (column in self.names) != self.are_excluded

    def to_json(self) -> dict[str, Any]:
        key = "excludedColumnNames" if self.are_excluded else "columnNames"
        return {key: sorted(self.names)}

    @staticmethod
    def from_json(value: object) -> "Columns":
        fields = Fields(value, "the columns")
        excluded = fields.texts("excludedColumnNames")
        names = fields.texts("columnNames")
        if bool(names) == bool(excluded):
            raise InvalidInput("the columns need either columnNames or excludedColumnNames")
        return Columns(frozenset(names or excluded), are_excluded=bool(excluded))


@dataclass(frozen=True, slots=True)
class Grant:
    """One access to one resource, permanent or for a limited time."""

    principal: str
    resource: Resource
    access: Access
    columns: Columns | None = None
    expires_at: int | None = None

    def covers(self, resource: Resource, access: Access) -> bool:
        """Whether the grant allows an access to a resource."""
        if self.access is not access and self.access is not Access.ALL:
            return False
        match self.resource.kind:
            case ResourceKind.CATALOG_ALL:
                return resource.kind is not ResourceKind.CATALOG
            case ResourceKind.DATABASE_ALL:
                return resource.kind in _OBJECTS and resource.database == self.resource.database
            case ResourceKind.COLUMN:
                return False  # of some columns only: see columns_of
            case _:
                return resource == self.resource


@dataclass(frozen=True, slots=True)
class Principal:
    """A caller, with their grants in one warehouse."""

    name: str
    is_admin: bool = False
    grants: Sequence[Grant] = field(default=(), repr=False)

    def may(self, access: Access, resource: Resource) -> bool:
        """Whether they have an access to a resource."""
        return self.is_admin or any(grant.covers(resource, access) for grant in self.grants)

    def may_any(self, accesses: Iterable[Access], resource: Resource) -> bool:
        """Whether they have one of these accesses."""
        return any(self.may(access, resource) for access in accesses)

    def sees_database(self, database: str) -> bool:
        """Whether the database is listed: there is something in it that they may do."""
        return self.is_admin or any(
            grant.resource.kind is ResourceKind.CATALOG_ALL
            or (grant.resource.kind in _IN_DATABASE and grant.resource.database == database)
            for grant in self.grants
        )

    def sees(self, resource: Resource) -> bool:
        """Whether a table, view or function is listed."""
        database = Resource(ResourceKind.DATABASE, resource.database)
        return self.may(Access.LIST, database) or self.has_any(resource)

    def has_any(self, resource: Resource) -> bool:
        """Whether they have any access to a table, view or function, or to columns of it."""
        return self.may_any(ACCESSES[resource.kind], resource) or any(
            grant.resource.kind is ResourceKind.COLUMN
            and (grant.resource.database, grant.resource.name) == (resource.database, resource.name)
            for grant in self.grants
        )

    def knows_names(self, database: str) -> bool:
        """Whether they may learn that a name in a database is free."""
        resource = Resource(ResourceKind.DATABASE, database)
        creating = (Access.CREATETABLE, Access.CREATEVIEW, Access.CREATEFUNCTION)
        return self.may_any((Access.LIST, *creating), resource)

    def columns_of(self, database: str, table: str) -> tuple[Columns, ...]:
        """The columns of a table that they may read, where they may not read all of it."""
        return tuple(
            grant.columns
            for grant in self.grants
            if grant.columns is not None
            and (grant.resource.database, grant.resource.name) == (database, table)
        )


def check_grant(grant: Grant) -> None:
    """Refuse a grant that makes no sense.

    Raises:
        InvalidInput: the message says why.
    """
    allowed = ACCESSES[grant.resource.kind]
    if grant.access not in allowed:
        raise InvalidInput(
            f"{grant.access} is not an access to a {grant.resource.kind}; there are "
            f"{', '.join(sorted(allowed))}"
        )
    if (grant.columns is not None) != (grant.resource.kind is ResourceKind.COLUMN):
        raise InvalidInput("columns are for the resource type COLUMN, which needs them")
    if not 0 < len(grant.principal) <= MAX_PRINCIPAL:
        raise InvalidInput(f"the name of a principal has 1 to {MAX_PRINCIPAL} characters")


def access_from(text: str) -> Access:
    """The access of a word."""
    return _choice(Access, text, "access")


def _choice(kind: type[E], text: str, what: str) -> E:
    try:
        return kind(text)
    except ValueError:
        known = choices(text, [each.value for each in kind], "there are:")
        raise InvalidInput(f"{text!r} is not a known {what}; {known}") from None

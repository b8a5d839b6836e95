"""What the server knows about databases and tables: rows of its database, as values."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from emberlake.rest.values import Audit
from emberlake.server.database.database import Bulk
from emberlake.spec.identifier import MAIN_BRANCH
from emberlake.spec.layout import TableLayout

_AUDIT: Final = "owner, created_at, created_by, updated_at, updated_by"
_T_AUDIT: Final = ", ".join(f"t.{name.strip()}" for name in _AUDIT.split(","))

DATABASE: Final = (
    f"SELECT id, name, options, {_AUDIT} "  # noqa: S608
    "FROM databases WHERE catalog = ? AND name = ?"
)
_TABLE: Final = (
    "SELECT t.id, d.name, t.name, t.path, t.is_external, b.name, b.schema_id, b.schema, "  # noqa: S608
    f"b.snapshot_id, b.snapshot, b.totals, b.pending_since, {_T_AUDIT} "
    "FROM databases d JOIN tables t ON t.database_id = d.id JOIN branches b ON b.table_id = t.id "
)
TABLE: Final = _TABLE + "WHERE d.catalog = ? AND d.name = ? AND t.name = ? AND b.name = ?"
TABLE_BY_ID: Final = _TABLE + "WHERE d.catalog = ? AND t.id = ? AND b.name = ?"
HEAD: Final = _TABLE + "WHERE t.id = ? AND b.name = ?"
HEADS: Final = Bulk(
    (("id", "TEXT"), ("branch", "TEXT")),
    _TABLE + "JOIN given ON t.id = given.id AND b.name = given.branch",
)
TABLES_AFTER: Final = (
    _TABLE + "WHERE d.catalog = ? AND d.name = ? AND t.name > ? AND b.name = 'main' "
    "ORDER BY t.name LIMIT ?"
)
OBJECT: Final = (
    "SELECT o.id, o.name, o.content, o.owner, o.created_at, o.created_by, o.updated_at, "
    "o.updated_by FROM databases d JOIN objects o ON o.database_id = d.id "
    "WHERE d.catalog = ? AND d.name = ? AND o.kind = ? AND o.name = ?"
)


@dataclass(frozen=True, slots=True)
class DatabaseRecord:
    """A database."""

    id: str
    name: str
    options: str
    audit: Audit


@dataclass(frozen=True, slots=True)
class TableRecord:
    """A table, seen by one of its branches."""

    id: str
    database: str
    table: str
    path: str
    is_external: bool
    branch: str
    schema_id: int
    schema: str
    snapshot_id: int | None
    snapshot: str | None
    totals: str | None
    pending_since: int | None
    audit: tuple[Any, ...]

    @property
    def object_name(self) -> str:
        """The name that clients use: ``t``, or ``t$branch_b`` for a branch."""
        return self.table if self.branch == MAIN_BRANCH else f"{self.table}$branch_{self.branch}"

    @property
    def layout(self) -> TableLayout:
        return TableLayout(self.path, self.branch)


@dataclass(frozen=True, slots=True)
class ObjectRecord:
    """A view or a function."""

    id: str
    name: str
    content: str
    audit: Audit


def database_record(row: tuple[Any, ...]) -> DatabaseRecord:
    """The database of a row of ``DATABASE``."""
    identity, name, options, *audit = row
    return DatabaseRecord(identity, name, options, audit_of(audit))


def table_record(row: tuple[Any, ...]) -> TableRecord:
    """The table of a row of ``TABLE`` and its like."""
    values = (*row[:4], bool(row[4]), *row[5:12], row[12:])
    return TableRecord(*values)


def object_record(row: tuple[Any, ...]) -> ObjectRecord:
    """The view or function of a row of ``OBJECT``."""
    identity, name, content, *audit = row
    return ObjectRecord(identity, name, content, audit_of(audit))


def audit_of(values: "list[Any] | tuple[Any, ...]") -> Audit:
    """Who created and changed something, from the last columns of its row."""
    owner, created_at, created_by, updated_at, updated_by = values
    return Audit(
        owner=owner,
        created_at=created_at,
        created_by=created_by,
        updated_at=updated_at,
        updated_by=updated_by,
    )


def new_audit(principal: str, now_ms: int) -> Mapping[str, Any]:
    """The columns of something new, by name."""
    return {
        "owner": principal,
        "created_at": now_ms,
        "created_by": principal,
        "updated_at": now_ms,
        "updated_by": principal,
    }


def insert(table: str, values: Mapping[str, object]) -> tuple[str, tuple[object, ...]]:
    """The statement and the arguments that add a row. The names are the program's own."""
    marks = ", ".join("?" * len(values))
    return f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})", tuple(values.values())  # noqa: S608

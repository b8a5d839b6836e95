"""Statements as frozen values: what was said, not how it is done.

Expressions and queries stay text, as they were written: the engine that evaluates them parses them.
Statements that move no rows (``commands``) are declared with their parsers, on the same base.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto

from emberlake.sql.names import TableName
from emberlake.types import DataField


@dataclass(frozen=True, kw_only=True)
class Statement:
    """The base of all statements."""


@dataclass(frozen=True, kw_only=True)
class Command(Statement):
    """The base of statements that move no rows; a catalog is enough to carry them out."""


@dataclass(frozen=True, kw_only=True)
class Query(Statement):
    """A SELECT, VALUES, TABLE or anything else that returns rows and changes nothing."""

    text: str


@dataclass(frozen=True, kw_only=True)
class Foreign(Statement):
    """A statement that is not about the lake; the engine decides whether it can carry it out.

    It may contain queries of the lake, such as CACHE TABLE x AS SELECT ... or EXPLAIN SELECT ...
    """

    text: str


@dataclass(frozen=True, kw_only=True)
class CreateTemporaryView(Statement):
    """CREATE TEMPORARY VIEW ... AS, ALTER VIEW ... AS: a name for a query, in the SQL session."""

    view: str
    query: str
    columns: tuple[str, ...] | None = None
    is_global: bool = False
    is_cached: bool = False  # CACHE TABLE ... AS: its rows stay as they are
    replace: bool = False
    must_exist: bool = False  # ALTER VIEW
    comments: Mapping[str, str] = field(default_factory=dict)  # of columns
    is_lazy: bool = False  # CACHE LAZY TABLE
    storage: str = ""  # OPTIONS (...) of CACHE TABLE, as it was written


@dataclass(frozen=True)
class PartitionValue:
    """A column of PARTITION (...): its value as an expression, or None if the rows have it."""

    column: str
    value: str | None


@dataclass(frozen=True, kw_only=True)
class Insert(Statement):
    """INSERT INTO and INSERT OVERWRITE."""

    table: TableName
    query: str
    columns: tuple[str, ...] | None = None
    by_name: bool = False
    overwrite: bool = False
    # Whether only partitions with new rows are replaced, whatever the settings say.
    is_dynamic: bool = False
    partition: tuple[PartitionValue, ...] | None = None
    replace_where: str | None = None  # a condition: INSERT INTO t REPLACE WHERE ...


@dataclass(frozen=True, kw_only=True)
class Inserts(Statement):
    """FROM source INSERT ... SELECT ... INSERT ... SELECT ...: one commit for each."""

    inserts: tuple[Insert, ...]


@dataclass(frozen=True, kw_only=True)
class Delete(Statement):
    """DELETE FROM."""

    table: TableName
    alias: str | None = None
    where: str | None = None
    ctes: str = ""  # WITH ..., in front of the statement


@dataclass(frozen=True)
class Assignment:
    """``column = value``; the column may be a field of a struct (``s.x``)."""

    column: tuple[str, ...]
    value: str


@dataclass(frozen=True, kw_only=True)
class Update(Statement):
    """UPDATE ... SET."""

    table: TableName
    assignments: tuple[Assignment, ...]
    alias: str | None = None
    where: str | None = None
    ctes: str = ""


class Rows(Enum):
    """The rows that a clause of MERGE is for."""

    MATCHED = auto()
    NOT_MATCHED = auto()
    NOT_MATCHED_BY_SOURCE = auto()


@dataclass(frozen=True)
class DeleteRow:
    """THEN DELETE."""


@dataclass(frozen=True)
class UpdateRow:
    """THEN UPDATE SET ...; without assignments: SET *."""

    assignments: tuple[Assignment, ...] | None


@dataclass(frozen=True)
class InsertRow:
    """THEN INSERT (...) VALUES (...); without both: INSERT *."""

    columns: tuple[tuple[str, ...], ...] | None
    values: tuple[str, ...] | None


@dataclass(frozen=True)
class MergeClause:
    """WHEN ... [AND condition] THEN action."""

    rows: Rows
    action: DeleteRow | UpdateRow | InsertRow
    condition: str | None = None


@dataclass(frozen=True, kw_only=True)
class Merge(Statement):
    """MERGE INTO."""

    table: TableName
    alias: str | None = None  # of the table
    source: str  # a table, or a query in parentheses, without its alias
    source_alias: str | None = None
    on: str
    clauses: tuple[MergeClause, ...]
    evolves_schema: bool = False
    ctes: str = ""


@dataclass(frozen=True, kw_only=True)
class Truncate(Statement):
    """TRUNCATE TABLE [PARTITION (...)]."""

    table: TableName
    partition: tuple[PartitionValue, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class CreateTable(Command):
    """CREATE TABLE, CREATE OR REPLACE TABLE, REPLACE TABLE.

    A primary key is in ``properties``, as in Paimon's SQL.
    """

    table: TableName
    columns: tuple[DataField, ...] = ()
    partitioned_by: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None
    location: str | None = None
    provider: str | None = None  # USING
    if_not_exists: bool = False
    replace: bool = False  # an existing table of that name is replaced
    must_exist: bool = False  # REPLACE TABLE without CREATE


@dataclass(frozen=True, kw_only=True)
class CreateTableAs(Statement):
    """CREATE TABLE ... AS: ``create`` has no columns of its own; they come from the query."""

    create: CreateTable
    query: str

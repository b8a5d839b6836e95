"""Statements that move no rows, as values.

``parse`` makes them from text, and ``run`` carries them out on a catalog. Names are as they were
written: the session resolves them.
"""

from dataclasses import dataclass
from typing import TypeAlias

from emberlake.sql.names import TableName
from emberlake.sql.statements import Command
from emberlake.types import DataType

Path: TypeAlias = tuple[str, ...]  # a name of several parts: a field of a struct
# Key and value as they were written; None: the partition of NULL.
PartitionSpec: TypeAlias = tuple[tuple[str, str | None], ...]
Properties: TypeAlias = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Column:
    """A column of ADD COLUMNS, and where it goes."""

    path: Path
    type: DataType
    comment: str | None = None
    default: str | None = None  # the text of an expression
    is_first: bool = False
    after: str | None = None


# --- databases ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CreateDatabase(Command):
    """CREATE DATABASE [IF NOT EXISTS] name [COMMENT text] [WITH DBPROPERTIES (...)]."""

    database: TableName
    if_not_exists: bool = False
    properties: Properties = ()


@dataclass(frozen=True)
class DropDatabase(Command):
    """DROP DATABASE [IF EXISTS] name [RESTRICT | CASCADE]."""

    database: TableName
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True)
class Use(Command):
    """USE database."""

    database: TableName


@dataclass(frozen=True)
class UseCatalog(Command):
    """SET CATALOG name."""

    catalog: str


# --- tables ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CreateTableLike(Command):
    """CREATE TABLE [IF NOT EXISTS] table LIKE other [TBLPROPERTIES (...)]."""

    table: TableName
    source: TableName
    if_not_exists: bool = False
    properties: Properties = ()
    provider: str | None = None


@dataclass(frozen=True)
class DropTable(Command):
    """DROP TABLE [IF EXISTS] table [PURGE]."""

    table: TableName
    if_exists: bool = False


# --- ALTER TABLE ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class AddColumns(Command):
    """ALTER TABLE table ADD COLUMN[S] (...)."""

    table: TableName
    columns: tuple[Column, ...]


@dataclass(frozen=True)
class DropColumns(Command):
    """ALTER TABLE table DROP COLUMN[S] [IF EXISTS] (...)."""

    table: TableName
    columns: tuple[Path, ...]
    if_exists: bool = False


@dataclass(frozen=True)
class RenameColumn(Command):
    """ALTER TABLE table RENAME COLUMN a TO b."""

    table: TableName
    column: Path
    new_name: str


@dataclass(frozen=True)
class ColumnChange:
    """What changes in a column."""

    column: Path
    type: DataType | None = None
    comment: str | None = None
    nullable: bool | None = None
    default: str | None = None
    drops_default: bool = False
    is_first: bool = False
    after: str | None = None


@dataclass(frozen=True)
class AlterColumns(Command):
    """ALTER TABLE table ALTER COLUMN a TYPE BIGINT, b COMMENT '...'."""

    table: TableName
    changes: tuple[ColumnChange, ...]


@dataclass(frozen=True)
class SetTableProperties(Command):
    """ALTER TABLE table SET TBLPROPERTIES (...); COMMENT ON TABLE table IS text."""

    table: TableName
    properties: Properties


@dataclass(frozen=True)
class UnsetTableProperties(Command):
    """ALTER TABLE table UNSET TBLPROPERTIES [IF EXISTS] (...)."""

    table: TableName
    keys: tuple[str, ...]
    if_exists: bool = False


@dataclass(frozen=True)
class RenameTable(Command):
    """ALTER TABLE table RENAME TO other."""

    table: TableName
    new_name: TableName


@dataclass(frozen=True)
class AddPartitions(Command):
    """ALTER TABLE table ADD [IF NOT EXISTS] PARTITION (...): only checked, as in Java."""

    table: TableName
    partitions: tuple[PartitionSpec, ...]


@dataclass(frozen=True)
class DropPartitions(Command):
    """ALTER TABLE table DROP [IF EXISTS] PARTITION (...), PARTITION (...)."""

    table: TableName
    partitions: tuple[PartitionSpec, ...]
    if_exists: bool = False


@dataclass(frozen=True)
class CreateTag(Command):
    """ALTER TABLE table CREATE [OR REPLACE] TAG [IF NOT EXISTS] tag [AS OF VERSION n] [RETAIN ...].

    REPLACE TAG is the same as CREATE OR REPLACE TAG.
    """

    table: TableName
    tag: str
    snapshot_id: int | None = None
    time_retained: str | None = None
    if_not_exists: bool = False
    or_replace: bool = False


@dataclass(frozen=True)
class RenameTag(Command):
    """ALTER TABLE table RENAME TAG a TO b."""

    table: TableName
    tag: str
    new_tag: str


@dataclass(frozen=True)
class DeleteTag(Command):
    """ALTER TABLE table DELETE TAG [IF EXISTS] tag: an unknown tag is not an error, as in Java."""

    table: TableName
    tag: str


# --- SHOW and DESCRIBE ----------------------------------------------------------------------------


@dataclass(frozen=True)
class ShowDatabases(Command):
    """SHOW DATABASES [IN catalog] [LIKE pattern]."""

    pattern: str | None = None
    within: TableName | None = None


@dataclass(frozen=True)
class ShowTables(Command):
    """SHOW TABLES [IN database] [LIKE pattern]; SHOW TABLE EXTENDED IN database LIKE pattern."""

    database: TableName | None = None
    pattern: str | None = None
    is_extended: bool = False
    partition: PartitionSpec | None = None  # of the one table that the pattern names


@dataclass(frozen=True)
class ShowViews(Command):
    """SHOW VIEWS [IN database] [LIKE pattern]."""

    database: TableName | None = None
    pattern: str | None = None


@dataclass(frozen=True)
class ShowPartitions(Command):
    """SHOW PARTITIONS table [PARTITION (...)]."""

    table: TableName
    partition: PartitionSpec = ()


@dataclass(frozen=True)
class ShowTags(Command):
    """SHOW TAGS table."""

    table: TableName


@dataclass(frozen=True)
class ShowCreateTable(Command):
    """SHOW CREATE TABLE table."""

    table: TableName


@dataclass(frozen=True)
class ShowTableProperties(Command):
    """SHOW TBLPROPERTIES table [(key)]."""

    table: TableName
    key: str | None = None


@dataclass(frozen=True)
class ShowColumns(Command):
    """SHOW COLUMNS IN table [IN database]."""

    table: TableName


@dataclass(frozen=True)
class ShowCurrentNamespace(Command):
    """SHOW CURRENT NAMESPACE."""


@dataclass(frozen=True)
class RefreshTable(Command):
    """REFRESH TABLE table: nothing is remembered that could be stale."""

    table: TableName


@dataclass(frozen=True)
class DescribeTable(Command):
    """DESCRIBE [TABLE] [EXTENDED | FORMATTED] table [PARTITION (...)] [column]."""

    table: TableName
    is_extended: bool = False
    column: Path | None = None
    partition: PartitionSpec | None = None


@dataclass(frozen=True)
class AnalyzeTable(Command):
    """ANALYZE TABLE table COMPUTE STATISTICS [FOR COLUMNS a, ... | FOR ALL COLUMNS]."""

    table: TableName
    columns: tuple[Path, ...] = ()
    is_all: bool = False


@dataclass(frozen=True)
class OfPeer(Command):
    """A statement of Delta Lake: OPTIMIZE table, DESCRIBE HISTORY table, ..."""

    words: str
    table: TableName


@dataclass(frozen=True)
class DescribeDatabase(Command):
    """DESCRIBE DATABASE [EXTENDED] name."""

    database: TableName
    is_extended: bool = False


# --- settings and procedures ----------------------------------------------------------------------


@dataclass(frozen=True)
class SetOption(Command):
    """SET key = value; SET key."""

    key: str
    value: str | None = None


@dataclass(frozen=True)
class ResetOption(Command):
    """RESET key; RESET."""

    key: str | None = None


Literal: TypeAlias = "str | int | float | bool | None"


@dataclass(frozen=True)
class Call(Command):
    """CALL [catalog.]sys.procedure(name => value, ...) or (value, ...)."""

    name: Path
    named: tuple[tuple[str, Literal], ...] = ()
    positional: tuple[Literal, ...] = ()

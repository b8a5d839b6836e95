"""What a catalog is: databases that hold tables, found by name.

Every catalog (on a filesystem, behind a server) offers these methods with this behaviour; the
conformance suite runs against each of them. Identifiers are ``"db.t"``, ``"db.t$branch_b"``,
``"db.t$snapshots"``, or an ``Identifier``.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from emberlake.commit.change import CommitResult
from emberlake.inspect import SystemTable
from emberlake.spec.identifier import Identifier
from emberlake.spec.schema import Schema
from emberlake.spec.schema_change import SchemaChange
from emberlake.table import Table

T = TypeVar("T")


@dataclass(frozen=True)
class Database:
    """A database: a named set of tables."""

    name: str
    options: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None


@dataclass(frozen=True, kw_only=True)
class Partition:
    """A partition and what it holds.

    ``spec`` has a text per partition column, which ``drop_partitions`` takes as it is.
    ``last_file_creation_time`` is in milliseconds since 1970 in UTC. Who created a partition and
    whether it is done is known to catalogs with a server only.
    """

    spec: Mapping[str, str]
    record_count: int
    file_size_in_bytes: int
    file_count: int
    last_file_creation_time: int | None
    total_buckets: int
    done: bool = False
    created_at: int | None = None
    created_by: str | None = None
    updated_at: int | None = None
    updated_by: str | None = None
    options: Mapping[str, str] | None = None


@dataclass(frozen=True)
class PagedList(Generic[T]):
    """One page of a listing; the token, when there is one, asks for the next page."""

    elements: list[T]
    next_page_token: str | None = None


class Catalog(ABC):
    """Databases and their tables. Catalogs pickle, and hold nothing that needs closing."""

    @property
    @abstractmethod
    def options(self) -> dict[str, str]:
        """The options that the catalog was created with."""

    @abstractmethod
    def list_databases(self) -> list[str]:
        """The names of all databases, sorted."""

    @abstractmethod
    def get_database(self, name: str) -> Database:
        """The database of that name.

        Raises:
            DatabaseNotFound: there is none.
        """

    @abstractmethod
    def create_database(
        self,
        name: str,
        ignore_if_exists: bool = False,  # noqa: FBT001, FBT002
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """Create a database.

        Raises:
            DatabaseAlreadyExists: it exists, and that is not to be ignored.
            Unsupported: the catalog cannot keep the properties.
        """

    @abstractmethod
    def drop_database(
        self,
        name: str,
        ignore_if_not_exists: bool = False,  # noqa: FBT001, FBT002
        cascade: bool = False,  # noqa: FBT001, FBT002
    ) -> None:
        """Drop a database; with ``cascade`` also all tables in it.

        Raises:
            DatabaseNotFound: there is none, and that is not to be ignored.
            DatabaseNotEmpty: it holds something, and ``cascade`` was not given.
        """

    @abstractmethod
    def list_tables(self, database_name: str) -> list[str]:
        """The names of the tables of a database, sorted."""

    @abstractmethod
    def get_table(self, identifier: str | Identifier) -> Table | SystemTable:
        """Open a table, a branch of one (``db.t$branch_b``) or a system table (``db.t$files``).

        Raises:
            TableNotFound: there is no such table, or no such system table.
            BranchNotFound: the table has no such branch.
        """

    @abstractmethod
    def create_table(
        self,
        identifier: str | Identifier,
        schema: Schema,
        ignore_if_exists: bool = False,  # noqa: FBT001, FBT002
    ) -> None:
        """Create a table. Everything is checked first; nothing is written when it is wrong.

        Raises:
            DatabaseNotFound: the database does not exist.
            TableAlreadyExists: the table exists, and that is not to be ignored.
            InvalidSchema: columns, keys or options do not make a table.
        """

    @abstractmethod
    def drop_table(
        self,
        identifier: str | Identifier,
        ignore_if_not_exists: bool = False,  # noqa: FBT001, FBT002
    ) -> None:
        """Delete a table with all its data, branches and tags.

        Raises:
            TableNotFound: there is none, and that is not to be ignored.
        """

    @abstractmethod
    def rename_table(
        self, source_identifier: str | Identifier, target_identifier: str | Identifier
    ) -> None:
        """Give a table another name, in the same database or in another one.

        Raises:
            TableNotFound: there is no table to rename.
            TableAlreadyExists: the new name is taken.
            DatabaseNotFound: the database of the new name does not exist.
        """

    @abstractmethod
    def alter_table(
        self,
        identifier: str | Identifier,
        changes: Sequence[SchemaChange],
        ignore_if_not_exists: bool = False,  # noqa: FBT001, FBT002
    ) -> None:
        """Change a table's schema: all of the changes, or none when one of them is refused.

        Raises:
            TableNotFound: there is none, and that is not to be ignored.
            InvalidSchema: a change is not allowed.
            CommitConflict: others changed the schema each time that this was tried.
        """

    @abstractmethod
    def list_partitions_paged(
        self,
        identifier: str | Identifier,
        max_results: int | None = None,
        page_token: str | None = None,
        partition_name_pattern: str | None = None,
    ) -> PagedList[Partition]:
        """The partitions of a table by name (``dt=2026-06-26/h=1``), a page at a time.

        Args:
            identifier: the table, or a branch of it.
            max_results: how many to give at most; all when not given.
            page_token: the token of the page before.
            partition_name_pattern: only names that match; ``*`` or ``%`` stands for any text.
        """

    @abstractmethod
    def drop_partitions(
        self, identifier: str | Identifier, partitions: Sequence[Mapping[str, object]]
    ) -> CommitResult:
        """Delete all data of partitions, in one commit.

        Args:
            identifier: the table, or a branch of it.
            partitions: a value for each partition column, or for some of them, which then stands
                for all partitions with these values. Text is cast to the column's type; the text
                of ``partition.default-name`` (``__DEFAULT_PARTITION__``) means null.
        """

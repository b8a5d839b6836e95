"""The interface of catalogs: databases and their tables, found by name.

Every catalog (on a filesystem, or behind a server) has these methods with this behaviour; the
conformance suite runs against each of them. Identifiers are ``"db.t"``, ``"db.t$branch_b"``,
``"db.t$snapshots"``, or an ``Identifier``.
"""

import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from emberlake.base.extras import load_offered
from emberlake.base.html import html_box, html_facts, html_note, html_table, html_title
from emberlake.base.names import listed
from emberlake.base.peer_names import AnswersPeersOfCatalogs
from emberlake.base.secrets import shown_options
from emberlake.base.times import to_millis
from emberlake.catalog.declarations import Declaration
from emberlake.catalog.rules import as_identifier
from emberlake.commit.change import CommitResult
from emberlake.errors import (
    EmberlakeError,
    InvalidIdentifier,
    InvalidInput,
    InvalidState,
    TagNotFound,
    Unsupported,
)
from emberlake.inspect import SystemTable
from emberlake.spec.identifier import Identifier
from emberlake.spec.instant import Instant, SnapshotInstant, TagInstant
from emberlake.spec.listing import PagedList, Partition
from emberlake.spec.schema import Schema
from emberlake.spec.schema_change import SchemaChange
from emberlake.spec.snapshot import Snapshot
from emberlake.spec.tag import format_duration
from emberlake.table import Table

if TYPE_CHECKING:
    from emberlake.read.sql_result import SqlResult

_SHOWN_DATABASES: Final = 20  # in a notebook; each takes a listing


@dataclass(frozen=True)
class Database:
    """A database: a named set of tables."""

    name: str
    options: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None

    def __repr__(self) -> str:
        return f"Database({self.name!r}, {shown_options(self.options)!r}, {self.comment!r})"

    def _repr_html_(self) -> str:
        title = html_title(f"Database {self.name}", self.comment or "")
        return html_box(title, html_facts(shown_options(self.options)) if self.options else "")


@dataclass(frozen=True)
class GetTagResponse:
    """A tag: its snapshot and its lifetime.

    ``tag_create_time`` is in milliseconds since 1970 in UTC, ``tag_time_retained`` an ISO 8601
    duration such as ``PT24H``; a tag that never expires has neither.
    """

    tag_name: str
    snapshot: Snapshot
    tag_create_time: int | None = None
    tag_time_retained: str | None = None


class Catalog(AnswersPeersOfCatalogs, ABC):
    """Databases and their tables. Catalogs pickle, and hold nothing that needs closing."""

    def _repr_html_(self) -> str:
        title = html_title(repr(self))
        try:
            names = self.list_databases()
            rows = [(name, listed(self.list_tables(name))) for name in names[:_SHOWN_DATABASES]]
        except EmberlakeError as error:  # the notebook still shows which catalog this is
            return html_box(title, html_note(str(error)))
        left = len(names) - len(rows)
        return html_box(
            title,
            html_table(("database", "tables"), rows) if rows else html_note("no databases"),
            html_note(f"and {left:,} more databases") if left else "",
        )

    @property
    @abstractmethod
    def options(self) -> dict[str, str]:
        """The options that the catalog was created with."""

    @abstractmethod
    def list_databases(self) -> list[str]:
        """The names of all databases, sorted."""

    @abstractmethod
    def get_database(self, name: str) -> Database:
        """The database with that name.

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
            DatabaseAlreadyExists: it exists, and ``ignore_if_exists`` is False.
            Unsupported: the catalog cannot store the properties.
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
            DatabaseNotFound: there is none, and ``ignore_if_not_exists`` is False.
            DatabaseNotEmpty: it is not empty, and ``cascade`` is False.
        """

    def list_views(self, database_name: str) -> list[str]:
        """The names of the views of a database, sorted; only servers keep views."""
        self.get_database(database_name)
        return []

    def list_functions(self, database_name: str) -> list[str]:
        """The names of the functions of a database, sorted; only servers keep functions."""
        self.get_database(database_name)
        return []

    @abstractmethod
    def list_tables(self, database_name: str) -> list[str]:
        """The names of the tables of a database, sorted."""

    @abstractmethod
    def get_table(self, identifier: str | Identifier) -> Table:
        """Open a table, a branch of one (``db.t$branch_b``) or a system table (``db.t$files``).

        For a system table it returns a ``SystemTable``. That is read like a table, so this method
        is typed as ``Table``; ``get_system_table`` has the exact type.

        Raises:
            TableNotFound: there is no such table, or no such system table.
            BranchNotFound: the table has no such branch.
        """

    @abstractmethod
    def get_system_table(self, identifier: str | Identifier) -> SystemTable:
        """Open a system table: ``db.t$files``, or of a branch ``db.t$branch_b$files``.

        Raises:
            TableNotFound: there is no such table, or no such system table.
            InvalidIdentifier: it is not the name of a system table.
        """

    @abstractmethod
    def create_table(
        self,
        identifier: str | Identifier,
        schema: Declaration,
        ignore_if_exists: bool = False,  # noqa: FBT001, FBT002
        *,
        partition_keys: Sequence[str] | None = None,
        primary_keys: Sequence[str] | None = None,
        options: Mapping[str, str] | None = None,
        comment: str | None = None,
    ) -> Table:
        """Create a table and return it.

        Everything is checked first; nothing is written if anything is wrong.

        Args:
            identifier: Its name.
            schema: A complete ``Schema``; or only the columns, as a ``pyarrow.Schema`` or a Spark
                ``StructType``, with the rest in the arguments below.
            ignore_if_exists: Open an existing table, whatever its schema.
            partition_keys: The columns that the table is partitioned by.
            primary_keys: The columns that identify a row.
            options: The table's options.
            comment: A description of the table.

        Raises:
            DatabaseNotFound: the database does not exist.
            TableAlreadyExists: the table exists, and ``ignore_if_exists`` is False.
            InvalidSchema: columns, keys or options are not valid.
            InvalidInput: keys, options or a comment were given in addition to a ``Schema``.
        """

    def replace_table(self, identifier: str | Identifier, schema: Schema) -> Table:  # noqa: ARG002
        """Replace the columns and options of a table, and remove its rows.

        Earlier snapshots stay readable.

        Raises:
            TableNotFound: there is no table to replace.
            InvalidSchema: columns, keys or options are not valid, or the partition columns differ.
            Unsupported: the catalog cannot replace tables.
        """
        raise Unsupported(
            f"{identifier} cannot be replaced in this catalog; drop it, and create it again"
        )

    @abstractmethod
    def drop_table(
        self,
        identifier: str | Identifier,
        ignore_if_not_exists: bool = False,  # noqa: FBT001, FBT002
    ) -> None:
        """Delete a table with all its data, branches and tags.

        Raises:
            TableNotFound: there is none, and ``ignore_if_not_exists`` is False.
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
        changes: SchemaChange | Sequence[SchemaChange],
        ignore_if_not_exists: bool = False,  # noqa: FBT001, FBT002
    ) -> None:
        """Change a table's schema: make all changes, or none if one of them is refused.

        Raises:
            TableNotFound: there is none, and ``ignore_if_not_exists`` is False.
            InvalidSchema: a change is not allowed.
            CommitConflict: others changed the schema during every attempt.
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
            max_results: the most partitions to return; by default all.
            page_token: the token of the previous page.
            partition_name_pattern: only names that match; ``*`` or ``%`` stands for any text.
        """

    @abstractmethod
    def drop_partitions(
        self, identifier: str | Identifier, partitions: Sequence[Mapping[str, object]]
    ) -> CommitResult:
        """Delete all data of these partitions, in one commit.

        Args:
            identifier: the table, or a branch of it.
            partitions: for each partition a value of every partition column, or of some of them,
                to match all partitions with these values. Text is cast to the column's type; the
                text of ``partition.default-name`` (``__DEFAULT_PARTITION__``) means null.
        """

    # --- SQL --------------------------------------------------------------------------------------

    def sql(self, query: str, args: Mapping[str, Any] | Sequence[Any] | None = None) -> "SqlResult":
        """Carry out one SQL statement in this process, in Spark's dialect; queries run on DuckDB.

        Statements of one catalog object share the current database (USE), settings (SET) and
        temporary views. Names that are not tables may be Arrow, pandas or Polars objects of the
        caller, by their Python names.

        Args:
            query: The statement.
            args: Values of its parameters: ``:name`` in the text, or a list for each ``?``.

        Raises:
            InvalidSql: it is not a statement, or names unknown columns.
            Unsupported: it needs Spark, or something that emberlake does not have.
        """
        # SQL is built on catalogs, so it is above them; it is loaded on first use.
        local = load_offered("catalog.sql", extra="sql")
        session = local.session_of(self)
        result: SqlResult = session.execute(query, args, sys._getframe(1))  # noqa: SLF001
        return result

    # --- tags, branches, rollback -----------------------------------------------------------------

    def create_tag(
        self,
        identifier: str | Identifier,
        tag_name: str,
        snapshot_id: int | None = None,
        time_retained: str | timedelta | None = None,
        ignore_if_exists: bool = False,  # noqa: FBT001, FBT002
    ) -> None:
        """The same as ``create_tag`` of the table."""
        table = self._versioned(identifier)
        table.create_tag(tag_name, snapshot_id, ignore_if_exists, time_retained)

    def get_tag(self, identifier: str | Identifier, tag_name: str) -> GetTagResponse:
        """A tag of a table.

        Raises:
            TagNotFound: there is no such tag.
        """
        tag = self._versioned(identifier).tag_manager().load_tag(tag_name)
        created, retained = tag.tag_create_time, tag.tag_time_retained
        return GetTagResponse(
            tag_name,
            tag.trim_to_snapshot(),
            None if created is None else to_millis(created),
            None if retained is None else format_duration(retained),
        )

    def delete_tag(self, identifier: str | Identifier, tag_name: str) -> None:
        """Delete a tag of a table.

        Raises:
            TagNotFound: there is no such tag.
        """
        if not self._versioned(identifier).delete_tag(tag_name):
            raise TagNotFound(f"{identifier}: tag {tag_name!r} does not exist", tag=tag_name)

    def list_tags_paged(
        self,
        identifier: str | Identifier,
        max_results: int | None = None,
        page_token: str | None = None,
        tag_name_prefix: str | None = None,
    ) -> PagedList[str]:
        """The names of a table's tags, a page at a time.

        Args:
            identifier: the table, or a branch of it.
            max_results: the most names to return; by default all.
            page_token: the token of the previous page.
            tag_name_prefix: only names with this prefix.
        """
        check_page_size(max_results)
        # The token is the last name of the previous page: tags may come and go between two pages.
        names = [
            name
            for name in sorted(self._versioned(identifier).list_tags())
            if name.startswith(tag_name_prefix or "") and name > (page_token or "")
        ]
        page = names[:max_results]
        return PagedList(page, page[-1] if len(page) < len(names) else None)

    def create_branch(
        self, identifier: str | Identifier, branch_name: str, tag_name: str | None = None
    ) -> None:
        """The same as ``create_branch`` of the table."""
        self._versioned(identifier).create_branch(branch_name, tag_name)

    def drop_branch(self, identifier: str | Identifier, branch_name: str) -> None:
        """The same as ``delete_branch`` of the table."""
        self._versioned(identifier).delete_branch(branch_name)

    def rename_branch(self, identifier: str | Identifier, from_branch: str, to_branch: str) -> None:
        """The same as ``rename_branch`` of the table."""
        self._versioned(identifier).rename_branch(from_branch, to_branch)

    def fast_forward(self, identifier: str | Identifier, branch_name: str) -> None:
        """The same as ``fast_forward`` of the table."""
        self._versioned(identifier).fast_forward(branch_name)

    def list_branches(self, identifier: str | Identifier) -> list[str]:
        """The same as ``list_branches`` of the table."""
        return self._versioned(identifier).list_branches()

    def rollback_to(
        self,
        identifier: str | Identifier,
        instant: Instant | int | str,
        from_snapshot: int | None = None,
    ) -> None:
        """The same as ``rollback_to`` of the table.

        Args:
            identifier: the table, or a branch of it.
            instant: ``Instant.snapshot(3)`` or 3, ``Instant.tag("monday")`` or ``"monday"``.
            from_snapshot: the snapshot that must be the latest one before the rollback.

        Raises:
            SnapshotNotFound, TagNotFound: there is no such snapshot or tag.
            InvalidState: another snapshot is the latest.
        """
        table = self._versioned(identifier)
        latest = table.snapshot_manager().latest_id()
        if from_snapshot is not None and latest != from_snapshot:
            raise InvalidState(
                f"{identifier} is at snapshot {latest}, not at {from_snapshot}; nothing was changed"
            )
        match instant:
            case SnapshotInstant(snapshot_id):
                table.rollback_to(snapshot_id)
            case TagInstant(tag_name):
                table.rollback_to(tag_name)
            case int() | str():
                table.rollback_to(instant)
            case _:
                raise InvalidInput(f"{instant!r} is neither a snapshot nor a tag")

    def _versioned(self, identifier: str | Identifier) -> Table:
        return self.get_table(data_table(identifier))


def data_table(identifier: str | Identifier) -> Identifier:
    """The identifier of a table or a branch. System tables are refused: they have no snapshots."""
    identifier = as_identifier(identifier)
    if identifier.system_table is not None:
        raise InvalidIdentifier(
            f"{identifier} is a system table; only its data table has snapshots, tags and branches"
        )
    return identifier


def check_page_size(max_results: int | None) -> None:
    """Refuse a page size below 1."""
    if max_results is not None and max_results < 1:
        raise InvalidInput(f"max_results is {max_results}; it must be 1 or more")

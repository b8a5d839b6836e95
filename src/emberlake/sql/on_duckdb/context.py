"""The engine, as its parts see it."""

from collections.abc import Mapping
from typing import Protocol

from sqlglot import exp

from emberlake.sql.commands.context import Session
from emberlake.sql.engine import Args
from emberlake.sql.on_duckdb.connection import Database, Prepared
from emberlake.sql.on_duckdb.pinned import Pins
from emberlake.sql.on_duckdb.target_rows import TargetRows


class Local(Protocol):
    """The session, the database of its queries, and the way from text to a query."""

    @property
    def session(self) -> Session: ...

    @property
    def database(self) -> Database: ...

    def settings(self) -> Mapping[str, str]:
        """The settings that SET has made."""

    def prepare(self, text: str, args: Args) -> Prepared:
        """A query for DuckDB, with all its tables pinned."""

    def prepare_tree(
        self,
        tree: exp.Expr,
        targets: Mapping[str, TargetRows] | None = None,
        pins: Pins | None = None,
    ) -> Prepared:
        """The same for a query that is parsed already; some of its names stand for rows.

        Args:
            tree: The query.
            targets: Rows by the names that stand for them.
            pins: Tables that other queries of the statement have pinned.
        """

    def has_view(self, name: str) -> bool:
        """Whether a temporary view has that name."""

"""The back end of SQL: everything that evaluates expressions or moves rows.

There are two: Spark, and DuckDB in this process. Both are given statements, not text, and get the
rules of names and settings from the session.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa

from emberlake.rowops.write import Written
from emberlake.sql.names import TableName
from emberlake.sql.statements import (
    CreateTemporaryView,
    Delete,
    Foreign,
    Insert,
    Merge,
    Query,
    Update,
)
from emberlake.table import Table
from emberlake.types import DataField

Args = Mapping[str, Any]


class Rows(Protocol):
    """The rows of a query. Its tables are read as they were when this was made."""

    @property
    def fields(self) -> tuple[DataField, ...]:
        """The columns of a table for them."""

    def write(self, table: Table, *, replaces: bool) -> Written:
        """Write their files for a table that is made of them; nothing is visible yet.

        Args:
            table: The table, with the columns of the rows.
            replaces: Whether they take the place of all rows that the table has.
        """


class Engine(Protocol):
    """A back end. ``Any`` is its own kind of result: a DataFrame, or rows in Arrow."""

    def query(self, statement: Query, args: Args) -> Any:
        """The rows of a query; every table is read at one snapshot, found when it starts."""

    def insert(self, statements: Sequence[Insert], args: Args) -> Any:
        """Write the rows of each query in a commit of its own.

        All queries see the tables as they were before the first commit, and nothing is written if
        one of them cannot be carried out.
        """

    def delete(self, statement: Delete, args: Args) -> Any:
        """Delete the rows for which a condition is true."""

    def update(self, statement: Update, args: Args) -> Any:
        """Change the rows for which a condition is true."""

    def merge(self, statement: Merge, args: Args) -> Any:
        """Bring the rows of a source into a table."""

    def create_view(self, statement: CreateTemporaryView, args: Args) -> Any:
        """Give a query a name in the session."""

    def rows_of(self, query: str, args: Args) -> "Rows":
        """The rows of a query, which a new table is for (CREATE TABLE ... AS)."""

    def owns(self, name: TableName) -> bool:
        """Whether the back end itself has a table or a temporary view of that name."""

    def is_view(self, name: TableName) -> bool:
        """Whether it is the name of a temporary view, which hides a table of that name."""

    def foreign(self, statement: Foreign, args: Args) -> Any:
        """A statement that is not about the lake; names of the lake in it are replaced.

        Raises:
            Unsupported: the back end knows no such statement.
        """

    def value(self, expression: str, args: Args) -> Any:
        """The value of an expression without columns: of PARTITION (...), IDENTIFIER(...), ..."""

    def answer(self, rows: pa.Table | None) -> Any:
        """The rows of a command in the form of a result; None: the command returns none."""

    # --- settings: those of Spark's session, or the session's own -----------------------------

    def settings(self) -> Mapping[str, str]:
        """All settings that SET has made, or that the session was started with."""

    def set_setting(self, key: str, value: str) -> None:
        """SET key = value."""

    def reset_setting(self, key: str | None) -> None:
        """RESET key; None: all of them."""

"""Carries out statements in a Spark session: names become scans, and Spark does the rest."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from emberlake.errors import Unsupported
from emberlake.sql.cursor import Cursor
from emberlake.sql.engine import Args
from emberlake.sql.names import TableName
from emberlake.sql.on_spark.changes import delete_rows, update_rows
from emberlake.sql.on_spark.inserts import FrameRows, insert_rows
from emberlake.sql.on_spark.merges import merge_rows
from emberlake.sql.on_spark.rewriting import Rewriter
from emberlake.sql.on_spark.views import Views
from emberlake.sql.session import SqlSession
from emberlake.sql.statements import (
    CreateTemporaryView,
    Delete,
    Foreign,
    Insert,
    Merge,
    Query,
    Update,
)


class SparkEngine:
    """One call of ``lake.sql``: it sees the DataFrames that were handed to that call."""

    def __init__(
        self,
        spark: SparkSession,
        views: Views,
        frames: Mapping[str, DataFrame],
    ) -> None:
        self.spark = spark
        self.views = views
        self.frames = {name.lower(): frame for name, frame in frames.items()}
        self.session: SqlSession  # set by the lake, which makes both
        self._settings: Mapping[str, str] | None = None

    def query(self, statement: Query, args: Args) -> DataFrame:
        """The rows of a query."""
        return self.frame(statement.text, args)

    def frame(self, query: str, args: Args) -> DataFrame:
        """The DataFrame of a query."""
        return self._rewriter(args).frame(query)

    def insert(self, statements: Sequence[Insert], args: Args) -> DataFrame:
        """Write the rows of queries."""
        insert_rows(statements, self.session, self._rewriter(args))
        return self.answer(None)

    def delete(self, statement: Delete, args: Args) -> DataFrame:
        """Delete rows."""
        delete_rows(statement, self.session.table(statement.table), self._rewriter(args))
        return self.answer(None)

    def update(self, statement: Update, args: Args) -> DataFrame:
        """Change rows."""
        update_rows(statement, self.session.table(statement.table), self._rewriter(args))
        return self.answer(None)

    def merge(self, statement: Merge, args: Args) -> DataFrame:
        """Merge rows."""
        merge_rows(statement, self.session.table(statement.table), self._rewriter(args))
        return self.answer(None)

    def create_view(self, statement: CreateTemporaryView, args: Args) -> DataFrame:
        """Give a query a name; ``lake.sql`` reads its tables again whenever it is used."""
        self.views.create(statement, self._rewriter(args).frame)
        return self.answer(None)

    def rows_of(self, query: str, args: Args) -> FrameRows:
        """The rows of a query, for a new table."""
        return FrameRows(self.frame(query, args))

    def owns(self, name: TableName) -> bool:
        """Whether Spark itself has a table or a temporary view of that name."""
        return self.views.owns(name)

    def is_view(self, name: TableName) -> bool:
        """Whether it is the name of a temporary view."""
        return len(name.parts) == 1 and self.views.is_view(name.last)

    def foreign(self, statement: Foreign, args: Args) -> DataFrame:
        """A statement for Spark; names of the lake in its queries become scans."""
        self._refuse_stored_view(statement.text)
        return self._rewriter(args).run(statement.text)

    def _refuse_stored_view(self, text: str) -> None:
        """Refuse a view in a database of the lake: Spark would keep it in its own catalog."""
        cursor = Cursor(text)
        if not cursor.take("CREATE"):
            return
        cursor.take("OR", "REPLACE")
        if not cursor.take("VIEW"):
            return
        cursor.take("IF", "NOT", "EXISTS")
        identifier = self.session.identify(cursor.table())
        if identifier is not None and identifier.database in self.session.catalog.list_databases():
            raise Unsupported(
                f"the catalog keeps no views, so {identifier} cannot be one; use CREATE TEMPORARY "
                "VIEW"
            )

    def value(self, expression: str, args: Args) -> Any:
        """The value of an expression without columns."""
        return self._rewriter(args).value(expression)

    def answer(self, rows: pa.Table | None) -> DataFrame:
        """The rows of a command as a DataFrame; without columns if it returns none."""
        if rows is None:
            return self.spark.createDataFrame([], StructType([]))
        return self.spark.createDataFrame(rows)

    def settings(self) -> Mapping[str, str]:
        """The settings of the session, read once: each takes several calls of the JVM."""
        if self._settings is None:
            self._settings = dict(self.spark.conf.getAll)
        return self._settings

    def set_setting(self, key: str, value: str) -> None:
        """SET key = value."""
        self._settings = None
        self.spark.conf.set(key, value)

    def reset_setting(self, key: str | None) -> None:
        """RESET key."""
        self._settings = None
        if key is None:
            self.spark.sql("RESET")
        else:
            self.spark.conf.unset(key)

    def _rewriter(self, args: Args) -> Rewriter:
        return Rewriter(self.spark, self.session, self.views, self.frames, args)

"""Temporary views over queries of the lake, and the names that ``attach`` has put into Spark.

A view of Spark keeps the scans that it was made with. ``lake.sql`` knows the text of the views that
it has made, and makes them again when a statement uses them, so they show the current tables.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from emberlake.errors import TableNotFound
from emberlake.sql.names import TableName, quoted
from emberlake.sql.on_spark.attached import AttachedTables
from emberlake.sql.statements import CreateTemporaryView

Frame = Callable[[str], DataFrame]  # the DataFrame of a query


@dataclass
class Views:
    """The views of a lake in a session."""

    spark: SparkSession
    attached: AttachedTables
    made: dict[str, CreateTemporaryView] = field(default_factory=dict)  # by names in lower case

    def create(self, statement: CreateTemporaryView, frame: Frame) -> None:
        """Make a view, for Spark as well."""
        self._make(statement, frame, replace=statement.replace)
        if statement.is_cached:
            lazy = " LAZY" if statement.is_lazy else ""
            self.spark.sql(f"CACHE{lazy} TABLE {quoted(statement.view)} {statement.storage}")
        elif not statement.is_global:
            self.made[statement.view.lower()] = statement

    def _make(self, statement: CreateTemporaryView, frame: Frame, *, replace: bool) -> None:
        rows: DataFrame = frame(statement.query)
        if statement.columns is not None:
            rows = rows.toDF(*statement.columns)
        for column, comment in statement.comments.items():
            rows = rows.withMetadata(column, {"comment": comment})
        if statement.is_global:
            make = rows.createOrReplaceGlobalTempView if replace else rows.createGlobalTempView
        else:
            make = rows.createOrReplaceTempView if replace else rows.createTempView
        make(statement.view)

    def is_view(self, name: str) -> bool:
        """Whether the session has a temporary view of that name."""
        catalog = self.spark.catalog
        try:
            # Asking for a table that is not there is slow: PySpark describes the error in detail.
            return bool(
                catalog.tableExists(quoted(name)) and catalog.getTable(quoted(name)).isTemporary
            )
        except AnalysisException:
            return False

    def owns(self, name: TableName) -> bool:
        """Whether a name is a table of Spark itself, or of another catalog, or a view."""
        if ".".join(name.parts).lower() in self.attached.names:
            return False
        if len(name.parts) > 2:
            return True  # another catalog: Spark knows whether there is one
        return bool(self.spark.catalog.tableExists(str(name)))

    def find(self, name: str, frame: Frame) -> bool:
        """Whether a name is a view of the session; a view of the lake is brought up to date."""
        if not self.is_view(name):
            self.made.pop(name.lower(), None)  # it was dropped
            return False
        statement = self.made.get(name.lower())
        if statement is not None:
            self._make(statement, frame, replace=True)
        return True

    def refuse_attached(self, name: TableName) -> None:
        """Refuse a name in another case, which Spark would accept for an attached table.

        Raises:
            TableNotFound: the name differs from that of an attached table only in case.
        """
        known = self.attached.names.get(".".join(name.parts).lower())
        if known is not None:
            raise TableNotFound(
                f"[TABLE_OR_VIEW_NOT_FOUND] there is no table {name}; names of tables and "
                f"databases are case-sensitive, and there is {known}"
            )

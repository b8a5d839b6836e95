"""A lake in a Spark session: ``attach``, ``lake.sql`` and ``sql``."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from emberlake.base.homes import with_database
from emberlake.base.names import did_you_mean
from emberlake.catalog import Catalog, CatalogFactory
from emberlake.errors import InvalidInput
from emberlake.spark.sessions import find_session
from emberlake.sql.names import DEFAULT_DATABASE, TableName
from emberlake.sql.on_spark.attached import AttachedTables
from emberlake.sql.on_spark.engine import SparkEngine
from emberlake.sql.on_spark.save_hook import start_saving, stop_saving
from emberlake.sql.on_spark.saving import Claim
from emberlake.sql.on_spark.views import Views
from emberlake.sql.parameters import Given
from emberlake.sql.session import SqlSession

_LAKE: Final = "lake"
_NO_TABLE: Final = "TABLE_OR_VIEW_NOT_FOUND"
_PART: Final = re.compile(r"`((?:[^`]|``)*)`")  # of a name in Spark's errors
_latest: dict[str, "Lake"] = {}  # the default for notebooks


class Lake:
    """The tables of a catalog in a Spark session; ``attach`` makes it."""

    def __init__(
        self,
        spark: SparkSession,
        catalog_options: Mapping[str, object],
        databases: Sequence[str] | None,
        name: str,
    ) -> None:
        self.spark = spark
        catalog = CatalogFactory.create(catalog_options)
        self._attached = AttachedTables(spark, catalog, catalog_options, databases)
        self._views = Views(spark, self._attached)
        self._catalog = catalog
        self._name = name
        self._database = DEFAULT_DATABASE

    @property
    def left_out(self) -> dict[str, str]:
        """The tables that ``spark.sql`` does not know, and why; ``lake.sql`` knows all."""
        return dict(self._attached.left_out)

    def sql(self, query: str, args: Given = None, **dataframes: DataFrame) -> DataFrame:
        """Carry out one statement on the tables of the catalog, and of Spark.

        Every table in it is read at one snapshot, found when the statement starts. A query runs
        when an action needs its rows; all other statements are done when the call returns.

        Args:
            query: The statement, in Spark's SQL.
            args: Values of parameters: ``:name`` in the statement, or a list for each ``?``.
            dataframes: Tables of the statement that are DataFrames, by their names in it.

        Raises:
            InvalidSql: the text is not a statement.
            Unsupported: the statement cannot be carried out; the error says what to do instead.
            TableNotFound, ColumnNotFound, DataMismatch: as everywhere. Errors of Spark are those of
                ``spark.sql``.
        """
        for name, frame in dataframes.items():
            if not hasattr(frame, "createOrReplaceTempView"):
                raise InvalidInput(f"{name} is a {type(frame).__name__}, not a Spark DataFrame")
        session = self._statement(dataframes)
        try:
            result: DataFrame = session.execute(query, args)
        except AnalysisException as error:
            if error.getCondition() == _NO_TABLE and (hint := _nearest(error, self._catalog)):
                error.add_note(hint)
            raise
        self._database = session.database
        self._attached.follow()
        return result

    @property
    def session(self) -> SqlSession:
        """The current database, the names and the settings, as they are now."""
        return self._statement({})

    def _statement(self, frames: Mapping[str, DataFrame]) -> SqlSession:
        """The session for one statement, whose engine reads the settings of Spark once."""
        engine = SparkEngine(self.spark, self._views, frames)
        engine.session = SqlSession(self._catalog, engine, name=self._name, database=self._database)
        return engine.session

    def knows(self, name: str) -> bool:
        """Whether a plain name is a table of the current database, or a temporary view."""
        return self._views.is_view(name) or self.session.find(TableName((name,))) is not None

    def claim(self, name: TableName, database: str) -> Claim | None:
        """The table of the lake that a name in Spark stands for, or would stand for if it is new.

        Args:
            name: Without the name of Spark's catalog.
            database: The current one of the session, for names of one part.
        """
        identifier = self._attached.identify(name, self._name, database)
        return None if identifier is None else Claim(identifier, self._attached)

    def refresh(self) -> None:
        """Let ``spark.sql`` know tables that are new or altered, and forget those that are gone.

        Names that Spark has lost are made again. If Spark has given one to a table of its own, an
        ``EmberlakeWarning`` says so, and ``left_out`` lists it.
        """
        self._attached.refresh()

    def detach(self) -> None:
        """Remove the names that ``attach`` has given to Spark. The tables stay."""
        stop_saving(self)
        self._attached.detach()
        if _latest.get(_LAKE) is self:
            del _latest[_LAKE]

    def __repr__(self) -> str:
        left_out = f", {len(self.left_out)} in left_out" if self.left_out else ""
        return f"Lake({self._name}: {len(self._attached.names)} tables in Spark{left_out})"


def _nearest(error: AnalysisException, catalog: Catalog) -> str:
    """Which table of the lake a name that Spark does not know is most like; Spark cannot tell."""
    name = (error.getMessageParameters() or {}).get("relationName", "")
    parts = [part.replace("``", "`") for part in _PART.findall(name)]
    if not parts:
        return ""
    if len(parts) == 1:
        homes = with_database(parts[0], catalog)
        return f"in the lake: did you mean {' or '.join(homes)}?" if homes else ""
    database, table = parts[-2:]
    databases = catalog.list_databases()
    if database not in databases:
        return did_you_mean([database], databases, before="in the lake: ")
    return did_you_mean([table], catalog.list_tables(database), f"in {database}: ")


def attach(
    spark: SparkSession,
    catalog_options: Mapping[str, object],
    databases: Sequence[str] | None = None,
    name: str = "paimon",
) -> Lake:
    """Make the tables of a catalog known to ``spark.sql``; ``lake.sql`` takes every statement.

    Names that Spark already has are left alone; ``left_out`` of the lake lists them. Until
    ``detach``, ``df.write.format("emberlake").saveAsTable("db.t")`` saves tables of the lake.

    Args:
        spark: The session.
        catalog_options: What ``CatalogFactory.create`` takes.
        databases: Only these; by default all. With ``[]`` none; ``lake.sql`` still works.
        name: The name of the catalog in statements of ``lake.sql``: ``paimon.db.t``.
    """
    lake = Lake(find_session(spark), catalog_options, databases, name)
    lake.refresh()
    start_saving(lake)
    _latest[_LAKE] = lake
    return lake


def latest_lake() -> Lake | None:
    """The lake that was attached last in this program, if it is still attached."""
    return _latest.get(_LAKE)


def sql(
    query: str,
    catalog_options: Mapping[str, object],
    spark: SparkSession | None = None,
    args: Given = None,
    **dataframes: DataFrame,
) -> DataFrame:
    """Carry out one statement, as ``sql`` of an attached lake does; Spark learns no names.

    Args:
        query: The statement, in Spark's SQL.
        catalog_options: What ``CatalogFactory.create`` takes.
        spark: The session; the active one by default.
        args: Values of parameters: ``:name`` in the statement, or a list for each ``?``.
        dataframes: Tables of the statement that are DataFrames, by their names in it.
    """
    return Lake(find_session(spark), catalog_options, (), "paimon").sql(query, args, **dataframes)

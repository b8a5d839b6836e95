"""Statements one after the other on Spark, for terminals and notebooks."""

import sys
from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame

from emberlake.sql.lexer import tokenize
from emberlake.sql.on_spark.lake import Lake
from emberlake.sql.on_spark.results import SparkResult
from emberlake.sql.session import SqlSession

_LOGS_OF_ERRORS: Final = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


class SparkRunner:
    """Carries out statements with ``lake.sql``."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake

    @property
    def session(self) -> SqlSession:
        """The current database, the names and the settings."""
        return self._lake.session

    def run(
        self,
        statement: str,
        args: Mapping[str, Any] | None = None,
        variables: Mapping[str, Any] | None = None,
    ) -> SparkResult:
        """Carry out one statement; unknown names may be variables."""
        return SparkResult(self._lake.sql(statement, args, **self._frames(statement, variables)))

    def _frames(self, statement: str, variables: Mapping[str, Any] | None) -> dict[str, DataFrame]:
        """The variables with rows that a statement may name; they hide no table or view."""
        if not variables:
            return {}
        words = {token.name for token in tokenize(statement) if token.is_name}
        held = {name: variables[name] for name in words if _has_rows(variables.get(name))}
        return {
            name: self._frame(rows) for name, rows in held.items() if not self._lake.knows(name)
        }

    def _frame(self, rows: Any) -> DataFrame:
        if isinstance(rows, DataFrame):
            return rows
        given = pa.table(rows) if hasattr(rows, "__arrow_c_stream__") else rows
        return self._lake.spark.createDataFrame(given)

    def interrupt(self) -> None:
        """Stop the running statement, from another thread."""
        self._lake.spark.interruptAll()


def log_no_errors() -> None:
    """Keep Spark from logging the errors of statements: the terminal shows them itself."""
    for name in _LOGS_OF_ERRORS:
        PySparkLogger.getLogger(name).disabled = True


def _has_rows(found: object) -> bool:
    if isinstance(found, DataFrame) or hasattr(found, "__arrow_c_stream__"):
        return True
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(found, pandas.DataFrame)

"""Starts a session for a notebook or a script, without the traps of a plain one.

A plain local session looks for ``python3`` on the path, which may lack emberlake; listens on an
address of the network; shows warnings and progress bars between the lines of a program; and moves
rows to pandas one by one.
"""

import logging
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSourceReader

from emberlake.errors import InvalidState
from emberlake.spark.sessions import active_session

PYTHON_VARIABLES: Final = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
# Listen only on this machine. On a cluster, executors must be able to reach the driver.
LOOPBACK: Final = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}
# Spark's web page listens where this says, whatever the settings.
_LOCAL_IP: Final = "SPARK_LOCAL_IP"
_JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
_LOG_LEVEL: Final = "spark.log.level"
_LOG_SETTINGS: Final = Path(__file__).with_name("quiet-log4j2.properties")
# The error that follows says what these log, which would be a page of Java in one line.
_REPEATING_LOGGERS: Final = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_DEFAULTS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}
_PUSH_DOWN: Final = "spark.sql.python.filterPushdown.enabled"
# Older versions mix up the filters that they push down, so the source would hand them back.
_KEEPS_FILTERS_APART: Final = hasattr(DataSourceReader, "pushLimit")


def session(master: str = "local[*]", **conf: object) -> SparkSession:
    """Start a Spark session that suits emberlake; one that runs is returned, with ``conf`` set.

    It is an ordinary session: everything that a plain one can do works, and every setting can be
    overridden. Workers run the Python of this program, local sessions listen on this machine alone,
    Spark's log shows errors only, Arrow moves rows to and from pandas, and filters are pushed down
    to data sources in Python where Spark keeps them apart. The web page is off
    (``spark_ui_enabled=True``).

    Args:
        master: ``local[2]``, the address of a cluster, or ``sc://...`` for Spark Connect.
        conf: Settings of Spark, by name, with ``_`` for ``.`` (``spark_sql_shuffle_partitions=4``)
            or in a dictionary: ``**{"spark.sql.shuffle.partitions": 4}``.

    Raises:
        InvalidState: Spark does not start, for example because Java 17 is missing.
    """
    asked = {_setting_name(name): _text(value) for name, value in conf.items()}
    builder = SparkSession.builder
    if active_session() is not None:
        return _with(builder, asked).getOrCreate()
    if master.startswith("sc:"):
        return _with(builder.remote(master), asked).getOrCreate()  # the server has the rest
    settings = chosen_settings(master, asked)
    if _LOG_LEVEL not in asked:
        _quiet_errors()
    is_local = master.startswith("local")
    with _environment(is_local=is_local, has_python="spark.pyspark.python" in settings):
        try:
            return _with(builder.master(master), settings).getOrCreate()
        except (RuntimeError, OSError) as error:  # Java is missing, or died
            raise InvalidState(
                "Spark does not start; it needs Java 17 or later, found by JAVA_HOME or PATH: "
                f"{error}"
            ) from error


def chosen_settings(master: str, asked: Mapping[str, str]) -> dict[str, str]:
    """The settings of a new session: what was asked for, and for the rest what suits emberlake."""
    chosen = {"spark.app.name": "emberlake", **_DEFAULTS}
    if master.startswith("local"):
        chosen |= LOOPBACK
    if _KEEPS_FILTERS_APART:
        chosen[_PUSH_DOWN] = "true"
    chosen |= asked
    if _LOG_LEVEL not in asked:
        quiet = f"-Dlog4j2.configurationFile={_LOG_SETTINGS.as_uri()}"
        chosen[_JAVA_OPTIONS] = f"{asked.get(_JAVA_OPTIONS, '')} {quiet}".strip()
    return chosen


def _quiet_errors() -> None:
    for name in _REPEATING_LOGGERS:
        logger = PySparkLogger.getLogger(name)
        if logger.level == logging.WARNING:  # their default: nobody has asked for them
            logger.setLevel(logging.CRITICAL)


def _with(builder: SparkSession.Builder, settings: Mapping[str, str]) -> SparkSession.Builder:
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder


def _setting_name(name: str) -> str:
    return name if "." in name else name.replace("_", ".")


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@contextmanager
def _environment(*, is_local: bool, has_python: bool) -> Iterator[None]:
    """Set what Spark reads from the environment when it starts, unless it is set already."""
    wanted: dict[str, str] = {}
    if is_local:
        wanted[_LOCAL_IP] = "127.0.0.1"
        if not has_python:
            wanted |= dict.fromkeys(PYTHON_VARIABLES, sys.executable)
    with added_variables(wanted):
        yield


@contextmanager
def added_variables(wanted: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables while a session starts, unless they are set already."""
    added = {name: value for name, value in wanted.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)

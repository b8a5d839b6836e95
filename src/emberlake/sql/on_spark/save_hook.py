"""The call of ``saveAsTable``, which lakes answer while they are attached.

Spark tells a data source in Python neither the name that ``saveAsTable`` gives to a table nor, when
the name is used, the options that it was given. In mode overwrite it drops a name before it asks
the source. So lakes are asked here, before Spark sees the call.
"""

import re
from collections.abc import Callable
from functools import wraps
from typing import Any, Final, Protocol

from pyspark.sql import DataFrame, SparkSession

from emberlake.sql.names import TableName
from emberlake.sql.on_spark.saving import Save

_METHOD: Final = "saveAsTable"
_PART: Final = re.compile(r"`((?:[^`]|``)+)`|([^`.\s]+)")
_SPARK_CATALOG: Final = "spark_catalog"
_MODES: Final = {"default": "error", "errorifexists": "error"}


class Saver(Protocol):
    """A lake in a session."""

    spark: SparkSession

    def save(self, save: Save) -> bool:
        """Save the table; False if that is Spark's task."""


_savers: list[Saver] = []  # the lake that was attached last comes last
_spark_methods: dict[type[Any], Callable[..., None]] = {}  # what the writers had before


def start_saving(saver: Saver) -> None:
    """Ask this lake when a table is saved in its session."""
    if saver in _savers:
        return
    _savers.append(saver)
    writer = type(saver.spark.range(1).write)
    if writer not in _spark_methods:
        _spark_methods[writer] = getattr(writer, _METHOD)
        setattr(writer, _METHOD, _asking_lakes(_spark_methods[writer]))


def stop_saving(saver: Saver) -> None:
    """Do not ask this lake any more. After the last one, the writers are Spark's own again."""
    if saver in _savers:
        _savers.remove(saver)
    if not _savers:
        while _spark_methods:
            writer, method = _spark_methods.popitem()
            setattr(writer, _METHOD, method)


def _asking_lakes(of_spark: Callable[..., None]) -> Callable[..., None]:
    """``saveAsTable`` of a class of writers: the lakes of the session come first."""

    @wraps(of_spark)
    def save_as_table(
        self: Any,
        name: str,
        format: str | None = None,  # noqa: A002 - Spark's name
        mode: str | None = None,
        partitionBy: str | list[str] | None = None,  # noqa: N803 - Spark's name
        **options: Any,
    ) -> None:
        self.mode(mode).options(**options)
        if partitionBy is not None:
            self.partitionBy(partitionBy)
        if format is not None:
            self.format(format)
        lakes = [saver for saver in reversed(_savers) if _is_same(saver.spark, self._spark)]
        parts = _parts_of(name)
        if lakes and parts is not None:
            save = _told(self, TableName(parts))
            if any(lake.save(save) for lake in lakes):
                return
        of_spark(self, name)

    return save_as_table


def _is_same(spark: Any, other: Any) -> bool:
    """Whether two objects stand for one session; ``SparkSession.active`` makes new ones."""
    if spark is other or type(spark) is not type(other):
        return spark is other
    if hasattr(spark, "_jsparkSession"):
        return bool(spark._jsparkSession.equals(other._jsparkSession))  # noqa: SLF001
    return bool(spark.session_id == other.session_id)


def _parts_of(name: str) -> tuple[str, ...] | None:
    """The parts of a name as Spark reads it; None if it refuses the text."""
    parts: list[str] = []
    place = 0
    while found := _PART.match(name, place):
        parts.append(found[2] or found[1].replace("``", "`"))
        place = found.end() + 1
        if found.end() == len(name):
            is_sparks = len(parts) > 1 and parts[0].lower() == _SPARK_CATALOG
            return tuple(parts[1:] if is_sparks else parts)
        if name[found.end()] != ".":
            return None
    return None


def _told(writer: Any, name: TableName) -> Save:
    """What a writer keeps to itself: the classic one in the JVM, that of Connect in Python."""
    if hasattr(writer, "_jwrite"):
        return _told_classic(writer, name)
    told = writer._write  # noqa: SLF001
    return Save(
        frame=_frame_of(writer),
        name=name,
        source=told.source,
        mode=_mode_of(told.mode),
        options={key.lower(): text for key, text in told.options.items()},
        partition_by=tuple(told.partitioning_cols),
        is_arranged=told.num_buckets >= 0 or bool(told.clustering_cols),
    )


def _frame_of(writer: Any) -> DataFrame:
    from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame  # noqa: PLC0415

    frame: DataFrame = ConnectFrame(writer._df, writer._spark)  # noqa: SLF001
    return frame


def _told_classic(writer: Any, name: TableName) -> Save:
    told = writer._jwrite  # noqa: SLF001
    to_java = writer._spark._jvm.scala.jdk.javaapi.CollectionConverters  # noqa: SLF001
    columns = told.partitioningColumns()
    options = to_java.asJava(told.extraOptions().originalMap())
    return Save(
        frame=writer._df,  # noqa: SLF001
        name=name,
        source=told.source(),
        mode=_mode_of(told.curmode().name()),
        options={key.lower(): text for key, text in options.items()},
        partition_by=tuple(to_java.asJava(columns.get())) if columns.isDefined() else (),
        is_arranged=told.numBuckets().isDefined() or told.clusteringColumns().isDefined(),
    )


def _mode_of(mode: str | None) -> str:
    lower = (mode or "error").lower()
    return _MODES.get(lower, lower)

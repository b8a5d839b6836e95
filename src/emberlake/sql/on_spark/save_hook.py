"""The call of ``saveAsTable``, which lakes answer while they are attached.

Spark tells a data source in Python neither the name that ``saveAsTable`` gives to a table nor, when
the name is used, the options that it was given. In mode overwrite it drops a name before it asks
the source. So lakes are asked here, before Spark sees the call.
"""

import re
from collections.abc import Callable
from functools import wraps
from threading import Lock
from typing import Any, Final, Protocol

from pyspark.sql import DataFrame, SparkSession

from emberlake.sql.names import TableName
from emberlake.sql.on_spark.attached import SPARK_CATALOG
from emberlake.sql.on_spark.saving import Claim, Save, chosen, save_in_lake

_METHOD: Final = "saveAsTable"
_PART: Final = re.compile(r"`((?:[^`]|``)+)`|([^`.\s]+)")
_CATALOG_SETTING: Final = "spark.sql.catalog."
_OF_JAVA: Final = "_jsparkSession"  # classic sessions have it
_DEFAULT_SOURCE: Final = "spark.sql.sources.default"
_MODES: Final = {"default": "error", "errorifexists": "error"}


class Saver(Protocol):
    """A lake in a session."""

    spark: SparkSession

    def claim(self, name: TableName, database: str) -> Claim | None:
        """The table of the lake that a name stands for; None if it cannot be one."""


_lock = Lock()
_savers: list[Saver] = []  # the lake that was attached last comes last
_replaced: dict[type[Any], tuple[Callable[..., None], Callable[..., None]]] = {}  # Spark's, ours


def start_saving(saver: Saver) -> None:
    """Ask this lake when a table is saved in its session."""
    writer = type(saver.spark.range(1).write)
    with _lock:
        if saver not in _savers:
            _savers.append(saver)
        if writer not in _replaced:
            of_spark = getattr(writer, _METHOD)
            _replaced[writer] = (of_spark, _asking_lakes(of_spark))
            setattr(writer, _METHOD, _replaced[writer][1])


def stop_saving(saver: Saver) -> None:
    """Do not ask this lake any more. After the last one, the writers are Spark's own again."""
    with _lock:
        if saver in _savers:
            _savers.remove(saver)
        if _savers:
            return
        while _replaced:
            writer, (of_spark, ours) = _replaced.popitem()
            if getattr(writer, _METHOD) is ours:  # else somebody has put theirs on top
                setattr(writer, _METHOD, of_spark)


def _asking_lakes(of_spark: Callable[..., None]) -> Callable[..., None]:
    """``saveAsTable`` of a class of writers: the lakes of the session come first."""

    @wraps(of_spark)
    def save_as_table(self: Any, *args: Any, **kwargs: Any) -> None:
        if not _is_saved_in_lake(self, *args, **kwargs):
            of_spark(self, *args, **kwargs)  # what the writer was told, it is told again

    return save_as_table


def _is_saved_in_lake(
    writer: Any,
    name: str,
    format: str | None = None,  # noqa: A002 - Spark's name
    mode: str | None = None,
    partitionBy: str | list[str] | None = None,  # noqa: N803 - Spark's name
    **options: Any,
) -> bool:
    """Save a table if its name is one of a lake; whether that was done."""
    claims = _claims(name, writer._spark)  # noqa: SLF001
    if not claims:
        return False
    writer.mode(mode).options(**options)
    if partitionBy is not None:
        writer.partitionBy(partitionBy)
    if format is not None:
        writer.format(format)
    save = _told(writer)
    claim = chosen(save, claims)
    if claim is None:
        return False
    save_in_lake(save, claim)
    return True


def _claims(name: str, session: Any) -> list[Claim]:
    """The tables of lakes that a name in a session can stand for."""
    lakes = _lakes_of(session)
    parts = _parts_of(name) if lakes else None
    if parts is None:
        return []
    first, is_short = parts[0], len(parts) < 3
    if first.lower() == SPARK_CATALOG and len(parts) > 1:
        parts = parts[1:]
    elif is_short and session.catalog.currentCatalog() != SPARK_CATALOG:
        return []  # short names are those of another catalog
    elif not is_short and session.conf.get(f"{_CATALOG_SETTING}{first}", None) is not None:
        return []  # Spark has a catalog of that name
    database = session.catalog.currentDatabase() if len(parts) == 1 else parts[-2]
    found = [lake.claim(TableName(parts), database) for lake in lakes]
    return [claim for claim in found if claim is not None]


def _lakes_of(session: Any) -> list[Saver]:
    """The lakes whose names a session knows: first its own, and of them the latest."""
    latest_first = reversed(tuple(_savers))
    known = [saver for saver in latest_first if _share_names(saver.spark, session)]
    return sorted(known, key=lambda saver: not _is_same(saver.spark, session))


def _share_names(spark: Any, other: Any) -> bool:
    """Whether two sessions have one catalog, as those of ``foreachBatch`` and ``newSession`` do."""
    if type(spark) is not type(other) or not hasattr(spark, _OF_JAVA):
        return _is_same(spark, other)
    own, others = spark._jsparkSession, other._jsparkSession  # noqa: SLF001
    return bool(own.sharedState().equals(others.sharedState()))


def _is_same(spark: Any, other: Any) -> bool:
    """Whether two objects stand for one session; ``SparkSession.active`` makes new ones."""
    if spark is other or type(spark) is not type(other):
        return spark is other
    if hasattr(spark, _OF_JAVA):
        return bool(spark._jsparkSession.equals(other._jsparkSession))  # noqa: SLF001
    return bool(spark.session_id == other.session_id)


def _parts_of(name: object) -> tuple[str, ...] | None:
    """The parts of a name as Spark reads it; None if it refuses the text."""
    if not isinstance(name, str):
        return None
    parts: list[str] = []
    place = 0
    while found := _PART.match(name, place):
        parts.append(found[2] or found[1].replace("``", "`"))
        place = found.end() + 1
        if found.end() == len(name):
            return tuple(parts)
        if name[found.end()] != ".":
            return None
    return None


def _told(writer: Any) -> Save:
    """What a writer keeps to itself: the classic one in the JVM, that of Connect in Python."""
    if hasattr(writer, "_jwrite"):
        return _told_classic(writer)
    told = writer._write  # noqa: SLF001
    return Save(
        frame=_frame_of(writer),
        source=told.source or writer._spark.conf.get(_DEFAULT_SOURCE),  # noqa: SLF001
        mode=_mode_of(told.mode),
        options={key.lower(): text for key, text in told.options.items()},
        partition_by=tuple(told.partitioning_cols),
        is_arranged=told.num_buckets >= 0 or bool(told.clustering_cols or told.sort_cols),
    )


def _frame_of(writer: Any) -> DataFrame:
    from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame  # noqa: PLC0415

    frame: DataFrame = ConnectFrame(writer._df, writer._spark)  # noqa: SLF001
    return frame


def _told_classic(writer: Any) -> Save:
    told = writer._jwrite  # noqa: SLF001
    to_java = writer._spark._jvm.scala.jdk.javaapi.CollectionConverters  # noqa: SLF001
    columns = told.partitioningColumns()
    options = to_java.asJava(told.extraOptions().originalMap())
    return Save(
        frame=writer._df,  # noqa: SLF001
        source=told.source(),
        mode=_mode_of(told.curmode().name()),
        options={key.lower(): text for key, text in options.items()},
        partition_by=tuple(to_java.asJava(columns.get())) if columns.isDefined() else (),
        is_arranged=any(
            arranged.isDefined()
            for arranged in (told.numBuckets(), told.clusteringColumns(), told.sortColumnNames())
        ),
    )


def _mode_of(mode: str | None) -> str:
    lower = (mode or "error").lower()
    return _MODES.get(lower, lower)

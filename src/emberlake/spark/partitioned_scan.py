"""Hands Spark plain Parquet files with their partition values, so that it prunes partitions itself.

Spark would find partition values by parsing folder names, where Paimon writes a null as
``__DEFAULT_PARTITION__`` and a date as the number of a day. The true values are in manifests. A
relation of Spark's own takes them as they are, so a condition on partition columns shows as
``PartitionFilters``.

PySpark has no function for it: classic sessions let us call the JVM, Spark Connect does not.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

import pyarrow as pa
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from emberlake.spark.native_scan import NativeFile
from emberlake.spark.sessions import listed_by_driver
from emberlake.spark.types import handed_out, nullable_fields, spark_schema, to_spark_batch
from emberlake.spec.values import Value, to_arrow_scalar
from emberlake.store.table_store import TableStore
from emberlake.types import AtomicType, DataField, TypeRoot, arrow_type

_MOST_FOLDERS: Final = 2_000  # each takes several calls of the JVM
_ON_DISK: Final = ("/", "file:")
# Conditions on floats must not reach Spark's reader (spark.read), so they would prune nothing.
_NOT_HERE: Final = frozenset({TypeRoot.FLOAT, TypeRoot.DOUBLE})


def why_not(
    spark: SparkSession, store: TableStore, fields: Sequence[DataField], files: Sequence[NativeFile]
) -> str | None:
    """Why Spark cannot be given the partition columns of files; None if it can."""
    columns = partition_columns(store, fields)
    if not columns:
        return "no partition column is read"
    if type(spark) is not SparkSession:
        return "a session on Spark Connect takes no partition values"
    if any(f.type.root in _NOT_HERE for f in columns if isinstance(f.type, AtomicType)):
        return "a partition column is a float, which Spark compares differently"
    folders: dict[str, bytes] = {}
    if len({file.path for file in files}) < len(files):
        return "a file is to be read twice"
    if len({file.folder for file in files}) > _MOST_FOLDERS:
        return f"passing more than {_MOST_FOLDERS:,} folders would take too long; use filter="
    for file in files:
        # An empty text and a null are two partitions in one folder.
        if folders.setdefault(file.folder, file.partition) != file.partition:
            return "two partitions share a folder"
    return None


def partition_columns(store: TableStore, fields: Sequence[DataField]) -> tuple[DataField, ...]:
    """Those of the columns to read that are partition columns."""
    return tuple(f for f in fields if f.name in store.schema.partition_keys)


def partitioned_frame(
    spark: SparkSession,
    store: TableStore,
    fields: Sequence[DataField],
    files: Sequence[NativeFile],
    options: Mapping[str, str],
) -> DataFrame | None:
    """The rows of files, with partition columns that Spark knows; None if that is not possible.

    Args:
        spark: The session.
        store: The table.
        fields: The columns to read.
        files: What to read.
        options: The options of Spark's Parquet reader.
    """
    columns = partition_columns(store, fields)
    data = tuple(f for f in fields if f not in columns)
    folders = {file.folder: file.partition for file in files}
    jvm: Any = spark._jvm  # noqa: SLF001 - there is no other way to give Spark a relation
    session: Any = spark._jsparkSession  # noqa: SLF001
    try:
        values = _internal_rows(spark, store, columns, list(folders.values()))
        sources = jvm.org.apache.spark.sql.execution.datasources
        path_of = jvm.org.apache.hadoop.fs.Path
        partitions = [
            sources.PartitionPath(row, path_of(folder))
            for folder, row in zip(folders, values, strict=True)
        ]
        spec = sources.PartitionSpec(_java_schema(session, columns), _seq(jvm, partitions))
        with _listing(spark, files):
            index = sources.InMemoryFileIndex(
                session,
                _seq(jvm, [path_of(file.path) for file in files]),
                _map(jvm, options),
                jvm.scala.Option.empty(),
                getattr(getattr(sources, "NoopCache$"), "MODULE$"),
                jvm.scala.Option.apply(spec),
                jvm.scala.Option.empty(),
            )
        if int(index.allFiles().size()) != len({file.path for file in files}):
            return None  # an index leaves out files that are gone; a plain read says so
        relation = sources.HadoopFsRelation(
            index,
            _java_schema(session, columns),
            _java_schema(session, data),
            jvm.scala.Option.empty(),
            sources.parquet.ParquetFileFormat(),
            _map(jvm, options),
            session,
        )
        return DataFrame(session.baseRelationToDataFrame(relation), spark)
    except (Py4JError, TypeError):  # another version, with other constructors
        return None


def _listing(spark: SparkSession, files: Sequence[NativeFile]) -> AbstractContextManager[None]:
    """How files are looked up: those of this disk by the driver, which takes microseconds each."""
    is_here = all(file.path.startswith(_ON_DISK) for file in files)
    return listed_by_driver(spark) if is_here else nullcontext()


def _internal_rows(
    spark: SparkSession,
    store: TableStore,
    columns: Sequence[DataField],
    partitions: Sequence[bytes],
) -> list[Any]:
    """The values of partitions as rows of the JVM."""
    keys = store.schema.partition_keys
    values = [store.partition_values(partition) for partition in partitions]
    arrays = [_array(f, [row[keys.index(f.name)] for row in values]) for f in columns]
    names = [f.name for f in columns]
    table = to_spark_batch(pa.Table.from_arrays(arrays, names), handed_out(tuple(columns)))
    frame = spark.createDataFrame(table, _schema(columns))
    plan = frame._jdf.queryExecution().executedPlan()  # noqa: SLF001
    rows = plan.executeCollect()
    return [rows[at] for at in range(len(partitions))]


def _array(field: DataField, values: Sequence[Value]) -> pa.Array:
    target = arrow_type(field.type)
    if not values:
        return pa.array([], target)
    ones = [
        pa.nulls(1, target) if v is None else pa.repeat(to_arrow_scalar(field.type, v), 1)
        for v in values
    ]
    return pa.concat_arrays(ones)


def _schema(columns: Sequence[DataField]) -> StructType:
    return nullable_fields(spark_schema(tuple(columns)))


def _java_schema(session: Any, columns: Sequence[DataField]) -> Any:
    return session.parseDataType(_schema(columns).json())


def _seq(jvm: Any, values: Sequence[Any]) -> Any:
    return jvm.PythonUtils.toSeq(list(values))


def _map(jvm: Any, values: Mapping[str, str]) -> Any:
    return jvm.PythonUtils.toScalaMap(dict(values))

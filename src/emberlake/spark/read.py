"""Read splits as a DataFrame: with Spark's own reader if it returns our rows, or in workers.

Nothing is read before an action. Spark's own reader reads only the columns and row groups that an
action needs. Python workers read all that the projection and the filter of the read ask for,
because Spark does not tell them what an action needs.
"""

import math
from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import coalesce, col, lit, nanvl
from pyspark.sql.types import StructType

from emberlake.base.names import backquoted
from emberlake.errors import InvalidInput
from emberlake.read.projection import ROW_KIND, Output
from emberlake.read.table_reader import TableReader
from emberlake.scan.splits import DataSplit
from emberlake.spark.filters import to_column
from emberlake.spark.native_scan import Division, NativeFile, NativeScan, divide
from emberlake.spark.partitioned_scan import partitioned_frame, why_not
from emberlake.spark.read_task import ReadTask
from emberlake.spark.session_files import SessionFiles
from emberlake.spark.sessions import check_workers
from emberlake.spark.split_frames import bytes_of, frame_of_splits
from emberlake.spark.types import handed_out, nullable_fields, spark_schema, to_spark_type
from emberlake.types import AtomicType, DataField, DataType, RowType, TypeRoot

# Dates and timestamps are stored in Spark's own calendar; a missing or damaged file is an error,
# whatever the session says.
READ_OPTIONS: Final = {
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
    "ignoreCorruptFiles": "false",
    "ignoreMissingFiles": "false",
    "mergeSchema": "false",
}
_KIND_FIELD: Final = DataField(-1, ROW_KIND, AtomicType("STRING", nullable=False))


def read_dataframe(
    reader: TableReader,
    splits: Sequence[DataSplit],
    spark: SparkSession,
    num_partitions: int | None = None,
) -> DataFrame:
    """The rows of splits.

    Args:
        reader: What to read from them.
        splits: From a plan of the same table.
        spark: The session to read them in.
        num_partitions: The number of partitions; then all rows go through Python workers. Without
            it, Spark reads plain Parquet files by itself, in partitions that it chooses.

    Raises:
        InvalidInput: the number of partitions is not at least one.
        InvalidState: Spark's Python workers cannot run emberlake.
    """
    _check_partitions(num_partitions)
    condition = None if reader.predicate is None else to_column(reader.predicate)
    if num_partitions is None and (condition is not None or reader.predicate is None):
        division = divide(reader, splits, SessionFiles(spark, reader.store.storage).opens)
    else:
        division = Division((), tuple(splits))
    parts = []
    if division.files:
        parts.append(read_natively(spark, reader, division.files, condition))
    if division.rest:
        parts.append(_read_by_workers(spark, reader, division.rest, num_partitions))
    if not parts:
        return spark.createDataFrame([], _schema(reader))
    rows = parts[0] if len(parts) == 1 else parts[0].union(parts[1])
    return rows if reader.limit is None else rows.limit(reader.limit)


def explain_dataframe(reader: TableReader, splits: Sequence[DataSplit], spark: SparkSession) -> str:
    """Who would read the files of splits in a session, and why not Spark itself."""
    files = SessionFiles(spark, reader.store.storage)
    if reader.predicate is not None and to_column(reader.predicate) is None:
        division = Division((), tuple(splits))
        files.refused["the filter"] = "Spark has no expression for it"
    else:
        division = divide(reader, splits, files.opens)
    left = sum(len(split.files) for split in division.rest)
    counts = f"{len(division.files)} files by Spark's own reader, {left} by Python workers"
    reasons = [f"{what}: {why}" for what, why in files.refused.items()]
    if division.files and reader.store.schema.partition_keys:
        fields = NativeScan(reader).fields
        problem = why_not(spark, reader.store, fields, division.files)
        prunes = "Spark prunes partitions by its own conditions"
        reasons.append(prunes if problem is None else f"partitions: {problem}")
    return "; ".join([counts, *reasons])


def _check_partitions(count: int | None) -> None:
    if count is not None and (type(count) is not int or count < 1):  # a bool is an int
        raise InvalidInput(f"num_partitions={count!r}: a read needs at least one partition")


def _schema(reader: TableReader) -> StructType:
    """The columns of the result, all of them nullable.

    Spark's own reader has only nullable columns, and the result must not depend on the reader.
    """
    return nullable_fields(spark_schema(_fields(reader)))


def _fields(reader: TableReader) -> tuple[DataField, ...]:
    fields = reader.projection.fields
    return (_KIND_FIELD, *fields) if reader.with_kind else fields


# --- Spark's own reader ---------------------------------------------------------------------------


def read_natively(
    spark: SparkSession,
    reader: TableReader,
    files: Sequence[NativeFile],
    condition: Column | None,
    more: Sequence[Column] = (),
) -> DataFrame:
    """The rows of files that ``divide`` left to Spark; ``more`` are columns after the others."""
    fields = NativeScan(reader).fields
    rows: DataFrame | None = None
    if why_not(spark, reader.store, fields, files) is None:
        rows = partitioned_frame(spark, reader.store, fields, files, READ_OPTIONS)
    if rows is None:
        schema = nullable_fields(spark_schema(fields))
        paths = [file.path for file in files]
        rows = spark.read.schema(schema).options(**READ_OPTIONS).parquet(*paths)
    if condition is not None:
        rows = rows.filter(condition)
    return rows.select(*(_output(output) for output in reader.projection.outputs), *more)


def _output(output: Output) -> Column:
    column = _opaque(_column(output.path), output.field.type)
    (field,) = spark_schema((output.field,))  # a comment is lost unless it is set again
    if not field.metadata:
        return column.alias(field.name)
    return column.alias(field.name, metadata=field.metadata)


def _opaque(column: Column, data_type: DataType) -> Column:
    """The column, wrapped so that no filter on floats reaches Spark's reader.

    The user's filters treat NaN as above all numbers and the two zeros as equal. The reader skips
    row groups by statistics that know nothing of NaN, and by dictionaries that distinguish the
    zeros.
    """
    match data_type:
        case AtomicType(root=TypeRoot.FLOAT | TypeRoot.DOUBLE):
            return nanvl(column, lit(math.nan).cast(to_spark_type(data_type)))
        case RowType(fields=fields) if any(_may_filter_floats(f.type) for f in fields):
            return coalesce(column, column)  # a filter on one of its fields cannot be pushed down
        case _:
            return column


def _may_filter_floats(data_type: DataType) -> bool:
    """Whether Spark could push down a filter on a float in it; never inside arrays and maps."""
    match data_type:
        case AtomicType(root=root):
            return root in (TypeRoot.FLOAT, TypeRoot.DOUBLE)
        case RowType(fields=fields):
            return any(_may_filter_floats(f.type) for f in fields)
        case _:
            return False


def _column(path: Sequence[str]) -> Column:
    name, *inner = path
    column = col(backquoted(name))
    for part in inner:
        column = column.getField(part)
    return column


# --- Python workers -------------------------------------------------------------------------------


def _read_by_workers(
    spark: SparkSession,
    reader: TableReader,
    splits: Sequence[DataSplit],
    num_partitions: int | None,
) -> DataFrame:
    check_workers(spark)
    share = min(1.0, len(_fields(reader)) / len(reader.store.schema.fields))
    frame, dealt = frame_of_splits(
        spark,
        splits,
        reader.store.options,
        num_partitions=num_partitions,
        output_bytes=int(bytes_of(splits) * share),
    )
    task = ReadTask(reader, handed_out(_fields(reader)), dealt)
    return frame.mapInArrow(task, _schema(reader))

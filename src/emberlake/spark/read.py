"""Read splits as a DataFrame: with Spark's own reader if it returns our rows, or in workers.

Nothing is read before an action. Spark's own reader reads only the columns and row groups that an
action needs. Python workers read all that the projection and the filter of the read ask for,
because Spark does not tell them what an action needs.
"""

from collections.abc import Sequence
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from emberlake.errors import InvalidInput
from emberlake.read.projection import ROW_KIND
from emberlake.read.table_reader import TableReader
from emberlake.scan.splits import DataSplit
from emberlake.spark.division import Division, divide
from emberlake.spark.filters import to_column
from emberlake.spark.native_read import read_division
from emberlake.spark.native_scan import NativeScan
from emberlake.spark.partitioned_scan import why_not
from emberlake.spark.read_task import ReadTask
from emberlake.spark.session_files import SessionFiles
from emberlake.spark.sessions import check_workers
from emberlake.spark.split_frames import bytes_of, frame_of_splits
from emberlake.spark.types import handed_out, nullable_fields, spark_schema
from emberlake.spark.unions import union_of
from emberlake.types import AtomicType, DataField

_KIND_FIELD: Final = DataField(-1, ROW_KIND, AtomicType("STRING", nullable=False))


def read_dataframe(
    reader: TableReader,
    splits: Sequence[DataSplit],
    spark: SparkSession,
    num_partitions: int | None = None,
    *,
    is_filtered: bool = True,
) -> DataFrame:
    """The rows of splits.

    Args:
        reader: What to read from them.
        splits: From a plan of the same table.
        spark: The session to read them in.
        num_partitions: The number of partitions; then all rows go through Python workers. Without
            it, Spark reads plain Parquet files by itself, in partitions that it chooses.
        is_filtered: False: rows that do not match the filter may be among the others, since the
            caller filters them again. Spark's own reader gets that filter alone.

    Raises:
        InvalidInput: the number of partitions is not at least one.
        InvalidState: Spark's Python workers cannot run emberlake.
    """
    _check_partitions(num_partitions)
    predicate = reader.predicate if is_filtered else None
    condition = None if predicate is None else to_column(predicate)
    if num_partitions is None and (condition is not None or predicate is None):
        division = divide(reader, splits, SessionFiles(spark, reader.store.storage).opens)
    else:
        division = Division((), tuple(splits))
    parts = read_division(spark, reader, division, condition)
    if division.rest:
        parts.append(_read_by_workers(spark, reader, division.rest, num_partitions))
    if not parts:
        return spark.createDataFrame([], _schema(reader))
    rows = union_of(parts)
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
    counts = f"{len(division.native)} files by Spark's own reader, {left} by Python workers"
    if division.newer:
        newer = len(division.newer)
        counts += f"; replaced records are left out by a join with the keys of {newer} of them"
    reasons = [f"{what}: {why}" for what, why in files.refused.items()]
    if division.native and reader.store.schema.partition_keys:
        fields = NativeScan(reader).fields
        problem = why_not(spark, reader.store, fields, division.native)
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

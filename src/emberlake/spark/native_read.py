"""Rows that Spark's own Parquet reader reads, with the columns and the filter of a read."""

import math
from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql

from emberlake.base.names import backquoted
from emberlake.read.projection import Output
from emberlake.read.table_reader import TableReader
from emberlake.spark.division import Division, record_fields
from emberlake.spark.native_scan import NativeFile, NativeScan
from emberlake.spark.partitioned_scan import partition_columns, partitioned_frame, why_not
from emberlake.spark.types import nullable_fields, spark_schema, to_spark_type
from emberlake.spec.key_value import KIND, KIND_FIELD, SEQUENCE_FIELD, RowKind
from emberlake.store.table_store import TableStore
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
_RECORD: Final = "__record"  # names of the two sides of a join
_NEWER: Final = "__newer"
_ADDS: Final = f"{KIND} IN ({', '.join(str(kind.value) for kind in RowKind if kind.is_add())})"


def read_division(
    spark: SparkSession, reader: TableReader, division: Division, condition: Column | None
) -> list[DataFrame]:
    """The rows of all files that ``divide`` left to Spark."""
    parts = []
    if division.files:
        parts.append(read_natively(spark, reader, division.files, condition))
    if division.records:
        fields = NativeScan(reader, more=(KIND_FIELD,)).fields
        records = _filtered(_rows(spark, reader.store, fields, division.records), condition)
        parts.append(_outputs(records.filter(_ADDS), reader, fields))
    if division.layered:
        parts.append(_read_layered(spark, reader, division, condition))
    return parts


def read_natively(
    spark: SparkSession,
    reader: TableReader,
    files: Sequence[NativeFile],
    condition: Column | None,
    more: Sequence[Column] = (),
) -> DataFrame:
    """The rows of plain files; ``more`` are columns after the others."""
    fields = NativeScan(reader).fields
    rows = _rows(spark, reader.store, fields, files)
    return _outputs(_filtered(rows, condition), reader, fields, more)


def _read_layered(
    spark: SparkSession, reader: TableReader, division: Division, condition: Column | None
) -> DataFrame:
    """Records that no newer one replaces: every task gets the keys and numbers of the newer ones.

    Spark applies conditions on keys to these as well. Conditions on other columns must not reach
    them: a record may be replaced by one that does not match.
    """
    store = reader.store
    known = record_fields(store.schema)
    fields = NativeScan(reader, more=(*known, KIND_FIELD)).fields
    records = _filtered(_rows(spark, store, fields, division.layered), condition).filter(_ADDS)
    newer = _rows(spark, store, known, division.newer)
    # As text: each operator on columns is a call of the JVM.
    signs = ((backquoted(f.name), "<" if f is SEQUENCE_FIELD else "=") for f in known)
    replaces = " AND ".join(f"{_RECORD}.{name} {sign} {_NEWER}.{name}" for name, sign in signs)
    newest = records.alias(_RECORD).join(
        sql.broadcast(newer.alias(_NEWER)), sql.expr(replaces), "left_anti"
    )
    return _outputs(newest, reader, fields)


def _rows(
    spark: SparkSession,
    store: TableStore,
    fields: Sequence[DataField],
    files: Sequence[NativeFile],
) -> DataFrame:
    """Columns of files as they are."""
    if why_not(spark, store, fields, files) is None:
        rows = partitioned_frame(spark, store, fields, files, READ_OPTIONS)
        if rows is not None:
            return rows
    schema = nullable_fields(spark_schema(tuple(fields)))
    return spark.read.schema(schema).options(**READ_OPTIONS).parquet(*(f.path for f in files))


def _filtered(rows: DataFrame, condition: Column | None) -> DataFrame:
    return rows if condition is None else rows.filter(condition)


def _outputs(
    rows: DataFrame,
    reader: TableReader,
    fields: Sequence[DataField],
    more: Sequence[Column] = (),
) -> DataFrame:
    """The columns of the read, from those that were read; each costs calls of the JVM."""
    outputs = reader.projection.outputs
    columns = [_output(output) for output in outputs]
    # Partition columns that Spark knows come last.
    is_same = [output.path[0] for output in outputs] == [f.name for f in fields] and (
        not partition_columns(reader.store, fields)
    )
    if is_same and not more and all(isinstance(column, str) for column in columns):
        return rows
    return rows.select(*columns, *more)


def _output(output: Output) -> Column | str:
    """A column of the result; a text if it comes as it is."""
    field = output.field
    (shown,) = spark_schema((field,))  # a comment is lost unless it is set again
    if output.path == (field.name,) and not (shown.metadata or _may_filter_floats(field.type)):
        return backquoted(field.name)
    column = _opaque(_column(output.path), field.type)
    if not shown.metadata:
        return column.alias(shown.name)
    return column.alias(shown.name, metadata=shown.metadata)


def _opaque(column: Column, data_type: DataType) -> Column:
    """The column, wrapped so that no filter on floats reaches Spark's reader.

    The user's filters treat NaN as above all numbers and the two zeros as equal. The reader skips
    row groups by statistics that know nothing of NaN, and by dictionaries that distinguish the
    zeros.
    """
    match data_type:
        case AtomicType(root=TypeRoot.FLOAT | TypeRoot.DOUBLE):
            return sql.nanvl(column, sql.lit(math.nan).cast(to_spark_type(data_type)))
        case RowType(fields=fields) if any(_may_filter_floats(f.type) for f in fields):
            return sql.coalesce(column, column)  # hides its fields from Spark's reader
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
    column = sql.col(backquoted(name))
    for part in inner:
        column = column.getField(part)
    return column

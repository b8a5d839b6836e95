"""Tables of the lake as DataFrames: one snapshot each, found when the statement starts."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from emberlake.errors import Unsupported
from emberlake.expressions.query_auth import authorized_reader, seeing_all
from emberlake.inspect import SystemTable
from emberlake.predicates import Predicate
from emberlake.read.projection import project_all
from emberlake.read.table_reader import TableReader
from emberlake.scan.plan import find_target, plan_target
from emberlake.scan.splits import DataSplit, attach_folders
from emberlake.scan.travel import Between
from emberlake.session.write_session import WriteSession
from emberlake.spark.located import FILE, PLACE, POSITION, located_rows
from emberlake.spark.read import read_dataframe
from emberlake.spark.types import handed_out, nullable_fields, spark_schema, to_spark_batch
from emberlake.spark.unions import union_of
from emberlake.spec.manifest import DataFile
from emberlake.spec.row_tracking import HIDDEN_NAMES, readable_fields
from emberlake.spec.schema import TableSchema
from emberlake.spec.snapshot import Snapshot
from emberlake.spec.support import check_readable
from emberlake.sql.hidden_columns import BUCKET, FILE_PATH, PARTITION, ROW_INDEX
from emberlake.sql.names import quoted
from emberlake.store.table_store import TableStore
from emberlake.table import Table
from emberlake.types import AtomicType, DataField, TypeRoot

# Where Spark looks for the length of a char or varchar column, whose type it shows as string.
_DECLARED = "__CHAR_VARCHAR_TYPE_STRING"


@dataclass(frozen=True)
class Pinned:
    """A table at the snapshot that a statement reads."""

    table: Table
    target: Snapshot | Between | None  # None: it is empty

    @classmethod
    def now(cls, table: Table) -> "Pinned":
        """The table as it is now, or where its options travel to."""
        return cls(table, find_target(table.store))

    @property
    def schema(self) -> TableSchema:
        """The columns of the table, at the time that is read."""
        return self.table.store.schema

    @property
    def hidden(self) -> tuple[str, ...]:
        """The columns that queries may name, and that ``*`` leaves out."""
        tracked = HIDDEN_NAMES if self.table.store.schema.profile.tracks_rows else ()
        placed = () if self.schema.profile.has_keys else (FILE_PATH, ROW_INDEX)
        return (PARTITION, BUCKET, *placed, *tracked)

    def splits(self, reader: TableReader) -> list[DataSplit]:
        """What a reader of the table has to read."""
        store, predicate = reader.store, reader.predicate
        splits = plan_target(store, self.target, predicate, None).splits
        attach_folders(splits, store.bucket_folder)
        return list(splits)


def scan(
    pinned: Pinned,
    spark: SparkSession,
    *,
    hidden: Sequence[str] = (),
    columns: Sequence[str] | None = None,
    predicate: Predicate | None = None,
) -> DataFrame:
    """The rows of a table, read by Spark itself wherever it can.

    Args:
        pinned: The table and its snapshot.
        spark: The session.
        hidden: The hidden columns that are needed; they come last.
        columns: The columns that are needed; by default all.
        predicate: Rows that do not match are not needed; some of them may come all the same.
    """
    store = pinned.table.store
    check_readable(store.schema)
    fields = readable_fields(store.schema)
    wanted = [f for f in store.schema.fields if columns is None or f.name in columns]
    needed = {f.name for f in wanted} | {name for name in hidden if name in HIDDEN_NAMES}
    if PARTITION in hidden:
        needed |= set(store.schema.partition_keys)
    read = [f for f in fields if f.name in needed] or list(store.schema.fields[:1])
    projection = project_all(read)
    if FILE_PATH in hidden or ROW_INDEX in hidden:
        rows = _with_places(pinned, spark, [f.name for f in read], predicate)
    else:
        reader = authorized_reader(TableReader(store, projection, predicate))
        read_rows = _by_bucket if BUCKET in hidden else _filtered_later
        rows = read_rows(reader, pinned.splits(reader), spark)
        if not hidden and read == (wanted or read) and not any(_is_padded(f) for f in read):
            return rows
    outputs = [_output(f) for f in wanted or read]
    outputs += [_hidden(name, store.schema.partition_keys) for name in hidden]
    return rows.select(*outputs)


def _filtered_later(reader: TableReader, splits: list[DataSplit], spark: SparkSession) -> DataFrame:
    return read_dataframe(reader, splits, spark, is_filtered=False)


def _by_bucket(reader: TableReader, splits: list[DataSplit], spark: SparkSession) -> DataFrame:
    """The rows with the number of their bucket: a read for each bucket, all in one DataFrame."""
    splits = sorted(splits, key=lambda split: split.bucket)
    parts = [
        read_dataframe(reader, list(group), spark).withColumn(BUCKET, F.lit(bucket))
        for bucket, group in groupby(splits, key=lambda split: split.bucket)
    ]
    if not parts:
        return read_dataframe(reader, [], spark).withColumn(BUCKET, F.lit(0))
    return union_of(parts)


def _with_places(
    pinned: Pinned, spark: SparkSession, columns: Sequence[str], predicate: Predicate | None
) -> DataFrame:
    """The rows of a table without a primary key, with their files and positions."""
    store, target = seeing_all(pinned.table.store, "read by file"), pinned.target
    if isinstance(target, Between):
        raise Unsupported(f"changes between two snapshots have no {FILE_PATH}")
    located = located_rows(
        WriteSession(store, ""), target, spark, predicate=predicate, columns=columns
    )
    files = [
        (file.file_name, _path(store, unit, file), unit.bucket)
        for unit in located.units
        for file in unit.files
    ]
    known = spark.createDataFrame(files, f"__file string, {FILE_PATH} string, {BUCKET} int")
    is_same = F.col(f"{PLACE}.{FILE}") == F.col("__file")
    rows = located.rows.join(F.broadcast(known), is_same, "left")
    return rows.withColumn(ROW_INDEX, F.col(f"{PLACE}.{POSITION}"))


def _path(store: TableStore, split: DataSplit, file: DataFile) -> str:
    folder = store.bucket_folder(split.partition, split.bucket)
    return file.path_in(folder)


def padded(rows: DataFrame, fields: Sequence[DataField]) -> DataFrame:
    """Rows with their CHAR columns as Spark shows them; other columns stay as they are."""
    limited = {f.name: f for f in fields if _is_padded(f)}
    if not limited:
        return rows
    names = rows.columns
    return rows.select(*(_output(limited[n]) if n in limited else quoted(n) for n in names))


def _is_padded(field: DataField) -> bool:
    return isinstance(field.type, AtomicType) and field.type.root is TypeRoot.CHAR


def _output(field: DataField) -> Column:
    """A column of the table; CHAR(n) is padded, as Spark shows it."""
    column = F.col(quoted(field.name))
    match field.type:
        case AtomicType(root=TypeRoot.CHAR, length=length):
            metadata = {_DECLARED: f"char({length})"}
            if field.description is not None:
                metadata["comment"] = field.description
            full = F.when(F.length(column) < length, F.rpad(column, length, " "))
            return full.otherwise(column).alias(field.name, metadata=metadata)
        case _:
            return column


def _hidden(name: str, partition_keys: Sequence[str]) -> Column:
    if name == PARTITION:
        return F.struct(*(F.col(quoted(key)) for key in partition_keys)).alias(PARTITION)
    return F.col(name)


def system_rows(table: SystemTable, spark: SparkSession) -> DataFrame:
    """The rows of a system table, as they are now."""
    fields = tuple(table.fields)
    rows = to_spark_batch(table.to_arrow(), handed_out(fields))
    return spark.createDataFrame(rows, nullable_fields(spark_schema(fields)))

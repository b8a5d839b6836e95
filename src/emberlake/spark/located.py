"""Rows of a table on Spark, each with the place where it is, so that it can be changed there.

``located_rows`` reads one snapshot as a DataFrame: the columns of the table, and ``PLACE``. A query
that decides what happens to rows may use any expression, join or subquery, but hands ``PLACE``
through unchanged; ``changes`` takes it back. What a place is depends on the table:

- without a primary key: the file and the position of the row in it;
- with a primary key: the row itself, since a record with its key takes its place.

Spark's own reader reads plain Parquet files, and knows positions by itself; rows that are marked as
deleted are left out by a join with bitmaps. Python workers read everything else.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import LongType, StringType, StructField, StructType

from emberlake.base.names import backquoted
from emberlake.base.parallel import limit_threads, parallel_map
from emberlake.errors import InvalidInput
from emberlake.predicates import Predicate
from emberlake.read.projection import Projection, project, project_all
from emberlake.read.table_reader import TableReader
from emberlake.rowops.locate import FilePlace, split_places, split_reads, vector_path
from emberlake.scan.plan import plan_target
from emberlake.scan.splits import DataSplit
from emberlake.session.write_session import WriteSession
from emberlake.spark.dealt_splits import DealtSplits
from emberlake.spark.failures import reported_errors
from emberlake.spark.filters import to_column
from emberlake.spark.native_read import read_natively
from emberlake.spark.native_scan import NativeFile, NativeScan
from emberlake.spark.numbering import check_exact, numbered
from emberlake.spark.planned import planned_files
from emberlake.spark.read import read_dataframe
from emberlake.spark.session_files import SessionFiles
from emberlake.spark.split_frames import bytes_of, frame_of_splits
from emberlake.spark.types import handed_out, nullable_fields, spark_schema, to_spark_batch
from emberlake.spark.unions import union_of
from emberlake.spec.deletion_vector import deleted_positions
from emberlake.spec.row_tracking import readable_fields
from emberlake.spec.schema import TableSchema
from emberlake.spec.snapshot import Snapshot
from emberlake.store.table_store import TableStore
from emberlake.store.vector_files import load_vector

PLACE: Final = "__place"  # where a row is
FILE: Final = "file"  # in a place: the name of the file that positions refer to
POSITION: Final = "pos"
_PLACE_TYPE: Final = StructType(
    [StructField(FILE, StringType(), True), StructField(POSITION, LongType(), True)]
)
_SAFE_NAME: Final = re.compile(r"[\w.-]+")  # Spark encodes other characters of file names
_BLOCK_BITS: Final = 15  # rows of a block of a bitmap: 32768, 4 KiB
_WORD_BITS: Final = 6
_MOST_VECTORS: Final = 1000  # more of them are left to the workers, which load them in parallel


@dataclass(frozen=True)
class LocatedRows:
    """The rows of one snapshot.

    Args:
        session: The write that may change them; has the columns of the table as they are now.
        snapshot: The state that was read; None if there is none, and so no rows.
        spark: The session that reads it.
        units: One split for each file, or group of files, that rows can be in; none for tables
            with a primary key.
        read: Reads ``rows``.
    """

    session: WriteSession
    snapshot: Snapshot | None
    spark: SparkSession
    units: tuple[DataSplit, ...]
    read: Callable[[], DataFrame]

    @cached_property
    def rows(self) -> DataFrame:
        """Columns of the table by their names, all nullable, and ``PLACE``."""
        return self.read()

    @property
    def store(self) -> TableStore:
        """The table."""
        return self.session.store

    @property
    def has_keys(self) -> bool:
        """Whether a row is replaced by its key, not by its position."""
        return self.store.schema.profile.has_keys


def located_rows(
    session: WriteSession,
    snapshot: Snapshot | None,
    spark: SparkSession,
    *,
    predicate: Predicate | None = None,
    columns: Sequence[str] | None = None,
) -> LocatedRows:
    """The rows of a snapshot, with their places. Nothing is read before an action.

    Args:
        session: The write, as ``rowops.attempts.present`` gives it together with the snapshot.
        snapshot: The state to read.
        spark: The session to read it in.
        predicate: Only rows that match it; prunes partitions, files and row groups.
        columns: The columns to read, also ``_ROW_ID`` and ``_SEQUENCE_NUMBER`` of row-tracked
            tables; None: all columns of the table. Spark's own reader prunes columns by itself,
            Python workers read what is named here. Tables with a primary key are always read whole.

    Raises:
        ColumnNotFound: there is no such column.
        Unsupported: values of a table with a primary key would not survive the trip through Spark.
    """
    store = session.store
    if PLACE in store.schema.field_by_name:
        raise InvalidInput(f"the table has a column {PLACE}, which is a reserved name")
    store.check_shows_all()
    splits = plan_target(store, snapshot, predicate, None).splits
    if store.schema.profile.has_keys:
        check_exact(store.schema.fields)
        return LocatedRows(
            session, snapshot, spark, (), lambda: _key_rows(store, splits, predicate, spark)
        )
    units = tuple(unit for split in splits for unit in _units(split))
    scan = _Scan(store, _projection(store.schema, columns), predicate, spark)
    return LocatedRows(session, snapshot, spark, units, lambda: scan.rows(units))


def _projection(schema: TableSchema, columns: Sequence[str] | None) -> Projection:
    if columns is None:
        return project_all(schema.fields)
    return project(readable_fields(schema), columns or [schema.field_names[0]])


def _units(split: DataSplit) -> Iterator[DataSplit]:
    """The split, cut into units that are changed as a whole: files, or groups of files."""
    if len(split.units) == 1:
        yield split
        return
    for names, _ in split.units:
        yield split.take([name in names for name in split.names])


def unit_name(unit: DataSplit) -> str:
    """The name of the file that positions in a unit refer to."""
    (place,) = split_places(unit)
    return place.file.file_name


def _key_rows(
    store: TableStore,
    splits: Sequence[DataSplit],
    predicate: Predicate | None,
    spark: SparkSession,
) -> DataFrame:
    fields = store.schema.fields
    rows = read_dataframe(TableReader(store, project_all(fields), predicate), splits, spark)
    names = [f.name for f in fields]
    numbers = [f.name for f in numbered(fields, "t")]
    plain = rows.toDF(*numbers)
    whole = sql.struct(*numbers).alias(PLACE)
    named = [sql.col(n).alias(name) for n, name in zip(numbers, names, strict=True)]
    return plain.select(*named, whole)


# --- files ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Scan:
    """Reads files of an append table."""

    store: TableStore
    projection: Projection
    predicate: Predicate | None
    spark: SparkSession

    def rows(self, units: Sequence[DataSplit]) -> DataFrame:
        """The rows of units, from Spark's reader and from workers."""
        plain, marked, rest = self._divide(units)
        parts = []
        if plain:
            parts.append(self._natively(plain))
        if marked:
            parts.append(self._unmarked(marked))
        if rest:
            parts.append(self._by_workers(rest))
        if not parts:
            return self.spark.createDataFrame([], self._schema)
        return union_of(parts)

    def _divide(
        self, units: Sequence[DataSplit]
    ) -> tuple[list[tuple[str, DataSplit]], list[tuple[str, DataSplit]], list[DataSplit]]:
        """Files for Spark, without and with deleted rows, and units for workers."""
        scan = NativeScan(self._reader, SessionFiles(self.spark, self.store.storage).opens)
        is_possible = scan.is_possible and (self.predicate is None or self._condition is not None)
        plain, marked, rest = [], [], []
        named: set[str] = set()
        for unit in units:
            name = unit_name(unit)
            path = None
            if is_possible and len(unit.entries) == 1 and name not in named:
                (path,) = scan.native_paths(replace(unit, deletion_files={}))
            named.add(name)
            if path is None or _SAFE_NAME.fullmatch(name) is None:
                rest.append(unit)
            elif unit.deletion_files:
                marked.append((path, unit))
            else:
                plain.append((path, unit))
        if len(marked) > _MOST_VECTORS:
            rest += [unit for _, unit in marked]
            marked = []
        return plain, marked, rest

    @property
    def _reader(self) -> TableReader:
        return TableReader(self.store, self.projection, self.predicate)

    @property
    def _condition(self) -> Column | None:
        return None if self.predicate is None else to_column(self.predicate)

    @property
    def _schema(self) -> StructType:
        columns = nullable_fields(spark_schema(self.projection.fields))
        return StructType([*columns.fields, StructField(PLACE, _PLACE_TYPE, True)])

    def _natively(self, units: Sequence[tuple[str, DataSplit]]) -> DataFrame:
        files = [NativeFile(path, unit.partition) for path, unit in units]
        place = sql.struct(
            sql.col("_metadata.file_name").alias(FILE),
            sql.col("_metadata.row_index").alias(POSITION),
        )
        return read_natively(self.spark, self._reader, files, self._condition, [place.alias(PLACE)])

    def _unmarked(self, marked: Sequence[tuple[str, DataSplit]]) -> DataFrame:
        """The rows of files without those that are marked as deleted."""
        places = [split_places(unit)[0] for _, unit in marked]
        bitmaps = pa.concat_tables(list(parallel_map(self._bitmap, places)))
        rows = self._natively(marked)
        blocks = sql.broadcast(self.spark.createDataFrame(bitmaps))
        file, position = sql.col(f"{PLACE}.{FILE}"), sql.col(f"{PLACE}.{POSITION}")
        is_near = (file == sql.col("__marked")) & (
            sql.shiftright(position, _BLOCK_BITS) == sql.col("__block")
        )
        number = sql.shiftright(position, _WORD_BITS).bitwiseAND((1 << _BLOCK_BITS - 6) - 1)
        word = sql.get(sql.col("__words"), number.cast("int"))
        # As text: the Python function takes only a constant number of bits.
        rows = rows.join(blocks, is_near, "left").withColumn("__word", word)
        bit = sql.expr(f"shiftright(__word, CAST({PLACE}.{POSITION} & 63 AS INT)) & 1")
        is_live = sql.col("__word").isNull() | (bit == 0)
        return rows.filter(is_live).select(*(backquoted(name) for name in self._schema.names))

    def _bitmap(self, place: FilePlace) -> pa.Table:
        """The rows of a file that are marked as deleted: only the blocks that have some."""
        assert place.vector is not None
        vector = load_vector(self.store.storage, vector_path(self.store, place), place.vector.range)
        block = 1 << _BLOCK_BITS
        count = -(-place.file.row_count // block) * block
        mask = np.zeros(count, bool)
        mask[deleted_positions(vector, 0, place.file.row_count)] = True
        words = np.packbits(mask, bitorder="little").view("<i8").reshape(-1, block >> _WORD_BITS)
        used = np.flatnonzero(words.any(axis=1))
        width = words.shape[1]
        offsets = pa.array(np.arange(len(used) + 1, dtype=np.int32) * width)
        return pa.table(
            {
                "__marked": pa.repeat(pa.scalar(place.file.file_name), len(used)),
                "__block": pa.array(used.astype(np.int64)),
                "__words": pa.ListArray.from_arrays(offsets, pa.array(words[used].ravel())),
            }
        )

    def _by_workers(self, units: Sequence[DataSplit]) -> DataFrame:
        frame, dealt = frame_of_splits(
            self.spark, units, self.store.options, output_bytes=bytes_of(units)
        )
        task = LocateTask(self.store, self.projection, self.predicate, dealt)
        return frame.mapInArrow(task, self._schema)


@dataclass(frozen=True)
class LocateTask:
    """Reads the units of one task, with the places of their rows."""

    store: TableStore
    projection: Projection
    predicate: Predicate | None
    dealt: DealtSplits

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of the units of the partitions that the batches name."""
        limit_threads()
        schema = handed_out(self.projection.fields)
        with reported_errors(), self.store.decoding_rows():
            for unit in self.dealt.splits(batches):
                with planned_files(self.store, unit.snapshot_id):
                    yield from self._rows(unit, schema)

    def _rows(self, unit: DataSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        names = [f.name for f in self.projection.fields]
        for placed in split_reads(self.store, [unit], self.predicate, names):
            name = pa.scalar(placed.place.file.file_name, pa.string())
            with closing(placed.read.located_tables()) as tables:
                for positions, rows in tables:
                    columns = [pa.repeat(name, len(positions)), pa.array(positions, pa.int64())]
                    place = pa.StructArray.from_arrays(columns, [FILE, POSITION])
                    found = to_spark_batch(rows, schema).append_column(PLACE, place)
                    yield from found.to_batches()

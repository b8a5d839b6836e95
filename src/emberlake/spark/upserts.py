"""Merges into a table with a primary key that need no old values, only whether a key exists.

Most merges are like this: all columns of rows that match are set, and new rows are inserted.
Only the keys of the files are read, with the numbers and kinds of their records: by tasks that
have the keys of the source, or by Spark if these are too many. The record with the highest number
decides whether a row is there. The records to write are columns of the source, so Spark makes them.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import BooleanType, ByteType, LongType, StructField, StructType

from emberlake.base.names import backquoted
from emberlake.expressions import Expression
from emberlake.expressions.typed import Column as TypedColumn
from emberlake.merge.plan import plan_merge
from emberlake.options import MergeEngine
from emberlake.read.bucket_reads import BucketReads
from emberlake.read.column_plan import plan_columns
from emberlake.read.projection import project_all
from emberlake.read.table_reader import TableReader
from emberlake.rowops.clauses import SOURCE, Action, Clause
from emberlake.rowops.edits import Prepared
from emberlake.rowops.merge_plan import MergePlan
from emberlake.rowops.result import Tally
from emberlake.scan.plan import plan_target
from emberlake.scan.splits import DataSplit
from emberlake.session.write_session import WriteSession
from emberlake.spark.kept import kept
from emberlake.spark.key_rows import write_key_rows
from emberlake.spark.merge_frames import MergeFrames
from emberlake.spark.merge_tasks import ID, handed, native_key
from emberlake.spark.native_read import READ_OPTIONS
from emberlake.spark.native_scan import NativeScan
from emberlake.spark.numbering import numbered
from emberlake.spark.session_files import SessionFiles
from emberlake.spark.small_source import UnitTask, over_units
from emberlake.spark.types import nullable_fields, spark_schema, to_spark_type
from emberlake.spark.write_task import gathered
from emberlake.spec.column_buffers import I64
from emberlake.spec.key_value import (
    KIND,
    KIND_FIELD,
    SEQUENCE,
    SEQUENCE_FIELD,
    RowKind,
    key_value_fields,
)
from emberlake.spec.schema import TableSchema
from emberlake.spec.snapshot import Snapshot
from emberlake.store.table_store import TableStore
from emberlake.types import DataField

_IS_THERE: Final = "is_there"
_SHAPE: Final = StructType([StructField(ID, LongType()), StructField(_IS_THERE, BooleanType())])
_ADDS: Final = [int(RowKind.INSERT), int(RowKind.UPDATE_AFTER)]
_MOST_SENT: Final = 4_000_000  # more keys than this are not sent to every executor


def upsert_keys(
    session: WriteSession, snapshot: Snapshot | None, frames: MergeFrames, *, is_dry: bool
) -> Prepared | None:
    """Write the records of a merge that needs no old values; None if it needs some.

    Raises:
        DataMismatch: several rows of the source have the same key.
    """
    schema = session.store.schema
    upsert = _upsert_of(frames.plan, schema)
    if upsert is None:
        return None
    found = _present(session, snapshot, frames)
    if found is None:
        return None
    with kept(found) as present:
        count = present.count()
        few = sql.broadcast(present) if count <= _MOST_SENT else present
        rows = frames.source.join(few, ID, "left").fillna({_IS_THERE: False})
        if upsert.old is None:
            rows = rows.filter(~sql.col(_IS_THERE))
        if upsert.new is None:
            rows = rows.filter(_IS_THERE)
        records = upsert.records(rows, frames, schema)
        tally = upsert.tally(count, frames) if _has_own_keys(frames) else None
        return write_key_rows(
            session,
            snapshot,
            records,
            is_dry=is_dry,
            is_unique=False,
            is_stable=True,
            tally=tally,
        )


def _has_own_keys(frames: MergeFrames) -> bool:
    """Whether it is known without a shuffle that each row of the source has a key of its own."""
    is_known = frames.plan.on.of_source is None and frames.small is not None
    return is_known and not frames.has_repeated_keys


# --- whether it is one ----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Upsert:
    """For every column of the table, that of the source; None: such rows are not written."""

    old: Mapping[str, str] | None
    new: Mapping[str, str] | None

    def tally(self, present: int, frames: MergeFrames) -> Tally:
        """The tally if ``present`` rows of the source exist, each with its own key."""
        new = frames.ranges.count - present
        return Tally(
            updated=0 if self.old is None else present, inserted=0 if self.new is None else new
        )

    def records(self, rows: DataFrame, frames: MergeFrames, schema: TableSchema) -> DataFrame:
        """The records to write, in the form of ``records_schema``."""
        names = frames.columns.by_name
        is_there = sql.col(_IS_THERE)
        kinds = RowKind.UPDATE_AFTER.symbol, RowKind.INSERT.symbol
        columns = [sql.when(is_there, kinds[0]).otherwise(kinds[1]).alias("kind")]
        sides = [side for side in (self.old, self.new) if side is not None]
        for field, number in zip(schema.fields, numbered(schema.fields, "t"), strict=True):
            origins = [side.get(field.name) for side in sides]
            values = [sql.lit(None) if o is None else sql.col(names[o]) for o in origins]
            value = values[0]
            if len(set(origins)) > 1:
                value = sql.when(is_there, values[0]).otherwise(values[1])
            columns.append(value.cast(to_spark_type(number.type)).alias(number.name))
        return rows.select(*columns)


def _upsert_of(plan: MergePlan, schema: TableSchema) -> _Upsert | None:
    order = plan_merge(schema, schema.fields)
    on, keys = plan.on, {pair.columns for pair in plan.on.keys}
    equal = {pair[0]: pair[1] for pair in keys if pair is not None}
    if (
        plan.orphaned
        or len(plan.matched) > 1
        or len(plan.new) > 1
        or on.predicate is not None
        or on.of_pairs is not None
        or any(pair.matches_null or native_key(pair.target) is None for pair in on.keys)
        or set(equal) != set(schema.primary_keys)
        or order.engine is not MergeEngine.DEDUPLICATE
        or order.sequences
        or order.ignore_delete
        or schema.profile.has_deletion_vectors
    ):
        return None
    old = new = None
    for clause in plan.matched:
        old = _plain_values(clause, schema)
        if clause.action is not Action.UPDATE or old is None:
            return None
        old = {**old, **equal}
        if set(old) != set(schema.field_names):
            return None
    for clause in plan.new:
        new = _plain_values(clause, schema)
        lacks_default = all(
            f.default_value is None for f in schema.fields if new is not None and f.name not in new
        )
        if new is None or not lacks_default:
            return None
    return _Upsert(old, new)


def _plain_values(clause: Clause, schema: TableSchema) -> Mapping[str, str] | None:
    """The columns that a clause sets, if their values are plain columns of the source."""
    if clause.where is not None:
        return None
    found = {n: _plain(value, schema.field_by_name[n]) for n, value in clause.values.items()}
    plain = {name: origin for name, origin in found.items() if origin is not None}
    return plain if len(plain) == len(found) else None


def _plain(value: Expression, field: DataField) -> str | None:
    typed = value.typed
    if not isinstance(typed, TypedColumn) or typed.source != SOURCE or typed.path:
        return None
    is_same = typed.type.with_nullable(True) == field.type.with_nullable(True)
    return typed.field.name if is_same else None


# --- keys that are there --------------------------------------------------------------------------


def _present(
    session: WriteSession, snapshot: Snapshot | None, frames: MergeFrames
) -> DataFrame | None:
    """The rows of the source whose keys are there: ``id``, and ``is_there``, always true.

    None: Spark cannot read the keys, and the source is too large to be sent to tasks that can.
    """
    store = session.store
    if not _has_one_partition(store.schema):
        return None
    splits = plan_target(store, snapshot, frames.pruning(), None).splits
    if frames.small is not None:
        task = PresentTask(store, frames.small, None, tuple(store.schema.primary_keys))
        return over_units(frames.spark, splits, task, _SHAPE)
    paths = _native_paths(store, splits, frames)
    return None if paths is None else _joined(frames, paths)


def _has_one_partition(schema: TableSchema) -> bool:
    """Whether a key tells the partition of its row, so that each key is in one place."""
    return set(schema.partition_keys) <= set(schema.primary_keys)


@dataclass(frozen=True)
class PresentTask(UnitTask):
    """Finds the rows of the source whose keys are in one task's splits.

    All records of a key are in one split: that of its bucket, or of a part that shares no keys with
    others.
    """

    def _results(self, number: int, unit: DataSplit) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        rows, ages, kinds = (
            np.concatenate(parts) for parts in zip(*self._records(unit), strict=True)
        )
        order = np.lexsort((ages, rows))
        is_last = np.ones(len(rows), bool)
        is_last[:-1] = np.diff(rows[order]) != 0
        last = order[is_last]
        there = rows[last[np.isin(kinds[last], _ADDS)]]
        ids = pa.array(self.source.ids[there])
        yield from handed([ids, pa.array(np.ones(len(ids), bool))], _SHAPE)

    def _records(self, unit: DataSplit) -> Iterator[tuple[I64, I64, I64]]:
        """The records of keys that the source has: its rows, their sequence numbers and kinds."""
        nothing = np.empty(0, np.int64)
        yield nothing, nothing, nothing
        schema, merge = self.store.schema, self.source.merge
        keys = [schema.field_by_name[name] for name in self.columns]
        reads = BucketReads.of_split(self.store, unit)
        for file in unit.files:
            stored = key_value_fields(self.store.schemas.load(file.schema_id))
            fields = (*keys, SEQUENCE_FIELD, KIND_FIELD)
            plan = plan_columns([stored], fields, constants=schema.partition_keys)
            with closing(reads.read(file, plan).batches()) as batches:
                for records in gathered(batches):
                    found = merge.pairs(records.combine_chunks())
                    some = pa.array(found.places)
                    ages, kinds = (
                        records.column(name).take(some).to_numpy() for name in (SEQUENCE, KIND)
                    )
                    yield found.matches, ages, kinds.astype(np.int64)


# --- keys that Spark reads ------------------------------------------------------------------------


def _native_paths(
    store: TableStore, splits: Sequence[DataSplit], frames: MergeFrames
) -> list[str] | None:
    """The files that can hold keys of the source; None: Spark cannot read all of them."""
    fields = tuple(store.schema.field_by_name[name] for name in store.schema.primary_keys)
    reader = TableReader(store, project_all(fields))
    scan = NativeScan(reader, SessionFiles(frames.spark, store.storage).opens)
    if not scan.is_possible:
        return None
    paths = [path for split in splits for path in scan.paths_of_records(split)]
    return None if None in paths else [path for path in paths if path is not None]


def _joined(frames: MergeFrames, paths: list[str]) -> DataFrame:
    """The same rows that ``PresentTask`` finds, by a join on Spark."""
    spark = frames.spark
    fields = [native_key(pair.target) for pair in frames.plan.on.keys]
    keys = [f for f in fields if f is not None]
    about = [StructField(SEQUENCE, LongType()), StructField(KIND, ByteType())]
    if not paths:
        return spark.createDataFrame([], _SHAPE)
    stored = StructType([*nullable_fields(spark_schema(tuple(keys))).fields, *about])
    records = spark.read.schema(stored).options(**READ_OPTIONS).parquet(*paths)
    named = frames.as_keys([sql.col(backquoted(f.name)) for f in keys])
    pairs = frames.joined(records.select(SEQUENCE, KIND, *named), [])
    latest = pairs.groupBy(ID).agg(sql.max(sql.struct(SEQUENCE, KIND)).alias("latest"))
    there = latest.filter(sql.col(f"latest.{KIND}").isin(_ADDS))
    return there.select(ID, sql.lit(True).alias(_IS_THERE))

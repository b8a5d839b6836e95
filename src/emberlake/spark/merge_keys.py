"""Merge into a table with a primary key on Spark: pairs and new rows become records."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import BooleanType, IntegerType, LongType, StructField, StructType

from emberlake.base.parallel import limit_threads
from emberlake.expressions import Frame
from emberlake.predicates import Predicate
from emberlake.predicates import evaluate as evaluate_predicate
from emberlake.rowops.clauses import NO_CLAUSE, SOURCE, TARGET, Editor
from emberlake.rowops.edits import Prepared
from emberlake.rowops.key_changes import KeyWriting, repeated_keys
from emberlake.rowops.merge_plan import MergePlan
from emberlake.session.write_session import WriteSession
from emberlake.spark.failures import reported_errors
from emberlake.spark.kept import kept
from emberlake.spark.key_rows import (
    KeyChangeTask,
    Records,
    changed_rows,
    read_rows,
    records_schema,
    write_key_rows,
)
from emberlake.spark.merge_frames import MergeFrames, updates_of
from emberlake.spark.merge_tasks import (
    CLAUSE,
    ID,
    USED,
    Columns,
    InsertTask,
    Orphans,
    chosen_pairs,
    handed,
    key_columns,
    nan_keys,
    native_key,
)
from emberlake.spark.upserts import upsert_keys
from emberlake.spark.write_task import gathered
from emberlake.spec.key_value import RowKind
from emberlake.spec.schema import TableSchema
from emberlake.spec.snapshot import Snapshot
from emberlake.store.table_store import TableStore

_SHOWN = 5


def merge_keys(
    session: WriteSession, snapshot: Snapshot | None, frames: MergeFrames, *, is_dry: bool
) -> Prepared:
    """Write the records of a merge, or only count them.

    Raises:
        DataMismatch: several rows of the source would change the same row, or make the same key.
    """
    made = upsert_keys(session, snapshot, frames, is_dry=is_dry)
    if made is not None:
        return made
    plan, schema = frames.plan, session.store.schema
    predicate = None if plan.orphaned else frames.pruning()
    rows = read_rows(session.store, snapshot, predicate, frames.spark)
    target = Columns(schema.fields, "t")
    key_names = target.only(schema.primary_keys)
    keyed = _with_keys(rows, frames, target, plan.on.predicate if plan.orphaned else None)
    pairs = frames.joined(keyed.filter(USED), frames.columns.names)
    shape = _pairs_schema(schema)
    pair_task = PairTask(session.store, plan, target, frames.columns, shape, frames.now_ms)
    every = pairs.select(ID, *target.names, *frames.columns.names).mapInArrow(pair_task, shape)
    with ExitStack() as stack:
        every = stack.enter_context(kept(every))
        marks, records = every.filter("kind IS NULL"), every.filter("kind IS NOT NULL")
        records = records.drop(ID, CLAUSE)
        if frames.has_repeated_keys:
            _check_once(frames, marks, key_names)
            records = records.dropDuplicates(key_names)  # deleting a row twice is harmless
        if plan.orphaned:
            matched = marks.select(*key_names)
            alone = rows.join(matched, key_names, "left_anti").select(*target.names)
            editor = Editor(plan.for_table, None, frames.now_ms)
            task = KeyChangeTask(session.store, editor, Orphans(plan, frames.now_ms))
            records = records.union(changed_rows(alone, task, schema))
        if plan.new:
            new = stack.enter_context(kept(new_rows(frames, marks.select(ID), schema)))
            _check_new(new, key_names)
            records = records.union(new.select(sql.lit(RowKind.INSERT.symbol).alias("kind"), "*"))
        return write_key_rows(session, snapshot, records, is_dry=is_dry)


def _with_keys(
    rows: DataFrame, frames: MergeFrames, target: Columns, predicate: Predicate | None
) -> DataFrame:
    keys = [native_key(pair.target) for pair in frames.plan.on.keys]
    if predicate is None and None not in keys:
        names = target.by_name
        found = frames.as_keys([sql.col(names[f.name]) for f in keys if f is not None])
        return rows.select(sql.lit(True).alias(USED), *found, "*")
    shape = StructType([StructField(USED, BooleanType()), *frames.keys, *rows.schema.fields])
    task = TargetTask(frames.plan, target, predicate, shape, frames.now_ms)
    return rows.mapInArrow(task, shape)


def _pairs_schema(schema: TableSchema) -> StructType:
    about = [StructField(ID, LongType()), StructField(CLAUSE, IntegerType())]
    return StructType([*about, *records_schema(schema).fields])


def _check_once(frames: MergeFrames, marks: DataFrame, key_names: list[str]) -> None:
    updates = updates_of(frames.plan.for_table)
    acting = marks.filter(sql.col(CLAUSE) != NO_CLAUSE)
    groups = acting.groupBy(*key_names).agg(
        sql.count(sql.lit(1)).alias("n"), sql.max(sql.col(CLAUSE).isin(updates)).alias("harms")
    )
    harmed = groups.filter("n > 1 AND harms").select(*key_names)
    error = frames.ambiguous(acting.join(harmed, key_names, "left_semi").select(ID))
    if error is not None:
        raise error


def _check_new(new: DataFrame, key_names: list[str]) -> None:
    counts = new.groupBy(*key_names).count().filter("count > 1").limit(_SHOWN)
    repeated = counts.select(*key_names).toArrow()
    if repeated.num_rows:
        raise repeated_keys(repeated)


def new_rows(frames: MergeFrames, matched: DataFrame, schema: TableSchema) -> DataFrame:
    """The rows to insert, with the columns of the table, numbered."""
    shape = StructType(records_schema(schema).fields[1:])
    task = InsertTask(frames.plan.new, frames.columns, schema.fields, shape, frames.now_ms)
    alone = frames.source.join(matched, ID, "left_anti").select(*frames.columns.names)
    return alone.mapInArrow(task, shape)


@dataclass(frozen=True)
class TargetTask:
    """Adds to rows of the table whether they can match, and their keys."""

    plan: MergePlan
    columns: Columns
    predicate: Predicate | None  # a part of the condition that the read has not tested
    shape: StructType
    now_ms: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        limit_threads()
        with reported_errors():
            for table in gathered(batches):
                rows = self.columns.rows(table)
                frame = Frame(rows.num_rows, {TARGET: rows}, self.now_ms)
                sides = [pair.target for pair in self.plan.on.keys]
                is_used = ~nan_keys(sides, frame)
                if self.predicate is not None:
                    mask = evaluate_predicate(self.predicate, rows).fill_null(False)
                    is_used &= mask.to_numpy(zero_copy_only=False)
                keys = key_columns(sides, frame)
                yield from handed([pa.array(is_used), *keys, *table.columns], self.shape)


@dataclass(frozen=True)
class PairTask:
    """Makes records of pairs, and for each pair a row without a kind that marks both sides."""

    store: TableStore
    plan: MergePlan
    target: Columns
    source: Columns
    shape: StructType
    now_ms: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        limit_threads()
        with reported_errors():
            for table in gathered(batches):
                yield from self._records(table)

    def _records(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        sides = {TARGET: self.target.rows(table), SOURCE: self.source.rows(table)}
        keeps, chosen = chosen_pairs(self.plan, sides, table.num_rows, self.now_ms)
        places = pa.array(keeps)
        pairs = table.take(places)
        count = len(keeps)
        keys = set(self.target.only(self.store.schema.primary_keys))
        columns: list[pa.Array | pa.ChunkedArray] = [
            pairs.column(name) if name in keys else pa.nulls(count, pairs.column(name).type)
            for name in self.target.names
        ]
        kinds = pa.nulls(count, pa.string())
        yield from handed([pairs.column(ID), pa.array(chosen), kinds, *columns], self.shape)
        acts = np.flatnonzero(chosen != NO_CLAUSE)
        if not len(acts):
            return
        records = Records()
        editor = Editor(self.plan.for_table, sides[SOURCE], self.now_ms)
        old = sides[TARGET].take(pa.array(keeps[acts]))
        KeyWriting(self.store, editor, records).change(old, chosen[acts], keeps[acts])
        for batch in records.take(self.store.schema.fields):
            nothing = pa.nulls(batch.num_rows, pa.int64())
            yield from handed([nothing, nothing, *batch.columns], self.shape)

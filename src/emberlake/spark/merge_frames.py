"""The DataFrames of a merge: the source with its keys, the keys of the table, and their pairs."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import (
    BooleanType,
    IntegerType,
    LongType,
    StructField,
    StructType,
)

from emberlake.errors import DataMismatch
from emberlake.expressions import columns_used
from emberlake.predicates import Predicate, and_all
from emberlake.predicates.builder import Target
from emberlake.rowops.clauses import SOURCE, TARGET, Action, Clause
from emberlake.rowops.merge import Merge
from emberlake.rowops.merge_plan import MergePlan, plain_column
from emberlake.scan.splits import DataSplit
from emberlake.spark.key_rows import check_exact
from emberlake.spark.merge_tasks import (
    CLAUSE,
    ID,
    PART,
    POSITION,
    UNIT,
    USED,
    ChooseTask,
    Columns,
    ScanTask,
    SourceTask,
    key_type,
)
from emberlake.spark.packing import pack_partitions, weight_of
from emberlake.spark.read_task import PARTITION, split_table
from emberlake.spark.types import nullable_fields, spark_schema
from emberlake.store.table_store import TableStore
from emberlake.types import DataField, arrow_type

_MOST_LITERALS: Final = 1000  # more rows than this prune by the range of their keys alone
_MOST_SENT: Final = 500_000  # more rows of the source than this are shuffled, if Spark wants to
_SHOWN: Final = 100


@dataclass(frozen=True)
class MergeFrames:
    """What a merge computes on Spark, from one state of the table.

    Args:
        store: The table.
        plan: What is to be done.
        df: The source.
        fields: The columns of the source.
        now_ms: The current time, the same for all rows.
    """

    store: TableStore
    plan: MergePlan
    df: DataFrame
    fields: tuple[DataField, ...]
    now_ms: int

    @property
    def spark(self) -> SparkSession:
        return self.df.sparkSession

    # --- the source -------------------------------------------------------------------------------

    @cached_property
    def columns(self) -> Columns:
        """The columns of the source that the merge needs."""
        clauses = (*self.plan.matched, *self.plan.new)
        names = self.plan.tested(SOURCE).union(*(clause.columns(SOURCE) for clause in clauses))
        return Columns(tuple(f for f in self.fields if f.name in names), "s")

    @cached_property
    def source(self) -> DataFrame:
        """The rows of the source, computed once: ``used``, keys, columns and a number.

        A source that is not the same each time it is computed would change other rows than those
        that were found.
        """
        numbers = [number for number, f in enumerate(self.fields) if f in self.columns.fields]
        plain = self.df.toDF(*(f"c{number}" for number in range(len(self.fields))))
        plain = plain.select([sql.col(f"c{n}").alias(f"s{i}") for i, n in enumerate(numbers)])
        shape = StructType(
            [StructField(USED, BooleanType()), *self.keys, *nullable_fields(plain.schema).fields]
        )
        task = SourceTask(self.plan, self.columns, shape, self.now_ms)
        keyed = plain.mapInArrow(task, shape)
        return keyed.withColumn(ID, sql.monotonically_increasing_id()).localCheckpoint()

    @cached_property
    def keys(self) -> list[StructField]:
        """The columns of the keys."""
        fields = tuple(
            DataField(number, f"k{number}", key_type(pair.source.typed.type))
            for number, pair in enumerate(self.plan.on.keys)
        )
        return nullable_fields(spark_schema(fields)).fields

    @cached_property
    def used(self) -> DataFrame:
        """The rows of the source that can match."""
        return self.source.filter(USED)

    @cached_property
    def count(self) -> int:
        """How many there are."""
        return self.used.count()

    @cached_property
    def has_repeated_keys(self) -> bool:
        """Whether rows of the source have the same keys."""
        groups = self.used.groupBy(*(key.name for key in self.keys)).count()
        return bool(groups.filter("count > 1").limit(1).count())

    def ambiguous(self, ids: DataFrame) -> DataMismatch | None:
        """The error for rows of the source that would change the same row; None: there are none."""
        rows = self.source.join(ids.distinct().limit(_SHOWN), ID, "left_semi")
        found = self.columns.rows(rows.toArrow())
        if not found.num_rows:
            return None
        return Merge(self.plan, found, self.now_ms).ambiguous(np.arange(found.num_rows))

    # --- pruning ----------------------------------------------------------------------------------

    def pruning(self) -> Predicate | None:
        """What rows of the table must satisfy to match; None: nothing is known."""
        on = self.plan.on
        names = [key.name for key in self.keys]
        if self.count <= _MOST_LITERALS:
            known = self.used.select(*names).toArrow()
            ranges = [self._key_range(n, known.column(n), is_all=True) for n in range(len(names))]
        else:
            bounds = [f(name).alias(f"{f.__name__}_{name}") for name in names for f in _BOUNDS]
            found = self.used.agg(*bounds).toArrow()
            ranges = []
            for number in range(len(names)):
                least, most = found.column(2 * number), found.column(2 * number + 1)
                both = pa.chunked_array([*least.chunks, *most.chunks])
                ranges.append(self._key_range(number, both, is_all=False))
        return and_all([on.predicate, *ranges])

    def _key_range(self, number: int, keys: pa.ChunkedArray, *, is_all: bool) -> Predicate | None:
        pair = self.plan.on.keys[number]
        side = plain_column(pair.target.typed)
        kind = pair.source.typed.type
        if side is None or pair.matches_null or kind is None or pa.types.is_boolean(keys.type):
            return None
        target = Target(side.field, side.path, side.type)
        values = _as_type(keys.drop_null(), arrow_type(kind))
        if not len(values):
            return target.is_in([])
        if is_all:
            return target.is_in(list(values.unique()))
        return target.between(values[0], values[1])

    # --- pairs ------------------------------------------------------------------------------------

    def joined(self, target: DataFrame, columns: Sequence[str]) -> DataFrame:
        """Rows of the table, with the rows of the source that have their keys."""
        source = self.used.select(
            ID, *(sql.col(k.name).alias(f"j{k.name}") for k in self.keys), *columns
        )
        if self.count <= _MOST_SENT:
            source = sql.broadcast(source)
        return target.join(source, self._is_pair(), "inner")

    def _is_pair(self) -> Column:
        is_pair = sql.lit(True)
        for key, pair in zip(self.keys, self.plan.on.keys, strict=True):
            left, right = sql.col(key.name), sql.col(f"j{key.name}")
            is_pair &= left.eqNullSafe(right) if pair.matches_null else left == right
        return is_pair

    def split_rows(
        self, splits: Sequence[DataSplit]
    ) -> tuple[pa.Table, tuple[Predicate | None, ...]]:
        """A row for each split, with its number."""
        options = self.store.options
        places = pack_partitions([weight_of(split, options) for split in splits], options)
        work, predicates = split_table(splits, places)
        return work.append_column(UNIT, pa.array(range(len(splits)), pa.int32())), predicates

    def hits(self, splits: Sequence[DataSplit], predicate: Predicate | None) -> DataFrame:
        """The pairs that match: where the row of the table is, that of the source, the clause."""
        tested = _tested(self.plan, TARGET)
        known = self.plan.scope.sources[TARGET].fields
        columns = Columns(tuple(f for f in known if f.name in tested), "t")
        check_exact(columns.fields)
        place = [StructField(UNIT, IntegerType()), StructField(PART, IntegerType())]
        place.append(StructField(POSITION, LongType()))
        others = spark_schema(
            tuple(
                DataField(0, n, f.type) for n, f in zip(columns.names, columns.fields, strict=True)
            )
        )
        shape = StructType([*place, *self.keys, *nullable_fields(others).fields])
        work, predicates = self.split_rows(splits)
        tasks = work.column(PARTITION)[-1].as_py() + 1
        scan = ScanTask(self.store, self.plan, columns, predicate, predicates, shape, self.now_ms)
        frame = self.spark.createDataFrame(work).repartitionById(tasks, sql.col(PARTITION))
        source = self.columns.of(_tested(self.plan, SOURCE))
        sent = self.columns.only(_tested(self.plan, SOURCE))
        pairs = self.joined(frame.mapInArrow(scan, shape), sent)
        if not tested and not source.fields and _is_plain(self.plan):
            clause = 0 if self.plan.matched else -1
            return pairs.select(UNIT, PART, POSITION, ID, sql.lit(clause).alias(CLAUSE))
        pairs = pairs.select(
            UNIT, PART, POSITION, ID, *columns.names,
            *(sql.col(old).alias(new) for old, new in zip(sent, source.names, strict=True)),
        )  # fmt: skip
        shape = StructType(
            [*place, StructField(ID, LongType()), StructField(CLAUSE, IntegerType())]
        )
        return pairs.mapInArrow(ChooseTask(self.plan, columns, source, shape, self.now_ms), shape)


_BOUNDS: Final = (sql.min, sql.max)


def updates_of(clauses: Sequence[Clause]) -> list[int]:
    """The numbers of the clauses that update."""
    return [n for n, clause in enumerate(clauses) if clause.action is Action.UPDATE]


def _tested(plan: MergePlan, side: int) -> frozenset[str]:
    """The columns that decide about pairs with equal keys."""
    used = [clause.tested(side) for clause in plan.matched]
    if plan.on.of_pairs is not None:
        used.append(columns_used(plan.on.of_pairs.typed, side))
    return frozenset().union(*used)


def _is_plain(plan: MergePlan) -> bool:
    """Whether equal keys are all that decides."""
    has_conditions = any(clause.where is not None for clause in plan.matched)
    return plan.on.of_pairs is None and not has_conditions


def _as_type(keys: pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    values = keys.combine_chunks()
    if pa.types.is_time(kind) and kind.bit_width == 32:
        values = values.cast(pa.int32())
    return values if values.type == kind else values.cast(kind)

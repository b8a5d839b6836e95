"""The DataFrames of a merge: the source with its keys, the keys of the table, and their pairs.

Where keys are plain columns, Spark reads and compares them by itself. Workers evaluate the rest of
a condition (``merge_tasks``).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import (
    BooleanType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from emberlake.base.names import backquoted
from emberlake.errors import DataMismatch
from emberlake.expressions import columns_used
from emberlake.predicates import Predicate, and_all, columns_of
from emberlake.rowops.clauses import SOURCE, TARGET, Action, Clause
from emberlake.rowops.merge import Merge
from emberlake.rowops.merge_plan import MergePlan
from emberlake.session.write_session import WriteSession
from emberlake.spark.filters import to_column
from emberlake.spark.kept import release
from emberlake.spark.key_ranges import KeyRanges, key_ranges
from emberlake.spark.located import (
    FILE,
    PLACE,
    POSITION,
    LocatedRows,
    located_rows,
)
from emberlake.spark.merge_tasks import (
    CLAUSE,
    ID,
    USED,
    ChooseTask,
    Columns,
    KeyTask,
    SourceTask,
    key_type,
    native_key,
)
from emberlake.spark.numbering import check_exact, numbered
from emberlake.spark.owners import with_units
from emberlake.spark.small_source import PAIRS, FindTask, SmallSource, over_units
from emberlake.spark.types import nullable_fields, spark_schema
from emberlake.spec.snapshot import Snapshot
from emberlake.store.table_store import TableStore
from emberlake.types import AtomicType, DataField, DataType, TypeRoot

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

        If the source returned different rows each time it was computed, the merge would change rows
        other than those that were found.
        """
        keys = [native_key(pair.source) for pair in self.plan.on.keys]
        if self.plan.on.of_source is not None or None in keys:
            return self._checkpoint
        names = self.columns.by_name
        found = [sql.col(names[f.name]) for f in keys if f is not None]
        return self._checkpoint.select(sql.lit(True).alias(USED), *self.as_keys(found), "*")

    @cached_property
    def _checkpoint(self) -> DataFrame:
        """The columns of the source that are kept; keys only if Spark cannot compute them."""
        numbers = [number for number, f in enumerate(self.fields) if f in self.columns.fields]
        plain = self.df.toDF(*(f"c{number}" for number in range(len(self.fields))))
        plain = plain.select([sql.col(f"c{n}").alias(f"s{i}") for i, n in enumerate(numbers)])
        keys = [native_key(pair.source) for pair in self.plan.on.keys]
        if self.plan.on.of_source is not None or None in keys:
            others = nullable_fields(plain.schema).fields
            shape = StructType([StructField(USED, BooleanType()), *self.keys, *others])
            task = SourceTask(self.plan, self.columns, shape, self.now_ms)
            plain = plain.mapInArrow(task, shape)
        return plain.withColumn(ID, sql.monotonically_increasing_id()).localCheckpoint()

    def close(self) -> None:
        """Let executors forget the source."""
        if "_checkpoint" in self.__dict__:
            release(self._checkpoint)

    @cached_property
    def keys(self) -> list[StructField]:
        """The columns of the keys."""
        fields = tuple(
            DataField(number, f"k{number}", key_type(pair.source.typed.type))
            for number, pair in enumerate(self.plan.on.keys)
        )
        return nullable_fields(spark_schema(fields)).fields

    def as_keys(self, columns: Sequence[Column]) -> list[Column]:
        """Plain columns as keys, cast to the type in which both sides are compared."""
        named = zip(columns, self.keys, strict=True)
        return [column.cast(key.dataType).alias(key.name) for column, key in named]

    @cached_property
    def used(self) -> DataFrame:
        """The rows of the source that can match."""
        return self.source.filter(USED)

    @cached_property
    def ranges(self) -> KeyRanges:
        """The number of these rows, and what their keys say about rows that match."""
        keys = [sql.col(key.name) for key in self.keys]
        return key_ranges(self.plan.on.keys, self.used, keys, self._texts)

    @property
    def _texts(self) -> list[Column]:
        """The columns of variable length among those that decide."""
        columns = self.columns
        named = zip(columns.fields, columns.names, strict=True)
        tested = self.plan.tested(SOURCE)
        return [sql.col(n) for f, n in named if f.name in tested and _has_length(f.type)]

    @cached_property
    def small(self) -> SmallSource | None:
        """The columns of the source that decide, collected; None: they are too large."""
        names = self.plan.tested(SOURCE)
        columns, sent = self.columns.of(names), self.columns.only(names)
        is_plain = all(isinstance(f.type, AtomicType) for f in columns.fields)
        if not is_plain or not self.ranges.is_small or not self.ranges.is_light:
            return None
        named = zip(sent, columns.names, strict=True)
        found = self.used.select(ID, *(sql.col(old).alias(new) for old, new in named)).toArrow()
        ids = found.column(ID).to_numpy()
        return SmallSource(
            self.store.env.new_id(), self.plan, columns.rows(found), ids, self.now_ms
        )

    @cached_property
    def has_repeated_keys(self) -> bool:
        """Whether rows of the source that can match have the same keys."""
        if self.small is not None:
            return not self.small.merge.index.is_unique
        groups = self.used.groupBy(*(key.name for key in self.keys)).count()
        return bool(groups.filter("count > 1").limit(1).count())

    def ambiguous(self, ids: DataFrame) -> DataMismatch | None:
        """The error for rows of the source that would change the same row; None: there are none."""
        rows = self.source.join(ids.distinct().limit(_SHOWN), ID, "left_semi")
        found = self.columns.rows(rows.toArrow())
        if not found.num_rows:
            return None
        return Merge(self.plan, found, self.now_ms).ambiguous(np.arange(found.num_rows))

    def pruning(self) -> Predicate | None:
        """What rows of the table must satisfy to match; None: nothing is known."""
        return and_all([self.plan.on.predicate, self.ranges.predicate])

    # --- pairs ------------------------------------------------------------------------------------

    def joined(self, target: DataFrame, columns: Sequence[str]) -> DataFrame:
        """Rows of the table, with the rows of the source that have their keys."""
        source = self.used.select(
            ID, *(sql.col(k.name).alias(f"j{k.name}") for k in self.keys), *columns
        )
        if self.ranges.is_small:
            source = sql.broadcast(source)
        return target.join(source, self._is_pair(), "inner")

    def _is_pair(self) -> Column:
        is_pair = sql.lit(True)
        for key, pair in zip(self.keys, self.plan.on.keys, strict=True):
            left, right = sql.col(key.name), sql.col(f"j{key.name}")
            is_pair &= left.eqNullSafe(right) if pair.matches_null else left == right
        return is_pair

    def located(self, session: WriteSession, snapshot: Snapshot | None) -> LocatedRows:
        """The rows of the table that can match, with the columns that decide."""
        names = set(self.plan.tested(TARGET))
        if self.plan.orphaned and self.plan.on.predicate is not None:
            names |= set(columns_of(self.plan.on.predicate))  # the read does not test it
        return located_rows(
            session, snapshot, self.spark, predicate=self.predicate, columns=sorted(names)
        )

    @property
    def decisive(self) -> tuple[str, ...]:
        """The columns of the table that decide."""
        return tuple(sorted(self.plan.tested(TARGET)))

    @cached_property
    def predicate(self) -> Predicate | None:
        """The filter of the read of the table; None: all rows are read."""
        return None if self.plan.orphaned else self.pruning()

    def hits(self, located: LocatedRows) -> DataFrame:
        """The pairs that match: where the row of the table is, that of the source, the clause."""
        if self.small is None:
            return with_units(located, self._joined_hits(located))
        task = FindTask(self.store, self.small, self.predicate, self.decisive)
        return over_units(self.spark, located.units, task, PAIRS)

    def _joined_hits(self, located: LocatedRows) -> DataFrame:
        tested = _tested(self.plan, TARGET)
        known = self.plan.scope.sources[TARGET].fields
        columns = Columns(tuple(f for f in known if f.name in tested), "t")
        check_exact(columns.fields)
        source = self.columns.of(_tested(self.plan, SOURCE))
        sent = self.columns.only(_tested(self.plan, SOURCE))
        pairs = self.joined(self._keyed(located, columns), sent)
        if not tested and not source.fields and _is_plain(self.plan):
            clause = 0 if self.plan.matched else -1
            return pairs.select(FILE, POSITION, ID, sql.lit(clause).alias(CLAUSE))
        pairs = pairs.select(
            FILE, POSITION, ID, *columns.names,
            *(sql.col(old).alias(new) for old, new in zip(sent, source.names, strict=True)),
        )  # fmt: skip
        about = [StructField(ID, LongType()), StructField(CLAUSE, IntegerType())]
        shape = StructType([*_PLACE_FIELDS, *about])
        return pairs.mapInArrow(ChooseTask(self.plan, columns, source, shape, self.now_ms), shape)

    def _keyed(self, located: LocatedRows, columns: Columns) -> DataFrame:
        """Rows of the table with their keys: ``file``, ``pos``, ``k0``, ... and ``t0``, ..."""
        late = self.plan.on.predicate if self.plan.orphaned else None
        condition = None if late is None else to_column(late)
        keys = [native_key(pair.target) for pair in self.plan.on.keys]
        place = [sql.col(f"{PLACE}.{part}").alias(part) for part in (FILE, POSITION)]
        rows = located.rows
        if None not in keys and (late is None or condition is not None):
            if condition is not None:
                rows = rows.filter(condition)
            found = [sql.col(backquoted(f.name)) for f in keys if f is not None]
            named = zip(columns.fields, columns.names, strict=True)
            others = [sql.col(backquoted(f.name)).alias(name) for f, name in named]
            return rows.select(*place, *self.as_keys(found), *others)
        known = {f.name: f for f in self.plan.scope.sources[TARGET].fields}
        read = Columns(tuple(known[n] for n in rows.columns if n != PLACE), "t")
        more = nullable_fields(spark_schema(numbered(columns.fields, "t"))).fields
        shape = StructType([*_PLACE_FIELDS, *self.keys, *more])
        task = KeyTask(self.plan, read, columns, late, shape, self.now_ms)
        plain = [
            sql.col(backquoted(f.name)).alias(n)
            for f, n in zip(read.fields, read.names, strict=True)
        ]
        return rows.select(*place, *plain).mapInArrow(task, shape)


_PLACE_FIELDS: Final = (StructField(FILE, StringType()), StructField(POSITION, LongType()))


def updates_of(clauses: Sequence[Clause]) -> list[int]:
    """The numbers of the clauses that update."""
    return [n for n, clause in enumerate(clauses) if clause.action is Action.UPDATE]


def _tested(plan: MergePlan, side: int) -> frozenset[str]:
    """The columns that decide about pairs with equal keys."""
    used = [clause.tested(side) for clause in plan.matched]
    if plan.on.of_pairs is not None:
        used.append(columns_used(plan.on.of_pairs.typed, side))
    return frozenset().union(*used)


def _has_length(data_type: DataType) -> bool:
    return isinstance(data_type, AtomicType) and data_type.root in _WITH_LENGTH


_WITH_LENGTH: Final = frozenset(
    {TypeRoot.CHAR, TypeRoot.VARCHAR, TypeRoot.BINARY, TypeRoot.VARBINARY}
)


def _is_plain(plan: MergePlan) -> bool:
    """Whether equal keys are all that decides."""
    has_conditions = any(clause.where is not None for clause in plan.matched)
    return plan.on.of_pairs is None and not has_conditions

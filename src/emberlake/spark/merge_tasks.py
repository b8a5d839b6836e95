"""The tasks of a merge. Spark joins; the tasks evaluate expressions.

Both sides get their keys as columns of plain values, ``k0``, ``k1`` and so on: equal exactly if the
keys are. So Spark compares them without knowing the condition. Columns of the table are numbered as
``t0``, those of the source as ``s0``; ``id`` numbers the rows of the source.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType

from emberlake.base.parallel import limit_threads
from emberlake.expressions import Expression, Frame, evaluate, select
from emberlake.predicates import Predicate
from emberlake.predicates import evaluate as evaluate_predicate
from emberlake.rowops.clauses import (
    NO_CLAUSE,
    SOURCE,
    TARGET,
    Choice,
    Clause,
    choose,
    inserted_rows,
)
from emberlake.rowops.join import comparable
from emberlake.rowops.key_changes import Chosen
from emberlake.rowops.merge_plan import MergePlan, plain_column
from emberlake.spark.failures import reported_errors
from emberlake.spark.located import FILE, POSITION
from emberlake.spark.types import arrow_input_schema
from emberlake.spark.write_task import gathered
from emberlake.spec.column_buffers import I64, Mask
from emberlake.types import AtomicType, DataField, DataType, TypeRoot
from emberlake.write.align import align

CLAUSE: Final = "clause"  # the number of the clause of a row
ID: Final = "id"
USED: Final = "used"  # whether a row can match at all
_BIGINT: Final = AtomicType("BIGINT")


# --- keys -----------------------------------------------------------------------------------------


def key_type(data_type: DataType | None) -> DataType:
    """The type in which a key is compared; times are integers, in their own unit."""
    assert data_type is not None
    if isinstance(data_type, AtomicType) and (data_type.root.is_timestamp or _is_time(data_type)):
        return _BIGINT
    return data_type.with_nullable(True)


def _is_time(data_type: AtomicType) -> bool:
    return data_type.root.name == "TIME"


def native_key(side: Expression) -> DataField | None:
    """The column that is the key, if Spark compares its values as we do; None otherwise."""
    column = plain_column(side.typed)
    if column is None or column.path or not isinstance(column.type, AtomicType):
        return None
    return column.field if column.type.root in _NATIVE_KEYS else None


_NATIVE_KEYS: Final = frozenset(
    {
        TypeRoot.TINYINT, TypeRoot.SMALLINT, TypeRoot.INT, TypeRoot.BIGINT, TypeRoot.DATE,
        TypeRoot.CHAR, TypeRoot.VARCHAR, TypeRoot.BINARY, TypeRoot.VARBINARY,
    }
)  # fmt: skip


def key_columns(sides: Sequence[Expression], frame: Frame) -> list[pa.Array]:
    """The keys of rows, as values that are equal exactly if the keys are."""
    return [_plain(comparable(evaluate(side, frame))) for side in sides]


def nan_keys(sides: Sequence[Expression], frame: Frame) -> Mask:
    """Which rows have NaN in a key: it equals nothing, not even the null that replaces it."""
    found: Mask = np.zeros(frame.count, bool)
    for side in sides:
        if isinstance(side.typed.type, AtomicType) and side.typed.type.root in _FLOATS:
            is_nan = pc.is_nan(evaluate(side, frame)).fill_null(False)
            found |= is_nan.to_numpy(zero_copy_only=False)
    return found


_FLOATS: Final = frozenset({TypeRoot.FLOAT, TypeRoot.DOUBLE})


def _plain(array: pa.Array) -> pa.Array:
    if pa.types.is_timestamp(array.type):
        return array.cast(pa.int64())
    if pa.types.is_time(array.type):
        return array.cast(pa.int32() if array.type.bit_width == 32 else pa.int64()).cast(pa.int64())
    return array


def handed(
    columns: Sequence[pa.Array | pa.ChunkedArray], shape: StructType
) -> Iterator[pa.RecordBatch]:
    """Columns as batches of the form that Spark expects."""
    schema = arrow_input_schema(shape)
    cast = [c if c.type == f.type else c.cast(f.type) for c, f in zip(columns, schema, strict=True)]
    yield from pa.Table.from_arrays(cast, schema=schema).to_batches()


@dataclass(frozen=True)
class Columns:
    """The columns of one side that are sent, in order, and the letter before their numbers."""

    fields: tuple[DataField, ...]
    prefix: str

    @cached_property
    def names(self) -> list[str]:
        """What Spark calls them."""
        return [f"{self.prefix}{number}" for number in range(len(self.fields))]

    @property
    def by_name(self) -> "dict[str, str]":
        """What Spark calls each of them."""
        return {f.name: name for f, name in zip(self.fields, self.names, strict=True)}

    def rows(self, table: pa.Table) -> pa.Table:
        """The rows that came from Spark, in the types of the engine."""
        found = table.select(self.names).rename_columns([f.name for f in self.fields])
        return align(found, self.fields) if self.fields else found

    def only(self, names: Iterable[str]) -> "list[str]":
        """What Spark calls some of them."""
        wanted = set(names)
        pairs = zip(self.fields, self.names, strict=True)
        return [name for field, name in pairs if field.name in wanted]

    def of(self, names: Iterable[str]) -> "Columns":
        """Some of the columns, renumbered."""
        wanted = set(names)
        return Columns(tuple(f for f in self.fields if f.name in wanted), self.prefix)


@dataclass(frozen=True)
class SourceTask:
    """Adds to rows of the source whether they are used, and their keys."""

    plan: MergePlan
    columns: Columns
    shape: StructType
    now_ms: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        limit_threads()
        on = self.plan.on
        with reported_errors():
            for table in gathered(batches):
                rows = self.columns.rows(table)
                frame = Frame(rows.num_rows, {SOURCE: rows}, self.now_ms)
                is_used = np.ones(rows.num_rows, bool)
                if on.of_source is not None:
                    is_used = select(on.of_source, frame)
                keys = key_columns([pair.source for pair in on.keys], frame)
                is_used &= ~nan_keys([pair.source for pair in on.keys], frame)
                yield from handed([pa.array(is_used), *keys, *table.columns], self.shape)


# --- the table ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class KeyTask:
    """Adds their keys to rows of the table, whose places come first."""

    plan: MergePlan
    read: Columns
    columns: Columns  # those of them that are handed on
    predicate: Predicate | None  # a part of the condition that the read has not tested
    shape: StructType
    now_ms: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        limit_threads()
        with reported_errors():
            for every in gathered(batches):
                table, rows = every, self.read.rows(every)
                if self.predicate is not None:
                    mask = evaluate_predicate(self.predicate, rows).fill_null(False)
                    table, rows = table.filter(mask), rows.filter(mask)
                frame = Frame(rows.num_rows, {TARGET: rows}, self.now_ms)
                sides = [pair.target for pair in self.plan.on.keys]
                has_nan = nan_keys(sides, frame)
                if has_nan.any():
                    mask = pa.array(~has_nan)
                    table, rows = table.filter(mask), rows.filter(mask)
                    frame = Frame(rows.num_rows, {TARGET: rows}, self.now_ms)
                keys = key_columns(sides, frame)
                place = [table.column(name) for name in (FILE, POSITION)]
                others = [rows.column(f.name) for f in self.columns.fields]
                yield from handed([*place, *keys, *others], self.shape)


@dataclass(frozen=True)
class ChooseTask:
    """Decides whether pairs really match, and which clause applies to each."""

    plan: MergePlan
    target: Columns
    source: Columns
    shape: StructType
    now_ms: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        limit_threads()
        with reported_errors():
            for every in gathered(batches):
                sides = {TARGET: self.target.rows(every), SOURCE: self.source.rows(every)}
                keeps, chosen = chosen_pairs(self.plan, sides, every.num_rows, self.now_ms)
                pairs = every.select([FILE, POSITION, ID]).take(pa.array(keeps))
                yield from handed([*pairs.columns, pa.array(chosen, pa.int32())], self.shape)


def chosen_pairs(
    plan: MergePlan, sides: dict[int, pa.Table], count: int, now_ms: int
) -> tuple[I64, Choice]:
    """The pairs with equal keys that do match, and the clause of each."""
    keeps = np.arange(count)
    frame = Frame(count, sides, now_ms)
    if plan.on.of_pairs is not None:
        keeps = np.flatnonzero(select(plan.on.of_pairs, frame))
        frame = frame.take(keeps)
    return keeps, choose(plan.matched, frame)


# --- new rows, and tables with a primary key ------------------------------------------------------


@dataclass(frozen=True)
class InsertTask:
    """Turns rows of the source into new rows."""

    clauses: tuple[Clause, ...]
    source: Columns
    fields: tuple[DataField, ...]
    shape: StructType
    now_ms: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        limit_threads()
        with reported_errors():
            for table in gathered(batches):
                rows = self.source.rows(table)
                chosen = choose(self.clauses, Frame(rows.num_rows, {SOURCE: rows}, self.now_ms))
                for number, clause in enumerate(self.clauses):
                    some = rows.filter(pa.array(chosen == number))
                    if some.num_rows:
                        new = align(inserted_rows(clause, some, self.now_ms), self.fields)
                        yield from handed(new.columns, self.shape)


@dataclass(frozen=True)
class Orphans:
    """Chooses rows of a table with a primary key that match nothing."""

    plan: MergePlan
    now_ms: int

    def __call__(self, rows: pa.Table) -> Chosen:
        chosen = choose(self.plan.orphaned, Frame(rows.num_rows, {TARGET: rows}, self.now_ms))
        places = np.flatnonzero(chosen != NO_CLAUSE)
        return places, chosen[places] + np.int8(len(self.plan.matched)), None

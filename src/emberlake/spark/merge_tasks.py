"""What the tasks of a merge do. Spark joins; everything that has a meaning is evaluated here.

Both sides get their keys as columns of plain values, ``k0``, ``k1`` and so on: equal exactly if the
keys are. So Spark compares them without knowing what the condition says. Columns of the table are
numbered as ``t0``, those of the source as ``s0``; ``id`` numbers the rows of the source.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import astuple, dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql.types import StructType

from emberlake.base.parallel import limit_threads
from emberlake.expressions import Expression, Frame, evaluate, select
from emberlake.predicates import Predicate, columns_of
from emberlake.predicates import evaluate as evaluate_predicate
from emberlake.rowops.change import tally_of
from emberlake.rowops.clauses import (
    NO_CLAUSE,
    SOURCE,
    TARGET,
    Choice,
    Clause,
    Editor,
    choose,
    inserted_rows,
)
from emberlake.rowops.edits import FileEdit, Prepared, write_edits
from emberlake.rowops.join import comparable
from emberlake.rowops.key_changes import Chosen
from emberlake.rowops.locate import FilePlace, split_places, split_reads
from emberlake.rowops.merge_plan import MergePlan
from emberlake.rowops.result import Tally
from emberlake.scan.splits import DataSplit
from emberlake.session.write_session import WriteSession
from emberlake.spark.failures import reported_errors
from emberlake.spark.job_files import task_store
from emberlake.spark.read_task import splits_in
from emberlake.spark.reports import TaskReport, report_batch, task_number
from emberlake.spark.types import arrow_input_schema
from emberlake.spark.write_task import gathered
from emberlake.spec.column_buffers import I64
from emberlake.spec.snapshot import Snapshot
from emberlake.store.table_store import TableStore
from emberlake.types import AtomicType, DataField, DataType
from emberlake.write.align import align

UNIT: Final = "unit"  # the number of a split
PART: Final = "part"  # of a file in it; -1 in the row that brings the split itself
POSITION: Final = "pos"  # of a row in the file
CLAUSE: Final = "clause"
ID: Final = "id"
USED: Final = "used"  # whether a row can match at all
_ROWS_AT_ONCE: Final = 500_000  # changes that a task holds before it writes them
_BIGINT: Final = AtomicType("BIGINT")


# --- keys -----------------------------------------------------------------------------------------


def key_type(data_type: DataType | None) -> DataType:
    """The type in which a key is compared: moments are counted, in their own unit."""
    assert data_type is not None
    if isinstance(data_type, AtomicType) and (data_type.root.is_timestamp or _is_time(data_type)):
        return _BIGINT
    return data_type.with_nullable(True)


def _is_time(data_type: AtomicType) -> bool:
    return data_type.root.name == "TIME"


def key_columns(sides: Sequence[Expression], frame: Frame) -> list[pa.Array]:
    """The keys of rows, as values that are equal exactly if the keys are."""
    return [_plain(comparable(evaluate(side, frame))) for side in sides]


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
    """Columns of one side that travel, in order, and the letter before their numbers."""

    fields: tuple[DataField, ...]
    prefix: str

    @cached_property
    def names(self) -> list[str]:
        """What Spark calls them."""
        return [f"{self.prefix}{number}" for number in range(len(self.fields))]

    def rows(self, table: pa.Table) -> pa.Table:
        """The rows of the engine in what came from Spark."""
        found = table.select(self.names).rename_columns([f.name for f in self.fields])
        return align(found, self.fields) if self.fields else found

    def only(self, names: Iterable[str]) -> "list[str]":
        """What Spark calls some of them."""
        wanted = set(names)
        pairs = zip(self.fields, self.names, strict=True)
        return [name for field, name in pairs if field.name in wanted]

    def of(self, names: Iterable[str]) -> "Columns":
        """Some of the columns, numbered anew."""
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
                yield from handed([pa.array(is_used), *keys, *table.columns], self.shape)


# --- the table ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ScanTask:
    """Reads keys of files, where they are, and the columns that decide more."""

    store: TableStore
    plan: MergePlan
    columns: Columns
    predicate: Predicate | None  # that the splits were planned with
    predicates: tuple[Predicate | None, ...]
    shape: StructType
    now_ms: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        limit_threads()
        with reported_errors(), self.store.decoding_rows():
            for batch in batches:
                units = batch.column(UNIT).to_pylist()
                for unit, split in zip(units, splits_in([batch], self.predicates), strict=True):
                    yield from self._rows(unit, split)

    def _rows(self, unit: int, split: DataSplit) -> Iterator[pa.RecordBatch]:
        on = self.plan.on
        late = on.predicate if self.predicate is None else None  # the read does not test it
        names = {f.name for f in self.columns.fields} | self.plan.tested(TARGET)
        if late is not None:
            names |= set(columns_of(late))
        reads = split_reads(self.store, [split], self.predicate, sorted(names))
        for part, placed in enumerate(reads):
            with closing(placed.read.located_tables()) as tables:
                for found, every in tables:
                    positions, rows = found, every
                    if late is not None:
                        mask = evaluate_predicate(late, every).fill_null(False)
                        rows = every.filter(mask)
                        positions = found[mask.to_numpy(zero_copy_only=False)]
                    count = rows.num_rows
                    frame = Frame(count, {TARGET: rows}, self.now_ms)
                    keys = key_columns([pair.target for pair in on.keys], frame)
                    place = [pa.array(np.full(count, number, np.int32)) for number in (unit, part)]
                    others = [rows.column(f.name) for f in self.columns.fields]
                    yield from handed([*place, pa.array(positions), *keys, *others], self.shape)


@dataclass(frozen=True)
class ChooseTask:
    """Decides for pairs whether they match after all, and which clause is theirs."""

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
                pairs = every.select([UNIT, PART, POSITION, ID]).take(pa.array(keeps))
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


# --- the files ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OwnerTask:
    """Changes the files of one task: gets each split, and after it what happens to its rows."""

    session: WriteSession
    job_id: str
    snapshot: Snapshot | None
    plan: MergePlan
    source: Columns  # what new values need
    predicates: tuple[Predicate | None, ...]
    now_ms: int
    is_dry: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Change the files; yield one report."""
        limit_threads()
        number = task_number()
        with reported_errors():
            store = task_store(self.session.store, self.job_id, number)
            with store.decoding_rows():
                made = self._change(replace(self.session, store=store), batches)
        report = TaskReport.of(self.job_id, number, made.messages, astuple(made.tally))
        yield report_batch([report])

    def _change(self, session: WriteSession, batches: Iterator[pa.RecordBatch]) -> Prepared:
        made = Prepared((), Tally())
        edits: list[FileEdit] = []
        values: list[pa.Table] = []
        count = 0
        for rows in _by_unit(batches):
            (split,) = splits_in(rows.slice(0, 1).to_batches(), self.predicates)
            changes = rows.slice(1)
            edits += self._edits(session.store, split, changes, count)
            values.append(self.source.rows(changes))
            count += changes.num_rows
            if count >= _ROWS_AT_ONCE:
                made = _joined(made, self._write(session, edits, values))
                edits, values, count = [], [], 0
        return _joined(made, self._write(session, edits, values))

    def _write(
        self, session: WriteSession, edits: list[FileEdit], values: list[pa.Table]
    ) -> Prepared:
        if not edits:
            return Prepared((), Tally())
        source = pa.concat_tables(values) if self.source.fields else None
        editor = Editor(self.plan.for_table, source, self.now_ms)
        if self.is_dry:
            return Prepared((), tally_of(edits, editor, session))
        return write_edits(session, self.snapshot, editor, edits)

    def _edits(
        self, store: TableStore, split: DataSplit, changes: pa.Table, offset: int
    ) -> Iterator[FileEdit]:
        part = changes.column(PART).to_numpy()
        positions = changes.column(POSITION).to_numpy()
        chosen = changes.column(CLAUSE).to_numpy().astype(np.int8)
        orphans = self._orphans(store, split) if self.plan.orphaned else None
        for number, place in enumerate(split_places(split)):
            low, high = np.searchsorted(part, [number, number + 1]).tolist()
            matches = np.arange(offset + low, offset + high)
            found = positions[low:high], chosen[low:high], matches
            if orphans is not None:
                found = _with_orphans(found, orphans[number])
            edit = _edit(place, *found)
            if edit is not None:
                yield edit

    def _orphans(self, store: TableStore, split: DataSplit) -> list[tuple[I64, Choice]]:
        """For every file, its rows that a clause would change if they match nothing."""
        clauses = self.plan.orphaned
        used = frozenset().union(*(clause.tested(TARGET) for clause in clauses))
        columns = sorted(used) or [store.schema.field_names[0]]
        files: list[tuple[I64, Choice]] = []
        for placed in split_reads(store, [split], None, columns):
            positions: list[I64] = [np.empty(0, np.int64)]
            numbers: list[Choice] = [np.empty(0, np.int8)]
            with closing(placed.read.located_tables()) as tables:
                for found, rows in tables:
                    chosen = choose(clauses, Frame(rows.num_rows, {TARGET: rows}, self.now_ms))
                    acts = chosen != NO_CLAUSE
                    positions.append(found[acts])
                    numbers.append(chosen[acts] + np.int8(len(self.plan.matched)))
            files.append((np.concatenate(positions), np.concatenate(numbers)))
        return files


def _with_orphans(
    found: tuple[I64, Choice, I64], orphans: tuple[I64, Choice]
) -> tuple[I64, Choice, I64]:
    positions, chosen, matches = found
    alone = ~np.isin(orphans[0], positions)
    places = np.concatenate([positions, orphans[0][alone]])
    order = np.argsort(places, kind="stable")
    nobody = np.full(int(alone.sum()), -1, np.int64)
    return (
        places[order],
        np.concatenate([chosen, orphans[1][alone]])[order],
        np.concatenate([matches, nobody])[order],
    )


def _edit(place: FilePlace, positions: I64, chosen: Choice, matches: I64) -> FileEdit | None:
    acts = chosen != NO_CLAUSE
    positions, chosen, matches = positions[acts], chosen[acts], matches[acts]
    if not len(positions):
        return None
    is_first = np.ones(len(positions), bool)  # to delete a row twice does no harm
    is_first[1:] = positions[1:] != positions[:-1]
    return FileEdit(place, positions[is_first], chosen[is_first], matches[is_first])


def _joined(first: Prepared, second: Prepared) -> Prepared:
    return Prepared((*first.messages, *second.messages), first.tally + second.tally)


def _by_unit(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The rows of each split; they come ordered."""
    held: list[pa.RecordBatch] = []
    current: int | None = None
    for batch in batches:
        units = batch.column(UNIT).to_numpy()
        bounds = [0, *(np.flatnonzero(np.diff(units)) + 1).tolist(), len(units)]
        for low, high in pairwise(bounds):
            if low == high:
                continue
            if held and units[low] != current:
                yield pa.Table.from_batches(held)
                held = []
            current = units[low]
            held.append(batch.slice(low, high - low))
    if held:
        yield pa.Table.from_batches(held)


# --- new rows, and tables with a primary key ------------------------------------------------------


@dataclass(frozen=True)
class InsertTask:
    """Makes new rows of rows of the source."""

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

"""The part of a change of files that one Spark task does: it owns files, or writes new rows.

An owner gets the split of each of its files among the rows that change (``owners``). It reads what
it needs from the file, writes the changes, and reports them once.
"""

from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import astuple, dataclass, replace
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from emberlake.base.parallel import limit_threads
from emberlake.errors import DataMismatch
from emberlake.expressions import Expression, Frame, columns_used, evaluate
from emberlake.predicates import Predicate
from emberlake.rowops.change import tally_of
from emberlake.rowops.clauses import (
    NO_CLAUSE,
    SOURCE,
    TARGET,
    Action,
    Choice,
    Clause,
    Editor,
    choose,
    inserted_rows,
)
from emberlake.rowops.edits import FileEdit, Prepared, write_edits
from emberlake.rowops.locate import split_places, split_reads
from emberlake.rowops.merge import ambiguous_keys
from emberlake.rowops.result import Tally
from emberlake.scan.splits import DataSplit
from emberlake.session.write_session import WriteSession
from emberlake.spark.dealt_splits import SPLIT, splits_in
from emberlake.spark.failures import reported_errors
from emberlake.spark.job_files import task_store
from emberlake.spark.located import POSITION
from emberlake.spark.merge_tasks import CLAUSE, Columns
from emberlake.spark.reports import TaskReport, report_batch, task_number
from emberlake.spark.write_task import gathered
from emberlake.spec.column_buffers import I64
from emberlake.spec.snapshot import Snapshot
from emberlake.store.table_store import TableStore

UNIT: Final = "unit"  # the number of a file, or group of files
_ROWS_AT_ONCE: Final = 500_000  # changes that a task holds before it writes them
_SHOWN: Final = 100


@dataclass(frozen=True)
class FileWork:
    """What happens to rows.

    Args:
        clauses: For rows of the table; the numbers in ``CLAUSE``.
        new: For new rows.
        columns: What comes with rows, as the source of the clauses.
        now_ms: The current time, the same for all rows.
        orphaned: The last of the clauses: for rows of the table that are not among the changes.
        keys: What identifies rows of the table in messages.
    """

    clauses: tuple[Clause, ...]
    new: tuple[Clause, ...]
    columns: Columns
    now_ms: int
    orphaned: tuple[Clause, ...] = ()
    keys: tuple[Expression, ...] = ()


@dataclass(frozen=True)
class OwnerTask:
    """Changes the files of one task; the tasks after the owners write new rows."""

    session: WriteSession
    job_id: str
    snapshot: Snapshot | None
    work: FileWork
    predicates: tuple[Predicate | None, ...]  # those that the units were planned with
    owners: int
    is_ordered: bool  # whether rows come by unit; otherwise a task has one unit
    is_dry: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Change the files; yield one report."""
        limit_threads()
        number = task_number()
        with reported_errors():
            store = task_store(self.session.store, self.job_id, number)
            session = replace(self.session, store=store)
            with store.decoding_rows():
                made = (self._change if number < self.owners else self._insert)(session, batches)
        report = TaskReport.of(self.job_id, number, made.messages, astuple(made.tally))
        yield report_batch([report])

    # --- new rows ---------------------------------------------------------------------------------

    def _insert(self, session: WriteSession, batches: Iterator[pa.RecordBatch]) -> Prepared:
        work, count = self.work, 0
        with closing(session.new_writer()) as writer:
            for table in gathered(batches):
                rows = work.columns.rows(table)
                frame = Frame(rows.num_rows, {SOURCE: rows}, work.now_ms)
                chosen = choose(work.new, frame)
                for number, clause in enumerate(work.new):
                    is_it = chosen == number
                    some = rows if is_it.all() else rows.filter(pa.array(is_it))
                    count += some.num_rows
                    if some.num_rows and not self.is_dry:
                        writer.write(inserted_rows(clause, some, work.now_ms))
            return Prepared(tuple(writer.prepare()), Tally(inserted=count))

    # --- files ------------------------------------------------------------------------------------

    def _change(self, session: WriteSession, batches: Iterator[pa.RecordBatch]) -> Prepared:
        made = Prepared((), Tally())
        edits: list[FileEdit] = []
        values: list[pa.Table] = []
        count = 0
        for unit, changes in self._by_unit(batches):
            edits += self._edits(session.store, unit, changes, count)
            values.append(self.work.columns.rows(changes))
            count += changes.num_rows
            if count >= _ROWS_AT_ONCE:
                made = joined(made, self._write(session, edits, values))
                edits, values, count = [], [], 0
        return joined(made, self._write(session, edits, values))

    def _by_unit(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[DataSplit, pa.Table]]:
        """Each unit, and what happens to its rows, by position."""
        for rows in _units_in(batches, is_ordered=self.is_ordered):
            at = pc.index(rows.column(SPLIT).is_valid(), pa.scalar(True)).as_py()  # one of them
            (unit,) = splits_in(rows.slice(at, 1).to_batches(), self.predicates)
            changes = pa.concat_tables([rows.slice(0, at), rows.slice(at + 1)])
            if not self.is_ordered:
                order = np.argsort(changes.column(POSITION).to_numpy(), kind="stable")
                changes = changes.combine_chunks().take(pa.array(order))
            yield unit, changes

    def _write(
        self, session: WriteSession, edits: list[FileEdit], values: list[pa.Table]
    ) -> Prepared:
        if not edits:
            return Prepared((), Tally())
        source = pa.concat_tables(values) if self.work.columns.fields else None
        editor = Editor(self.work.clauses, source, self.work.now_ms)
        if self.is_dry:
            return Prepared((), tally_of(edits, editor, session))
        return write_edits(session, self.snapshot, editor, edits)

    def _edits(
        self, store: TableStore, unit: DataSplit, changes: pa.Table, offset: int
    ) -> Iterator[FileEdit]:
        (place,) = split_places(unit)
        positions: I64 = changes.column(POSITION).to_numpy()
        chosen: Choice = changes.column(CLAUSE).to_numpy().astype(np.int8)
        matches = np.arange(offset, offset + len(positions))
        if self.work.orphaned:
            orphans = self._orphans(store, unit)
            positions, chosen, matches = _with_orphans((positions, chosen, matches), orphans)
        acts = chosen != NO_CLAUSE
        positions, chosen, matches = positions[acts], chosen[acts], matches[acts]
        if not len(positions):
            return
        is_first = self._once(store, unit, positions, chosen)
        yield FileEdit(place, positions[is_first], chosen[is_first], matches[is_first])

    def _once(
        self, store: TableStore, unit: DataSplit, positions: I64, chosen: Choice
    ) -> np.ndarray:
        """Each row once; refuse rows that would be changed more than once.

        Deleting a row twice is harmless.
        """
        is_first = np.ones(len(positions), bool)
        is_first[1:] = positions[1:] != positions[:-1]
        if is_first.all():
            return is_first
        deletes = np.array([c.action is Action.DELETE for c in self.work.clauses], bool)
        twice = np.isin(positions, positions[~is_first])
        harmed = np.unique(positions[twice & ~deletes[chosen]])
        if len(harmed):
            raise self._ambiguous(store, unit, harmed[:_SHOWN])
        return is_first

    def _ambiguous(self, store: TableStore, unit: DataSplit, positions: I64) -> DataMismatch:
        keys = self.work.keys
        names = sorted(frozenset().union(*(columns_used(k.typed, TARGET) for k in keys)))
        found: list[list[object]] = []
        for placed in split_reads(store, [replace(unit, predicate=None)], None, names):
            read = replace(placed.read, rows=(int(positions[0]), int(positions[-1]) + 1))
            with closing(read.located_tables()) as tables:
                for some, rows in tables:
                    wanted = rows.filter(pa.array(np.isin(some, positions)))
                    frame = Frame(wanted.num_rows, {TARGET: wanted}, self.work.now_ms)
                    columns = [evaluate(key, frame).to_pylist() for key in keys]
                    found += [list(row) for row in zip(*columns, strict=True)]
        return ambiguous_keys(found)

    def _orphans(self, store: TableStore, unit: DataSplit) -> tuple[I64, Choice]:
        """The rows of a unit that a clause changes if they match no row of the source."""
        clauses = self.work.orphaned
        first = len(self.work.clauses) - len(clauses)
        used = frozenset().union(*(clause.tested(TARGET) for clause in clauses))
        columns = sorted(used) or [store.schema.field_names[0]]
        positions: list[I64] = [np.empty(0, np.int64)]
        numbers: list[Choice] = [np.empty(0, np.int8)]
        for placed in split_reads(store, [unit], None, columns):
            with closing(placed.read.located_tables()) as tables:
                for found, rows in tables:
                    frame = Frame(rows.num_rows, {TARGET: rows}, self.work.now_ms)
                    chosen = choose(clauses, frame)
                    acts = chosen != NO_CLAUSE
                    positions.append(found[acts])
                    numbers.append(chosen[acts] + np.int8(first))
        return np.concatenate(positions), np.concatenate(numbers)


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


def joined(first: Prepared, second: Prepared) -> Prepared:
    """Both, to be committed as one."""
    return Prepared((*first.messages, *second.messages), first.tally + second.tally)


def _units_in(batches: Iterable[pa.RecordBatch], *, is_ordered: bool) -> Iterator[pa.Table]:
    """The rows of each unit."""
    held: list[pa.RecordBatch] = []
    if not is_ordered:
        held = [batch for batch in batches if batch.num_rows]
    current: int | None = None
    for batch in batches if is_ordered else ():
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

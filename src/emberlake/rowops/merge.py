"""Merge a source into a table: one pass over the keys of the table, then the files that change.

The source is held in memory; the table is read in parts, and of it only the columns that decide
what happens to a row. Files that cannot hold a key of the source are skipped, unless rows that
match nothing are to change too. Then each touched file is written as its table asks for
(``edits``); for tables with a primary key, rows go through the ordinary write (``key_changes``).
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from emberlake.base.option_texts import MEBIBYTE
from emberlake.base.parallel import parallel_map
from emberlake.errors import DataMismatch, InvalidInput
from emberlake.expressions import Frame, evaluate, select
from emberlake.predicates import Predicate, and_all
from emberlake.predicates import evaluate as evaluate_predicate
from emberlake.predicates.builder import Target
from emberlake.rowops.clauses import (
    NO_CLAUSE,
    SOURCE,
    TARGET,
    Action,
    Choice,
    Editor,
    choose,
    inserted_rows,
)
from emberlake.rowops.edits import FileEdit
from emberlake.rowops.join import KeyIndex, comparable
from emberlake.rowops.locate import PlacedRead, file_reads
from emberlake.rowops.merge_plan import MergePlan, plain_column
from emberlake.spec.column_buffers import I64
from emberlake.spec.snapshot import Snapshot
from emberlake.store.table_store import TableStore

_MOST_LITERALS: Final = 1000  # more keys than this prune by their range alone
_BYTES_AT_ONCE: Final = 64 * MEBIBYTE  # of the columns that decide
_SHOWN: Final = 5


@dataclass(frozen=True)
class Chosen:
    """Rows of a part of the table that change: places, clauses, and rows of the source."""

    places: I64
    clauses: Choice
    matches: I64


class Merge:
    """Decides what happens to the rows of both sides.

    Args:
        plan: What is to be done.
        source: The rows of the source, with the types of its columns in the plan.
        now_ms: The current time, the same for all rows.
    """

    def __init__(self, plan: MergePlan, source: pa.Table, now_ms: int) -> None:
        self.plan = plan
        self.source = source
        self._now_ms = now_ms
        self._is_matched = np.zeros(source.num_rows, bool)
        self._lock = Lock()

    @cached_property
    def editor(self) -> Editor:
        """What happens to the rows of the table."""
        return Editor(self.plan.for_table, self.source, self._now_ms)

    @cached_property
    def index(self) -> KeyIndex:
        """The rows of the source by their keys."""
        on = self.plan.on
        frame = Frame(self.source.num_rows, {SOURCE: self.source}, self._now_ms)
        is_used = None if on.of_source is None else select(on.of_source, frame)
        keys = [evaluate(pair.source, frame) for pair in on.keys]
        return KeyIndex(keys, [pair.matches_null for pair in on.keys], is_used)

    # --- the table --------------------------------------------------------------------------------

    def pruning(self) -> Predicate | None:
        """What rows of the table must satisfy to be touched; None: nothing is known."""
        if self.plan.orphaned:
            return None
        ranges = [self._key_range(number) for number in range(len(self.plan.on.keys))]
        return and_all([self.plan.on.predicate, *ranges])

    def _key_range(self, number: int) -> Predicate | None:
        pair = self.plan.on.keys[number]
        side = plain_column(pair.target.typed)
        if side is None or pair.matches_null or not self.source.num_rows:
            return None
        frame = Frame(self.source.num_rows, {SOURCE: self.source}, self._now_ms)
        keys = evaluate(pair.source, frame).drop_null()
        if pa.types.is_floating(keys.type):
            keys = comparable(keys).drop_null()
        target = Target(side.field, side.path, side.type)
        if not len(keys):
            return target.is_in([])
        # The first keys may tell that there are many: then not all of them are put in a table.
        if len(keys.slice(0, 4 * _MOST_LITERALS).unique()) <= _MOST_LITERALS:
            distinct = keys.unique()
            if len(distinct) <= _MOST_LITERALS:
                return target.is_in(list(distinct))
        bounds = pc.min_max(keys) if not pa.types.is_boolean(keys.type) else None
        if bounds is None:
            return None
        return target.between(bounds["min"], bounds["max"])

    def pairs(self, rows: pa.Table) -> Chosen:
        """The pairs that match; their clause is ``NO_CLAUSE`` where nothing happens."""
        of_rows, of_source = self._pairs(rows)
        return Chosen(of_rows, self._choose_pairs(rows, of_rows, of_source), of_source)

    def choose(self, rows: pa.Table) -> Chosen:
        """What happens to some rows of the table.

        Raises:
            DataMismatch: several rows of the source would change the same row.
        """
        found = self.pairs(rows)
        of_rows, chosen, of_source = found.places, found.clauses, found.matches
        with self._lock:
            self._is_matched[of_source] = True
        acts = chosen != NO_CLAUSE
        places, clauses, matches = of_rows[acts], chosen[acts], of_source[acts]
        places, clauses, matches = self._once(places, clauses, matches)
        if not self.plan.orphaned:
            return Chosen(places, clauses, matches)
        alone = np.setdiff1d(np.arange(rows.num_rows), of_rows, assume_unique=False)
        frame = Frame(len(alone), {TARGET: rows.take(pa.array(alone))}, self._now_ms)
        orphaned = choose(self.plan.orphaned, frame)
        acts = orphaned != NO_CLAUSE
        offset = np.int8(len(self.plan.matched))
        all_places = np.concatenate([places, alone[acts]])
        order = np.argsort(all_places, kind="stable")
        return Chosen(
            all_places[order],
            np.concatenate([clauses, orphaned[acts] + offset])[order],
            np.concatenate([matches, np.full(int(acts.sum()), -1, np.int64)])[order],
        )

    def _pairs(self, rows: pa.Table) -> tuple[I64, I64]:
        """The pairs that match: rows of the table, ascending, and of the source."""
        on = self.plan.on
        frame = Frame(rows.num_rows, {TARGET: rows}, self._now_ms)
        of_rows, of_source = self.index.pairs([evaluate(pair.target, frame) for pair in on.keys])
        keeps = np.ones(len(of_rows), bool)
        if self.plan.orphaned and on.predicate is not None:  # otherwise the read has tested it
            mask = evaluate_predicate(on.predicate, rows).fill_null(False)
            keeps &= mask.to_numpy(zero_copy_only=False)[of_rows]
        if on.of_pairs is not None:
            keeps &= select(on.of_pairs, self._frame(rows, of_rows, of_source))
        return of_rows[keeps], of_source[keeps]

    def _choose_pairs(self, rows: pa.Table, of_rows: I64, of_source: I64) -> Choice:
        if not self.plan.matched:
            return np.full(len(of_rows), NO_CLAUSE, np.int8)
        return choose(self.plan.matched, self._frame(rows, of_rows, of_source))

    def _frame(self, rows: pa.Table, of_rows: I64, of_source: I64) -> Frame:
        """Both sides of pairs, with the columns that decide."""
        left = [n for n in rows.column_names if n in self.plan.tested(TARGET)]
        right = sorted(self.plan.tested(SOURCE))
        sources = {
            TARGET: rows.select(left).take(pa.array(of_rows)),
            SOURCE: self.source.select(right).take(pa.array(of_source)),
        }
        return Frame(len(of_rows), sources, self._now_ms)

    def _once(self, places: I64, clauses: Choice, matches: I64) -> tuple[I64, Choice, I64]:
        """Each row once; refuse rows that several rows of the source would change.

        Deleting a row twice is harmless.
        """
        is_again = np.zeros(len(places), bool)
        is_again[1:] = places[1:] == places[:-1]
        if not is_again.any():
            return places, clauses, matches
        deletes = np.array([c.action is Action.DELETE for c in self.plan.matched], bool)
        affected = np.isin(places, places[is_again])
        harmful = affected & ~deletes[clauses]
        if harmful.any():
            raise self.ambiguous(np.unique(matches[np.isin(places, places[harmful])]))
        return places[~is_again], clauses[~is_again], matches[~is_again]

    def ambiguous(self, rows: I64) -> DataMismatch:
        """The error for rows of the source that have the same keys."""
        frame = Frame(self.source.num_rows, {SOURCE: self.source}, self._now_ms)
        keys = [evaluate(pair.source, frame).take(pa.array(rows)) for pair in self.plan.on.keys]
        return ambiguous_keys(zip(*(key.to_pylist() for key in keys), strict=True))

    def check_all_matched(self) -> None:
        """Refuse rows of the source that match no row of the table.

        Raises:
            InvalidInput: names some of their keys.
        """
        alone = np.flatnonzero(~self._is_matched)
        if len(alone):
            (pair,) = self.plan.on.keys
            frame = Frame(self.source.num_rows, {SOURCE: self.source}, self._now_ms)
            keys = evaluate(pair.source, frame).take(pa.array(alone[:_SHOWN])).to_pylist()
            more = f" and {len(alone) - _SHOWN} more" if len(alone) > _SHOWN else ""
            name = self.plan.on.text.partition(" ")[0].partition(".")[2]
            raise InvalidInput(
                f"{name} of no row that is in the table: {', '.join(map(str, keys))}{more}"
            )

    # --- the source -------------------------------------------------------------------------------

    def inserts(self) -> list[pa.Table]:
        """The rows to insert, once all rows of the table have been seen."""
        if not self.plan.new:
            return []
        new = self.source.filter(pa.array(~self._is_matched))
        chosen = choose(self.plan.new, Frame(new.num_rows, {SOURCE: new}, self._now_ms))
        made = []
        for number, clause in enumerate(self.plan.new):
            rows = new.filter(pa.array(chosen == number))
            if rows.num_rows:
                made.append(inserted_rows(clause, rows, self._now_ms))
        return made


def ambiguous_keys(keys: Iterable[Sequence[object]]) -> DataMismatch:
    """The error for rows of the table that several rows of the source would change."""
    shown = [", ".join(map(str, key)) for key in dict.fromkeys(map(tuple, keys))]
    more = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    return DataMismatch(
        "several rows of the source match the same row of the table, so it is not clear which of "
        f"them counts; keys: {'; '.join(shown[:_SHOWN])}{more}. Keep one row for each key"
    )


def find_merge_edits(store: TableStore, snapshot: Snapshot | None, merge: Merge) -> list[FileEdit]:
    """What happens to the rows of an append table, for every file that changes.

    Raises:
        DataMismatch: several rows of the source would change the same row.
    """
    columns = sorted(merge.plan.tested(TARGET)) or [store.schema.field_names[0]]
    _ = merge.index  # made once, before threads ask for it
    reads = file_reads(store, snapshot, merge.pruning(), columns)
    found = parallel_map(lambda placed: find_in_file(merge, placed), reads)
    return [edit for edit in found if edit is not None]


def find_in_file(merge: Merge, placed: PlacedRead) -> FileEdit | None:
    """What happens to the rows of one file; None: nothing.

    Raises:
        DataMismatch: several rows of the source would change the same row.
    """
    positions: list[I64] = []
    parts: list[Chosen] = []
    for found, rows in _large_parts(placed, merge.index.rows_at_once):
        chosen = merge.choose(rows)
        if len(chosen.places):
            positions.append(found[chosen.places])
            parts.append(chosen)
    if not parts:
        return None
    return FileEdit(
        placed.place,
        np.concatenate(positions),
        np.concatenate([part.clauses for part in parts]),
        np.concatenate([part.matches for part in parts]),
    )


def located_pairs(merge: Merge, placed: PlacedRead) -> Iterator[tuple[I64, Chosen]]:
    """The pairs that match in a file: the positions of rows, and pairs of some of these rows."""
    for positions, rows in _large_parts(placed, merge.index.rows_at_once):
        yield positions, merge.pairs(rows)


def _large_parts(placed: PlacedRead, least: int) -> Iterator[tuple[I64, pa.Table]]:
    """The rows of a file in parts of at least this many rows, or many bytes; the last has fewer."""
    positions: list[I64] = []
    tables: list[pa.Table] = []
    count = size = 0
    with closing(placed.read.located_tables()) as located:
        for some, rows in located:
            positions.append(some)
            tables.append(rows)
            count += rows.num_rows
            size += rows.nbytes
            if count >= least or size >= _BYTES_AT_ONCE:
                yield np.concatenate(positions), _joined(tables)
                positions, tables, count, size = [], [], 0, 0
    if count:
        yield np.concatenate(positions), _joined(tables)


def _joined(tables: Sequence[pa.Table]) -> pa.Table:
    return pa.concat_tables(tables).combine_chunks()

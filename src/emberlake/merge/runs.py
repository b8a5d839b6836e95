"""Merge sorted runs into one, in bounded memory.

A run is a stream of tables, sorted by key, in which every key appears once. The bound of a step is
the smallest last key among the runs' current tables: no later table can hold a key up to it, so all
rows up to the bound can be merged and returned. Memory holds one table per run, and the rows of one
step.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from emberlake.merge.fold import fold, without_retracts
from emberlake.merge.levels import without_covered
from emberlake.merge.order import KeyBound, key_at, key_bound, rows_up_to
from emberlake.merge.plan import MergePlan
from emberlake.spec.key_value import KIND, LEVEL, SEQUENCE

# Takes the records of a step and the bound of their keys, and returns the records to merge.
Completion: TypeAlias = Callable[[pa.Table, KeyBound], pa.Table]
# Gets the records of a step, and the rows that they become.
Observer: TypeAlias = Callable[[pa.Table, pa.Table], None]


def merge_runs(
    plan: MergePlan,
    runs: Sequence[Iterable[pa.Table]],
    *,
    keep_deletes: bool,
    complete: Completion | None = None,
    observe: Observer | None = None,
) -> Generator[pa.Table, None, None]:
    """The rows of all runs, merged and sorted by key; no key spans two of the tables.

    Records may come with their levels: then one above level 0 stands for those above it. Records
    that are equal in every order of the table are ordered by run: a later run is newer.
    Runs that can be closed are closed after the last table, or when the caller stops.

    Args:
        plan: How records are merged.
        runs: The runs, the oldest first.
        keep_deletes: Deleted rows stay, with their kind.
        complete: Adds older records of the same keys, which are in no run, or drops records. It is
            called in key order.
        observe: Sees every step, in key order.
    """
    columns = [*(f.name for f in plan.read_fields), SEQUENCE, KIND, LEVEL]
    step = _Step(plan, keep_deletes, complete, observe)
    try:
        cursors = [_Cursor(plan, run, columns) for run in runs]
        live = [cursor for cursor in cursors if cursor.advance()]
        while len(live) > 1:
            bound = min(cursor.last for cursor in live)
            parts = [part for cursor in live if (part := cursor.cut(bound)).num_rows]
            merged = step.merge(parts, bound)
            if merged.num_rows:
                yield merged
            live = [cursor for cursor in live if cursor.has_rows or cursor.advance()]
        for cursor in live:
            yield from _rest(step, cursor)
    finally:
        for run in runs:
            close = getattr(run, "close", None)
            if close is not None:
                close()


class _Cursor:
    """The position in a run: what is left of its current table."""

    def __init__(self, plan: MergePlan, run: Iterable[pa.Table], columns: list[str]) -> None:
        self._keys = plan.keys
        self._tables = iter(run)
        self._columns = columns
        self.rows: pa.Table = None
        self.last: KeyBound = ()

    @property
    def has_rows(self) -> bool:
        return self.rows is not None and self.rows.num_rows > 0

    def advance(self) -> bool:
        """Move on to the next table with rows; False at the end."""
        for table in self._tables:
            if table.num_rows:
                self.rows = table.select([n for n in self._columns if n in table.column_names])
                self.last = key_bound(key_at(table, self._keys, table.num_rows - 1))
                return True
        self.rows = None
        return False

    def cut(self, bound: KeyBound) -> pa.Table:
        """Take the rows with keys up to a bound."""
        count = self.rows.num_rows
        if self.last > bound:
            count = rows_up_to(self.rows, self._keys, bound)
        head = self.rows.slice(0, count)
        self.rows = self.rows.slice(count)
        return head


@dataclass(frozen=True)
class _Step:
    """Merges the records of one range of keys."""

    plan: MergePlan
    keep_deletes: bool
    complete: Completion | None
    observe: Observer | None

    def merge(self, parts: list[pa.Table], bound: KeyBound) -> pa.Table:
        """The rows of parts of runs."""
        rows = parts[0] if len(parts) == 1 else pa.concat_tables(parts)
        completed = rows if self.complete is None else self.complete(rows, bound)
        # The keys of one run are distinct: rows of one run alone are already merged.
        if len(parts) == 1 and completed.num_rows <= rows.num_rows:
            merged = completed.drop_columns([LEVEL]) if LEVEL in rows.column_names else completed
            merged = merged if self.keep_deletes else without_retracts(merged)
        else:
            counting = without_covered(self.plan, completed)
            merged = fold(self.plan, counting, keep_deletes=self.keep_deletes)
        if self.observe is not None:
            self.observe(completed, merged)
        return merged


def _rest(step: _Step, cursor: _Cursor) -> Iterator[pa.Table]:
    """The rest of the last run; its keys are in no other."""
    while cursor.has_rows or cursor.advance():
        rows, cursor.rows = cursor.rows, None
        merged = step.merge([rows], cursor.last)
        if merged.num_rows:
            yield merged

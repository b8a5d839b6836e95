"""What happens to which rows: clauses, evaluated on columns. Pure.

Each row gets the number of the first clause whose condition is true for it; ``NO_CLAUSE`` if there
is none. New values are computed for the rows of one clause at a time. A delete and an update are
operations with one clause; a merge has several, and a source beside the table.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from emberlake.expressions import Expression, Frame, columns_used, evaluate, select
from emberlake.spec.column_buffers import I64, Mask
from emberlake.types import DataField
from emberlake.write.align import align

TARGET: Final = 0  # the numbers of the two sources of expressions
SOURCE: Final = 1
NO_CLAUSE: Final = -1

Choice = npt.NDArray[np.int8]


class Action(Enum):
    """What a clause does with its rows."""

    UPDATE = auto()
    DELETE = auto()
    INSERT = auto()


@dataclass(frozen=True)
class Clause:
    """An action for the rows that a condition is true for; None: for all."""

    action: Action
    where: Expression | None = None
    values: Mapping[str, Expression] = field(default_factory=dict)

    def columns(self, source: int) -> frozenset[str]:
        """The columns of a source that its values need."""
        used = (columns_used(value.typed, source) for value in self.values.values())
        return frozenset().union(*used)

    def tested(self, source: int) -> frozenset[str]:
        """The columns of a source that its condition needs."""
        return frozenset() if self.where is None else columns_used(self.where.typed, source)


def choose(clauses: Sequence[Clause], frame: Frame) -> Choice:
    """The number of the clause of every row."""
    chosen = np.full(frame.count, NO_CLAUSE, np.int8)
    left = np.arange(frame.count)
    for number, clause in enumerate(clauses):
        if not len(left):
            break
        if clause.where is None:
            chosen[left] = number
            break
        part = frame if len(left) == frame.count else frame.take(left)
        is_it = select(clause.where, part)
        chosen[left[is_it]] = number
        left = left[~is_it]
    return chosen


@dataclass(frozen=True)
class Editor:
    """Applies clauses to rows that were found.

    Args:
        clauses: For rows of the table; those of a merge, in order.
        source: The rows of the other side of a merge.
        now_ms: The current time, the same for all rows.
    """

    clauses: tuple[Clause, ...]
    source: pa.Table | None = None
    now_ms: int = 0

    @cached_property
    def updates(self) -> tuple[Clause, ...]:
        return tuple(c for c in self.clauses if c.action is Action.UPDATE)

    @cached_property
    def assigned(self) -> frozenset[str]:
        """The columns that some clause sets."""
        return frozenset(name for clause in self.updates for name in clause.values)

    def is_update(self, chosen: Choice) -> Mask:
        """Which rows get new values; the others are deleted."""
        kinds = np.array([c.action is Action.UPDATE for c in self.clauses], bool)
        return np.asarray(kinds[chosen], bool)

    def needed(self, fields: Collection[DataField]) -> frozenset[str]:
        """The columns of the table that the new values of these columns depend on."""
        needed: set[str] = set()
        for clause in self.updates:
            for column in fields:
                value = clause.values.get(column.name)
                needed |= {column.name} if value is None else columns_used(value.typed, TARGET)
        return frozenset(needed)

    def new_rows(
        self,
        fields: tuple[DataField, ...],
        old: pa.Table,
        chosen: Choice,
        matches: I64 | None,
    ) -> pa.Table:
        """The new values of some columns, one row for each old one.

        Args:
            fields: The columns to compute.
            old: What the rows are now; at least the columns that ``needed`` names.
            chosen: The clause of each row, an update.
            matches: The row of the source that each row is matched by, if there is a source.

        Raises:
            DataMismatch: values that cannot be computed, or do not fit their columns.
        """
        parts: list[pa.Table] = []
        places: list[I64] = []
        for number in np.unique(chosen).tolist():
            rows = np.flatnonzero(chosen == number)
            is_all = len(rows) == len(chosen)
            some = old if is_all else old.take(pa.array(rows))
            sources = {TARGET: some}
            names = sorted(self.clauses[number].columns(SOURCE))
            if names and self.source is not None and matches is not None:
                sources[SOURCE] = self.source.select(names).take(pa.array(matches[rows]))
            parts.append(self._values(self.clauses[number], fields, some, sources))
            places.append(rows)
        if len(parts) == 1:
            return parts[0]
        order = np.empty(len(chosen), np.int64)
        order[np.concatenate(places)] = np.arange(len(chosen))
        return pa.concat_tables(parts).combine_chunks().take(pa.array(order))

    def _values(
        self,
        clause: Clause,
        fields: tuple[DataField, ...],
        old: pa.Table,
        sources: Mapping[int, pa.Table],
    ) -> pa.Table:
        frame = Frame(old.num_rows, sources, self.now_ms)
        columns = {
            f.name: evaluate(clause.values[f.name], frame)
            if f.name in clause.values
            else old.column(f.name)
            for f in fields
        }
        return align(pa.table(columns), fields)


def inserted_rows(clause: Clause, rows: pa.Table, now_ms: int) -> pa.Table:
    """The rows that a clause makes of rows of the source, with the columns that it sets."""
    frame = Frame(rows.num_rows, {SOURCE: rows}, now_ms)
    return pa.table({name: evaluate(value, frame) for name, value in clause.values.items()})

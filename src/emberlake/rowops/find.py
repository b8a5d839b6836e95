"""Find the rows that a condition selects, in append tables: file by file, by position.

What a filter can express prunes files, and is evaluated while they are read. The rest of the
condition is evaluated on the rows that are left. Only the columns of the condition are read.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np

from emberlake.base.parallel import parallel_map
from emberlake.expressions import (
    Expression,
    Frame,
    Scope,
    Source,
    bind_condition,
    columns_used,
    select,
    split_condition,
)
from emberlake.predicates import Predicate, bind_filter, columns_of
from emberlake.rowops.clauses import TARGET, Action, Clause
from emberlake.rowops.edits import FileEdit
from emberlake.rowops.locate import PlacedRead, split_reads
from emberlake.scan.plan import plan_target
from emberlake.scan.splits import DataSplit
from emberlake.spec.column_buffers import I64
from emberlake.spec.row_tracking import readable_fields
from emberlake.spec.schema import TableSchema
from emberlake.spec.snapshot import Snapshot
from emberlake.store.table_store import TableStore


@dataclass(frozen=True)
class Condition:
    """Which rows: those that match a filter, and for which the rest is true as well."""

    predicate: Predicate | None = None
    rest: Expression | None = None

    @property
    def columns(self) -> frozenset[str]:
        """The columns that the rest needs."""
        return frozenset() if self.rest is None else columns_used(self.rest.typed, TARGET)


def table_scope(schema: TableSchema, alias: str = "t") -> Scope:
    """The columns that expressions on a table can name."""
    return Scope((Source(alias, readable_fields(schema)),))


def bind_where(where: Predicate | str | None, schema: TableSchema) -> Condition:
    """The condition that users give: text, or a predicate; None: all rows.

    Raises:
        InvalidExpression, InvalidPredicate, ColumnNotFound: it does not fit the table.
    """
    if not isinstance(where, str):
        return Condition(bind_filter(where, schema))
    bound = bind_condition(where, table_scope(schema))
    predicate, rest = split_condition(bound.typed)
    return Condition(predicate, None if rest is None else Expression(rest, where))


def find_edits(
    store: TableStore,
    snapshot: Snapshot | None,
    condition: Condition,
    clause: Clause,
    now_ms: int,
) -> Iterator[FileEdit]:
    """The rows of every file that a clause applies to."""
    splits = plan_target(store, snapshot, condition.predicate, None).splits
    return find_in_splits(store, splits, condition, clause, now_ms)


def find_in_splits(
    store: TableStore,
    splits: Iterable[DataSplit],
    condition: Condition,
    clause: Clause,
    now_ms: int,
) -> Iterator[FileEdit]:
    """The rows of splits that a clause applies to; they were planned with the condition."""
    columns = sorted(condition.columns) or [_any_column(store.schema, condition.predicate)]
    reads = split_reads(store, splits, condition.predicate, columns)

    def find(placed: PlacedRead) -> FileEdit | None:
        is_whole = placed.is_exact and condition.rest is None
        if is_whole and clause.action is Action.DELETE:
            return FileEdit(placed.place, None)  # metadata knows enough
        if is_whole and placed.place.vector is None:
            positions = np.arange(placed.place.file.row_count)
        else:
            positions = _positions(placed, condition.rest, now_ms)
        if not len(positions):
            return None
        return FileEdit(placed.place, positions, np.zeros(len(positions), np.int8))

    return (edit for edit in parallel_map(find, reads) if edit is not None)


def _positions(placed: PlacedRead, rest: Expression | None, now_ms: int) -> I64:
    parts: list[I64] = []
    with closing(placed.read.located_tables()) as tables:
        for positions, rows in tables:
            if rest is None:
                parts.append(positions)
            else:
                frame = Frame(rows.num_rows, {TARGET: rows}, now_ms)
                parts.append(positions[select(rest, frame)])
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def _any_column(schema: TableSchema, predicate: Predicate | None) -> str:
    """A column to read if none is needed: one of the filter, or the first one."""
    named: Sequence[str] = sorted(columns_of(predicate)) if predicate is not None else ()
    return named[0] if named else schema.field_names[0]

"""Change rows of tables with a primary key: a record with the key of a row takes its place.

The rows are read as the merge engine shows them, and go through the ordinary write with their row
kinds. Numbers of new records continue from the snapshot that was read, so a record that another
writer has given the same key since is a conflict.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from emberlake.base.names import listed
from emberlake.errors import DataMismatch, Unsupported
from emberlake.expressions import Frame, select
from emberlake.merge.plan import MergePlan, plan_merge
from emberlake.options import ROWKIND_FIELD, MergeEngine
from emberlake.predicates import Predicate
from emberlake.read.projection import project_all
from emberlake.read.table_reader import TableReader
from emberlake.rowops.clauses import TARGET, Choice, Editor
from emberlake.rowops.edits import Prepared
from emberlake.rowops.find import Condition
from emberlake.rowops.keys import check_deletes
from emberlake.rowops.result import Tally
from emberlake.scan.plan import plan_target
from emberlake.session.write_session import WriteSession
from emberlake.spec.column_buffers import I64
from emberlake.spec.key_value import RowKind
from emberlake.spec.schema import TableSchema
from emberlake.spec.snapshot import Snapshot
from emberlake.store.table_store import TableStore
from emberlake.write.align import align

_REPLACING: "frozenset[MergeEngine]" = frozenset(
    {MergeEngine.DEDUPLICATE, MergeEngine.PARTIAL_UPDATE}
)

# What happens to some rows of the table: the rows that change among them, the clause of each, and
# its row of the source, if there is one.
Chosen = tuple[I64, Choice, I64 | None]
Choose = Callable[[pa.Table], Chosen]


def check_key_changes(
    schema: TableSchema, *, updates: bool, deletes: bool, assigned: Collection[str]
) -> None:
    """Refuse operations that a table with a primary key cannot take.

    Raises:
        Unsupported: says why.
    """
    engine = schema.profile.merge_engine
    if deletes:
        check_deletes(schema)
    if not updates:
        return
    if engine not in _REPLACING:
        raise Unsupported(
            f"rows of a table with merge-engine={engine} cannot be updated: a record does not "
            "take the place of a row there. append() adds records"
        )
    kind_field = schema.options.value(ROWKIND_FIELD)
    if kind_field:
        raise Unsupported(
            f"the column {kind_field} tells what a row does; append() rows that have +U there"
        )
    fixed = [n for n in assigned if n in schema.primary_keys or n in schema.partition_keys]
    if fixed:
        raise Unsupported(
            f"{listed(sorted(fixed))}: columns of the primary key and of the partition cannot be "
            "updated, since they tell rows apart. Delete the rows and append them again"
        )


def found_rows(condition: Condition, now_ms: int) -> Choose:
    """Chooses the rows that a condition is true for; the only clause is theirs."""

    def choose(rows: pa.Table) -> Chosen:
        if condition.rest is None:
            places = np.arange(rows.num_rows)
        else:
            frame = Frame(rows.num_rows, {TARGET: rows}, now_ms)
            places = np.flatnonzero(select(condition.rest, frame))
        return places, np.zeros(len(places), np.int8), None

    return choose


def write_key_changes(  # noqa: PLR0913
    session: WriteSession,
    snapshot: Snapshot | None,
    editor: Editor,
    predicate: Predicate | None,
    choose: Choose,
    *,
    inserts: Callable[[], Sequence[pa.Table]] = tuple,
    is_dry: bool = False,
    given: Iterable[pa.Table] | None = None,
) -> Prepared:
    """Write the records that change rows of a table with a primary key.

    Args:
        session: The write.
        snapshot: The state to read.
        editor: What happens to the rows.
        predicate: Only rows that match it are read.
        choose: Says for rows that were read which of them change, and how.
        inserts: Gives new rows, once all rows have been read.
        is_dry: Whether nothing is written, only counted.
        given: The rows of the snapshot to choose from; None: they are read.
    """
    store = session.store
    rows = _rows(store, snapshot, predicate) if given is None else given
    writing = KeyWriting(store, editor, None)
    if is_dry:
        return Prepared((), _write_all(writing, rows, choose, inserts))
    with closing(session.new_writer(as_of=snapshot)) as writer:
        writing = KeyWriting(store, editor, writer)
        tally = _write_all(writing, rows, choose, inserts)
        return Prepared(tuple(writer.prepare()), tally)


def _write_all(
    writing: "KeyWriting",
    tables: Iterable[pa.Table],
    choose: Choose,
    inserts: Callable[[], Sequence[pa.Table]],
) -> Tally:
    tally = Tally()
    for rows in tables:
        places, chosen, matches = choose(rows)
        if len(places):
            tally += writing.change(rows.take(pa.array(places)), chosen, matches)
    for new in inserts():
        tally += writing.insert(new)
    return tally


def _rows(
    store: TableStore, snapshot: Snapshot | None, predicate: Predicate | None
) -> Iterator[pa.Table]:
    reader = TableReader(store, project_all(store.schema.fields), predicate)
    splits = plan_target(store, snapshot, predicate, None).splits
    for batch in reader.read_batches(splits):
        yield pa.Table.from_batches([batch])


class TakesRows(Protocol):
    """A writer, or something that only keeps what it gets."""

    def write(self, data: pa.Table, row_kind: str | None = None) -> None: ...


class KeyWriting:
    """Writes records of one operation, or only counts them."""

    def __init__(self, store: TableStore, editor: Editor, writer: TakesRows | None) -> None:
        self._schema = store.schema
        self._editor = editor
        self._writer = writer
        self._plan = plan_merge(store.schema, store.schema.fields)

    def change(self, rows: pa.Table, chosen: Choice, matches: I64 | None) -> Tally:
        """Write the records that change rows.

        Raises:
            DataMismatch: a new value does not fit, or would have no effect.
        """
        is_update = self._editor.is_update(chosen)
        updated = int(is_update.sum())
        if updated:
            old = rows.filter(pa.array(is_update))
            some = None if matches is None else matches[is_update]
            new = self._editor.new_rows(self._schema.fields, old, chosen[is_update], some)
            _check_order(self._plan, old, new, self._editor.assigned)
            _check_nulls(self._plan, old, new, self._editor.assigned)
            self._write(new, RowKind.UPDATE_AFTER)
        if updated < rows.num_rows:
            self._write(rows.filter(pa.array(~is_update)), RowKind.DELETE)
        return Tally(updated=updated, deleted=rows.num_rows - updated)

    def insert(self, rows: pa.Table) -> Tally:
        """Write new rows."""
        self._write(align(rows, self._schema.fields), RowKind.INSERT)  # what is left out is null
        return Tally(inserted=rows.num_rows)

    def _write(self, rows: pa.Table, kind: RowKind) -> None:
        if self._writer is not None and rows.num_rows:
            self._writer.write(rows, kind.symbol)


def _check_order(plan: MergePlan, old: pa.Table, new: pa.Table, assigned: Collection[str]) -> None:
    """Refuse records that would lose against the rows that they are to replace."""
    for order in plan.sequences[:1]:
        name = order.column.name
        if name not in assigned:
            continue
        before, after = old.column(name), new.column(name)
        loses = pc.less(after, before) if not order.descending else pc.greater(after, before)
        loses = pc.or_(loses.fill_null(False), pc.and_(after.is_null(), before.is_valid()))
        if pc.any(loses).as_py():
            place = pc.index(loses, pa.scalar(True)).as_py()
            raise DataMismatch(
                f"{name} orders the records of a key (sequence.field): setting it from "
                f"{before[place].as_py()!r} to {after[place].as_py()!r} would have no effect, "
                "since the older value wins"
            )


def _check_nulls(plan: MergePlan, old: pa.Table, new: pa.Table, assigned: Collection[str]) -> None:
    """Refuse nulls where a null means no change."""
    if plan.engine is not MergeEngine.PARTIAL_UPDATE or plan.has_groups:
        return
    for name in sorted(assigned):
        if pc.any(pc.and_(new.column(name).is_null(), old.column(name).is_valid())).as_py():
            raise DataMismatch(
                f"{name} cannot be set to null: in a table with merge-engine=partial-update a null "
                "leaves the value that is there"
            )

"""Change rows of tables with a primary key: a record with the key of a row takes its place.

The rows are read as the merge engine shows them, and go through the ordinary write with their row
kinds. Numbers of new records continue from the snapshot that was read, so a record that another
writer has given the same key since is a conflict.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from emberlake.base.names import listed
from emberlake.errors import DataMismatch, Unsupported
from emberlake.expressions import Frame, select
from emberlake.merge.fold import fold
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
from emberlake.spec.key_value import KEY_PREFIX, KIND, SEQUENCE, RowKind
from emberlake.spec.schema import TableSchema
from emberlake.spec.snapshot import Snapshot
from emberlake.store.table_store import TableStore
from emberlake.types import AtomicType, DataField
from emberlake.write.align import align

_REPLACING: "frozenset[MergeEngine]" = frozenset(
    {MergeEngine.DEDUPLICATE, MergeEngine.PARTIAL_UPDATE}
)
_NUMBER: Final = DataField(-1, f"{KEY_PREFIX}number", AtomicType("BIGINT NOT NULL"))

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
    fixed = schema.fixed_columns & set(assigned)
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
            _check_effect(self._plan, old, new, self._editor.assigned)
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


def _check_effect(plan: MergePlan, old: pa.Table, new: pa.Table, assigned: Collection[str]) -> None:
    """Refuse records that would not become the rows that they say.

    An older record may win by its sequence, a null may mean no change, and a function adds to what
    is there. So each row and its record are merged as a reader will merge them.
    """
    changes_order = any(order.column.name in assigned for order in plan.sequences)
    if not (changes_order or plan.engine is MergeEngine.PARTIAL_UPDATE):
        return
    # The number of a row stands for its key: the same key may be in several partitions.
    numbered = replace(plan, keys=(_NUMBER,), read_fields=(*plan.read_fields, _NUMBER))
    records = [
        rows.append_column(_NUMBER.name, pa.array(np.arange(rows.num_rows)))
        .append_column(SEQUENCE, pa.array(np.full(rows.num_rows, age)))
        .append_column(KIND, pa.array(np.full(rows.num_rows, RowKind.INSERT, np.int8)))
        for age, rows in enumerate((old.select(new.column_names).cast(new.schema), new))
    ]
    after = fold(numbered, pa.concat_tables(records), keep_deletes=True)
    for name in sorted(new.column_names, key=lambda name: (name not in assigned, name)):
        found, wanted = after.column(name), new.column(name)
        if not found.equals(wanted):  # or both hold NaN
            pairs = zip(found.to_pylist(), wanted.to_pylist(), strict=True)
            for row, (is_then, asked) in enumerate(pairs):
                if repr(is_then) != repr(asked):
                    keys = ", ".join(f"{f.name} = {new.column(f.name)[row]}" for f in plan.keys)
                    raise _no_effect(plan, name, asked, f"{_shown(is_then)} in the row with {keys}")


def _no_effect(plan: MergePlan, name: str, asked: object, outcome: str) -> DataMismatch:
    if plan.sequences and plan.engine is not MergeEngine.PARTIAL_UPDATE:
        orders = listed([order.column.name for order in plan.sequences])
        why = f"{orders} decides which record wins (sequence.field), so this would have no effect"
    elif asked is None:
        why = "in a table with merge-engine=partial-update a null leaves the value that is there"
    else:
        why = "the table merges records by their sequence (sequence.field, sequence-group) or by "
        why += "a function (aggregate-function)"
    return DataMismatch(f"{name} cannot become {_shown(asked)}; it would be {outcome}: {why}")


def _shown(value: object) -> str:
    return "NULL" if value is None else repr(value) if isinstance(value, str) else str(value)


def check_new_keys(schema: TableSchema, inserts: Sequence[pa.Table]) -> None:
    """Refuse new rows that have the same primary key: one would silently replace the other."""
    keys = list(schema.primary_keys)
    if not inserts or any(key not in rows.column_names for rows in inserts for key in keys):
        return  # the writer says what is missing
    counted = pa.concat_tables([rows.select(keys) for rows in inserts]).group_by(keys)
    counts = counted.aggregate([([], "count_all")])
    repeated = counts.filter(pc.greater(counts.column("count_all"), 1))
    if repeated.num_rows:
        raise repeated_keys(repeated.select(keys))


def repeated_keys(keys: pa.Table) -> DataMismatch:
    """The error for primary keys that several new rows have."""
    shown = [", ".join(map(str, row.values())) for row in keys.slice(0, 5).to_pylist()]
    return DataMismatch(
        f"several new rows have the same primary key: {'; '.join(shown)}. Keep one row for each key"
    )

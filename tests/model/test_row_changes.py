"""Random histories of row operations, one or two at a time, against a model of plain Python rows.

The model says what an operation does to the rows of a snapshot (`Effect`). Two operations that were
prepared on the same snapshot are committed one after the other: either the second is refused, or
its effect is added to that of the first. If both change the same row, it must be refused.
"""

import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from builders import alter, create_key_table, create_table
from emberlake import SchemaChange
from emberlake.errors import CommitConflict
from emberlake.rowops import change, merge_builder
from emberlake.rowops.attempts import present
from emberlake.rowops.result import RowChangeResult
from emberlake.session.write_session import WriteSession
from emberlake.table import Table
from emberlake.table.write_builder import session_of
from emberlake.wire import CommitMessage
from table_reads import check_whole
from tracked_tables import EVOLVING, TRACKED, VECTORS

COLUMNS = pa.schema([("id", pa.int64()), ("n", pa.int32()), ("day", pa.string())])
SMALL = {"target-file-row-num": "3"}
KINDS: dict[str, Callable[[], Table]] = {
    "rewrite": lambda: create_table(columns=COLUMNS, partition_keys=["day"], options=SMALL),
    "vectors": lambda: create_table(
        columns=COLUMNS, partition_keys=["day"], options={**SMALL, **VECTORS}
    ),
    "tracked": lambda: create_table(columns=COLUMNS, options={**SMALL, **TRACKED, **VECTORS}),
    "columns": lambda: create_table(columns=COLUMNS, options={**SMALL, **EVOLVING, **VECTORS}),
    "keys": lambda: create_key_table(COLUMNS),
}

Row = dict[str, Any]
IDS = st.integers(0, 9)
NUMBERS = st.none() | st.integers(-5, 5)
DAYS = st.sampled_from(["mon", "tue"])
ROWS = st.lists(
    st.fixed_dictionaries({"id": IDS, "n": NUMBERS, "day": DAYS}),
    max_size=6,
    unique_by=lambda row: row["id"],
)


def _test(text: str, column: str, op: Callable, literal: Any) -> tuple[str, Callable]:
    def holds(row: Row) -> bool | None:
        return None if row[column] is None else op(row[column], literal)

    return text, holds


TESTS = st.one_of(
    st.builds(lambda n: _test(f"id = {n}", "id", operator.eq, n), IDS),
    st.builds(lambda n: _test(f"n > {n}", "n", operator.gt, n), st.integers(-5, 5)),
    st.builds(lambda n: _test(f"n + 0 <= {n}", "n", operator.le, n), st.integers(-5, 5)),
    st.builds(lambda d: _test(f"day = '{d}'", "day", operator.eq, d), DAYS),
    st.just(("n IS NULL", lambda row: row["n"] is None)),
    st.just(("TRUE", lambda _row: True)),
)


def _joined(one: tuple, word: str, other: tuple) -> tuple[str, Callable]:
    def holds(row: Row) -> bool | None:
        both = {one[1](row), other[1](row)}
        decides = word == "OR"
        if decides in both:
            return decides
        return None if None in both else not decides

    return f"({one[0]}) {word} ({other[0]})", holds


def _negated(test: tuple) -> tuple[str, Callable]:
    def holds(row: Row) -> bool | None:
        found = test[1](row)
        return None if found is None else not found

    return f"NOT ({test[0]})", holds


CONDITIONS = st.recursive(
    TESTS,
    lambda inner: (
        st.builds(_joined, inner, st.sampled_from(["AND", "OR"]), inner)
        | st.builds(_negated, inner)
    ),
    max_leaves=3,
)


@dataclass(frozen=True)
class Append:
    """Rows are added; in a key table they replace those with their keys."""

    rows: list[Row]


@dataclass(frozen=True)
class Delete:
    condition: tuple[str, Callable]


@dataclass(frozen=True)
class Update:
    condition: tuple[str, Callable]
    step: int


@dataclass(frozen=True)
class Merge:
    source: list[Row]
    deletes: bool
    inserts: bool
    orphans: bool


@dataclass(frozen=True)
class Compact:
    full: bool


@dataclass(frozen=True)
class Alter:
    """A column is added."""


Operation = Append | Delete | Update | Merge | Compact | Alter
CHANGES = st.one_of(
    st.builds(Delete, CONDITIONS),
    st.builds(Update, CONDITIONS, st.integers(-2, 2)),
    st.builds(Merge, ROWS, st.booleans(), st.booleans(), st.booleans()),
)
OPERATIONS = st.one_of(
    CHANGES, st.builds(Append, ROWS), st.builds(Compact, st.booleans()), st.builds(Alter)
)


@dataclass
class Effect:
    """What an operation does: rows that go, new values of rows, and new rows."""

    deleted: set[int] = field(default_factory=set)
    updated: dict[int, Row] = field(default_factory=dict)
    inserted: list[Row] = field(default_factory=list)

    @property
    def touched(self) -> set[int]:
        return self.deleted | set(self.updated)

    def check(self, result: RowChangeResult) -> None:
        """The result of the operation says the same."""
        assert result.rows_deleted == len(self.deleted)
        assert result.rows_updated == len(self.updated)
        assert result.rows_inserted == len(self.inserted)


def perform(table: Any, operation: Delete | Update | Merge) -> RowChangeResult:
    """Do it to the latest snapshot of a table."""
    match operation:
        case Delete(condition):
            return table.delete(condition[0])
        case Update(condition, step):
            return table.update(_values(step), condition[0])
        case Merge(source):
            merge = table.merge(pa.Table.from_pylist(source, COLUMNS), ["id"])
            return _with_clauses(merge, operation).execute()


def _plus(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


class RowChanges(RuleBasedStateMachine):
    """Does the same to a table and to a model: rows by numbers that they never change."""

    kind: str

    def __init__(self) -> None:
        super().__init__()
        self.table = KINDS[self.kind]()
        self.rows: dict[int, Row] = {}
        self.ids: dict[int, int] = {}  # of row tracking
        self.added = 0
        self._numbers = count()
        self._next_id = 0

    @property
    def has_keys(self) -> bool:
        return self.kind == "keys"

    # --- one operation at a time ------------------------------------------------------------------

    @rule(rows=ROWS)
    def append(self, rows: list[Row]) -> None:
        effect = self.effect(Append(rows))
        self.table.append(self.data(rows))
        self.apply(effect)

    def data(self, rows: list[Row]) -> pa.Table:
        """Rows with nulls in the columns that were added."""
        data = pa.Table.from_pylist(rows, COLUMNS)
        for number in range(1, self.added + 1):
            data = data.append_column(f"extra{number}", pa.nulls(len(rows), pa.int32()))
        return data

    @rule(operation=CHANGES)
    def do(self, operation: Delete | Update | Merge) -> None:
        effect = self.effect(operation)
        effect.check(perform(self.table, operation))
        self.apply(effect)

    @rule(condition=CONDITIONS, day=DAYS)
    def move(self, condition: tuple, day: str) -> None:
        text, holds = condition
        self.table.update({"day": f"'{day}'"}, text)
        for row in self.rows.values():
            if holds(row) is True:
                row["day"] = day

    @rule(full=st.booleans())
    def compact(self, *, full: bool) -> None:
        self.table.compact(full=full)

    @rule()
    def add_column(self) -> None:
        if self.added < 2:
            self.added += 1
            self.table = alter(self.table, SchemaChange.add_column(f"extra{self.added}", "INT"))

    # --- two at a time ----------------------------------------------------------------------------

    @rule(first=OPERATIONS, second=CHANGES, swaps=st.booleans())
    def race(self, first: Operation, second: Operation, *, swaps: bool) -> None:
        operations = [second, first] if swaps else [first, second]
        effects = [self.effect(operation) for operation in operations]
        commits = [self.prepare(operation) for operation in operations]

        commits[0]()
        self.apply(effects[0])
        try:
            commits[1]()
        except CommitConflict:
            assert not self.must_succeed(operations), "others only added rows or columns"
            return
        assert not self.must_fail(*effects), "an update was lost, or a deleted row came back"
        self.apply(effects[1])

    def prepare(self, operation: Operation) -> Callable[[], None]:
        """An operation on the present snapshot that only has to be committed."""
        session = session_of(self.table.new_batch_write_builder())
        match operation:
            case Compact(full):
                return lambda: self.compact(full=full)
            case Alter():
                return self.add_column
            case Append(rows):
                writer = session.new_writer()
                writer.write(self.data(rows))
                return _commit(session, writer.prepare())
        current, snapshot = present(session)
        match operation:
            case Delete(condition):
                made = change._prepare(current, snapshot, condition[0], None)
            case Update(condition, step):
                made = change._prepare(current, snapshot, condition[0], _values(step))
            case Merge():
                source = pa.Table.from_pylist(operation.source, COLUMNS)
                merge = _with_clauses(merge_builder.new_merge(session, source, ["id"]), operation)
                made = merge._prepare(current, snapshot)
        return _commit(current, () if made.tally.changes_nothing else made.messages)

    def must_succeed(self, operations: list[Operation]) -> bool:
        """Whether one of them changes no row that the other could have read."""
        return not self.has_keys and any(isinstance(o, Append | Alter) for o in operations)

    def must_fail(self, one: Effect, other: Effect) -> bool:
        """Whether both change a row, and not just delete it."""
        if self.has_keys:
            keys = [{row["id"] for row in effect.inserted} for effect in (one, other)]
            if keys[0] & keys[1]:
                return True
        both = set(one.updated) & set(other.updated)
        if self.kind == "columns":
            return bool(both)  # new values of a row that is deleted are written, and never read
        return bool(both or one.touched & other.touched - (one.deleted & other.deleted))

    # --- the model --------------------------------------------------------------------------------

    def effect(self, operation: Operation) -> Effect:
        """What an operation does to the rows that are there now."""
        match operation:
            case Append(rows):
                replaced = {row["id"] for row in rows} if self.has_keys else set()
                gone = {n for n, row in self.rows.items() if row["id"] in replaced}
                return Effect(deleted=gone, inserted=rows)
            case Delete((_, holds)):
                return Effect(deleted={n for n, row in self.rows.items() if holds(row) is True})
            case Update((_, holds), step):
                hit = {n: row for n, row in self.rows.items() if holds(row) is True}
                new = {n: {**r, "n": _plus(r["n"], step + r["id"])} for n, r in hit.items()}
                return Effect(updated=new)
            case Merge():
                return self._merged(operation)
        return Effect()

    def _merged(self, merge: Merge) -> Effect:
        effect = Effect()
        by_id = {row["id"]: row for row in merge.source}
        for number, row in self.rows.items():
            other = by_id.get(row["id"])
            if other is None:
                if merge.orphans and row["n"] is not None and row["n"] < 0:
                    effect.updated[number] = {**row, "n": 0}
            elif merge.deletes and None not in (row["n"], other["n"]) and other["n"] > row["n"]:
                effect.deleted.add(number)
            elif other["day"] == row["day"]:
                effect.updated[number] = {**row, "n": _plus(row["n"], other["n"])}
        known = {row["id"] for row in self.rows.values()}
        new = [row for row in merge.source if row["id"] not in known and row["n"] is not None]
        effect.inserted = new if merge.inserts else []
        return effect

    def apply(self, effect: Effect) -> None:
        for number, row in effect.updated.items():
            if number in self.rows:
                self.rows[number] = dict(row)
        for number in effect.deleted:
            self.rows.pop(number, None)
        for row in effect.inserted:
            number = next(self._numbers)
            self.rows[number] = dict(row)
            self.ids[number] = self._next_id
            self._next_id += 1

    @invariant()
    def the_table_has_the_rows_of_the_model(self) -> None:
        names = ["id", "n", "day"]
        is_tracked = self.kind in ("tracked", "columns")
        found = self.table.to_arrow([*names, *(["_ROW_ID"] if is_tracked else [])]).to_pylist()
        expected = [
            {**row, **({"_ROW_ID": self.ids[number]} if is_tracked else {})}
            for number, row in self.rows.items()
        ]
        assert sorted(map(repr, map(sorted_items, found))) == sorted(
            map(repr, map(sorted_items, expected))
        )
        negative = [row for row in self.rows.values() if row["n"] is not None and row["n"] < 0]
        assert self.table.count("n < 0") == len(negative)

    def teardown(self) -> None:
        check_whole(self.table)


def sorted_items(row: Row) -> list[tuple[str, Any]]:
    return sorted(row.items())


def _values(step: int) -> dict[str, object]:
    return {"n": f"n + {step} + CAST(id AS INT)"}


def _with_clauses(merge: merge_builder.MergeBuilder, asked: Merge) -> merge_builder.MergeBuilder:
    if asked.deletes:
        merge.when_matched_delete("s.n > t.n")
    merge.when_matched_update({"n": "t.n + s.n"}, "s.day = t.day")
    if asked.inserts:
        values = {name: f"s.{name}" for name in COLUMNS.names}
        merge.when_not_matched_insert(values, "n IS NOT NULL")
    if asked.orphans:
        merge.when_not_matched_by_source_update({"n": "0"}, "n < 0")
    return merge


def _commit(session: WriteSession, messages: "list[CommitMessage] | tuple") -> Callable[[], None]:
    return lambda: (session.commit_or_abort(messages), None)[1] if messages else None


@pytest.mark.parametrize("kind", KINDS)
def test_the_table_and_the_model_agree(kind: str) -> None:
    machine = type(f"RowChanges_{kind}", (RowChanges,), {"kind": kind})
    case = machine.TestCase
    share = settings.default.max_examples // 10
    case.settings = settings(max_examples=max(3, share), stateful_step_count=8, deadline=None)
    case().runTest()

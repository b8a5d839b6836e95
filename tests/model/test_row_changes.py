"""Random deletes, updates and merges against a model of plain Python rows."""

import operator
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from builders import create_key_table, create_table
from emberlake.table import Table
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


def _plus(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


def _sorted(rows: list[Row]) -> list[str]:
    return sorted(repr((row["id"], row["n"], row["day"])) for row in rows)


class RowChanges(RuleBasedStateMachine):
    """Does the same to a table and to a list of rows."""

    kind: str

    def __init__(self) -> None:
        super().__init__()
        self.table = KINDS[self.kind]()
        self.rows: list[Row] = []

    @property
    def has_keys(self) -> bool:
        return self.kind == "keys"

    @rule(rows=ROWS)
    def append(self, rows: list[Row]) -> None:
        self.table.append(pa.Table.from_pylist(rows, COLUMNS))
        if self.has_keys:
            new = {row["id"] for row in rows}
            self.rows = [row for row in self.rows if row["id"] not in new]
        self.rows += [dict(row) for row in rows]

    @rule(condition=CONDITIONS)
    def delete(self, condition: tuple) -> None:
        text, holds = condition
        hit = [row for row in self.rows if holds(row) is True]
        assert self.table.delete(text).rows_deleted == len(hit)
        self.rows = [row for row in self.rows if holds(row) is not True]

    @rule(condition=CONDITIONS, step=st.integers(-2, 2))
    def update(self, condition: tuple, step: int) -> None:
        text, holds = condition
        result = self.table.update({"n": f"n + {step} + CAST(id AS INT)"}, text)
        hit = [row for row in self.rows if holds(row) is True]
        assert result.rows_updated == len(hit)
        for row in hit:
            row["n"] = _plus(row["n"], step + row["id"])

    @rule(condition=CONDITIONS, day=DAYS)
    def move(self, condition: tuple, day: str) -> None:
        text, holds = condition
        self.table.update({"day": f"'{day}'"}, text)
        for row in [row for row in self.rows if holds(row) is True]:
            row["day"] = day

    @rule(source=ROWS, deletes=st.booleans(), inserts=st.booleans(), orphans=st.booleans())
    def merge(self, source: list[Row], *, deletes: bool, inserts: bool, orphans: bool) -> None:
        merge = self.table.merge(pa.Table.from_pylist(source, COLUMNS), ["id"])
        if deletes:
            merge.when_matched_delete("s.n > t.n")
        merge.when_matched_update({"n": "t.n + s.n"}, "s.day = t.day")
        if inserts:
            merge.when_not_matched_insert_all("n IS NOT NULL")
        if orphans:
            merge.when_not_matched_by_source_update({"n": "0"}, "n < 0")
        merge.execute()
        by_id = {row["id"]: row for row in source}
        known = {row["id"] for row in self.rows}
        kept = []
        for row in self.rows:
            other = by_id.get(row["id"])
            if other is None:
                if orphans and row["n"] is not None and row["n"] < 0:
                    row["n"] = 0
            elif deletes and None not in (row["n"], other["n"]) and other["n"] > row["n"]:
                continue
            elif other["day"] == row["day"]:
                row["n"] = _plus(row["n"], other["n"])
            kept.append(row)
        new = [row for row in source if row["id"] not in known and row["n"] is not None]
        self.rows = kept + [dict(row) for row in new if inserts]

    @rule(full=st.booleans())
    def compact(self, *, full: bool) -> None:
        self.table.compact(full=full)

    @invariant()
    def the_table_has_the_rows_of_the_model(self) -> None:
        found = self.table.to_arrow().to_pylist()
        assert _sorted(found) == _sorted(self.rows)
        negative = [row for row in self.rows if row["n"] is not None and row["n"] < 0]
        assert self.table.count("n < 0") == len(negative)

    def teardown(self) -> None:
        check_whole(self.table)


@pytest.mark.parametrize("kind", KINDS)
def test_the_table_and_the_model_agree(kind: str) -> None:
    machine = type(f"RowChanges_{kind}", (RowChanges,), {"kind": kind})
    case = machine.TestCase
    share = settings.default.max_examples // 10
    case.settings = settings(max_examples=max(3, share), stateful_step_count=8, deadline=None)
    case().runTest()

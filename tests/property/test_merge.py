"""Merging equals a plain-Python model, for any keys, orders, kinds and cuts."""

from decimal import Decimal
from itertools import pairwise
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from emberlake.merge.fold import fold
from emberlake.merge.order import group_starts, key_at, key_bound, order_rows, rows_up_to
from emberlake.merge.plan import MergePlan
from emberlake.merge.runs import merge_runs
from emberlake.spec.key_value import KIND, SEQUENCE, RowKind
from emberlake.spec.values import to_arrow_array
from merge_tables import Row, compare_records, grouped, ordered, plan_of

_INT64 = st.integers(-(2**63), 2**63 - 1)
_FLOATS = st.sampled_from([float("nan"), -0.0, 0.0, float("inf"), float("-inf"), 1.5, -1.5])
_TEXTS = st.one_of(
    st.text(alphabet="ab\0é\U0001f600", max_size=12),
    st.builds(lambda n, end: "long " * n + end, st.integers(10, 16), st.text("ab", max_size=2)),
    st.integers(0, 30).map(lambda number: f"user-{number:012d}"),
)
_UNSCALED = st.one_of(st.integers(-(10**38) + 1, 10**38 - 1), st.integers(-3, 3))
# Half of the values of a type are few, so that keys meet.
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "BOOLEAN": st.booleans(),
    "TINYINT": st.integers(-128, 127),
    "INT": st.integers(-3, 3),
    "BIGINT": st.one_of(st.integers(-3, 3), _INT64),
    "DATE": st.integers(-3, 3),
    "TIME(3)": st.integers(0, 5),
    "TIMESTAMP(3)": st.integers(-3, 3).map(lambda millis: millis * 1_000_000),
    "TIMESTAMP(9)": st.one_of(st.integers(-3, 3), st.integers(-(2**63) + 1, 2**63 - 1)),
    "FLOAT": _FLOATS,
    "DOUBLE": st.one_of(_FLOATS, st.floats()),
    "DECIMAL(10, 2)": st.integers(-5, 5).map(lambda n: Decimal(n).scaleb(-2)),
    "DECIMAL(38, 10)": _UNSCALED.map(lambda n: Decimal((n < 0, tuple(map(int, str(abs(n)))), -10))),
    "STRING": _TEXTS,
    "BYTES": st.one_of(_TEXTS.map(str.encode), st.binary(max_size=10)),
}


@st.composite
def plans(draw: st.DrawFn) -> MergePlan:
    keys = draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=3))
    sequences = draw(st.lists(st.sampled_from(sorted(VALUES)), max_size=2))
    columns = {f"k{place}": text for place, text in enumerate(keys)}
    columns |= {f"s{place}": text for place, text in enumerate(sequences)}
    options = {"ignore-delete": draw(st.sampled_from(["true", "false"]))}
    if sequences:
        options["sequence.field"] = ",".join(f"s{place}" for place in range(len(sequences)))
        options["sequence.field.sort-order"] = draw(st.sampled_from(["ascending", "descending"]))
    return plan_of({**columns, "row": "INT"}, list(columns)[: len(keys)], options)


@st.composite
def records(draw: st.DrawFn, plan: MergePlan) -> list[Row]:
    """Records of few keys; their field ``row`` tells them apart."""
    types = {f.name: f.type.type for f in plan.read_fields if f.name != "row"}
    values = {name: st.none() | VALUES[text] for name, text in types.items()}
    pool = draw(st.lists(st.fixed_dictionaries(values), min_size=1, max_size=12))
    sequences = [order.column.name for order in plan.sequences]
    count = draw(st.integers(0, 40))
    rows: list[Row] = []
    for place in range(count):
        row = dict(draw(st.sampled_from(pool)))
        row |= {name: draw(st.sampled_from(pool))[name] for name in sequences}
        row |= {"row": place, SEQUENCE: draw(st.integers(-2, 2)), KIND: draw(st.integers(0, 3))}
        rows.append(row)
    return rows


def table_of(plan: MergePlan, rows: list[Row]) -> pa.Table:
    columns = {f.name: to_arrow_array(f.type, [r[f.name] for r in rows]) for f in plan.read_fields}
    columns[SEQUENCE] = pa.array([row[SEQUENCE] for row in rows], pa.int64())
    columns[KIND] = pa.array([row[KIND] for row in rows], pa.int8())
    return pa.table(columns)


def cut(draw: st.DrawFn, table: pa.Table) -> list[pa.Table]:
    places = sorted(draw(st.lists(st.integers(0, table.num_rows), max_size=4)))
    bounds = [0, *places, table.num_rows]
    return [table.slice(start, end - start) for start, end in pairwise(bounds)]


def deduplicated(plan: MergePlan, rows: list[Row], *, keep_deletes: bool) -> list[int]:
    """Which record every key is left with."""
    chosen: list[Row] = []
    for group in grouped(plan, rows):
        effective = [r for r in group if not RowKind(r[KIND]).is_retract]
        chosen += (effective if plan.ignore_delete and len(group) > 1 else group)[-1:]
    return [r["row"] for r in chosen if keep_deletes or not RowKind(r[KIND]).is_retract]


@examples(150)
@given(st.data())
def test_the_order_of_records_is_that_of_comparing_them_one_by_one(data):
    plan = data.draw(plans())
    rows = data.draw(records(plan))
    table = pa.concat_tables(cut(data.draw, table_of(plan, rows)))
    order = order_rows(table, plan.keys, plan.sequences)
    assert order.rows.tolist() == [row["row"] for row in ordered(plan, rows)]
    sizes = [len(group) for group in grouped(plan, rows)]
    assert order.starts.tolist() == [sum(sizes[:place]) for place in range(len(sizes))]
    in_order = table.take(pa.array(order.rows))
    assert group_starts(in_order, plan.keys).tolist() == order.starts.tolist()


@examples(60)
@given(st.data())
def test_rows_up_to_the_key_of_any_row_end_where_its_key_ends(data):
    plan = data.draw(plans())
    rows = data.draw(records(plan))
    table = table_of(plan, ordered(plan, rows))
    ends = [*group_starts(table, plan.keys).tolist()[1:], table.num_rows]
    for end in ends if rows else []:
        bound = key_bound(key_at(table, plan.keys, end - 1))
        assert rows_up_to(table, plan.keys, bound) == end


@given(st.data(), st.booleans())
def test_folding_leaves_every_key_its_latest_record(data, keep_deletes):
    plan = data.draw(plans())
    rows = data.draw(records(plan))
    expected = deduplicated(plan, rows, keep_deletes=keep_deletes)
    table = pa.concat_tables(cut(data.draw, table_of(plan, rows)))
    assert fold(plan, table, keep_deletes=keep_deletes)["row"].to_pylist() == expected
    in_order = table_of(plan, ordered(plan, rows))
    folded = fold(plan, in_order, is_sorted=True, keep_deletes=keep_deletes)
    assert folded["row"].to_pylist() == expected


@given(st.data(), st.booleans())
def test_merged_runs_are_what_folding_all_their_records_gives(data, keep_deletes):
    plan = data.draw(plans())
    rows = data.draw(records(plan))
    parts = cut(data.draw, table_of(plan, rows))
    runs = [fold(plan, part, keep_deletes=True) for part in parts]
    kept = [rows[place] for run in runs for place in run["row"].to_pylist()]
    streams = [cut(data.draw, run) for run in runs]
    tables = list(merge_runs(plan, streams, keep_deletes=keep_deletes))
    found = [place for table in tables for place in table["row"].to_pylist()]
    assert found == deduplicated(plan, kept, keep_deletes=keep_deletes)
    for left, right in pairwise(tables):
        last, first = rows[left["row"][-1].as_py()], rows[right["row"][0].as_py()]
        assert compare_records(plan, last, first) < 0
        ends = (key_at(left, plan.keys, left.num_rows - 1), key_at(right, plan.keys, 0))
        assert key_bound(ends[0]) < key_bound(ends[1])

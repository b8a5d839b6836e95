"""Rules of a server as predicates and masks: every function and transform of the protocol."""

import datetime as dt
import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

from builders import create_table
from emberlake.expressions.server_rules import rules_of
from emberlake.predicates import Computed, RowRules, evaluate
from emberlake.rest.query_auth import QueryAuth
from query_auth import NULL, column, compound, leaf, of_inputs, ref, rules, upper

COLUMNS = pa.schema(
    [
        ("k", pa.int64()),
        ("t", pa.string()),
        ("u", pa.string()),
        ("d", pa.decimal128(10, 2)),
        ("day", pa.date32()),
        ("at", pa.timestamp("us")),
        ("zoned", pa.timestamp("us", tz="UTC")),
        ("b", pa.bool_()),
    ]
)
MOMENTS = pa.array(["2026-01-02T12:00:00.000005", "2026-01-01", None, "1969-01-01"])
ROWS = pa.table(
    {
        "k": [1, 2, 3, None],
        "t": ["ann", "b%b", None, ""],
        "u": [None, "x", None, "y"],
        "d": pa.array(["0.10", "1.00", "2.50", None]).cast(pa.decimal128(10, 2)),
        "day": [dt.date(2026, 1, 1), dt.date(2026, 1, 2), None, dt.date(1969, 12, 31)],
        "at": MOMENTS.cast(pa.timestamp("us")),
        "zoned": MOMENTS.cast(pa.timestamp("us")).cast(pa.timestamp("us", tz="UTC")),
        "b": [True, False, None, True],
    },
    schema=COLUMNS,
)


def read(answer: Mapping[str, Any]) -> RowRules:
    return rules_of(QueryAuth.from_json(answer), create_table(columns=COLUMNS).store)


def kept(*filters: Mapping[str, Any]) -> list[int]:
    """The rows that filters keep, counted from 0."""
    found = read(rules(*filters)).filter
    mask = [True] * 4 if found is None else evaluate(found, ROWS).to_pylist()
    return [row for row, is_kept in enumerate(mask) if is_kept]


UPPER_T = of_inputs("UPPER", ref("t"))
K_AS_TEXT = {"name": "CAST", "fieldRef": ref("k"), "type": "STRING"}


@pytest.mark.parametrize(
    ("rule", "rows"),
    [
        (leaf("k", "EQUAL", 2), [1]),
        (leaf("k", "NOT_EQUAL", 2), [0, 2]),
        (leaf("k", "LESS_THAN", 2), [0]),
        (leaf("k", "LESS_OR_EQUAL", 2), [0, 1]),
        (leaf("k", "GREATER_THAN", 2), [2]),
        (leaf("k", "GREATER_OR_EQUAL", 2), [1, 2]),
        (leaf("k", "IS_NULL"), [3]),
        (leaf("k", "IS_NOT_NULL"), [0, 1, 2]),
        (leaf("k", "IN", 1, None, 3), [0, 2]),
        (leaf("k", "IN"), []),
        (leaf("k", "NOT_IN", 1, 3), [1]),
        (leaf("k", "NOT_IN", 1, None), []),
        (leaf("k", "NOT_IN"), [0, 1, 2]),
        (leaf("k", "BETWEEN", 2, 3), [1, 2]),
        (leaf("k", "NOT_BETWEEN", 2, 3), [0]),
        (leaf("k", "NOT_BETWEEN", None, 1), []),
        (leaf("k", "EQUAL", None), []),
        (leaf("k", "NOT_EQUAL", None), []),
        (leaf("t", "STARTS_WITH", "b%"), [1]),
        (leaf("t", "ENDS_WITH", "%b"), [1]),
        (leaf("t", "CONTAINS", "%"), [1]),
        (leaf("t", "LIKE", "a%"), [0]),
        (leaf("t", "LIKE", r"b\%b"), [1]),
        (leaf(NULL, "TRUE"), [0, 1, 2, 3]),
        (leaf(NULL, "FALSE"), []),
        (leaf(NULL, "IS_NULL"), [0, 1, 2, 3]),
        (leaf(NULL, "EQUAL", True), []),
        (leaf("d", "EQUAL", 0.1), [0]),
        (leaf("d", "GREATER_THAN", 1), [2]),
        (leaf("b", "EQUAL", True), [0, 3]),
        (leaf("day", "EQUAL", "2026-01-02"), [1]),
        (leaf("day", "LESS_THAN", [2026, 1, 2]), [0, 3]),
        (leaf("at", "EQUAL", "2026-01-02T12:00:00.000005"), [0]),
        (leaf("at", "EQUAL", [2026, 1, 2, 12, 0, 0, 5000]), [0]),
        (leaf("at", "EQUAL", [2026, 1, 1, 0, 0]), [1]),
        (leaf("zoned", "EQUAL", 1767225600), [1]),
        (leaf("zoned", "EQUAL", "2026-01-01T00:00:00Z"), [1]),
    ],
)
def test_a_comparison_keeps_the_rows_that_other_clients_keep(rule, rows):
    assert kept(rule) == rows


@pytest.mark.parametrize(
    ("rule", "rows"),
    [
        (leaf(UPPER_T, "EQUAL", "ANN"), [0]),
        (leaf(UPPER_T, "NOT_EQUAL", "ANN"), [1, 3]),
        (leaf(UPPER_T, "IN", "ANN", None, "B%B"), [0, 1]),
        (leaf(UPPER_T, "IN"), []),
        (leaf(UPPER_T, "NOT_IN", "ANN"), [1, 3]),
        (leaf(UPPER_T, "NOT_IN"), [0, 1, 3]),
        (leaf(UPPER_T, "BETWEEN", "A", "B"), [0]),
        (leaf(UPPER_T, "NOT_BETWEEN", "A", "B"), [1, 3]),
        (leaf(UPPER_T, "STARTS_WITH", "B%"), [1]),
        (leaf(UPPER_T, "ENDS_WITH", "%B"), [1]),
        (leaf(UPPER_T, "CONTAINS", "%"), [1]),
        (leaf(UPPER_T, "LIKE", "A%"), [0]),
        (leaf(UPPER_T, "IS_NULL"), [2]),
        (leaf(UPPER_T, "IS_NOT_NULL"), [0, 1, 3]),
        (leaf(UPPER_T, "EQUAL", None), []),
        (leaf(of_inputs("LOWER", "ANN"), "EQUAL", "ann"), [0, 1, 2, 3]),
        (leaf(of_inputs("CONCAT", ref("t"), "-", ref("u")), "EQUAL", "b%b-x"), [1]),
        (leaf(of_inputs("CONCAT_WS", "-", ref("t"), None, ref("u")), "EQUAL", "ann"), [0]),
        (leaf(of_inputs("CONCAT_WS", "-", ref("t"), ref("u")), "EQUAL", ""), [2]),
        (leaf(of_inputs("CONCAT_WS", ref("u"), ref("t"), "z"), "EQUAL", "b%bxz"), [1]),
        (leaf(K_AS_TEXT, "EQUAL", "2"), [1]),
        (leaf({**K_AS_TEXT, "type": "DOUBLE"}, "LESS_THAN", 1.5), [0]),
    ],
)
def test_a_transform_is_compared_in_the_same_way(rule, rows):
    assert kept(rule) == rows


def test_filters_are_joined_by_and_and_or():
    one, two = leaf("k", "EQUAL", 1), leaf("k", "EQUAL", 2)
    any_of = compound("OR", one, compound("AND", two, leaf("t", "CONTAINS", "b")))

    assert kept(any_of) == [0, 1]
    assert kept(any_of, leaf("t", "NOT_EQUAL", "ann")) == [1]


def test_a_comparison_of_a_column_can_skip_files_and_one_of_a_transform_cannot():
    assert str(read(rules(leaf("k", "EQUAL", 1))).filter) == "k = 1"
    assert isinstance(read(rules(leaf(UPPER_T, "EQUAL", "ANN"))).filter, Computed)


@pytest.mark.parametrize(
    ("name", "mask", "values"),
    [
        ("t", upper("t"), ["ANN", "B%B", None, ""]),
        ("t", of_inputs("LOWER", "X"), ["x"] * 4),
        ("t", of_inputs("CONCAT", ref("t"), "!"), ["ann!", "b%b!", None, "!"]),
        ("t", of_inputs("CONCAT_WS", "-", ref("t"), ref("u")), ["ann", "b%b-x", "", "-y"]),
        ("t", of_inputs("CONCAT_WS", None, ref("t"), ref("u")), [None] * 4),
        ("t", column("u"), [None, "x", None, "y"]),
        ("t", K_AS_TEXT, ["1", "2", "3", None]),
        ("t", NULL, [None] * 4),
        ("k", NULL, [None] * 4),
        ("d", NULL, [None] * 4),
    ],
)
def test_a_mask_stands_for_the_values_of_its_column(name, mask, values):
    (found,) = read(rules(masks={name: mask})).masks

    made = found.value.values(ROWS)

    assert (made.to_pylist(), made.type) == (values, COLUMNS.field(name).type)


def test_an_answer_without_rules_hides_nothing():
    for answer in (
        {},
        {"filter": None, "columnMasking": None},
        {"filter": [], "columnMasking": {}},
    ):
        assert not read(answer).hides


def test_unknown_keys_of_a_rule_do_no_harm():
    rule = {**leaf("k", "EQUAL", 2), "comment": "of a later version"}

    assert kept(json.loads(json.dumps(rule))) == [1]

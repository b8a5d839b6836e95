"""Filters that Spark pushes down keep the rows that Spark would keep, or are given back."""

import datetime as dt
import math
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

from builders import create_table
from emberlake.datasource.filters import to_predicate
from emberlake.predicates import filter_rows
from emberlake.read.projection import project, project_all

UTC = dt.UTC
COLUMNS = pa.schema(
    [
        ("i", pa.int32()),
        ("x", pa.float64()),
        ("f", pa.float32()),
        ("t", pa.string()),
        ("b", pa.bool_()),
        ("d", pa.decimal128(10, 2)),
        ("day", pa.date32()),
        ("ts", pa.timestamp("us")),
        ("ns", pa.timestamp("ns")),
        ("ltz", pa.timestamp("us", tz="UTC")),
        ("raw", pa.binary()),
        ("s", pa.struct([("x", pa.int64()), ("y", pa.string())])),
        ("list", pa.list_(pa.int32())),
    ]
)
TABLE = create_table(columns=COLUMNS)
FLOATS = [None, math.nan, -math.inf, -1.0, -0.0, 0.0, 1.0, math.inf]


def kept(pushed: Filter, column: str, values: list[object]) -> list[object]:
    """The values of a column that remain, with the others null."""
    predicate = to_predicate(pushed, TABLE.table_schema, project_all(TABLE.fields))
    assert predicate is not None
    rows = pa.table({column: pa.array(values, COLUMNS.field(column).type)})
    return filter_rows(predicate, rows).column(column).to_pylist()


def is_given_back(pushed: Filter) -> bool:
    return to_predicate(pushed, TABLE.table_schema, project_all(TABLE.fields)) is None


def text(values: list[object]) -> str:
    return repr(values)  # NaN equals nothing, and the two zeros each other


@pytest.mark.parametrize("column", ["x", "f"])
@pytest.mark.parametrize(
    ("kind", "literal", "expected"),
    [
        (EqualTo, 0.0, [-0.0, 0.0]),
        (EqualNullSafe, 1.0, [1.0]),
        (EqualNullSafe, None, [None]),
        (LessThan, 0.0, [-math.inf, -1.0]),
        (LessThanOrEqual, 0.0, [-math.inf, -1.0, -0.0, 0.0]),
        (LessThan, -math.inf, []),
        (GreaterThan, 0.0, [math.nan, 1.0, math.inf]),
        (GreaterThan, math.inf, [math.nan]),
        (GreaterThanOrEqual, 0.0, [math.nan, -0.0, 0.0, 1.0, math.inf]),
        (GreaterThanOrEqual, -math.inf, FLOATS[1:]),
    ],
)
def test_nan_is_above_all_numbers(
    column: str, kind: type[Filter], literal: object, expected: list[object]
) -> None:
    assert text(kept(kind((column,), literal), column, FLOATS)) == text(expected)


@pytest.mark.parametrize(
    ("kind", "literal", "expected"),
    [
        (EqualTo, 0.0, [math.nan, -math.inf, -1.0, 1.0, math.inf]),
        (EqualNullSafe, 0.0, [None, math.nan, -math.inf, -1.0, 1.0, math.inf]),
        (LessThan, 0.0, [math.nan, -0.0, 0.0, 1.0, math.inf]),
        (LessThanOrEqual, 0.0, [math.nan, 1.0, math.inf]),
        (GreaterThan, 0.0, [-math.inf, -1.0, -0.0, 0.0]),
        (GreaterThanOrEqual, 0.0, [-math.inf, -1.0]),
        (In, (0.0, 1.0), [math.nan, -math.inf, -1.0, math.inf]),
    ],
)
def test_complements_keep_nan_where_spark_does(
    kind: type[Filter], literal: object, expected: list[object]
) -> None:
    assert text(kept(Not(kind(("x",), literal)), "x", FLOATS)) == text(expected)


@pytest.mark.parametrize(
    "pushed",
    [
        EqualTo(("x",), math.nan),
        Not(EqualTo(("x",), math.nan)),
        EqualNullSafe(("f",), math.nan),
        GreaterThan(("x",), math.nan),
        In(("x",), (1.0, math.nan)),
        EqualTo(("f",), 0.1),  # no value of the column: ours would take the nearest
        EqualTo(("ns",), dt.datetime.fromisoformat("2026-01-01")),
        EqualTo(("list",), [1, 2]),
        EqualTo(("s",), {"x": 1, "y": "a"}),
        EqualTo(("i",), None),
        EqualTo(("i",), "text"),
        EqualTo(("_row_kind",), "+I"),
        EqualTo(("s", "z"), 1),
        Not(StringStartsWith(("t",), "a")),
        Not(StringContains(("t",), "a")),
        StringStartsWith(("i",), "1"),
    ],
    ids=str,
)
def test_what_is_not_exact_is_given_back(pushed: Filter) -> None:
    assert is_given_back(pushed)


DAY, MOMENT = dt.date(2026, 1, 2), dt.datetime.fromisoformat("2026-01-02T03:04:05.000006")


@pytest.mark.parametrize(
    ("pushed", "column", "values", "expected"),
    [
        (EqualTo(("i",), 2), "i", [1, 2, None], [2]),
        (Not(EqualTo(("i",), 2)), "i", [1, 2, None], [1]),
        (GreaterThan(("i",), 1), "i", [1, 2, None], [2]),
        (Not(GreaterThan(("i",), 1)), "i", [1, 2, None], [1]),
        (EqualNullSafe(("i",), 2), "i", [1, 2, None], [2]),
        (Not(EqualNullSafe(("i",), 2)), "i", [1, 2, None], [1, None]),
        (Not(EqualNullSafe(("i",), None)), "i", [1, None], [1]),
        (In(("i",), (1, None)), "i", [1, 2, None], [1]),
        (Not(In(("i",), (1, None))), "i", [1, 2, None], []),
        (Not(In(("i",), (1,))), "i", [1, 2, None], [2]),
        (IsNull(("list",)), "list", [[1], None], [None]),
        (Not(IsNull(("ns",))), "ns", [None], []),
        (IsNotNull(("t",)), "t", ["a", None], ["a"]),
        (Not(IsNotNull(("t",))), "t", ["a", None], [None]),
        (LessThan(("t",), "é"), "t", ["a", "z", "é", "🔥"], ["a", "z"]),
        (StringStartsWith(("t",), "a%"), "t", ["a%b", "ab", None], ["a%b"]),
        (StringEndsWith(("t",), "b"), "t", ["ab", "ba", None], ["ab"]),
        (StringContains(("t",), "_"), "t", ["a_b", "ab"], ["a_b"]),
        (EqualTo(("b",), True), "b", [True, False, None], [True]),
        (Not(EqualTo(("b",), True)), "b", [True, False, None], [False]),
        (
            GreaterThanOrEqual(("d",), Decimal("1.50")),
            "d",
            [Decimal("1.49"), Decimal("1.50")],
            [Decimal("1.50")],
        ),
        (LessThanOrEqual(("day",), DAY), "day", [DAY, dt.date(2026, 1, 3)], [DAY]),
        (EqualTo(("ts",), MOMENT), "ts", [MOMENT, None], [MOMENT]),
        (
            EqualTo(("ltz",), MOMENT.replace(tzinfo=UTC)),
            "ltz",
            [MOMENT.replace(tzinfo=UTC), None],
            [MOMENT.replace(tzinfo=UTC)],
        ),
        (GreaterThan(("raw",), b"\x7f"), "raw", [b"\x01", b"\x80"], [b"\x80"]),
        (EqualTo(("s", "x"), 1), "s", [{"x": 1, "y": "a"}, None], [{"x": 1, "y": "a"}]),
        (IsNull(("s", "x")), "s", [{"x": 1, "y": "a"}, None], [None]),
    ],
    ids=str,
)
def test_a_filter_keeps_what_spark_would(
    pushed: Filter, column: str, values: list[object], expected: list[object]
) -> None:
    assert kept(pushed, column, values) == expected


def test_names_are_those_of_the_projection() -> None:
    projection = project(TABLE.fields, ["s.x", "i"])

    found = to_predicate(EqualTo(("s_x",), 1), TABLE.table_schema, projection)

    assert str(found) == "s.x = 1"
    assert to_predicate(EqualTo(("t",), "a"), TABLE.table_schema, projection) is None

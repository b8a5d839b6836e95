"""Filters on rows."""

import math
from decimal import Decimal

import pyarrow as pa
import pytest

from emberlake.errors import ColumnNotFound
from emberlake.predicates import And, Leaf, Op, Or, PredicateBuilder, evaluate, filter_rows
from emberlake.types import AtomicType, DataField, RowType, arrow_schema

I = DataField(0, "i", AtomicType("INT"))  # noqa: E741
F = DataField(1, "f", AtomicType("DOUBLE"))
S = DataField(2, "s", AtomicType("STRING"))
R = DataField(3, "r", RowType(True, (DataField(4, "x", AtomicType("INT")),)))
FIELDS = (I, F, S, R)
ROWS = pa.Table.from_pylist(
    [
        {"i": 1, "f": 0.0, "s": "a", "r": {"x": 1}},
        {"i": 2, "f": math.nan, "s": "é\n", "r": {"x": None}},
        {"i": None, "f": None, "s": None, "r": None},
        {"i": 3, "f": -0.0, "s": "", "r": {"x": 3}},
    ],
    schema=arrow_schema(FIELDS),
)
builder = PredicateBuilder(FIELDS)


@pytest.mark.parametrize(
    ("predicate", "truth"),
    [
        (builder.less_than("i", 2), [True, False, None, False]),
        (builder.between("i", 2, 3), [False, True, None, True]),
        (builder.not_between("i", 2, 3), [True, False, None, False]),
        (builder.is_in("i", [1, 3]), [True, False, None, True]),
        (builder.is_not_in("i", [1, 3]), [False, True, None, False]),
        (Leaf(I, Op.IN, (1, None)), [True, None, None, None]),
        (Leaf(I, Op.NOT_IN, (1, None)), [False, None, None, None]),
        (Leaf(I, Op.IN), [False, False, False, False]),
        (Leaf(I, Op.NOT_IN), [True, True, True, True]),
        (Leaf(I, Op.EQUAL, (None,)), [None, None, None, None]),
        (Leaf(I, Op.NOT_BETWEEN, (None, 2)), [None, None, None, True]),
        (builder.is_null("i"), [False, False, True, False]),
        (builder.equal("f", 0), [True, False, None, True]),
        (builder.equal("f", "nan"), [False, False, None, False]),
        (builder.not_equal("f", 0), [False, True, None, False]),
        (builder.not_equal("f", "nan"), [True, True, None, True]),
        (builder.is_in("f", [0, "nan"]), [True, False, None, True]),
        (builder.is_not_in("f", [-0.0]), [False, True, None, False]),
        (builder.not_between("f", 0, 1), [False, True, None, False]),
        (builder.contains("s", ""), [True, True, None, True]),
        (builder.startswith("s", "é"), [False, True, None, False]),
        (builder.endswith("s", "a"), [True, False, None, False]),
        (builder.like("s", "__"), [False, True, None, False]),
        (Leaf(S, Op.NOT_LIKE, ("_",)), [False, True, None, True]),
        (builder.greater_or_equal("r.x", 1), [True, None, None, True]),
        (builder.is_null("r.x"), [False, True, True, False]),
        (builder.is_null("r"), [False, False, True, False]),
        (And((builder.is_null("i"), builder.equal("i", 1))), [False, False, None, False]),
        (Or((builder.is_null("i"), builder.equal("i", 1))), [True, False, True, False]),
        (And(()), [True] * 4),
        (Or(()), [False] * 4),
    ],
)
def test_a_filter_has_three_truth_values(predicate, truth):
    assert evaluate(predicate, ROWS).to_pylist() == truth
    assert evaluate(predicate, ROWS.to_batches()[0]).to_pylist() == truth


@pytest.mark.parametrize(
    ("data_type", "values", "literal"),
    [
        ("BOOLEAN", [False, True], True),
        ("DECIMAL(38, 2)", [Decimal("1.00"), Decimal("1.01")], "1.01"),
        ("BYTES", [b"\x7f", b"\x80"], b"\x80"),
        ("STRING", ["\uffff", "\U00010000"], "\U00010000"),
        ("DATE", [0, 1], "1970-01-02"),
        ("TIME", [0, 1], "00:00:00.001"),
        ("TIMESTAMP(9)", [0, 1], "1970-01-01 00:00:00.000000001"),
        ("TIMESTAMP_LTZ(3)", [0, 1], "1970-01-01 00:00:00.001"),
    ],
)
def test_every_type_is_ordered_by_value(data_type, values, literal):
    fields = (DataField(0, "c", AtomicType(data_type)),)
    column = pa.array(values, type=arrow_schema(fields).field(0).type)
    batch = pa.record_batch([column], schema=arrow_schema(fields))
    build = PredicateBuilder(fields)

    assert evaluate(build.less_than("c", literal), batch).to_pylist() == [True, False]
    assert evaluate(build.equal("c", literal), batch).to_pylist() == [False, True]
    assert evaluate(build.is_in("c", [literal]), batch).to_pylist() == [False, True]


def test_a_long_list_is_matched_like_a_short_one():
    many = [-0.0, math.nan, *range(10, 30)]

    assert evaluate(builder.is_in("f", many), ROWS).to_pylist() == [True, False, None, True]
    assert evaluate(builder.is_not_in("f", many), ROWS).to_pylist() == [False, True, None, False]
    assert evaluate(builder.is_in("i", range(2, 30)), ROWS).to_pylist() == [False, True, None, True]
    assert evaluate(builder.is_in("s", [*"abcdefghij"]), ROWS).to_pylist() == [
        True,
        False,
        None,
        False,
    ]


def test_columns_of_another_arrow_type_are_cast():
    batch = pa.record_batch({"s": pa.array(["a", "b"]).dictionary_encode()})

    assert evaluate(builder.equal("s", "b"), batch).to_pylist() == [False, True]


def test_only_rows_that_are_true_stay():
    predicate = builder.less_than("i", 3)

    assert filter_rows(predicate, ROWS)["i"].to_pylist() == [1, 2]
    assert filter_rows(predicate, ROWS.to_batches()[0]).column("i").to_pylist() == [1, 2]


def test_rows_that_all_stay_are_not_copied():
    assert filter_rows(Leaf(I, Op.NOT_IN), ROWS) is ROWS
    assert filter_rows(builder.equal("i", 1), ROWS.slice(0, 0)).num_rows == 0


def test_a_missing_column_is_named():
    with pytest.raises(ColumnNotFound, match="no column 'i' to filter on, only s"):
        evaluate(builder.equal("i", 1), ROWS.select(["s"]))

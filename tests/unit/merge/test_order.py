"""The order of records, on cases that are easily wrong."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from emberlake.errors import Unsupported
from emberlake.merge.order import (
    SequenceOrder,
    group_starts,
    key_at,
    key_bound,
    order_rows,
    rows_up_to,
)
from emberlake.spec.key_value import KIND, SEQUENCE
from emberlake.types import ArrayType, AtomicType, DataField
from merge_tables import plan_of, records

NAN = float("nan")
BIGGEST = 2**63 - 1


def sorted_values(text: str, values: list) -> list:
    plan = plan_of({"k": text}, ["k"])
    table = records(plan, [(value,) for value in values])
    rows = order_rows(table, plan.keys, ()).rows
    return [values[row] for row in rows.tolist()]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("BIGINT", [None, -BIGGEST - 1, -1, 0, 1, BIGGEST]),
        ("TINYINT", [None, -128, -1, 0, 127]),
        ("BOOLEAN", [None, False, True]),
        ("STRING", [None, "", "\0", "\0\0", "a", "a\0", "aa", "b", "é", "\uffff", "\U0001f600"]),
        ("STRING", ["x" * 8, "x" * 8 + "\0", "x" * 9 + "a", "x" * 16, "x" * 8 + "y", "y"]),
        ("STRING", ["", "a" * 70, "a" * 70 + "\0", "a" * 71 + "c", "a" * 70 + "b", "b"]),
        ("BYTES", [None, b"", b"\x00", b"\x7f", b"\x80", b"\xff", b"\xff\x00"]),
        ("DATE", [None, -1, 0, 20_000]),
        ("TIMESTAMP(9)", [None, -(2**63) + 1, -1, 0, 1, BIGGEST]),
    ],
)
def test_values_are_in_the_order_of_the_format(text, expected):
    shuffled = [expected[place] for place in np.random.default_rng(7).permutation(len(expected))]
    assert sorted_values(text, shuffled) == expected


@pytest.mark.parametrize("text", ["FLOAT", "DOUBLE"])
def test_zeros_have_signs_and_every_nan_is_the_one_largest_float(text):
    expected = [None, float("-inf"), -1.5, -0.0, 0.0, 1e-40, 2.0, float("inf"), NAN, NAN]
    assert [str(value) for value in sorted_values(text, expected[::-1])] == [
        str(value) for value in expected
    ]
    plan = plan_of({"k": text}, ["k"])
    payload = np.array([0x7FF8000000000001, -1, 0x7FF8000000000000], dtype=np.int64)
    nans = payload.view(np.float64).astype(np.float32 if text == "FLOAT" else np.float64)
    assert len(group_starts(pa.table({"k": nans}), plan.keys)) == 1


def test_decimals_of_38_digits_compare_by_all_of_them():
    texts = ["-" + "9" * 38, "-1", "0", str(2**64), str(2**64 + 1), "9" * 37 + "8", "9" * 38]
    expected = [Decimal(text) for text in texts]
    assert sorted_values("DECIMAL(38, 0)", expected[::-1]) == expected


def test_a_descending_sequence_still_has_nulls_first():
    plan = plan_of(
        {"k": "INT", "s": "STRING"},
        ["k"],
        {"sequence.field": "s", "sequence.field.sort-order": "descending"},
    )
    table = records(plan, [(1, "a"), (1, None), (1, "b"), (1, "ab")])
    assert order_rows(table, plan.keys, plan.sequences).rows.tolist() == [1, 2, 3, 0]


def test_retracts_come_before_adds_of_the_same_number_and_equals_stay_as_they_stand():
    plan = plan_of({"k": "INT"}, ["k"])
    table = records(plan, [(1, 5), (1, 5), (1, 4), (1, 5), (1, 5)], "+I -D +U -U +U")
    assert order_rows(table, plan.keys, ()).rows.tolist() == [2, 1, 3, 0, 4]


def test_a_composite_key_that_fits_no_word_is_sorted_by_all_of_it():
    generator = np.random.default_rng(3)
    plan = plan_of({"a": "BIGINT", "b": "STRING", "c": "BIGINT"}, ["a", "b", "c"])
    extremes = [-BIGGEST - 1, -1, 0, BIGGEST]
    rows = [
        (
            extremes[generator.integers(4)],
            "prefix-" + "xyz"[generator.integers(3)] * int(generator.integers(20)),
            int(generator.integers(-(2**62), 2**62)) if generator.integers(2) else 0,
        )
        for _ in range(2000)
    ]
    order = order_rows(records(plan, rows), plan.keys, ())
    assert [rows[row] for row in order.rows.tolist()] == sorted(rows)
    assert len(order.starts) == len(set(rows))


def test_no_rows_and_one_row_have_an_order():
    plan = plan_of({"a": "BIGINT", "b": "STRING"}, ["a", "b"])
    table = records(plan, [(BIGGEST, "x" * 30)])
    assert order_rows(table, plan.keys, ()).starts.tolist() == [0]
    assert order_rows(table.slice(0, 0), plan.keys, ()).rows.tolist() == []
    assert group_starts(table.slice(0, 0), plan.keys).tolist() == []


def test_slices_and_chunks_are_read_where_they_stand():
    plan = plan_of({"a": "STRING", "b": "BOOLEAN"}, ["a", "b"])
    table = records(plan, [("x", True), ("b", None), ("b", False), ("a", True), ("", True)])
    table = pa.concat_tables([table.slice(1, 3), table.slice(4, 0), table.slice(3)])
    order = order_rows(table, plan.keys, ())
    assert order.rows.tolist() == [4, 2, 3, 0, 1]
    assert order.starts.tolist() == [0, 1, 3, 4]


def test_large_and_viewed_texts_are_ordered_like_plain_ones():
    plan = plan_of({"a": "STRING"}, ["a"])
    plain = pa.array(["b", "a" * 20, None, "a"])
    for arrow in (pa.large_string(), pa.string_view()):
        table = pa.table({"a": plain.cast(arrow), SEQUENCE: [0] * 4, KIND: pa.array([0] * 4, "i1")})
        assert order_rows(table, plan.keys, ()).rows.tolist() == [2, 3, 1, 0]


def test_rows_up_to_a_bound_are_counted_in_a_sorted_table():
    plan = plan_of({"a": "DOUBLE", "b": "STRING"}, ["a", "b"])
    rows = [(None, "x"), (-0.0, "x"), (0.0, None), (0.0, "x"), (0.0, "y"), (NAN, "a")]
    table = records(plan, rows)
    for place, row in enumerate(rows):
        assert key_at(table, plan.keys, place)[1] == row[1]
        assert rows_up_to(table, plan.keys, key_bound(row)) == place + 1
    assert rows_up_to(table, plan.keys, key_bound((0.0, "xa"))) == 4
    assert rows_up_to(table, plan.keys, key_bound((None, None))) == 0


def test_a_column_without_an_order_is_refused():
    nested = DataField(0, "a", ArrayType(True, AtomicType("INT")))
    table = pa.table({"k": [1, 1], "a": [[1], [2]], SEQUENCE: [0, 1], KIND: pa.array([0, 0], "i1")})
    with pytest.raises(Unsupported, match="column a ARRAY<INT> cannot order rows"):
        order_rows(table, [DataField(1, "k", AtomicType("BIGINT"))], [SequenceOrder(nested)])

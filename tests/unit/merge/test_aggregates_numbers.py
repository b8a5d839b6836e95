"""Sum, product, max and min."""

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from aggregate_columns import aggregate, steps_of
from emberlake.errors import DataMismatch

NAN, INF = float("nan"), float("inf")
BIG = Decimal("9" * 35 + "." + "9" * 3)
NEGATIVE = BIG.copy_negate()  # a minus sign would round


def bits(value: Any) -> bytes:
    return np.float64(value).tobytes()


@pytest.mark.parametrize(
    ("data_type", "values", "steps", "expected"),
    [
        ("INT", [1, None, 5], "+++", 6),
        ("INT", [None, None], "++", None),
        ("INT", [1, 5], "+-", -4),
        ("INT", [5, 1], "-+", -4),
        ("INT", [5, None], "--", -5),
        ("INT", [5, 5], "!-", 0),
        ("INT", [5, 7, 9], "+.<", 14),
        ("TINYINT", [100, 100, 100], "+-+", 100),
        ("TINYINT", [-128, -1], "-+", 127),
        ("TINYINT", [100, 100, -100], "+++", 100),
        ("BIGINT", [2**63 - 1, -(2**63), 1], "+++", 0),
        ("BIGINT", [-(2**63), -(2**63)], "-+", 0),
        ("BIGINT", [2**63 - 1, 2**63 - 1, 2**63 - 1], "+-+", 2**63 - 1),
        ("DECIMAL(9, 2)", [Decimal("1.25"), Decimal("-0.50")], "++", Decimal("0.75")),
        ("DECIMAL(18, 0)", [Decimal(10**18 - 1)] * 20, "+-" * 10, Decimal(0)),
        ("DECIMAL(38, 3)", [BIG, NEGATIVE, Decimal("0.001")], "+++", Decimal("0.001")),
        ("DECIMAL(38, 3)", [BIG, BIG, BIG], "-+-", NEGATIVE),
        ("DECIMAL(38, 0)", [Decimal(2**64), Decimal(1)], "+-", Decimal(2**64 - 1)),
        ("DECIMAL(38, 0)", [Decimal(-(2**96)), Decimal(1)], "++", Decimal(1 - 2**96)),
        ("DOUBLE", [1.5, 2.0], "+-", -0.5),
        ("DOUBLE", [INF, INF], "++", INF),
    ],
)
def test_sums(data_type: str, values: list[Any], steps: str, expected: Any) -> None:
    assert aggregate("sum", data_type, values, steps) == expected


@pytest.mark.parametrize("function", ["sum", "product"])
@pytest.mark.parametrize(
    ("data_type", "values"),
    [
        ("TINYINT", [100, 100]),
        ("SMALLINT", [32767, 32767]),
        ("INT", [2**31 - 1, 2**31 - 1]),
        ("BIGINT", [2**63 - 1, 2**63 - 1]),
        ("BIGINT", [-(2**63), -(2**63)]),
        ("DECIMAL(4, 2)", [Decimal("99.99"), Decimal("99.99")]),
        ("DECIMAL(38, 3)", [BIG, BIG]),
        ("DECIMAL(38, 3)", [NEGATIVE, NEGATIVE, NEGATIVE]),
        ("DECIMAL(38, 0)", [Decimal(10**38 - 1)] * 40),
        ("DECIMAL(20, 0)", [Decimal(10**20 - 1), Decimal(10**20 - 1)]),
    ],
)
def test_a_result_that_does_not_fit_is_an_error(
    function: str, data_type: str, values: list[Any]
) -> None:
    with pytest.raises(DataMismatch, match=f"the {function} of column v does not fit"):
        aggregate(function, data_type, values)


def test_floats_are_added_in_order_however_many_there_are() -> None:
    short = [1e16, 1.0, -1e16, 1.0]
    long = [0.1 * n for n in range(1, 1000)]
    in_order = 0.1
    for value in long[1:]:
        in_order += value

    results = aggregate("sum", "DOUBLE", [*short, *long], steps_of("+" * 1003, (0, 4)))

    assert results == [((1e16 + 1.0) - 1e16) + 1.0, in_order]


def test_single_floats_are_added_in_single_precision() -> None:
    values = [float(np.float32(0.1))] * 3
    expected = np.float32(0.1) + np.float32(0.1) + np.float32(0.1)

    assert aggregate("sum", "FLOAT", values) == float(expected)


def test_nan_and_negative_zero_are_results_like_others() -> None:
    assert math.isnan(aggregate("sum", "DOUBLE", [INF, INF], "+-"))  # type: ignore[arg-type]
    assert bits(aggregate("sum", "DOUBLE", [-0.0, None])) == bits(-0.0)
    assert bits(aggregate("sum", "DOUBLE", [0.0], "-")) == bits(-0.0)


@pytest.mark.parametrize(
    ("data_type", "values", "steps", "expected"),
    [
        ("INT", [2, None, -3], "+++", -6),
        ("INT", [7, 2], "+-", 3),
        ("INT", [-7, 2], "+-", -3),
        ("INT", [7, -2], "+-", -3),
        ("INT", [2, 7], "-+", 7),
        ("INT", [5, None], "-+", None),
        ("INT", [5, 5], "!-", 1),
        ("BIGINT", [2**62, 2, 2], "+-+", 2**62),
        ("DECIMAL(5, 2)", [Decimal("0.15"), Decimal("0.50")], "++", Decimal("0.08")),
        ("DECIMAL(5, 2)", [Decimal("-0.15"), Decimal("0.50")], "++", Decimal("-0.08")),
        ("DECIMAL(5, 2)", [Decimal("1.00"), Decimal("-8.00")], "+-", Decimal("-0.13")),
        ("DECIMAL(38, 0)", [Decimal(10**19), Decimal(10**18)], "++", Decimal(10**37)),
        ("DOUBLE", [1.0, 0.0], "+-", INF),
        ("DOUBLE", [0.5, 4.0], "++", 2.0),
    ],
)
def test_products(data_type: str, values: list[Any], steps: str, expected: Any) -> None:
    assert aggregate("product", data_type, values, steps) == expected


@pytest.mark.parametrize(
    ("data_type", "values", "problem"),
    [
        ("INT", [5, 0], "factor of 0 cannot be retracted"),
        ("DECIMAL(5, 2)", [Decimal("1.00"), Decimal("0.00")], "factor of 0 cannot be retracted"),
        ("DECIMAL(5, 2)", [Decimal("1.00"), Decimal("3.00")], "infinitely many decimals"),
        ("TINYINT", [-128, -1], "does not fit"),
    ],
)
def test_a_factor_that_cannot_be_taken_back_is_an_error(
    data_type: str, values: list[Any], problem: str
) -> None:
    with pytest.raises(DataMismatch, match=problem):
        aggregate("product", data_type, values, "+-")


@pytest.mark.parametrize(
    ("data_type", "values", "smallest", "greatest"),
    [
        ("INT", [3, None, -5, 2], -5, 3),
        ("INT", [None, None], None, None),
        ("BIGINT", [-(2**63), None], -(2**63), -(2**63)),
        ("BIGINT", [2**63 - 1, None], 2**63 - 1, 2**63 - 1),
        ("BOOLEAN", [True, False, None], False, True),
        ("STRING", ["b", "", "é", "\U0001f600"], "", "\U0001f600"),
        ("BYTES", [b"\xff", b"\x00", b"\x7f"], b"\x00", b"\xff"),
        ("DATE", [3, -4], -4, 3),
        ("TIME(3)", [5, 86_399_999], 5, 86_399_999),
        ("TIMESTAMP(9)", [1, -1], -1, 1),
        ("TIMESTAMP(9)", [2**62 + 1, 2**62], 2**62, 2**62 + 1),
        ("TIMESTAMP(6) WITH LOCAL TIME ZONE", [1000, -1000], -1000, 1000),
        ("DECIMAL(9, 2)", [Decimal("1.10"), Decimal("-1.10")], Decimal("-1.10"), Decimal("1.10")),
        ("DECIMAL(38, 3)", [BIG, NEGATIVE, Decimal("0.001")], NEGATIVE, BIG),
    ],
)
def test_smallest_and_greatest_values(
    data_type: str, values: list[Any], smallest: Any, greatest: Any
) -> None:
    for steps in ("+" * len(values), "+" + "<" * (len(values) - 1), "!" + "+" * (len(values) - 1)):
        assert aggregate("min", data_type, values, steps) == smallest
        assert aggregate("max", data_type, values, steps) == greatest


@pytest.mark.parametrize("data_type", ["FLOAT", "DOUBLE"])
def test_floats_compare_with_nan_on_top_and_negative_zero_below_zero(data_type: str) -> None:
    assert bits(aggregate("min", data_type, [0.0, -0.0, NAN])) == bits(-0.0)
    assert bits(aggregate("max", data_type, [-0.0, 0.0, -0.0])) == bits(0.0)
    assert math.isnan(aggregate("max", data_type, [1.0, NAN, INF]))  # type: ignore[arg-type]
    assert aggregate("min", data_type, [NAN, -INF]) == -INF


@pytest.mark.parametrize("function", ["max", "min"])
def test_extremes_take_nothing_back_unless_they_ignore_it(function: str) -> None:
    with pytest.raises(DataMismatch, match=r"set fields\.v\.ignore-retract to true"):
        aggregate(function, "INT", [1, 1], "+-")

    assert aggregate(function, "INT", [1, 1], "+-", ignore_retract=True) == 1


@pytest.mark.parametrize("function", ["sum", "product", "max", "min"])
def test_keys_do_not_touch_each_other(function: str) -> None:
    steps = steps_of("++.+++", (0, 2, 3, 5))

    assert aggregate(function, "INT", [7, None, 1, None, None, 9], steps) == [7, None, None, 9]

"""Functions that keep one of the values as it is."""

from decimal import Decimal
from typing import Any

import pytest

from aggregate_columns import aggregate, steps_of
from emberlake.errors import DataMismatch
from emberlake.types import AtomicType
from engine_model import array, map_of


@pytest.mark.parametrize(
    ("function", "values", "steps", "expected"),
    [
        ("last_value", [1, 2, None], "+++", None),
        ("last_value", [1, None, 2], "+++", 2),
        ("last_value", [1, 2], "+<", 1),
        ("last_value", [1, 2], "+-", None),
        ("last_value", [1, 2, 3], "+-+", 3),
        ("last_value", [1, 2], "!.", 1),
        ("last_non_null_value", [1, 2, None], "+++", 2),
        ("last_non_null_value", [None, None], "++", None),
        ("last_non_null_value", [1, None], "+-", 1),
        ("last_non_null_value", [1, 2], "+-", None),
        ("last_non_null_value", [1, 2, 3], "+-+", 3),
        ("last_non_null_value", [1, 2], "+<", 1),
        ("last_non_null_value", [None, 2, 3], "+<<", 2),
        ("last_non_null_value", [1, 1, 2, 3], "+-<<", 2),
        ("last_non_null_value", [None, 2, 3], "!<+", 3),
        ("first_value", [1, 2, 3], "+++", 1),
        ("first_value", [None, 2, 3], "+++", None),
        ("first_value", [1, 2, 3], "+<<", 3),
        ("first_value", [1, None], "+<", None),
        ("first_value", [1, 2, 3], "!++", 2),
        ("first_value", [1, 2], "!.", 1),
        ("first_non_null_value", [None, 2, 3], "+++", 2),
        ("first_non_null_value", [None, None], "++", None),
        ("first_non_null_value", [1, 2, None], "+<<", None),
        ("first_non_null_value", [None, 2], "+<", 2),
        ("first_non_null_value", [None, 2, 3], "+<+", 3),
        ("first_non_null_value", [None, 2, 3], "+<<", 2),
        ("first_non_null_value", [1, 2], "!+", 2),
        ("first_non_null_value", [1, None], "!+", 1),
        ("primary-key", [4, 4], "+-", 4),
    ],
)
def test_one_value_is_kept(function: str, values: list[Any], steps: str, expected: Any) -> None:
    assert aggregate(function, "INT", values, steps) == expected


@pytest.mark.parametrize("function", ["first_value", "first_non_null_value"])
def test_a_first_value_remembers_that_there_was_one_before_the_row_was_removed(
    function: str,
) -> None:
    after_adds = steps_of(".!+", forgotten="+..")
    after_nothing = steps_of(".!+", forgotten="-..")

    assert aggregate(function, "INT", [1, 2, 3], after_adds) == 2
    assert aggregate(function, "INT", [1, 2, 3], after_nothing) == 3


@pytest.mark.parametrize("function", ["first_value", "first_non_null_value"])
def test_first_values_take_nothing_back_unless_they_ignore_it(function: str) -> None:
    with pytest.raises(DataMismatch, match=f"aggregated by {function}"):
        aggregate(function, "INT", [1, 1], "+-")

    assert aggregate(function, "INT", [1, 1], "+-", ignore_retract=True) == 1


@pytest.mark.parametrize(
    "function", ["last_value", "last_non_null_value", "first_value", "first_non_null_value"]
)
@pytest.mark.parametrize(
    ("data_type", "value"),
    [
        ("TIMESTAMP(9)", 1_700_000_000_123_456_789),
        ("TIMESTAMP(0)", 1_700_000_000_000_000_000),
        ("DECIMAL(38, 38)", Decimal("0." + "9" * 38)),
        ("STRING", ""),
        ("STRING", "x" * 100_000),
        ("BYTES", b"\x00\xff"),
        (array("TIMESTAMP(9)"), [1, None, -1]),
        (array("INT"), []),
        (map_of("STRING", AtomicType("INT")), [("a", None)]),
    ],
)
def test_values_survive_unchanged(function: str, data_type: Any, value: Any) -> None:
    assert aggregate(function, data_type, [value, value]) == value


def test_keys_do_not_touch_each_other() -> None:
    steps = steps_of("++.-<+", (0, 2, 3, 4, 5))

    last = aggregate("last_non_null_value", "INT", [1, None, 2, 3, 4, None], steps)

    assert last == [1, None, None, 4, None]

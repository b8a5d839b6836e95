"""bool_and and bool_or."""

from typing import Any

import pytest

from aggregate_columns import aggregate, steps_of
from emberlake.errors import DataMismatch


@pytest.mark.parametrize(
    ("values", "all_true", "any_true"),
    [
        ([True, True], True, True),
        ([True, False], False, True),
        ([False, False], False, False),
        ([None, True], True, True),
        ([False, None], False, False),
        ([None, None], None, None),
    ],
)
@pytest.mark.parametrize("steps", ["++", "+<", "!+"])
def test_nulls_do_not_count(values: list[Any], steps: str, all_true: Any, any_true: Any) -> None:
    assert aggregate("bool_and", "BOOLEAN", values, steps) is all_true
    assert aggregate("bool_or", "BOOLEAN", values, steps) is any_true


@pytest.mark.parametrize("function", ["bool_and", "bool_or"])
def test_nothing_is_taken_back_unless_it_is_ignored(function: str) -> None:
    with pytest.raises(DataMismatch, match="cannot retract"):
        aggregate(function, "BOOLEAN", [True, True], "+-")

    assert aggregate(function, "BOOLEAN", [True, False], "+-", ignore_retract=True) is True


def test_keys_do_not_touch_each_other() -> None:
    values, steps = [True, False, True, None], steps_of("++++", (0, 1, 3))

    assert aggregate("bool_and", "BOOLEAN", values, steps) == [True, False, None]
    assert aggregate("bool_or", "BOOLEAN", values, steps) == [True, True, None]

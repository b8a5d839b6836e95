"""listagg."""

from typing import Any

import pytest

from aggregate_columns import aggregate, steps_of
from emberlake.errors import DataMismatch


@pytest.mark.parametrize(
    ("values", "steps", "expected"),
    [
        (["a", "b"], "++", "a,b"),
        (["a", None, "", " \t", "b"], "+++++", "a,b"),
        (["\u00a0", "b"], "++", "\u00a0,b"),
        (["\u3000", "b"], "++", "b"),
        ([None, None], "++", None),
        (["", " "], "++", None),
        (["a", "b", "c"], "+<<", "c,b,a"),
        (["a", "b", "c", "d"], "+<+<", "d,b,a,c"),
        (["a", "b"], "!+", "a,b"),
        (["", "b"], "!+", "b"),
        (["", None], "!+", ""),
        (["", " "], "!<", " "),
        (["", None], "!<", None),
        (["a", None], "+<", "a"),
        (["a,b", "b"], "++", "a,b,b"),
        (["x" * 70_000, "y"], "++", "x" * 70_000 + ",y"),
    ],
)
def test_texts_are_joined(values: list[Any], steps: str, expected: Any) -> None:
    assert aggregate("listagg", "STRING", values, steps) == expected


@pytest.mark.parametrize(
    ("values", "steps", "expected"),
    [
        (["a", "a", "b"], "+++", "a,b"),
        (["a,a", "a,b,b"], "++", "a,a,b"),
        (["a", " ,c,,a"], "++", "a,c"),
        (["a,b", "c,a"], "+<", "c,a,b"),
        (["a", None], "++", "a"),
        ([None, None], "++", None),
    ],
)
def test_distinct_texts_are_joined_once(values: list[Any], steps: str, expected: Any) -> None:
    assert aggregate("listagg", "STRING", values, steps, distinct=True) == expected


@pytest.mark.parametrize(
    ("delimiter", "distinct", "expected"),
    [(";", False, "a b;b c"), ("", False, "a bb c"), ("", True, "a bc"), ("; ", True, "a b; b c")],
)
def test_the_delimiter_is_an_option(delimiter: str, distinct: bool, expected: str) -> None:
    settings = {"delimiter": delimiter, "distinct": distinct}

    assert aggregate("listagg", "STRING", ["a b", "b c"], **settings) == expected


def test_keys_do_not_touch_each_other() -> None:
    steps = steps_of("++.+++", (0, 2, 3, 5))

    for distinct in (True, False):
        joined = aggregate(
            "listagg", "STRING", ["a", "b", "c", None, "", "d"], steps, distinct=distinct
        )
        assert joined == ["a,b", None, None, "d"]


def test_nothing_is_taken_back_unless_it_is_ignored() -> None:
    with pytest.raises(DataMismatch, match="cannot retract"):
        aggregate("listagg", "STRING", ["a", "a"], "+-")

    assert aggregate("listagg", "STRING", ["a", "a"], "+-", ignore_retract=True) == "a"

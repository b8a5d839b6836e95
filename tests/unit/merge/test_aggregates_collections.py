"""collect, merge_map, merge_map_with_keytime, nested_update, nested_partial_update, rbm32."""

from decimal import Decimal
from typing import Any

import pytest
from pyroaring import BitMap

from aggregate_columns import aggregate, steps_of
from emberlake.errors import DataMismatch, Unsupported
from emberlake.merge.column_options import NestedKeyNulls
from emberlake.types import ArrayType, AtomicType, DataType
from engine_model import array, map_of, rows_of

NAN = float("nan")
TABLE = ArrayType(True, rows_of(id="INT", name="STRING", at="INT"))
TIMED = map_of("STRING", rows_of(v="INT", at="STRING"))
COUNTS = map_of("STRING", AtomicType("INT"))


# --- collect --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "steps", "expected"),
    [
        ([[1, None], None, [], [1]], "++++", [1, None, 1]),
        ([None, None], "++", None),
        ([None, []], "++", []),
        ([[1], [2]], "+<", [1, 2]),
        ([[1, 2, 1], [1]], "+-", [2, 1]),
        ([[1, None], [None, 5]], "+-", [1]),
        ([[1], [1], [1]], "+-+", [1]),
        ([[1], [1]], "-+", [1]),
        ([[1], [1]], "!-", []),
        ([None, [1]], "+-", None),
        ([[1], None], "+-", [1]),
    ],
)
def test_arrays_are_collected(values: list[Any], steps: str, expected: Any) -> None:
    assert aggregate("collect", array("INT"), values, steps) == expected


@pytest.mark.parametrize(
    ("element", "values", "steps", "expected"),
    [
        ("INT", [[1, 1], [2, 1]], "++", [1, 2]),
        ("INT", [[None], [None, 1]], "++", [None, 1]),
        ("INT", [[1, 1]], "+", [1]),
        ("INT", [[1, 1], None], "!.", [1, 1]),
        ("INT", [[1, 1], [2]], "!+", [1, 2]),
        ("INT", [[1, 2], [1], [1]], "+-+", [2, 1]),
        ("STRING", [["a", ""], ["", "b"]], "++", ["a", "", "b"]),
        ("BYTES", [[b"a"], [b"a"]], "++", [b"a"]),
        ("TIMESTAMP(9)", [[1, 2], [1]], "++", [1, 2]),
        ("DECIMAL(38, 1)", [[Decimal("0.1")], [Decimal("0.1")]], "++", [Decimal("0.1")]),
    ],
)
def test_distinct_elements_are_collected_once(
    element: str, values: list[Any], steps: str, expected: Any
) -> None:
    assert aggregate("collect", array(element), values, steps, distinct=True) == expected


def test_zeros_of_different_sign_differ_and_nans_do_not() -> None:
    result = aggregate("collect", array("DOUBLE"), [[0.0, NAN], [-0.0, NAN, 0.0]], distinct=True)

    assert str(result) == "[0.0, nan, -0.0]"


@pytest.mark.parametrize(
    ("element", "one", "other"),
    [
        (rows_of(a="INT", b="STRING"), (1, None), (1, "x")),
        (array("INT"), [1, None], [1]),
        (COUNTS, [("a", 1)], [("a", None)]),
    ],
)
def test_nested_elements_are_compared_by_what_they_hold(
    element: DataType, one: Any, other: Any
) -> None:
    nested = ArrayType(True, element)

    collected = aggregate("collect", nested, [[one, other], [None, one]], distinct=True)
    left = aggregate("collect", nested, [[one, other, None], [other, None]], "+-")

    assert collected == [one, other, None]
    assert left == [one]


def test_maps_with_the_same_entries_in_another_order_are_the_same() -> None:
    one, other = [("a", 1), ("b", 2)], [("b", 2), ("a", 1)]

    assert aggregate("collect", ArrayType(True, COUNTS), [[one], [other]], distinct=True) == [one]


def test_older_arrays_come_first_only_where_nothing_is_taken_back() -> None:
    assert aggregate("collect", array("INT"), [[1], [2]], "+<", ignore_retract=True) == [2, 1]


# --- merge_map ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "steps", "expected"),
    [
        ([{"a": 1, "b": 2}, {"b": None, "c": 3}], "++", {"a": 1, "b": None, "c": 3}),
        ([{"a": 1}, {"a": 2, "b": 2}], "+<", {"a": 1, "b": 2}),
        ([{"a": 1}, {"a": 2}, {"a": 3}], "+-<", {"a": 3}),
        ([{"a": 1, "b": 2}, {"b": 9, "x": 0}], "+-", {"a": 1}),
        ([{"a": 1}, {"a": 1}], "+-", {}),
        ([None, {"a": 1}], "+-", None),
        ([None, {"a": 1}, {"a": 2}], "+-+", {"a": 2}),
        ([{}, None], "++", {}),
        ([None, None], "++", None),
        ([{"a": 1}, {"b": 1}], "!+", {"a": 1, "b": 1}),
    ],
)
def test_maps_are_united(values: list[Any], steps: str, expected: Any) -> None:
    pairs = [None if value is None else list(value.items()) for value in values]

    result = aggregate("merge_map", COUNTS, pairs, steps)

    assert result == (None if expected is None else list(expected.items()))


def test_times_decide_between_entries_of_the_same_map_key() -> None:
    old = [("a", (1, "10")), ("b", (1, "10")), ("c", (1, None)), ("d", None), ("e", (1, "10"))]
    new = [("a", (2, "09")), ("b", (2, "11")), ("c", (2, "01")), ("d", (2, "01")), ("e", None)]
    new_keys = [("f", (3, "01")), ("g", (3, None))]

    merged = aggregate("merge_map_with_keytime", TIMED, [old, new, new_keys])

    assert dict(merged) == {  # type: ignore[arg-type]
        "a": (1, "10"),
        "b": (2, "11"),
        "c": (2, "01"),
        "d": (2, "01"),
        "f": (3, "01"),
    }


def test_the_time_may_be_another_field() -> None:
    data_type = map_of("STRING", rows_of(at="STRING", v="INT"))
    values = [[("a", ("2", 1))], [("a", ("1", 2))]]

    assert aggregate("merge_map_with_keytime", data_type, values, time_field="at") == values[0]


# --- nested tables --------------------------------------------------------------------------------

A1, A2, A3 = (1, "a", 1), (1, "b", 2), (1, "c", 2)
B1, NO_KEY = (2, "a", 1), (None, "n", 1)


@pytest.mark.parametrize(
    ("values", "steps", "settings", "expected"),
    [
        ([[A1], [B1, A1]], "++", {}, [A1, B1, A1]),
        ([[A1], None, [None, B1]], "+++", {}, [A1, B1]),
        ([[A1], [B1]], "+<", {}, [B1, A1]),
        ([[A1, None], None], "!+", {}, [A1, None]),
        ([[A1, B1, A1], [A1]], "+-", {}, [B1]),
        ([None, [A1]], "+-", {}, None),
        ([[A1], [B1, A2]], "++", {"count_limit": 2}, [A1, B1]),
        ([[A1, B1], [A2]], "++", {"count_limit": 1}, [A1]),
        ([[A1, B1], [A2]], "++", {"nested_key": ("id",)}, [A2, B1]),
        ([[A1, A2]], "+", {"nested_key": ("id",)}, [A2]),
        ([[A1], [A2]], "++", {"nested_key": ("id", "name")}, [A1, A2]),
        ([[A1], [A2, B1]], "+<", {"nested_key": ("id",)}, [A1, B1]),
        ([[A1, B1], [A2]], "+-", {"nested_key": ("id",)}, [B1]),
        ([[A1, None, B1], [A2]], "!-", {"nested_key": ("id",)}, [B1]),
        ([[A1, None], [B1]], "!+", {"nested_key": ("id",)}, [A1, B1]),
        ([[A1], [B1, A2]], "++", {"nested_key": ("id",), "count_limit": 1}, [A2]),
        ([[A2], [A1]], "++", {"nested_key": ("id",), "nested_sequence": ("at",)}, [A2]),
        ([[A2], [A3]], "++", {"nested_key": ("id",), "nested_sequence": ("at",)}, [A3]),
        ([[NO_KEY], [NO_KEY, A1]], "++", {"nested_key": ("id",)}, [NO_KEY, A1]),
    ],
)
def test_nested_tables_are_updated(
    values: list[Any], steps: str, settings: dict[str, Any], expected: Any
) -> None:
    assert aggregate("nested_update", TABLE, values, steps, **settings) == expected


@pytest.mark.parametrize("values", [[[NO_KEY, A1], [NO_KEY]], [[NO_KEY, None, A1], [None]]])
@pytest.mark.parametrize("function", ["nested_update", "nested_partial_update"])
def test_rows_without_a_nested_key_are_left_out_or_refused(
    function: str, values: list[Any]
) -> None:
    ignoring = {"nested_key": ("id",), "nested_key_nulls": NestedKeyNulls.IGNORE}
    refusing = {"nested_key": ("id",), "nested_key_nulls": NestedKeyNulls.ERROR}

    assert aggregate(function, TABLE, values, **ignoring) == [A1]
    with pytest.raises(DataMismatch, match="nested key is null"):
        aggregate(function, TABLE, values, **refusing)


@pytest.mark.parametrize(
    ("values", "steps", "expected"),
    [
        ([[(1, "a", None)], [(1, None, 2), B1]], "++", [(1, "a", 2), B1]),
        ([[(1, "a", None)], [(1, "b", 2), B1]], "+<", [(1, "a", 2), B1]),
        ([[A1], None], "++", [A1]),
        ([None, None], "++", None),
        ([[(1, "a", None)], [(1, None, 2)], [(1, "z", 9)]], "++<", [(1, "a", 2)]),
        ([[A1, None], [B1]], "!+", [A1, B1]),
    ],
)
def test_nested_rows_are_overlaid(values: list[Any], steps: str, expected: Any) -> None:
    assert aggregate("nested_partial_update", TABLE, values, steps, nested_key=("id",)) == expected


def test_nested_values_survive_unchanged() -> None:
    data_type = ArrayType(True, rows_of(id="INT", at="TIMESTAMP(9)", d="DECIMAL(38, 0)"))
    row = (1, 1_700_000_000_123_456_789, Decimal(10**37))

    for function in ("nested_update", "nested_partial_update"):
        assert aggregate(function, data_type, [[row], [row]], nested_key=("id",)) == [row]


# --- bitmaps, and all together --------------------------------------------------------------------


def test_bitmaps_are_united() -> None:
    one, other = BitMap([1, 2]).serialize(), BitMap([2, 2**32 - 1]).serialize()

    united = aggregate("rbm32", "BYTES", [one, None, other])

    assert BitMap.deserialize(united) == BitMap([1, 2, 2**32 - 1])
    assert aggregate("rbm32", "BYTES", [None, b"not looked at"]) == b"not looked at"
    with pytest.raises(DataMismatch, match="not a bitmap"):
        aggregate("rbm32", "BYTES", [one, b"not looked at"])


@pytest.mark.parametrize("function", ["rbm64", "hll_sketch", "theta_sketch"])
def test_sketches_are_refused(function: str) -> None:
    with pytest.raises(Unsupported, match=function):
        aggregate(function, "BYTES", [b"", b""])


@pytest.mark.parametrize(
    ("function", "data_type"),
    [
        ("collect", array("INT")),
        ("merge_map", COUNTS),
        ("merge_map_with_keytime", TIMED),
        ("nested_update", TABLE),
        ("nested_partial_update", TABLE),
    ],
)
def test_keys_do_not_touch_each_other(function: str, data_type: DataType) -> None:
    one = {"collect": [7], "merge_map": [("a", 1)], "merge_map_with_keytime": [("a", (1, "1"))]}
    value = one.get(function, [A1])
    settings = {"nested_key": ("id",)} if function.startswith("nested") else {}
    steps = steps_of("+.++++", (0, 2, 3, 5))

    merged = aggregate(
        function, data_type, [value, value, None, [], None, value], steps, **settings
    )

    assert merged == [value, None, [], value]


@pytest.mark.parametrize("function", ["merge_map_with_keytime", "nested_partial_update", "rbm32"])
def test_some_functions_take_nothing_back(function: str) -> None:
    data_type = {"merge_map_with_keytime": TIMED, "nested_partial_update": TABLE}.get(
        function, "BYTES"
    )

    with pytest.raises(DataMismatch, match="cannot retract"):
        aggregate(function, data_type, [None, None], "+-", nested_key=("id",))

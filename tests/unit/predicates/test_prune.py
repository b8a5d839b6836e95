"""Filters on statistics."""

import math

import numpy as np
import pyarrow as pa
import pytest

from emberlake.predicates import And, ColumnRange, Leaf, Op, Or, parse_predicate, prune
from emberlake.types import AtomicType, DataField, RowType, arrow_type

FIELDS = (
    DataField(0, "i", AtomicType("INT")),
    DataField(1, "f", AtomicType("DOUBLE")),
    DataField(2, "s", AtomicType("STRING")),
    DataField(3, "r", RowType(True, (DataField(4, "x", AtomicType("INT")),))),
)
# One unit per column of this drawing, of ten rows each:
#           values      one value  all null  unknown  values+nulls  only nulls counted
LOW = {
    "i": [1, 5, None, None, 1, None],
    "f": [1.0, 5.0, None, math.nan, 1.0, None],
    "s": ["ab", "abc", None, None, "ab", None],
}
HIGH = {
    "i": [9, 5, None, 9, 9, None],
    "f": [9.0, 5.0, None, 9.0, 9.0, None],
    "s": ["ad", "abc", None, "ad", "ad", None],
}
NULLS = [0, 0, 10, None, 3, 3]
ROW_COUNTS = np.full(6, 10)
YES, NO = "1", "0"


def lookup(field: DataField) -> ColumnRange | None:
    if field.name not in LOW:
        return None
    arrow = arrow_type(field.type)
    return ColumnRange(
        pa.array(LOW[field.name], arrow), pa.array(HIGH[field.name], arrow), pa.array(NULLS)
    )


def bits(mask: np.ndarray) -> str:
    return "".join(YES if bit else NO for bit in mask)


@pytest.mark.parametrize(
    ("text", "may", "every"),
    [
        ("i = 5", "110111", "010000"),
        ("i = 0", "000101", "000000"),
        ("i <> 5", "100111", "000000"),
        ("i <> 0", "110111", "110000"),
        ("i < 1", "000101", "000000"),
        ("i < 10", "110111", "110000"),
        ("i <= 1", "100111", "000000"),
        ("i > 9", "000101", "000000"),
        ("i >= 9", "100111", "000000"),
        ("i >= 1", "110111", "110000"),
        ("i BETWEEN 6 AND 7", "100111", "000000"),
        ("i BETWEEN 1 AND 9", "110111", "110000"),
        ("i NOT BETWEEN 1 AND 9", "000101", "000000"),
        ("i NOT BETWEEN 6 AND 7", "110111", "010000"),
        ("i IN (0, 5, 11)", "110111", "010000"),
        ("i IN (0, 11)", "000101", "000000"),
        ("i NOT IN (0, 5)", "100111", "000000"),
        ("i NOT IN (0, 11)", "110111", "110000"),
        ("i IN ()", "000000", "000000"),
        ("i NOT IN ()", "111111", "111111"),
        ("i IS NULL", "001111", "001000"),
        ("i IS NOT NULL", "110111", "110000"),
        ("i > 3 AND i < 4", "100111", "000000"),
        ("i < 1 OR i IS NULL", "001111", "001000"),
        ("i = 1.5", "000000", "000000"),
        # A NaN may hide in every unit of floats, whatever its range.
        ("f = 5", "110111", "000000"),
        ("f = 0", "000101", "000000"),
        ("f <> 5", "110111", "000000"),
        ("f <> 0", "110111", "110000"),
        ("f >= 1", "110111", "000000"),
        ("f < 1", "000101", "000000"),
        ("f = 'nan'", "000101", "000000"),
        ("f IN (0, 'nan')", "000101", "000000"),
        ("f IN ('nan')", "000101", "000000"),
        ("f NOT IN (0)", "110111", "110000"),
        ("f NOT IN (5)", "110111", "000000"),
        ("NOT f < 1", "110111", "110000"),
        ("s LIKE 'a%'", "110111", "110000"),
        ("s LIKE 'abc%'", "110111", "010000"),
        ("s LIKE 'aa%'", "000101", "000000"),
        ("s LIKE 'ae%'", "000101", "000000"),
        ("s LIKE 'abcd%'", "100111", "000000"),
        ("s LIKE '%c'", "110111", "010000"),
        ("s LIKE '%d%'", "100111", "000000"),
        ("s LIKE 'ae%z'", "000101", "000000"),
        ("s LIKE 'a%c'", "110111", "010000"),
        ("s NOT LIKE 'a%'", "000101", "000000"),
        ("s NOT LIKE 'ae%'", "110111", "110000"),
        ("s NOT LIKE '%c'", "100111", "000000"),
        ("r.x = 1", "111111", "000000"),
        ("r IS NULL", "111111", "000000"),
    ],
)
def test_units_are_kept_skipped_or_fully_matched(text, may, every):
    verdict = prune.test_ranges(parse_predicate(text, FIELDS), ROW_COUNTS, lookup)

    assert (bits(verdict.may), bits(verdict.all)) == (may, every)


@pytest.mark.parametrize(
    ("leaf", "may", "every"),
    [
        (Leaf(FIELDS[0], Op.EQUAL, (None,)), "000000", "000000"),
        (Leaf(FIELDS[0], Op.NOT_EQUAL, (None,)), "000000", "000000"),
        (Leaf(FIELDS[0], Op.IN, (None,)), "000000", "000000"),
        (Leaf(FIELDS[0], Op.IN, (5, None)), "110111", "010000"),
        (Leaf(FIELDS[0], Op.NOT_IN, (5, None)), "000000", "000000"),
        (Leaf(FIELDS[0], Op.NOT_BETWEEN, (None, 5)), "110111", "000000"),
        (And(()), "111111", "111111"),
        (Or(()), "000000", "000000"),
    ],
)
def test_null_literals_and_empty_joins_are_decided_as_rows_are(leaf, may, every):
    verdict = prune.test_ranges(leaf, ROW_COUNTS, lookup)

    assert (bits(verdict.may), bits(verdict.all)) == (may, every)


def test_without_bounds_only_null_counts_decide():
    predicate = parse_predicate("i = 5 OR i IS NULL", FIELDS)
    counts = ColumnRange(null_count=pa.chunked_array([[0, 2], [-1]]))

    only_counts = prune.test_ranges(predicate, np.array([2, 2, 2]), lambda _: counts)
    nothing = prune.test_ranges(predicate, np.array([2, 2, 2]), lambda _: None)

    assert (bits(only_counts.may), bits(only_counts.all)) == ("111", "010")
    assert (bits(nothing.may), bits(nothing.all)) == ("111", "000")


def test_bounds_of_another_arrow_type_are_cast():
    bounds = pa.array(["a", "b"]).dictionary_encode()

    verdict = prune.test_ranges(
        parse_predicate("s = 'b'", FIELDS), np.array([1, 1]), lambda _: ColumnRange(bounds, bounds)
    )

    assert bits(verdict.may) == "01"

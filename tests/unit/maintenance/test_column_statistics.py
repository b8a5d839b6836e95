"""Distinct values are counted by their hashes, whatever their type and length."""

from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest

from emberlake.maintenance.column_statistics import ColumnCounter
from emberlake.types import AtomicType, DataField, arrow_type

LONG = "x" * 1000

CASES = {
    "texts with the same beginning": ("STRING", ["", "a", "ab", "abcdefgh", "abcdefghi"]),
    "texts that end with zeros": ("STRING", ["a", "a\0", "a\0\0", "\0", "\0\0"]),
    "long texts that differ at the end": ("STRING", [LONG, f"{LONG}a", f"{LONG}b"]),
    "bytes": ("BYTES", [b"\xff", b"\xff\xff", b"\0"]),
    "small decimals": ("DECIMAL(10, 2)", [Decimal("1.10"), Decimal("-1.10"), Decimal(0)]),
    "large decimals": ("DECIMAL(38, 0)", [Decimal(10**30), Decimal(-(10**30)), Decimal(10**20)]),
    "numbers": ("BIGINT", [0, 1, -1, 1 << 40]),
    "floats": ("DOUBLE", [0.5, 1.5, -0.5]),
    "dates": ("DATE", [date(2024, 1, 1), date(2024, 1, 2)]),
    "booleans": ("BOOLEAN", [True, False]),
}


@pytest.mark.parametrize("name", CASES)
def test_different_values_are_counted_once_each(name: str) -> None:
    text, values = CASES[name]
    field = DataField(0, "c", AtomicType(text))
    column = pa.array([*values, None, *values], arrow_type(field.type))
    counter = ColumnCounter(field)

    counter.add(column.slice(1))
    counter.add(column.slice(0, 1))

    found = counter.result()
    assert (found.distinct_count, found.null_count) == (len(values), 1)


def test_many_texts_are_estimated_within_one_percent() -> None:
    field = DataField(0, "c", AtomicType("STRING"))
    counter = ColumnCounter(field)

    for start in range(0, 300_000, 50_000):
        counter.add(pa.array([f"customer-{n}" for n in range(start, start + 50_000)]))

    distinct = counter.result().distinct_count
    assert distinct is not None
    assert abs(distinct - 300_000) < 3_000

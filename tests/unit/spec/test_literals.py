"""Literals become values exactly, or are refused, or are placed between values."""

import datetime as dt
import math
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from emberlake.errors import InvalidInput
from emberlake.spec.literals import Placement, cast_literal, place_literal
from emberlake.types import (
    ArrayType,
    AtomicType,
)

NANOS = 1_782_468_000_123_456_789  # 2026-06-26 10:00:00.123456789
ISO = "2026-06-26 10:00:00.123456789"


@pytest.mark.parametrize(
    ("data_type", "literal", "value"),
    [
        ("BOOLEAN", np.bool_(True), True),
        ("BOOLEAN", " False ", False),
        ("TINYINT", -128, -128),
        ("INT", "12", 12),
        ("INT", 12.0, 12),
        ("INT", "1.2e1", 12),
        ("BIGINT", np.int64(2**62), 2**62),
        ("BIGINT", pa.scalar(7, pa.int8()), 7),
        ("DOUBLE", "0.1", 0.1),
        ("DOUBLE", np.float32(0.1), 0.10000000149011612),
        ("DOUBLE", 3, 3.0),
        ("FLOAT", 0.1, 0.10000000149011612),
        ("DOUBLE", "-Infinity", -math.inf),
        ("DECIMAL(10, 2)", 1.1, Decimal("1.10")),
        ("DECIMAL(10, 2)", np.float32(1.1), Decimal("1.10")),
        ("DECIMAL(10, 2)", pa.scalar(1.1, pa.float32()), Decimal("1.10")),
        ("DECIMAL(38, 0)", "9" * 38, Decimal("9" * 38)),
        ("VARCHAR(3)", np.str_("été"), "été"),
        ("STRING", pa.scalar("a", pa.dictionary(pa.int8(), pa.string())), "a"),
        ("BYTES", "é", b"\xc3\xa9"),
        ("BYTES", bytearray(b"a"), b"a"),
        ("DATE", "2026-06-26", 20630),
        ("DATE", "20630", 20630),
        ("DATE", dt.date(2026, 6, 26), 20630),
        ("DATE", dt.datetime(2026, 6, 26), 20630),  # noqa: DTZ001
        ("DATE", np.datetime64("2026-06-26"), 20630),
        ("DATE", pa.scalar(20630, pa.date32()), 20630),
        ("DATE", pa.scalar(20630 * 86_400_000, pa.date64()), 20630),
        ("DATE", "12026-06-26", 3_673_055),
        ("TIME", dt.time(0, 0, 1, 5000), 1005),
        ("TIME(3)", "10:20:30.5", 37_230_500),
        ("TIME", "37230500", 37_230_500),
        ("TIME", pa.scalar(5_000_000, pa.time64("ns")), 5),
        ("TIMESTAMP(9)", ISO, NANOS),
        ("TIMESTAMP(9)", ISO.replace(" ", "T"), NANOS),
        ("TIMESTAMP(9)", pd.Timestamp(ISO), NANOS),
        ("TIMESTAMP(9)", np.datetime64(ISO.replace(" ", "T")), NANOS),
        ("TIMESTAMP(9)", pa.scalar(NANOS, pa.timestamp("ns")), NANOS),
        ("TIMESTAMP(6)", dt.datetime(1969, 12, 31, 23, 59, 59, 999_999), -1000),  # noqa: DTZ001
        ("TIMESTAMP(0)", "2026-06-26T10:00", NANOS - NANOS % 10**9),
        ("TIMESTAMP(3)", dt.date(1500, 1, 1), -171_664 * 86_400 * 10**9),
        ("TIMESTAMP(0)", np.datetime64("1971"), 365 * 86_400 * 10**9),
        ("TIMESTAMP_LTZ(9)", ISO, NANOS),
        ("TIMESTAMP_LTZ(9)", f"{ISO}Z", NANOS),
        ("TIMESTAMP_LTZ(9)", "2026-06-26 12:00:00.123456789+02:00", NANOS),
        ("TIMESTAMP_LTZ(9)", "2026-06-26 07:30:00.123456789 -0230", NANOS),
        ("TIMESTAMP_LTZ(9)", pd.Timestamp(ISO, tz="UTC").tz_convert("Asia/Tokyo"), NANOS),
        ("TIMESTAMP_LTZ(9)", pa.scalar(NANOS, pa.timestamp("ns", "Asia/Tokyo")), NANOS),
        (
            "TIMESTAMP_LTZ(0)",
            dt.datetime(1970, 1, 1, 2, tzinfo=dt.timezone(dt.timedelta(hours=2))),
            0,
        ),
    ],
)
def test_a_literal_becomes_the_value_it_stands_for(data_type, literal, value):
    actual = cast_literal(AtomicType(data_type), literal)

    assert (actual, type(actual)) == (value, type(value))


@pytest.mark.parametrize(
    "null", [None, pd.NaT, pd.NA, np.datetime64("NaT"), pa.scalar(None, pa.int32())]
)
def test_every_kind_of_missing_value_is_null(null):
    assert cast_literal(AtomicType("TIMESTAMP(6)"), null) is None


@pytest.mark.parametrize(
    ("data_type", "literal"),
    [
        ("BOOLEAN", 1),
        ("BOOLEAN", "maybe"),
        ("INT", True),
        ("INT", 1.5),
        ("INT", "1_000"),
        ("INT", "nan"),
        ("INT", b"1"),
        ("TINYINT", 300),
        ("BIGINT", "1e999999999"),
        ("BIGINT", Decimal("1e-999999")),
        ("FLOAT", 1e300),
        ("DOUBLE", 10**400),
        ("DECIMAL(10, 2)", "1.005"),
        ("DECIMAL(4, 2)", 100),
        ("STRING", 5),
        ("STRING", "\ud800"),
        ("STRING", dt.date(2026, 6, 26)),
        ("VARCHAR(2)", "abc"),
        ("BINARY(2)", b"abc"),
        ("DATE", "2026-02-30"),
        ("DATE", "20260626"),
        ("DATE", 20630),
        ("DATE", dt.datetime(2026, 6, 26, 1)),  # noqa: DTZ001
        ("DATE", pd.Timestamp(ISO, tz="UTC")),
        ("TIME", "24:00"),
        ("TIME", "86400000"),
        ("TIME", dt.time(0, 0, 0, 1)),
        ("TIME", dt.time(1, tzinfo=dt.UTC)),
        ("TIMESTAMP(0)", "2026-06-26 10:00:00.5"),
        ("TIMESTAMP(1)", "2026-06-26 10:00:00.55"),
        ("TIMESTAMP(9)", f"{ISO}1"),
        ("TIMESTAMP(9)", "1500-01-01"),
        ("TIMESTAMP(6)", "2026-06-26 10:00Z"),
        ("TIMESTAMP(6)", pd.Timestamp(ISO, tz="UTC")),
        ("TIMESTAMP(6)", "2026-06-26 10"),
        ("TIMESTAMP(6)", 5),
        ("VARIANT", "x"),
    ],
)
def test_a_literal_that_does_not_fit_is_refused_with_both_named(data_type, literal):
    with pytest.raises(InvalidInput) as refused:
        cast_literal(AtomicType(data_type), literal)

    assert str(AtomicType(data_type)) in str(refused.value) or repr(literal) in str(refused.value)


def test_nested_types_have_no_literals():
    with pytest.raises(InvalidInput, match="ARRAY<INT> has no literals"):
        cast_literal(ArrayType(True, AtomicType("INT")), [1])


@pytest.mark.parametrize(
    ("data_type", "literal", "below", "above"),
    [
        ("INT", -1.5, -2, -1),
        ("TINYINT", 300, 127, None),
        ("TINYINT", "-1e30", None, -128),
        ("INT", math.inf, 2**31 - 1, None),
        ("INT", math.nan, None, None),
        ("BIGINT", Decimal("1e-999999"), 0, 1),
        ("DECIMAL(4, 2)", "1.005", Decimal("1.00"), Decimal("1.01")),
        ("DECIMAL(4, 2)", -100, None, Decimal("-99.99")),
        ("FLOAT", 1e300, 3.4028234663852886e38, math.inf),
        ("DOUBLE", -(10**400), -math.inf, -1.7976931348623157e308),
        ("DATE", "1970-01-02 00:00:00.1", 1, 2),
        ("TIME", "00:00:00.0015", 1, 2),
        ("TIMESTAMP(0)", "1970-01-01 00:00:00.5", 0, 10**9),
        ("TIMESTAMP(9)", "1970-01-01 00:00:00.0000000015", 1, 2),
        ("TIMESTAMP(9)", "1500-01-01", None, -(2**63)),
    ],
)
def test_a_literal_off_the_grid_is_placed_between_its_neighbours(data_type, literal, below, above):
    placed = place_literal(AtomicType(data_type), literal)

    assert placed == Placement(below, above, is_exact=False)

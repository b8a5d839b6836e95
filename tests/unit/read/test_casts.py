"""Every cast against the values that other engines read for the same change of type."""

# ruff: noqa: DTZ001  # TIMESTAMP has no zone: naive values are what is tested

import math
from datetime import date, datetime, time, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest

from emberlake.errors import DataMismatch, Unsupported
from emberlake.read.casts import cast_array, find_cast
from emberlake.types import ArrayType, AtomicType, DataField, MapType, RowType, arrow_type

T = AtomicType


def cast(source, target, values):
    """The values of one type read as the other; checks the Arrow type and sliced input too."""
    source = T(source) if isinstance(source, str) else source
    array = pa.array([None, *values, None], arrow_type(source))

    result = cast_array(array, source, T(target))

    assert result.type == arrow_type(T(target))
    assert cast_array(array.slice(1), source, T(target)).equals(result.slice(1))
    assert result[0].as_py() is None
    assert result[-1].as_py() is None
    return result.to_pylist()[1:-1]


NUMBERS = [
    ("INT", "BIGINT", [1, -(2**31)], [1, -(2**31)]),
    ("INT", "TINYINT", [383, 128, -129], [127, -128, 127]),
    ("BIGINT", "INT", [2**32 + 5, -(2**63)], [5, 0]),
    ("INT", "FLOAT", [2**31 - 1], [2147483648.0]),
    ("BIGINT", "DOUBLE", [2**53 + 1], [9007199254740992.0]),
    ("DOUBLE", "INT", [1.9, -1.9, 1e20, -1e20, math.nan], [1, -1, 2**31 - 1, -(2**31), 0]),
    ("DOUBLE", "BIGINT", [1e300, -math.inf, 2.5], [2**63 - 1, -(2**63), 2]),
    ("DOUBLE", "TINYINT", [300.7, 1e20, -129.0], [44, -1, 127]),
    ("DOUBLE", "SMALLINT", [-1e20], [0]),
    ("DOUBLE", "FLOAT", [1e300, 0.1], [math.inf, 0.10000000149011612]),
    ("FLOAT", "DOUBLE", [0.1], [0.10000000149011612]),
    ("FLOAT", "BIGINT", [9.3e18], [2**63 - 1]),
    ("BOOLEAN", "INT", [True, False], [1, 0]),
    ("BOOLEAN", "DOUBLE", [True, False], [1.0, 0.0]),
    ("BOOLEAN", "DECIMAL(3, 2)", [True, False], [Decimal("1.00"), Decimal("0.00")]),
    ("BOOLEAN", "DECIMAL(2, 2)", [True, False], [None, Decimal("0.00")]),
    ("BIGINT", "BOOLEAN", [0, 7, -1], [False, True, True]),
]

DECIMALS = [
    ("DECIMAL(4, 1)", "DECIMAL(10, 3)", ["1.5"], ["1.500"]),
    ("DECIMAL(5, 2)", "DECIMAL(5, 1)", ["1.25", "-1.25", "1.24"], ["1.3", "-1.3", "1.2"]),
    ("DECIMAL(5, 2)", "DECIMAL(4, 1)", ["999.95", "999.94"], [None, "999.9"]),
    ("DECIMAL(38, 0)", "DECIMAL(38, 38)", ["0", "1"], ["0." + "0" * 38, None]),
    ("DECIMAL(38, 38)", "DECIMAL(38, 0)", ["0.5", "-0.49"], ["1", "0"]),
    ("INT", "DECIMAL(10, 2)", [5, 100_000_000], ["5.00", None]),
    ("BIGINT", "DECIMAL(19, 0)", [-(2**63)], [str(-(2**63))]),
    ("TINYINT", "DECIMAL(2, 0)", [99, 100], ["99", None]),
    ("DOUBLE", "DECIMAL(5, 2)", [1.005, 1.015, 1e10, -0.0], ["1.01", "1.02", None, "0.00"]),
    ("FLOAT", "DECIMAL(20, 17)", [0.1], ["0.10000000149011612"]),
    ("STRING", "DECIMAL(5, 2)", ["1.235", "-1e2", ".5", "1000", "1e-99"],
     ["1.24", "-100.00", "0.50", None, "0.00"]),
    ("STRING", "DECIMAL(5, 2)", ["1.2", "-100.05", "007"], ["1.20", "-100.05", "7.00"]),
    ("STRING", "DECIMAL(2, 2)", ["0.25", "1"], ["0.25", None]),
    ("STRING", "DECIMAL(38, 0)", ["9" * 38, "9" * 39, "1e999999999"], ["9" * 38, None, None]),
]  # fmt: skip

FROM_DECIMALS = [
    ("DECIMAL(5, 2)", "INT", ["1.99", "-1.99"], [1, -1]),
    ("DECIMAL(20, 0)", "BIGINT", ["18446744073709551617"], [1]),
    ("DECIMAL(10, 0)", "TINYINT", ["300"], [44]),
    ("DECIMAL(10, 2)", "DOUBLE", ["0.10", "12345678.91"], [0.1, 12345678.91]),
    ("DECIMAL(38, 20)", "DOUBLE", ["0.1", "-123456789012345678.5"], [0.1, -123456789012345678.5]),
    ("DECIMAL(10, 2)", "FLOAT", ["0.10"], [0.10000000149011612]),
    ("DECIMAL(10, 8)", "STRING", ["0.00000001", "-0.5", "12"],
     ["0.00000001", "-0.50000000", "12.00000000"]),
    ("DECIMAL(38, 0)", "STRING", ["-7"], ["-7"]),
]  # fmt: skip

TO_TEXT = [
    ("BOOLEAN", "STRING", [True, False], ["true", "false"]),
    ("BOOLEAN", "VARCHAR(2)", [True, False], ["tr", "fa"]),
    ("BOOLEAN", "CHAR(6)", [True, False], ["true  ", "false "]),
    ("BIGINT", "STRING", [-5, 2**62], ["-5", str(2**62)]),
    ("DOUBLE", "STRING", [1.0, 0.001, 9999999.9, 100.0, -0.0, 0.1, 123456.789],
     ["1.0", "0.001", "9999999.9", "100.0", "-0.0", "0.1", "123456.789"]),
    ("DOUBLE", "STRING", [1e7, 1.5e-4, -1e20, 1.7976931348623157e308, math.nan, -math.inf],
     ["1.0E7", "1.5E-4", "-1.0E20", "1.7976931348623157E308", "NaN", "-Infinity"]),
    ("FLOAT", "STRING", [0.1, 16777216.0, 3.4e38, 5.0], ["0.1", "1.6777216E7", "3.4E38", "5.0"]),
    ("DATE", "STRING", [date(2026, 6, 26), date(1, 1, 1)], ["2026-06-26", "0001-01-01"]),
    ("TIME(0)", "STRING", [time(10, 20, 30)], ["10:20:30"]),
    ("TIME(3)", "STRING", [time(10, 20, 30), time(1, 2, 3, 120_000)],
     ["10:20:30.0", "01:02:03.12"]),
    ("TIME(1)", "STRING", [time(1, 2, 3, 120_000)], ["01:02:03.1"]),
    ("TIMESTAMP(0)", "STRING", [datetime(2026, 1, 2, 3, 4, 5)], ["2026-01-02 03:04:05"]),
    ("TIMESTAMP(3)", "STRING", [datetime(1969, 12, 31, 23, 59, 59, 500_000)],
     ["1969-12-31 23:59:59.500"]),
    ("TIMESTAMP(1)", "STRING", [datetime(2026, 1, 2), datetime(2026, 1, 2, 0, 0, 0, 100_000)],
     ["2026-01-02 00:00:00.0", "2026-01-02 00:00:00.1"]),
    ("TIMESTAMP(6)", "STRING", [datetime(2026, 1, 2, 0, 0, 0, 1)], ["2026-01-02 00:00:00.000001"]),
    ("TIMESTAMP_LTZ(3)", "STRING", [datetime(2026, 1, 2)], ["2026-01-02 00:00:00.000"]),
    ("BYTES", "STRING", ["añb".encode()], ["añb"]),
    ("BYTES", "VARCHAR(1)", [b"abc"], ["abc"]),
    ("VARCHAR(10)", "VARCHAR(2)", ["añb", "😀😀😀", "x"], ["añ", "😀😀", "x"]),
    ("VARCHAR(10)", "CHAR(3)", ["ñ", "abcd"], ["ñ  ", "abc"]),
    ("CHAR(3)", "VARCHAR(5)", ["a  "], ["a  "]),
    ("STRING", "VARCHAR(3)", ["abcdef"], ["abc"]),
]  # fmt: skip

FROM_TEXT = [
    ("STRING", "BOOLEAN", ["T", "yes", "1", "FALSE", "n", "0"], [True] * 3 + [False] * 3),
    ("STRING", "INT", ["12", "+7", "-7.99", ".", "-.5", "007"], [12, 7, -7, 0, 0, 7]),
    ("STRING", "TINYINT", ["-128"], [-128]),
    ("STRING", "DOUBLE", [" 1.5 ", "+2", "1e3", "1.5f", "2d", "Infinity", "1e400", ".5", "5."],
     [1.5, 2.0, 1000.0, 1.5, 2.0, math.inf, math.inf, 0.5, 5.0]),
    ("STRING", "FLOAT", ["0.1"], [0.10000000149011612]),
    ("STRING", "BYTES", ["añ"], ["añ".encode()]),
    ("STRING", "BINARY(4)", ["ab", "abcdef"], [b"ab\0\0", b"abcd"]),
    ("STRING", "DATE", ["2026-06-26", "0001-01-01"], [date(2026, 6, 26), date(1, 1, 1)]),
    ("STRING", "DATE", ["2026-6-3", "2026-06", "2026-06-26 10:00:00", "10", " 2026"],
     [date(2026, 6, 3), date(2026, 6, 1), date(2026, 6, 26), date(1970, 1, 11), date(2026, 1, 1)]),
    ("STRING", "TIME(3)", ["10:20:30.5", "1:2", "7:0:0+1:30", "5000", "10:20:30.1236"],
     [time(10, 20, 30, 500_000), time(1, 2), time(8, 30), time(0, 0, 5),
      time(10, 20, 30, 124_000)]),
    ("STRING", "TIMESTAMP(3)",
     ["2026-06-26 10:00:00.123456", "2026-6-3", "2026-06-26T10:30", "1500"],
     [datetime(2026, 6, 26, 10, 0, 0, 123_000), datetime(2026, 6, 3), datetime(2026, 6, 26, 10, 30),
      datetime(1970, 1, 1, 0, 0, 1, 500_000)]),
    ("STRING", "TIMESTAMP(6)", ["2026-06-26 10:00:00.12", "1026-06-26 10:00:00"],
     [datetime(2026, 6, 26, 10, 0, 0, 120_000), datetime(1026, 6, 26, 10)]),
    ("STRING", "TIMESTAMP(1)", ["2026-06-26 10:00:00.1"],
     [datetime(2026, 6, 26, 10, 0, 0, 100_000)]),
    ("STRING", "DATE", ["-1", "1"], [date(1969, 12, 31), date(1970, 1, 2)]),
    ("STRING", "TIMESTAMP(0)", ["2023-02-31 24:00:00", "1969-12-31 23:59:59.9"],
     [datetime(2023, 3, 1), datetime(1969, 12, 31, 23, 59, 59)]),
    ("BYTES", "BINARY(3)", [b"a", b"abcd"], [b"a\0\0", b"abc"]),
    ("BINARY(3)", "VARBINARY(2)", [b"abc"], [b"ab"]),
    ("BINARY(3)", "BYTES", [b"abc"], [b"abc"]),
]  # fmt: skip

TIMES = [
    ("TIMESTAMP(3)", "TIMESTAMP(6)", [datetime(2026, 1, 2, 3)], [datetime(2026, 1, 2, 3)]),
    ("TIMESTAMP(6)", "TIMESTAMP(3)", [datetime(1969, 12, 31, 23, 59, 59, 999_500)],
     [datetime(1969, 12, 31, 23, 59, 59, 999_000)]),
    ("TIMESTAMP(6)", "TIMESTAMP(4)", [datetime(1969, 12, 31, 23, 59, 59, 999_999)],
     [datetime(1969, 12, 31, 23, 59, 59, 999_900)]),
    ("TIMESTAMP(3)", "TIMESTAMP(0)", [datetime(1969, 12, 31, 23, 59, 58, 500_000),
                                      datetime(1970, 1, 1, 0, 0, 1, 900_000)],
     [datetime(1969, 12, 31, 23, 59, 59), datetime(1970, 1, 1, 0, 0, 1)]),
    ("TIMESTAMP(6)", "TIMESTAMP(1)", [datetime(2026, 1, 1, 0, 0, 0, 987_654)],
     [datetime(2026, 1, 1, 0, 0, 0, 900_000)]),
    ("TIMESTAMP(3)", "BIGINT", [datetime(1969, 12, 31, 23, 59, 58, 500_000), datetime(1970, 1, 2)],
     [-1, 86400]),
    ("TIMESTAMP(0)", "INT", [datetime(1970, 1, 1) + timedelta(seconds=2**32 + 7)], [7]),
    ("BIGINT", "TIMESTAMP(3)", [86400, -1],
     [datetime(1970, 1, 2), datetime(1969, 12, 31, 23, 59, 59)]),
    ("INT", "TIMESTAMP(9)", [60], [datetime(1970, 1, 1, 0, 1)]),
    ("TIMESTAMP(6)", "DATE", [datetime(1969, 12, 31, 23), datetime(2026, 6, 26)],
     [date(1969, 12, 31), date(2026, 6, 26)]),
    ("TIMESTAMP(6)", "TIME(3)", [datetime(1969, 12, 31, 23, 0, 0, 1500)], [time(23, 0, 0, 1000)]),
    ("TIMESTAMP(0)", "TIME(0)", [datetime(1969, 12, 31, 23, 0, 1)], [time(23, 0, 1)]),
    ("DATE", "TIMESTAMP(0)", [date(1969, 12, 31)], [datetime(1969, 12, 31)]),
    ("DATE", "TIMESTAMP(6)", [date(9999, 12, 31)], [datetime(9999, 12, 31)]),
    ("TIME(3)", "TIMESTAMP(3)", [time(1, 2, 3, 4000)], [datetime(1970, 1, 1, 1, 2, 3, 4000)]),
    ("TIME(3)", "TIMESTAMP(0)", [time(1, 2, 3, 4000)], [datetime(1970, 1, 1, 1, 2, 3)]),
    ("TIME(0)", "TIME(3)", [time(1, 2, 3)], [time(1, 2, 3)]),
]  # fmt: skip


@pytest.mark.parametrize(("source", "target", "values", "expected"), NUMBERS)
def test_numbers_are_cut_wrapped_and_saturated(source, target, values, expected):
    assert cast(source, target, values) == expected


@pytest.mark.parametrize(("source", "target", "values", "expected"), DECIMALS)
def test_decimals_round_half_up_and_are_null_where_they_do_not_fit(
    source, target, values, expected
):
    if source.startswith("DECIMAL"):
        values = [Decimal(v) for v in values]

    result = cast(source, target, values)

    assert result == [None if e is None else Decimal(e) for e in expected]


@pytest.mark.parametrize(("source", "target", "values", "expected"), FROM_DECIMALS)
def test_decimals_become_other_types(source, target, values, expected):
    assert cast(source, target, [Decimal(v) for v in values]) == expected


@pytest.mark.parametrize(("source", "target", "values", "expected"), TO_TEXT)
def test_values_become_text(source, target, values, expected):
    assert cast(source, target, values) == expected


@pytest.mark.parametrize(("source", "target", "values", "expected"), FROM_TEXT)
def test_text_becomes_values(source, target, values, expected):
    assert cast(source, target, values) == expected


@pytest.mark.parametrize(("source", "target", "values", "expected"), TIMES)
def test_times_become_other_times(source, target, values, expected):
    assert cast(source, target, values) == expected


def test_a_local_timestamp_is_taken_to_be_in_utc():
    naive = pa.array([datetime(2026, 1, 2, 3)], pa.timestamp("us"))

    aware = cast_array(naive, T("TIMESTAMP(6)"), T("TIMESTAMP_LTZ(3)"))

    assert aware.type == pa.timestamp("ms", "UTC")
    assert cast_array(aware, T("TIMESTAMP_LTZ(3)"), T("TIMESTAMP(6)")).equals(naive)
    assert cast_array(aware, T("TIMESTAMP_LTZ(3)"), T("DATE")).to_pylist() == [date(2026, 1, 2)]


def test_nested_values_become_text():
    row = RowType(True, (DataField(1, "a", T("INT")), DataField(2, "b", T("DOUBLE"))))
    array = ArrayType(True, row)
    mapping = MapType(True, T("STRING NOT NULL"), T("DECIMAL(4, 2)"))

    rows = cast(row, "STRING", [{"a": 1, "b": None}, {"a": None, "b": 2.0}])
    lists = cast(array, "STRING", [[], [{"a": 1, "b": 0.5}, None]])
    maps = cast(mapping, "STRING", [[("k", Decimal("1.5")), ("l", None)], []])

    assert rows == ["{1, null}", "{null, 2.0}"]
    assert lists == ["[]", "[{1, 0.5}, null]"]
    assert maps == ["{k -> 1.50, l -> null}", "{}"]


@pytest.mark.parametrize(
    ("source", "target", "value"),
    [
        ("STRING", "INT", "12a"),
        ("STRING", "INT", ""),
        ("STRING", "INT", "+"),
        ("STRING", "INT", " 1"),
        ("STRING", "INT", "2147483648"),
        ("STRING", "DOUBLE", "inf"),
        ("STRING", "DOUBLE", ""),
        ("STRING", "BOOLEAN", "maybe"),
        ("STRING", "DECIMAL(5, 2)", "1,5"),
        ("STRING", "DATE", "2026-02-29"),
        ("STRING", "DATE", "2026-13-01"),
        ("STRING", "DATE", "soon"),
        ("STRING", "TIME(0)", "25:00:00"),
        ("STRING", "TIME(0)", "noon"),
        ("STRING", "TIMESTAMP(3)", "2026-06-26 25:00:00"),
        ("STRING", "TIMESTAMP(3)", "2026-06-26 10:00"),
        ("STRING", "TIMESTAMP(2)", "1500"),
        ("STRING", "TIMESTAMP(9)", "9999-01-01"),
        ("BYTES", "STRING", b"\xff"),
        ("DOUBLE", "DECIMAL(5, 2)", math.nan),
    ],
)
def test_a_value_that_cannot_be_cast_is_an_error_that_names_both_types(source, target, value):
    array = pa.array([value], arrow_type(T(source)))

    with pytest.raises(DataMismatch, match=f"type {source} cannot be read as") as caught:
        cast_array(array, T(source), T(target))

    assert str(T(target)) in str(caught.value)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("BOOLEAN", "DATE"),
        ("DATE", "INT"),
        ("DOUBLE", "BOOLEAN"),
        ("SMALLINT", "TIMESTAMP(3)"),
        ("TIMESTAMP(3)", "SMALLINT"),
        ("TIMESTAMP(3)", "DECIMAL(10, 0)"),
        ("TIME(3)", "TIME(0)"),
        ("INT", "BYTES"),
        ("VARIANT", "STRING"),
    ],
)
def test_a_cast_that_does_not_exist_is_refused(source, target):
    assert find_cast(T(source), T(target)) is None
    with pytest.raises(Unsupported, match="cannot be read as"):
        cast_array(pa.nulls(1), T(source), T(target))


def test_nested_values_without_a_text_are_refused():
    assert find_cast(ArrayType(True, T("VARIANT")), T("STRING")) is None
    assert find_cast(RowType(True, (DataField(1, "v", T("BLOB")),)), T("STRING")) is None
    assert find_cast(MapType(True, T("INT"), T("VARIANT")), T("STRING")) is None
    assert find_cast(T("STRING"), ArrayType(True, T("INT"))) is None


def test_a_cast_of_no_rows_gives_no_rows():
    for source, target in (
        ("DOUBLE", "STRING"),
        ("STRING", "DECIMAL(3, 1)"),
        ("BYTES", "BINARY(2)"),
    ):
        empty = pa.array([], arrow_type(T(source)))
        assert cast_array(empty, T(source), T(target)).equals(pa.array([], arrow_type(T(target))))

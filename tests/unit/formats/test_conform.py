"""Conversions from what files hold to what schemas say."""

import struct
from decimal import Decimal

import pyarrow as pa
import pytest

from emberlake.formats.conform import decimal_from_bytes, is_identical, plan_conversion
from emberlake.types import AtomicType, DataField, RowType

JULIAN_1970 = 2_440_588


def converted(array: pa.Array, column_type: str) -> pa.Array:
    convert = plan_conversion(array.type, AtomicType(column_type))
    assert convert is not None
    return convert(array)


def int96(nanos_of_day: int, julian_day: int) -> bytes:
    return struct.pack("<qi", nanos_of_day, julian_day)


def test_equal_types_need_no_conversion() -> None:
    assert plan_conversion(pa.int32(), AtomicType("INT")) is None
    assert plan_conversion(pa.timestamp("ns", "UTC"), AtomicType("TIMESTAMP_LTZ(9)")) is None


def test_names_of_children_count() -> None:
    item, element = (pa.list_(pa.field(name, pa.int32())) for name in ("item", "element"))

    assert item == element
    assert not is_identical(item, element)
    assert is_identical(element, element)


def test_coarser_timestamps_go_towards_the_past() -> None:
    array = pa.array([None, -1, 0, 999, 1000, -1000, -1001], pa.timestamp("ns")).slice(1)

    micros = converted(array, "TIMESTAMP(6)")

    assert micros.view(pa.int64()).to_pylist() == [-1, 0, 0, 1, -1, -2]


def test_int96_may_count_back_from_midnight() -> None:
    # Java stores instants before 1970 with a negative time of the day.
    array = pa.array(
        [
            int96(1, JULIAN_1970),
            int96(-1, JULIAN_1970),
            int96(-86_399_999_999_999, 2_440_580),
            None,
        ],
        pa.binary(12),
    )

    nanos = converted(array, "TIMESTAMP(9)").view(pa.int64()).to_pylist()

    assert nanos == [1, -1, -9 * 86_400 * 10**9 + 1, None]
    assert converted(array, "TIMESTAMP(0)").view(pa.int64()).to_pylist() == [
        0, -1, -9 * 86_400, None,
    ]  # fmt: skip


def test_int96_reaches_every_year_of_coarser_timestamps() -> None:
    array = pa.array([int96(0, JULIAN_1970 + 2_932_896)], pa.binary(12))

    assert converted(array, "TIMESTAMP(6)").to_pylist()[0].year == 9999


def test_int96_is_not_read_in_rows_that_are_null() -> None:
    field = pa.field("at", pa.binary(12), nullable=False)
    beyond = pa.array([int96(0, 2**31 - 1), int96(7, JULIAN_1970)], field.type)
    rows = pa.StructArray.from_arrays([beyond], fields=[field], mask=pa.array([True, False]))
    column = RowType(True, (DataField(0, "at", AtomicType("TIMESTAMP(9)", nullable=False)),))

    convert = plan_conversion(rows.type, column)

    assert convert is not None
    first, second = convert(rows)
    assert not first.is_valid
    assert second["at"].value == 7


@pytest.mark.parametrize("source", [pa.int32(), pa.int64()])
def test_bare_integers_are_unscaled_decimals(source: pa.DataType) -> None:
    array = pa.array([0, 150, None, -1], source).slice(1)

    assert converted(array, "DECIMAL(9, 2)").to_pylist() == [
        Decimal("1.50"),
        None,
        Decimal("-0.01"),
    ]


def test_bytes_are_unscaled_decimals() -> None:
    array = pa.array([b"\x01", b"\xff", b"\x00\x80", b"\xff" * 20, None, b"\x80" + b"\0" * 15])

    decimals = decimal_from_bytes(array, pa.decimal128(38, 0))

    assert decimals.to_pylist()[:5] == [1, -1, 128, -1, None]


def test_a_decimal_too_wide_for_arrow_is_refused() -> None:
    with pytest.raises(pa.ArrowInvalid, match="17 bytes"):
        decimal_from_bytes(pa.array([b"\x01" + b"\0" * 16]), pa.decimal128(38, 0))


@pytest.mark.parametrize(
    ("source", "column_type"),
    [
        (pa.string(), "INT"),
        (pa.int32(), "STRING"),
        (pa.float64(), "FLOAT"),
        (pa.int64(), "TIMESTAMP(3)"),
        (pa.timestamp("ms"), "DATE"),
        (pa.string(), "DECIMAL(9, 2)"),
        (pa.int32(), "BOOLEAN"),
        (pa.list_(pa.int32()), "INT"),
    ],
)
def test_types_that_have_nothing_in_common_are_refused(source, column_type: str) -> None:
    with pytest.raises(ValueError, match="the file holds"):
        plan_conversion(source, AtomicType(column_type))

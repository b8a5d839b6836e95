"""Values go to Arrow and back, and are printed."""

from decimal import Decimal

import pyarrow as pa
import pytest

from emberlake.spec.values import (
    format_value,
    from_arrow_array,
    to_arrow_array,
    to_arrow_scalar,
)
from emberlake.types import (
    ArrayType,
    AtomicType,
    DataField,
    MapType,
    MultisetType,
    RowType,
    VectorType,
    arrow_type,
)

NANOS = 1_782_468_000_123_456_789  # 2026-06-26 10:00:00.123456789
ISO = "2026-06-26 10:00:00.123456789"

ROW = RowType(
    True,
    (
        DataField(1, "t", AtomicType("TIMESTAMP(3)")),
        DataField(2, "m", MapType(True, AtomicType("STRING"), ArrayType(True, AtomicType("DATE")))),
    ),
)


@pytest.mark.parametrize(
    ("data_type", "values"),
    [
        (AtomicType("BOOLEAN"), [True, None, False]),
        (AtomicType("DECIMAL(38, 10)"), [Decimal("1.0000000000"), None]),
        (AtomicType("DATE"), [-719_528, None, 20630]),
        (AtomicType("TIME"), [0, 86_399_999, None]),
        (AtomicType("TIMESTAMP(0)"), [-(10**22), None, 10**22]),
        (AtomicType("TIMESTAMP(9)"), [NANOS, None]),
        (AtomicType("TIMESTAMP_LTZ(6)"), [NANOS - 789, None]),
        (AtomicType("BYTES"), [b"", None, b"\xff"]),
        (ArrayType(True, AtomicType("TIMESTAMP(3)")), [[10**6, None], [], None]),
        (MultisetType(True, AtomicType("STRING")), [[("a", 2)], None]),
        (VectorType(True, AtomicType("FLOAT"), 2), [[1.0, 2.0], [0.5, 0.25]]),
        (ROW, [None, (5_000_000, [("k", [1, None]), ("j", None)]), (None, None), (1_000_000, [])]),
        (RowType(True, ()), [(), None]),
    ],
)
def test_values_survive_the_way_to_arrow_and_back(data_type, values):
    array = to_arrow_array(data_type, values)

    assert array.type == arrow_type(data_type)
    assert from_arrow_array(data_type, array) == values
    assert from_arrow_array(data_type, array[1:]) == values[1:]
    assert from_arrow_array(data_type, pa.chunked_array([array, array[:1]])) == [*values, values[0]]
    assert [to_arrow_scalar(data_type, v).is_valid for v in values] == [
        v is not None for v in values
    ]


def test_arrays_of_another_arrow_type_are_cast():
    array = pa.array(["a", None]).dictionary_encode()

    assert from_arrow_array(AtomicType("STRING"), array) == ["a", None]


@pytest.mark.parametrize(
    ("data_type", "value", "text"),
    [
        ("INT", None, "null"),
        ("BOOLEAN", True, "true"),
        ("INT", -5, "-5"),
        ("FLOAT", 0.10000000149011612, "0.1"),
        ("DECIMAL(10, 8)", Decimal("1E-8"), "0.00000001"),
        ("STRING", "it's", "it's"),
        ("BYTES", b"\x00\xff", "0x00ff"),
        ("DATE", 20630, "2026-06-26"),
        ("DATE", -735_525, "-0044-03-15"),
        ("TIME", 37_230_500, "10:20:30.5"),
        ("TIMESTAMP(9)", NANOS, ISO),
        ("TIMESTAMP(9)", -1, "1969-12-31 23:59:59.999999999"),
        ("TIMESTAMP_LTZ(3)", 0, "1970-01-01 00:00:00Z"),
    ],
)
def test_a_value_is_printed_for_people(data_type, value, text):
    assert format_value(AtomicType(data_type), value) == text


def test_nested_values_are_printed_for_people():
    value = (5_000_000, [("k", [1, None]), ("j", None)])

    text = format_value(ROW, value)

    assert text == "{t: 1970-01-01 00:00:00.005, m: {k: [1970-01-02, null], j: null}}"
    assert format_value(MultisetType(True, AtomicType("DATE")), [(0, 2)]) == "{1970-01-01: 2}"

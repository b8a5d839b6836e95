import struct
from decimal import Decimal

import pytest

from emberlake.base.hashing import murmur3
from emberlake.errors import InvalidInput, Unsupported
from emberlake.spec.binary_row import (
    CorruptRow,
    decode_row,
    encode_row,
    encode_row_body,
    null_area_size,
)
from emberlake.types import (
    ArrayType,
    AtomicType,
    DataField,
    MapType,
    MultisetType,
    RowType,
    VectorType,
)
from row_vectors import ROW_VECTORS, RowVector

INT = AtomicType("INT")
STRING = AtomicType("STRING")


def nested_bytes(data_type, value) -> str:
    """The bytes of a nested value: what stands behind the one slot of its row."""
    return encode_row_body([data_type], [value])[16:].hex()


@pytest.mark.parametrize("vector", ROW_VECTORS)
def test_a_row_has_the_bytes_of_the_reference(vector: RowVector) -> None:
    assert encode_row(vector.types, vector.values).hex() == vector.raw


@pytest.mark.parametrize("vector", ROW_VECTORS)
def test_the_bytes_of_the_reference_give_the_row(vector: RowVector) -> None:
    assert decode_row(vector.types, bytes.fromhex(vector.raw)) == vector.values


@pytest.mark.parametrize("vector", ROW_VECTORS)
def test_a_row_has_the_hash_of_the_reference(vector: RowVector) -> None:
    assert murmur3(encode_row_body(vector.types, vector.values)) == vector.hash


def test_from_57_fields_on_null_bits_take_two_words() -> None:
    body = encode_row_body([INT] * 57, [0] * 57)

    assert [null_area_size(n) for n in (0, 56, 57, 120, 121)] == [8, 8, 16, 16, 24]
    assert len(body) == 16 + 57 * 8
    assert murmur3(body) == 1861663351


def test_nulls_of_wide_rows_are_found_again() -> None:
    values = [None if i % 3 else i for i in range(130)]

    assert decode_row([INT] * 130, encode_row([INT] * 130, values)) == tuple(values)


@pytest.mark.parametrize("type_text", ["TIMESTAMP(6)", "DECIMAL(38, 10)"])
def test_a_null_without_reserved_space_is_read_too(type_text: str) -> None:
    raw = "00000001" + "0001000000000000" + "00" * 8

    assert decode_row([AtomicType(type_text)], bytes.fromhex(raw)) == (None,)


def test_arrays_have_the_bytes_of_the_reference() -> None:
    assert nested_bytes(ArrayType(True, INT), [1, None, 3]) == (
        "030000000200000001000000000000000300000000000000"
    )
    assert nested_bytes(ArrayType(True, STRING), ["a", "hello world"]) == (
        "020000000000000061000000000000810b0000001800000068656c6c6f20776f726c640000000000"
    )


def test_maps_have_the_bytes_of_the_reference() -> None:
    expected = "1000000001000000000000006b0000000000008101000000000000000900000000000000"

    raw = nested_bytes(MapType(True, STRING.with_nullable(False), INT), [("k", 9)])

    assert raw.startswith(expected)
    assert raw[len(expected) :] == "00" * 4  # padding inside the row


def test_nested_values_come_back() -> None:
    inner = RowType(True, (DataField(2, "x", INT), DataField(3, "t", AtomicType("TIMESTAMP(9)"))))
    types = [
        ArrayType(True, AtomicType("DECIMAL(30, 2)")),
        MapType(True, STRING, ArrayType(True, AtomicType("BOOLEAN"))),
        MultisetType(True, STRING),
        inner,
        ArrayType(True, inner),
        ArrayType(True, AtomicType("SMALLINT")),
    ]
    values = (
        [Decimal("1.50"), None, Decimal("-99999999999999999999.99")],
        [("a key that is long", [True, None, False]), ("b", None), ("c", [])],
        [("x", 2), ("yyyyyyyyyyyyyyyy", 1)],
        (None, -1),
        [(1, None), None, (2, 1_700_000_000_123_456_789)],
        list(range(-40, 40)),
    )

    assert decode_row(types, encode_row(types, values)) == values


def test_a_null_element_reserves_no_space() -> None:
    raw = nested_bytes(ArrayType(True, AtomicType("TIMESTAMP(6)")), [None])

    assert raw == "0100000001000000" + "00" * 8


def test_every_nan_is_the_same_key() -> None:
    odd = struct.unpack("<d", bytes.fromhex("010000000000f8ff"))[0]

    raw = encode_row([AtomicType("DOUBLE")], [odd])

    assert raw.hex().endswith("000000000000f87f")


@pytest.mark.parametrize(
    ("type_text", "value"),
    [
        ("INT", 2**31),
        ("TINYINT", 128),
        ("INT", "1"),
        ("STRING", 1),
        ("STRING", "\ud800"),
        ("BYTES", "text"),
        ("DECIMAL(4, 2)", Decimal("1.234")),
        ("DECIMAL(4, 2)", Decimal("100.00")),
        ("DECIMAL(4, 2)", Decimal("NaN")),
        ("TIMESTAMP(6)", 1.5),
        ("TIMESTAMP(3)", 10**40),
    ],
)
def test_a_value_that_does_not_fit_its_type_is_refused(type_text: str, value: object) -> None:
    with pytest.raises(InvalidInput):
        encode_row([AtomicType(type_text)], [value])


def test_a_row_needs_a_value_for_each_field() -> None:
    with pytest.raises(InvalidInput, match="1 values do not make a row of 2 fields"):
        encode_row([INT, INT], [1])


def test_values_of_types_without_a_row_form_are_refused() -> None:
    vector = VectorType(True, AtomicType("FLOAT"), 2)

    assert decode_row([vector], encode_row([vector], [None])) == (None,)
    with pytest.raises(Unsupported, match="VECTOR"):
        encode_row([vector], [[1.0, 2.0]])
    with pytest.raises(Unsupported, match="VARIANT"):
        encode_row([AtomicType("VARIANT")], [b"x"])


@pytest.mark.parametrize(
    ("types", "raw"),
    [
        ([INT], b""),
        ([INT], bytes.fromhex("00000002") + bytes(24)),
        ([INT], bytes.fromhex("00000001") + bytes(8)),
        ([STRING], bytes.fromhex("00000001" + "00" * 8 + "ff000000" + "10000000")),
        ([STRING], bytes.fromhex("00000001" + "00" * 8 + "ffff000000000082")),
        ([STRING], bytes.fromhex("00000001" + "00" * 8 + "000000000000008f")),
        ([AtomicType("TIMESTAMP(6)")], bytes.fromhex("00000001" + "00" * 8 + "00000000ff000000")),
        ([AtomicType("TIMESTAMP(6)")], bytes.fromhex("00000001" + "00" * 8 + "ffffff0010000000")),
        ([AtomicType("DECIMAL(2, 0)")], encode_row([AtomicType("BIGINT")], [100])),
        ([AtomicType("DECIMAL(20, 0)")], bytes.fromhex("00000001" + "00" * 16)),
        ([ArrayType(True, INT)], bytes.fromhex("00000001" + "00" * 8 + "0400000010000000ff000000")),
        ([ArrayType(True, INT)], bytes.fromhex("00000001" + "00" * 16)),
        (
            [MapType(True, INT, INT)],
            bytes.fromhex("00000001" + "00" * 8 + "0400000010000000ffffffff"),
        ),
    ],
)
def test_bytes_that_are_no_such_row_are_refused(types: list, raw: bytes) -> None:
    with pytest.raises(CorruptRow):
        decode_row(types, raw)

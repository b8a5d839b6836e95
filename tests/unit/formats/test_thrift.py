"""Thrift's compact protocol on known bytes."""

import pytest

from emberlake.formats import thrift
from emberlake.formats.thrift import decode_struct, encode_fields, encode_struct, encode_structs

# field 1: i32 -1; field 3: true; field 20: "ab"; field 21: [1, 2]; field 22: struct {1: false}
VALUE = {
    1: (thrift.I32, -1),
    3: (thrift.TRUE, True),
    20: (thrift.BINARY, b"ab"),
    21: (thrift.LIST, (thrift.I64, [1, 2])),
    22: (thrift.STRUCT, {1: (thrift.FALSE, False)}),
}
RAW = bytes.fromhex("15 01 21 08 28 02 6162 19 26 02 04 1c 12 00 00")


def test_known_bytes() -> None:
    assert encode_struct(VALUE) == RAW
    assert decode_struct(RAW) == VALUE


def test_a_struct_can_be_put_together_from_parts() -> None:
    inner = [{1: (thrift.I32, n)} for n in range(20)]
    whole = {2: (thrift.I64, 5), 4: (thrift.LIST, (thrift.STRUCT, inner)), 6: (thrift.I32, 1)}

    parts = (
        encode_fields({2: (thrift.I64, 5)})
        + encode_structs(4, [encode_struct(s) for s in inner], after=2)
        + encode_fields({6: (thrift.I32, 1)}, after=4)
        + thrift.STOP
    )

    assert parts == encode_struct(whole)


@pytest.mark.parametrize("size", range(len(RAW)))
def test_cut_bytes_are_refused(size: int) -> None:
    with pytest.raises(ValueError, match="end inside"):
        decode_struct(RAW[:size])


def test_unknown_types_are_refused() -> None:
    with pytest.raises(ValueError, match="not a type"):
        decode_struct(b"\x1f\x00")
    with pytest.raises(ValueError, match="not a type"):
        encode_struct({1: (15, None)})

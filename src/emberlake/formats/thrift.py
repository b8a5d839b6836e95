"""The compact protocol of Thrift, as far as Parquet footers need it.

A struct is a dictionary from field id to ``(type, value)``; a list is ``(element type, values)``.
Nothing is interpreted, so unknown fields survive decoding and encoding.
"""

import struct
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

Struct: TypeAlias = dict[int, tuple[int, Any]]  # values of any type

TRUE: Final = 1
FALSE: Final = 2
BYTE: Final = 3
I16: Final = 4
I32: Final = 5
I64: Final = 6
DOUBLE: Final = 7
BINARY: Final = 8
LIST: Final = 9
SET: Final = 10
STRUCT: Final = 12
STOP: Final = b"\0"

_INTEGERS: Final = frozenset({I16, I32, I64})
_LISTS: Final = frozenset({LIST, SET})


def decode_struct(raw: bytes) -> Struct:
    """The struct that starts at the first byte; raises ``ValueError`` if the bytes are not one."""
    try:
        return _Decoder(raw).struct()
    except (IndexError, struct.error) as error:
        raise ValueError("the bytes end inside a Thrift struct") from error


def encode_struct(value: Struct) -> bytes:
    """The bytes of a struct, fields in ascending order of id."""
    return encode_fields(value) + STOP


def encode_fields(value: Struct, *, after: int = 0) -> bytes:
    """The bytes of these fields of a struct, which follow the field ``after``; no end mark."""
    out = bytearray()
    _encode_fields(out, value, after)
    return bytes(out)


def encode_structs(field_id: int, encoded: Sequence[bytes], *, after: int) -> bytes:
    """The bytes of a field that is a list of structs, each of them already encoded."""
    out = bytearray()
    _encode_header(out, field_id - after, field_id, LIST)
    _encode_list_header(out, len(encoded), STRUCT)
    return bytes(out) + b"".join(encoded)


class _Decoder:
    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._at = 0

    def struct(self) -> Struct:
        # Field header: high 4 bits are the step from the last field id, or 0 and then the id in
        # full; low 4 bits are the type. A zero byte ends the struct.
        out: Struct = {}
        field_id = 0
        while header := self._take(1)[0]:
            step, kind = header >> 4, header & 0x0F
            field_id = field_id + step if step else self._zigzag()
            # Booleans in structs have their value in the type.
            out[field_id] = (kind, kind == TRUE if kind <= FALSE else self._value(kind))
        return out

    def _value(self, kind: int) -> Any:
        if kind in _INTEGERS:
            return self._zigzag()
        if kind == BINARY:
            return self._take(self._varint())
        if kind in _LISTS:
            return self._list()
        if kind == STRUCT:
            return self.struct()
        if kind <= BYTE:
            return self._take(1)[0]
        if kind == DOUBLE:
            return struct.unpack("<d", self._take(8))[0]
        raise ValueError(f"{kind} is not a type of Thrift's compact protocol")

    def _list(self) -> tuple[int, list[Any]]:
        # List header: high 4 bits are the size, or 15 and then the size in full.
        header = self._take(1)[0]
        size, kind = header >> 4, header & 0x0F
        size = self._varint() if size == 15 else size
        return kind, [self._value(kind) for _ in range(size)]

    def _take(self, size: int) -> bytes:
        start, self._at = self._at, self._at + size
        if self._at > len(self._raw):
            raise IndexError
        return self._raw[start : self._at]

    def _varint(self) -> int:
        byte = self._raw[self._at]
        self._at += 1
        value, shift = byte & 0x7F, 7
        while byte & 0x80:
            byte = self._raw[self._at]
            self._at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
        return value

    def _zigzag(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)


def _encode_fields(out: bytearray, value: Struct, last: int) -> None:
    for field_id in sorted(value):
        kind, content = value[field_id]
        if kind <= FALSE:
            _encode_header(out, field_id - last, field_id, TRUE if content else FALSE)
        else:
            _encode_header(out, field_id - last, field_id, kind)
            _encode_value(out, kind, content)
        last = field_id


def _encode_header(out: bytearray, step: int, field_id: int, kind: int) -> None:
    if 0 < step < 16:
        out.append(step << 4 | kind)
    else:
        out.append(kind)
        _encode_zigzag(out, field_id)


def _encode_list_header(out: bytearray, size: int, kind: int) -> None:
    out.append(min(size, 15) << 4 | kind)
    if size >= 15:
        _encode_varint(out, size)


def _encode_value(out: bytearray, kind: int, value: Any) -> None:
    if kind in _INTEGERS:
        _encode_zigzag(out, value)
    elif kind == BINARY:
        _encode_varint(out, len(value))
        out += value
    elif kind in _LISTS:
        element, values = value
        _encode_list_header(out, len(values), element)
        for item in values:
            _encode_value(out, element, item)
    elif kind == STRUCT:
        _encode_fields(out, value, 0)
        out += STOP
    elif kind <= BYTE:
        out.append(value)
    elif kind == DOUBLE:
        out += struct.pack("<d", value)
    else:
        raise ValueError(f"{kind} is not a type of Thrift's compact protocol")


def _encode_varint(out: bytearray, value: int) -> None:
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _encode_zigzag(out: bytearray, value: int) -> None:
    _encode_varint(out, value << 1 if value >= 0 else (-value << 1) - 1)

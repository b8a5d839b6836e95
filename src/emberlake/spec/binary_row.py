"""BinaryRow: how the format serializes partitions, keys and statistics, one row at a time.

Spec: "BinaryRow, BinaryArray, BinaryMap". All numbers are little-endian except the arity::

    serialized   4 bytes   arity, big-endian; then the row
    row          1 byte    row kind, 0 in metadata
                 ...       one bit per field, 1 is null; with the row kind padded to 8 bytes
                 8 bytes   a slot for each field: the value, or offset << 32 | length
                 ...       values that do not fit a slot, in field order, padded to 8 bytes each
    array        4 bytes   number of elements
                 ...       one bit per element, 1 is null, padded to 4 bytes
                 ...       elements in their own width (8 bytes when variable), padded to 8 bytes
                 ...       values that do not fit, as in a row
    map          4 bytes   size of the array of keys; then that array; then the array of values

Offsets count from the first byte of the row or array. A null TIMESTAMP(> 3) or DECIMAL(> 18) in
a row keeps its offset and reserves its zeroed space: partitions and hashes depend on it. Readers
see the null bit and take both forms.

``row_columns`` does the same for many rows at once.
"""

import math
import struct
from collections.abc import Sequence
from decimal import Context, Decimal
from typing import Any, Final, TypeAlias

from emberlake.errors import EmberlakeError, InvalidInput, Unsupported
from emberlake.spec.values import Value
from emberlake.types import (
    ArrayType,
    AtomicType,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeRoot,
)

NANOS_PER_MILLI: Final = 1_000_000
MAX_INLINE_BYTES: Final = 7
DECIMAL_BYTES: Final = 16

_ARITY: Final = struct.Struct(">i")
_LENGTH: Final = struct.Struct("<i")
_SLOT: Final = struct.Struct("<Q")
_LONG: Final = struct.Struct("<q")
_FIXED: Final = {
    TypeRoot.BOOLEAN: struct.Struct("<?"),
    TypeRoot.TINYINT: struct.Struct("<b"),
    TypeRoot.SMALLINT: struct.Struct("<h"),
    TypeRoot.INT: struct.Struct("<i"),
    TypeRoot.DATE: struct.Struct("<i"),
    TypeRoot.TIME: struct.Struct("<i"),
    TypeRoot.BIGINT: struct.Struct("<q"),
    TypeRoot.FLOAT: struct.Struct("<f"),
    TypeRoot.DOUBLE: struct.Struct("<d"),
}
_TEXT: Final = frozenset({TypeRoot.CHAR, TypeRoot.VARCHAR})
_BYTES: Final = frozenset(
    {
        TypeRoot.BINARY,
        TypeRoot.VARBINARY,
        TypeRoot.BLOB,
        TypeRoot.GEOMETRY,
        TypeRoot.GEOGRAPHY,
    }
)
_COUNT: Final = AtomicType("INT NOT NULL")
# Wide enough for any decimal of the format; the default context would round at 28 digits.
EXACT: Final = Context(prec=100)

_Buffer: TypeAlias = bytes | memoryview


class CorruptRow(EmberlakeError, ValueError):
    """Bytes that are not a serialized row of the given types.

    A caller that knows the file turns it into a ``CorruptFile``.
    """


def null_area_size(arity: int) -> int:
    """The bytes before the first slot: the row kind and the null bits."""
    return (arity + 63 + 8) // 64 * 8


def encode_row(types: Sequence[DataType], values: Sequence[Value]) -> bytes:
    """The serialized row as manifests store it: arity and row."""
    return _ARITY.pack(len(types)) + encode_row_body(types, values)


def encode_row_body(types: Sequence[DataType], values: Sequence[Value]) -> bytes:
    """The row without its arity, which is the form that is hashed."""
    if len(types) != len(values):
        raise InvalidInput(f"{len(values)} values do not make a row of {len(types)} fields")
    header = null_area_size(len(types))
    fixed = bytearray(header + 8 * len(types))
    tail = bytearray()
    for index, (data_type, value) in enumerate(zip(types, values, strict=True)):
        slot = header + 8 * index
        if value is None:
            bit = 8 + index
            fixed[bit >> 3] |= 1 << (bit & 7)
            _reserve_null(data_type, fixed, slot, tail)
        else:
            _put(data_type, value, fixed, slot, tail)
    return bytes(fixed + tail)


def decode_row(types: Sequence[DataType], raw: bytes) -> tuple[Value, ...]:
    """The values of a serialized row."""
    if len(raw) < _ARITY.size:
        raise CorruptRow(f"{len(raw)} bytes are not a serialized row")
    (arity,) = _ARITY.unpack_from(raw)
    if arity != len(types):
        raise CorruptRow(f"a row of {arity} fields cannot be read as {len(types)} fields")
    return _decode_body(types, memoryview(raw)[_ARITY.size :])


def unscaled(data_type: AtomicType, value: Decimal) -> int:
    """The unscaled whole number of a decimal; a decimal that does not fit is refused."""
    scaled = value.scaleb(data_type.scale, EXACT) if value.is_finite() else value
    number = int(scaled) if value.is_finite() else 0
    if number != scaled or abs(number) >= 10**data_type.precision:
        raise InvalidInput(f"{value} does not fit {data_type}")
    return number


# ---------------------------------------------------------------------------------- encoding


def _reserve_null(data_type: DataType, fixed: bytearray, slot: int, tail: bytearray) -> None:
    space = _reserved_bytes(data_type)
    if space:
        _SLOT.pack_into(fixed, slot, (len(fixed) + len(tail)) << 32)
        tail += bytes(space)


def _reserved_bytes(data_type: DataType) -> int:
    if not isinstance(data_type, AtomicType):
        return 0
    if data_type.root is TypeRoot.DECIMAL and not data_type.is_compact:
        return DECIMAL_BYTES
    return 8 if data_type.root.is_timestamp and not data_type.is_compact else 0


def _put(data_type: DataType, value: Any, fixed: bytearray, at: int, tail: bytearray) -> None:
    """Write a value into its place in the fixed part; what does not fit goes to the tail."""
    try:
        match data_type:
            case AtomicType():
                _put_atomic(data_type, value, fixed, at, tail)
            case ArrayType(element=element):
                _put_section(_encode_array(element, value), fixed, at, tail)
            case MapType(key=key, value=item):
                _put_section(_encode_map(key, item, value), fixed, at, tail)
            case MultisetType(element=element):
                _put_section(_encode_map(element, _COUNT, value), fixed, at, tail)
            case RowType(fields=fields):
                row = encode_row_body([f.type for f in fields], value)
                _put_section(row, fixed, at, tail)
            case _:
                raise _refusal(data_type)
    except (struct.error, TypeError, AttributeError, OverflowError, UnicodeError) as error:
        raise InvalidInput(f"{value!r} is not a value of {data_type}: {error}") from error


def _put_atomic(
    data_type: AtomicType, value: Any, fixed: bytearray, at: int, tail: bytearray
) -> None:
    root = data_type.root
    if packer := _FIXED.get(root):
        packer.pack_into(fixed, at, _canonical_nan(value))
    elif root in _TEXT:
        _put_bytes(value.encode(), fixed, at, tail)
    elif root in _BYTES:
        _put_bytes(bytes(memoryview(value)), fixed, at, tail)
    elif root.is_timestamp:
        millis, nanos = divmod(value, NANOS_PER_MILLI)
        if data_type.is_compact:
            _LONG.pack_into(fixed, at, millis)
        else:
            _SLOT.pack_into(fixed, at, (len(fixed) + len(tail)) << 32 | nanos)
            tail += _LONG.pack(millis)
    elif root is TypeRoot.DECIMAL:
        number = unscaled(data_type, value)
        if data_type.is_compact:
            _LONG.pack_into(fixed, at, number)
        else:
            _put_wide_decimal(number, fixed, at, tail)
    else:
        raise _refusal(data_type)


def _canonical_nan(value: Any) -> Any:
    # Many bit patterns are NaN; a key must have one hash, so all become the usual one.
    return math.nan if value != value else value  # noqa: PLR0124


def _put_bytes(raw: bytes, fixed: bytearray, at: int, tail: bytearray) -> None:
    if len(raw) <= MAX_INLINE_BYTES:
        fixed[at : at + len(raw)] = raw
        fixed[at + 7] = 0x80 | len(raw)
    else:
        _put_section(raw, fixed, at, tail)


def _put_wide_decimal(number: int, fixed: bytearray, at: int, tail: bytearray) -> None:
    magnitude = number if number >= 0 else ~number
    raw = number.to_bytes(magnitude.bit_length() // 8 + 1, "big", signed=True)
    _put_section(raw, fixed, at, tail)
    tail += bytes(DECIMAL_BYTES - (len(raw) + 7) // 8 * 8)


def _put_section(raw: bytes, fixed: bytearray, at: int, tail: bytearray) -> None:
    _SLOT.pack_into(fixed, at, (len(fixed) + len(tail)) << 32 | len(raw))
    tail += raw
    tail += bytes(-len(raw) % 8)


def _encode_array(element: DataType, values: Sequence[Value]) -> bytes:
    header = _array_header_size(len(values))
    width = _element_width(element)
    fixed = bytearray((header + width * len(values) + 7) // 8 * 8)
    tail = bytearray()
    _LENGTH.pack_into(fixed, 0, len(values))
    for index, value in enumerate(values):
        if value is None:  # unlike in rows, a null element never reserves space
            fixed[4 + (index >> 3)] |= 1 << (index & 7)
        else:
            _put(element, value, fixed, header + width * index, tail)
    return bytes(fixed + tail)


def _encode_map(key: DataType, item: DataType, pairs: Sequence[tuple[Value, Value]]) -> bytes:
    keys = _encode_array(key, [k for k, _ in pairs])
    return _LENGTH.pack(len(keys)) + keys + _encode_array(item, [v for _, v in pairs])


def _array_header_size(count: int) -> int:
    return 4 + (count + 31) // 32 * 4


def _element_width(element: DataType) -> int:
    packer = _FIXED.get(element.root) if isinstance(element, AtomicType) else None
    return packer.size if packer else 8


# ---------------------------------------------------------------------------------- decoding


def _decode_body(types: Sequence[DataType], body: _Buffer) -> tuple[Value, ...]:
    header = null_area_size(len(types))
    if len(body) < header + 8 * len(types):
        raise CorruptRow(f"{len(body)} bytes are too short for a row of {len(types)} fields")
    return tuple(
        None
        if body[(8 + index) >> 3] >> ((8 + index) & 7) & 1
        else _get(data_type, body, header + 8 * index)
        for index, data_type in enumerate(types)
    )


def _get(data_type: DataType, body: _Buffer, at: int) -> Any:
    match data_type:
        case AtomicType():
            return _get_atomic(data_type, body, at)
        case ArrayType(element=element):
            return _decode_array(element, _section(body, at))
        case MapType(key=key, value=item):
            return _decode_map(key, item, _section(body, at))
        case MultisetType(element=element):
            return _decode_map(element, _COUNT, _section(body, at))
        case RowType(fields=fields):
            return _decode_body([f.type for f in fields], _section(body, at))
        case _:
            raise _refusal(data_type)


def _get_atomic(data_type: AtomicType, body: _Buffer, at: int) -> Any:
    root = data_type.root
    if packer := _FIXED.get(root):
        return packer.unpack_from(body, at)[0]
    if root in _TEXT:
        return _decode_text(data_type, _get_bytes(body, at))
    if root in _BYTES:
        return _get_bytes(body, at)
    if root.is_timestamp:
        return _get_timestamp(data_type, body, at)
    if root is TypeRoot.DECIMAL:
        return _get_decimal(data_type, body, at)
    raise _refusal(data_type)


def _decode_text(data_type: AtomicType, raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise CorruptRow(f"{raw!r} is not UTF-8 text for {data_type}") from error


def _get_bytes(body: _Buffer, at: int) -> bytes:
    mark = body[at + 7]
    if mark & 0x80:
        length = mark & 0x7F
        if length > MAX_INLINE_BYTES:
            raise CorruptRow(f"{length} bytes do not fit inside a slot")
        return bytes(body[at : at + length])
    return bytes(_section(body, at))


def _get_timestamp(data_type: AtomicType, body: _Buffer, at: int) -> int:
    if data_type.is_compact:
        return int(_LONG.unpack_from(body, at)[0]) * NANOS_PER_MILLI
    (slot,) = _SLOT.unpack_from(body, at)
    offset, nanos = slot >> 32, slot & 0xFFFFFFFF
    if nanos >= NANOS_PER_MILLI:
        raise CorruptRow(f"{nanos} is not a number of nanoseconds within a millisecond")
    millis = _LONG.unpack(_slice(body, offset, 8))[0]
    return int(millis) * NANOS_PER_MILLI + int(nanos)


def _get_decimal(data_type: AtomicType, body: _Buffer, at: int) -> Decimal:
    if data_type.is_compact:
        number = _LONG.unpack_from(body, at)[0]
    else:
        raw = _section(body, at)
        if not 1 <= len(raw) <= DECIMAL_BYTES:
            raise CorruptRow(f"a decimal has 1 to {DECIMAL_BYTES} bytes, not {len(raw)}")
        number = int.from_bytes(raw, "big", signed=True)
    if abs(number) >= 10**data_type.precision:
        raise CorruptRow(f"{number} has more digits than {data_type}")
    return Decimal(number).scaleb(-data_type.scale, EXACT)


def _section(body: _Buffer, at: int) -> _Buffer:
    (slot,) = _SLOT.unpack_from(body, at)
    return _slice(body, slot >> 32, slot & 0xFFFFFFFF)


def _slice(body: _Buffer, offset: int, length: int) -> _Buffer:
    if offset + length > len(body):
        raise CorruptRow(
            f"a value at bytes {offset} to {offset + length} lies outside of {len(body)} bytes"
        )
    return body[offset : offset + length]


def _decode_array(element: DataType, body: _Buffer) -> list[Value]:
    if len(body) < 4:
        raise CorruptRow(f"{len(body)} bytes are not an array")
    (count,) = _LENGTH.unpack_from(body)
    header, width = _array_header_size(count), _element_width(element)
    if count < 0 or header + width * count > len(body):
        raise CorruptRow(f"{len(body)} bytes are too short for {count} elements of {element}")
    return [
        None
        if body[4 + (index >> 3)] >> (index & 7) & 1
        else _get(element, body, header + width * index)
        for index in range(count)
    ]


def _decode_map(key: DataType, item: DataType, body: _Buffer) -> list[tuple[Value, Value]]:
    if len(body) < 4:
        raise CorruptRow(f"{len(body)} bytes are not a map")
    (size,) = _LENGTH.unpack_from(body)
    if size < 0:
        raise CorruptRow(f"{size} is not a valid size of an array of keys")
    keys = _decode_array(key, _slice(body, 4, size))
    items = _decode_array(item, body[4 + size :])
    if len(keys) != len(items):
        raise CorruptRow(f"a map has {len(keys)} keys and {len(items)} values")
    return list(zip(keys, items, strict=True))


def _refusal(data_type: DataType) -> Unsupported:
    return Unsupported(f"values of type {data_type} are not supported inside serialized rows")

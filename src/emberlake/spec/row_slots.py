"""Decode one column of many serialized rows at once: the reverse of ``row_columns``.

Reads the slots of a field from every row, and the tails they point to, with a few gathers. Rows
come from files, so every offset and length is checked before it is used.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from emberlake.errors import Unsupported
from emberlake.spec.binary_row import (
    MAX_INLINE_BYTES,
    NANOS_PER_MILLI,
    CorruptRow,
    null_area_size,
)
from emberlake.spec.column_buffers import (
    I64,
    MILLIS_PER_UNIT,
    RAW_WORDS,
    U8,
    U64,
    UNITS_PER_MILLI,
    Mask,
    bytes_of,
    nulls_of,
    unaligned_words,
    zeroed,
)
from emberlake.types import AtomicType, DataType, TypeRoot, arrow_type

_HIGH: Final = np.uint64(32)
_NARROW: Final = {**RAW_WORDS, TypeRoot.FLOAT: np.uint32}


def decode_column(types: Sequence[DataType], rows: pa.Array, index: int) -> pa.Array:
    """Decode one atomic column of many serialized rows; a null row gives a null."""
    data_type = types[index]
    if not isinstance(data_type, AtomicType):
        raise Unsupported(f"values of type {data_type} cannot be decoded from serialized rows")
    if isinstance(rows, pa.ChunkedArray):
        rows = rows.combine_chunks()
    return _decode(data_type, _Slots.of(types, rows, index))


@dataclass(frozen=True, slots=True)
class _Slots:
    """One field of many rows: its slots, and the positions of slots and rows in the data."""

    data: U8
    row_starts: I64
    row_sizes: I64
    positions: I64
    slots: U64
    nulls: Mask

    @staticmethod
    def of(types: Sequence[DataType], rows: pa.Array, index: int) -> "_Slots":
        arity = len(types)
        header = null_area_size(arity)
        offsets, data = bytes_of(rows)
        missing = nulls_of(rows)
        starts, sizes = offsets[:-1], np.diff(offsets)
        present = np.ones(len(rows), dtype=np.bool_) if missing is None else ~missing
        _check_arity(data, starts, sizes, present, arity)
        # A missing row reads the first bytes of the data, whatever they are, and stays null.
        smallest = 4 + header + 8 * arity
        data = np.concatenate([data, np.zeros(smallest, dtype=np.uint8)])
        starts = np.where(present, starts, 0) + 4
        bit = 8 + index
        nulls = (data[starts + (bit >> 3)] >> np.uint8(bit & 7) & np.uint8(1)).astype(np.bool_)
        positions = starts + (header + 8 * index)
        slots = unaligned_words(data)[positions]
        return _Slots(data, starts, sizes - 4, positions, slots, nulls | ~present)

    def halves(self) -> tuple[I64, I64]:
        """The offset and the length of each slot's tail; zero for nulls."""
        slots = zeroed(self.slots, self.nulls)
        return (slots >> _HIGH).astype(np.int64), (slots & np.uint64(0xFFFFFFFF)).astype(np.int64)

    def tail_starts(self, offsets: I64, lengths: I64) -> I64:
        """The positions in the data of values after the slots."""
        outside = (offsets + lengths > self.row_sizes) & ~self.nulls
        if outside.any():
            row = int(np.argmax(outside))
            raise CorruptRow(
                f"row {row}: a value at bytes {offsets[row]} to {offsets[row] + lengths[row]} "
                f"lies outside of {self.row_sizes[row]} bytes"
            )
        return np.where(self.nulls, 0, self.row_starts + offsets)


def _check_arity(data: U8, starts: I64, sizes: I64, present: Mask, arity: int) -> None:
    short = present & (sizes < 4 + null_area_size(arity) + 8 * arity)
    words = unaligned_words(data)[np.where(short | ~present, 0, starts)].astype("<u4").byteswap()
    wrong = present & (short | (words != arity))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise CorruptRow(f"row {row} of {len(starts)} is not a serialized row of {arity} fields")


def _decode(data_type: AtomicType, rows: _Slots) -> pa.Array:
    root = data_type.root
    if root is TypeRoot.BOOLEAN:
        bits = np.packbits((rows.slots & np.uint64(0xFF)).astype(np.bool_), bitorder="little")
        return _array(data_type, rows.nulls, bits)
    if root in _NARROW:
        return _array(data_type, rows.nulls, rows.slots.astype(_NARROW[root]))
    if root in (TypeRoot.BIGINT, TypeRoot.DOUBLE):
        return _array(data_type, rows.nulls, rows.slots)
    if root is TypeRoot.DECIMAL:
        return _decode_decimal(data_type, rows)
    if root.is_timestamp:
        return _decode_timestamp(data_type, rows)
    if root.is_text or root.is_bytes or root is TypeRoot.BLOB:
        return _decode_bytes(data_type, rows)
    raise Unsupported(f"values of type {data_type} cannot be decoded from serialized rows")


def _decode_decimal(data_type: AtomicType, rows: _Slots) -> pa.Array:
    out = np.empty(2 * len(rows.slots), dtype=np.uint64)
    if data_type.is_compact:
        out[0::2] = rows.slots
        out[1::2] = (rows.slots.view(np.int64) >> np.int64(63)).view(np.uint64)
        return _array(data_type, rows.nulls, out)
    offsets, sizes = rows.halves()
    sizes = np.where(rows.nulls, 1, sizes)
    if ((sizes < 1) | (sizes > 16)).any():
        raise CorruptRow("a decimal has 1 to 16 bytes")
    # This may read eight bytes beyond a short value; the shift drops them again.
    starts = rows.tail_starts(offsets, sizes)
    words = unaligned_words(np.concatenate([rows.data, np.zeros(16, dtype=np.uint8)]))
    high, low = words[starts].byteswap().view(np.int64), words[starts + 8].byteswap()
    bits = (8 * (16 - sizes)).astype(np.uint64)
    within = bits & np.uint64(63)
    carried = (high.view(np.uint64) << ((np.uint64(64) - within) & np.uint64(63))).astype(np.uint64)
    by_word = bits >= np.uint64(64)
    shifted = high >> within.view(np.int64)
    mixed = low >> within | np.where(within == 0, np.uint64(0), carried)
    out[0::2] = np.where(by_word, shifted.view(np.uint64), mixed)
    out[1::2] = np.where(by_word, high >> np.int64(63), shifted).view(np.uint64)
    return _array(data_type, rows.nulls, out)


def _decode_timestamp(data_type: AtomicType, rows: _Slots) -> pa.Array:
    unit = arrow_type(data_type).unit
    if data_type.is_compact:
        millis = zeroed(rows.slots, rows.nulls).view(np.int64)
        return _array(data_type, rows.nulls, millis // MILLIS_PER_UNIT[unit])
    offsets, nanos = rows.halves()
    starts = rows.tail_starts(offsets, np.full(len(offsets), 8, dtype=np.int64))
    millis = zeroed(unaligned_words(rows.data)[starts], rows.nulls).view(np.int64)
    per_milli = UNITS_PER_MILLI[unit]
    limit = (2**63 - 1) // per_milli
    if (np.abs(millis) >= limit).any():
        raise CorruptRow(f"a timestamp does not fit {arrow_type(data_type)}")
    units = millis * per_milli + nanos // (NANOS_PER_MILLI // per_milli)
    return _array(data_type, rows.nulls, units)


def _decode_bytes(data_type: AtomicType, rows: _Slots) -> pa.Array:
    slots = zeroed(rows.slots, rows.nulls)
    is_inline = (slots >> np.uint64(63)).astype(np.bool_)
    inline_lengths = ((slots >> np.uint64(56)) & np.uint64(0x7F)).astype(np.int64)
    if (is_inline & (inline_lengths > MAX_INLINE_BYTES)).any():
        raise CorruptRow(f"{inline_lengths.max()} bytes do not fit inside a slot")
    offsets, sizes = rows.halves()
    lengths = np.where(is_inline, inline_lengths, sizes)
    tails = rows.tail_starts(np.where(is_inline, 0, offsets), lengths)
    starts = np.where(is_inline, rows.positions, tails)
    ends = np.cumsum(lengths)
    out = rows.data[np.repeat(starts - (ends - lengths), lengths) + np.arange(lengths.sum())]
    wide = pa.large_string() if data_type.root.is_text else pa.large_binary()
    array = pa.Array.from_buffers(
        wide,
        len(lengths),
        [_validity(rows.nulls), pa.py_buffer(np.concatenate([[0], ends])), pa.py_buffer(out)],
    )
    return _checked(data_type, array).cast(arrow_type(data_type))


def _checked(data_type: AtomicType, array: pa.Array) -> pa.Array:
    """The array, after a check of its text and of the digits of its decimals."""
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as error:
        raise CorruptRow(f"serialized rows do not hold {data_type} values: {error}") from error
    return array


def _array(data_type: AtomicType, nulls: Mask, values: npt.NDArray[Any]) -> pa.Array:
    buffers = [_validity(nulls), pa.py_buffer(np.ascontiguousarray(values))]
    array = pa.Array.from_buffers(arrow_type(data_type), len(nulls), buffers)
    return _checked(data_type, array)


def _validity(nulls: Mask) -> pa.Buffer | None:
    return pa.py_buffer(np.packbits(~nulls, bitorder="little")) if nulls.any() else None

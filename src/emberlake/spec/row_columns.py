"""BinaryRow for many rows at once: encode and hash by column; ``row_slots`` decodes.

Gives the bytes of ``binary_row`` without a Python step per row. A column puts two 32-bit words into
the slot of each row, and possibly more words after the slots: a constant number for timestamps and
wide decimals, as many as needed for long strings. Rows are processed in blocks that fit the
processor's cache.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from emberlake.base.hashing import DEFAULT_SEED, U32, finish_hashes, mix_scalar, mix_word
from emberlake.errors import InvalidInput, Unsupported
from emberlake.spec.binary_row import MAX_INLINE_BYTES, NANOS_PER_MILLI, null_area_size
from emberlake.spec.column_buffers import (
    I64,
    MILLIS_PER_UNIT,
    RAW_WORDS,
    U8,
    U64,
    UNITS_PER_MILLI,
    Mask,
    bytes_of,
    halves_of,
    nulls_of,
    raw_values,
    unaligned_words,
    zeroed,
)
from emberlake.spec.row_slots import decode_column
from emberlake.types import AtomicType, DataType, TypeRoot, arrow_type

ArrowColumn: TypeAlias = Any  # pa.Array | pa.ChunkedArray

__all__ = ["ArrowColumn", "decode_column", "encode_rows", "hash_rows"]

_BLOCK_ROWS: Final = 1 << 15
# The mask for the last eight-byte word of a value that has n bytes left.
_KEEP_BYTES: Final = np.array([(1 << (8 * n)) - 1 for n in range(9)], dtype=np.uint64)
# The magnitudes from which a whole number takes one more byte, including its sign bit.
_BYTE_STEPS: Final = np.array([1 << (8 * n - 1) for n in range(1, 9)], dtype=np.uint64)


def hash_rows(types: Sequence[DataType], columns: Sequence[ArrowColumn]) -> npt.NDArray[np.int32]:
    """The hash of every row, over the columns in their order. Buckets are derived from it."""
    blocks = list(_blocks(types, columns))
    out = np.empty(sum(block.num_rows for block in blocks), dtype=np.int32)
    at = 0
    for block in blocks:
        out[at : at + block.num_rows] = _hash_block(_lay_out(types, block.columns))
        at += block.num_rows
    return out


def encode_rows(types: Sequence[DataType], columns: Sequence[ArrowColumn]) -> pa.LargeBinaryArray:
    """Every row serialized with its arity, as by ``encode_row``."""
    parts: list[U32] = []
    sizes: list[I64] = []
    for block in _blocks(types, columns):
        words, block_sizes = _encode_block(_lay_out(types, block.columns))
        parts.append(words)
        sizes.append(block_sizes)
    lengths = np.concatenate([np.zeros(1, dtype=np.int64), *sizes])
    data = np.concatenate([np.empty(0, dtype=np.uint32), *parts])
    return pa.LargeBinaryArray.from_buffers(
        pa.large_binary(),
        len(lengths) - 1,
        [None, pa.py_buffer(np.cumsum(lengths)), pa.py_buffer(data)],
    )


# ------------------------------------------------------------------------------------ layout


@dataclass(frozen=True, slots=True)
class _Words:
    """After the slots: the same number of words in every row, each as a low and a high half."""

    words: tuple[U32, ...]


@dataclass(frozen=True, slots=True)
class _LongBytes:
    """After the slots: byte strings of some rows, those with the most words first."""

    rows: I64
    starts: I64
    lengths: I64
    data: U8  # padded, so that eight bytes can be read from the start of any value's last word

    @staticmethod
    def of(rows: I64, starts: I64, lengths: I64, data: U8) -> "_LongBytes":
        words = (lengths[rows] + 7) >> 3
        most = int(words.max())
        if most > int(words.min()):
            # Small keys get a radix sort.
            small = np.uint16 if most < 1 << 16 else np.int64
            rows = rows[np.argsort((most - words).astype(small), kind="stable")]
        return _LongBytes(rows, starts[rows], lengths[rows], data)

    def words(self) -> Iterator[tuple[int, U32, U32]]:
        """All strings word by word: how many strings have that word, its low and high half."""
        counts = (self.lengths + 7) >> 3
        words = unaligned_words(self.data)
        ending = np.bincount(counts)
        active = len(counts)
        at = self.starts.copy()
        for index in range(len(ending) - 1):
            value = words[at[:active]]
            at += 8
            ends_here = int(ending[index + 1])
            left = self.lengths[active - ends_here : active] - 8 * index
            value[active - ends_here :] &= _KEEP_BYTES[left]
            yield active, *halves_of(value)
            active -= ends_here


@dataclass(frozen=True, slots=True)
class _Column:
    """What one column puts into the rows of a block, except for the offset of its tail."""

    low: U32
    high: U32 | int
    nulls: Mask | None
    tail: _Words | _LongBytes | None = None


@dataclass(frozen=True, slots=True)
class _Layout:
    """A block of rows as words: null bits, slots and tails with their offsets."""

    row_count: int
    arity: int
    headers: tuple[U32 | int, ...]
    slots: tuple[U32 | int, ...]
    tails: tuple[tuple[_Words | _LongBytes, I64 | int], ...]
    size: I64 | int


def _blocks(types: Sequence[DataType], columns: Sequence[ArrowColumn]) -> Iterator[pa.RecordBatch]:
    if len(types) != len(columns) or not columns:
        raise InvalidInput(f"rows of {len(types)} fields cannot be made of {len(columns)} columns")
    arrays = [_as_declared(t, c) for t, c in zip(types, columns, strict=True)]
    names = [str(index) for index in range(len(arrays))]
    yield from pa.table(arrays, names=names).to_batches(max_chunksize=_BLOCK_ROWS)


def _as_declared(data_type: DataType, column: ArrowColumn) -> ArrowColumn:
    if not isinstance(data_type, AtomicType):
        raise Unsupported(f"columns of type {data_type} are not supported inside serialized rows")
    declared = arrow_type(data_type)
    return column if column.type == declared else column.cast(declared)


def _lay_out(types: Sequence[DataType], arrays: Sequence[pa.Array]) -> _Layout:
    count, arity = len(arrays[0]), len(types)
    columns = [_split(t, a) for t, a in zip(types, arrays, strict=True)]
    slots: list[U32 | int] = []
    tails: list[tuple[_Words | _LongBytes, I64 | int]] = []
    size: I64 | int = null_area_size(arity) + 8 * arity
    for column in columns:
        high = column.high
        match column.tail:
            case None:
                pass
            case _Words(words=words):
                tails.append((column.tail, size))
                high = size if isinstance(size, int) else size.astype(np.uint32)
                size = size + 4 * len(words)
            case _LongBytes(rows=rows, lengths=lengths):
                offsets = size if isinstance(size, int) else size[rows]
                tails.append((column.tail, offsets))
                assert not isinstance(high, int)
                high[rows] = offsets
                size = np.full(count, size, dtype=np.int64) if isinstance(size, int) else size
                size[rows] += (lengths + 7) & ~7
        slots += [column.low, high]
    return _Layout(count, arity, _null_words(columns), tuple(slots), tuple(tails), size)


def _null_words(columns: Sequence[_Column]) -> tuple[U32 | int, ...]:
    words: list[U32 | int] = [0] * (null_area_size(len(columns)) // 4)
    for index, column in enumerate(columns):
        if column.nulls is not None:
            word, bit = divmod(8 + index, 32)
            bits = column.nulls.astype(np.uint32) << np.uint32(bit)
            before = words[word]
            words[word] = bits if isinstance(before, int) else before | bits
    return tuple(words)


def _split(data_type: DataType, array: pa.Array) -> _Column:
    assert isinstance(data_type, AtomicType)
    root = data_type.root
    nulls = nulls_of(array)
    if root in RAW_WORDS:
        low = raw_values(array, RAW_WORDS[root]).astype(np.uint32)
        return _Column(zeroed(low, nulls), 0, nulls)
    if root is TypeRoot.BOOLEAN:
        low = raw_values(array.cast(pa.uint8()), np.uint8).astype(np.uint32)
        return _Column(zeroed(low, nulls), 0, nulls)
    if root is TypeRoot.FLOAT:
        low = _canonical_nan(raw_values(array, np.float32)).view(np.uint32)
        return _Column(zeroed(low, nulls), 0, nulls)
    if root is TypeRoot.DOUBLE:
        return _wide(_canonical_nan(raw_values(array, np.float64)).view(np.uint64), nulls)
    if root is TypeRoot.BIGINT:
        return _wide(raw_values(array, np.uint64), nulls)
    if root is TypeRoot.DECIMAL:
        return _split_decimal(data_type, array, nulls)
    if root.is_timestamp:
        return _split_timestamp(array, nulls)
    if root.is_text or root.is_bytes or root is TypeRoot.BLOB:
        return _split_bytes(array, nulls)
    raise Unsupported(f"columns of type {data_type} are not supported inside serialized rows")


def _wide(values: U64, nulls: Mask | None) -> _Column:
    low, high = halves_of(zeroed(values, nulls))
    return _Column(low, high, nulls)


def _split_decimal(data_type: AtomicType, array: pa.Array, nulls: Mask | None) -> _Column:
    words = raw_values(array, np.uint64, per_value=2)
    low, high = zeroed(words[0::2], nulls), zeroed(words[1::2], nulls)
    if data_type.is_compact:
        return _wide(np.ascontiguousarray(low), nulls)
    sizes = _decimal_sizes(low, high.view(np.int64))
    first, second = _shift_left(low, high, 8 * (16 - sizes))
    tail = _Words((*halves_of(first.byteswap()), *halves_of(second.byteswap())))
    return _Column(zeroed(sizes.astype(np.uint32), nulls), 0, nulls, tail)


def _decimal_sizes(low: U64, high: I64) -> U64:
    """How many bytes the shortest two's complement form of 128-bit numbers takes."""
    negative = high < 0
    low = np.where(negative, ~low, low)
    upper = np.where(negative, ~high, high).view(np.uint64)
    one_word = 1 + np.searchsorted(_BYTE_STEPS, low, side="right")
    two_words = 9 + np.searchsorted(_BYTE_STEPS, upper, side="right")
    return np.where(upper == 0, one_word, two_words).astype(np.uint64)


def _shift_left(low: U64, high: U64, bits: U64) -> tuple[U64, U64]:
    """High and low word of 128-bit numbers shifted left by less than 128 bits."""
    # Shifts by 64 or more are undefined for 64-bit words, hence the two cases.
    within = bits & np.uint64(63)
    carried = np.where(within == 0, 0, low >> ((np.uint64(64) - within) & np.uint64(63)))
    by_word = bits >= np.uint64(64)
    return (
        np.where(by_word, low << within, high << within | carried.astype(np.uint64)),
        np.where(by_word, np.uint64(0), low << within),
    )


def _split_timestamp(array: pa.Array, nulls: Mask | None) -> _Column:
    values = raw_values(array, np.int64)
    unit = array.type.unit
    if unit in MILLIS_PER_UNIT:
        factor = MILLIS_PER_UNIT[unit]
        return _wide((values if factor == 1 else values * factor).view(np.uint64), nulls)
    per_milli = UNITS_PER_MILLI[unit]
    millis = values // per_milli
    nanos = (values - millis * per_milli) * (NANOS_PER_MILLI // per_milli)
    tail = _Words(halves_of(zeroed(millis.view(np.uint64), nulls)))
    return _Column(zeroed(nanos.astype(np.uint32), nulls), 0, nulls, tail)


def _split_bytes(array: pa.Array, nulls: Mask | None) -> _Column:
    offsets, data = bytes_of(array)
    starts, lengths = offsets[:-1], np.diff(offsets)
    is_long = lengths > MAX_INLINE_BYTES
    slots = unaligned_words(data)[starts]
    slots &= _KEEP_BYTES[np.minimum(lengths, 8)]
    slots |= (lengths | 0x80).astype(np.uint64) << np.uint64(56)
    if nulls is not None:
        is_long &= ~nulls
        slots[nulls] = 0
    rows = np.flatnonzero(is_long)
    if not len(rows):
        return _Column(*halves_of(slots), nulls)
    slots[rows] = lengths[rows].astype(np.uint64)
    tail = _LongBytes.of(rows, starts, lengths, data)
    return _Column(*halves_of(slots), nulls, tail)


def _canonical_nan(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    # Many bit patterns are NaN; a key must have one hash, so all become the usual one.
    is_nan = np.isnan(values)
    return np.where(is_nan, values.dtype.type(np.nan), values) if is_nan.any() else values


# ------------------------------------------------------------------------------- hash, encode


def _hash_block(layout: _Layout) -> npt.NDArray[np.int32]:
    seed = DEFAULT_SEED
    words = [*layout.headers, *layout.slots]
    while isinstance(words[0], int):  # a start that all rows share needs no arrays
        seed = mix_scalar(seed, words.pop(0))  # type: ignore[arg-type]
    states = np.full(layout.row_count, seed, dtype=np.uint32)
    for word in words:
        mix_word(states, word)
    for tail, _ in layout.tails:
        match tail:
            case _Words():
                for word in tail.words:
                    mix_word(states, word)
            case _LongBytes():
                _mix_long_bytes(states, tail)
    size = layout.size
    return finish_hashes(states, size if isinstance(size, int) else size.astype(np.uint32))


def _mix_long_bytes(states: U32, tail: _LongBytes) -> None:
    mixed = states[tail.rows]
    for active, low, high in tail.words():
        mix_word(mixed[:active], low)
        mix_word(mixed[:active], high)
    states[tail.rows] = mixed


def _encode_block(layout: _Layout) -> tuple[U32, I64]:
    sizes = np.zeros(layout.row_count, dtype=np.int64) + (layout.size + 4)
    starts = (np.cumsum(sizes) - sizes) >> 2
    out = np.zeros(int(sizes.sum()) >> 2, dtype=np.uint32)
    out[starts] = int.from_bytes(layout.arity.to_bytes(4, "big"), "little")
    starts += 1  # from here on positions count from the row, as its offsets do
    for index, word in enumerate([*layout.headers, *layout.slots]):
        out[starts + index] = word
    for tail, offsets in layout.tails:
        match tail:
            case _Words():
                at = starts + (offsets >> 2)
                for index, word in enumerate(tail.words):
                    out[at + index] = word
            case _LongBytes():
                at = starts[tail.rows] + (offsets >> 2)
                for active, low, high in tail.words():
                    out[at[:active]] = low
                    out[at[:active] + 1] = high
                    at += 2
    return out, sizes

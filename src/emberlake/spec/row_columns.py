"""BinaryRow for many rows at once: encode, hash and decode by column.

Gives the bytes of ``binary_row`` without a Python step per row. A column puts two 32-bit words into
the slot of each row, and maybe more words behind the slots: timestamps and wide decimals a
constant number, long strings as many as they need. Rows are taken in blocks that fit the
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
from emberlake.spec.binary_row import (
    MAX_INLINE_BYTES,
    NANOS_PER_MILLI,
    CorruptRow,
    null_area_size,
)
from emberlake.types import AtomicType, DataType, TypeRoot, arrow_type

U8: TypeAlias = npt.NDArray[np.uint8]
U64: TypeAlias = npt.NDArray[np.uint64]
I64: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]
ArrowColumn: TypeAlias = Any  # pa.Array | pa.ChunkedArray

_BLOCK_ROWS: Final = 1 << 15
_HIGH: Final = np.uint64(32)
# How much of an eight-byte word belongs to a value of which so many bytes are left.
_KEEP_BYTES: Final = np.array([(1 << (8 * n)) - 1 for n in range(9)], dtype=np.uint64)
# From how many on a whole number takes one byte more, its sign bit included.
_BYTE_STEPS: Final = np.array([1 << (8 * n - 1) for n in range(1, 9)], dtype=np.uint64)
_RAW_WORDS: Final = {
    TypeRoot.TINYINT: np.uint8,
    TypeRoot.SMALLINT: np.uint16,
    TypeRoot.INT: np.uint32,
    TypeRoot.DATE: np.uint32,
    TypeRoot.TIME: np.uint32,
}
_MILLIS_PER_UNIT: Final = {"s": 1000, "ms": 1}
_UNITS_PER_MILLI: Final = {"us": 1000, "ns": 1_000_000}


def hash_rows(types: Sequence[DataType], columns: Sequence[ArrowColumn]) -> npt.NDArray[np.int32]:
    """The hash of every row, made of the columns in their order: what buckets are made of."""
    blocks = list(_blocks(types, columns))
    out = np.empty(sum(block.num_rows for block in blocks), dtype=np.int32)
    at = 0
    for block in blocks:
        out[at : at + block.num_rows] = _hash_block(_lay_out(types, block.columns))
        at += block.num_rows
    return out


def encode_rows(types: Sequence[DataType], columns: Sequence[ArrowColumn]) -> pa.LargeBinaryArray:
    """Every row serialized with its arity, as ``encode_row`` does it."""
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


def decode_column(types: Sequence[DataType], rows: pa.Array, index: int) -> pa.Array:
    """One atomic column out of many serialized rows; a null row gives a null."""
    data_type = types[index]
    if not isinstance(data_type, AtomicType):
        raise Unsupported(f"values of type {data_type} out of many serialized rows")
    if isinstance(rows, pa.ChunkedArray):
        rows = rows.combine_chunks()
    return _decode(data_type, _Slots.of(types, rows, index))


# ------------------------------------------------------------------------------------ layout


@dataclass(frozen=True, slots=True)
class _Words:
    """Behind the slots: the same number of words in every row, low and high half each."""

    words: tuple[U32, ...]


@dataclass(frozen=True, slots=True)
class _LongBytes:
    """Behind the slots: byte strings of some rows, those with the most words first."""

    rows: I64
    starts: I64
    lengths: I64
    data: U8  # padded, so that eight bytes can be read from the start of any value's last word

    @staticmethod
    def of(rows: I64, starts: I64, lengths: I64, data: U8) -> "_LongBytes":
        words = (lengths[rows] + 7) >> 3
        most = int(words.max())
        if most > int(words.min()):
            # Small keys are sorted in one pass over their digits.
            small = np.uint16 if most < 1 << 16 else np.int64
            rows = rows[np.argsort((most - words).astype(small), kind="stable")]
        return _LongBytes(rows, starts[rows], lengths[rows], data)

    def words(self) -> Iterator[tuple[int, U32, U32]]:
        """The words of all strings in step: how many strings have one, its low and high half."""
        counts = (self.lengths + 7) >> 3
        words = _unaligned_words(self.data)
        ending = np.bincount(counts)
        active = len(counts)
        at = self.starts.copy()
        for index in range(len(ending) - 1):
            value = words[at[:active]]
            at += 8
            ends_here = int(ending[index + 1])
            left = self.lengths[active - ends_here : active] - 8 * index
            value[active - ends_here :] &= _KEEP_BYTES[left]
            yield active, *_halves(value)
            active -= ends_here


@dataclass(frozen=True, slots=True)
class _Column:
    """What one column puts into the rows of a block, but for where its tail stands."""

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
        raise Unsupported(f"columns of type {data_type} inside serialized rows")
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
    nulls = _nulls(array)
    if root in _RAW_WORDS:
        low = _values(array, _RAW_WORDS[root]).astype(np.uint32)
        return _Column(_zeroed(low, nulls), 0, nulls)
    if root is TypeRoot.BOOLEAN:
        low = _values(array.cast(pa.uint8()), np.uint8).astype(np.uint32)
        return _Column(_zeroed(low, nulls), 0, nulls)
    if root is TypeRoot.FLOAT:
        low = _one_nan(_values(array, np.float32)).view(np.uint32)
        return _Column(_zeroed(low, nulls), 0, nulls)
    if root is TypeRoot.DOUBLE:
        return _wide(_one_nan(_values(array, np.float64)).view(np.uint64), nulls)
    if root is TypeRoot.BIGINT:
        return _wide(_values(array, np.uint64), nulls)
    if root is TypeRoot.DECIMAL:
        return _split_decimal(data_type, array, nulls)
    if root.is_timestamp:
        return _split_timestamp(array, nulls)
    if root.is_text or root.is_bytes or root is TypeRoot.BLOB:
        return _split_bytes(array, nulls)
    raise Unsupported(f"columns of type {data_type} inside serialized rows")


def _wide(values: U64, nulls: Mask | None) -> _Column:
    low, high = _halves(_zeroed(values, nulls))
    return _Column(low, high, nulls)


def _split_decimal(data_type: AtomicType, array: pa.Array, nulls: Mask | None) -> _Column:
    words = _values(array, np.uint64, per_value=2)
    low, high = _zeroed(words[0::2], nulls), _zeroed(words[1::2], nulls)
    if data_type.is_compact:
        return _wide(np.ascontiguousarray(low), nulls)
    sizes = _decimal_sizes(low, high.view(np.int64))
    first, second = _shift_left(low, high, 8 * (16 - sizes))
    tail = _Words((*_halves(first.byteswap()), *_halves(second.byteswap())))
    return _Column(_zeroed(sizes.astype(np.uint32), nulls), 0, nulls, tail)


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
    values = _values(array, np.int64)
    unit = array.type.unit
    if unit in _MILLIS_PER_UNIT:
        factor = _MILLIS_PER_UNIT[unit]
        return _wide((values if factor == 1 else values * factor).view(np.uint64), nulls)
    per_milli = _UNITS_PER_MILLI[unit]
    millis = values // per_milli
    nanos = (values - millis * per_milli) * (NANOS_PER_MILLI // per_milli)
    tail = _Words(_halves(_zeroed(millis.view(np.uint64), nulls)))
    return _Column(_zeroed(nanos.astype(np.uint32), nulls), 0, nulls, tail)


def _split_bytes(array: pa.Array, nulls: Mask | None) -> _Column:
    offsets, data = bytes_of(array)
    starts, lengths = offsets[:-1], np.diff(offsets)
    is_long = lengths > MAX_INLINE_BYTES
    slots = _unaligned_words(data)[starts]
    slots &= _KEEP_BYTES[np.minimum(lengths, 8)]
    slots |= (lengths | 0x80).astype(np.uint64) << np.uint64(56)
    if nulls is not None:
        is_long &= ~nulls
        slots[nulls] = 0
    rows = np.flatnonzero(is_long)
    if not len(rows):
        return _Column(*_halves(slots), nulls)
    slots[rows] = lengths[rows].astype(np.uint64)
    tail = _LongBytes.of(rows, starts, lengths, data)
    return _Column(*_halves(slots), nulls, tail)


def bytes_of(array: pa.Array) -> tuple[I64, U8]:
    """Offsets from the first value's first byte, and all bytes with eight more behind them."""
    offset_type = np.int64 if pa.types.is_large_binary(array.type) else np.int32
    _, offset_buffer, data_buffer = array.buffers()
    if not len(array):
        return np.zeros(1, dtype=np.int64), np.zeros(8, dtype=np.uint8)
    offsets = np.frombuffer(offset_buffer, dtype=offset_type)
    offsets = offsets[array.offset : array.offset + len(array) + 1].astype(np.int64)
    first, size = offsets[0], offsets[-1] - offsets[0]
    data = np.zeros(size + 8, dtype=np.uint8)
    if size:
        data[:size] = np.frombuffer(data_buffer, dtype=np.uint8)[first : first + size]
    return offsets - first, data


def _nulls(array: pa.Array) -> Mask | None:
    if not array.null_count:
        return None
    nulls: Mask = array.is_null().to_numpy(zero_copy_only=False)
    return nulls


def _values(array: pa.Array, dtype: npt.DTypeLike, *, per_value: int = 1) -> npt.NDArray[Any]:
    """The values as they stand in the array's buffer; nulls hold anything."""
    values = np.frombuffer(array.buffers()[1], dtype=dtype)
    return values[per_value * array.offset : per_value * (array.offset + len(array))]


def _zeroed(values: npt.NDArray[Any], nulls: Mask | None) -> npt.NDArray[Any]:
    return values if nulls is None else np.where(nulls, values.dtype.type(0), values)


def _one_nan(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    # Many bit patterns are NaN; a key must have one hash, so all become the usual one.
    is_nan = np.isnan(values)
    return np.where(is_nan, values.dtype.type(np.nan), values) if is_nan.any() else values


def _halves(words: U64) -> tuple[U32, U32]:
    halves = words.view(np.uint32)
    return halves[0::2], halves[1::2]


def _unaligned_words(data: U8) -> U64:
    """Eight bytes from every position of the data, without a copy."""
    return np.ndarray(shape=(len(data) - 7,), dtype="<u8", buffer=data, strides=(1,))


# ------------------------------------------------------------------------------- hash, encode


def _hash_block(layout: _Layout) -> npt.NDArray[np.int32]:
    seed = DEFAULT_SEED
    words = [*layout.headers, *layout.slots]
    while isinstance(words[0], int):  # what all rows begin with needs no arrays
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
    some = states[tail.rows]
    for active, low, high in tail.words():
        mix_word(some[:active], low)
        mix_word(some[:active], high)
    states[tail.rows] = some


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


# ------------------------------------------------------------------------------------ decode


@dataclass(frozen=True, slots=True)
class _Slots:
    """One field of many rows: its slots, and where they and their rows stand in the data."""

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
        missing = _nulls(rows)
        starts, sizes = offsets[:-1], np.diff(offsets)
        here = np.ones(len(rows), dtype=np.bool_) if missing is None else ~missing
        _check_arity(data, starts, sizes, here, arity)
        # A missing row reads the first bytes of the data, whatever they are, and stays null.
        smallest = 4 + header + 8 * arity
        data = np.concatenate([data, np.zeros(smallest, dtype=np.uint8)])
        starts = np.where(here, starts, 0) + 4
        bit = 8 + index
        nulls = (data[starts + (bit >> 3)] >> np.uint8(bit & 7) & np.uint8(1)).astype(np.bool_)
        positions = starts + (header + 8 * index)
        slots = _unaligned_words(data)[positions]
        return _Slots(data, starts, sizes - 4, positions, slots, nulls | ~here)

    def halves(self) -> tuple[I64, I64]:
        """What a slot says of its tail, offset and length; zero for nulls."""
        slots = _zeroed(self.slots, self.nulls)
        return (slots >> _HIGH).astype(np.int64), (slots & np.uint64(0xFFFFFFFF)).astype(np.int64)

    def tail_starts(self, offsets: I64, lengths: I64) -> I64:
        """Where values behind the slots stand in the data."""
        outside = (offsets + lengths > self.row_sizes) & ~self.nulls
        if outside.any():
            row = int(np.argmax(outside))
            raise CorruptRow(
                f"row {row}: a value at bytes {offsets[row]} to {offsets[row] + lengths[row]} "
                f"lies outside of {self.row_sizes[row]} bytes"
            )
        return np.where(self.nulls, 0, self.row_starts + offsets)


def _check_arity(data: U8, starts: I64, sizes: I64, here: Mask, arity: int) -> None:
    short = here & (sizes < 4 + null_area_size(arity) + 8 * arity)
    words = _unaligned_words(data)[np.where(short | ~here, 0, starts)].astype("<u4").byteswap()
    wrong = here & (short | (words != arity))
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
    raise Unsupported(f"values of type {data_type} out of many serialized rows")


_NARROW: Final = {**_RAW_WORDS, TypeRoot.FLOAT: np.uint32}


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
    # Eight bytes more than a short value has may be read: the shift drops them again.
    starts = rows.tail_starts(offsets, sizes)
    words = _unaligned_words(np.concatenate([rows.data, np.zeros(16, dtype=np.uint8)]))
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
        millis = _zeroed(rows.slots, rows.nulls).view(np.int64)
        return _array(data_type, rows.nulls, millis // _MILLIS_PER_UNIT[unit])
    offsets, nanos = rows.halves()
    starts = rows.tail_starts(offsets, np.full(len(offsets), 8, dtype=np.int64))
    millis = _zeroed(_unaligned_words(rows.data)[starts], rows.nulls).view(np.int64)
    per_milli = _UNITS_PER_MILLI[unit]
    limit = (2**63 - 1) // per_milli
    if (np.abs(millis) >= limit).any():
        raise CorruptRow(f"a timestamp does not fit {arrow_type(data_type)}")
    units = millis * per_milli + nanos // (NANOS_PER_MILLI // per_milli)
    return _array(data_type, rows.nulls, units)


def _decode_bytes(data_type: AtomicType, rows: _Slots) -> pa.Array:
    slots = _zeroed(rows.slots, rows.nulls)
    is_inline = (slots >> np.uint64(63)).astype(np.bool_)
    inline_lengths = ((slots >> np.uint64(56)) & np.uint64(0x7F)).astype(np.int64)
    if (is_inline & (inline_lengths > MAX_INLINE_BYTES)).any():
        raise CorruptRow(f"{inline_lengths.max()} bytes cannot stand inside a slot")
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
    _check_text(array)
    return array.cast(arrow_type(data_type))


def _check_text(array: pa.Array) -> None:
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as error:
        raise CorruptRow(f"serialized rows hold text that is not UTF-8: {error}") from error


def _array(data_type: AtomicType, nulls: Mask, values: npt.NDArray[Any]) -> pa.Array:
    buffers = [_validity(nulls), pa.py_buffer(np.ascontiguousarray(values))]
    return pa.Array.from_buffers(arrow_type(data_type), len(nulls), buffers)


def _validity(nulls: Mask) -> pa.Buffer | None:
    return pa.py_buffer(np.packbits(~nulls, bitorder="little")) if nulls.any() else None

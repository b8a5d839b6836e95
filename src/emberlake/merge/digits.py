"""Columns as digits: unsigned words that order rows as the values of the columns do.

Rows are compared by their digits from left to right. A number is one digit, a decimal of more than
18 places two, a text one for every eight of its bytes. So every key, whatever its types, is sorted
and compared as integers. Spec: "Comparison order".
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from emberlake.errors import Unsupported
from emberlake.spec.column_buffers import I64, U64, Mask, bytes_of, nulls_of, raw_values
from emberlake.types import AtomicType, DataField, TypeRoot
from emberlake.types.data_types import COMPACT_DECIMAL_PRECISION

# Texts longer than this are ranked as a whole: reading them word by word would take too long.
MAX_WORDS_OF_TEXT: Final = 16

_WORD: Final = 64
_ALL: Final = slice(None)
_INTEGERS: Final = {
    TypeRoot.TINYINT: np.int8,
    TypeRoot.SMALLINT: np.int16,
    TypeRoot.INT: np.int32,
    TypeRoot.BIGINT: np.int64,
    TypeRoot.DATE: np.int32,
    TypeRoot.TIME: np.int32,
    TypeRoot.TIMESTAMP: np.int64,
    TypeRoot.TIMESTAMP_LTZ: np.int64,
}


class Digit(ABC):
    """One unsigned word per row."""

    @abstractmethod
    def of(self, rows: I64 | slice) -> U64:
        """The digit of some rows."""

    @abstractmethod
    def packed(self) -> tuple[U64, int]:
        """The digit of all rows in as few bits as their order needs, and the number of bits."""


@dataclass(frozen=True, slots=True)
class Number(Digit):
    """A digit that is already computed; no value has more than ``bits`` bits."""

    values: U64
    bits: int

    def of(self, rows: I64 | slice) -> U64:
        return self.values[rows]

    def packed(self) -> tuple[U64, int]:
        return self.values, self.bits


def digits_of(field: DataField, column: pa.ChunkedArray, *, descending: bool) -> Iterator[Digit]:
    """The digits of a column, the most significant first; nulls are first in both directions.

    Raises:
        Unsupported: values of that type have no order.
    """
    if not isinstance(field.type, AtomicType) or field.type.root.is_opaque:
        raise Unsupported(f"column {field} cannot order rows")
    chunks = column.chunks
    nulls = _nulls(chunks) if column.null_count else None
    if nulls is not None:
        yield Number((~nulls).astype(np.uint64), 1)
    root = field.type.root
    if root in _INTEGERS:
        yield _integers(_join(chunks, _INTEGERS[root]), nulls, descending=descending)
    elif root is TypeRoot.BOOLEAN:
        bytes_ = [chunk.cast(pa.uint8()) for chunk in chunks]
        yield _integers(_join(bytes_, np.uint8), nulls, descending=descending)
    elif root is TypeRoot.FLOAT:
        codes = float_codes(_join(chunks, np.float32), np.int32)
        yield _integers(codes, nulls, descending=descending)
    elif root is TypeRoot.DOUBLE:
        codes = float_codes(_join(chunks, np.float64), np.int64)
        yield _integers(codes, nulls, descending=descending)
    elif root is TypeRoot.DECIMAL:
        yield from _decimals(field.type, chunks, nulls, descending=descending)
    else:
        yield from _texts(column, nulls, descending=descending)


# --- numbers --------------------------------------------------------------------------------------


def float_codes(values: npt.NDArray[Any], code: type[np.signedinteger[Any]]) -> npt.NDArray[Any]:
    """Integers in the order of floats: -0.0 before 0.0, and every NaN as the same largest one."""
    codes = values.view(code)
    # The bits below the sign grow with the magnitude, so negative values are reversed.
    codes = np.where(codes < 0, codes ^ np.iinfo(code).max, codes)
    return np.where(np.isnan(values), np.iinfo(code).max, codes)


def _integers(values: npt.NDArray[Any], nulls: Mask | None, *, descending: bool) -> Number:
    known = values if nulls is None else values[~nulls]
    if not len(known):
        return Number(np.zeros(len(values), dtype=np.uint64), 0)
    low, high = int(known.min()), int(known.max())
    # Differences are correct as unsigned words even where they do not fit signed ones.
    wide = values.astype(np.uint64)
    distances = (
        np.uint64(high % 2**_WORD) - wide if descending else wide - np.uint64(low % 2**_WORD)
    )
    if nulls is not None:
        distances[nulls] = 0
    return Number(distances, (high - low).bit_length())


def _decimals(
    data_type: AtomicType, chunks: list[pa.Array], nulls: Mask | None, *, descending: bool
) -> Iterator[Number]:
    # Arrow stores 16 bytes per decimal, the low word first.
    words = np.concatenate(
        [raw_values(chunk, np.int64, per_value=2).reshape(-1, 2) for chunk in chunks]
        or [np.zeros((0, 2), dtype=np.int64)]
    )
    low, high = words[:, 0], words[:, 1]
    if data_type.precision > COMPACT_DECIMAL_PRECISION:
        yield _integers(high, nulls, descending=descending)
        low = low.view(np.uint64)
    yield _integers(low, nulls, descending=descending)


def _join(chunks: list[pa.Array], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    parts = [raw_values(chunk, dtype) for chunk in chunks if len(chunk)]
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=dtype)


def _nulls(chunks: list[pa.Array]) -> Mask:
    parts = [nulls_of(chunk) for chunk in chunks]
    return np.concatenate(
        [
            np.zeros(len(chunk), dtype=np.bool_) if part is None else part
            for chunk, part in zip(chunks, parts, strict=True)
        ]
    )


# --- texts and bytes ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _TextWord(Digit):
    """Eight bytes of every text from a position on, zero after its end."""

    words: npt.NDArray[Any]  # big-endian, from every position of the bytes
    starts: I64
    lengths: I64 | None  # None when no text ends inside the word
    position: int
    descending: bool

    def of(self, rows: I64 | slice) -> U64:
        positions = self.starts[rows] + self.position
        if self.lengths is None:
            words: U64 = self.words[positions].astype(np.uint64)
        else:
            words = self.words[np.minimum(positions, len(self.words) - 1)].astype(np.uint64)
            past_end = np.clip(self.position + 8 - self.lengths[rows], 0, 8)
            shift = (np.minimum(past_end, 7) * 8).astype(np.uint64)
            words = np.where(past_end == 8, np.uint64(0), words >> shift << shift)
        return ~words if self.descending else words

    def packed(self) -> tuple[U64, int]:
        return _squeeze(self.of(_ALL))


def _texts(column: pa.ChunkedArray, nulls: Mask | None, *, descending: bool) -> Iterator[Digit]:
    starts, lengths, data = _text_bytes(column.chunks)
    if nulls is not None:
        lengths[nulls] = 0
    longest, shortest = int(lengths.max(initial=0)), int(lengths.min(initial=2**31))
    if longest > 8 * MAX_WORDS_OF_TEXT:
        yield _integers(_ranks(column), nulls, descending=descending)
        return
    words = np.ndarray(shape=(len(data) - 7,), dtype=">u8", buffer=data, strides=(1,))
    for position in range(0, longest, 8):
        known = None if position + 8 <= shortest else lengths
        yield _TextWord(words, starts, known, position, descending)
    # Zero bytes look like the end of a text; only then must the shorter one come first.
    if not data[:-8].all():
        yield _integers(lengths, None, descending=descending)


def _text_bytes(chunks: list[pa.Array]) -> tuple[I64, I64, npt.NDArray[np.uint8]]:
    parts = [bytes_of(_as_large(chunk)) for chunk in chunks]
    lengths = [np.diff(offsets) for offsets, _ in parts]
    if len(parts) == 1:
        offsets, data = parts[0]
        return offsets[:-1], lengths[0], data
    bases = np.cumsum([0, *(len(data) - 8 for _, data in parts)])
    starts = [
        offsets[:-1] + base for (offsets, _), base in zip(parts, bases[:-1].tolist(), strict=True)
    ]
    none = np.zeros(0, dtype=np.int64)
    padding = np.zeros(8, dtype=np.uint8)
    data = np.concatenate([*(data[:-8] for _, data in parts), padding])
    return np.concatenate([none, *starts]), np.concatenate([none, *lengths]), data


def _as_large(array: pa.Array) -> pa.Array:
    """Texts and bytes in a layout that ``bytes_of`` reads; views are converted."""
    if pa.types.is_large_string(array.type):
        return array.cast(pa.large_binary())
    is_plain = pa.types.is_string(array.type) or pa.types.is_binary(array.type)
    return array if is_plain or pa.types.is_large_binary(array.type) else array.cast(pa.binary())


def _ranks(column: pa.ChunkedArray) -> I64:
    """The rank of every text among the distinct ones; the rank of a null means nothing."""
    encoded = column.cast(pa.large_binary()).combine_chunks().dictionary_encode()
    order = pc.sort_indices(encoded.dictionary).to_numpy()
    ranks = np.zeros(max(len(order), 1), dtype=np.int64)
    ranks[order] = np.arange(len(order))
    codes = encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)
    result: I64 = ranks[codes]
    return result


def _squeeze(words: U64) -> tuple[U64, int]:
    """Words without the bits that are the same in all of them; they keep their order.

    Digits and letters differ in few of their bits, so long texts fit into few words.
    """
    if not len(words):
        return words, 0
    varying = int(np.bitwise_or.reduce(words ^ words[0]))
    squeezed = np.zeros(len(words), dtype=np.uint64)
    bits = 0
    for low, size in _bit_runs(varying):
        part = (words >> np.uint64(low)) & np.uint64(2**size - 1)
        squeezed |= part << np.uint64(bits)
        bits += size
    return squeezed, bits


def _bit_runs(mask: int) -> Iterator[tuple[int, int]]:
    """Position and length of every run of set bits, the lowest first."""
    low = 0
    while mask:
        zeros = (mask & -mask).bit_length() - 1
        low, mask = low + zeros, mask >> zeros
        size = (~mask & (mask + 1)).bit_length() - 1
        yield low, size
        low, mask = low + size, mask >> size

"""Statistics of columns, batch by batch: nulls, bounds, lengths, and distinct values.

Distinct values are counted by the smallest of their hashes: exactly up to ``_MOST_HASHES``, and
with an error of less than one percent beyond, in bounded memory.
"""

import hashlib
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from emberlake.errors import Unsupported
from emberlake.spec.statistics import ColumnStatistics
from emberlake.spec.values import format_value, from_arrow_array
from emberlake.types import AtomicType, DataField, TypeRoot

_MOST_HASHES: Final = 1 << 16
_HASH_SPACE: Final = float(1 << 64)
_BYTES_TOGETHER: Final = 256  # of a text, that are hashed for all values at once
# Masks that keep the first bytes of a word, by their number.
_FIRST_BYTES: Final = np.array([(1 << 8 * n) - 1 for n in range(9)], np.uint64)
# The sizes that Spark plans with.
_SIZES: Final = {
    TypeRoot.BOOLEAN: 1,
    TypeRoot.TINYINT: 1,
    TypeRoot.SMALLINT: 2,
    TypeRoot.INT: 4,
    TypeRoot.BIGINT: 8,
    TypeRoot.FLOAT: 4,
    TypeRoot.DOUBLE: 8,
    TypeRoot.DATE: 4,
    TypeRoot.TIMESTAMP: 8,
    TypeRoot.TIMESTAMP_LTZ: 8,
}

U64 = npt.NDArray[np.uint64]


def check_countable(field: DataField) -> AtomicType:
    """The type of a column that has statistics.

    Raises:
        Unsupported: values of that type are not compared.
    """
    kind = field.type
    if isinstance(kind, AtomicType) and (
        kind.root in _SIZES
        or kind.root.is_text
        or kind.root.is_bytes
        or kind.root is TypeRoot.DECIMAL
    ):
        return kind
    raise Unsupported(f"{field.name}: columns of type {field.type} have no statistics")


class ColumnCounter:
    """Adds up the statistics of one column."""

    def __init__(self, field: DataField) -> None:
        self._field = field
        self._type = check_countable(field)
        self._has_lengths = self._type.root.is_text or self._type.root.is_bytes
        self._values = self._nulls = self._total_length = self._longest = 0
        self._low: Any = None
        self._high: Any = None
        self._hashes: U64 = np.empty(0, np.uint64)

    def add(self, column: pa.Array) -> None:
        """Count the values of a batch."""
        self._nulls += column.null_count
        values = column.drop_null()
        if not len(values):
            return
        self._values += len(values)
        if self._has_lengths:
            count = pc.binary_length if self._type.root.is_bytes else pc.utf8_length
            lengths = count(values)
            self._total_length += pc.sum(lengths).as_py()
            self._longest = max(self._longest, pc.max(lengths).as_py())
        else:
            bounds = pc.min_max(values)
            lows = [v for v in (self._low, bounds["min"]) if v is not None]
            highs = [v for v in (self._high, bounds["max"]) if v is not None]
            self._low = min(lows, key=lambda v: v.as_py())
            self._high = max(highs, key=lambda v: v.as_py())
        found = np.union1d(self._hashes, _hashes(values.unique()))
        self._hashes = found[:_MOST_HASHES]

    def result(self) -> ColumnStatistics:
        """What was counted."""
        size = _SIZES.get(self._type.root, 8 if self._type.precision <= 18 else 16)
        average, longest = size, size
        if self._has_lengths:
            average = -(-self._total_length // self._values) if self._values else 0
            longest = self._longest
        return ColumnStatistics(
            column_id=self._field.id,
            distinct_count=self._distinct(),
            low=self._text(self._low),
            high=self._text(self._high),
            null_count=self._nulls,
            average_length=average,
            longest=longest,
        )

    def _distinct(self) -> int:
        if len(self._hashes) < _MOST_HASHES:
            return len(self._hashes)
        return round((_MOST_HASHES - 1) * _HASH_SPACE / float(self._hashes[-1]))

    def _text(self, bound: Any) -> str | None:
        if bound is None:
            return None
        (value,) = from_arrow_array(self._type, pa.array([bound.as_py()], bound.type))
        if self._type.root is TypeRoot.DATE:
            return str(value)  # the number of the day
        return format_value(self._type, value).removesuffix("Z")


def _hashes(values: pa.Array) -> U64:
    """A hash of 64 bits for each value, evenly distributed."""
    kind = values.type
    if pa.types.is_decimal(kind):
        low, high = _words_of(values.cast(pa.decimal128(kind.precision, kind.scale))).T
        return _mixed(_mixed(low) ^ high)
    if pa.types.is_boolean(kind):
        values = values.cast(pa.uint8())
    if pa.types.is_primitive(values.type):
        raw = values.to_numpy(zero_copy_only=False)
        return _mixed(raw.view(f"u{raw.dtype.itemsize}").astype(np.uint64))
    return _text_hashes(values.cast(pa.large_binary()))


def _words_of(decimals: pa.Array) -> U64:
    start, stop = decimals.offset, decimals.offset + len(decimals)
    return np.frombuffer(decimals.buffers()[1], np.uint64).reshape(-1, 2)[start:stop]


def _text_hashes(values: pa.Array) -> U64:
    """Hashes of texts or bytes: eight bytes of all values at a time; long ends one by one."""
    _, offsets_buffer, data = values.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int64)[values.offset :][: len(values) + 1]
    raw = np.frombuffer(data or b"", np.uint8)[offsets[0] : offsets[-1]]
    starts, lengths = offsets[:-1] - offsets[0], np.diff(offsets)
    eights = np.lib.stride_tricks.sliding_window_view(np.append(raw, np.zeros(8, np.uint8)), 8)
    hashes = _mixed(lengths.astype(np.uint64))
    left = np.arange(len(values))
    for at in range(0, _BYTES_TOGETHER, 8):
        left = left[lengths[left] > at]
        if not len(left):
            return hashes
        words = eights[starts[left] + at].view(np.uint64)[:, 0]
        words &= _FIRST_BYTES[np.minimum(lengths[left] - at, 8)]
        hashes[left] = _mixed(hashes[left] ^ words)
    for row in left[lengths[left] > _BYTES_TOGETHER].tolist():
        rest = raw[starts[row] + _BYTES_TOGETHER : starts[row] + lengths[row]]
        digest = hashlib.blake2b(rest.tobytes(), digest_size=8).digest()
        hashes[row] ^= np.frombuffer(digest, np.uint64)[0]
    return hashes


def _mixed(words: U64) -> U64:
    """The finalizer of SplitMix64."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))

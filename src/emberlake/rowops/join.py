"""Match rows of two sides by the equality of keys, whole columns at a time.

The smaller side, the source of a merge, is held in memory and indexed once. The other side comes in
parts. Every key column is reduced to codes: the place of a value among the distinct values of the
source. The codes of all columns together make one number for each row.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from emberlake.spec.column_buffers import I64

_MOST_CODES: Final = 1 << 62
_NONE: Final = -1
_SMALL_TABLE: Final = 1 << 16
_MOST_BITS: Final = 1 << 27  # of integers between the least and the greatest: 32 MiB
_WORD_SHIFT: Final = np.int64(6)
_IN_WORD: Final = np.int64(63)
_ONE: Final = np.uint64(1)
_ROWS_AT_ONCE: Final = 1 << 18
_HASHED_ROWS_AT_ONCE: Final = 1 << 20


class _Places(Protocol):
    """Tells the place of a value among the distinct values of the source."""

    @property
    def size(self) -> int: ...

    def find(self, array: pa.Array) -> I64:
        """``_NONE`` for null, and for values that the source does not have."""


class _HashedPlaces:
    """By a hash table, which Arrow builds in every call."""

    def __init__(self, values: pa.Array) -> None:
        self._values = values
        self.size = len(values)

    def find(self, array: pa.Array) -> I64:
        found = pc.index_in(array, value_set=self._values, skip_nulls=True)
        places: I64 = found.fill_null(_NONE).to_numpy(zero_copy_only=False).astype(np.int64)
        return places


class _IntegerPlaces:
    """By a bit for each integer between the least and the greatest, and by counts of the bits.

    If the integers are too sparse for that, by binary search.
    """

    def __init__(self, values: pa.Array) -> None:
        found: I64 = np.sort(values.to_numpy(zero_copy_only=False).astype(np.int64, copy=False))
        is_first = np.ones(len(found), bool)
        np.not_equal(found[1:], found[:-1], out=is_first[1:])
        known = found if is_first.all() else found[is_first]
        self.size = len(known)
        self._low = int(known[0]) if self.size else 0
        self._span = int(known[-1]) - self._low + 1 if self.size else 0
        self._known: I64 | None = None
        if 0 < self._span <= _MOST_BITS:
            self._words = _bits(known - np.int64(self._low), self._span)
            counts = np.bitwise_count(self._words)
            self._bits_before = np.cumsum(counts, dtype=np.int64) - counts
        else:
            self._known = known

    def find(self, array: pa.Array) -> I64:
        is_null = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
        filled = array.fill_null(0) if is_null is not None else array
        values = filled.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
        places = self._find(values) if self._known is None else _places(self._known, values)
        if is_null is not None:
            places[is_null] = _NONE
        return places

    def _find(self, values: I64) -> I64:
        steps = values - np.int64(self._low)
        # As unsigned numbers, those below the first are beyond the last.
        is_inside = steps.view(np.uint64) < np.uint64(self._span)
        inside = None if is_inside.all() else np.flatnonzero(is_inside)
        if inside is not None:
            steps = steps[inside]
        at, bit = steps >> _WORD_SHIFT, (steps & _IN_WORD).view(np.uint64)
        words = self._words[at]
        there = np.flatnonzero((words >> bit) & _ONE)
        words_below = words[there] & ((_ONE << bit[there]) - _ONE)
        places = np.full(len(values), _NONE, np.int64)
        found = there if inside is None else inside[there]
        places[found] = self._bits_before[at[there]] + np.bitwise_count(words_below)
        return places


def _bits(steps: I64, span: int) -> npt.NDArray[np.uint64]:
    """Words of 64 bits, of which those at the steps are set; they are ascending and distinct."""
    words = np.zeros((span >> _WORD_SHIFT) + 1, np.uint64)
    at = steps >> _WORD_SHIFT
    starts = np.flatnonzero(np.diff(at, prepend=-1))
    bits = _ONE << (steps & _IN_WORD).view(np.uint64)
    words[at[starts]] = np.bitwise_or.reduceat(bits, starts)
    return words


@dataclass(frozen=True)
class _KeyColumn:
    """The distinct values of a key column of the source."""

    places: _Places
    matches_null: bool

    @staticmethod
    def of(key: pa.Array, *, matches_null: bool) -> "_KeyColumn":
        values = comparable(key)
        if pa.types.is_integer(values.type):
            return _KeyColumn(_IntegerPlaces(values.drop_null()), matches_null)
        return _KeyColumn(_HashedPlaces(values.unique().drop_null()), matches_null)

    @property
    def size(self) -> int:
        return self.places.size + self.matches_null

    def codes(self, array: pa.Array) -> I64:
        """The code of every value; ``_NONE`` if the source does not have it."""
        codes = self.places.find(comparable(array))
        if self.matches_null and array.null_count:  # NaN is not null
            codes[array.is_null().to_numpy(zero_copy_only=False)] = self.places.size
        return codes


class KeyIndex:
    """Finds rows of the source by their keys.

    Args:
        keys: The key columns of the source.
        matches_null: For each of them whether null equals null, as ``<=>`` says; ``=`` does not.
        is_used: Which rows take part; None: all.
    """

    def __init__(
        self,
        keys: Sequence[pa.Array],
        matches_null: Sequence[bool],
        is_used: npt.NDArray[np.bool_] | None = None,
    ) -> None:
        self._columns = [
            _KeyColumn.of(key, matches_null=with_null)
            for key, with_null in zip(keys, matches_null, strict=True)
        ]
        # Where the combined codes would not fit 64 bits, the codes so far are renumbered.
        self._renumbered: dict[int, I64] = {}
        codes, total = self._codes(keys, learns=True)
        if is_used is not None:
            codes[~is_used] = _NONE
        rows = np.flatnonzero(codes != _NONE)
        codes = codes[rows]
        if total <= max(_SMALL_TABLE, 2 * len(rows)):  # counting is faster than sorting
            counts = np.bincount(codes, minlength=total)
            known = np.flatnonzero(counts)
            counts = counts[known]
        else:
            known, counts = np.unique(codes, return_counts=True)
        # The codes that rows have, unless all codes are.
        self._known: I64 | None = None if len(known) == total else known
        # How many rows have each of them, and where their rows begin, unless each has one.
        self._extents: tuple[I64, I64] | None = None
        if not (counts == 1).all():
            self._extents = counts, np.cumsum(counts) - counts
        self._rows: I64
        if self.is_unique and self._known is None:
            self._rows = np.empty(total, np.int64)
            self._rows[codes] = rows
        else:
            self._rows = rows[np.argsort(codes, kind="stable")]

    @property
    def is_unique(self) -> bool:
        """Whether no two rows of the source have the same key."""
        return self._extents is None

    @property
    def rows_at_once(self) -> int:
        """How many keys should be looked for in one call."""
        is_hashed = any(isinstance(column.places, _HashedPlaces) for column in self._columns)
        return _HASHED_ROWS_AT_ONCE if is_hashed else _ROWS_AT_ONCE

    def repeated(self, limit: int) -> I64:
        """One row for some of the keys that several rows of the source have."""
        if self._extents is None:
            return np.empty(0, np.int64)
        counts, starts = self._extents
        return self._rows[starts[counts > 1][:limit]]

    def pairs(self, keys: Sequence[pa.Array]) -> tuple[I64, I64]:
        """The rows that match: places among the given keys, ascending, and rows of the source."""
        codes, _ = self._codes(keys, learns=False)
        if not len(self._rows):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        hits = np.flatnonzero(codes != _NONE)
        places = codes[hits]
        if self._known is not None:
            places = _places(self._known, places)
            is_known = places != _NONE
            hits, places = hits[is_known], places[is_known]
        if self._extents is None or not len(hits):
            return hits, self._rows[places]
        counts, starts = (extent[places] for extent in self._extents)
        # One place for each source row of a key: start, start + 1, ...
        ends = np.cumsum(counts)
        steps = np.arange(ends[-1]) - np.repeat(ends - counts, counts)
        return np.repeat(hits, counts), self._rows[np.repeat(starts, counts) + steps]

    def _codes(self, keys: Sequence[pa.Array], *, learns: bool) -> tuple[I64, int]:
        """The code of every row, and how many codes there can be."""
        total, so_far = 1, np.zeros(0, np.int64)
        for number, (column, key) in enumerate(zip(self._columns, keys, strict=True)):
            codes = column.codes(key)
            size = max(1, column.size)
            if number == 0:
                total, so_far = size, codes
                continue
            if total > _MOST_CODES // size:
                if learns:
                    self._renumbered[number] = np.unique(so_far[so_far != _NONE])
                so_far = _places(self._renumbered[number], so_far)
                total = max(1, len(self._renumbered[number]))
            is_known = (codes != _NONE) & (so_far != _NONE)
            so_far = np.where(is_known, so_far * size + codes, _NONE)
            total *= size
        return so_far, total


def _places(known: I64, codes: I64) -> I64:
    if not len(known):
        return np.full(len(codes), _NONE, np.int64)
    places = np.minimum(np.searchsorted(known, codes), len(known) - 1)
    return np.where(known[places] == codes, places, _NONE)


def comparable(array: pa.Array) -> pa.Array:
    """Keys that are equal exactly if their bits are: one zero, and no NaN, which equals nothing."""
    if pa.types.is_date32(array.type):
        return array.cast(pa.int32())
    if pa.types.is_timestamp(array.type):
        return array.cast(pa.int64())
    if not pa.types.is_floating(array.type):
        return array
    array = pc.add(array, pa.scalar(0.0, array.type))
    return pc.if_else(pc.is_nan(array), pa.scalar(None, array.type), array)

"""Match rows of two sides by the equality of keys, whole columns at a time.

The smaller side, the source of a merge, is held in memory and indexed once. The other side comes in
parts. Every key column is reduced to codes: the place of a value among the distinct values of the
source. The codes of all columns together make one number for each row.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from emberlake.spec.column_buffers import I64

_MOST_CODES: Final = 1 << 62
_NONE: Final = -1
_DENSE: Final = 16  # integers with gaps up to this on average are looked up in a table
_SMALL_TABLE: Final = 1 << 16
_MOST_BITS: Final = 1 << 25  # 32 MiB, for the integers between the least and the greatest


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
    """By binary search in sorted integers; where they are dense, by lookup tables.

    There is a table of places, or one of the integers that occur, so that few are searched for.
    """

    def __init__(self, values: pa.Array) -> None:
        self._known: I64 = np.sort(values.to_numpy(zero_copy_only=False).astype(np.int64))
        self.size = len(self._known)
        self._low = int(self._known[0]) if self.size else 0
        self._span = int(self._known[-1]) - self._low + 1 if self.size else 0
        self._table: npt.NDArray[np.int32] | None = None
        self._is_there: npt.NDArray[np.bool_] | None = None
        if 0 < self._span <= max(_SMALL_TABLE, _DENSE * self.size):
            self._table = np.full(self._span, _NONE, np.int32)
            self._table[self._known - self._low] = np.arange(self.size, dtype=np.int32)
        elif 0 < self._span <= _MOST_BITS:
            self._is_there = np.zeros(self._span, bool)
            self._is_there[self._known - self._low] = True

    def find(self, array: pa.Array) -> I64:
        is_null = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
        filled = array.fill_null(0) if is_null is not None else array
        values = filled.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
        places = self._find(values)
        if is_null is not None:
            places[is_null] = _NONE
        return places

    def _find(self, values: I64) -> I64:
        if self._table is None and self._is_there is None:
            return _places(self._known, values)
        # As unsigned numbers, those below the first are beyond the last.
        steps = values - np.int64(self._low)
        is_inside = steps.view(np.uint64) < np.uint64(self._span)
        inside = slice(None) if is_inside.all() else np.flatnonzero(is_inside)
        places = np.full(len(values), _NONE, np.int64)
        if self._table is not None:
            places[inside] = self._table[steps[inside]]
        else:
            assert self._is_there is not None
            there = np.flatnonzero(self._is_there[steps[inside]])
            found = there if isinstance(inside, slice) else inside[there]
            places[found] = np.searchsorted(self._known, values[found])
        return places


@dataclass(frozen=True)
class _KeyColumn:
    """The distinct values of a key column of the source."""

    places: _Places
    matches_null: bool

    @staticmethod
    def of(key: pa.Array, *, matches_null: bool) -> "_KeyColumn":
        values = comparable(key).unique().drop_null()
        if pa.types.is_integer(values.type):
            return _KeyColumn(_IntegerPlaces(values), matches_null)
        return _KeyColumn(_HashedPlaces(values), matches_null)

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
            self._known = np.flatnonzero(counts)
            self._counts = counts[self._known]
        else:
            self._known, self._counts = np.unique(codes, return_counts=True)
        self._has_all_codes = len(self._known) == total
        self._starts: I64 = np.cumsum(self._counts) - self._counts
        self._rows: I64
        if self.is_unique and self._has_all_codes:
            self._rows = np.empty(total, np.int64)
            self._rows[codes] = rows
        else:
            self._rows = rows[np.argsort(codes, kind="stable")]

    @cached_property
    def is_unique(self) -> bool:
        """Whether no two rows of the source have the same key."""
        return bool((self._counts == 1).all())

    def repeated(self, limit: int) -> I64:
        """One row for some of the keys that several rows of the source have."""
        return self._rows[self._starts[self._counts > 1][:limit]]

    def pairs(self, keys: Sequence[pa.Array]) -> tuple[I64, I64]:
        """The rows that match: places among the given keys, ascending, and rows of the source."""
        codes, _ = self._codes(keys, learns=False)
        if not len(self._known):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        hits = np.flatnonzero(codes != _NONE)
        places = codes[hits]
        if not self._has_all_codes:
            places = _places(self._known, places)
            is_known = places != _NONE
            hits, places = hits[is_known], places[is_known]
        if self.is_unique or not len(hits):
            return hits, self._rows[places]
        counts, starts = self._counts[places], self._starts[places]
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

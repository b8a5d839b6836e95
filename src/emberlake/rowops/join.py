"""Match rows of two sides by the equality of keys, whole columns at a time.

The smaller side, the source of a merge, is held in memory and indexed once. The other side comes in
parts. Every key column is reduced to codes: the place of a value among the distinct values of the
source. The codes of all columns together make one number for each row.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from emberlake.spec.column_buffers import I64

_MOST_CODES: Final = 1 << 62
_NONE: Final = -1


@dataclass(frozen=True)
class _KeyColumn:
    """The distinct values of a key column of the source."""

    values: pa.Array
    matches_null: bool

    @property
    def size(self) -> int:
        return len(self.values) + self.matches_null

    def codes(self, array: pa.Array) -> I64:
        """The code of every value; ``_NONE`` if the source does not have it."""
        array = comparable(array)
        found = pc.index_in(array, value_set=self.values, skip_nulls=True)
        codes: I64 = found.fill_null(_NONE).to_numpy(zero_copy_only=False).astype(np.int64)
        if self.matches_null and array.null_count:
            codes[array.is_null().to_numpy(zero_copy_only=False)] = len(self.values)
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
            _KeyColumn(comparable(key).unique().drop_null(), with_null)
            for key, with_null in zip(keys, matches_null, strict=True)
        ]
        # Where the combined codes would not fit 64 bits, the codes so far are numbered anew.
        self._renumbered: dict[int, I64] = {}
        codes = self._codes(keys, learns=True)
        if is_used is not None:
            codes[~is_used] = _NONE
        rows = np.flatnonzero(codes != _NONE)
        self._rows = rows[np.argsort(codes[rows], kind="stable")]
        self._known, self._starts, self._counts = np.unique(
            codes[self._rows], return_index=True, return_counts=True
        )

    @property
    def is_unique(self) -> bool:
        """Whether no two rows of the source have the same key."""
        return bool((self._counts == 1).all())

    def repeated(self, limit: int) -> I64:
        """One row for some of the keys that several rows of the source have."""
        return self._rows[self._starts[self._counts > 1][:limit]]

    def pairs(self, keys: Sequence[pa.Array]) -> tuple[I64, I64]:
        """The rows that match: places among the given keys, ascending, and rows of the source."""
        codes = self._codes(keys, learns=False)
        if not len(self._known):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        places = np.minimum(np.searchsorted(self._known, codes), len(self._known) - 1)
        hits = np.flatnonzero((self._known[places] == codes) & (codes != _NONE))
        places = places[hits]
        counts, starts = self._counts[places], self._starts[places]
        if len(hits) == int(counts.sum()):
            return hits, self._rows[starts]
        # One place for each source row of a key: start, start + 1, ...
        ends = np.cumsum(counts)
        steps = np.arange(ends[-1]) - np.repeat(ends - counts, counts)
        return np.repeat(hits, counts), self._rows[np.repeat(starts, counts) + steps]

    def _codes(self, keys: Sequence[pa.Array], *, learns: bool) -> I64:
        total, so_far = 1, np.zeros(len(keys[0]), np.int64)
        for number, (column, key) in enumerate(zip(self._columns, keys, strict=True)):
            codes = column.codes(key)
            size = max(1, column.size)
            if total > _MOST_CODES // size:
                if learns:
                    self._renumbered[number] = np.unique(so_far[so_far != _NONE])
                so_far = _places(self._renumbered[number], so_far)
                total = max(1, len(self._renumbered[number]))
            is_known = (codes != _NONE) & (so_far != _NONE)
            so_far = np.where(is_known, so_far * size + codes, _NONE)
            total *= size
        return so_far


def _places(known: I64, codes: I64) -> I64:
    if not len(known):
        return np.full(len(codes), _NONE, np.int64)
    places = np.minimum(np.searchsorted(known, codes), len(known) - 1)
    return np.where(known[places] == codes, places, _NONE)


def comparable(array: pa.Array) -> pa.Array:
    """Keys that are equal exactly if their bits are: one zero, and no NaN, which equals nothing."""
    if not pa.types.is_floating(array.type):
        return array
    array = pc.add(array, pa.scalar(0.0, array.type))
    return pc.if_else(pc.is_nan(array), pa.scalar(None, array.type), array)

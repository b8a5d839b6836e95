"""Orders of rows that keep rows with similar values together: by columns, or along a curve.

A curve treats all columns alike: a filter on any of them skips files. Every column is replaced by
the rank of its values, in as many bits as fit, so that types and distributions do not matter.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

_Ranks: TypeAlias = npt.NDArray[np.uint64]
_BITS = 64


class OrderKind(StrEnum):
    """How rows are ordered."""

    ORDER = "order"
    ZORDER = "zorder"
    HILBERT = "hilbert"


def order_of(rows: pa.Table, columns: Sequence[str], kind: OrderKind) -> pa.Array:
    """The positions of the rows in the given order; nulls come last."""
    if kind is OrderKind.ORDER or len(columns) == 1:
        keys = [(name, "ascending") for name in columns]
        return pc.sort_indices(rows, sort_keys=keys)
    bits = _BITS // len(columns)
    ranks = np.stack([_ranks(rows.column(name), bits) for name in columns])
    if kind is OrderKind.HILBERT:
        ranks = _along_hilbert(ranks, bits)
    return pa.array(np.argsort(_interleaved(ranks, bits), kind="stable"))


def _ranks(column: pa.ChunkedArray, bits: int) -> _Ranks:
    """The rank of each value, spread over the range of ``bits`` bits."""
    rank = pc.rank(column, tiebreaker="dense").to_numpy()
    top = max(int(rank.max(initial=1)), 1)
    spread = (rank - 1).astype(np.float64) / top * float(2 ** min(bits, 52))
    out: _Ranks = spread.astype(np.uint64)
    return out


def _interleaved(ranks: _Ranks, bits: int) -> _Ranks:
    """One number for each row: the highest bits of all columns, then the next ones, ..."""
    out = np.zeros(ranks.shape[1], np.uint64)
    for bit in range(bits - 1, -1, -1):
        for rank in ranks:
            out = (out << np.uint64(1)) | ((rank >> np.uint64(bit)) & np.uint64(1))
    return out


def _along_hilbert(ranks: _Ranks, bits: int) -> _Ranks:
    """Coordinates, turned so that their interleaved bits are the distance along Hilbert's curve.

    John Skilling, "Programming the Hilbert curve" (2004): axes to transpose.
    """
    x = ranks.copy()
    one = np.uint64(1)
    for bit in range(bits - 1, 0, -1):
        q = one << np.uint64(bit)
        below = q - one
        for axis in range(len(x)):
            is_set = (x[axis] & q) != 0
            swapped = np.where(is_set, np.uint64(0), (x[0] ^ x[axis]) & below)
            x[0] = np.where(is_set, x[0] ^ below, x[0] ^ swapped)
            if axis:
                x[axis] ^= swapped
    for axis in range(1, len(x)):  # Gray code
        x[axis] ^= x[axis - 1]
    turned = np.zeros_like(x[0])
    for bit in range(bits - 1, 0, -1):
        q = one << np.uint64(bit)
        turned = np.where((x[-1] & q) != 0, turned ^ (q - one), turned)
    out: _Ranks = x ^ turned
    return out

"""Steps: what each record of a key does to the value of one column.

Engines decide about records once; aggregate functions then see a column, a step for each of its
values and where each key begins. Within a key, steps are in merge order. Records before a ``START``
are forgotten: their step is ``SKIP``.
"""

from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from emberlake.spec.column_buffers import I64, U8, Mask


class Step(IntEnum):
    """What one record does to a value."""

    SKIP = 0  # nothing
    ADD = 1  # a newer value comes in
    ADD_OLDER = 2  # a value comes in that is older than the current one
    RETRACT = 3  # a value is retracted
    START = 4  # the value becomes that of the record


COMES_IN: Final = (Step.ADD, Step.ADD_OLDER, Step.START)


@dataclass(frozen=True)
class Steps:
    """The steps of a column; every key has at least one."""

    kinds: U8  # a Step for each value
    starts: I64  # the first step of each key
    # The steps before a START, for functions that remember that they were called. None: there
    # are none.
    forgotten: U8 | None = None

    @cached_property
    def ends(self) -> I64:
        """The position after the last step of each key."""
        return np.append(self.starts, len(self.kinds))[1:]

    @cached_property
    def keys(self) -> I64:
        """The number of the key of each step."""
        return np.repeat(np.arange(len(self.starts)), self.ends - self.starts)

    @cached_property
    def has_only_adds(self) -> bool:
        return bool((self.kinds == Step.ADD).all())

    @cached_property
    def has_older(self) -> bool:
        return bool((self.kinds == Step.ADD_OLDER).any())

    @cached_property
    def has_retracts(self) -> bool:
        return bool((self.kinds == Step.RETRACT).any())

    def are(self, *steps: Step) -> Mask:
        """A mask of these steps."""
        mask: Mask = self.kinds == steps[0]
        for step in steps[1:]:
            mask |= self.kinds == step
        return mask

    def without_retracts(self) -> "Steps":
        """The same steps, but nothing is retracted."""
        if not self.has_retracts:
            return self
        kinds = np.where(self.kinds == Step.RETRACT, np.uint8(Step.SKIP), self.kinds)
        return replace(self, kinds=kinds)

    def started_at(self, mask: Mask) -> "Steps":
        """The same steps, but the last record of each key with the mask set restarts the key."""
        if not mask.any():
            return self
        at = self.last(mask)
        is_forgotten = np.arange(len(mask)) < at[self.keys]
        kinds = np.where(is_forgotten, np.uint8(Step.SKIP), self.kinds)
        kinds[at[at >= 0]] = Step.START
        forgotten = None
        if is_forgotten.any():
            forgotten = np.where(is_forgotten, self.kinds, np.uint8(Step.SKIP))
        return Steps(kinds, self.starts, forgotten)

    def last(self, mask: Mask) -> I64:
        """The last position of each key where the mask is set, or -1."""
        at, up_to = np.flatnonzero(mask), self._counts_up_to(mask)
        if not len(at):
            return np.full(len(self.starts), -1)
        last = at.take(up_to - 1, mode="wrap")
        return np.where((last >= self.starts) & (up_to > 0), last, -1)

    def first(self, mask: Mask) -> I64:
        """The first position of each key where the mask is set, or -1."""
        at, up_to = np.flatnonzero(mask), self._counts_up_to(mask)
        before = np.zeros_like(up_to)
        before[1:] = up_to[:-1]
        if not len(at):
            return np.full(len(self.starts), -1)
        return np.where(up_to > before, at.take(before, mode="clip"), -1)

    def counts(self, mask: Mask) -> I64:
        """How often the mask is set in each key."""
        up_to = self._counts_up_to(mask)
        return np.diff(up_to, prepend=np.int64(0))

    def _counts_up_to(self, mask: Mask) -> I64:
        """How often the mask is set in each key and in all keys before it."""
        counts: I64 = np.cumsum(mask, dtype=np.int32).take(self.ends - 1).astype(np.int64)
        return counts

    def oldest_first(self, positions: I64) -> I64:
        """Positions in the order of age: values that are older but came in late come first."""
        if not self.has_older:
            return positions
        is_older = self.kinds[positions] == Step.ADD_OLDER
        age = np.where(is_older, -1 - positions, positions)
        order: I64 = positions[np.lexsort((age, self.keys[positions]))]
        return order


def valid_of(column: pa.Array) -> Mask:
    """Where a column is not null."""
    if not column.null_count:
        return np.ones(len(column), dtype=np.bool_)
    valid: Mask = column.is_valid().to_numpy(zero_copy_only=False)
    return valid


def pick(column: pa.Array, positions: I64) -> pa.Array:
    """The values at some positions; null at -1."""
    is_null = positions < 0
    if not is_null.any():
        return column.take(pa.array(positions))
    return column.take(pa.array(positions, mask=is_null))


def ranges(begins: I64, lengths: I64) -> I64:
    """All numbers of some ranges, one range after another."""
    before = np.cumsum(lengths) - lengths
    result: I64 = np.repeat(begins - before, lengths) + np.arange(int(lengths.sum()))
    return result


def fixed_width_array(
    data_type: pa.DataType, values: npt.NDArray[np.generic], valid: Mask
) -> pa.Array:
    """An array of values that have the memory layout of Arrow."""
    bitmap = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    data = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(data_type, len(valid), [bitmap, data])

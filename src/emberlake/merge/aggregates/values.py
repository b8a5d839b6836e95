"""Functions that keep one of the values: the first or the last, null or not, or any.

Spec: "Merge engines". The result is a position per key; the values themselves are never touched.
"""

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from emberlake.merge.aggregates.steps import Step, Steps, pick, valid_of
from emberlake.spec.column_buffers import I64, Mask


def any_value(column: pa.Array, steps: Steps) -> pa.Array:
    """The value of a key column, which is the same in all records."""
    return pick(column, steps.last(steps.kinds != Step.SKIP))


def last_value(column: pa.Array, steps: Steps) -> pa.Array:
    """The newest value, null or not; null if it was retracted."""
    at = steps.last(steps.are(Step.ADD, Step.RETRACT, Step.START))
    return pick(column, _unless_retracted(at, steps))


def last_non_null_value(column: pa.Array, steps: Steps) -> pa.Array:
    """The newest value that is not null; null if a value was retracted after it."""
    return pick(column, last_non_null_at(valid_of(column), steps))


def last_non_null_at(valid: Mask, steps: Steps) -> I64:
    """The position of the newest value that is not null, or -1."""
    if steps.has_only_adds:
        return steps.last(valid)
    sets = (steps.are(Step.ADD, Step.RETRACT) & valid) | steps.are(Step.START)
    at = steps.last(sets)
    found = _unless_retracted(at, steps)
    if not steps.has_older:
        return found
    found = np.where((found >= 0) & valid[found], found, -1)
    # An older value fills a gap, once.
    late = steps.are(Step.ADD_OLDER) & valid & (np.arange(len(valid)) > at[steps.keys])
    return np.where(found >= 0, found, steps.first(late))


def first_value(column: pa.Array, steps: Steps) -> pa.Array:
    """The oldest value, null or not.

    The first record that comes in settles the value; from then on only older ones replace it.
    """
    settled = steps.first(_comes_in(steps))
    was_settled = _before_start(steps, lambda before: before.first(_comes_in(before)))
    return pick(column, _oldest(steps, settled, was_settled, steps.last(steps.are(Step.START))))


def first_non_null_value(column: pa.Array, steps: Steps) -> pa.Array:
    """The oldest value that is not null.

    The first value that is not null settles it, and so does an older record that finds a value.
    From then on every older record replaces it, even by null.
    """
    valid = valid_of(column)
    was_settled = _before_start(steps, lambda before: _settled(valid, before))
    found = _unsettled_value(valid, steps)
    return pick(column, _oldest(steps, _settled(valid, steps), was_settled, found))


def _oldest(steps: Steps, settled: I64, was_settled: Mask, unsettled: I64) -> I64:
    """The position of the oldest value, given what settled it, or else the unsettled value."""
    settled = np.where(was_settled, -1, settled)
    by_value = (settled >= 0) & (steps.kinds[settled] == Step.ADD)
    started = np.where(was_settled, steps.last(steps.are(Step.START)), unsettled)
    oldest = np.where(by_value, settled, started)
    if not steps.has_older:
        return oldest
    is_settled = was_settled | (settled >= 0)
    after = is_settled[steps.keys] & (np.arange(len(steps.kinds)) > settled[steps.keys])
    older = steps.last(steps.are(Step.ADD_OLDER) & after)
    return np.where(older >= 0, older, oldest)


def _settled(valid: Mask, steps: Steps) -> I64:
    unsettled = _unsettled_value(valid, steps)[steps.keys]
    finds = steps.are(Step.ADD_OLDER) & (unsettled >= 0) & (np.arange(len(valid)) > unsettled)
    return steps.first((steps.are(Step.ADD) & valid) | finds)


def _unsettled_value(valid: Mask, steps: Steps) -> I64:
    return steps.first(steps.are(Step.ADD_OLDER, Step.START) & valid)


def _comes_in(steps: Steps) -> Mask:
    return steps.are(Step.ADD, Step.ADD_OLDER)


def _before_start(steps: Steps, settled: Callable[[Steps], I64]) -> Mask:
    """Keys that were settled before a START: the records are forgotten, but not this."""
    if steps.forgotten is None:
        return np.zeros(len(steps.starts), dtype=np.bool_)
    return settled(Steps(steps.forgotten, steps.starts)) >= 0


def _unless_retracted(at: I64, steps: Steps) -> I64:
    return np.where(steps.kinds[at] == Step.RETRACT, -1, at)

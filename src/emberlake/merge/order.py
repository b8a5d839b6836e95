"""The order of records: by key, and within a key from the oldest to the latest.

Spec: "Comparison order" and "Reading". Nulls are first, texts and bytes compare as unsigned bytes,
-0.0 is before 0.0 and NaN is the largest float.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from emberlake.merge.digits import Digit, Number, digits_of
from emberlake.merge.rows import retracts_of
from emberlake.spec.column_buffers import I64, U64, Mask
from emberlake.spec.key_value import SEQUENCE, SEQUENCE_FIELD
from emberlake.spec.values import Value, from_arrow_array
from emberlake.types import DataField

KeyBound: TypeAlias = tuple[Any, ...]  # a key as Python compares it

_WORD: Final = 64
# Up to this many sorted runs, merging is faster than sorting.
_FEW_RUNS: Final = 64


@dataclass(frozen=True)
class SequenceOrder:
    """A column that orders the records of a key; nulls come first in both directions."""

    column: DataField
    descending: bool = False


@dataclass(frozen=True, slots=True)
class RowOrder:
    """Rows in order, and where the records of each key begin among them."""

    rows: I64
    starts: I64


def order_rows(
    table: pa.Table, keys: Sequence[DataField], sequences: Sequence[SequenceOrder]
) -> RowOrder:
    """Records by key, and within a key the oldest first.

    The records of a key are ordered by the sequence columns, then by sequence number, then retracts
    before adds, then by position.
    """
    refinement = _sort(list(_key_digits(table, keys)), table.num_rows)
    starts = np.flatnonzero(refinement.is_start)
    for digit in _sequence_digits(table, sequences, refinement):
        refinement.refine(digit)
    return RowOrder(refinement.rows, starts)


def group_starts(table: pa.Table, keys: Sequence[DataField]) -> I64:
    """Where the records of each key begin in rows that are sorted by key."""
    is_start = np.zeros(table.num_rows, dtype=np.bool_)
    is_start[:1] = True
    for digit in _key_digits(table, keys):
        values = digit.of(slice(None))
        is_start[1:] |= values[1:] != values[:-1]
    return np.flatnonzero(is_start)


# --- single keys ----------------------------------------------------------------------------------


def key_at(table: pa.Table, keys: Sequence[DataField], row: int) -> tuple[Value, ...]:
    """The key of one row."""
    return tuple(from_arrow_array(f.type, table.column(f.name).slice(row, 1))[0] for f in keys)


def key_bound(key: Sequence[Value]) -> KeyBound:
    """A key in the form that Python compares as the format does."""
    return tuple(_comparable(value) for value in key)


def rows_up_to(table: pa.Table, keys: Sequence[DataField], bound: KeyBound) -> int:
    """How many leading rows of a table that is sorted by key have keys up to a bound."""
    low, high = 0, table.num_rows
    # A loop over the few rows that a binary search visits.
    while low < high:
        middle = (low + high) // 2
        if key_bound(key_at(table, keys, middle)) <= bound:
            low = middle + 1
        else:
            high = middle
    return low


def _comparable(value: Value) -> tuple[Any, ...]:
    if value is None:
        return (0,)
    if isinstance(value, float):
        is_nan = math.isnan(value)
        return (1, is_nan, 0.0 if is_nan else value, 0.0 if is_nan else math.copysign(1, value))
    return (1, value)


# --- sorting by digits ----------------------------------------------------------------------------


def _key_digits(table: pa.Table, keys: Sequence[DataField]) -> Iterator[Digit]:
    for field in keys:
        yield from digits_of(field, table.column(field.name), descending=False)


def _sequence_digits(
    table: pa.Table, sequences: Sequence[SequenceOrder], refinement: "_Refinement"
) -> Iterator[Digit]:
    """The digits that order the records of one key; none is made once all are in order."""
    if not refinement.has_ties:
        return
    for order in sequences:
        column = table.column(order.column.name)
        yield from digits_of(order.column, column, descending=order.descending)
    yield from digits_of(SEQUENCE_FIELD, table.column(SEQUENCE), descending=False)
    yield Number((~retracts_of(table)).astype(np.uint64), 1)


class _Refinement:
    """Rows that are sorted by the digits seen so far.

    Rows with the same digits so far are tied. They are next to each other, in the order of the
    table; the first of them is a start. Only tied rows are looked at again.
    """

    def __init__(self, rows: I64, is_start: Mask) -> None:
        self.rows = rows
        self.is_start = is_start
        self._tied = _tied_positions(is_start)
        self._tied_rows = rows[self._tied]
        self._tied_starts = is_start[self._tied]

    @property
    def has_ties(self) -> bool:
        return len(self._tied) > 0

    def refine(self, digit: Digit) -> None:
        """Order the rows that are still tied by one more digit."""
        if not self.has_ties:
            return
        values = digit.of(self._tied_rows)
        inside = ~self._tied_starts[1:]
        if ((values[1:] < values[:-1]) & inside).any():
            values = self._move(values, inside)
        is_new = (values[1:] != values[:-1]) & inside
        if is_new.any():
            self._untie(is_new)

    def _move(self, values: U64, inside: Mask) -> U64:
        """Sort the rows of every tie that is out of order by the digit."""
        ties = np.cumsum(self._tied_starts) - 1
        is_disordered = np.zeros(int(ties[-1]) + 1, dtype=np.bool_)
        is_disordered[ties[1:][(values[1:] < values[:-1]) & inside]] = True
        positions = np.flatnonzero(is_disordered[ties])
        moved = positions[_stable_order(ties[positions], values[positions])]
        self._tied_rows[positions] = self._tied_rows[moved]
        self.rows[self._tied] = self._tied_rows
        values[positions] = values[moved]
        return values

    def _untie(self, is_new: Mask) -> None:
        self._tied_starts[1:] |= is_new
        self.is_start[self._tied] = self._tied_starts
        still = _tied_positions(self._tied_starts)
        self._tied = self._tied[still]
        self._tied_rows = self._tied_rows[still]
        self._tied_starts = self._tied_starts[still]


def _tied_positions(is_start: Mask) -> I64:
    is_tied = ~is_start
    is_tied[:-1] |= is_tied[1:]
    return np.flatnonzero(is_tied)


def _sort(digits: list[Digit], count: int) -> _Refinement:
    """Rows sorted by all digits: by as many at once as fit one word, then the ties by the rest."""
    heads, bits, rest = _pack(digits, count)
    is_start = np.zeros(count, dtype=np.bool_)
    is_start[:1] = True
    if bits:
        # In place where possible: a writer's buffer is sorted as a whole, and each of these arrays
        # is about an eighth of it.
        index_bits = np.uint64(max(count - 1, 0).bit_length())
        words = heads << index_bits
        del heads
        words |= np.arange(count, dtype=np.uint64)
        _sort_words(words)
        heads = words >> index_bits
        is_start[1:] = heads[1:] != heads[:-1]
        del heads
        words &= (np.uint64(1) << index_bits) - np.uint64(1)
        rows = words.view(np.int64)
    else:
        rows = np.arange(count)
    refinement = _Refinement(rows, is_start)
    for digit in rest:
        refinement.refine(digit)
    return refinement


def _pack(digits: list[Digit], count: int) -> tuple[U64, int, list[Digit]]:
    """The leading digits in one word that leaves room for a row number, and the digits left."""
    room = _WORD - max(count - 1, 0).bit_length()
    heads, used = np.zeros(count, dtype=np.uint64), 0
    for index, digit in enumerate(digits):
        values, bits = digit.packed()
        if used + bits > room:
            spill = used + bits - room
            high = values >> np.uint64(spill) if spill < bits else None
            low = Number(values & np.uint64(2**spill - 1), spill)
            if high is not None:
                heads = (heads << np.uint64(room - used)) | high if used else high
            return heads, room, [low, *digits[index + 1 :]]
        if bits:
            heads = (heads << np.uint64(bits)) | values if used else values
            used += bits
    return heads, used, []


def _sort_words(words: U64) -> None:
    falls = np.count_nonzero(words[1:] < words[:-1])
    if falls:
        words.sort(kind="stable" if falls < _FEW_RUNS else "quicksort")


def _stable_order(groups: I64, values: U64) -> I64:
    """The order by group and value; equal values keep their order."""
    count = len(groups)
    index_bits = (count - 1).bit_length()
    low = values.min()
    value_bits = int(values.max() - low).bit_length()
    first = groups[0]
    if int(groups[-1] - first).bit_length() + value_bits + index_bits > _WORD:
        order: I64 = np.lexsort((values, groups))
        return order
    words = (groups - first).astype(np.uint64) << np.uint64(value_bits + index_bits)
    words |= (values - low) << np.uint64(index_bits)
    words |= np.arange(count, dtype=np.uint64)
    words.sort()
    rows: I64 = (words & np.uint64(2**index_bits - 1)).astype(np.int64)
    return rows

"""Groups of files that lie side by side, for all files of a plan at once. Spec: "Data evolution".

A filter may exclude a group only by statistics of the file that a column is read from: statistics
of older files are stale.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from emberlake.errors import CorruptFile
from emberlake.predicates import ColumnRange
from emberlake.scan.columnstats import FilesAlike
from emberlake.spec.column_buffers import I64, Mask
from emberlake.spec.file_groups import is_dedicated
from emberlake.spec.key_value import SEQUENCE
from emberlake.spec.row_tracking import ROW_ID
from emberlake.store.entries import ManifestEntries
from emberlake.types import DataField, arrow_type


@dataclass(frozen=True)
class Grouping:
    """Which files have the same rows."""

    # The files by partition and row id; in a group the newest come first, dedicated ones last.
    order: I64
    starts: I64  # where each group begins in that order

    @property
    def sizes(self) -> I64:
        return np.diff(np.append(self.starts, len(self.order)))


def group_entries(entries: ManifestEntries) -> Grouping:
    """The groups of some files.

    Raises:
        CorruptFile: a file has no first row id.
    """
    first_ids = entries.first_row_id
    if first_ids.null_count:
        name = entries.file_name.filter(first_ids.is_null())[0].as_py()
        raise CorruptFile(name, "it has no first row id, which data-evolution.enabled requires")
    first = first_ids.to_numpy()
    end = first + entries.row_count
    codes = entries.partition_codes.astype(np.int64)
    order = np.lexsort((end, first, codes))
    numbers = np.empty(len(order), np.int64)
    numbers[order] = _group_numbers(codes[order], first[order], end[order])
    age = -entries.max_sequence_number
    dedicated = _dedicated(entries)
    order = np.lexsort((np.arange(len(order)), age, dedicated, numbers))
    return Grouping(order, np.flatnonzero(np.diff(numbers[order], prepend=-1)))


def _group_numbers(codes: I64, first: I64, end: I64) -> I64:
    """The number of the group of each file, for files in the order of their row ids."""
    numbers = np.empty(len(codes), np.int64)
    number, code, until = -1, -1, -1
    # A loop over files: where a group ends depends on all that are in it.
    found = zip(codes.tolist(), first.tolist(), end.tolist(), strict=True)
    for place, (its_code, its_first, its_end) in enumerate(found):
        if its_code != code or its_first >= until:
            number, code, until = number + 1, its_code, its_end
        numbers[place] = number
        until = max(until, its_end)
    return numbers


def _dedicated(entries: ManifestEntries) -> Mask:
    return np.array([is_dedicated(name) for name in entries.file_name.to_pylist()], bool)


class GroupStatistics:
    """The ranges of columns in every group.

    Args:
        entries: All files.
        grouping: Their groups.
        alike: The same files, in parts that share their columns.
        partition_range: Gives the range of a partition column in the files of these numbers.
    """

    def __init__(
        self,
        entries: ManifestEntries,
        grouping: Grouping,
        alike: Sequence[FilesAlike],
        partition_range: Callable[[str, I64], ColumnRange | None],
    ) -> None:
        self._entries = entries
        self._grouping = grouping
        self._alike = alike
        self._partition_range = partition_range
        order, starts = grouping.order, grouping.starts
        self._newest = order[starts]  # of each group
        self.row_counts = entries.row_count[self._newest]
        self._numbers = entries.max_sequence_number[order]
        self._dedicated = _dedicated(entries)[order]

    def range_of(self, field: DataField) -> ColumnRange | None:
        """The range of a column in every group; None if nothing is known."""
        of_partition = self._partition_range(field.name, self._newest)
        if of_partition is not None:
            return of_partition
        if field.name == ROW_ID:
            first = self._entries.first_row_id.to_numpy()[self._newest]
            return _known(first, first + self.row_counts - 1)
        if field.name == SEQUENCE:
            number = self._entries.max_sequence_number[self._newest]
            return _known(number, number)
        return self._range_of_winner(field)

    def _range_of_winner(self, field: DataField) -> ColumnRange | None:
        order, starts = self._grouping.order, self._grouping.starts
        has_it, found = self._of_files(field)
        has_it = has_it[order]
        apart = np.logical_or.reduceat(has_it & self._dedicated, starts)
        has_it &= ~self._dedicated
        places = np.where(has_it, np.arange(len(order)), len(order))
        winner = np.minimum.reduceat(places, starts)
        is_absent = winner == len(order)
        winner = np.where(is_absent, 0, winner)
        newest = np.repeat(self._numbers[winner], self._grouping.sizes)
        rivals = np.add.reduceat(has_it & (self._numbers == newest), starts)
        is_known = ~is_absent & ~apart & (rivals == 1)
        chosen = pa.array(order[winner], mask=~is_known)  # a null picks a null: unknown
        low, high, nulls = (column.take(chosen) for column in found)
        # Rows that have the column in no file are null in it.
        counts = np.where(is_absent & ~apart, self.row_counts, -1)
        all_null = pa.array(counts, mask=counts < 0)
        return ColumnRange(low, high, pa.compute.coalesce(nulls, all_null))

    def _of_files(self, field: DataField) -> tuple[Mask, tuple[pa.Array, pa.Array, pa.Array]]:
        """For every file whether it has the column, and what its statistics say."""
        count, kind = len(self._entries), arrow_type(field.type)
        has_it = np.zeros(count, bool)
        parts: list[tuple[pa.Array, pa.Array, pa.Array]] = []
        for alike in self._alike:
            has_it[alike.rows] = alike.has(field)
            known = alike.range_of(field) if alike.has(field) else None
            parts.append(_filled(known or ColumnRange(), len(alike.rows), kind))
        places = np.empty(count, np.int64)
        places[np.concatenate([alike.rows for alike in self._alike])] = np.arange(count)
        taken = pa.array(places)
        low, high, nulls = (pa.concat_arrays(part).take(taken) for part in zip(*parts, strict=True))
        return has_it, (low, high, nulls)


def _known(low: I64, high: I64) -> ColumnRange:
    return ColumnRange(pa.array(low), pa.array(high), pa.array(np.zeros(len(low), np.int64)))


def _filled(
    known: ColumnRange, count: int, kind: pa.DataType
) -> tuple[pa.Array, pa.Array, pa.Array]:
    low = known.min if known.min is not None else pa.nulls(count, kind)
    high = known.max if known.max is not None else pa.nulls(count, kind)
    nulls = known.null_count if known.null_count is not None else pa.nulls(count, pa.int64())
    return low, high, nulls.cast(pa.int64())

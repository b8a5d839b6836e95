"""Which files of a bucket share keys: sections, and inside them sorted runs.

Spec: "Reading" and "When a split can be read without merging". Files are positions in a list that
the caller keeps; decisions depend only on key ranges, levels and delete counts.
"""

import heapq
from collections.abc import Sequence
from typing import TypeAlias

import pyarrow as pa

from emberlake.merge.order import KeyBound, key_bound
from emberlake.spec.row_columns import decode_column
from emberlake.spec.values import from_arrow_array
from emberlake.types import DataType

KeyRange: TypeAlias = tuple[KeyBound, KeyBound]  # the smallest and the largest key of a file
Run: TypeAlias = tuple[int, ...]  # files in key order that share no keys
Section: TypeAlias = tuple[Run, ...]  # runs that share keys with each other


def key_ranges(
    key_types: Sequence[DataType], least: pa.Array, greatest: pa.Array
) -> list[KeyRange]:
    """The key ranges of files, from their serialized smallest and largest keys."""
    return list(zip(_bounds(key_types, least), _bounds(key_types, greatest), strict=True))


def _bounds(key_types: Sequence[DataType], rows: pa.Array) -> list[KeyBound]:
    columns = (
        from_arrow_array(data_type, decode_column(key_types, rows, index))
        for index, data_type in enumerate(key_types)
    )
    return [key_bound(key) for key in zip(*columns, strict=True)]


def find_sections(ranges: Sequence[KeyRange]) -> list[Section]:
    """Files in sections, in key order: no key is in two sections."""
    sections: list[Section] = []
    members: list[int] = []
    bound: KeyBound = ()
    for file in sorted(range(len(ranges)), key=ranges.__getitem__):
        least, greatest = ranges[file]
        if members and least > bound:
            sections.append(_find_runs(ranges, members))
            members = []
        bound = greatest if not members else max(bound, greatest)
        members.append(file)
    if members:
        sections.append(_find_runs(ranges, members))
    return sections


def _find_runs(ranges: Sequence[KeyRange], files: Sequence[int]) -> Section:
    """As few runs as possible for files in the order of their smallest keys."""
    runs: list[list[int]] = []
    ends: list[tuple[KeyBound, int]] = []  # the last key of every run, the smallest first
    for file in files:
        least, greatest = ranges[file]
        if ends and ends[0][0] < least:
            run = ends[0][1]
            runs[run].append(file)
            heapq.heapreplace(ends, (greatest, run))
        else:
            heapq.heappush(ends, (greatest, len(runs)))
            runs.append([file])
    return tuple(tuple(run) for run in runs)


def is_raw_bucket(
    levels: Sequence[int], delete_counts: Sequence[int | None], *, levels_are_disjoint: bool
) -> bool:
    """Whether the files of a bucket can be read one after another, each by itself.

    Args:
        levels: The level of every file.
        delete_counts: The deletes in every file; unknown counts as none.
        levels_are_disjoint: Compaction keeps the rows of different levels apart, as it does for
            tables with deletion vectors and for first-row tables.
    """
    if 0 in levels or any(delete_counts):
        return False
    return levels_are_disjoint or len(set(levels)) == 1

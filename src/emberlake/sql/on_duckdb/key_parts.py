"""Key tables in a form that DuckDB can read by itself: old rows, some replaced by newer ones.

A table that keeps the newest record of a key is mostly one large part, in which no key occurs
twice, and a few newer files. DuckDB reads the large part, leaves out the keys of the newer files by
a hash join, and adds their rows. Everything is decided from metadata: which files share no keys,
and that all sequence numbers of the newer files are higher. Other tables are merged.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from emberlake.scan.files import live_entries
from emberlake.scan.newest import keeps_newest
from emberlake.scan.runs import KeyRange, find_sections, key_ranges
from emberlake.spec.manifest import DataFile
from emberlake.spec.snapshot import Snapshot
from emberlake.store.table_store import TableStore

_MOST_FILES: Final = 256
_MOST_NEWER: Final = 0.35  # of the rows; a table with more newer rows is merged


@dataclass(frozen=True)
class KeyPart:
    """Files with the numbers of their buckets."""

    files: tuple[tuple[int, DataFile], ...] = ()

    @property
    def row_count(self) -> int:
        return sum(file.row_count for _, file in self.files)


@dataclass(frozen=True)
class KeyParts:
    """The files of a key table without partitions.

    Args:
        keys: The primary key.
        old: No key occurs twice in it.
        newer: All records are newer than those of ``old``.
        is_once: Whether no key occurs twice in ``newer`` either.
    """

    keys: tuple[str, ...]
    old: KeyPart
    newer: KeyPart
    is_once: bool


def find_key_parts(store: TableStore, snapshot: Snapshot) -> KeyParts | None:
    """The two parts of a table; None if its rows have to be merged."""
    schema = store.schema
    if schema.partition_keys or not keeps_newest(schema):
        return None
    entries = live_entries(store, snapshot)
    if not 0 < len(entries) <= _MOST_FILES or (entries.bucket < 0).any():
        return None
    types = [schema.field_by_name[name].type for name in schema.trimmed_primary_keys]
    ranges = key_ranges(types, entries.min_key, entries.max_key)
    buckets: defaultdict[int, list[_Ranged]] = defaultdict(list)
    for bucket, file, key_range in zip(
        entries.bucket.tolist(), entries.files(), ranges, strict=True
    ):
        buckets[bucket].append((file, key_range))
    old: list[tuple[int, DataFile]] = []
    newer: list[tuple[int, DataFile]] = []
    is_once = True
    for bucket, files in buckets.items():
        first, rest = _divided(files)
        old += [(bucket, file) for file, _ in first]
        newer += [(bucket, file) for file, _ in rest]
        is_once = is_once and _shares_no_key([key_range for _, key_range in rest])
    parts = KeyParts(
        tuple(schema.trimmed_primary_keys), KeyPart(tuple(old)), KeyPart(tuple(newer)), is_once
    )
    is_small = parts.newer.row_count <= _MOST_NEWER * int(entries.row_count.sum())
    return parts if old and is_small else None


_Ranged = tuple[DataFile, KeyRange]


def _divided(files: Sequence[_Ranged]) -> tuple[Sequence[_Ranged], Sequence[_Ranged]]:
    """The oldest files that share no key, and the others, whose records are all newer."""
    ordered = sorted(files, key=lambda f: (f[0].max_sequence_number, f[0].min_sequence_number))
    for count in range(len(ordered), 0, -1):
        first, rest = ordered[:count], ordered[count:]
        highest = max(file.max_sequence_number for file, _ in first)
        is_newer = all(file.min_sequence_number > highest for file, _ in rest)
        if is_newer and _shares_no_key([key_range for _, key_range in first]):
            return first, rest
    return (), ordered


def _shares_no_key(ranges: Sequence[KeyRange]) -> bool:
    return all(len(section) == 1 for section in find_sections(ranges))

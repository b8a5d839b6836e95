"""Divides a read between Spark's own reader and ours, by metadata alone.

Files of a key table hold records. Spark reads them by itself where a filter tells which of them are
rows: by the kind of a record where no other file has its key, or also by the keys of a few newer
files, which it leaves out by a join. Our own reader merges the rest.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import pyarrow.compute as pc

from emberlake.base.option_texts import MEBIBYTE
from emberlake.read.key_read import may_retract
from emberlake.read.table_reader import TableReader
from emberlake.scan.newest import KeyFiles, find_key_files
from emberlake.scan.splits import DataSplit
from emberlake.spark.native_scan import NativeFile, NativeScan, Opens, opens_none
from emberlake.spec.key_value import KIND_FIELD, SEQUENCE_FIELD
from emberlake.spec.schema import TableSchema
from emberlake.types import DataField

# Of the records that share keys. With more, merging is not much slower.
_MOST_NEWER: Final = 0.2
# The driver and every executor get the keys of the newer records. A million take about 200 MB of
# their heaps if they are whole numbers, and 400 MB if they are texts of 36 letters.
_MOST_RECORDS: Final = 1_000_000
_MOST_BYTES: Final = 64 * MEBIBYTE


@dataclass(frozen=True)
class Division:
    """The files that Spark reads by itself, and the rest, for our own reader.

    Args:
        files: Each row in them is a row of the table.
        rest: What is left to our own reader.
        records: Each record in them that adds a row is one.
        layered: The same, unless ``newer`` has a record of the same key with a higher number.
        newer: Those of ``layered`` that replace records of others.
    """

    files: tuple[NativeFile, ...]
    rest: tuple[DataSplit, ...]
    records: tuple[NativeFile, ...] = ()
    layered: tuple[NativeFile, ...] = ()
    newer: tuple[NativeFile, ...] = ()

    @property
    def native(self) -> tuple[NativeFile, ...]:
        """All files that Spark reads by itself."""
        return self.files + self.records + self.layered

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(file.path for file in self.native)


def record_fields(schema: TableSchema) -> tuple[DataField, ...]:
    """What must be known of records to tell which of them replace others."""
    keys = (schema.field_by_name[name] for name in schema.primary_keys)
    return (*keys, SEQUENCE_FIELD)


def divide(reader: TableReader, splits: Sequence[DataSplit], opens: Opens = opens_none) -> Division:
    """Divide a read between Spark's own reader and ours.

    Args:
        reader: The read.
        splits: What it reads.
        opens: Whether Spark can read a file of an object store. It can always read files on disk.
    """
    scan = NativeScan(reader, opens)
    if not scan.is_possible:
        return Division((), tuple(splits))
    if reader.store.schema.profile.has_keys:
        return _divide_records(scan, splits)
    files: list[NativeFile] = []
    rest: list[DataSplit] = []
    for split in splits:
        paths = scan.native_paths(split)
        native = [NativeFile(path, split.partition) for path in paths if path is not None]
        files += native
        if len(native) < max(1, len(paths)):
            rest.append(split.take([path is None for path in paths]) if native else split)
    return Division(tuple(files), tuple(rest))


# --- key tables -----------------------------------------------------------------------------------


def _divide_records(scan: NativeScan, splits: Sequence[DataSplit]) -> Division:
    by_kind = replace(scan, more=(KIND_FIELD,))
    by_key = replace(scan, more=(*record_fields(scan.reader.store.schema), KIND_FIELD))
    parts = [_part(by_kind, by_key, split) for split in splits]
    if not _can_join(parts):
        parts = [replace(part, layered={}, newer={}) for part in parts]
    return Division(
        tuple(file for part in parts for file in part.native(part.files)),
        tuple(part.rest for part in parts if part.rest is not None),
        tuple(file for part in parts for file in part.native(part.records)),
        tuple(file for part in parts for file in part.native(part.layered)),
        tuple(file for part in parts for file in part.native(part.newer)),
    )


def _can_join(parts: Sequence["_Part"]) -> bool:
    """Whether every task can have the keys of all newer records, and compare its own with them."""
    return (
        sum(part.newer_rows for part in parts) <= _MOST_RECORDS
        and sum(part.newer_bytes for part in parts) <= _MOST_BYTES
        # A record of one snapshot replaces none of another.
        and len({part.split.snapshot_id for part in parts if part.layered}) <= 1
    )


Paths = Mapping[int, str]  # of files of a split, by their positions in it


@dataclass(frozen=True)
class _Part:
    """A split of a key table, divided."""

    split: DataSplit
    files: Paths = field(default_factory=dict)
    records: Paths = field(default_factory=dict)
    layered: Paths = field(default_factory=dict)
    newer: Paths = field(default_factory=dict)

    @property
    def newer_rows(self) -> int:
        return _rows(self.split, self.newer)

    @property
    def newer_bytes(self) -> int:
        """About the size of the keys of the newer records, if most are like those that we know."""
        entries, newer = self.split.entries, list(self.newer)
        known = pc.add(pc.binary_length(entries.min_key), pc.binary_length(entries.max_key))
        return int(entries.row_count[newer] @ known.to_numpy()[newer]) // 2

    def native(self, paths: Paths) -> list[NativeFile]:
        """Some of the files, for Spark."""
        return [NativeFile(path, self.split.partition) for path in paths.values()]

    @property
    def rest(self) -> DataSplit | None:
        """What is left to our own reader."""
        native = {*self.files, *self.records, *self.layered}
        if not native:
            return self.split
        left = [number not in native for number in range(len(self.split.entries))]
        return self.split.take(left) if any(left) else None


def _part(by_kind: NativeScan, by_key: NativeScan, split: DataSplit) -> _Part:
    if not by_kind.is_state(split):
        return _Part(split)
    found = find_key_files(by_kind.reader.store.schema, split)
    paths, files = by_kind.paths_of_records(split), split.files
    alone = {number: path for number in found.alone if (path := paths[number]) is not None}
    layered = _layered(by_key, split, found)
    return _Part(
        split,
        {number: path for number, path in alone.items() if not may_retract(files[number])},
        {number: path for number, path in alone.items() if may_retract(files[number])},
        layered,
        {number: layered[number] for number in found.newer if layered},
    )


def _layered(by_key: NativeScan, split: DataSplit, found: KeyFiles) -> Paths:
    """The files that replace each other's records; none if they are to be merged."""
    if not found.layered or not by_key.is_possible:
        return {}
    if _rows(split, found.newer) > _MOST_NEWER * _rows(split, found.layered):
        return {}
    paths = by_key.paths_of_records(split)
    native = {number: path for number in found.layered if (path := paths[number]) is not None}
    return native if len(native) == len(found.layered) else {}


def _rows(split: DataSplit, numbers: Iterable[int]) -> int:
    return int(split.entries.row_count[list(numbers)].sum())

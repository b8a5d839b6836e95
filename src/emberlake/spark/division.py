"""Divides a read between Spark's own reader and ours, by metadata alone.

Files of a key table hold records. Spark reads them by itself where a filter tells which of them are
rows: by the kind of a record where no other file has its key, or also by the keys of a few newer
files, which it leaves out by a join. Our own reader merges the rest.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

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
# Every task gets the keys of that many records.
_MOST_RECORDS: Final = 1_000_000


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
    """What must be known of a record to tell whether others replace it, and whether it is a row."""
    keys = (schema.field_by_name[name] for name in schema.primary_keys)
    return (*keys, SEQUENCE_FIELD, KIND_FIELD)


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
    parts = [_part(scan, split) for split in splits]
    if sum(part.newer_rows for part in parts) > _MOST_RECORDS:
        parts = [replace(part, layered={}, newer={}) for part in parts]
    return Division(
        tuple(file for part in parts for file in part.native(part.files)),
        tuple(part.rest for part in parts if part.rest is not None),
        tuple(file for part in parts for file in part.native(part.records)),
        tuple(file for part in parts for file in part.native(part.layered)),
        tuple(file for part in parts for file in part.native(part.newer)),
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


def _part(scan: NativeScan, split: DataSplit) -> _Part:
    if not scan.is_state(split):
        return _Part(split)
    found = find_key_files(scan.reader.store.schema, split)
    paths = dict(enumerate(replace(scan, more=(KIND_FIELD,)).paths_of_records(split)))
    alone = {number: path for number in found.alone if (path := paths[number]) is not None}
    files = split.files
    layered = _layered(scan, split, found) if found.layered else {}
    return _Part(
        split,
        {number: path for number, path in alone.items() if not may_retract(files[number])},
        {number: path for number, path in alone.items() if may_retract(files[number])},
        layered,
        {number: layered[number] for number in found.newer if layered},
    )


def _layered(scan: NativeScan, split: DataSplit, found: KeyFiles) -> Paths:
    """The files that replace each other's records; none if they are to be merged."""
    if _rows(split, found.newer) > _MOST_NEWER * _rows(split, found.layered):
        return {}
    keyed = replace(scan, more=record_fields(scan.reader.store.schema))
    if not keyed.is_possible:
        return {}
    paths = keyed.paths_of_records(split)
    native = {number: path for number in found.layered if (path := paths[number]) is not None}
    return native if len(native) == len(found.layered) else {}


def _rows(split: DataSplit, numbers: Iterable[int]) -> int:
    return int(split.entries.row_count[list(numbers)].sum())

"""Splits: units of reading, a few files of one bucket each.

Files are packed in order until a split reaches ``source.split.target-size``, where a small file
weighs as much as opening it costs. Spec: "Splits".
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from emberlake.options import SPLIT_OPEN_FILE_COST, SPLIT_TARGET_SIZE, TableOptions
from emberlake.predicates import Predicate
from emberlake.scan.files import FilePlan
from emberlake.spec.manifest import (
    DELETION_VECTORS_INDEX,
    DataFile,
    DeletionVectorRange,
    IndexManifestEntry,
)
from emberlake.store.entries import ManifestEntries


@dataclass(frozen=True, slots=True)
class DeletionFile:
    """Where the deletion vector of a data file stands."""

    index_file_name: str
    external_path: str | None
    range: DeletionVectorRange


@dataclass(frozen=True)
class DataSplit:
    """Some files of one bucket, to be read together. Pickles; reads nothing by itself."""

    snapshot_id: int
    partition: bytes
    bucket: int
    entries: ManifestEntries = field(repr=False, compare=False)
    # The predicate of the plan, and for every file whether all of its rows match it.
    predicate: Predicate | None = field(repr=False)
    is_exact: tuple[bool, ...] = field(repr=False)
    deletion_files: Mapping[str, DeletionFile] = field(default_factory=dict, repr=False)

    @cached_property
    def files(self) -> list[DataFile]:
        """The data files of this split, in reading order."""
        return self.entries.files()

    @property
    def row_count(self) -> int:
        """The rows stored in the files, deleted ones included."""
        return int(self.entries.row_count.sum())

    @property
    def merged_row_count(self) -> int | None:
        """The rows that a read without a filter gives, or None when that is not known."""
        deleted = [d.range.cardinality for d in self.deletion_files.values()]
        if None in deleted:
            return None
        return self.row_count - sum(count for count in deleted if count is not None)

    @property
    def file_size(self) -> int:
        return int(self.entries.file_size.sum())

    @property
    def raw_convertible(self) -> bool:
        """Whether the files can be read one after the other, without merging rows by key."""
        return True


def pack_splits(
    plan: FilePlan,
    snapshot_id: int,
    options: TableOptions,
    *,
    predicate: Predicate | None = None,
    deletion_files: Mapping[tuple[bytes, int, str], DeletionFile] | None = None,
) -> list[DataSplit]:
    """The files of a plan, packed into splits."""
    entries = plan.entries
    if not len(entries):
        return []
    order = np.lexsort((entries.min_sequence_number, entries.bucket, entries.partition_codes))
    ordered, exact = entries.take(order), plan.is_exact[order]
    weights = np.maximum(ordered.file_size, options.value(SPLIT_OPEN_FILE_COST))
    groups = _group_starts(ordered)
    target = options.value(SPLIT_TARGET_SIZE)
    splits = []
    for start, stop in _pack(weights, groups, target):
        partition = ordered.partitions[ordered.partition_codes[start]]
        bucket = int(ordered.bucket[start])
        part = ordered.slice(start, stop)
        splits.append(
            DataSplit(
                snapshot_id=snapshot_id,
                partition=partition,
                bucket=bucket,
                entries=part,
                predicate=predicate,
                is_exact=tuple(exact[start:stop].tolist()),
                deletion_files=_of_files(deletion_files or {}, partition, bucket, part),
            )
        )
    return splits


def index_deletion_files(
    index: Sequence[IndexManifestEntry],
) -> dict[tuple[bytes, int, str], DeletionFile]:
    """Deletion vectors by (partition, bucket, data file)."""
    return {
        (entry.partition, entry.bucket, place.data_file_name): DeletionFile(
            entry.index_file.file_name, entry.index_file.external_path, place
        )
        for entry in index
        if entry.index_file.index_type == DELETION_VECTORS_INDEX
        for place in entry.index_file.deletion_vectors or ()
    }


def limit_splits(splits: Sequence[DataSplit], limit: int) -> list[DataSplit]:
    """The first splits that together hold at least ``limit`` rows; for reads without a filter."""
    kept: list[DataSplit] = []
    rows = 0
    for split in splits:
        if rows >= limit:
            break
        kept.append(split)
        rows += split.merged_row_count or 0
    return kept


def _of_files(
    deletion_files: Mapping[tuple[bytes, int, str], DeletionFile],
    partition: bytes,
    bucket: int,
    entries: ManifestEntries,
) -> dict[str, DeletionFile]:
    if not deletion_files:
        return {}
    names = entries.file_name.to_pylist()
    keys = ((name, (partition, bucket, name)) for name in names)
    return {name: deletion_files[key] for name, key in keys if key in deletion_files}


def _group_starts(entries: ManifestEntries) -> npt.NDArray[np.bool_]:
    """Marks the first file of every (partition, bucket) in ordered entries."""
    starts = np.ones(len(entries), bool)
    same_partition = entries.partition_codes[1:] == entries.partition_codes[:-1]
    starts[1:] = ~(same_partition & (entries.bucket[1:] == entries.bucket[:-1]))
    return starts


def _pack(
    weights: npt.NDArray[np.int64], starts: npt.NDArray[np.bool_], target: int
) -> Iterator[tuple[int, int]]:
    begin, filled = 0, 0
    for i, (weight, is_start) in enumerate(zip(weights.tolist(), starts.tolist(), strict=True)):
        if i > begin and (is_start or filled + weight > target):
            yield begin, i
            begin, filled = i, 0
        filled += weight
    yield begin, len(weights)

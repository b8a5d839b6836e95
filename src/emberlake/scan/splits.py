"""Splits: units of reading, a few files of one bucket each.

Files are packed in order until a split reaches ``source.split.target-size``, where a small file
weighs as much as opening it costs. Spec: "Splits".
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from emberlake.options import SPLIT_OPEN_FILE_COST, SPLIT_TARGET_SIZE, TableOptions
from emberlake.predicates import Predicate
from emberlake.scan.file_groups import group_entries
from emberlake.scan.files import FilePlan
from emberlake.spec.file_groups import FileGroup, group_files
from emberlake.spec.manifest import (
    DELETION_VECTORS_INDEX,
    DataFile,
    DeletionVectorRange,
    IndexFile,
    IndexManifestEntry,
)
from emberlake.store.entries import ManifestEntries

FolderOf = Callable[[bytes, int], str]  # of a partition and a bucket


@dataclass(frozen=True, slots=True)
class _KnownFolder:
    """The folder of one bucket, once it is known."""

    path: str

    def __call__(self, _partition: bytes, _bucket: int) -> str:
        return self.path


@dataclass(frozen=True, slots=True)
class DeletionFile:
    """Where the deletion vector of a data file is stored."""

    index_file_name: str
    external_path: str | None
    range: DeletionVectorRange


@dataclass(frozen=True)
class DataSplit:
    """Some files of one bucket, to be read together. Pickles; reads nothing by itself."""

    snapshot_id: int
    partition: bytes
    bucket: int
    entries: ManifestEntries = field(hash=False)
    # The predicate of the plan, and for every file whether all of its rows match it.
    predicate: Predicate | None = field(repr=False)
    is_exact: tuple[bool, ...] = field(repr=False)
    deletion_files: Mapping[str, DeletionFile] = field(default_factory=dict, repr=False, hash=False)
    # Whether the files can be read one after another, without merging rows by key.
    raw_convertible: bool = True
    # Rows of a primary-key table come as the changes that were written, not as the merged result.
    is_changes: bool = False
    # In a comparison of two states: the files of the earlier one.
    before: "DataSplit | None" = field(default=None, repr=False, hash=False)
    # For files that are not read whole: the first row, and the one after the last.
    ranges: Mapping[str, tuple[int, int]] = field(default_factory=dict, repr=False, hash=False)
    # Files may lie side by side: ``groups`` are read, not single files.
    is_grouped: bool = False
    # The folder of a bucket, for callers that open files themselves. Few do, so it is built on
    # demand; a pickled split carries its folder along.
    folder_of: FolderOf | None = field(default=None, repr=False, compare=False)

    @cached_property
    def files(self) -> list[DataFile]:
        """The data files of this split, in reading order."""
        return self.entries.files()

    @cached_property
    def groups(self) -> list[FileGroup]:
        """The files in groups of the same rows; for splits whose files may lie side by side."""
        return group_files(self.files)

    @property
    def names(self) -> list[str]:
        """The names of the files, in reading order."""
        names: list[str] = self.entries.file_name.to_pylist()
        return names

    @property
    def units(self) -> list[tuple[tuple[str, ...], int]]:
        """The files that are read together, and their number of rows, in reading order.

        Ranges and deletions are found under the first name.
        """
        if self.is_grouped:
            return [(_unit_names(group), group.row_count) for group in self.groups]
        counts = self.entries.row_count.tolist()
        return [((name,), count) for name, count in zip(self.names, counts, strict=True)]

    def __getstate__(self) -> dict[str, object]:
        path = self.bucket_path
        state = dict(vars(self), folder_of=None if path is None else _KnownFolder(path))
        for known in ("files", "groups"):  # the entries already hold them
            state.pop(known, None)
        return state

    @property
    def bucket_path(self) -> str | None:
        """The folder of the bucket; None if the split was not planned here."""
        return self.folder_of(self.partition, self.bucket) if self.folder_of else None

    @property
    def row_count(self) -> int:
        """The number of rows stored in what is read of the files, including deleted ones."""
        if not (self.ranges or self.is_grouped):
            return int(self.entries.row_count.sum())
        parts = (self.ranges.get(names[0], (0, count)) for names, count in self.units)
        return sum(stop - start for start, stop in parts)

    def merged_row_count(self) -> int | None:
        """The number of rows that a read without a filter returns, or None if it is not known."""
        needs_merging = not (self.raw_convertible or self.is_grouped)
        if needs_merging or self.is_changes or self.before is not None:
            return None
        if self.ranges.keys() & self.deletion_files.keys():
            return None  # only the number of deleted rows in the whole file is known
        deleted = [d.range.cardinality for d in self.deletion_files.values()]
        if None in deleted:
            return None
        return self.row_count - sum(count for count in deleted if count is not None)

    @property
    def data_deletion_files(self) -> list[DeletionFile | None] | None:
        """The deletion vector of every file, None for one without; None if no file has one."""
        if not self.deletion_files:
            return None
        return [self.deletion_files.get(file.file_name) for file in self.files]

    @property
    def file_paths(self) -> list[str]:
        """The paths of the files; none if the split was not planned here."""
        folder = self.bucket_path
        if folder is None:
            return []
        return [file.path_in(folder) for file in self.files]

    @property
    def total_buckets(self) -> int | None:
        """How many buckets the partition had when the files were written."""
        return int(self.entries.total_buckets[0]) if len(self.entries) else None

    def take(self, chosen: Sequence[bool]) -> "DataSplit":
        """A split of some of the files, one flag for each."""
        entries = self.entries.take(np.array(chosen, bool))
        names = frozenset(entries.file_name.to_pylist())
        return replace(
            self,
            entries=entries,
            is_exact=tuple(e for e, is_kept in zip(self.is_exact, chosen, strict=True) if is_kept),
            deletion_files={n: d for n, d in self.deletion_files.items() if n in names},
            ranges={n: r for n, r in self.ranges.items() if n in names},
        )

    def filter_file(self, func: Callable[[DataFile], bool]) -> "DataSplit | None":
        """A split of the files that pass a test; None if none does."""
        chosen = [bool(func(file)) for file in self.files]
        return self.take(chosen) if any(chosen) else None

    @property
    def file_size(self) -> int:
        return int(self.entries.file_size.sum())


def pack_splits(
    plan: FilePlan,
    snapshot_id: int,
    options: TableOptions,
    *,
    predicate: Predicate | None = None,
    deletion_files: Mapping[tuple[bytes, int, str], DeletionFile] | None = None,
    is_grouped: bool = False,
) -> list[DataSplit]:
    """The files of a plan, packed into splits; files that lie side by side stay together."""
    entries = plan.entries
    if not len(entries):
        return []
    packed = (_pack_groups if is_grouped else _pack_files)(entries, options)
    ordered, order, ranges = packed.entries, packed.order, packed.ranges
    firsts = order[[start for start, _ in ranges]]
    codes, buckets = entries.partition_codes[firsts], entries.bucket[firsts]
    owners = zip(codes.tolist(), buckets.tolist(), strict=True)
    partitions, is_exact = entries.partitions, plan.is_exact[order]
    # Setting the fields of a frozen value one by one would take a third of a large plan.
    shared = vars(DataSplit(snapshot_id, b"", 0, entries, predicate, (), is_grouped=is_grouped))
    splits = []
    for (start, stop), (code, bucket), exact in zip(
        ranges, owners, _flags(is_exact, ranges), strict=True
    ):
        partition, part = partitions[code], ordered.slice(start, stop)
        split = object.__new__(DataSplit)
        vars(split).update(shared, partition=partition, bucket=bucket, entries=part, is_exact=exact)
        if deletion_files:
            found = deletions_of(deletion_files, partition, bucket, part)
            vars(split)["deletion_files"] = found
        if is_grouped:
            vars(split)["raw_convertible"] = bool(packed.is_alone[start:stop].all())
        splits.append(split)
    return splits


@dataclass(frozen=True)
class _Packed:
    entries: ManifestEntries  # in order
    order: npt.NDArray[np.int64]
    ranges: list[tuple[int, int]]  # where each split begins and ends
    is_alone: npt.NDArray[np.bool_]  # for each file whether no other has the same rows


def _pack_files(entries: ManifestEntries, options: TableOptions) -> _Packed:
    codes, buckets = entries.partition_codes, entries.bucket
    order = np.lexsort((entries.min_sequence_number, buckets, codes))
    ordered = entries.take(order)
    weights = np.maximum(ordered.file_size, options.value(SPLIT_OPEN_FILE_COST))
    ends = _group_ends(codes[order], buckets[order])
    ranges = [*pack(weights, ends, options.value(SPLIT_TARGET_SIZE))]
    return _Packed(ordered, order, ranges, np.ones(len(order), bool))


def _pack_groups(entries: ManifestEntries, options: TableOptions) -> _Packed:
    """Groups of files that hold the same rows stay together, in the order of their row ids."""
    grouping = group_entries(entries)
    order, starts = grouping.order, grouping.starts
    ordered = entries.take(order)
    sizes = np.add.reduceat(ordered.file_size, starts)
    weights = np.maximum(sizes, options.value(SPLIT_OPEN_FILE_COST))
    ends = _group_ends(entries.partition_codes[order][starts], ordered.bucket[starts])
    groups = pack(weights, ends, options.value(SPLIT_TARGET_SIZE))
    bounds = [*starts.tolist(), len(ordered)]
    ranges = [(bounds[start], bounds[stop]) for start, stop in groups]
    counts = grouping.sizes
    return _Packed(ordered, order, ranges, np.repeat(counts == 1, counts))


def _flags(
    flags: npt.NDArray[np.bool_], ranges: Iterable[tuple[int, int]]
) -> Iterator[tuple[bool, ...]]:
    """The flags of each range. They are mostly all equal: without a filter every file is exact."""
    if flags.all():
        return ((True,) * (stop - start) for start, stop in ranges)
    values = flags.tolist()
    return (tuple(values[start:stop]) for start, stop in ranges)


def attach_folders(splits: Iterable[DataSplit], folder_of: FolderOf) -> None:
    """Set the folders of new splits, in place: copies would cost time."""
    for split in splits:
        object.__setattr__(split, "folder_of", folder_of)


def index_deletion_files(
    index: Sequence[IndexManifestEntry],
) -> dict[tuple[bytes, int, str], DeletionFile]:
    """Deletion vectors by (partition, bucket, data file)."""
    return {
        (entry.partition, entry.bucket, name): place
        for entry in index
        if entry.index_file.index_type == DELETION_VECTORS_INDEX
        for name, place in deletion_files_in(entry.index_file)
    }


def deletion_files_in(file: IndexFile) -> Iterator[tuple[str, DeletionFile]]:
    """The data files whose deletion vectors an index file holds, and where each vector is."""
    for found in file.deletion_vectors or ():
        yield found.data_file_name, DeletionFile(file.file_name, file.external_path, found)


def limit_splits(splits: Sequence[DataSplit], limit: int) -> list[DataSplit]:
    """The first splits that together hold at least ``limit`` rows; for reads without a filter."""
    kept: list[DataSplit] = []
    rows = 0
    for split in splits:
        if rows >= limit:
            break
        kept.append(split)
        rows += split.merged_row_count() or 0
    return kept


def deletions_of(
    deletion_files: Mapping[tuple[bytes, int, str], DeletionFile],
    partition: bytes,
    bucket: int,
    entries: ManifestEntries,
) -> dict[str, DeletionFile]:
    """The deletion vectors of some files of a bucket, by file name."""
    names = entries.file_name.to_pylist()
    keys = ((name, (partition, bucket, name)) for name in names)
    return {name: deletion_files[key] for name, key in keys if key in deletion_files}


def _group_ends(
    codes: npt.NDArray[np.int32], buckets: npt.NDArray[np.int32]
) -> npt.NDArray[np.int64]:
    """Where each (partition, bucket) of ordered files ends."""
    is_last = np.ones(len(codes), bool)
    is_last[:-1] = (codes[1:] != codes[:-1]) | (buckets[1:] != buckets[:-1])
    return np.flatnonzero(is_last) + 1


def pack(
    weights: npt.NDArray[np.int64], group_ends: npt.NDArray[np.int64], target: int
) -> Iterator[tuple[int, int]]:
    """Ranges of files, in order, each within one group and no heavier than the target."""
    # With the total weight before each file, a loop over splits is enough.
    before = [0, *np.cumsum(weights).tolist()]
    start = 0
    for end in group_ends.tolist():
        while start < end:
            stop = min(end, max(start + 1, bisect_right(before, before[start] + target) - 1))
            yield start, stop
            start = stop


def _unit_names(group: FileGroup) -> tuple[str, ...]:
    anchor = group.anchor
    others = (file.file_name for file in group.all_files if file is not anchor)
    return (anchor.file_name, *others)

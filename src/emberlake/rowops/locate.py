"""Where rows are, file by file, and reads that return positions.

This is how an operation on rows begins. It reads one snapshot, and everything that it writes names
that snapshot as its base::

    snapshot = store.snapshots.latest()
    for placed in file_reads(store, snapshot, predicate, ["id", "_ROW_ID"]):
        for positions, rows in placed.read.located_tables():
            ...          # of the matching rows of the file, and the columns that were asked for

``marks`` turns positions into deletions, ``edits`` into new versions of rows.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from emberlake.predicates import Predicate
from emberlake.read.append_plans import AppendPlans
from emberlake.read.bucket_reads import BucketReads
from emberlake.read.file_read import FileRead
from emberlake.read.projection import OutputShape, Projection, project
from emberlake.scan.plan import plan_target
from emberlake.scan.splits import DataSplit, DeletionFile
from emberlake.spec.file_groups import FileGroup
from emberlake.spec.manifest import DataFile
from emberlake.spec.row_tracking import readable_fields
from emberlake.spec.snapshot import Snapshot
from emberlake.spec.support import check_readable
from emberlake.store.table_store import TableStore
from emberlake.store.vector_files import load_vector


@dataclass(frozen=True)
class FilePlace:
    """A data file of an append table, or a group of files that hold the same rows.

    ``file`` is the one that positions and deletions refer to; ``files`` are all of them, the newest
    first.
    """

    partition: bytes
    bucket: int
    total_buckets: int
    file: DataFile
    files: tuple[DataFile, ...]
    vector: DeletionFile | None = field(default=None, repr=False)

    def live_count(self, store: TableStore) -> int:
        """How many of its rows are not deleted."""
        return self.file.row_count - self.deleted_count(store)

    def deleted_count(self, store: TableStore) -> int:
        """How many of its rows are deleted."""
        if self.vector is None:
            return 0
        known = self.vector.range.cardinality
        if known is not None:
            return known
        return len(load_vector(store.storage, vector_path(store, self), self.vector.range))


def vector_path(store: TableStore, place: FilePlace) -> str:
    """The path of the index file that holds the deletions of a file that has some."""
    assert place.vector is not None
    reads = BucketReads(store, place.partition, place.bucket)
    return reads.locate(place.vector).path


def file_places(
    store: TableStore, snapshot: Snapshot | None, predicate: Predicate | None = None
) -> list[FilePlace]:
    """The files of an append table that can hold matching rows."""
    splits = plan_target(store, snapshot, predicate, None).splits
    return [place for split in splits for place in split_places(split)]


def split_places(split: DataSplit) -> list[FilePlace]:
    """The files of a split, in the order in which ``split_reads`` reads them."""
    return [place for place, _ in _units(split)]


@dataclass(frozen=True)
class PlacedRead:
    """The read of the matching rows of a file, and whether all of its rows match."""

    place: FilePlace
    read: FileRead
    is_exact: bool


def file_reads(
    store: TableStore,
    snapshot: Snapshot | None,
    predicate: Predicate | None,
    columns: Sequence[str],
) -> Iterator[PlacedRead]:
    """A read for every file that can hold matching rows; nothing is read yet."""
    splits = plan_target(store, snapshot, predicate, None).splits
    return split_reads(store, splits, predicate, columns)


def split_reads(
    store: TableStore,
    splits: Iterable[DataSplit],
    predicate: Predicate | None,
    columns: Sequence[str],
) -> Iterator[PlacedRead]:
    """A read for every file of splits that were planned with the predicate."""
    store.check_shows_all()
    known = readable_fields(store.schema)
    projection = project(known, columns)
    check_readable(store.schema, projection.read_fields(known, predicate))
    plans = _Plans(store, projection, predicate)
    for split in splits:
        yield from plans.reads(split)


@dataclass(frozen=True)
class _Plans:
    store: TableStore
    projection: Projection
    predicate: Predicate | None

    def reads(self, split: DataSplit) -> Iterator[PlacedRead]:
        reads = BucketReads.of_split(self.store, split)
        plain, tested = self._plans(None), self._plans(self.predicate)
        exact = dict(zip(split.names, split.is_exact, strict=True))
        for place, group in _units(split):
            is_exact = exact[place.file.file_name]
            plans = plain if is_exact else tested
            if group is None:
                read = plans.read(reads, place.file)
            else:
                read = plans.read_group(reads, group)
            yield PlacedRead(place, read, is_exact)

    def _plans(self, predicate: Predicate | None) -> AppendPlans:
        fields = self.projection.read_fields(readable_fields(self.store.schema), predicate)
        return AppendPlans(self.store, fields, OutputShape(self.projection), predicate)


def _units(split: DataSplit) -> Iterator[tuple[FilePlace, FileGroup | None]]:
    total = split.total_buckets if split.total_buckets is not None else -1
    place = split.partition, split.bucket, total
    if split.is_grouped:
        for group in split.groups:
            anchor = group.anchor
            vector = split.deletion_files.get(anchor.file_name)
            yield FilePlace(*place, anchor, group.all_files, vector), group
        return
    for file in split.files:
        yield FilePlace(*place, file, (file,), split.deletion_files.get(file.file_name)), None

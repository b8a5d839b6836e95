"""One bucket to compact: its live files and deletion vectors, and how to read them."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property

from emberlake.errors import StorageError
from emberlake.predicates import Predicate
from emberlake.read.append_plans import AppendPlans
from emberlake.read.bucket_reads import BucketReads
from emberlake.read.column_plan import ColumnPlan, plan_columns
from emberlake.read.file_read import FileRead
from emberlake.scan.files import PartitionChoice, live_entries, load_files, manifests_of
from emberlake.scan.key_files import bucket_files
from emberlake.scan.splits import DeletionFile, deletion_files_in
from emberlake.spec.deletion_vector import DeletionVector
from emberlake.spec.file_groups import FileGroup
from emberlake.spec.key_value import (
    KIND_FIELD,
    LEVEL,
    LEVEL_FIELD,
    SEQUENCE_FIELD,
    key_value_fields,
)
from emberlake.spec.manifest import DELETION_VECTORS_INDEX, DataFile, IndexFile
from emberlake.spec.snapshot import Snapshot
from emberlake.store.table_store import TableStore
from emberlake.types import DataField
from emberlake.wire import VectorEdit


@dataclass(frozen=True)
class VectorChange:
    """Index files that are added and deleted."""

    added: tuple[IndexFile, ...] = ()
    deleted: tuple[IndexFile, ...] = ()


@dataclass(frozen=True)
class Compacted:
    """The files before and after a compaction, and how the deletion vectors changed."""

    before: tuple[DataFile, ...]
    after: tuple[DataFile, ...]
    vectors: VectorChange = VectorChange()
    edits: tuple[VectorEdit, ...] = ()  # of append tables: the commit applies them file by file
    changelog: tuple[DataFile, ...] = ()


@dataclass(frozen=True)
class Bucket:
    """The state of one bucket of one partition."""

    store: TableStore
    partition: bytes
    number: int
    total_buckets: int
    files: tuple[DataFile, ...]
    vector_files: tuple[IndexFile, ...] = ()  # the index files with its deletion vectors
    _plans: dict[object, ColumnPlan] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def deletion_files(self) -> Mapping[str, DeletionFile]:
        """Where the deletion vectors of its files are stored."""
        return {
            name: place for file in self.vector_files for name, place in deletion_files_in(file)
        }

    def load_vector(self, file_name: str) -> DeletionVector:
        """The deletion vector of a file that has one."""
        return self._reads.load_vector(file_name)

    def read_records(self, file: DataFile, fields: tuple[DataField, ...]) -> FileRead:
        """A file of a primary-key table: columns of the table, sequence numbers and kinds."""
        return self._read(file, (*fields, SEQUENCE_FIELD, KIND_FIELD))

    def read_leveled(self, file: DataFile, fields: tuple[DataField, ...]) -> FileRead:
        """The same, and the level of the file as one more column."""
        return self._read(file, (*fields, SEQUENCE_FIELD, KIND_FIELD, LEVEL_FIELD))

    def read_keys(self, file: DataFile, fields: tuple[DataField, ...]) -> FileRead:
        """Some columns of a file of a primary-key table."""
        return self._read(file, fields)

    def read_rows(self, file: DataFile, plans: AppendPlans) -> FileRead:
        """The live rows of a file of an append table."""
        return plans.read(self._reads, file)

    def read_group(self, group: FileGroup, plans: AppendPlans) -> FileRead:
        """All rows of files that lie side by side, including deleted rows."""
        reads = BucketReads(self.store, self.partition, self.number)
        return plans.read_group(reads, group)

    def deleted_count(self, file_name: str) -> int:
        """How many rows of a file are deleted."""
        place = self.deletion_files.get(file_name)
        if place is None:
            return 0
        count = place.range.cardinality
        return len(self.load_vector(file_name)) if count is None else count

    def discard(self, files: Iterable[DataFile]) -> None:
        """Delete uncommitted files; one that cannot be deleted is garbage, not a problem."""
        paths = [self.store.data_file_path(self.partition, self.number, file) for file in files]
        with suppress(StorageError):
            self.store.storage.delete_all(paths)

    def _read(self, file: DataFile, fields: tuple[DataField, ...]) -> FileRead:
        key = (file.schema_id, tuple(f.id for f in fields))
        plan = self._plans.get(key)
        if plan is None:
            stored = key_value_fields(self.store.schemas.load(file.schema_id))
            filled = (*self.store.schema.partition_keys, LEVEL)
            plan = self._plans[key] = plan_columns([stored], fields, constants=filled)
        return self._reads.read(file, plan)

    @cached_property
    def _reads(self) -> BucketReads:
        return BucketReads(self.store, self.partition, self.number, self.deletion_files)


def load_buckets(
    store: TableStore,
    snapshot: Snapshot | None,
    where: Predicate | None = None,
    *,
    partitions: PartitionChoice | None = None,
) -> Iterator[Bucket]:
    """The buckets of a snapshot, or of some of its partitions, without postponed files."""
    if snapshot is None:
        return
    if partitions is None:
        entries, _ = load_files(store, manifests_of(store, snapshot), where)
    else:
        entries = live_entries(store, snapshot, partitions=partitions)
    entries = entries.take(entries.bucket >= 0)
    vectors = load_vector_files(store, snapshot)
    for places in bucket_files(entries):
        found = entries.take(places)
        partition = entries.partitions[entries.partition_codes[places[0]]]
        number = int(found.bucket[0])
        yield Bucket(
            store,
            partition,
            number,
            int(found.total_buckets[0]),
            tuple(found.files()),
            vectors.get((partition, number), ()),
        )


def load_vector_files(
    store: TableStore, snapshot: Snapshot
) -> dict[tuple[bytes, int], tuple[IndexFile, ...]]:
    """The index files with deletion vectors, by partition and bucket."""
    found: dict[tuple[bytes, int], tuple[IndexFile, ...]] = {}
    if snapshot.index_manifest is not None:
        for entry in store.manifests.read_index(snapshot.index_manifest):
            if entry.index_file.index_type == DELETION_VECTORS_INDEX:
                place = entry.partition, entry.bucket
                found[place] = (*found.get(place, ()), entry.index_file)
    return found

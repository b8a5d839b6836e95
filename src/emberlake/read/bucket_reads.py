"""Reads of the files of one bucket, which share a folder and the values of the partition."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa

from emberlake.errors import CorruptFile
from emberlake.options import INDEX_IN_DATA_DIR, VERIFY_PAGES
from emberlake.read.column_plan import ColumnPlan
from emberlake.read.file_read import FileRead, StoredFile, VectorLocation
from emberlake.scan.splits import DataSplit, DeletionFile
from emberlake.spec.deletion_vector import DeletionVector
from emberlake.spec.file_groups import FileGroup
from emberlake.spec.key_value import LEVEL, SEQUENCE
from emberlake.spec.manifest import DataFile
from emberlake.spec.row_tracking import ROW_ID
from emberlake.spec.values import to_arrow_scalar
from emberlake.store.table_store import TableStore


@dataclass(frozen=True)
class BucketReads:
    """Makes reads of data files of one bucket."""

    store: TableStore
    partition: bytes
    bucket: int
    deletion_files: Mapping[str, DeletionFile] = field(default_factory=dict)
    ranges: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @classmethod
    def of_split(cls, store: TableStore, split: DataSplit) -> "BucketReads":
        """For the files of a split."""
        return cls(store, split.partition, split.bucket, split.deletion_files, split.ranges)

    def read(self, file: DataFile, plan: ColumnPlan, *, sequence: int | None = None) -> FileRead:
        """The read of a file; ``sequence`` replaces the sequence number of every row."""
        if sequence is None and self.store.schema.profile.tracks_rows:
            sequence = file.max_sequence_number
            if plan.numbers_rows:
                _check_ids(file)
        return self._read(file, (file,), plan, sequence)

    def read_group(self, group: FileGroup, plan: ColumnPlan) -> FileRead:
        """The read of files that lie side by side, for a plan of all of them."""
        files = tuple(group.files[number] for number in plan.chosen)
        return self._read(group.anchor, files, plan, group.files[0].max_sequence_number)

    def _read(
        self,
        owner: DataFile,
        files: tuple[DataFile, ...],
        plan: ColumnPlan,
        sequence: int | None,
    ) -> FileRead:
        constants = self.constants
        if sequence is not None:
            constants = {**constants, SEQUENCE: pa.scalar(sequence, pa.int64())}
        if self.store.schema.profile.has_keys:
            constants = {**constants, LEVEL: pa.scalar(owner.level, pa.int32())}
        name = owner.file_name
        return FileRead(
            self.store.storage,
            tuple(self._stored(file) for file in files),
            plan,
            constants,
            self.locate(self.deletion_files[name]) if name in self.deletion_files else None,
            self.ranges.get(name),
            self.store.options.value(VERIFY_PAGES),
            owner.first_row_id,
            name,
        )

    def _stored(self, file: DataFile) -> StoredFile:
        return StoredFile(file.file_name, self.path(file), file.row_count, file.file_size)

    def path(self, file: DataFile) -> str:
        """Where a file is stored."""
        return file.path_in(self._folder)

    def load_vector(self, file_name: str) -> DeletionVector:
        """The deletion vector of a file that has one."""
        return self.locate(self.deletion_files[file_name]).load(self.store.storage)

    @cached_property
    def constants(self) -> Mapping[str, pa.Scalar]:
        """The partition columns: one value each, known from the manifest."""
        schema = self.store.schema
        if not schema.partition_keys:
            return {}
        values = zip(
            schema.partition_keys, self.store.partition_values(self.partition), strict=True
        )
        return {
            name: to_arrow_scalar(schema.field_by_name[name].type, value) for name, value in values
        }

    def locate(self, found: DeletionFile) -> VectorLocation:
        """Where a deletion vector is stored."""
        path = found.external_path
        if path is None and self.store.options.value(INDEX_IN_DATA_DIR):
            path = f"{self._folder}/{found.index_file_name}"
        return VectorLocation(path or self.store.layout.index(found.index_file_name), found.range)

    @cached_property
    def _folder(self) -> str:
        # Cached: building it for every file would be expensive.
        return self.store.bucket_folder(self.partition, self.bucket)


def _check_ids(file: DataFile) -> None:
    """Refuse a file whose rows have no ids."""
    if file.first_row_id is None and ROW_ID not in (file.write_cols or ()):
        raise CorruptFile(
            file.file_name, "it neither stores the ids of its rows nor says where they begin"
        )

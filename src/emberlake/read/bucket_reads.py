"""Reads of the files of one bucket, which share a folder and the values of the partition."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa

from emberlake.options import INDEX_IN_DATA_DIR, VERIFY_PAGES
from emberlake.read.column_plan import ColumnPlan
from emberlake.read.file_read import FileRead, StoredFile, VectorLocation
from emberlake.scan.splits import DataSplit, DeletionFile
from emberlake.spec.deletion_vector import DeletionVector
from emberlake.spec.key_value import SEQUENCE
from emberlake.spec.manifest import DataFile
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
        constants = self.constants
        if sequence is not None:
            constants = {**constants, SEQUENCE: pa.scalar(sequence, pa.int64())}
        name = file.file_name
        path = file.external_path or f"{self._folder}/{name}"
        return FileRead(
            self.store.storage,
            (StoredFile(name, path, file.row_count, file.file_size),),
            plan,
            constants,
            self._locate(self.deletion_files[name]) if name in self.deletion_files else None,
            self.ranges.get(name),
            self.store.options.value(VERIFY_PAGES),
        )

    def load_vector(self, file_name: str) -> DeletionVector:
        """The deletion vector of a file that has one."""
        return self._locate(self.deletion_files[file_name]).load(self.store.storage)

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

    def _locate(self, found: DeletionFile) -> VectorLocation:
        path = found.external_path
        if path is None and self.store.options.value(INDEX_IN_DATA_DIR):
            path = f"{self._folder}/{found.index_file_name}"
        return VectorLocation(path or self.store.layout.index(found.index_file_name), found.range)

    @cached_property
    def _folder(self) -> str:
        # Cached: building it for every file would be expensive.
        return self.store.bucket_folder(self.partition, self.bucket)

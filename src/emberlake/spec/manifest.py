"""The values inside manifest lists, manifests and index manifests.

Spec: "Manifest list, manifest, index manifest". Rows inside them (partitions, keys, statistics)
stay in their serialized BinaryRow form: their bytes are compared and hashed as they are.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

EMPTY_ROW: Final = bytes(12)  # a serialized BinaryRow of arity 0

MANIFEST_LIST_VERSION: Final = 2
MANIFEST_ENTRY_VERSION: Final = 2
INDEX_MANIFEST_VERSION: Final = 1


class FileKind(IntEnum):
    """Stored in manifests. Never renumber."""

    ADD = 0
    DELETE = 1

    @property
    def sign(self) -> int:
        return 1 if self is FileKind.ADD else -1


class FileSource(IntEnum):
    """Which operation wrote a data file. Stored in manifests. Never renumber."""

    APPEND = 0
    COMPACT = 1


@dataclass(frozen=True, slots=True)
class SimpleStats:
    """Minimum, maximum and null count per column; a null value or count is unknown."""

    min_values: bytes = EMPTY_ROW
    max_values: bytes = EMPTY_ROW
    null_counts: tuple[int | None, ...] | None = ()


EMPTY_STATS: Final = SimpleStats()


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """One data file of a bucket, as manifests describe it (``DataFileMeta`` in the spec)."""

    file_name: str
    file_size: int
    row_count: int
    min_key: bytes = EMPTY_ROW
    max_key: bytes = EMPTY_ROW
    key_stats: SimpleStats = EMPTY_STATS
    value_stats: SimpleStats = EMPTY_STATS
    min_sequence_number: int
    max_sequence_number: int
    schema_id: int
    level: int = 0
    extra_files: tuple[str, ...] = ()
    creation_time: int | None = None  # local wall clock in milliseconds, as if it were UTC
    delete_row_count: int | None = 0
    embedded_file_index: bytes | None = None
    file_source: FileSource | None = FileSource.APPEND
    value_stats_cols: tuple[str, ...] | None = None  # None: all columns, (): none
    external_path: str | None = None
    first_row_id: int | None = None
    write_cols: tuple[str, ...] | None = None
    write_cols_sequences: tuple[int, ...] | None = None

    def path_in(self, folder: str) -> str:
        """Where the file is, if those of its bucket are in a folder; it may be elsewhere."""
        return self.external_path or f"{folder}/{self.file_name}"


BucketKey = tuple[bytes, int]  # partition and bucket
FileIdentity = tuple[bytes, int, int, str, tuple[str, ...], bytes | None, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestEntry:
    """One file added to, or deleted from, a bucket of a partition."""

    kind: FileKind
    partition: bytes
    bucket: int
    total_buckets: int
    file: DataFile

    @property
    def identity(self) -> FileIdentity:
        """Two entries with the same identity are about the same file."""
        f = self.file
        return (
            self.partition,
            self.bucket,
            f.level,
            f.file_name,
            f.extra_files,
            f.embedded_file_index,
            f.external_path,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestFile:
    """One manifest, as a manifest list describes it (``ManifestFileMeta`` in the spec)."""

    file_name: str
    file_size: int
    num_added_files: int
    num_deleted_files: int
    partition_stats: SimpleStats
    schema_id: int
    min_bucket: int | None = None
    max_bucket: int | None = None
    min_level: int | None = None
    max_level: int | None = None
    min_row_id: int | None = None
    max_row_id: int | None = None


HASH_INDEX: Final = "HASH"
DELETION_VECTORS_INDEX: Final = "DELETION_VECTORS"


@dataclass(frozen=True, slots=True)
class DeletionVectorRange:
    """The place of one data file's deletion vector in an index file."""

    data_file_name: str
    offset: int
    length: int
    cardinality: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalIndex:
    """What an index over row ids covers."""

    row_range_start: int
    row_range_end: int
    index_field_id: int
    extra_field_ids: tuple[int, ...] | None = None
    index_meta: bytes | None = None
    source_meta: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexFile:
    """One index file: key hashes of a dynamic bucket, or deletion vectors."""

    index_type: str
    file_name: str
    file_size: int
    row_count: int
    deletion_vectors: tuple[DeletionVectorRange, ...] | None = None
    external_path: str | None = None
    global_index: GlobalIndex | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexManifestEntry:
    """One index file of a bucket. The index manifest is a full listing."""

    kind: FileKind
    partition: bytes
    bucket: int
    index_file: IndexFile

    @property
    def identity(self) -> tuple[bytes, int, str]:
        """Two entries with the same identity are about the same index file."""
        return self.partition, self.bucket, self.index_file.file_name

    @property
    def slot(self) -> tuple[bytes, int, str]:
        """The bucket, and the kind of index, of which it often has only one."""
        return self.partition, self.bucket, self.index_file.index_type

"""Snapshots, commits, partitions, tags and tokens, as servers and clients exchange them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from emberlake.rest.reading import Fields, encode_json, present
from emberlake.rest.values import Json
from emberlake.spec.listing import Partition
from emberlake.spec.snapshot import Snapshot, decode_snapshot


def snapshot_from_json(value: object) -> Snapshot:
    """A snapshot in an answer or a request; keys that are not known are kept."""
    return decode_snapshot(encode_json(value), "the snapshot")


@dataclass(frozen=True, kw_only=True)
class RemoteSnapshot:
    """The latest snapshot of a table, and the totals of the table."""

    snapshot: Snapshot
    record_count: int = 0
    file_size_in_bytes: int = 0
    file_count: int = 0
    last_file_creation_time: int = 0

    def to_json(self) -> Json:
        return {
            "snapshot": self.snapshot.to_json(),
            "recordCount": self.record_count,
            "fileSizeInBytes": self.file_size_in_bytes,
            "fileCount": self.file_count,
            "lastFileCreationTime": self.last_file_creation_time,
        }

    @staticmethod
    def from_json(value: object) -> "RemoteSnapshot":
        fields = Fields(value, "the snapshot")
        return RemoteSnapshot(
            snapshot=fields.read("snapshot", snapshot_from_json),
            record_count=fields.optional_integer("recordCount") or 0,
            file_size_in_bytes=fields.optional_integer("fileSizeInBytes") or 0,
            file_count=fields.optional_integer("fileCount") or 0,
            last_file_creation_time=fields.optional_integer("lastFileCreationTime") or 0,
        )


@dataclass(frozen=True, kw_only=True)
class PartitionStatistics:
    """What a commit adds to a partition; negative where it deletes more than it adds."""

    spec: Mapping[str, str]
    record_count: int
    file_size_in_bytes: int
    file_count: int
    last_file_creation_time: int
    total_buckets: int | None = None

    def to_json(self) -> Json:
        return {
            "spec": dict(self.spec),
            "recordCount": self.record_count,
            "fileSizeInBytes": self.file_size_in_bytes,
            "fileCount": self.file_count,
            "lastFileCreationTime": self.last_file_creation_time,
            **present([("totalBuckets", self.total_buckets)]),
        }

    @staticmethod
    def from_json(value: object) -> "PartitionStatistics":
        fields = Fields(value, "the statistics")
        return PartitionStatistics(
            spec=fields.text_map("spec"),
            record_count=fields.integer("recordCount"),
            file_size_in_bytes=fields.integer("fileSizeInBytes"),
            file_count=fields.integer("fileCount"),
            last_file_creation_time=fields.integer("lastFileCreationTime"),
            total_buckets=fields.optional_integer("totalBuckets"),
        )


@dataclass(frozen=True, kw_only=True)
class CommitRequest:
    """The request to make a snapshot the next one.

    ``names_base`` tells "built on no snapshot" (a null uuid) from clients that do not say.
    """

    table_id: str | None
    snapshot: Snapshot
    base_snapshot_uuid: str | None = None
    names_base: bool = True
    statistics: Sequence[PartitionStatistics] = ()

    def to_json(self) -> Json:
        base = {"baseSnapshotUuid": self.base_snapshot_uuid} if self.names_base else {}
        return {
            "tableId": self.table_id,
            **base,
            "snapshot": self.snapshot.to_json(),
            "statistics": [each.to_json() for each in self.statistics],
        }

    @staticmethod
    def from_json(value: object) -> "CommitRequest":
        fields = Fields(value, "the commit")
        return CommitRequest(
            table_id=fields.optional_text("tableId"),
            snapshot=fields.read("snapshot", snapshot_from_json),
            base_snapshot_uuid=fields.optional_text("baseSnapshotUuid"),
            names_base="baseSnapshotUuid" in fields,
            statistics=fields.read_all("statistics", PartitionStatistics.from_json),
        )


# --- partitions, tags, tokens ---------------------------------------------------------------------


def partition_to_json(partition: Partition) -> Json:
    """A partition and its totals."""
    return {
        "spec": dict(partition.spec),
        "recordCount": partition.record_count,
        "fileSizeInBytes": partition.file_size_in_bytes,
        "fileCount": partition.file_count,
        "lastFileCreationTime": partition.last_file_creation_time or 0,
        "totalBuckets": partition.total_buckets,
        "done": partition.done,
        "createdAt": partition.created_at,
        "createdBy": partition.created_by,
        "updatedAt": partition.updated_at,
        "updatedBy": partition.updated_by,
        "options": dict(partition.options or {}),
    }


def partition_from_json(value: object) -> Partition:
    """The partition in an answer."""
    fields = Fields(value, "the partition")
    return Partition(
        spec=fields.text_map("spec"),
        record_count=fields.integer("recordCount"),
        file_size_in_bytes=fields.integer("fileSizeInBytes"),
        file_count=fields.integer("fileCount"),
        last_file_creation_time=fields.optional_integer("lastFileCreationTime"),
        total_buckets=fields.optional_integer("totalBuckets") or 0,
        done=fields.flag("done"),
        created_at=fields.optional_integer("createdAt"),
        created_by=fields.optional_text("createdBy"),
        updated_at=fields.optional_integer("updatedAt"),
        updated_by=fields.optional_text("updatedBy"),
        options=fields.text_map("options"),
    )


@dataclass(frozen=True)
class RemoteTag:
    """A tag: creation time in milliseconds since 1970, retention as the creator wrote it."""

    name: str
    snapshot: Snapshot
    create_time: int | None = None
    time_retained: str | None = None

    def to_json(self) -> Json:
        return {
            "tagName": self.name,
            "snapshot": self.snapshot.to_json(),
            "tagCreateTime": self.create_time,
            "tagTimeRetained": self.time_retained,
        }

    @staticmethod
    def from_json(value: object) -> "RemoteTag":
        fields = Fields(value, "the tag")
        return RemoteTag(
            fields.text("tagName"),
            fields.read("snapshot", snapshot_from_json),
            fields.optional_integer("tagCreateTime"),
            fields.optional_text("tagTimeRetained"),
        )


@dataclass(frozen=True)
class DataToken:
    """Options of a storage that let a client into a table's folder for a while."""

    options: Mapping[str, str] = field(repr=False)
    expires_at_ms: int

    def to_json(self) -> Json:
        # The specification says `expiresAt`; clients read the other.
        expires = self.expires_at_ms
        return {"token": dict(self.options), "expiresAtMillis": expires, "expiresAt": expires}

    @staticmethod
    def from_json(value: object) -> "DataToken":
        fields = Fields(value, "the token")
        expires = fields.optional_integer("expiresAtMillis")
        if expires is None:
            expires = fields.integer("expiresAt")
        return DataToken(fields.text_map("token"), expires)

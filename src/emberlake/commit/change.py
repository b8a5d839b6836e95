"""What a commit changes: files added and deleted, and partitions replaced."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from emberlake.scan.files import PartitionChoice
from emberlake.spec.manifest import DataFile, FileKind, IndexManifestEntry, ManifestEntry
from emberlake.spec.snapshot import CommitKind
from emberlake.wire import CommitMessage


@dataclass(frozen=True, kw_only=True)
class Change:
    """One snapshot's worth of changes.

    ``replaces`` tells which partitions an overwrite empties; what is live in them is looked up
    anew in every attempt, so that a file that came in meanwhile is replaced too.
    """

    kind: CommitKind
    added: tuple[ManifestEntry, ...] = ()
    deleted: tuple[ManifestEntry, ...] = ()
    changelog: tuple[ManifestEntry, ...] = ()
    index_added: tuple[IndexManifestEntry, ...] = ()
    index_deleted: tuple[IndexManifestEntry, ...] = ()
    replaces: PartitionChoice | None = None
    # No commit of these files can be in a snapshot up to this one.
    base_snapshot_id: int = 0

    @property
    def is_empty(self) -> bool:
        return self.replaces is None and not (
            self.added or self.deleted or self.changelog or self.index_added or self.index_deleted
        )


@dataclass(frozen=True, kw_only=True)
class CommitResult:
    """What a commit did; ``snapshot_id`` is None when there was nothing to do."""

    snapshot_id: int | None
    rows_added: int = 0
    rows_deleted: int = 0
    files_added: int = 0
    files_deleted: int = 0
    bytes_added: int = 0
    bytes_deleted: int = 0
    retries: int = 0
    stage_ms: dict[str, int] = field(default_factory=dict, compare=False)


NOTHING_COMMITTED = CommitResult(snapshot_id=None)


def append_change(messages: Iterable[CommitMessage]) -> Change:
    """The change that adds what writers wrote."""
    messages = list(messages)
    added = tuple(entry for m in messages for entry in _entries(FileKind.ADD, m, m.new_files))
    deleted = tuple(
        entry for m in messages for entry in _entries(FileKind.DELETE, m, m.deleted_files)
    )
    index_added = tuple(
        IndexManifestEntry(
            kind=FileKind.ADD, partition=m.partition, bucket=m.bucket, index_file=index_file
        )
        for m in messages
        for index_file in m.new_index_files
    )
    return Change(
        kind=CommitKind.OVERWRITE if deleted else CommitKind.APPEND,
        added=added,
        deleted=deleted,
        changelog=tuple(e for m in messages for e in _entries(FileKind.ADD, m, m.changelog_files)),
        index_added=index_added,
        index_deleted=tuple(
            IndexManifestEntry(
                kind=FileKind.DELETE, partition=m.partition, bucket=m.bucket, index_file=index_file
            )
            for m in messages
            for index_file in m.deleted_index_files
        ),
        base_snapshot_id=min((m.base_snapshot_id for m in messages), default=0),
    )


def overwrite_change(messages: Sequence[CommitMessage], replaces: PartitionChoice) -> Change:
    """The change that puts what writers wrote in the place of whole partitions."""
    added = tuple(entry for m in messages for entry in _entries(FileKind.ADD, m, m.new_files))
    return Change(
        kind=CommitKind.OVERWRITE,
        added=added,
        replaces=replaces,
        base_snapshot_id=min((m.base_snapshot_id for m in messages), default=0),
    )


def _entries(
    kind: FileKind, message: CommitMessage, files: Iterable[DataFile]
) -> Iterable[ManifestEntry]:
    for file in files:
        yield ManifestEntry(
            kind=kind,
            partition=message.partition,
            bucket=message.bucket,
            total_buckets=message.total_buckets,
            file=file,
        )

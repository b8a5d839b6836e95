"""What a commit changes: files added and deleted, and partitions replaced."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from emberlake.base.html import html_box, html_facts, html_title
from emberlake.base.texts import size_text
from emberlake.scan.files import PartitionChoice
from emberlake.spec.manifest import (
    DELETION_VECTORS_INDEX,
    DataFile,
    FileKind,
    IndexFile,
    IndexManifestEntry,
    ManifestEntry,
)
from emberlake.spec.snapshot import CommitKind, Operation
from emberlake.wire import BaseSnapshot, CommitMessage, VectorEdit


@dataclass(frozen=True, slots=True)
class PlacedEdit:
    """A change of a deletion vector, and the bucket of its data file."""

    partition: bytes
    bucket: int
    edit: VectorEdit


@dataclass(frozen=True, kw_only=True)
class Change:
    """One snapshot's worth of changes.

    ``replaces`` names the partitions that an overwrite empties. Every attempt looks up again which
    files are live in them, so a file that another writer added meanwhile is replaced too.
    """

    kind: CommitKind
    operation: Operation | None = None
    added: tuple[ManifestEntry, ...] = ()
    deleted: tuple[ManifestEntry, ...] = ()
    changelog: tuple[ManifestEntry, ...] = ()
    index_added: tuple[IndexManifestEntry, ...] = ()
    index_deleted: tuple[IndexManifestEntry, ...] = ()
    vector_edits: tuple[PlacedEdit, ...] = ()
    replaces: PartitionChoice | None = None
    # Files that were written but are not part of it: deleted as soon as it is committed.
    unused: tuple[ManifestEntry, ...] = ()
    # The snapshots that the writers saw. A commit of these files can only come after them.
    bases: frozenset[BaseSnapshot | None] = frozenset()
    # The kinds of commits by others since then that make it wrong: it depends on what was read.
    stale_after: frozenset[CommitKind] = frozenset()
    # Files that the writers counted on although they were in none of the bases.
    counts_on: frozenset[str] = frozenset()
    # The name of a new statistics file, and whether all manifests are rewritten.
    statistics: str | None = None
    merges_manifests: bool = False

    @property
    def is_empty(self) -> bool:
        return self.replaces is None and not (
            self.added
            or self.deleted
            or self.changelog
            or self.touches_indexes
            or self.is_about_metadata
        )

    @property
    def is_about_metadata(self) -> bool:
        """Whether it makes a snapshot even if no file of the table changes."""
        return self.statistics is not None or self.merges_manifests

    @property
    def touches_indexes(self) -> bool:
        return bool(self.index_added or self.index_deleted or self.vector_edits)

    @property
    def added_names(self) -> frozenset[str]:
        """The names of all added files, including those that only change their level."""
        return frozenset(entry.file.file_name for entry in self.added)

    @property
    def new_names(self) -> frozenset[str]:
        """The names of files that are new to the table; one that changes its level is not."""
        known = {entry.file.file_name for entry in self.deleted}
        return self.added_names - known


@dataclass(frozen=True, kw_only=True, repr=False)
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

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, ready for JSON."""
        return asdict(self)

    def __repr__(self) -> str:
        shown = {"snapshot_id": self.snapshot_id, **self._facts()}
        return f"{type(self).__name__}({', '.join(f'{k}={v!s}' for k, v in shown.items())})"

    def _facts(self) -> dict[str, Any]:
        """The counts worth showing: those that are not zero."""
        values = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "snapshot_id"}
        return {name: value for name, value in values.items() if value}

    def _repr_html_(self) -> str:
        facts = {
            name.replace("_", " "): size_text(value) if name.startswith("bytes_") else value
            for name, value in self._facts().items()
        }
        is_new = self.snapshot_id is not None
        title = f"Snapshot {self.snapshot_id}" if is_new else "Nothing to commit"
        return html_box(html_title(title, "committed" if is_new else ""), html_facts(facts))


def combined(results: Sequence[CommitResult]) -> CommitResult:
    """What several commits did together, with the snapshot of the last one."""
    ids = [result.snapshot_id for result in results if result.snapshot_id is not None]
    counts = [f.name for f in fields(CommitResult) if f.name != "snapshot_id"]
    sums = {name: sum(getattr(result, name) for result in results) for name in counts}
    return CommitResult(snapshot_id=ids[-1] if ids else None, **sums)


NOTHING_COMMITTED = CommitResult(snapshot_id=None)


def split_changes(messages: Sequence[CommitMessage]) -> tuple[Change, ...]:
    """The snapshots that messages become: first what was written, then what was compacted.

    Spec: "Splitting into snapshots".
    """
    changes = (append_change(messages), compact_change(messages))
    return tuple(change for change in changes if not change.is_empty)


def append_change(messages: Sequence[CommitMessage]) -> Change:
    """The change that adds what writers wrote."""
    deleted = _entries(FileKind.DELETE, messages, "deleted_files")
    index_added = _index_entries(FileKind.ADD, messages, "new_index_files")
    index_deleted = _index_entries(FileKind.DELETE, messages, "deleted_index_files")
    edits = _edits(messages, "vector_edits")
    has_vectors = any(
        entry.index_file.index_type == DELETION_VECTORS_INDEX
        for entry in (*index_added, *index_deleted)
    )
    takes_away = deleted or has_vectors or edits
    return Change(
        # Spec: "Splitting into snapshots": a change that takes rows away is an OVERWRITE.
        kind=CommitKind.OVERWRITE if takes_away else CommitKind.APPEND,
        added=_entries(FileKind.ADD, messages, "new_files"),
        deleted=deleted,
        changelog=_entries(FileKind.ADD, messages, "changelog_files"),
        index_added=index_added,
        index_deleted=index_deleted,
        vector_edits=edits,
        bases=frozenset(m.base for m in messages),
        counts_on=frozenset(name for m in messages for name in m.counts_on),
    )


def compact_change(messages: Sequence[CommitMessage]) -> Change:
    """The change that replaces files by what they were compacted into."""
    return Change(
        kind=CommitKind.COMPACT,
        added=_entries(FileKind.ADD, messages, "compact_after"),
        deleted=_entries(FileKind.DELETE, messages, "compact_before"),
        changelog=_entries(FileKind.ADD, messages, "compact_changelog_files"),
        index_added=_index_entries(FileKind.ADD, messages, "compact_new_index_files"),
        index_deleted=_index_entries(FileKind.DELETE, messages, "compact_deleted_index_files"),
        vector_edits=_edits(messages, "compact_vector_edits"),
        bases=frozenset(m.base for m in messages),
    )


def overwrite_changes(
    messages: Sequence[CommitMessage], replaces: PartitionChoice
) -> tuple[Change, ...]:
    """The snapshots of an overwrite: first the replaced partitions, then what was compacted."""
    compacted = compact_change(messages)
    replaced = overwrite_change(messages, replaces)
    return (replaced,) if compacted.is_empty else (replaced, compacted)


def overwrite_change(messages: Sequence[CommitMessage], replaces: PartitionChoice) -> Change:
    """The change that replaces whole partitions by what writers wrote.

    Spec: "Overwrite": it has no changelog files.
    """
    return Change(
        kind=CommitKind.OVERWRITE,
        added=_entries(FileKind.ADD, messages, "new_files"),
        index_added=_index_entries(FileKind.ADD, messages, "new_index_files"),
        replaces=replaces,
        unused=_entries(FileKind.ADD, messages, "changelog_files"),
        bases=frozenset(m.base for m in messages),
    )


def written_change(messages: Sequence[CommitMessage]) -> Change:
    """The change that adds every file that writers wrote, to search the table for them."""
    return Change(
        kind=CommitKind.OVERWRITE,
        added=_entries(FileKind.ADD, messages, "written_files"),
        bases=frozenset(m.base for m in messages),
    )


def _entries(
    kind: FileKind, messages: Iterable[CommitMessage], files: str
) -> tuple[ManifestEntry, ...]:
    def entry(message: CommitMessage, file: DataFile) -> ManifestEntry:
        return ManifestEntry(
            kind=kind,
            partition=message.partition,
            bucket=message.bucket,
            total_buckets=message.total_buckets,
            file=file,
        )

    return tuple(entry(m, file) for m in messages for file in getattr(m, files))


def _index_entries(
    kind: FileKind, messages: Iterable[CommitMessage], files: str
) -> tuple[IndexManifestEntry, ...]:
    def entry(message: CommitMessage, file: IndexFile) -> IndexManifestEntry:
        return IndexManifestEntry(
            kind=kind, partition=message.partition, bucket=message.bucket, index_file=file
        )

    return tuple(entry(m, file) for m in messages for file in getattr(m, files))


def _edits(messages: Iterable[CommitMessage], name: str) -> tuple[PlacedEdit, ...]:
    return tuple(
        PlacedEdit(m.partition, m.bucket, edit) for m in messages for edit in getattr(m, name)
    )

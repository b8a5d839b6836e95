"""Messages from writers to the committer: files of one bucket to add, delete or replace.

Messages cross processes in their byte form (see ``byte_form``). The names and defaults of the
fields of ``CommitMessage``, and of the values in it, are part of that form.
"""

from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Final

from emberlake.spec.manifest import DataFile, IndexFile
from emberlake.spec.snapshot import Snapshot
from emberlake.wire.byte_form import ByteForm


class WriteMode(StrEnum):
    """The kind of commit that files were written for.

    An appending writer builds on the existing rows: it continues their sequence numbers, and in
    some tables merges with them. An overwriting writer expects them to be gone. Files that were
    written for one kind would lose rows in the other.
    """

    APPEND = "append"  # also for compactions, which keep the existing rows
    OVERWRITE = "overwrite"


@dataclass(frozen=True, slots=True)
class BaseSnapshot:
    """The newest snapshot when a writer was opened, or first looked at the partition.

    A commit of the writer's messages can only come after it, which limits the search for such a
    commit. The writer's sequence numbers are above all those that were in the partition then.
    After a rollback another snapshot may have the same id; the name of its delta tells them apart.
    """

    id: int
    delta_manifest_list: str

    @staticmethod
    def of(latest: Snapshot | None) -> "BaseSnapshot | None":
        """The latest snapshot as a base; None for a table that has none."""
        return None if latest is None else BaseSnapshot(latest.id, latest.delta_manifest_list)


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorEdit:
    """A change of the deletion vector of one data file of an append table.

    The committer applies it to the vector that the file has then. So two commits that delete rows
    of one file do not conflict, and no index file is written before the commit.
    """

    file_name: str
    marked: bytes = b""  # the rows to delete, as an encoded deletion vector; empty: none
    # Whether this commit puts new rows in the place of the marked ones. Then it is a conflict if
    # somebody else has deleted one of them meanwhile; otherwise only if they replaced it.
    is_exclusive: bool = False
    # Whether the vector is dropped, because its data file is.
    drops: bool = False
    # The number of deleted rows that the writer knew of. It is a conflict if there are others now;
    # None: whatever was deleted stays deleted.
    seen: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitMessage:
    """The result of writing one bucket of one partition."""

    table: str  # the root of its metadata, which tells tables and their branches apart
    mode: WriteMode
    partition: bytes
    bucket: int
    total_buckets: int
    new_files: tuple[DataFile, ...] = ()
    deleted_files: tuple[DataFile, ...] = ()
    changelog_files: tuple[DataFile, ...] = ()
    new_index_files: tuple[IndexFile, ...] = ()
    deleted_index_files: tuple[IndexFile, ...] = ()
    compact_before: tuple[DataFile, ...] = ()
    compact_after: tuple[DataFile, ...] = ()
    compact_changelog_files: tuple[DataFile, ...] = ()
    compact_new_index_files: tuple[IndexFile, ...] = ()
    compact_deleted_index_files: tuple[IndexFile, ...] = ()
    base: BaseSnapshot | None = None  # None: the table had no snapshot
    vector_edits: tuple[VectorEdit, ...] = ()
    compact_vector_edits: tuple[VectorEdit, ...] = ()
    # In tables whose rows move: who found the places of the keys, and the names of files that it
    # counted on although they were not in the base.
    placed_by: str | None = None
    counts_on: tuple[str, ...] = ()

    def __repr__(self) -> str:
        held = {f.name: getattr(self, f.name) for f in fields(self)}
        counts = ", ".join(
            f"{name}={len(value)}" for name, value in held.items() if value and type(value) is tuple
        )
        return (
            f"CommitMessage({self.table!r}, {self.mode}, bucket={self.bucket}"
            f"{', ' if counts else ''}{counts})"
        )

    def is_empty(self) -> bool:
        """Whether committing this message alone would change nothing."""
        return not any(
            getattr(self, f.name)
            for f in fields(self)
            if f.name.endswith(("files", "before", "after", "edits"))
        )

    @property
    def row_count(self) -> int:
        return sum(file.row_count for file in self.new_files)

    @property
    def written_files(self) -> tuple[DataFile, ...]:
        """All data files that writing this message created."""
        # A file that only changes its level existed before.
        before = {file.file_name for file in self.compact_before}
        return (
            *self.new_files,
            *self.changelog_files,
            *(file for file in self.compact_after if file.file_name not in before),
            *self.compact_changelog_files,
        )

    def to_bytes(self) -> bytes:
        """The stable byte form."""
        has_edits = self.vector_edits or self.compact_vector_edits
        return (_FORM_WITH_EDITS if has_edits else _FORM).encode(self)

    @staticmethod
    def from_bytes(raw: bytes) -> "CommitMessage":
        """Decode a message.

        Raises:
            InvalidInput: the bytes are not a message.
            Unsupported: their version is unknown to this release.
        """
        has_edits = raw[4:5] == bytes([_FORM_WITH_EDITS.version])
        return (_FORM_WITH_EDITS if has_edits else _FORM).decode(raw)


_FORM: Final = ByteForm(CommitMessage, b"EMBM", 2, "commit message")
# Earlier releases would ignore the edits, and with them the deletions.
_FORM_WITH_EDITS: Final = ByteForm(CommitMessage, b"EMBM", 3, "commit message")

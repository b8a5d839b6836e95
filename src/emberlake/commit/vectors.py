"""Apply edits of deletion vectors to the vectors of the latest snapshot.

A data file never changes, so what a writer has read of it stays true: the rows that it deletes are
added to the rows that others have deleted since. There is a conflict only if both have deleted the
same row and one of them has put a new row in its place: an update or a delete would be lost.
Spec: "Deletion vectors".
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from pyroaring import BitMap

from emberlake.commit.change import PlacedEdit
from emberlake.errors import CommitConflict, ConflictReason
from emberlake.spec.deletion_vector import (
    DeletionVector,
    decode_deletion_vector,
    shares_rows,
    union_of,
)
from emberlake.spec.manifest import (
    DELETION_VECTORS_INDEX,
    BucketKey,
    IndexManifestEntry,
    ManifestEntry,
)
from emberlake.store.table_store import TableStore
from emberlake.store.vector_files import Vectors, load_vectors
from emberlake.wire import VectorEdit


@dataclass(frozen=True, slots=True)
class NewVectors:
    """Vectors of one bucket that are yet to be written."""

    partition: bytes
    bucket: int
    vectors: Vectors


@dataclass(frozen=True, slots=True)
class EditedVectors:
    """Which index files are replaced, and by which vectors."""

    stale: tuple[IndexManifestEntry, ...] = ()
    new: tuple[NewVectors, ...] = ()


def apply_edits(
    store: TableStore,
    edits: Sequence[PlacedEdit],
    index: Sequence[IndexManifestEntry],
    only_deleted: Callable[[], bool],
) -> EditedVectors:
    """Apply edits to the vectors of the latest snapshot.

    Args:
        store: The table.
        edits: What is to change.
        index: The index files of the latest snapshot.
        only_deleted: Tells whether all that others deleted since the rows were read is gone for
            good: none of them put new rows in its place. Asked only if it matters.

    Raises:
        CommitConflict: others have changed the same vectors in a way that contradicts the edits.
    """
    by_place: dict[BucketKey, list[VectorEdit]] = defaultdict(list)
    for placed in edits:
        by_place[placed.partition, placed.bucket].append(placed.edit)
    present: dict[BucketKey, list[IndexManifestEntry]] = defaultdict(list)
    for entry in index:
        if entry.index_file.index_type == DELETION_VECTORS_INDEX:
            present[entry.partition, entry.bucket].append(entry)
    stale: list[IndexManifestEntry] = []
    new: list[NewVectors] = []
    for place, here in by_place.items():
        touched, vectors = _edit_bucket(store, place, here, present[place], only_deleted)
        stale += touched
        if vectors:
            new.append(NewVectors(*place, vectors))
    return EditedVectors(tuple(stale), tuple(new))


def _edit_bucket(
    store: TableStore,
    place: BucketKey,
    edits: Sequence[VectorEdit],
    present: Sequence[IndexManifestEntry],
    only_deleted: Callable[[], bool],
) -> tuple[list[IndexManifestEntry], Vectors]:
    """The index files of a bucket to replace, and the vectors that take their place."""
    names = {edit.file_name for edit in edits}
    touched = [entry for entry in present if names & _names(entry)]
    if store.schema.profile.has_buckets:
        touched = list(present)  # there is one file, and one takes its place
    before: dict[str, DeletionVector] = {}
    for entry in touched:
        before.update(load_vectors(store, *place, entry.index_file))
    after = dict(before)
    _check_apart(edits)
    for edit in edits:
        vector = edited(after.get(edit.file_name), edit, only_deleted)
        if vector is None:
            after.pop(edit.file_name, None)
        else:
            after[edit.file_name] = vector
    if after == before:
        return [], {}
    return touched, after


def _check_apart(edits: Sequence[VectorEdit]) -> None:
    """Refuse a commit that deletes a row and puts a new one in its place at the same time."""
    replaced: dict[str, DeletionVector] = {}
    names = Counter(edit.file_name for edit in edits if edit.marked)
    for edit in sorted(edits, key=lambda edit: not edit.is_exclusive):
        if names[edit.file_name] < 2 or not edit.marked:
            continue
        marked = decode_deletion_vector(edit.marked)
        known = replaced.get(edit.file_name, BitMap())
        if shares_rows(known, marked):
            raise CommitConflict(
                ConflictReason.DELETION_VECTOR_CHANGED,
                f"several messages change the same rows of {edit.file_name}",
                "commit them one after the other, each for what the one before has left",
            )
        if edit.is_exclusive:
            replaced[edit.file_name] = union_of(known, marked)


def edited(
    now: DeletionVector | None, edit: VectorEdit, only_deleted: Callable[[], bool]
) -> DeletionVector | None:
    """The vector after an edit; None if the file has none then. Pure.

    Raises:
        CommitConflict: the vector has changed in a way that contradicts the edit.
    """
    count = 0 if now is None else len(now)
    if edit.seen is not None and edit.seen != count:
        raise _conflict(
            f"{edit.file_name} has {count} deleted rows, {edit.seen} were known to this writer"
        )
    if edit.drops:
        return None
    if not edit.marked:
        return now
    marked = decode_deletion_vector(edit.marked)
    now = BitMap() if now is None else now
    # Rows that a writer marks were not deleted when it read them.
    if shares_rows(now, marked) and (edit.is_exclusive or not only_deleted()):
        raise _conflict(f"rows of {edit.file_name} that this writer changes were changed")
    union = union_of(now, marked)
    return now if len(union) == len(now) else union


def check_edited_files(
    edits: Sequence[PlacedEdit], live: Collection[ManifestEntry], *, snapshot_id: int
) -> CommitConflict | None:
    """Rows can only be deleted in live files: a file that was rewritten may still hold them."""
    alive = {(entry.partition, entry.bucket, entry.file.file_name) for entry in live}
    for placed in edits:
        name = placed.edit.file_name
        if not placed.edit.drops and (placed.partition, placed.bucket, name) not in alive:
            return CommitConflict(
                ConflictReason.FILE_DELETED_ELSEWHERE,
                f"{name}, whose rows are to be deleted, is not in snapshot {snapshot_id}",
                "another writer rewrote this file; read the table again and redo the operation",
            )
    return None


def _names(entry: IndexManifestEntry) -> set[str]:
    return {place.data_file_name for place in entry.index_file.deletion_vectors or ()}


def _conflict(detail: str) -> CommitConflict:
    return CommitConflict(
        ConflictReason.DELETION_VECTOR_CHANGED,
        detail,
        "another writer changed rows of the same file; read the table again and redo the operation",
    )

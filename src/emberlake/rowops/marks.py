"""Messages that delete rows by their positions, and messages that take files out of the table.

``mark_rows`` is for tables with deletion vectors: files stay, and their rows are marked. What is
marked joins what others mark meanwhile; the commit settles that for each file (see
``commit/vectors``)::

    marks = [Marked(place, positions) for place, positions in found]
    session.commit_or_abort(mark_rows(store, snapshot, marks))

It is a conflict if another commit meanwhile puts a new row in the place of one of them. With
``is_exclusive`` it is one even if the other only deletes it: use it if the operation itself writes
new rows in the place of the marked ones. Then add the messages of that writer, so that all becomes
one commit. Rows that keep their ids are written by
``session.new_writer(carries_ids=True)``.

``remove_files`` is for operations that write the remaining rows of files again.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from emberlake.errors import Unsupported
from emberlake.options import DELETION_VECTORS
from emberlake.rowops.locate import FilePlace
from emberlake.spec.column_buffers import I64
from emberlake.spec.deletion_vector import encode_deletion_vector, vector_of
from emberlake.spec.snapshot import Snapshot
from emberlake.store.table_store import TableStore
from emberlake.wire import BaseSnapshot, CommitMessage, VectorEdit, WriteMode


@dataclass(frozen=True)
class Marked:
    """Rows of a file that are deleted."""

    place: FilePlace
    positions: I64  # in any order


def mark_rows(
    store: TableStore,
    snapshot: Snapshot | None,
    marks: Iterable[Marked],
    *,
    is_exclusive: bool = False,
) -> list[CommitMessage]:
    """Messages that delete rows of a table with deletion vectors.

    Args:
        store: The table.
        snapshot: The state in which the rows were found.
        marks: Which rows, for every file.
        is_exclusive: Whether nobody else may have deleted one of them meanwhile.

    Raises:
        Unsupported: the table has no deletion vectors.
    """
    check_has_vectors(store)
    return [
        _message(store, snapshot, mark.place, vector_edits=(_edit(mark, is_exclusive),))
        for mark in marks
        if len(mark.positions)
    ]


def remove_files(
    store: TableStore, snapshot: Snapshot | None, places: Iterable[FilePlace]
) -> list[CommitMessage]:
    """Messages that take files out of the table, whose rows are written again or are gone.

    It is a conflict if rows of them are deleted meanwhile, or the files are rewritten.
    """
    return [
        _message(
            store,
            snapshot,
            place,
            deleted_files=place.files,
            vector_edits=(dropped_vector(place.file.file_name, place.deleted_count(store)),),
        )
        for place in places
    ]


def dropped_vector(file_name: str, seen: int) -> VectorEdit:
    """The edit for a file that leaves the table; it had ``seen`` deleted rows when it was read."""
    return VectorEdit(file_name=file_name, drops=True, seen=seen)


def check_has_vectors(store: TableStore) -> None:
    """Refuse tables whose rows cannot be marked.

    Raises:
        Unsupported: says which option is missing.
    """
    if not store.schema.profile.has_deletion_vectors:
        raise Unsupported(
            f"rows of this table cannot be marked as deleted: {DELETION_VECTORS.key} is not set. "
            "Create the table with it"
        )


def _edit(mark: Marked, is_exclusive: bool) -> VectorEdit:  # noqa: FBT001
    vector = vector_of(mark.positions)
    is_wide = bool(vector) and vector.max() >= 2**31
    return VectorEdit(
        file_name=mark.place.file.file_name,
        marked=encode_deletion_vector(vector, bitmap64=is_wide),
        is_exclusive=is_exclusive,
    )


def _message(
    store: TableStore,
    snapshot: Snapshot | None,
    place: FilePlace,
    **changes: tuple[object, ...],
) -> CommitMessage:
    return CommitMessage(
        table=store.layout.metadata_root,
        mode=WriteMode.APPEND,
        partition=place.partition,
        bucket=place.bucket,
        total_buckets=place.total_buckets,
        base=BaseSnapshot.of(snapshot),
        **changes,  # type: ignore[arg-type]
    )

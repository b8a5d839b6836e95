"""Resolve a change against the latest snapshot: what it comes to there, or why it conflicts.

This is where an attempt reads and decides. It writes nothing, so a conflict leaves no file behind;
what it returns can be written without another look at the table. Spec: "Conflict detection".
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from emberlake.commit.change import Change
from emberlake.commit.conflicts import (
    check_deleted_files,
    check_indexes,
    check_key_ranges,
    check_rewritten_vectors,
    check_vector_files,
)
from emberlake.commit.key_bounds import stored_key_bound
from emberlake.commit.row_ids import (
    assign_row_ids,
    check_leave_together,
    check_row_ranges,
    has_given_ids,
)
from emberlake.commit.vectors import NewVectors, apply_edits, check_edited_files
from emberlake.errors import CommitConflict, ConflictReason, FileNotFound, TableNotFound
from emberlake.options import ROW_IDS_BY_PARTITION
from emberlake.scan.files import delta_manifests_of, in_partitions, live_entries
from emberlake.spec.manifest import (
    DELETION_VECTORS_INDEX,
    HASH_INDEX,
    DataFile,
    FileKind,
    IndexManifestEntry,
    ManifestEntry,
)
from emberlake.spec.profile import BucketMode
from emberlake.spec.row_tracking import stored_fields
from emberlake.spec.schema import TableSchema
from emberlake.spec.snapshot import CommitKind, Snapshot
from emberlake.store.table_store import TableStore
from emberlake.wire import BaseSnapshot


@dataclass(frozen=True, slots=True)
class Resolved:
    """A change that fits on top of a snapshot."""

    latest: Snapshot | None  # None: it makes the first snapshot
    schema_id: int  # of the schema that the table has now
    entries: tuple[ManifestEntry, ...]  # its delta; deletes come first
    index: tuple[IndexManifestEntry, ...] | None  # all index files after it; None: as before
    next_row_id: int = 0
    vectors: tuple[NewVectors, ...] = ()  # to be written, to index files of their own


def resolve_change(
    store: TableStore,
    change: Change,
    latest: Snapshot | None,
    latest_schema: Callable[[], TableSchema | None] | None = None,
) -> Resolved | None:
    """Resolve a change on top of ``latest``; None if it would change nothing.

    Args:
        store: The table.
        change: What is to be committed.
        latest: The latest snapshot.
        latest_schema: Gives the latest schema, if somebody has asked for it already.

    Raises:
        CommitConflict: it does not fit.
        TableNotFound: the table is gone.
    """
    entries = _delta_entries(store, change, latest)
    if not (entries or change.changelog or change.touches_indexes or change.is_about_metadata):
        return None  # an overwrite of nothing by nothing
    index, vectors = _next_index(store, change, latest)
    is_nothing = not (entries or change.changelog or index is not None or vectors)
    if is_nothing and not change.is_about_metadata:
        return None  # rows that were deleted already
    next_row_id = (latest.next_row_id if latest else None) or 0
    if store.schema.profile.tracks_rows:
        entries, next_row_id = assign_row_ids(
            entries,
            snapshot_id=latest.id + 1 if latest else 1,
            next_row_id=next_row_id,
            by_partition=store.options.value(ROW_IDS_BY_PARTITION),
        )
    # Manifests of a table that was dropped would leave a folder behind that has no schema.
    schema_id = present_schema(store, latest_schema).id
    return Resolved(latest, schema_id, entries, index, next_row_id, vectors)


def present_schema(
    store: TableStore, latest_schema: Callable[[], TableSchema | None] | None = None
) -> TableSchema:
    """The latest schema.

    Raises:
        TableNotFound: there is none any more.
    """
    schema = (latest_schema or store.schemas.latest)()
    if schema is None:
        raise _gone(store)
    return schema


def check_not_dropped(store: TableStore, schema_id: int) -> None:
    """Look again for the schema of a change that was resolved: writing it took some time.

    Raises:
        TableNotFound: it is gone. Publishing would bring back a table without a schema.
    """
    try:
        store.storage.size(store.layout.schema(schema_id))
    except FileNotFound:
        raise _gone(store) from None


def _gone(store: TableStore) -> TableNotFound:
    return TableNotFound(
        f"{store.layout.metadata_root} has no schema any more: the table was dropped or renamed "
        "while it was written to"
    )


# --- data files -----------------------------------------------------------------------------------


def _delta_entries(
    store: TableStore, change: Change, latest: Snapshot | None
) -> tuple[ManifestEntry, ...]:
    if change.replaces is None:
        deleted = change.deleted
        kept = _kept_beside(store, change, latest)
    else:
        deleted, kept = _replaced(store, change, latest), []
    if _has_runs(change) and store.schema.profile.has_keys:
        _raise(check_key_ranges(change.added, kept, partial(stored_key_bound, store)))
    return (*deleted, *change.added)


def _replaced(
    store: TableStore, change: Change, latest: Snapshot | None
) -> tuple[ManifestEntry, ...]:
    """Deletes of all live files in the partitions that an overwrite replaces."""
    if latest is None:
        return ()
    live = live_entries(store, latest, partitions=change.replaces).entries()
    # Spec: "Overwrite": postponed files are left alone unless the table is in postpone mode.
    with_postponed = store.schema.profile.bucket_mode is BucketMode.POSTPONED
    return tuple(
        replace(entry, kind=FileKind.DELETE)
        for entry in live
        if entry.bucket >= 0 or with_postponed
    )


def _kept_beside(store: TableStore, change: Change, latest: Snapshot | None) -> list[ManifestEntry]:
    """The live files that stay next to the added ones, if it matters which they are."""
    has_ids = store.schema.profile.tracks_rows and has_given_ids(change.added)
    depends = change.deleted or _has_runs(change) or _has_vectors(change) or has_ids
    if not (depends or change.vector_edits):
        return []
    touched = frozenset(entry.partition for entry in (*change.deleted, *change.added))
    touched |= frozenset(entry.partition for entry in change.index_added)
    touched |= frozenset(placed.partition for placed in change.vector_edits)
    live = live_entries(store, latest, partitions=touched).entries() if latest else []
    latest_id = latest.id if latest else 0
    _raise(check_deleted_files(change.deleted, live, snapshot_id=latest_id))
    gone = {entry.identity for entry in change.deleted}
    kept = [entry for entry in live if entry.identity not in gone]
    after = (*kept, *change.added)
    _raise(check_vector_files(change.index_added, after, snapshot_id=latest_id))
    _raise(check_edited_files(change.vector_edits, after, snapshot_id=latest_id))
    if has_ids:
        _check_rows(store, change, kept, latest)
    if store.schema.profile.evolves_data:
        _raise(check_leave_together(change.deleted, change.added, kept))
    return kept


def _check_rows(
    store: TableStore, change: Change, kept: Sequence[ManifestEntry], latest: Snapshot | None
) -> None:
    """Check files for rows that have ids against the files that hold these rows now."""
    since = min((base.id if base else 0 for base in change.bases), default=0)
    for base in change.bases:
        _check_still_there(store, base, latest)

    def fields_of(file: DataFile) -> frozenset[int]:
        schema = store.schemas.load(file.schema_id)
        return frozenset(f.id for f in stored_fields(schema, file.write_cols) or schema.fields)

    _raise(check_row_ranges(change.added, kept, change.kind, since=since, fields_of=fields_of))


def _check_still_there(
    store: TableStore, base: BaseSnapshot | None, latest: Snapshot | None
) -> None:
    """After a rollback, ids are reused: ids that a writer has read may name other rows now."""
    if base is None or latest is None:
        return
    now = latest if latest.id == base.id else next(store.snapshots.find_each([base.id]))
    is_same = now is None or now.delta_manifest_list == base.delta_manifest_list
    if latest.id < base.id or not is_same:
        raise CommitConflict(
            ConflictReason.ROW_RANGE_CHANGED,
            f"the table was rolled back: snapshot {base.id}, which was read, is gone",
            "read the table again and redo the operation",
        )


def _has_vectors(change: Change) -> bool:
    return any(entry.index_file.deletion_vectors for entry in change.index_added)


def _has_runs(change: Change) -> bool:
    return any(entry.file.level > 0 for entry in change.added)


# --- index files ----------------------------------------------------------------------------------


def _next_index(
    store: TableStore, change: Change, latest: Snapshot | None
) -> tuple[tuple[IndexManifestEntry, ...] | None, tuple[NewVectors, ...]]:
    """All index files after a change, and the vectors to write to new ones. Spec: "Index manifest".

    None instead of the index files when they stay the same.
    """
    if change.replaces is None and not (change.touches_indexes or change.deleted):
        return None, ()
    inherited = latest.index_manifest if latest else None
    before = store.manifests.read_index(inherited) if inherited else ()
    is_replaced = in_partitions(change.replaces if change.replaces is not None else frozenset())
    kept = [entry for entry in before if not is_replaced(entry.partition)]
    dropped = {placed.edit.file_name for placed in change.vector_edits if placed.edit.drops}
    rewritten = [
        entry
        for entry in change.deleted
        if entry.file.file_name not in change.added_names | dropped
    ]
    _raise(check_rewritten_vectors(rewritten, change.index_deleted, kept))
    has_buckets = store.schema.profile.has_buckets
    _raise(check_indexes(change.index_added, change.index_deleted, kept, has_buckets=has_buckets))
    edited = apply_edits(
        store, change.vector_edits, kept, partial(_only_deleted, store, change, latest)
    )
    removed = {entry.identity for entry in (*change.index_deleted, *edited.stale)}
    added = {entry.slot for entry in change.index_added if _is_single(store, entry)}
    stays = (e for e in kept if e.identity not in removed and e.slot not in added)
    after = (*stays, *change.index_added)
    return (None if after == before else after), edited.new


def _only_deleted(store: TableStore, change: Change, latest: Snapshot | None) -> bool:
    """Whether no commit since the writers looked put new rows in the place of others."""
    since = min((base.id if base else 0 for base in change.bases), default=0)
    if latest is None or latest.id <= since:
        return True
    for snapshot in store.snapshots.find_each(range(since + 1, latest.id + 1)):
        if snapshot is None:
            return False  # nobody can tell any more
        if snapshot.commit_kind is CommitKind.OVERWRITE:
            manifests = delta_manifests_of(store, snapshot)
            if any(manifest.num_added_files for manifest in manifests):
                return False
    return True


def _is_single(store: TableStore, entry: IndexManifestEntry) -> bool:
    """Whether a bucket has at most one index file of that type."""
    if entry.index_file.index_type == HASH_INDEX:
        return True
    is_vectors = entry.index_file.index_type == DELETION_VECTORS_INDEX
    return is_vectors and store.schema.profile.has_buckets


def _raise(conflict: CommitConflict | None) -> None:
    if conflict is not None:
        raise conflict

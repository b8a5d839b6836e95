"""After a commit: is its snapshot still the one that has the id?

If several writers create ``snapshot-N``, one wins. On object stores other engines do not create it:
they check whether it exists and then write it, whatever is there by then. Such a write replaces a
snapshot that was published in between, without any error. So we read the snapshot again after a
while.
"""

import warnings
from collections.abc import Collection, Sequence
from typing import Final

from emberlake.commit.draft import WRITER, Draft
from emberlake.errors import (
    ConflictReason,
    CorruptFile,
    EmberlakeWarning,
    NotFound,
    SnapshotOverwritten,
    StorageError,
)
from emberlake.options import COMMIT_VERIFY_WINDOW_MS
from emberlake.spec.manifest import (
    FileIdentity,
    FileKind,
    IndexManifestEntry,
    ManifestEntry,
)
from emberlake.spec.snapshot import Snapshot
from emberlake.store.entries import merge_entries
from emberlake.store.table_store import TableStore

# Other engines need about three requests between their check and their write: tenths of a second.
_WINDOW_MS: Final = 1_000
_PATHS_SHOWN: Final = 3


def window_ms(wanted: int | None, below: Snapshot | None) -> int:
    """How long to wait before the snapshot is read again; 0: it is not read again.

    Args:
        wanted: What the table's options say.
        below: The snapshot that the commit is built on.
    """
    if wanted is not None:
        return wanted
    # Writers of emberlake do no harm to each other. Where another engine has just written, it may
    # be writing now.
    is_shared = below is not None and not (below.writer_version or "").startswith(WRITER)
    return _WINDOW_MS if is_shared else 0


def is_built_on(
    entries: Sequence[ManifestEntry],
    index_added: Sequence[IndexManifestEntry],
    files: Collection[FileIdentity],
    index_names: Collection[str],
) -> bool:
    """Whether the snapshot after a commit was built on it.

    Args:
        entries: The files that the commit added and deleted.
        index_added: The index files that it added.
        files: The files that the next snapshot found.
        index_names: The index files that the next snapshot has.
    """
    if entries:
        return all((e.identity in files) is (e.kind is FileKind.ADD) for e in entries)
    names = [entry.index_file.file_name for entry in index_added]
    return bool(names) and all(name in index_names for name in names)


def verify(store: TableStore, draft: Draft, index_added: Sequence[IndexManifestEntry] = ()) -> None:
    """Read the snapshot of a commit again, after a while, if others may have replaced it.

    Raises:
        SnapshotOverwritten: another snapshot has its id, and nothing was built on it.
    """
    if not store.snapshots.can_be_overwritten:
        return
    window = window_ms(store.options.value(COMMIT_VERIFY_WINDOW_MS), draft.below)
    if not window:
        return
    store.env.sleep_ms(window)
    try:
        standing = store.snapshots.find(draft.snapshot.id)
        # If it is gone, somebody expired it or rolled it back, on purpose.
        if standing is None or standing.mark == draft.snapshot.mark:
            return
        has_successor = _has_successor(store, draft, index_added)
    except (StorageError, CorruptFile, NotFound) as error:
        _warn(
            f"snapshot {draft.snapshot.id} of {store.layout.root} was published, but whether it is "
            f"still there cannot be found out ({error}); check the table"
        )
        return
    if not has_successor:
        raise _overwritten(store, draft, standing)
    _warn(
        f"{_replaced(store, draft, standing)}. What this commit did is in the table all the same: "
        f"snapshot {draft.snapshot.id + 1} was built on it. What {standing.commit_user} did is "
        "not; let one engine at a time write to the table"
    )


def _has_successor(
    store: TableStore, draft: Draft, index_added: Sequence[IndexManifestEntry]
) -> bool:
    after = store.snapshots.find(draft.snapshot.id + 1)
    if after is None:
        return False
    manifests = store.manifests.read_list(after.base_manifest_list)
    files = merge_entries(store.manifests.read_manifests(manifests)).entries()
    index = store.manifests.read_index(after.index_manifest) if after.index_manifest else ()
    return is_built_on(
        draft.entries,
        index_added,
        {entry.identity for entry in files},
        {entry.index_file.file_name for entry in index},
    )


def _overwritten(store: TableStore, draft: Draft, standing: Snapshot) -> SnapshotOverwritten:
    added = [e for e in draft.entries if e.kind is FileKind.ADD]
    paths = [store.data_file_path(e.partition, e.bucket, e.file) for e in added[:_PATHS_SHOWN]]
    if len(added) > _PATHS_SHOWN:
        paths.append(f"{len(added) - _PATHS_SHOWN} more")
    stay = f"; its data files stay: {', '.join(paths)}" if paths else ""
    return SnapshotOverwritten(
        ConflictReason.SNAPSHOT_OVERWRITTEN,
        f"{_replaced(store, draft, standing)}. What this commit did is not in the table{stay}",
        "commit the same messages again, or write the rows again, and remove_orphan_files deletes "
        "those files later; let one engine at a time write to the table, or all through a catalog "
        "that commits for them",
    )


def _replaced(store: TableStore, draft: Draft, standing: Snapshot) -> str:
    writer = standing.writer_version or "another engine"
    return (
        f"snapshot {draft.snapshot.id} of {store.layout.root} was published by this commit, and "
        f"then replaced by {writer} as commit user {standing.commit_user}"
    )


def _warn(text: str) -> None:
    warnings.warn(text, EmberlakeWarning, stacklevel=4)

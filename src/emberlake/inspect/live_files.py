"""The data files that make up a snapshot."""

from emberlake.spec.manifest import ManifestFile
from emberlake.spec.snapshot import Snapshot
from emberlake.store.entries import EMPTY, ManifestEntries, merge_entries
from emberlake.store.table_store import TableStore


def load_manifest_files(store: TableStore, snapshot: Snapshot) -> tuple[ManifestFile, ...]:
    """The manifests that together hold the state of a snapshot."""
    manifests = store.manifests
    return (
        *manifests.read_list(snapshot.base_manifest_list, snapshot.base_manifest_list_size),
        *manifests.read_list(snapshot.delta_manifest_list, snapshot.delta_manifest_list_size),
    )


def load_live_files(store: TableStore, snapshot: Snapshot | None) -> ManifestEntries:
    """The data files of a snapshot; none when the table has no snapshot."""
    if snapshot is None:
        return EMPTY
    return merge_entries(store.manifests.read_manifests(load_manifest_files(store, snapshot)))

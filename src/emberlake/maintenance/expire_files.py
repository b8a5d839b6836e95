"""Which files go when snapshots expire. Spec: "Snapshot expiration".

All files that the expired snapshots refer to, minus those that anybody else still needs.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from emberlake.base.parallel import parallel_map
from emberlake.errors import CorruptFile, FileNotFound
from emberlake.maintenance.holders import (
    Holder,
    Metadata,
    find_needed,
    load_metadata,
    read_metadata,
    stored_name,
)
from emberlake.scan.files import changelog_manifests_of, delta_manifests_of
from emberlake.spec.manifest import FileKind, ManifestEntry, ManifestFile
from emberlake.spec.snapshot import Snapshot
from emberlake.store.table_store import TableStore

Sizes = dict[str, int]  # files by path; 0 if the size is not recorded

ManifestsOf = Callable[[TableStore, Snapshot], tuple[ManifestFile, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Doomed:
    """Files to delete, in this order: a file that names others goes after them.

    An interrupted run then leaves the names of everything it did not get to.
    """

    data_files: Sizes
    manifests: Sizes  # and index files
    manifest_lists: Sizes  # and index manifests, statistics
    snapshots: tuple[int, ...]  # their ids, oldest first

    @property
    def steps(self) -> tuple[Sizes, ...]:
        """All files but the snapshots, which go last."""
        return self.data_files, self.manifests, self.manifest_lists

    @property
    def metadata_files(self) -> int:
        return len(self.manifests) + len(self.manifest_lists) + len(self.snapshots)

    @property
    def bytes(self) -> int:
        return sum(sum(step.values()) for step in self.steps)


def find_doomed(
    store: TableStore,
    expired: Sequence[Snapshot],
    first_retained: Snapshot,
    holders: Sequence[Holder],
) -> Doomed:
    """The files that nobody needs any more once some snapshots have expired.

    Args:
        store: The table.
        expired: The snapshots that go, oldest first.
        first_retained: The one after them.
        holders: Everything that stays.
    """
    readers = store.readers
    kept = [*parallel_map(lambda h: load_metadata(store, h), holders, workers=readers)]
    gone = [
        *parallel_map(lambda s: read_metadata(store, s, is_partial=True), expired, workers=readers)
    ]
    needed = {name for metadata in kept for name in metadata.file_names}
    manifests, lists = _metadata_files(store, gone, needed)
    return Doomed(
        data_files=_data_files(store, expired, first_retained, kept),
        manifests=manifests,
        manifest_lists=lists,
        snapshots=tuple(snapshot.id for snapshot in expired),
    )


# --- data -----------------------------------------------------------------------------------------


def _data_files(
    store: TableStore,
    expired: Sequence[Snapshot],
    first_retained: Snapshot,
    kept: Sequence[Metadata],
) -> Sizes:
    # What a snapshot deleted was needed by those before it. For the first, it is already gone.
    deleting = [*expired[1:], first_retained]
    deltas = _read_each(store, delta_manifests_of, deleting)
    replaced = [entry for entries in deltas for entry in _deleted(entries)]
    changelogs = _read_each(store, changelog_manifests_of, expired)
    changelog = [entry for entries in changelogs for entry in entries]
    entries = [*replaced, *changelog]
    needed = find_needed(store, kept, {entry.file.file_name for entry in entries})
    folders = _Folders(store)
    found: Sizes = {}
    for entry in entries:
        if entry.file.file_name not in needed:
            found.update(folders.files_of(entry))
    return found


def _read_each(
    store: TableStore, manifests_of: ManifestsOf, snapshots: Sequence[Snapshot]
) -> Iterator[list[ManifestEntry]]:
    read = partial(_read, store, manifests_of)
    return parallel_map(read, snapshots, workers=store.readers or 1)


def _read(store: TableStore, manifests_of: ManifestsOf, snapshot: Snapshot) -> list[ManifestEntry]:
    """The entries of some manifests of a snapshot that may be partly deleted.

    Data files go before manifests, so whatever a missing manifest named is gone as well. Files of a
    manifest that cannot be read are left to the removal of orphans.
    """
    found: list[ManifestEntry] = []
    try:
        for manifest in manifests_of(store, snapshot):
            with suppress(FileNotFound, CorruptFile):
                found += store.manifests.read_manifest(manifest).entries()
    except (FileNotFound, CorruptFile):
        return found
    return found


def _deleted(entries: Sequence[ManifestEntry]) -> Iterator[ManifestEntry]:
    """The files that are deleted and not added again on another level."""
    added = {e.file.file_name for e in entries if e.kind is FileKind.ADD}
    return (e for e in entries if e.kind is FileKind.DELETE and e.file.file_name not in added)


class _Folders:
    """Paths of files; the folder of a bucket is computed once."""

    def __init__(self, store: TableStore) -> None:
        self._store = store
        self._known: dict[tuple[bytes, int], str] = {}

    def files_of(self, entry: ManifestEntry) -> Iterator[tuple[str, int]]:
        """A data file and its extra files, with their sizes."""
        file, (bucket, name) = entry.file, stored_name(entry.file.file_name)
        folder = self._folder(entry.partition, entry.bucket if bucket is None else bucket)
        path = file.external_path or f"{folder}/{name}"
        yield path, file.file_size
        for extra in file.extra_files:
            yield self._store.layout.extra_file(path, extra), 0

    def _folder(self, partition: bytes, bucket: int) -> str:
        folder = self._known.get((partition, bucket))
        if folder is None:
            folder = self._store.bucket_folder(partition, bucket)
            self._known[partition, bucket] = folder
        return folder


# --- metadata -------------------------------------------------------------------------------------


def _metadata_files(
    store: TableStore, gone: Iterable[Metadata], needed: set[str]
) -> tuple[Sizes, Sizes]:
    """The manifests and index files of expired snapshots, and the files that name them."""
    layout = store.layout
    manifests: Sizes = {}
    lists: Sizes = {}
    for metadata in gone:
        for name, manifest in {**metadata.manifests, **metadata.changelog_manifests}.items():
            if name not in needed:
                manifests[layout.manifest(name)] = manifest.file_size
        for entry in metadata.index_entries:
            file = entry.index_file
            if file.file_name not in needed:
                path = store.index_file_path(entry.partition, entry.bucket, file)
                manifests[path] = file.file_size
        for name, size in metadata.lists.items():
            if name not in needed:
                lists[layout.manifest(name)] = size or 0
        if metadata.index_manifest is not None and metadata.index_manifest not in needed:
            lists[layout.manifest(metadata.index_manifest)] = 0
        if metadata.statistics is not None and metadata.statistics not in needed:
            lists[layout.statistics(metadata.statistics)] = 0
    return manifests, lists

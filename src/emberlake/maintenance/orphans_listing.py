"""The files of a table that could be orphans.

Folders that are not part of a table are left alone with everything in them. So are files that
belong to a table by their name alone: snapshots, schemas, tags, consumers, hints.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from emberlake.base.parallel import parallel_map
from emberlake.base.requests import ask_all
from emberlake.errors import InvalidOption
from emberlake.io.storage import FileInfo
from emberlake.options import DATA_FILE_DIRECTORY
from emberlake.spec.layout import SNAPSHOT_PREFIX, TableLayout
from emberlake.store.branches import UNFINISHED_PREFIX, is_unfinished
from emberlake.store.table_store import TableStore

_BUCKET_PREFIX: Final = "bucket-"
_MANAGED_BLOB_SUFFIX: Final = ".managed.blob"
_HINTS: Final = ("LATEST", "EARLIEST")
# A temporary file, which a storage renames once it is complete.
_TEMPORARY: Final = re.compile(r"\..+\.[0-9a-f-]{36}\.tmp")


@dataclass(frozen=True, slots=True)
class Listing:
    """Files that may be orphans."""

    shared: list[FileInfo]  # in folders that all branches share: orphans if nothing names them
    stray: list[FileInfo]  # in folders of a branch, where nothing can name them


def list_files(store: TableStore, older_than_ms: int) -> Listing:
    """The files that were last modified before a time."""
    folders = _shared_folders(store)
    found = parallel_map(lambda f: [*_files_in(store, f)], folders, workers=store.readers)
    shared = [info for files in found for info in files if info.modified_ms < older_than_ms]
    stray = [info for info in _stray(store) if info.modified_ms < older_than_ms]
    for files in _unfinished_branches(store).values():
        # While any file is young, somebody may be creating or deleting the branch.
        if all(info.modified_ms < older_than_ms for info in files):
            stray += files
    return Listing(shared, stray)


@dataclass(frozen=True, slots=True)
class _SharedFolder:
    """A folder whose files, or the files of whose buckets, belong to all branches."""

    path: str
    partition_levels: int | None = None  # below it; None if the files are directly in it


def _shared_folders(store: TableStore) -> Iterator[_SharedFolder]:
    """Manifests, indexes, statistics, and the buckets by partitions of the first level."""
    layout = store.layout
    for path in (layout.manifest_folder, layout.index_folder, layout.statistics_folder):
        yield _SharedFolder(path)
    levels = len(store.schema.partition_keys)
    for info in store.storage.list(_data_root(store)):
        if info.is_folder and levels and _is_partition(info.name):
            yield _SharedFolder(info.path, levels - 1)
        elif info.is_folder and not levels and _is_bucket(info.name):
            yield _SharedFolder(info.path)


def _files_in(store: TableStore, folder: _SharedFolder) -> Iterator[FileInfo]:
    if folder.partition_levels is None:
        found = (info for info in store.storage.list(folder.path) if not info.is_folder)
    else:
        root, levels = f"{folder.path}/", folder.partition_levels
        everything = store.storage.list_all(folder.path)
        found = (info for info in everything if _is_of_bucket(info, root, levels))
    # Managed blobs are named by extra files of data files, not by a manifest.
    return (info for info in found if not info.name.endswith(_MANAGED_BLOB_SUFFIX))


def _is_of_bucket(info: FileInfo, root: str, partition_levels: int) -> bool:
    """Whether a file is directly in a bucket, and the bucket directly in a partition."""
    folders = info.path.removeprefix(root).split("/")[:-1]
    return (
        len(folders) == partition_levels + 1
        and all(map(_is_partition, folders[:-1]))
        and _is_bucket(folders[-1])
    )


def _is_partition(folder_name: str) -> bool:
    return "=" in folder_name


def _is_bucket(folder_name: str) -> bool:
    return folder_name.startswith(_BUCKET_PREFIX)


def _data_root(store: TableStore) -> str:
    directory = store.options.value(DATA_FILE_DIRECTORY).strip("/")
    if ".." in directory.split("/"):
        raise InvalidOption(
            f"{DATA_FILE_DIRECTORY.key}={directory!r} leads out of the table's folder, where "
            "files of others may be; nothing was deleted"
        )
    return f"{store.layout.root}/{directory}" if directory else store.layout.root


def _stray(store: TableStore) -> Iterator[FileInfo]:
    for layout in store.branches.layouts():
        yield from _stray_of_branch(store, layout)
    for info in store.storage.list(store.layout.branch_folder):
        if info.is_folder:
            continue
        branch = _marked_branch(store, info)
        # A marker without a branch, or a temporary file of an interrupted write of one.
        if not is_unfinished(store.storage, branch) if branch else _TEMPORARY.fullmatch(info.name):
            yield info


def _unfinished_branches(store: TableStore) -> dict[TableLayout, list[FileInfo]]:
    """The files of branches whose creation or deletion is unfinished, and their markers."""
    markers = {
        branch: info
        for info in store.storage.list(store.layout.branch_folder)
        if (branch := _marked_branch(store, info)) and is_unfinished(store.storage, branch)
    }
    return {
        branch: [*store.storage.list_all(branch.metadata_root), marker]
        for branch, marker in markers.items()
    }


def _marked_branch(store: TableStore, info: FileInfo) -> TableLayout | None:
    """The branch whose marker a file is."""
    name = info.name.removeprefix(UNFINISHED_PREFIX)
    return None if info.is_folder or name == info.name else store.layout.for_branch(name)


def files_of_stale_branches(store: TableStore, orphans: Collection[str]) -> dict[str, set[str]]:
    """The orphans that belong to unfinished branches, by the name of the branch."""
    known = set(orphans)
    return {
        branch.branch: {info.path for info in files}
        for branch, files in _unfinished_branches(store).items()
        if known.issuperset(info.path for info in files)
    }


def _stray_of_branch(store: TableStore, layout: TableLayout) -> Iterator[FileInfo]:
    """Files that are neither snapshots nor hints, and temporary files of interrupted writes."""
    folders = (
        layout.snapshot_folder,
        layout.changelog_folder,
        layout.schema_folder,
        layout.tag_folder,
        layout.consumer_folder,
    )
    looks = (partial(store.storage.list, folder) for folder in folders)
    snapshots, *others = ask_all(looks, store.storage.traits.requests_at_once)
    for info in snapshots:
        is_known = info.name.startswith(SNAPSHOT_PREFIX) or info.name in _HINTS
        if not info.is_folder and not is_known:
            yield info
    for files in others:
        for info in files:
            if not info.is_folder and _TEMPORARY.fullmatch(info.name):
                yield info

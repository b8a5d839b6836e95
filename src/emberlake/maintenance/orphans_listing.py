"""The files of a table that could be orphans: in its own folders, with names of their own.

Folders that no table has are left alone with all that is in them, as are files of which the name
alone says that they are the table's: snapshots, schemas, tags, consumers, hints.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from emberlake.base.parallel import parallel_map
from emberlake.errors import InvalidOption
from emberlake.io.storage import FileInfo
from emberlake.options import DATA_FILE_DIRECTORY
from emberlake.spec.layout import SNAPSHOT_PREFIX, TableLayout
from emberlake.store.branches import UNFINISHED_PREFIX, BranchStore
from emberlake.store.table_store import TableStore

_BUCKET_PREFIX: Final = "bucket-"
_MANAGED_BLOB_SUFFIX: Final = ".managed.blob"
_HINTS: Final = ("LATEST", "EARLIEST")
# What a storage writes before it gives a file its name.
_TEMPORARY: Final = re.compile(r"\..+\.[0-9a-f-]{36}\.tmp")


@dataclass(frozen=True, slots=True)
class Listing:
    """Files that may be orphans."""

    shared: list[FileInfo]  # in folders that all branches share: orphans if nothing names them
    stray: list[FileInfo]  # in folders of a branch, where nothing could name them


def list_files(store: TableStore, older_than_ms: int) -> Listing:
    """The files that were last modified before a time."""
    folders = [*_shared_folders(store)]
    found = parallel_map(lambda folder: [*_files(store, folder, older_than_ms)], folders)
    shared = [info for files in found for info in files]
    stray = [info for info in _stray(store) if info.modified_ms < older_than_ms]
    return Listing(shared, stray)


def _files(store: TableStore, folder: str, older_than_ms: int) -> Iterator[FileInfo]:
    for info in store.storage.list(folder):
        if info.is_folder or info.modified_ms >= older_than_ms:
            continue
        # These are named by files that go with data files, and by no manifest.
        if not info.name.endswith(_MANAGED_BLOB_SUFFIX):
            yield info


def _shared_folders(store: TableStore) -> Iterator[str]:
    """Manifests, indexes, statistics, and the buckets of all partitions."""
    layout = store.layout
    yield from (layout.manifest_folder, layout.index_folder, layout.statistics_folder)
    folders = [_data_root(store)]
    for _ in store.schema.partition_keys:
        nested = parallel_map(lambda folder: _folders(store, folder), folders)
        folders = [info.path for found in nested for info in found if "=" in info.name]
    for found in parallel_map(lambda folder: _folders(store, folder), folders):
        yield from (info.path for info in found if info.name.startswith(_BUCKET_PREFIX))


def _data_root(store: TableStore) -> str:
    directory = store.options.value(DATA_FILE_DIRECTORY).strip("/")
    if ".." in directory.split("/"):
        raise InvalidOption(
            f"{DATA_FILE_DIRECTORY.key}={directory!r} leads out of the table's folder, where "
            "files of others may be; nothing was deleted"
        )
    return f"{store.layout.root}/{directory}" if directory else store.layout.root


def _folders(store: TableStore, folder: str) -> list[FileInfo]:
    return [info for info in store.storage.list(folder) if info.is_folder]


def _stray(store: TableStore) -> Iterator[FileInfo]:
    branches = BranchStore(store.storage, store.layout, store.env.new_id)
    for layout in branches.layouts():
        yield from _stray_of_branch(store, layout)
    for folder in _unfinished_branches(store):
        yield from _all_files(store, folder)


def _unfinished_branches(store: TableStore) -> list[str]:
    return [
        info.path
        for info in store.storage.list(store.layout.branch_folder)
        if info.is_folder and info.name.startswith(UNFINISHED_PREFIX)
    ]


def delete_emptied_branches(store: TableStore, deleted: Sequence[str]) -> None:
    """Delete the folders of unfinished branches of which these files were the last."""
    for folder in _unfinished_branches(store):
        is_old = any(path.startswith(f"{folder}/") for path in deleted)
        if is_old and not any(_all_files(store, folder)):
            store.storage.delete_folder(folder)


def _stray_of_branch(store: TableStore, layout: TableLayout) -> Iterator[FileInfo]:
    """Whatever is no snapshot, and what a storage left that was cut off while writing."""
    for info in store.storage.list(layout.snapshot_folder):
        is_known = info.name.startswith(SNAPSHOT_PREFIX) or info.name in _HINTS
        if not info.is_folder and not is_known:
            yield info
    for folder in (
        layout.changelog_folder,
        layout.schema_folder,
        layout.tag_folder,
        layout.consumer_folder,
    ):
        for info in store.storage.list(folder):
            if not info.is_folder and _TEMPORARY.fullmatch(info.name):
                yield info


def _all_files(store: TableStore, folder: str) -> Iterator[FileInfo]:
    for info in store.storage.list(folder):
        if info.is_folder:
            yield from _all_files(store, info.path)
        else:
            yield info

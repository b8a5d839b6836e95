"""Do the files of a change exist? A snapshot that names a missing file breaks every later read.

Each file is looked up by itself, so the cost depends only on what was written, not on what else is
in the folders.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from emberlake.base.parallel import parallel_map
from emberlake.base.requests import ask_each
from emberlake.commit.change import Change
from emberlake.commit.resolve import present_schema
from emberlake.errors import ConflictReason, FileNotFound, FilesMissing
from emberlake.io.storage import Storage
from emberlake.options import CHECK_FILES
from emberlake.store.table_store import TableStore

# Threads cost more than they gain for this few lookups on a disk.
_FEW: Final = 4
_WORKERS: Final = 16
_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class Presence:
    """What a look for the files of changes has found."""

    count: int = 0  # of the files that should be there
    missing: tuple[str, ...] = ()  # the paths of those that are not


def look_for_files(store: TableStore, changes: Iterable[Change]) -> Presence:
    """Look for the files that changes add."""
    if not store.options.value(CHECK_FILES):
        return Presence()
    paths = list(_new_paths(store, changes))
    looks = (partial(_is_there, store.storage, path) for path in paths)
    if store.storage.traits.is_remote:
        found: Iterable[bool] = ask_each(looks, store.storage.traits.requests_at_once)
    else:
        found = parallel_map(
            lambda look: look(), looks, workers=1 if len(paths) <= _FEW else _WORKERS
        )
    missing = (path for path, is_there in zip(paths, found, strict=True) if not is_there)
    return Presence(len(paths), tuple(missing))


def check_present(store: TableStore, found: Presence, *, has_gaps: bool) -> None:
    """Refuse changes that would add files that do not exist.

    Args:
        store: The table.
        found: What a look for the files has found.
        has_gaps: Whether snapshots since the files were written have expired, so nobody can tell
            whether they were committed before.

    Raises:
        FilesMissing: files are missing; it names the first few.
        TableNotFound: the whole table is gone.
    """
    if found.missing:
        present_schema(store)  # "the table is gone" explains more than a missing file
        raise _missing(found.missing, found.count, has_gaps=has_gaps)


def _is_there(storage: Storage, path: str) -> bool:
    try:
        storage.size(path)  # of files alone, which is one request less than a look for either kind
    except FileNotFound:
        return False
    return True


def _new_paths(store: TableStore, changes: Iterable[Change]) -> Iterator[str]:
    for change in changes:
        new = change.new_names
        for entry in change.added:
            if entry.file.file_name in new:
                yield store.data_file_path(entry.partition, entry.bucket, entry.file)
        for entry in change.changelog:
            yield store.data_file_path(entry.partition, entry.bucket, entry.file)
        for index in change.index_added:
            yield store.index_file_path(index.partition, index.bucket, index.index_file)


def _missing(missing: Sequence[str], count: int, *, has_gaps: bool) -> FilesMissing:
    shown = ", ".join(missing[:_SHOWN]) + (", ..." if len(missing) > _SHOWN else "")
    remedy = "write the data again with a new writer"
    if has_gaps:
        remedy = (
            "look for the rows in the table first: the snapshots since they were written have "
            f"expired, and with them any trace of a commit; if the rows are not there, {remedy}"
        )
    return FilesMissing(
        ConflictReason.FILES_MISSING,
        f"{len(missing)} of {count} are gone: {shown}",
        f"nothing was published; {remedy}",
    )

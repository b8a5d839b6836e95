"""Are the files of a change there? A snapshot that names a missing file breaks every later read.

Each file is looked up by itself, so the cost depends only on what was written, not on what else is
in the folders.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from emberlake.base.parallel import parallel_map
from emberlake.commit.change import Change
from emberlake.commit.resolve import present_schema
from emberlake.errors import ConflictReason, FilesMissing
from emberlake.options import CHECK_FILES
from emberlake.store.table_store import TableStore

# On a disk, threads cost more than they gain for this few lookups; object stores are slow.
_FEW: Final = 4
_WORKERS: Final = 16
_SHOWN: Final = 3


def check_present(store: TableStore, changes: Iterable[Change], *, has_gaps: bool) -> None:
    """Refuse changes that would add files that do not exist.

    Args:
        store: The table.
        changes: What is to be committed.
        has_gaps: Whether snapshots since the files were written have expired, so nobody can tell
            whether they were committed before.

    Raises:
        FilesMissing: files are missing; it names the first few.
        TableNotFound: the whole table is gone.
    """
    if not store.options.value(CHECK_FILES):
        return
    paths = list(_new_paths(store, changes))
    workers = 1 if len(paths) <= _FEW else _WORKERS
    found = parallel_map(store.storage.exists, paths, workers=workers)
    missing = [path for path, is_there in zip(paths, found, strict=True) if not is_there]
    if missing:
        present_schema(store)  # "the table is gone" explains more than a missing file
        raise _missing(missing, len(paths), has_gaps=has_gaps)


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

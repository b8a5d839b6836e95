"""Files that nothing refers to, left behind by failed writes, rollbacks and lost processes.

Spec: "Rollback, branch, orphan cleaning". Files that are old enough are listed first, then those
that anything refers to are taken out, so a commit in between is seen. Nothing is deleted unless
every snapshot, tag and changelog of every branch could be read.

On object stores a lost process also leaves uploads, whose parts no listing shows.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final

from emberlake.base.html import (
    html_box,
    html_details,
    html_facts,
    html_note,
    html_table,
    html_title,
)
from emberlake.base.parallel import parallel_map
from emberlake.base.texts import size_text
from emberlake.base.times import to_millis
from emberlake.errors import (
    CredentialsExpired,
    EmberlakeWarning,
    InvalidInput,
    StorageError,
    Unsupported,
)
from emberlake.io.storage import FileInfo, Upload
from emberlake.maintenance.deletion import Deletion, Progress
from emberlake.maintenance.holders import find_named, load_holders, load_metadata
from emberlake.maintenance.orphans_listing import files_of_stale_branches, list_files
from emberlake.store.table_store import TableStore

_DAY_MS: Final = 86_400_000
_SHOWN: Final = 20  # paths in a notebook


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class OrphanResult:
    """The orphans that were deleted, or would be."""

    paths: tuple[str, ...] = ()
    bytes: int = 0
    upload_paths: tuple[str, ...] = ()  # files whose unfinished upload was ended
    dry_run: bool = False

    @property
    def uploads(self) -> int:
        """How many unfinished uploads were ended, or would be."""
        return len(self.upload_paths)

    def __repr__(self) -> str:
        first = f" (first: {self.paths[0]})" if self.paths else ""
        return (
            f"OrphanResult(paths={len(self.paths)}{first}, bytes={self.bytes}, "
            f"uploads={self.uploads}, dry_run={self.dry_run})"
        )

    def _repr_html_(self) -> str:
        facts: dict[str, object] = {
            "files": len(self.paths),
            "size": size_text(self.bytes),
            "unfinished uploads": self.uploads,
        }
        done = "would be deleted" if self.dry_run else "deleted"
        shown = html_table(("path",), [(path,) for path in self.paths[:_SHOWN]])
        left = len(self.paths) - _SHOWN
        note = html_note(f"and {left:,} more; they are in paths") if left > 0 else ""
        listing = html_details("files", shown, note) if self.paths else ""
        return html_box(html_title("Orphan files", done), html_facts(facts), listing)


def remove_orphan_files(
    store: TableStore,
    *,
    older_than: datetime | int | None = None,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> OrphanResult:
    """Delete files that nothing refers to and that are older than a moment, by default a day ago.

    Uploads into the table's folder that began before it are ended.

    Raises:
        InvalidInput: the moment is in the future.
        InvalidState: something that refers to files cannot be read; nothing was deleted.
    """
    limit = age_limit(store, older_than)
    orphans = find_orphans(store, older_than_ms=limit)
    uploads = _find_uploads(store, limit)
    paths = tuple(info.path for info in orphans)
    if not dry_run:
        _delete(store, paths, progress)
        store.storage.end_uploads(uploads)
    return OrphanResult(
        paths=paths,
        bytes=sum(info.size for info in orphans),
        upload_paths=tuple(upload.path for upload in uploads),
        dry_run=dry_run,
    )


def _find_uploads(store: TableStore, older_than_ms: int) -> list[Upload]:
    """The uploads into the table's folder that began before a time.

    If they cannot be listed, a warning says so, and orphan files are still removed.
    """
    root = store.layout.root
    found: list[Upload] = []
    try:
        # One by one: a store may fail after its first page.
        for upload in store.storage.unfinished_uploads(root):
            found.append(upload)  # noqa: PERF402
    except CredentialsExpired:
        raise
    except (StorageError, Unsupported) as error:
        if isinstance(error, StorageError) and not error.had_no_effect:
            raise
        how = "listed only in part" if found else "not searched for"
        warnings.warn(
            f"unfinished uploads into {root} were {how}: {error}", EmberlakeWarning, stacklevel=4
        )
    old = (upload for upload in found if upload.begun_ms < older_than_ms)
    return sorted(old, key=lambda upload: (upload.path, upload.begun_ms))


def _delete(store: TableStore, paths: Sequence[str], progress: Progress | None) -> None:
    deletion = Deletion(store.storage, len(paths), progress)
    of_branches = files_of_stale_branches(store, paths)
    others = set(paths).difference(*of_branches.values())
    deletion.delete(path for path in paths if path in others)
    for name, files in of_branches.items():
        store.branches.delete(name)  # the marker hides the branch until all of it is gone
        for _ in files:
            deletion.count()


def age_limit(store: TableStore, older_than: datetime | int | None) -> int:
    """Files modified before this time may be orphans; others may still be in use by a writer."""
    now = store.env.now_ms()
    if older_than is None:
        return now - _DAY_MS
    limit = to_millis(older_than)
    if limit > now:
        raise InvalidInput(
            f"older_than is in the future ({limit} > {now} ms): files that are being written now "
            "would be taken for orphans; give a moment before the oldest write that is running"
        )
    return limit


def find_orphans(store: TableStore, *, older_than_ms: int) -> list[FileInfo]:
    """The files of a table that are older than a time and that nothing refers to."""
    listing = list_files(store, older_than_ms)
    if not listing.shared and not listing.stray:
        return []
    holders = load_holders(store)
    load = partial(load_metadata, store)
    metadata = [*parallel_map(load, holders, workers=store.readers)]
    candidates = {info.name for info in listing.shared}
    used = {name for found in metadata for name in found.file_names}
    used |= find_named(store, metadata, candidates - used)
    orphans = [info for info in listing.shared if info.name not in used]
    return sorted([*listing.stray, *orphans], key=lambda info: info.path)

"""Check a table: read every file of one snapshot and compare it with its metadata.

Unless a snapshot is named, the metadata of all other snapshots and of tags is read too. Their files
are looked up but not read.

Nothing is changed, and problems are reported, not raised. Data files are read batch by batch.
Memory holds the entries of one snapshot and a few numbers for every other.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import Final

import numpy as np

from emberlake.base.parallel import parallel_map
from emberlake.errors import InvalidState, SnapshotNotFound, TagNotFound
from emberlake.expressions.query_auth import seeing_all
from emberlake.maintenance.check_files import check_data_file, check_index_file, check_levels
from emberlake.maintenance.check_metadata import MetadataCheck, State
from emberlake.maintenance.check_report import (
    DAMAGE,
    CheckReport,
    Finding,
    Problem,
    ProblemKind,
    damage,
    total_of,
)
from emberlake.maintenance.check_row_ids import check_row_ids
from emberlake.maintenance.holders import own_part
from emberlake.maintenance.orphans import age_limit, find_orphans
from emberlake.spec.manifest import ManifestEntry
from emberlake.spec.snapshot import Snapshot
from emberlake.store.table_store import TableStore

__all__ = ["CheckReport", "Problem", "ProblemKind", "check_table"]

_FILES_AT_ONCE: Final = 1000

Progress = Callable[[int, int], None]


def check_table(
    store: TableStore,
    *,
    snapshot_id: int | None = None,
    read_data: bool = True,
    progress: Progress | None = None,
) -> CheckReport:
    """Check the data of a snapshot; by default of the latest, and the metadata of all others.

    Raises:
        SnapshotNotFound: there is no snapshot with that id.
    """
    store = seeing_all(store, "checked")
    metadata = MetadataCheck(store)
    if snapshot_id is None:
        snapshots = _load_all(store, metadata)
    else:
        snapshots = _load_one(store, metadata, snapshot_id)
    newest = snapshots.get(store.layout.snapshot(_newest_id(store, snapshot_id)))
    findings: list[Finding] = []
    seen: set[str] = set()
    if newest is not None:
        state = metadata.load_state(newest)
        findings.append(Finding(tuple(check_levels(store, state.live))))
        ids = check_row_ids(store, newest, state.live, state.index_entries)
        findings.append(Finding(tuple(ids)))
        findings += _check_files(store, state, read_data=read_data, progress=progress)
        seen |= _names_of(state)
    before: Snapshot | None = None
    for path, snapshot in snapshots.items():
        metadata.check(path, snapshot)
        is_next = before is not None and metadata.check_follows(path, before, snapshot)
        findings += _look_for_files(store, metadata.load_needed(snapshot, is_next=is_next), seen)
        before = snapshot
    if snapshot_id is None:
        findings.append(Finding(tuple(_unreferenced(store))))
    count = len({snapshot.id for snapshot in snapshots.values()})  # tags hold copies of some
    return total_of([metadata.finding(), *findings], snapshots=count)


def _load_all(store: TableStore, metadata: MetadataCheck) -> dict[str, Snapshot]:
    """Snapshots and tags by path; one that cannot be read is a problem."""
    snapshots, tags = store.snapshots, store.tags
    found: dict[str, Snapshot] = {}
    for snapshot_id in snapshots.list_ids():
        path = store.layout.snapshot(snapshot_id)
        # It is not a problem if one has expired since it was listed.
        with suppress(SnapshotNotFound), metadata.reporting(path):
            found[path] = own_part(store, store.layout, snapshots.load(snapshot_id))
    for name in tags.names():
        path = store.layout.tag(name)
        with suppress(TagNotFound), metadata.reporting(path):
            found[path] = own_part(store, store.layout, tags.load(name), is_tag=True)
    return found


def _load_one(store: TableStore, metadata: MetadataCheck, snapshot_id: int) -> dict[str, Snapshot]:
    path = store.layout.snapshot(snapshot_id)
    found: dict[str, Snapshot] = {}
    with metadata.reporting(path):
        found[path] = own_part(store, store.layout, store.snapshots.load(snapshot_id))
    return found


def _newest_id(store: TableStore, snapshot_id: int | None) -> int:
    """The snapshot whose data is checked."""
    return snapshot_id or max(store.snapshots.list_ids(), default=0)


def _check_files(
    store: TableStore, state: State, *, read_data: bool, progress: Progress | None
) -> Iterator[Finding]:
    entries = state.live
    total = len(entries) + len(state.index_entries)

    def files() -> Iterator[ManifestEntry]:
        # A few at a time: as values they take more memory than as columns.
        for start in range(0, len(entries), _FILES_AT_ONCE):
            yield from entries.slice(start, min(start + _FILES_AT_ONCE, len(entries))).entries()

    row_counts = _row_counts(state) if state.index_entries else {}
    findings = chain(
        parallel_map(lambda entry: check_data_file(store, entry, read_data=read_data), files()),
        parallel_map(lambda e: check_index_file(store, e, row_counts), state.index_entries),
    )
    for done, finding in enumerate(findings, 1):
        if progress is not None:
            progress(done, total)
        yield finding


def _look_for_files(store: TableStore, state: State, seen: set[str]) -> Iterator[Finding]:
    """Look up files of other snapshots and of changelogs, without reading their rows."""
    is_new = [name not in seen for name in state.live.file_name.to_pylist()]
    entries = state.live.take(np.array(is_new, bool)).entries()
    indexes = [entry for entry in state.index_entries if entry.index_file.file_name not in seen]
    seen |= _names_of(state)
    for finding in chain(
        parallel_map(lambda entry: check_data_file(store, entry, read_data=False), entries),
        parallel_map(lambda entry: check_index_file(store, entry, None), indexes),
    ):
        yield replace(finding, rows=0)


def _names_of(state: State) -> set[str]:
    return {
        *state.live.file_name.to_pylist(),
        *(entry.index_file.file_name for entry in state.index_entries),
    }


def _row_counts(state: State) -> dict[tuple[bytes, int, str], int]:
    live = state.live
    places = zip(
        live.partition_codes.tolist(), live.bucket.tolist(), live.file_name.to_pylist(), strict=True
    )
    return {
        (live.partitions[code], bucket, name): count
        for (code, bucket, name), count in zip(places, live.row_count.tolist(), strict=True)
    }


def _unreferenced(store: TableStore) -> Iterator[Problem]:
    """Files that nothing refers to and that are too old to belong to a running write."""
    try:
        orphans = find_orphans(store, older_than_ms=age_limit(store, None))
    except InvalidState as error:
        # Those of this branch are reported already; nothing else looks into the others.
        cause = error.__cause__
        if isinstance(cause, DAMAGE):
            yield damage(store.layout.root, cause)
    except DAMAGE as error:
        yield damage(store.layout.root, error)
    else:
        for info in orphans:
            detail = f"nothing refers to it ({info.size} bytes); remove_orphan_files deletes it"
            yield Problem(ProblemKind.UNREFERENCED, info.path, detail)

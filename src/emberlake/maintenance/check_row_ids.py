"""Check row ids: every row has one, no two rows have the same, files side by side fit together."""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow.compute as pc

from emberlake.errors import CorruptFile
from emberlake.maintenance.check_report import Problem, ProblemKind
from emberlake.spec.file_groups import group_files, is_dedicated
from emberlake.spec.manifest import IndexManifestEntry, ManifestEntry
from emberlake.spec.row_tracking import ROW_ID
from emberlake.spec.snapshot import Snapshot
from emberlake.store.entries import ManifestEntries
from emberlake.store.table_store import TableStore


def check_row_ids(
    store: TableStore,
    snapshot: Snapshot,
    live: ManifestEntries,
    index: Sequence[IndexManifestEntry] = (),
) -> Iterator[Problem]:
    """Check the row ids of a snapshot from its metadata.

    Args:
        store: The table.
        snapshot: The snapshot.
        live: Its data files.
        index: Its index files.
    """
    if not store.schema.profile.tracks_rows or not len(live):
        return
    counted = live.take(pc.is_valid(live.first_row_id).to_numpy(zero_copy_only=False))
    if len(counted) < len(live):
        yield from _check_stored(store, live)
    if not len(counted):
        return
    yield from _check_given(store, counted, snapshot.next_row_id or 0)
    if store.schema.profile.evolves_data:
        yield from _check_groups(store, counted, index)
    else:
        yield from _check_apart(store, counted)


def _check_stored(store: TableStore, live: ManifestEntries) -> Iterator[Problem]:
    lacking = live.take(pc.is_null(live.first_row_id).to_numpy(zero_copy_only=False))
    for entry in lacking.entries():
        if ROW_ID not in (entry.file.write_cols or ()):
            detail = "it neither stores the ids of its rows nor says where they begin"
            yield Problem(ProblemKind.INCONSISTENT, _path(store, entry), detail)


def _check_given(
    store: TableStore, counted: ManifestEntries, next_row_id: int
) -> Iterator[Problem]:
    ends = counted.first_row_id.to_numpy() + counted.row_count
    for entry, end in zip(
        counted.take(ends > next_row_id).entries(), ends[ends > next_row_id], strict=True
    ):
        detail = f"it has row id {end - 1}, but the snapshot gives {next_row_id} to the next row"
        yield Problem(ProblemKind.INCONSISTENT, _path(store, entry), detail)


def _check_apart(store: TableStore, counted: ManifestEntries) -> Iterator[Problem]:
    """The files must have no id in common."""
    first = counted.first_row_id.to_numpy()
    order = np.argsort(first, kind="stable")
    ends = (first + counted.row_count)[order]
    reached = np.maximum.accumulate(ends)
    clashes = order[1:][first[order][1:] < reached[:-1]]
    for entry in counted.take(clashes).entries():
        detail = f"other files have row ids from {entry.file.first_row_id} on as well"
        yield Problem(ProblemKind.OVERLAPPING, _path(store, entry), detail)


def _check_groups(
    store: TableStore, counted: ManifestEntries, index: Sequence[IndexManifestEntry]
) -> Iterator[Problem]:
    anchors: set[tuple[bytes, str]] = set()
    whole: list[ManifestEntry] = []  # one file of every group
    for code, partition in enumerate(counted.partitions):
        entries = counted.take(counted.partition_codes == code).entries()
        try:
            groups = group_files([entry.file for entry in entries])
        except CorruptFile as error:
            yield Problem(ProblemKind.OVERLAPPING, error.path, error.problem)
            continue
        by_name = {entry.file.file_name: entry for entry in entries}
        for group in groups:
            anchors.add((partition, group.anchor.file_name))
            whole.append(by_name[group.anchor.file_name])
    if whole:  # groups of two partitions must not share ids either
        yield from _check_apart(store, ManifestEntries.from_entries(whole))
    known = set(counted.file_name.to_pylist())
    for found in index:
        for vector in found.index_file.deletion_vectors or ():
            name = vector.data_file_name
            if name in known and (found.partition, name) not in anchors and not is_dedicated(name):
                path = store.index_file_path(found.partition, found.bucket, found.index_file)
                detail = f"it deletes rows of {name}, which is not the oldest file of these rows"
                yield Problem(ProblemKind.INCONSISTENT, path, detail)


def _path(store: TableStore, entry: ManifestEntry) -> str:
    return store.data_file_path(entry.partition, entry.bucket, entry.file)

"""From a table and a request to splits: the one place that knows the order of the steps."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from emberlake.errors import CorruptFile, SnapshotNotFound
from emberlake.predicates import Predicate, columns_of
from emberlake.scan.files import (
    FilePlan,
    Funnel,
    delta_manifests_of,
    live_entries,
    manifests_of,
    plan_files,
)
from emberlake.scan.splits import (
    DataSplit,
    DeletionFile,
    index_deletion_files,
    limit_splits,
    pack_splits,
)
from emberlake.scan.travel import Between, between, check_scan_options, is_incremental, travel
from emberlake.spec.binary_row import CorruptRow
from emberlake.spec.manifest import ManifestFile
from emberlake.spec.snapshot import CommitKind, Snapshot
from emberlake.store.entries import ManifestEntries
from emberlake.store.table_store import TableStore


@dataclass(frozen=True, slots=True)
class ScanPlan:
    """The splits of a read, the snapshot they are of, and what pruning left out."""

    snapshot: Snapshot | None
    splits: tuple[DataSplit, ...]
    funnel: Funnel


def plan_scan(store: TableStore, predicate: Predicate | None, limit: int | None) -> ScanPlan:
    """Plan a batch read of a table as its options ask for it."""
    check_scan_options(store.options)
    try:
        if is_incremental(store.options):
            return _plan_between(store, between(store), predicate, limit)
        return _plan_snapshot(store, travel(store), predicate, limit)
    except CorruptRow as error:
        raise CorruptFile(
            store.layout.manifest_folder, f"a row in it cannot be decoded: {error}"
        ) from error


def _plan_snapshot(
    store: TableStore, snapshot: Snapshot | None, predicate: Predicate | None, limit: int | None
) -> ScanPlan:
    if snapshot is None:
        return ScanPlan(None, (), Funnel())
    plan = plan_files(store, manifests_of(store, snapshot), predicate)
    return _finish(store, snapshot, plan, predicate, limit)


def load_deletion_files(
    store: TableStore, snapshot: Snapshot
) -> dict[tuple[bytes, int, str], DeletionFile]:
    """The deletion vectors of a snapshot."""
    if snapshot.index_manifest is None:
        return {}
    return index_deletion_files(store.manifests.read_index(snapshot.index_manifest))


def _finish(
    store: TableStore,
    snapshot: Snapshot,
    plan: FilePlan,
    predicate: Predicate | None,
    limit: int | None,
    *,
    with_deletions: bool = True,
) -> ScanPlan:
    needs_index = with_deletions and len(plan.entries) > 0
    splits: Sequence[DataSplit] = pack_splits(
        plan,
        snapshot.id,
        store.options,
        predicate=predicate,
        deletion_files=load_deletion_files(store, snapshot) if needs_index else None,
    )
    on_partitions = predicate is None or columns_of(predicate) <= set(store.schema.partition_keys)
    if limit is not None and on_partitions:
        splits = limit_splits(splits, limit)
    return ScanPlan(snapshot, tuple(splits), plan.funnel)


def _plan_between(
    store: TableStore, ends: Between, predicate: Predicate | None, limit: int | None
) -> ScanPlan:
    if ends.is_empty or ends.end is None:
        return ScanPlan(ends.end, (), Funnel())
    if ends.is_diff:
        plan = _plan_diff(store, ends.start, ends.end, predicate)
        return _finish(store, ends.end, plan, predicate, limit)
    plan = plan_files(store, _delta_manifests(store, ends.start, ends.end), predicate)
    # The changes are the files as they were added; rows that were deleted later are among them.
    return _finish(store, ends.end, plan, predicate, limit, with_deletions=False)


def _delta_manifests(
    store: TableStore, start: Snapshot | None, end: Snapshot
) -> list[ManifestFile]:
    """The manifests of the appends after the start, up to and with the end."""
    first = start.id + 1 if start else store.snapshots.earliest_id() or 1
    manifests: list[ManifestFile] = []
    for snapshot_id in range(first, end.id + 1):
        try:
            snapshot = store.snapshots.load(snapshot_id)
        except SnapshotNotFound as error:
            raise SnapshotNotFound(
                f"incremental read from {first - 1} to {end.id}: snapshot {snapshot_id} has "
                "expired; start at a later one"
            ) from error
        if snapshot.commit_kind is CommitKind.APPEND:
            manifests.extend(delta_manifests_of(store, snapshot))
    return manifests


def _plan_diff(
    store: TableStore, start: Snapshot | None, end: Snapshot, predicate: Predicate | None
) -> FilePlan:
    """Files that only the end state has; for append tables that is what was added."""
    plan = plan_files(store, manifests_of(store, end), predicate)
    if start is None:
        return plan
    before = set(_names(live_entries(store, start)))
    is_new = np.array([name not in before for name in _names(plan.entries)], bool)
    return FilePlan(plan.entries.take(is_new), plan.is_exact[is_new], plan.funnel)


def _names(entries: ManifestEntries) -> Iterator[tuple[bytes, int, str]]:
    columns = (entries.partition, entries.bucket, entries.file_name)
    return zip(*(column.tolist() for column in columns), strict=True)

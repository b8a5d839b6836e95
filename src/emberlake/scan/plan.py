"""From a table and a request to splits: the one place that knows the order of the steps."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from emberlake.errors import SnapshotNotFound, Unsupported
from emberlake.options import INCREMENTAL_SCAN_MODE
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
from emberlake.spec.manifest import FileKind, ManifestFile
from emberlake.spec.snapshot import CommitKind, Snapshot
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
    if is_incremental(store.options):
        return _plan_between(store, between(store), predicate, limit)
    snapshot = travel(store)
    if snapshot is None:
        return ScanPlan(None, (), Funnel())
    plan = plan_files(store, manifests_of(store, snapshot), predicate)
    deletion_files = load_deletion_files(store, snapshot) if len(plan.entries) else {}
    return _finish(store, snapshot, plan, deletion_files, predicate, limit)


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
    deletion_files: dict[tuple[bytes, int, str], DeletionFile],
    predicate: Predicate | None,
    limit: int | None,
) -> ScanPlan:
    splits: Sequence[DataSplit] = pack_splits(
        plan, snapshot.id, store.options, predicate=predicate, deletion_files=deletion_files
    )
    on_partitions = predicate is None or columns_of(predicate) <= set(store.schema.partition_keys)
    if limit is not None and on_partitions:
        splits = limit_splits(splits, limit)
    return ScanPlan(snapshot, tuple(splits), plan.funnel)


def _plan_between(
    store: TableStore, ends: Between, predicate: Predicate | None, limit: int | None
) -> ScanPlan:
    mode = store.options.value(INCREMENTAL_SCAN_MODE)
    if mode not in ("auto", "delta", "diff"):
        raise Unsupported(f"incremental-between-scan-mode={mode} is not supported for this table")
    is_diff = mode == "diff" or (mode == "auto" and ends.is_diff)
    if is_diff:
        plan = _plan_diff(store, ends, predicate)
    else:
        plan = plan_files(store, _delta_manifests(store, ends), predicate)
        added = plan.entries.kind == int(FileKind.ADD)
        plan = FilePlan(plan.entries.take(added), plan.is_exact[added], plan.funnel)
    return _finish(store, ends.end, plan, {}, predicate, limit)


def _delta_manifests(store: TableStore, ends: Between) -> list[ManifestFile]:
    """The manifests of the appends after the start, up to and with the end."""
    first = ends.start.id + 1 if ends.start else store.snapshots.earliest_id() or 1
    manifests: list[ManifestFile] = []
    for snapshot_id in range(first, ends.end.id + 1):
        try:
            snapshot = store.snapshots.load(snapshot_id)
        except SnapshotNotFound as error:
            raise SnapshotNotFound(
                f"incremental read from {first - 1} to {ends.end.id}: snapshot {snapshot_id} has "
                "expired; start at a later one"
            ) from error
        if snapshot.commit_kind is CommitKind.APPEND:
            manifests.extend(delta_manifests_of(store, snapshot))
    return manifests


def _plan_diff(store: TableStore, ends: Between, predicate: Predicate | None) -> FilePlan:
    """Files that only the end state has; for append tables that is what was added."""
    plan = plan_files(store, manifests_of(store, ends.end), predicate)
    if ends.start is None:
        return plan
    before = {
        (entry.partition, entry.bucket, entry.file.file_name)
        for entry in live_entries(store, ends.start).entries()
    }
    keep = np.array(
        [
            (entry.partition, entry.bucket, entry.file.file_name) not in before
            for entry in plan.entries.entries()
        ],
        bool,
    )
    return FilePlan(plan.entries.take(keep), plan.is_exact[keep], plan.funnel)

"""Turn a request for a table into splits: the one place that knows the order of the steps."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from emberlake.errors import EmberlakeError, SnapshotNotFound, Unsupported
from emberlake.predicates import Predicate, columns_of
from emberlake.scan.files import (
    FilePlan,
    Funnel,
    changelog_manifests_of,
    conjuncts_on,
    delta_manifests_of,
    live_entries,
    manifests_of,
    plan_files,
)
from emberlake.scan.key_files import (
    DeletionFiles,
    Visibility,
    batch_visibility,
    bucket_files,
    last_level_visibility,
    pack_change_splits,
    pack_key_splits,
    plan_key_changes,
    plan_key_files,
    split_of,
)
from emberlake.scan.row_ids import narrow_to_ids, refuse_partial_rows
from emberlake.scan.share import Share, take_share
from emberlake.scan.splits import (
    DataSplit,
    DeletionFile,
    index_deletion_files,
    limit_splits,
    pack_splits,
)
from emberlake.scan.travel import (
    Between,
    BetweenMode,
    between,
    check_scan_options,
    is_incremental,
    travel,
    travel_options,
)
from emberlake.spec.manifest import ManifestFile
from emberlake.spec.snapshot import CommitKind, Snapshot
from emberlake.store.entries import EMPTY, ManifestEntries
from emberlake.store.table_store import TableStore


@dataclass(frozen=True, slots=True)
class ScanPlan:
    """The splits of a read, their snapshot, and what pruning left out."""

    snapshot: Snapshot | None
    splits: tuple[DataSplit, ...]
    funnel: Funnel


def plan_scan(
    store: TableStore,
    predicate: Predicate | None,
    limit: int | None,
    share: Share | None = None,
) -> ScanPlan:
    """Plan a batch read of a table, or of a share of it, as its options say."""
    stored, limit = _on_stored(store, predicate, limit)
    return _tested_later(_plan_share(store, stored, limit, share), store, predicate)


def _on_stored(
    store: TableStore, predicate: Predicate | None, limit: int | None
) -> tuple[Predicate | None, int | None]:
    """What files can be skipped by, and whether a few are enough, under the rules of the store."""
    waits = store.rules.on_shown(predicate) is not None
    return store.rules.on_stored(predicate), None if waits else limit


def _tested_later(plan: ScanPlan, store: TableStore, predicate: Predicate | None) -> ScanPlan:
    """The plan. If rows are tested again as they are shown, no file is known to match whole."""
    if store.rules.on_shown(predicate) is None:
        return plan
    return replace(
        plan, splits=tuple(replace(s, is_exact=(False,) * len(s.is_exact)) for s in plan.splits)
    )


def _plan_share(
    store: TableStore, predicate: Predicate | None, limit: int | None, share: Share | None
) -> ScanPlan:
    if share is None:
        return _plan_now(store, predicate, limit)
    plan = _plan_now(store, predicate, None)
    splits = take_share(
        plan.splits,
        share,
        is_keyed=store.schema.profile.has_keys,
        by_file=store.schema.profile.hides_level_0,
    )
    if plan.snapshot is None:
        return plan
    return _limited(store, plan.snapshot, splits, plan.funnel, predicate, limit)


def _plan_now(store: TableStore, predicate: Predicate | None, limit: int | None) -> ScanPlan:
    """Plan what a batch read would read now.

    On object stores the latest snapshot is looked for when a table is opened. When it is planned
    for the first time, manifests are fetched while the store is asked whether it still is.
    """
    guess = store.unread_latest()
    if guess is None or travel_options(store.options):
        return _plan_found(store, find_target(store), predicate, limit)
    check_scan_options(store.options)
    is_latest = store.begin_check(guess)
    plan = None
    with suppress(EmberlakeError):  # a newer snapshot may be intact; if not, this fails again below
        store.fetch_lists(guess)
        plan = _plan_found(store, guess, predicate, limit)
    if is_latest() and plan is not None:
        return plan
    latest = store.snapshots.latest()
    store.fetch_lists(latest)
    return _plan_found(store, latest, predicate, limit)


def find_target(store: TableStore) -> Snapshot | Between | None:
    """What a batch read would read now, as the options of the table say."""
    check_scan_options(store.options)
    return between(store) if is_incremental(store.options) else travel(store)


def plan_target(
    store: TableStore,
    target: Snapshot | Between | None,
    predicate: Predicate | None,
    limit: int | None,
) -> ScanPlan:
    """Plan a batch read of a target that was found before, whatever was committed since."""
    stored, limit = _on_stored(store, predicate, limit)
    return _tested_later(_plan_found(store, target, stored, limit), store, predicate)


def _plan_found(
    store: TableStore,
    target: Snapshot | Between | None,
    predicate: Predicate | None,
    limit: int | None,
) -> ScanPlan:
    with store.decoding_rows():
        if isinstance(target, Between):
            return _plan_between(store, target, predicate, limit)
        return _plan_snapshot(store, target, predicate, limit)


def _plan_snapshot(
    store: TableStore, snapshot: Snapshot | None, predicate: Predicate | None, limit: int | None
) -> ScanPlan:
    if snapshot is None:
        return ScanPlan(None, (), Funnel())
    if store.schema.profile.has_keys:
        return plan_key_snapshot(
            store, snapshot, predicate, limit, is_visible=batch_visibility(store.schema.profile)
        )
    plan = plan_files(store, manifests_of(store, snapshot), predicate)
    return _finish(store, snapshot, plan, predicate, limit)


def plan_key_snapshot(
    store: TableStore,
    snapshot: Snapshot,
    predicate: Predicate | None,
    limit: int | None,
    *,
    is_visible: Visibility,
) -> ScanPlan:
    """Plan a read of the whole state of a primary-key table."""
    found = plan_key_files(store, manifests_of(store, snapshot), predicate, is_visible)
    splits = pack_key_splits(
        found,
        snapshot.id,
        store.schema,
        predicate=predicate,
        deletion_files=load_deletion_files(store, snapshot) if found.buckets else {},
    )
    return _limited(store, snapshot, splits, found.plan.funnel, predicate, limit)


def plan_last_level(store: TableStore, snapshot: Snapshot | None) -> ScanPlan:
    """Plan a read of only those rows of a primary-key table that need no merging."""
    if snapshot is None:
        return ScanPlan(None, (), Funnel())
    visible = last_level_visibility(store.schema.profile)
    predicate = store.rules.on_stored(None)
    with store.decoding_rows():
        return plan_key_snapshot(store, snapshot, predicate, None, is_visible=visible)


def plan_append_files(
    store: TableStore,
    snapshot: Snapshot,
    manifests: Sequence[ManifestFile],
    predicate: Predicate | None,
    *,
    with_deletions: bool = True,
) -> ScanPlan:
    """Plan a read of the files of some manifests of an append table."""
    plan = plan_files(store, manifests, predicate)
    return _finish(store, snapshot, plan, predicate, None, with_deletions=with_deletions)


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
    splits = pack_splits(
        plan,
        snapshot.id,
        store.options,
        predicate=predicate,
        deletion_files=load_deletion_files(store, snapshot) if needs_index else None,
        is_grouped=store.schema.profile.evolves_data,
    )
    splits = narrow_to_ids(splits, predicate) if store.schema.profile.tracks_rows else splits
    return _limited(store, snapshot, splits, plan.funnel, predicate, limit)


def _limited(
    store: TableStore,
    snapshot: Snapshot,
    splits: Sequence[DataSplit],
    funnel: Funnel,
    predicate: Predicate | None,
    limit: int | None,
) -> ScanPlan:
    on_partitions = predicate is None or columns_of(predicate) <= set(store.schema.partition_keys)
    if limit is not None and on_partitions:
        splits = limit_splits(splits, limit)
    return ScanPlan(snapshot, tuple(splits), funnel)


# --- between two snapshots ------------------------------------------------------------------------


def _plan_between(
    store: TableStore, ends: Between, predicate: Predicate | None, limit: int | None
) -> ScanPlan:
    if ends.is_empty or ends.end is None:
        return ScanPlan(ends.end, (), Funnel())
    is_keyed = store.schema.profile.has_keys
    if ends.mode is BetweenMode.DIFF:
        if is_keyed:
            return _plan_key_diff(store, ends.start, ends.end, predicate)
        plan = _plan_diff(store, ends.start, ends.end, predicate)
        return _finish(store, ends.end, plan, predicate, limit)
    manifests = _change_manifests(store, ends.start, ends.end, ends.mode)
    if is_keyed:
        return plan_changes(store, ends.end, manifests, predicate)
    plan = plan_files(store, manifests, predicate)
    refuse_partial_rows(store, plan.entries, ends.start)
    # The changes are the files as they were added, including rows that were deleted later.
    return _finish(store, ends.end, plan, predicate, limit, with_deletions=False)


def plan_changes(
    store: TableStore,
    snapshot: Snapshot,
    manifests: Sequence[ManifestFile],
    predicate: Predicate | None,
) -> ScanPlan:
    """Plan a read of changes of a primary-key table, as they were written."""
    plan = plan_key_changes(store, manifests, predicate)
    splits = pack_change_splits(plan, snapshot.id, predicate=predicate)
    return ScanPlan(snapshot, tuple(splits), plan.funnel)


def _change_manifests(
    store: TableStore, start: Snapshot | None, end: Snapshot, mode: BetweenMode
) -> list[ManifestFile]:
    """The manifests of the changes after the start, up to and including the end."""
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
        if mode is BetweenMode.CHANGELOG:
            if snapshot.commit_kind is not CommitKind.OVERWRITE:
                manifests.extend(changelog_manifests_of(store, snapshot))
        elif snapshot.commit_kind is CommitKind.APPEND:
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
    refuse_partial_rows(store, plan.entries.take(is_new), start)
    return FilePlan(plan.entries.take(is_new), plan.is_exact[is_new], plan.funnel)


def _names(entries: ManifestEntries) -> Iterator[tuple[bytes, int, str]]:
    columns = (entries.partition, entries.bucket, entries.file_name)
    return zip(*(column.tolist() for column in columns), strict=True)


def _plan_key_diff(
    store: TableStore, start: Snapshot | None, end: Snapshot, predicate: Predicate | None
) -> ScanPlan:
    """Every bucket that differs between the two states."""
    # A filter on values must see both states of a row: only a filter on the key may skip files.
    whole_key = (*store.schema.partition_keys, *store.schema.primary_keys)
    on_key = conjuncts_on(whole_key, predicate)
    after = _bucket_splits(store, end, on_key)
    before = {} if start is None else _bucket_splits(store, start, on_key)
    splits = []
    for address in dict.fromkeys((*after, *before)):
        new, old = after.get(address), before.get(address)
        if new is None or old is None or not _is_same_state(new, old):
            splits.append(_compared(address, new, old, end.id, predicate))
    return ScanPlan(end, tuple(splits), Funnel())


def _bucket_splits(
    store: TableStore, snapshot: Snapshot, predicate: Predicate | None
) -> dict[tuple[bytes, int], DataSplit]:
    """The files of every bucket, in one split each."""
    is_visible = batch_visibility(store.schema.profile)
    plan = plan_key_files(store, manifests_of(store, snapshot), predicate, is_visible).plan
    deletion_files: DeletionFiles = load_deletion_files(store, snapshot)
    splits = (
        split_of(
            plan,
            files,
            snapshot.id,
            predicate=predicate,
            deletion_files=deletion_files,
            raw_convertible=False,
        )
        for files in bucket_files(plan.entries)
    )
    return {(split.partition, split.bucket): split for split in splits}


def _is_same_state(new: DataSplit, old: DataSplit) -> bool:
    is_same = set(_names(new.entries)) == set(_names(old.entries))
    return is_same and new.deletion_files == old.deletion_files


def _compared(
    address: tuple[bytes, int],
    new: DataSplit | None,
    old: DataSplit | None,
    snapshot_id: int,
    predicate: Predicate | None,
) -> DataSplit:
    if new is not None and old is not None:
        counts = {int(s.entries.total_buckets[0]) for s in (new, old)}
        if len(counts) > 1:
            raise Unsupported(
                f"the table had {sorted(counts)} buckets in a partition at the two ends of the "
                "incremental read: states with different numbers of buckets cannot be compared"
            )
    partition, bucket = address
    nothing = DataSplit(snapshot_id, partition, bucket, EMPTY, None, ())
    state = replace(new or nothing, predicate=predicate, raw_convertible=False)
    state = replace(state, is_exact=(False,) * len(state.entries))
    return replace(state, before=old or nothing)

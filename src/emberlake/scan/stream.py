"""Follow a table: its state at a start, then the changes of every snapshot. Spec: "Streaming"."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from emberlake.errors import (
    FileNotFound,
    InvalidOption,
    InvalidState,
    SnapshotNotFound,
    Unsupported,
)
from emberlake.options import (
    CONSUMER_ID,
    POSTPONE_BUCKET,
    SCAN_MODE,
    SCAN_SNAPSHOT_ID,
    SCAN_TIMESTAMP,
    SCAN_TIMESTAMP_MILLIS,
    STREAM_APPEND_OVERWRITES,
    STREAM_OVERWRITES,
    ChangelogProducer,
    TableOptions,
)
from emberlake.predicates import Predicate
from emberlake.scan.files import (
    Mask,
    changelog_manifests_of,
    delta_manifests_of,
    manifests_of,
    plan_files,
)
from emberlake.scan.key_files import (
    Visibility,
    bucket_files,
    pack_change_splits,
    plan_key_changes,
)
from emberlake.scan.plan import ScanPlan, plan_append_files, plan_changes, plan_key_snapshot
from emberlake.scan.row_ids import refuse_partial_rows
from emberlake.scan.travel import start_millis, travel_options
from emberlake.spec.profile import BucketMode, TableProfile
from emberlake.spec.snapshot import CommitKind, Snapshot, decode_snapshot
from emberlake.store.consumers import ConsumerStore
from emberlake.store.entries import ManifestEntries
from emberlake.store.table_store import TableStore

_STARTS: Final = ("latest-full", "latest", "from-snapshot", "from-snapshot-full", "from-timestamp")


@dataclass(frozen=True, slots=True)
class StreamStart:
    """Where a stream begins: with the whole state of a snapshot, or with its changes."""

    snapshot_id: int
    is_full: bool


@dataclass
class StreamScan:
    """Plans a table's state, then its changes one snapshot at a time; keeps its position.

    The position is not stored anywhere: save ``checkpoint()`` and ``restore()`` it, or read as a
    consumer and call ``notify_checkpoint_complete`` when the rows are safe.
    """

    store: TableStore
    predicate: Predicate | None = None
    is_wanted: Callable[[int], bool] | None = None  # by bucket; None: all
    consumer_id: str | None = None
    _next: int | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self.consumer_id = self.consumer_id or self.store.options.value(CONSUMER_ID)
        self._start = _start_mode(self.store.options)
        if self.store.schema.profile.has_keys and self.store.options.value(STREAM_OVERWRITES):
            raise Unsupported(f"{STREAM_OVERWRITES.key} is not implemented for primary-key tables")

    def checkpoint(self) -> int | None:
        """The snapshot that is planned next; None before the start."""
        return self._next

    def restore(self, next_snapshot: int | None) -> None:
        """Continue from a checkpoint; None starts over."""
        self._next = next_snapshot

    def notify_checkpoint_complete(self, next_snapshot: int | None) -> None:
        """Remember a checkpoint under the consumer id, if there is one."""
        if self.consumer_id is not None and next_snapshot is not None:
            self._consumers.save(self.consumer_id, next_snapshot)

    def plan(self) -> ScanPlan | None:
        """The next rows to read, or None if there is nothing new yet.

        Raises:
            SnapshotNotFound: the next snapshot has expired before it was read.
        """
        if self._next is None:
            start = self.start()
            if start is None:
                return None
            self._next = start.snapshot_id
            if start.is_full:
                self._next += 1
                return self._chosen(self.plan_state(self.store.snapshots.load(start.snapshot_id)))
        while True:
            snapshot = self.find(self._next)
            if snapshot is None:
                return None
            self._next += 1
            plan = self.plan_changes(snapshot)
            if plan is not None and plan.splits:
                return self._chosen(plan)

    # --- the start --------------------------------------------------------------------------------

    def start(self) -> StreamStart | None:
        """Where to begin: where the consumer left off, otherwise as the options say.

        None if it begins with the state of a table, but the table has no snapshot yet.
        """
        snapshots, options = self.store.snapshots, self.store.options
        if self.consumer_id is not None:
            known = self._consumers.next_snapshot(self.consumer_id)
            if known is not None:
                return StreamStart(known, is_full=False)
        if self._start == "from-snapshot":
            wanted = options.value(SCAN_SNAPSHOT_ID) or 1
            return StreamStart(max(wanted, snapshots.earliest_id() or 1), is_full=False)
        if self._start == "from-timestamp":
            earlier = snapshots.at_or_before(start_millis(options) - 1)
            first = earlier.id + 1 if earlier else snapshots.earliest_id() or 1
            return StreamStart(first, is_full=False)
        if self._start == "from-snapshot-full":
            wanted = options.value(SCAN_SNAPSHOT_ID) or 1
            return StreamStart(snapshots.load(wanted).id, is_full=True)
        latest = snapshots.latest_id()
        if self._start == "latest":
            return StreamStart((latest or 0) + 1, is_full=False)
        return None if latest is None else StreamStart(latest, is_full=True)

    def plan_state(self, snapshot: Snapshot) -> ScanPlan:
        """All rows of a snapshot whose changes do not come later."""
        store, predicate = self.store, self._on_stored
        if not store.schema.profile.has_keys:
            return plan_append_files(store, snapshot, manifests_of(store, snapshot), predicate)
        visible = _start_visibility(store.schema.profile)
        plan = plan_key_snapshot(store, snapshot, predicate, None, is_visible=visible)
        profile = store.schema.profile
        if profile.bucket_mode is not BucketMode.POSTPONED or profile.has_changelog:
            return plan
        # Rows that wait for their bucket are in no later change: they come as they were written.
        waiting = plan_key_changes(store, manifests_of(store, snapshot), predicate)
        splits = pack_change_splits(waiting, snapshot.id, predicate=predicate)
        postponed = tuple(split for split in splits if split.bucket == POSTPONE_BUCKET)
        return replace(plan, splits=(*plan.splits, *postponed))

    # --- what follows -----------------------------------------------------------------------------

    def find(self, snapshot_id: int) -> Snapshot | None:
        """A snapshot that exists, or whose changelog outlives it; None before it is committed."""
        store = self.store
        if store.snapshots.exists(snapshot_id):
            return store.snapshots.load(snapshot_id)
        path = f"{store.layout.changelog_folder}/changelog-{snapshot_id}"
        try:
            return decode_snapshot(store.storage.read(path), path)
        except FileNotFound:
            pass
        latest, earliest = store.snapshots.latest_id(), store.snapshots.earliest_id()
        if earliest is not None and snapshot_id < earliest:
            raise SnapshotNotFound(
                f"the next snapshot to read is {snapshot_id}, but the table's first one is "
                f"{earliest}: it has expired; read with a consumer-id, which keeps snapshots, or "
                "start over"
            )
        if latest is not None and snapshot_id > latest + 1:
            raise InvalidState(
                f"the next snapshot to read is {snapshot_id}, but the table's last one is "
                f"{latest}: it was rolled back or created again; start over"
            )
        return None

    def plan_changes(self, snapshot: Snapshot) -> ScanPlan | None:
        """The changes of a snapshot; None if it changes no rows of the stream."""
        store, predicate = self.store, self._on_stored
        if not store.schema.profile.has_keys:
            if not _is_append(snapshot, store.options):
                return None
            manifests = delta_manifests_of(store, snapshot)
            if store.schema.profile.evolves_data:
                before = next(store.snapshots.find_each([snapshot.id - 1]))
                refuse_partial_rows(store, plan_files(store, manifests, None).entries, before)
            return plan_append_files(store, snapshot, manifests, predicate, with_deletions=False)
        if store.schema.profile.has_changelog:
            changelog = changelog_manifests_of(store, snapshot)
            return plan_changes(store, snapshot, changelog, predicate)
        if snapshot.commit_kind is not CommitKind.APPEND:
            return None
        return plan_changes(store, snapshot, delta_manifests_of(store, snapshot), predicate)

    def _chosen(self, plan: ScanPlan) -> ScanPlan:
        if self.is_wanted is None:
            return plan
        return replace(plan, splits=tuple(s for s in plan.splits if self.is_wanted(s.bucket)))

    @property
    def _on_stored(self) -> Predicate | None:
        """What files can be skipped by."""
        return self.store.rules.on_stored(self.predicate)

    @property
    def _consumers(self) -> ConsumerStore:
        return ConsumerStore(self.store.storage, self.store.layout)


def _start_mode(options: TableOptions) -> str:
    """Where to start: as ``scan.mode`` or a time travel option says."""
    given = travel_options(options)
    mode = options.value(SCAN_MODE)
    if mode == "default":
        by_time = options.is_set(SCAN_TIMESTAMP_MILLIS) or options.is_set(SCAN_TIMESTAMP)
        by_id = options.is_set(SCAN_SNAPSHOT_ID)
        mode = "from-timestamp" if by_time else "from-snapshot" if by_id else "latest-full"
    mode = "latest-full" if mode == "full" else mode
    allowed = {
        "from-snapshot": (SCAN_SNAPSHOT_ID.key,),
        "from-snapshot-full": (SCAN_SNAPSHOT_ID.key,),
        "from-timestamp": (SCAN_TIMESTAMP_MILLIS.key, SCAN_TIMESTAMP.key),
    }.get(mode, ())
    if mode not in _STARTS:
        raise Unsupported(f"a stream cannot start with scan.mode={mode}; use {', '.join(_STARTS)}")
    if allowed and not given:
        raise InvalidOption(f"scan.mode={mode} needs {' or '.join(allowed)}")
    others = [key for key in given if key not in allowed]
    if others:
        raise Unsupported(
            f"a stream that starts with scan.mode={mode} cannot use {', '.join(others)}"
        )
    return mode


def _is_append(snapshot: Snapshot, options: TableOptions) -> bool:
    if snapshot.commit_kind is CommitKind.OVERWRITE:
        return options.value(STREAM_APPEND_OVERWRITES)
    return snapshot.commit_kind is CommitKind.APPEND


def _start_visibility(profile: TableProfile) -> Visibility:
    """What a stream starts with: the rows whose changes are not in a later changelog."""
    match profile.changelog_producer:
        case ChangelogProducer.LOOKUP:
            return lambda entries: (entries.bucket >= 0) & (entries.level > 0)
        case ChangelogProducer.FULL_COMPACTION:
            return _are_on_the_highest_level
        case _:
            return lambda entries: entries.bucket >= 0


def _are_on_the_highest_level(entries: ManifestEntries) -> Mask:
    """Which files are on the highest level of their bucket that has files, but not on level 0."""
    found = np.zeros(len(entries), bool)
    for files in bucket_files(entries):
        levels = entries.level[files]
        found[files] = (levels > 0) & (levels == levels.max())
    return found & (entries.bucket >= 0)

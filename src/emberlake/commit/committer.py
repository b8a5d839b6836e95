"""One atomic commit: a change becomes the next snapshot, or nothing at all.

    Change ──► attempt on the latest snapshot ──► manifests written ──► put-if-absent snapshot-N
                   ▲                                                      │
                   │      Lost: another writer took N                     │
                   ├── back off, check what they did, rebase ◄────────────┤
                   │      Unknown: the storage failed while publishing    │
                   └── look for our own snapshot ◄────────────────────────┤
                                                                          ▼
                                                     Committed: hints, callbacks, result

Files are only deleted when it is certain that no snapshot refers to them. Spec: "Commit protocol".
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, assert_never

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from emberlake._version import __version__
from emberlake.commit.change import NOTHING_COMMITTED, Change, CommitResult
from emberlake.commit.conflicts import (
    check_already_committed,
    check_bucket_counts,
    check_change_itself,
    check_deleted_files,
)
from emberlake.commit.manifest_merge import Merged, merge_manifests
from emberlake.errors import (
    AlreadyCommitted,
    CommitConflict,
    CommitUnknown,
    ConflictReason,
    EmberlakeError,
    SnapshotNotFound,
    StorageError,
)
from emberlake.options import (
    COMMIT_MAX_RETRIES,
    COMMIT_MAX_WAIT_MS,
    COMMIT_MIN_WAIT_MS,
    COMMIT_TIMEOUT_MS,
)
from emberlake.scan.files import (
    delta_manifests_of,
    in_partitions,
    live_entries,
    manifests_of,
)
from emberlake.spec.manifest import (
    FileKind,
    IndexManifestEntry,
    ManifestEntry,
    ManifestFile,
)
from emberlake.spec.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind, Snapshot
from emberlake.store.entries import ManifestEntries
from emberlake.store.table_store import TableStore

_WRITER_VERSION: Final = f"emberlake-{__version__}"
_JITTER: Final = 0.2


@dataclass(frozen=True)
class CommitCallbackContext:
    """What a callback learns of a commit that has happened."""

    snapshot: Snapshot
    commit_entries: tuple[ManifestEntry, ...]
    identifier: int


CommitCallback = Callable[[CommitCallbackContext], None]


@dataclass(frozen=True, slots=True)
class _Committed:
    snapshot: Snapshot


@dataclass(frozen=True, slots=True)
class _Lost:
    winner_id: int


@dataclass(frozen=True, slots=True)
class _Unknown:
    snapshot: Snapshot
    error: StorageError


_Outcome = _Committed | _Lost | _Unknown


@dataclass
class _Attempts:
    """What is kept from one attempt to the next."""

    checked_up_to: int
    deadline_ms: int | None
    number: int = 0
    uuids: set[str] = field(default_factory=set)
    delta: tuple[tuple[ManifestEntry, ...], tuple[ManifestFile, ...]] | None = None
    merged: Merged | None = None
    leftovers: set[str] = field(default_factory=set)  # paths no snapshot refers to if we fail
    may_have_landed: bool = False  # then nothing is deleted


class Committer:
    """Makes changes visible, one snapshot at a time, as one commit user."""

    def __init__(
        self, store: TableStore, commit_user: str, callbacks: Sequence[CommitCallback] = ()
    ) -> None:
        self._store = store
        self._commit_user = commit_user
        self._callbacks = callbacks

    def commit(
        self,
        change: Change,
        identifier: int = BATCH_COMMIT_IDENTIFIER,
        *,
        properties: Mapping[str, str] | None = None,
    ) -> CommitResult:
        """Publish a change, retrying while others win.

        Raises:
            AlreadyCommitted: the files of this change are in the table.
            CommitConflict: what others did makes this change wrong, or they won every attempt.
            CommitUnknown: the storage failed and it cannot be found out whether it took effect.
        """
        if change.is_empty:
            return NOTHING_COMMITTED
        _raise(check_change_itself((*change.added, *change.deleted)))
        timeout = self._store.options.value(COMMIT_TIMEOUT_MS)
        attempts = _Attempts(
            checked_up_to=change.base_snapshot_id,
            deadline_ms=None if timeout is None else self._store.env.now_ms() + timeout,
        )
        try:
            return self._until_committed(change, identifier, dict(properties or {}), attempts)
        except EmberlakeError:
            if not attempts.may_have_landed:
                self._delete(attempts.leftovers)
            raise

    def check_not_committed(self, change: Change) -> None:
        """Refuse with ``AlreadyCommitted`` when files of the change are in the table."""
        attempts = _Attempts(checked_up_to=change.base_snapshot_id, deadline_ms=None)
        self._check_since(change, self._store.snapshots.latest(), None, attempts)

    def newest_identifier(self) -> int | None:
        """The identifier of the newest snapshot of this commit user, if there is one."""
        latest = self._store.snapshots.latest_id()
        if latest is None:
            return None
        for snapshot in self._store.snapshots.iter_back(latest):
            if snapshot.commit_user == self._commit_user:
                return snapshot.commit_identifier
        return None

    def _until_committed(
        self, change: Change, identifier: int, properties: dict[str, str], attempts: _Attempts
    ) -> CommitResult:
        while True:
            latest = self._store.snapshots.latest()
            ours = self._check_since(change, latest, identifier, attempts)
            if ours is not None:
                return self._finish(ours, change, identifier, attempts)
            entries = self._delta_entries(change, latest)
            if not entries and not change.index_added and not change.index_deleted:
                return NOTHING_COMMITTED  # an overwrite of nothing by nothing
            outcome = self._attempt(change, entries, latest, identifier, properties, attempts)
            match outcome:
                case _Committed(snapshot):
                    return self._finish(snapshot, change, identifier, attempts)
                case _Lost():
                    self._back_off(attempts)
                case _Unknown():
                    self._settle(outcome, attempts)
                case _:
                    assert_never(outcome)

    # -- what others did -------------------------------------------------------------------

    def _check_since(
        self,
        change: Change,
        latest: Snapshot | None,
        identifier: int | None,
        attempts: _Attempts,
    ) -> Snapshot | None:
        """Check the change against every snapshot not yet seen; finds our own if it landed."""
        if latest is None:
            return None
        names = {entry.file.file_name for entry in change.added}
        for snapshot_id in range(attempts.checked_up_to + 1, latest.id + 1):
            try:
                snapshot = self._store.snapshots.load(snapshot_id)
            except SnapshotNotFound:
                # Expired: what it added is in the latest state, or was deleted since.
                self._check_live(names, latest)
                continue
            if snapshot.uuid is not None and snapshot.uuid in attempts.uuids:
                return snapshot
            self._check_identifier(identifier, snapshot)
            self._check_snapshot(change, names, snapshot)
        attempts.checked_up_to = latest.id
        return None

    def _check_identifier(self, identifier: int | None, snapshot: Snapshot) -> None:
        if identifier in (None, BATCH_COMMIT_IDENTIFIER):
            return
        if (snapshot.commit_user, snapshot.commit_identifier) == (self._commit_user, identifier):
            assert identifier is not None
            raise already_committed(self._commit_user, identifier, snapshot.commit_identifier)

    def _check_snapshot(self, change: Change, names: set[str], snapshot: Snapshot) -> None:
        if not names:
            return
        theirs = self._store.manifests.read_manifests(delta_manifests_of(self._store, snapshot))
        relevant = _relevant(theirs, names, change).entries()
        _raise(check_already_committed(names, relevant, snapshot_id=snapshot.id))
        if change.kind is not CommitKind.OVERWRITE:
            _raise(check_bucket_counts(change.added, relevant, snapshot_id=snapshot.id))

    def _check_live(self, names: set[str], latest: Snapshot) -> None:
        live = live_entries(self._store, latest)
        present = live.take(_is_named(live, names)).entries()
        _raise(check_already_committed(names, present, snapshot_id=latest.id))

    def _delta_entries(self, change: Change, latest: Snapshot | None) -> tuple[ManifestEntry, ...]:
        """The entries of the delta manifest on top of ``latest``; deletes come first."""
        deleted = change.deleted
        if latest is not None and change.replaces is not None:
            live = live_entries(self._store, latest, partitions=change.replaces)
            deleted = tuple(_as_deletes(live.entries()))
        elif deleted:
            touched = frozenset(entry.partition for entry in deleted)
            current = live_entries(self._store, latest, partitions=touched) if latest else None
            live_now = current.entries() if current is not None else []
            _raise(check_deleted_files(deleted, live_now, snapshot_id=latest.id if latest else 0))
        return (*deleted, *change.added)

    # -- one attempt -----------------------------------------------------------------------

    def _attempt(
        self,
        change: Change,
        entries: tuple[ManifestEntry, ...],
        latest: Snapshot | None,
        identifier: int,
        properties: dict[str, str],
        attempts: _Attempts,
    ) -> _Outcome:
        store = self._store
        base = self._base_manifests(latest, attempts)
        delta = self._delta_manifests(entries, attempts)
        base_name, base_size = self._write_list(base, attempts)
        delta_name, delta_size = self._write_list(delta, attempts)
        index_manifest = self._index_manifest(change, latest, attempts)
        changelog = self._changelog(change, attempts)
        now = store.env.now_ms()
        schema = store.schemas.latest() or store.schema
        delta_rows = sum(entry.kind.sign * entry.file.row_count for entry in entries)
        snapshot = Snapshot(
            id=latest.id + 1 if latest else 1,
            uuid=store.env.new_id(),
            schema_id=schema.id,
            base_manifest_list=base_name,
            base_manifest_list_size=base_size,
            delta_manifest_list=delta_name,
            delta_manifest_list_size=delta_size,
            index_manifest=index_manifest,
            commit_user=self._commit_user,
            commit_identifier=identifier,
            commit_kind=change.kind,
            # Time travel searches by time, so time must not run backwards.
            time_millis=max(now, latest.time_millis) if latest else now,
            total_record_count=(latest.total_record_count if latest else 0) + delta_rows,
            delta_record_count=delta_rows,
            watermark=latest.watermark if latest else None,
            statistics=latest.statistics if latest and latest.schema_id == schema.id else None,
            properties=properties,
            next_row_id=(latest.next_row_id if latest else None) or 0,
            writer_version=_WRITER_VERSION,
            **changelog,
        )
        return self._publish(snapshot, attempts)

    def _publish(self, snapshot: Snapshot, attempts: _Attempts) -> _Outcome:
        assert snapshot.uuid is not None
        attempts.uuids.add(snapshot.uuid)
        try:
            won = self._store.snapshots.publish(snapshot)
        except StorageError as error:
            attempts.may_have_landed = True
            return _Unknown(snapshot, error)
        return _Committed(snapshot) if won else _Lost(snapshot.id)

    def _base_manifests(
        self, latest: Snapshot | None, attempts: _Attempts
    ) -> tuple[ManifestFile, ...]:
        if latest is None:
            return ()
        manifests = manifests_of(self._store, latest)
        if attempts.merged is None:
            attempts.merged = merge_manifests(self._store, manifests)
            attempts.leftovers.update(self._manifest_paths(attempts.merged.written))
        # A winner may have merged the same manifests; then ours are left out and deleted later.
        return attempts.merged.apply(manifests) or manifests

    def _delta_manifests(
        self, entries: tuple[ManifestEntry, ...], attempts: _Attempts
    ) -> tuple[ManifestFile, ...]:
        if attempts.delta is None or attempts.delta[0] != entries:
            written = self._store.manifests.write_manifests(entries, self._store.partition_types)
            attempts.leftovers.update(self._manifest_paths(written))
            attempts.delta = (entries, written)
        return attempts.delta[1]

    def _write_list(
        self, manifests: Sequence[ManifestFile], attempts: _Attempts
    ) -> tuple[str, int]:
        name, size = self._store.manifests.write_list(manifests)
        attempts.leftovers.add(self._store.layout.manifest(name))
        return name, size

    def _changelog(self, change: Change, attempts: _Attempts) -> dict[str, Any]:
        if not change.changelog:
            return {}
        manifests = self._store.manifests.write_manifests(
            change.changelog, self._store.partition_types
        )
        attempts.leftovers.update(self._manifest_paths(manifests))
        name, size = self._write_list(manifests, attempts)
        return {
            "changelog_manifest_list": name,
            "changelog_manifest_list_size": size,
            "changelog_record_count": sum(entry.file.row_count for entry in change.changelog),
        }

    def _index_manifest(
        self, change: Change, latest: Snapshot | None, attempts: _Attempts
    ) -> str | None:
        inherited = latest.index_manifest if latest else None
        before = self._store.manifests.read_index(inherited) if inherited else ()
        after = _next_index(before, change)
        if after == before:
            return inherited
        if not after:
            return None
        name = self._store.manifests.write_index(after)
        attempts.leftovers.add(self._store.layout.manifest(name))
        return name

    def _manifest_paths(self, manifests: Sequence[ManifestFile]) -> list[str]:
        return [self._store.layout.manifest(m.file_name) for m in manifests]

    # -- afterwards ------------------------------------------------------------------------

    def _back_off(self, attempts: _Attempts) -> None:
        options, env = self._store.options, self._store.env
        attempts.number += 1
        retries = options.value(COMMIT_MAX_RETRIES)
        if attempts.number > retries:
            raise CommitConflict(
                ConflictReason.RETRIES_EXHAUSTED,
                f"lost {attempts.number} races for the next snapshot",
                "commit again, or raise commit.max-retries and commit.max-retry-wait",
            )
        if attempts.deadline_ms is not None and env.now_ms() > attempts.deadline_ms:
            raise CommitConflict(
                ConflictReason.RETRIES_EXHAUSTED,
                f"lost {attempts.number} races until commit.timeout passed",
                "commit again, or raise commit.timeout",
            )
        wait = min(
            options.value(COMMIT_MIN_WAIT_MS) * 2 ** (attempts.number - 1),
            options.value(COMMIT_MAX_WAIT_MS),
        )
        env.sleep_ms(wait * (1 + _JITTER * env.chance()))

    def _settle(self, unknown: _Unknown, attempts: _Attempts) -> None:
        """After an ambiguous failure: see whether the snapshot is there before anything else.

        If it is ours, the next round finds it by its uuid; if it is not there, or somebody
        else's, the next round tries again.
        """
        try:
            self._store.snapshots.load(unknown.snapshot.id)
        except SnapshotNotFound:
            pass
        except EmberlakeError as error:
            raise CommitUnknown(
                f"publishing snapshot {unknown.snapshot.id} failed ({unknown.error}) and looking "
                f"for it failed too ({error}); look for a snapshot of commit user "
                f"{self._commit_user} with uuid {unknown.snapshot.uuid} before committing again"
            ) from unknown.error
        self._back_off_after(unknown, attempts)

    def _back_off_after(self, unknown: _Unknown, attempts: _Attempts) -> None:
        try:
            self._back_off(attempts)
        except CommitConflict as exhausted:
            raise CommitUnknown(
                f"publishing snapshot {unknown.snapshot.id} kept failing: {unknown.error}; look "
                f"for a snapshot of commit user {self._commit_user} before committing again"
            ) from exhausted

    def _finish(
        self, snapshot: Snapshot, change: Change, identifier: int, attempts: _Attempts
    ) -> CommitResult:
        entries = attempts.delta[0] if attempts.delta else (*change.deleted, *change.added)
        if attempts.number:
            self._delete(attempts.leftovers - self._referenced(snapshot))
        self._store.snapshots.write_latest_hint(snapshot.id)
        for callback in self._callbacks:
            callback(CommitCallbackContext(snapshot, entries, identifier))
        added = [entry.file for entry in entries if entry.kind is FileKind.ADD]
        deleted = [entry.file for entry in entries if entry.kind is FileKind.DELETE]
        return CommitResult(
            snapshot_id=snapshot.id,
            rows_added=sum(file.row_count for file in added),
            rows_deleted=sum(file.row_count for file in deleted),
            files_added=len(added),
            files_deleted=len(deleted),
            bytes_added=sum(file.file_size for file in added),
            bytes_deleted=sum(file.file_size for file in deleted),
            retries=attempts.number,
        )

    def _referenced(self, snapshot: Snapshot) -> set[str]:
        """Paths of this commit that the snapshot needs."""
        layout = self._store.layout
        names = {
            snapshot.base_manifest_list,
            snapshot.delta_manifest_list,
            snapshot.changelog_manifest_list,
            snapshot.index_manifest,
        }
        lists = [manifests_of(self._store, snapshot)]
        if snapshot.changelog_manifest_list is not None:
            lists.append(self._store.manifests.read_list(snapshot.changelog_manifest_list))
        names.update(manifest.file_name for manifests in lists for manifest in manifests)
        return {layout.manifest(name) for name in names if name is not None}

    def _delete(self, paths: set[str]) -> None:
        for path in paths:
            self._store.storage.delete(path)


def already_committed(commit_user: str, identifier: int, newest: int) -> AlreadyCommitted:
    """The error for a stream identifier that is in the table."""
    return AlreadyCommitted(
        ConflictReason.ALREADY_COMMITTED,
        f"commit user {commit_user} has committed identifier {newest}, so {identifier} is done",
        "use filter_and_commit to skip what is done, or give an identifier that has not been used",
    )


def _raise(conflict: CommitConflict | None) -> None:
    if conflict is not None:
        raise conflict


def _as_deletes(entries: Sequence[ManifestEntry]) -> list[ManifestEntry]:
    return [
        ManifestEntry(
            kind=FileKind.DELETE,
            partition=entry.partition,
            bucket=entry.bucket,
            total_buckets=entry.total_buckets,
            file=entry.file,
        )
        for entry in entries
    ]


def _next_index(
    before: tuple[IndexManifestEntry, ...], change: Change
) -> tuple[IndexManifestEntry, ...]:
    removed = {(e.partition, e.bucket, e.index_file.file_name) for e in change.index_deleted}
    is_replaced = in_partitions(change.replaces if change.replaces is not None else frozenset())
    kept = tuple(
        entry
        for entry in before
        if (entry.partition, entry.bucket, entry.index_file.file_name) not in removed
        and not is_replaced(entry.partition)
    )
    return (*kept, *change.index_added)


def _is_named(entries: ManifestEntries, names: set[str]) -> npt.NDArray[np.bool_]:
    found = pc.is_in(entries.file_name, value_set=pa.array(sorted(names), pa.string()))
    return np.asarray(found.to_numpy(zero_copy_only=False), bool)


def _relevant(entries: ManifestEntries, names: set[str], change: Change) -> ManifestEntries:
    """Entries that speak of our files or, in bucketed tables, of our partitions."""
    mask = _is_named(entries, names)
    if any(entry.total_buckets > 0 for entry in change.added):
        ours = {entry.partition for entry in change.added}
        in_ours = np.array([p in ours for p in entries.partitions], bool)
        mask |= in_ours[entries.partition_codes]
    return entries.take(mask)

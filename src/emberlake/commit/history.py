"""What others did: every snapshot that a change has not been checked against yet.

Two things are looked for: our own commit (made before by these messages, or by an attempt whose
outcome was not known), and what makes the change wrong on top of what others did.
"""

from collections.abc import Collection

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from emberlake.commit.change import Change
from emberlake.commit.conflicts import check_already_committed, check_bucket_counts
from emberlake.errors import (
    AlreadyCommitted,
    CommitConflict,
    ConflictReason,
    SnapshotNotFound,
)
from emberlake.scan.files import delta_manifests_of, live_entries
from emberlake.spec.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind, Snapshot
from emberlake.store.entries import ManifestEntries
from emberlake.store.table_store import TableStore
from emberlake.wire import BaseSnapshot


class History:
    """Follows the snapshots of a table from where a change's writers left them.

    Args:
        store: The table.
        change: What is to be committed.
        stream: Commit user and identifier, when a repetition is to be recognised by them.
    """

    def __init__(
        self, store: TableStore, change: Change, stream: tuple[str, int] | None = None
    ) -> None:
        self._store = store
        self._change = change
        self._stream = stream
        self._names = change.new_names
        self._next_id: int | None = None  # the first snapshot that was not checked

    def catch_up(self, latest: Snapshot | None, ours: Collection[str] = ()) -> Snapshot | None:
        """Check all snapshots up to ``latest``; the one whose uuid is among ``ours``, if any.

        Raises:
            AlreadyCommitted: the files of the change are, or were, in the table.
            CommitConflict: the change is wrong on top of what others did.
        """
        if latest is None:
            return None
        if self._next_id is None:
            self._next_id = self._first_id(latest)
        for snapshot_id in range(self._next_id, latest.id + 1):
            try:
                snapshot = self._store.snapshots.load(snapshot_id)
            except SnapshotNotFound:
                self._check_live(latest)  # it expired: what it added is live, or deleted later
                continue
            if snapshot.uuid is not None and snapshot.uuid in ours:
                return snapshot
            self._check(snapshot)
        # After a rollback ids are given anew, so the next one may be smaller than before.
        self._next_id = latest.id + 1
        return None

    def _first_id(self, latest: Snapshot) -> int:
        """The first snapshot that can hold a commit of this change."""
        first = min((self._after(base, latest) for base in self._change.bases), default=None)
        if first is None or first > latest.id:
            return latest.id + 1
        earliest = self._store.snapshots.earliest_id() or latest.id
        if first < earliest:
            self._check_live(latest)
        return max(first, earliest)

    def _after(self, base: BaseSnapshot | None, latest: Snapshot) -> int:
        if base is None or base.id > latest.id:
            return 1
        try:
            now = latest if base.id == latest.id else self._store.snapshots.load(base.id)
        except SnapshotNotFound:
            return 1
        # Another snapshot under this id: the table was rolled back, and anything may be after it.
        return base.id + 1 if now.delta_manifest_list == base.delta_manifest_list else 1

    def _check(self, snapshot: Snapshot) -> None:
        if self._stream is not None:
            user, identifier = self._stream
            if snapshot.commit_user == user and self._is_done(snapshot, identifier):
                raise already_committed(user, identifier, snapshot.commit_identifier)
        if not self._names:
            return
        theirs = self._store.manifests.read_manifests(delta_manifests_of(self._store, snapshot))
        relevant = theirs.take(self._speaks_of_us(theirs)).entries()
        _raise(check_already_committed(self._names, relevant, snapshot_id=snapshot.id))
        if self._change.kind is not CommitKind.OVERWRITE:
            added = self._change.added
            _raise(check_bucket_counts(added, relevant, snapshot_id=snapshot.id))

    def _is_done(self, snapshot: Snapshot, identifier: int) -> bool:
        if snapshot.commit_identifier != identifier:
            return snapshot.commit_identifier > identifier
        # What was written and what was compacted are two snapshots with one identifier.
        kinds = (snapshot.commit_kind, self._change.kind)
        return kinds.count(CommitKind.COMPACT) != 1

    def _check_live(self, latest: Snapshot) -> None:
        live = live_entries(self._store, latest)
        present = live.take(_is_named(live, self._names)).entries()
        _raise(check_already_committed(self._names, present, snapshot_id=latest.id))

    def _speaks_of_us(self, entries: ManifestEntries) -> npt.NDArray[np.bool_]:
        """Entries of our files or, in bucketed tables, of our partitions."""
        mask = _is_named(entries, self._names)
        ours = {entry.partition for entry in self._change.added if entry.total_buckets > 0}
        in_ours = np.array([partition in ours for partition in entries.partitions], bool)
        return mask | in_ours[entries.partition_codes] if ours else mask


def newest_identifier(store: TableStore, commit_user: str) -> int | None:
    """The identifier of the newest snapshot of a commit user, if there is one."""
    latest = store.snapshots.latest_id()
    if latest is None:
        return None
    for snapshot in store.snapshots.iter_back(latest):
        if snapshot.commit_user == commit_user:
            return snapshot.commit_identifier
    return None


def already_committed(commit_user: str, identifier: int, newest: int) -> AlreadyCommitted:
    """The error for a stream identifier that is in the table."""
    return AlreadyCommitted(
        ConflictReason.ALREADY_COMMITTED,
        f"commit user {commit_user} has committed identifier {newest}, so {identifier} is done",
        "use filter_and_commit to skip what is done, or give an identifier that has not been used",
    )


def stream_of(commit_user: str, identifier: int) -> tuple[str, int] | None:
    """What recognises a repeated commit; batch commits all have the same identifier."""
    return None if identifier == BATCH_COMMIT_IDENTIFIER else (commit_user, identifier)


def _is_named(entries: ManifestEntries, names: Collection[str]) -> npt.NDArray[np.bool_]:
    found = pc.is_in(entries.file_name, value_set=pa.array(sorted(names), pa.large_string()))
    return np.asarray(found.to_numpy(zero_copy_only=False), bool)


def _raise(conflict: CommitConflict | None) -> None:
    if conflict is not None:
        raise conflict

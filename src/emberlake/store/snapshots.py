"""The snapshot files of a table. Spec: "Snapshot JSON", "Hint files".

A commit becomes visible by creating ``snapshot-N``, which only one commit can do. The hint files
LATEST and EARLIEST save a listing: LATEST counts only if it names the last snapshot, EARLIEST if
its snapshot exists.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from emberlake.errors import CorruptFile, FileNotFound, InvalidState, SnapshotNotFound
from emberlake.io.storage import Storage
from emberlake.spec.layout import SNAPSHOT_PREFIX, TableLayout, parse_numbered
from emberlake.spec.manifest import ManifestEntry
from emberlake.spec.snapshot import Snapshot, decode_snapshot
from emberlake.store.publishing import Snapshots, TableIdentity

_MAX_HINT_BYTES: Final = 32


class SnapshotStore(Snapshots):
    """Finds, loads and publishes the snapshots of one branch of a table, which are files."""

    def __init__(self, storage: Storage, layout: TableLayout) -> None:
        super().__init__(layout)
        self._storage = storage

    def find(self, snapshot_id: int) -> Snapshot | None:
        """The snapshot with that id; None if it was never written or has expired."""
        path = self._layout.snapshot(snapshot_id)
        try:
            raw = self._storage.read(path)
        except FileNotFound:
            return None
        snapshot = decode_snapshot(raw, path)
        if snapshot.id != snapshot_id:
            raise CorruptFile(path, f"it says that it is snapshot {snapshot.id}")
        return snapshot

    def latest_id(self) -> int | None:
        """The id of the newest snapshot; None while nothing was committed."""
        # The hint may be behind (its writer died after publishing) or ahead (a rollback deleted
        # snapshots), so it counts only if it names the last snapshot there is.
        hint = self._read_hint(self._layout.latest_hint)
        if hint is not None and self.exists(hint) and not self.exists(hint + 1):
            return hint
        return max(self.list_ids(), default=None)

    def latest(self) -> Snapshot | None:
        """The newest snapshot; None while nothing was committed."""
        # As latest_id, but the snapshot that the hint names is read without looking for it first.
        hint = self._read_hint(self._layout.latest_hint)
        if hint is not None and not self.exists(hint + 1):
            snapshot = self.find(hint)
            if snapshot is not None:
                return snapshot
        newest = max(self.list_ids(), default=None)
        return None if newest is None else self.load(newest)

    def earliest_id(self) -> int | None:
        """The id of the oldest snapshot; None while nothing was committed."""
        hint = self._read_hint(self._layout.earliest_hint)
        if hint is not None and self.exists(hint):
            return hint
        return min(self.list_ids(), default=None)

    def exists(self, snapshot_id: int) -> bool:
        """Whether there is a snapshot with that id; it is not read."""
        return self._storage.exists(self._layout.snapshot(snapshot_id))

    def list_ids(self) -> tuple[int, ...]:
        """The ids of all snapshots, ascending."""
        found = (
            parse_numbered(info.name, SNAPSHOT_PREFIX)
            for info in self._storage.list(self._layout.snapshot_folder)
        )
        return tuple(sorted(number for number in found if number is not None))

    def publish(
        self,
        snapshot: Snapshot,
        after: Sequence[str] = (),
        *,
        base_uuid: str | None = None,
        entries: Sequence[ManifestEntry] = (),
    ) -> bool:
        """Create the file of the snapshot; False if another commit has the id."""
        del base_uuid, entries  # the id is claimed once, and the files have the rest
        path = self._layout.snapshot(snapshot.id)
        return self._storage.put_if_absent(path, snapshot.encode(), after)

    def roll_back_to(self, target: Snapshot, tag_name: str | None = None) -> None:
        """Delete the snapshots after the target, from the newest backwards.

        If this is interrupted, the table is intact, but at a later snapshot than requested.
        """
        del tag_name  # the snapshot that it keeps is given
        if not self.exists(target.id) and self.publish(target):
            self.write_earliest_hint(target.id)
        latest = self.latest_id()
        if latest is None:
            raise SnapshotNotFound("the table has no snapshot to roll back")
        self.write_latest_hint(target.id)
        for snapshot_id in range(latest, target.id, -1):
            self.delete(snapshot_id)
        # Meanwhile a reader may have repaired the hint from a snapshot that is gone now.
        self.write_latest_hint(target.id)

    def follow(self, history: Sequence[Snapshot]) -> None:
        """Continue with the history of a branch, one snapshot at a time."""
        first, *others = history
        if not self.publish(first) and self.find(first.id) != first:
            # The first snapshot of a branch that began empty differs from that of the table.
            self._storage.put(self._layout.snapshot(first.id), first.encode())
        for snapshot in others:
            if not self.publish(snapshot):
                raise InvalidState(
                    f"somebody committed snapshot {snapshot.id} to the table meanwhile; "
                    "fast-forward again, which undoes that commit"
                )
        self.write_latest_hint(history[-1].id)

    def delete_expired(
        self,
        ids: Sequence[int],
        first_retained: int,
        on_deleted: Callable[[], None] = lambda: None,
    ) -> None:
        """Delete the files of snapshots, one after another."""
        for snapshot_id in ids:
            self.delete(snapshot_id)
            on_deleted()
        self.write_earliest_hint(first_retained)

    def drop(self) -> None:
        """Delete the files of all snapshots, and the hints."""
        files = self._storage.list_all(self._layout.snapshot_folder)
        self._storage.delete_all([info.path for info in files])

    def delete(self, snapshot_id: int) -> None:
        """Delete the file of a snapshot."""
        self._storage.delete(self._layout.snapshot(snapshot_id))

    def write_latest_hint(self, snapshot_id: int) -> None:
        """Save others the search for the latest snapshot."""
        self._storage.put_hint(self._layout.latest_hint, b"%d" % snapshot_id)

    def write_earliest_hint(self, snapshot_id: int) -> None:
        """Save others the search for the earliest snapshot."""
        # Unlike the other hint, this one is trusted as long as its snapshot exists.
        self._storage.put(self._layout.earliest_hint, b"%d" % snapshot_id)

    def _read_hint(self, path: str) -> int | None:
        try:
            text = self._storage.read(path)
        except FileNotFound:
            return None
        is_number = text.strip().isdigit() and len(text) < _MAX_HINT_BYTES
        return int(text) if is_number and int(text) > 0 else None


@dataclass(frozen=True, slots=True)
class FilePublisher:
    """The filesystem: creating the file of a snapshot publishes it."""

    def snapshots(
        self, storage: Storage, layout: TableLayout, identity: TableIdentity
    ) -> Snapshots:
        """The snapshot files of the branch of a table that the layout is for."""
        del identity  # the files say everything
        return SnapshotStore(storage, layout)


FILE_PUBLISHER: Final = FilePublisher()

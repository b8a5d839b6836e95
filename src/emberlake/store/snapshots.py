"""The snapshot files of a table. Spec: "Snapshot JSON", "Hint files".

Publishing ``snapshot-N`` where there is none is what makes a commit visible. The hint files LATEST
and EARLIEST save a listing: the one counts when it names the last snapshot there is, the other when
its snapshot exists.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from emberlake.errors import CorruptFile, FileNotFound, SnapshotNotFound
from emberlake.io.storage import Storage
from emberlake.spec.layout import SNAPSHOT_PREFIX, TableLayout, parse_numbered
from emberlake.spec.snapshot import Snapshot, decode_snapshot

_MAX_HINT_BYTES: Final = 32


class SnapshotStore:
    """Finds, loads and publishes the snapshots of one branch of a table.

    Nothing is remembered: after a rollback the same id may name another snapshot.
    """

    def __init__(self, storage: Storage, layout: TableLayout) -> None:
        self._storage = storage
        self._layout = layout

    def load(self, snapshot_id: int) -> Snapshot:
        """The snapshot of that id.

        Raises:
            SnapshotNotFound: it was never written, or it has expired.
        """
        snapshot = self.find(snapshot_id)
        if snapshot is None:
            raise SnapshotNotFound(
                f"snapshot {snapshot_id} does not exist or has expired: "
                f"no {self._layout.snapshot(snapshot_id)}; {self._describe_range()}"
            )
        return snapshot

    def find(self, snapshot_id: int) -> Snapshot | None:
        """The snapshot of that id; None when it was never written, or has expired."""
        path = self._layout.snapshot(snapshot_id)
        try:
            raw = self._storage.read(path)
        except FileNotFound:
            return None
        snapshot = decode_snapshot(raw, path)
        if snapshot.id != snapshot_id:
            raise CorruptFile(path, f"it says that it is snapshot {snapshot.id}")
        return snapshot

    def latest(self) -> Snapshot | None:
        """The newest snapshot; None while nothing was committed."""
        latest_id = self.latest_id()
        return None if latest_id is None else self.load(latest_id)

    def earliest(self) -> Snapshot | None:
        """The oldest snapshot; None while nothing was committed."""
        for snapshot_id in (self.earliest_id(), *self.list_ids()):
            snapshot = None if snapshot_id is None else self.find(snapshot_id)
            if snapshot is not None:  # else it has expired this moment
                return snapshot
        return None

    def latest_id(self) -> int | None:
        # The hint may be behind (its writer died after publishing) or ahead (a rollback deleted
        # snapshots), so it counts only when it names the last snapshot there is.
        hint = self._read_hint(self._layout.latest_hint)
        if hint is not None and self.exists(hint) and not self.exists(hint + 1):
            return hint
        return max(self.list_ids(), default=None)

    def earliest_id(self) -> int | None:
        hint = self._read_hint(self._layout.earliest_hint)
        if hint is not None and self.exists(hint):
            return hint
        return min(self.list_ids(), default=None)

    def exists(self, snapshot_id: int) -> bool:
        return self._storage.exists(self._layout.snapshot(snapshot_id))

    def list_ids(self) -> tuple[int, ...]:
        """The ids of all snapshots, ascending."""
        found = (
            parse_numbered(info.name, SNAPSHOT_PREFIX)
            for info in self._storage.list(self._layout.snapshot_folder)
        )
        return tuple(sorted(number for number in found if number is not None))

    def iter_back(self, from_id: int) -> Iterator[Snapshot]:
        """Snapshots from that id back to the first one that is missing, newest first."""
        for snapshot_id in range(from_id, 0, -1):
            snapshot = self.find(snapshot_id)
            if snapshot is None:
                return
            yield snapshot

    def at_or_before(self, time_millis: int) -> Snapshot | None:
        """The newest snapshot committed at that time or before; None when all are newer."""
        ids = self.list_ids()
        low, high, best = 0, len(ids) - 1, None
        while low <= high:
            middle = (low + high) // 2
            snapshot = self.find(ids[middle])
            # Expiration takes the oldest first: what vanished since the listing is too old.
            if snapshot is None or snapshot.time_millis <= time_millis:
                best = snapshot or best
                low = middle + 1
            else:
                high = middle - 1
        return best

    def at_watermark(self, watermark: int) -> Snapshot | None:
        """The oldest snapshot with that watermark or a later one; None when there is none."""
        for snapshot_id in self.list_ids():
            snapshot = self.find(snapshot_id)
            reached = None if snapshot is None else snapshot.watermark
            if reached is not None and reached >= watermark:
                return snapshot
        return None

    def publish(self, snapshot: Snapshot, after: Sequence[str] = ()) -> bool:
        """Make the snapshot visible under its id; False when another commit has the id.

        ``after`` names the new files that it refers to.
        """
        path = self._layout.snapshot(snapshot.id)
        return self._storage.put_if_absent(path, snapshot.encode(), after)

    def delete(self, snapshot_id: int) -> None:
        self._storage.delete(self._layout.snapshot(snapshot_id))

    def write_latest_hint(self, snapshot_id: int) -> None:
        self._storage.put_hint(self._layout.latest_hint, b"%d" % snapshot_id)

    def write_earliest_hint(self, snapshot_id: int) -> None:
        # Unlike the other it is trusted as long as it names a snapshot.
        self._storage.put(self._layout.earliest_hint, b"%d" % snapshot_id)

    def _read_hint(self, path: str) -> int | None:
        try:
            text = self._storage.read(path)
        except FileNotFound:
            return None
        is_number = text.strip().isdigit() and len(text) < _MAX_HINT_BYTES
        return int(text) if is_number and int(text) > 0 else None

    def _describe_range(self) -> str:
        ids = self.list_ids()
        return f"there are snapshots {ids[0]} to {ids[-1]}" if ids else "there is no snapshot"

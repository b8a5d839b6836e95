"""The snapshot files of a table. Spec: "Snapshot JSON", "Hint files".

A commit becomes visible by creating ``snapshot-N``, which only one commit can do. The hint files
LATEST and EARLIEST save a listing: LATEST counts only if it names the last snapshot, EARLIEST if
its snapshot exists. On object stores a listing is one request, and so is each look at a hint.
There LATEST counts only in tables with more snapshots than one request lists, and as the first
guess of a process, which is checked before it is used.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Final

from emberlake.base.requests import ask_all, ask_each
from emberlake.errors import CorruptFile, FileNotFound, InvalidState, SnapshotNotFound
from emberlake.io.cache import CACHE, Key, file_key
from emberlake.io.storage import FileInfo, Storage
from emberlake.spec.layout import SNAPSHOT_PREFIX, TableLayout, parse_numbered
from emberlake.spec.manifest import ManifestEntry
from emberlake.spec.snapshot import Snapshot, decode_snapshot
from emberlake.store.metadata_cache import (
    keep_snapshot,
    last_latest,
    listed_key,
    note_latest,
)
from emberlake.store.publishing import Snapshots, TableIdentity

_MAX_HINT_BYTES: Final = 32
_LISTED_AT_ONCE: Final = 1000  # files that a store lists in one request


class SnapshotStore(Snapshots):
    """Finds, loads and publishes the snapshots of one branch of a table, which are files."""

    def __init__(self, storage: Storage, layout: TableLayout) -> None:
        super().__init__(layout)
        self._storage = storage
        self._marks: dict[int, str] = {}  # of the snapshots when they were last listed

    def find(self, snapshot_id: int) -> Snapshot | None:
        """The snapshot with that id; None if it was never written or has expired."""
        path = self._layout.snapshot(snapshot_id)
        try:
            raw, etag = self._storage.read_marked(path)
        except FileNotFound:
            return None
        return self._decode(snapshot_id, raw, etag)

    def find_each(self, ids: Iterable[int]) -> Iterator[Snapshot | None]:
        """The snapshots of some ids, as they are now or were when they were last listed."""
        return ask_each((partial(self._find_listed, i) for i in ids), self._at_once)

    def latest(self) -> Snapshot | None:
        """The newest snapshot; None while nothing was committed."""
        if not self._storage.traits.is_remote:
            return self._latest_by_hint()
        latest_id = self.latest_id()
        if latest_id is None:
            return None
        snapshot = self._find_listed(latest_id) or self.load(latest_id)
        note_latest(self._folder_key, snapshot)
        return snapshot

    def look_ahead(self) -> None:
        """Find a snapshot that probably is the newest, so that ``last_latest`` knows it.

        A store reads a hint, and what it names, faster than it lists a folder. The hint is written
        right after a snapshot, so by now there may be one more.
        """
        hint = self._read_hint(self._layout.latest_hint)
        near = () if hint is None else (hint, hint + 1)
        found = ask_all((partial(self.find, snapshot_id) for snapshot_id in near), self._at_once)
        known = [snapshot for snapshot in found if snapshot is not None]
        if known:
            note_latest(self._folder_key, known[-1])
        else:
            self.latest()

    def last_latest(self) -> Snapshot | None:
        """The newest snapshot as far as is known without asking; by now it may be another."""
        return last_latest(self._folder_key)

    def latest_id(self) -> int | None:
        """The id of the newest snapshot; None while nothing was committed."""
        listed = self._first_listed()
        if listed is not None:
            return max(listed, default=None)
        # The hint may be behind (its writer died after publishing) or ahead (a rollback deleted
        # snapshots), so it counts only if it names the last snapshot there is.
        hint = self._read_hint(self._layout.latest_hint)
        if hint is not None:
            looks = [partial(self.exists, number) for number in (hint, hint + 1)]
            if ask_all(looks, self._at_once) == [True, False]:
                return hint
        return max(self.list_ids(), default=None)

    def _latest_by_hint(self) -> Snapshot | None:
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
        listed = self._first_listed()
        if listed is not None:
            return min(listed, default=None)
        hint = self._read_hint(self._layout.earliest_hint)
        if hint is not None and self.exists(hint):
            return hint
        return min(self.list_ids(), default=None)

    def exists(self, snapshot_id: int) -> bool:
        """Whether there is a snapshot with that id; it is not read."""
        path = self._layout.snapshot(snapshot_id)
        if not self._storage.traits.is_remote:
            return self._storage.exists(path)
        try:
            self._storage.size(path)  # one request: only a file is looked for, no folder
        except FileNotFound:
            return False
        return True

    def list_ids(self) -> tuple[int, ...]:
        """The ids of all snapshots, ascending."""
        return self._note(self._storage.list(self._layout.snapshot_folder))

    @property
    def can_be_overwritten(self) -> bool:
        """Whether other engines can put a snapshot in the place of one that is published."""
        return self._storage.traits.others_overwrite

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
        return self._storage.put_if_absent(path, snapshot.encode(), self._to_wait_for(after))

    def claim(
        self,
        snapshot: Snapshot,
        after: Sequence[str] = (),
        *,
        base_uuid: str | None = None,
        entries: Sequence[ManifestEntry] = (),
    ) -> Snapshot | None:
        """Create the file of the snapshot; returns the one that has the id afterwards."""
        if not self._storage.traits.is_remote:
            return super().claim(snapshot, after, base_uuid=base_uuid, entries=entries)
        path = self._layout.snapshot(snapshot.id)
        try:
            standing = self._storage.put_or_read(path, snapshot.encode(), self._to_wait_for(after))
        except FileNotFound:
            return None
        found = self._decode(snapshot.id, standing.data, standing.etag)
        note_latest(self._folder_key, found)
        return found

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
        """Delete the files of snapshots, one after another, or with one request."""
        if self._storage.traits.is_remote:
            self._storage.delete_all(map(self._layout.snapshot, ids))
        for snapshot_id in ids:
            if not self._storage.traits.is_remote:
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

    def write_first_hint(self) -> None:
        """Save others the search for the earliest snapshot, which is the first one that there was.

        Nobody waits for the disk: a digit cut short is an empty file, and no reader trusts that.
        """
        self._storage.put_hint(self._layout.earliest_hint, b"1")

    @property
    def _at_once(self) -> int:
        return self._storage.traits.requests_at_once

    @property
    def _folder_key(self) -> Key:
        return file_key(self._storage, self._layout.snapshot_folder)

    def _to_wait_for(self, after: Sequence[str]) -> Sequence[str]:
        # An object store has answered that these files are durable; asking again is a trip.
        return () if self._storage.traits.is_remote else after

    def _first_listed(self) -> tuple[int, ...] | None:
        """All ids, if the storage lists them in one request; otherwise None."""
        if not self._storage.traits.is_remote:
            return None
        files = self._storage.list_all(self._layout.snapshot_folder)
        first = list(islice(files, _LISTED_AT_ONCE))
        if len(first) < _LISTED_AT_ONCE:
            return self._note(first)
        self._marks = {}  # those of an earlier listing are out of date
        return None

    def _note(self, files: Iterable[FileInfo]) -> tuple[int, ...]:
        """The ids of listed snapshots, ascending."""
        found = ((parse_numbered(info.name, SNAPSHOT_PREFIX), info.etag) for info in files)
        etags = {number: etag for number, etag in found if number is not None}
        self._marks = {number: etag for number, etag in etags.items() if etag is not None}
        return tuple(sorted(etags))

    def _find_listed(self, snapshot_id: int) -> Snapshot | None:
        """The snapshot of that id, with the bytes that were listed or with newer ones."""
        etag = self._marks.get(snapshot_id)
        if etag is None:
            return self.find(snapshot_id)
        key = listed_key(self._storage, self._layout.snapshot(snapshot_id), etag)
        known: Snapshot | None = CACHE.find(key)
        return known or self.find(snapshot_id)

    def _decode(self, snapshot_id: int, raw: bytes, etag: str | None) -> Snapshot:
        path = self._layout.snapshot(snapshot_id)
        snapshot = decode_snapshot(raw, path)
        if snapshot.id != snapshot_id:
            raise CorruptFile(path, f"it says that it is snapshot {snapshot.id}")
        if etag is not None:
            keep_snapshot(listed_key(self._storage, path, etag), snapshot, len(raw))
        return snapshot

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

    def branch_server(self, identity: TableIdentity) -> None:
        """Branches are files, too."""
        del identity

    def schema_server(self, identity: TableIdentity) -> None:
        """So are schemas."""
        del identity


FILE_PUBLISHER: Final = FilePublisher()

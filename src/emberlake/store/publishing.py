"""Publish the snapshots of a table: the interface between tables and catalogs.

A filesystem publishes a snapshot by creating its file (``emberlake.store.snapshots``). A catalog
server decides which commit wins and writes the file itself. Everything that creates, replaces or
deletes snapshots goes through ``Snapshots``, so that a table works the same with either.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from emberlake.errors import SnapshotNotFound
from emberlake.io.storage import Storage
from emberlake.rest.query_auth import QueryAuth
from emberlake.spec.identifier import Identifier
from emberlake.spec.layout import TableLayout
from emberlake.spec.manifest import ManifestEntry
from emberlake.spec.schema_change import SchemaChange
from emberlake.spec.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class TableIdentity:
    """Which table it is: its name, and its id if the catalog gives tables ids.

    A table that is dropped and created again has the same name but another id.
    """

    identifier: Identifier
    uuid: str | None = None


_NO_WATERMARK: Final = -(2**63)  # what other engines write before the first one


class PublishedSnapshots(ABC):
    """The snapshots of one branch of a table, for reading.

    Nothing is cached: after a rollback the same id may name another snapshot.
    """

    def __init__(self, layout: TableLayout) -> None:
        self._layout = layout

    @abstractmethod
    def find(self, snapshot_id: int) -> Snapshot | None:
        """The snapshot with that id; None if it was never written or has expired."""

    @abstractmethod
    def list_ids(self) -> tuple[int, ...]:
        """The ids of all snapshots, ascending."""

    @abstractmethod
    def latest_id(self) -> int | None:
        """The id of the newest snapshot; None while nothing was committed."""

    @abstractmethod
    def earliest_id(self) -> int | None:
        """The id of the oldest snapshot; None while nothing was committed."""

    def latest(self) -> Snapshot | None:
        """The newest snapshot; None while nothing was committed."""
        latest_id = self.latest_id()
        return None if latest_id is None else self.load(latest_id)

    def earliest(self) -> Snapshot | None:
        """The oldest snapshot; None while nothing was committed."""
        for snapshot_id in (self.earliest_id(), *self.list_ids()):
            snapshot = None if snapshot_id is None else self.find(snapshot_id)
            if snapshot is not None:  # otherwise it has just expired
                return snapshot
        return None

    def find_each(self, ids: Iterable[int]) -> Iterator[Snapshot | None]:
        """The snapshots of some ids, as they are now or were when they were last listed."""
        return map(self.find, ids)

    def last_latest(self) -> Snapshot | None:
        """The newest snapshot as far as is known without asking; by now it may be another."""
        return None

    def exists(self, snapshot_id: int) -> bool:
        """Whether there is a snapshot with that id."""
        return self.find(snapshot_id) is not None

    def load(self, snapshot_id: int) -> Snapshot:
        """The snapshot with that id.

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

    def iter_back(self, from_id: int) -> Iterator[Snapshot]:
        """Snapshots from that id back to the first one that is missing, newest first."""
        for snapshot_id in range(from_id, 0, -1):
            snapshot = self.find(snapshot_id)
            if snapshot is None:
                return
            yield snapshot

    def at_or_before(self, time_millis: int) -> Snapshot | None:
        """The newest snapshot committed at or before that time; None if all are newer."""
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
        """The oldest snapshot with that watermark or a later one; None if there is none."""
        for snapshot_id in self.list_ids():
            snapshot = self.find(snapshot_id)
            reached = None if snapshot is None else snapshot.watermark
            if reached is not None and reached >= watermark:
                return snapshot
        return None

    def at_or_before_watermark(self, watermark: int) -> Snapshot | None:
        """The newest snapshot with that watermark or an earlier one; None if there is none."""
        for snapshot_id in reversed(self.list_ids()):
            snapshot = self.find(snapshot_id)
            reached = None if snapshot is None else snapshot.watermark
            if reached is not None and _NO_WATERMARK < reached <= watermark:
                return snapshot
        return None

    def _describe_range(self) -> str:
        ids = self.list_ids()
        return f"there are snapshots {ids[0]} to {ids[-1]}" if ids else "there is no snapshot"


class Snapshots(PublishedSnapshots):
    """The snapshots of one branch of a table, for publishing and deleting.

    If ``publish`` fails with a ``StorageError``, its effect is unknown, unless the error says that
    it had none.
    """

    @property
    def can_be_overwritten(self) -> bool:
        """Whether other engines can put a snapshot in the place of one that is published."""
        return False

    @abstractmethod
    def publish(
        self,
        snapshot: Snapshot,
        after: Sequence[str] = (),
        *,
        base_uuid: str | None = None,
        entries: Sequence[ManifestEntry] = (),
    ) -> bool:
        """Make the snapshot visible under its id; False if another one has the id.

        Args:
            snapshot: What to publish.
            after: The new files that it refers to, which are durable before it becomes visible.
            base_uuid: The snapshot that it builds on, for publishers that check it.
            entries: The files that it adds and deletes, for publishers that keep statistics.
        """

    def claim(
        self,
        snapshot: Snapshot,
        after: Sequence[str] = (),
        *,
        base_uuid: str | None = None,
        entries: Sequence[ManifestEntry] = (),
    ) -> Snapshot | None:
        """Publish a snapshot; returns the one that has its id afterwards: this one, or another.

        None: another one had the id, and is gone by now.
        """
        if self.publish(snapshot, after, base_uuid=base_uuid, entries=entries):
            return snapshot
        return self.find(snapshot.id)

    @abstractmethod
    def roll_back_to(self, target: Snapshot, tag_name: str | None = None) -> None:
        """Make a snapshot the latest one and drop everything after it.

        Args:
            target: The snapshot; it is created again if it has expired.
            tag_name: The tag that keeps it, if it was found by one.
        """

    @abstractmethod
    def follow(self, history: Sequence[Snapshot]) -> None:
        """Continue with the history of a branch, which replaces the latest snapshot.

        Args:
            history: The snapshots of the branch, from the id of the latest one here or from the
                next.

        Raises:
            InvalidState: somebody committed meanwhile.
        """

    @abstractmethod
    def delete_expired(
        self,
        ids: Sequence[int],
        first_retained: int,
        on_deleted: Callable[[], None] = lambda: None,
    ) -> None:
        """Delete snapshots, the oldest first, so that an interruption leaves no gap.

        Args:
            ids: Which ones, ascending.
            first_retained: The oldest one that stays.
            on_deleted: Called after each deletion.
        """

    @abstractmethod
    def drop(self) -> None:
        """Delete all snapshots, with their branch."""

    @abstractmethod
    def write_latest_hint(self, snapshot_id: int) -> None:
        """Save others the search for the latest snapshot."""


class BranchServer(Protocol):
    """A server that makes, renames and deletes the branches of a table by itself."""

    def list(self) -> list[str]:
        """The names of all branches except the main one, sorted."""

    def create(self, name: str, tag_name: str | None) -> None:
        """Create a branch that starts with the snapshot of a tag, or an empty one."""

    def delete(self, name: str) -> None:
        """Delete a branch."""

    def rename(self, old: str, new: str) -> None:
        """Give a branch another name."""

    def forward(self, name: str) -> None:
        """Give the table the history of a branch."""


class SchemaServer(Protocol):
    """A server that keeps the schema of a table and changes it by itself."""

    def alter(self, changes: Sequence[SchemaChange]) -> None:
        """Make all changes, or none."""


class RowAccess(Protocol):
    """A server that decides who sees which rows of a table: a frozen value that pickles."""

    def ask(self, identifier: Identifier, columns: Sequence[str]) -> QueryAuth:
        """The rules for a read of some columns.

        Raises:
            NoPermission: they may not be read.
        """


class Publisher(Protocol):
    """Publishes the snapshots of a table: a frozen value that pickles.

    A worker that receives it with its table opens the same snapshots.
    """

    def branch_server(self, identity: TableIdentity) -> BranchServer | None:
        """The server that makes the branches of a table; None: its clients do, as files."""

    def schema_server(self, identity: TableIdentity) -> SchemaServer | None:
        """The server that changes the schema of a table; None: its clients do, as files."""

    def snapshots(
        self, storage: Storage, layout: TableLayout, identity: TableIdentity
    ) -> Snapshots:
        """The snapshots of the branch of a table that the layout is for."""

"""A server that publishes snapshots, as REST catalogs do, and a table whose snapshots it has."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from emberlake.errors import InvalidState, StorageError
from emberlake.io import Storage
from emberlake.spec.layout import TableLayout
from emberlake.spec.manifest import ManifestEntry
from emberlake.spec.snapshot import Snapshot
from emberlake.store.publishing import Snapshots, TableIdentity
from emberlake.store.snapshots import SnapshotStore
from emberlake.table import Table
from emberlake.table.table import table_of

_SERVERS: Final[dict[str, "Server"]] = {}  # by address


class Server:
    """Decides who wins, and writes the snapshot files itself, with a storage of its own.

    It knows tables by their id, refuses what was not made on top of its latest snapshot, and keeps
    account of the rows that every commit adds.
    """

    def __init__(self, address: str, storage: Storage, table_uuid: str) -> None:
        self.storage = storage
        self.table_uuid = table_uuid
        self.rows_added: list[int] = []
        self.fail_after_commit = False
        self._lock = threading.Lock()
        _SERVERS[address] = self

    def files(self, layout: TableLayout, uuid: str | None) -> SnapshotStore:
        assert uuid == self.table_uuid, "another table"
        return SnapshotStore(self.storage, layout)

    def commit(
        self,
        files: SnapshotStore,
        snapshot: Snapshot,
        base_uuid: str | None,
        entries: Sequence[ManifestEntry],
    ) -> bool:
        with self._lock:
            latest = files.latest()
            if latest is not None and (latest.id, latest.uuid) != (snapshot.id - 1, base_uuid):
                return False
            assert files.publish(snapshot)
            self.rows_added.append(sum(e.kind.sign * e.file.row_count for e in entries))
        if self.fail_after_commit:
            self.fail_after_commit = False
            raise StorageError("503 Service Unavailable")
        return True


class ServerSnapshots(Snapshots):
    """Reads the files by itself, and asks the server for the latest and for every change."""

    def __init__(self, server: Server, storage: Storage, layout: TableLayout, uuid: str | None):
        super().__init__(layout)
        self._server = server
        self._files = SnapshotStore(storage, layout)
        self._theirs = server.files(layout, uuid)

    def find(self, snapshot_id: int) -> Snapshot | None:
        return self._files.find(snapshot_id)

    def list_ids(self) -> tuple[int, ...]:
        return self._files.list_ids()

    def earliest_id(self) -> int | None:
        return self._files.earliest_id()

    def latest(self) -> Snapshot | None:
        return self._theirs.latest()

    def latest_id(self) -> int | None:
        return self._theirs.latest_id()

    def publish(
        self,
        snapshot: Snapshot,
        after: Sequence[str] = (),
        *,
        base_uuid: str | None = None,
        entries: Sequence[ManifestEntry] = (),
    ) -> bool:
        del after  # what is written to an object store is durable
        return self._server.commit(self._theirs, snapshot, base_uuid, entries)

    def roll_back_to(self, target: Snapshot, tag_name: str | None = None) -> None:
        self._theirs.roll_back_to(target, tag_name)

    def follow(self, history: Sequence[Snapshot]) -> None:
        self._theirs.follow(history)

    def delete_expired(
        self,
        ids: Sequence[int],
        first_retained: int,
        on_deleted: Callable[[], None] = lambda: None,
    ) -> None:
        if self.latest_id() in ids:
            raise InvalidState("the latest snapshot stays")
        self._theirs.delete_expired(ids, first_retained, on_deleted)

    def drop(self) -> None:
        self._theirs.drop()

    def write_latest_hint(self, snapshot_id: int) -> None:
        """The server has done so."""


@dataclass(frozen=True)
class ServerPublisher:
    """Where the server is: a worker that gets it asks the same."""

    address: str

    def snapshots(
        self, storage: Storage, layout: TableLayout, identity: TableIdentity
    ) -> Snapshots:
        return ServerSnapshots(_SERVERS[self.address], storage, layout, identity.uuid)

    def branch_server(self, identity: TableIdentity) -> None:
        """Clients make the files of branches; the server publishes their snapshots."""

    def schema_server(self, identity: TableIdentity) -> None:
        """Clients make the files of schemas as well."""


def published_by(address: str, table: Table, storage: Storage | None = None) -> Table:
    """The same table, whose snapshots a server publishes, seen through another storage."""
    server = _SERVERS[address]
    identity = replace(table.store.identity, uuid=server.table_uuid)
    publisher = ServerPublisher(address)
    store = replace(table.store, identity=identity, publisher=publisher)
    return table_of(replace(store, storage=storage or store.storage))

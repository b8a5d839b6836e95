"""The snapshots of a table that a REST catalog manages. The server decides which commit wins.

The latest snapshot comes from the server, all others are files, which the server writes:

    200 true                    committed
    200 false                   lost, unless an earlier try of the same commit landed
    400 401 403 404 409 501     refused: an error at once
    429 503                     not now: the same commit again
    500 502 504, lost answers   unknown: look for the snapshot; if it is not there, the same again

The same commit may be sent twice: a server recognises a snapshot that it has.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from emberlake.base.env import SYSTEM_ENV, Env
from emberlake.errors import (
    EmberlakeError,
    NotAuthenticated,
    NotFound,
    ServerError,
    TableNotFound,
    TagNotFound,
    Unsupported,
)
from emberlake.io.rest.api import RestApi
from emberlake.io.rest.connections import Answer
from emberlake.io.rest.sending import Sent, Session, wait_before
from emberlake.io.storage import Storage
from emberlake.rest.commits import CommitRequest
from emberlake.rest.errors import Code
from emberlake.rest.query_auth import QueryAuth
from emberlake.rest.statistics import PartitionNames, partition_statistics
from emberlake.spec.identifier import MAIN_BRANCH, Identifier
from emberlake.spec.instant import Instant
from emberlake.spec.layout import TableLayout
from emberlake.spec.manifest import ManifestEntry
from emberlake.spec.schema_change import SchemaChange
from emberlake.spec.snapshot import Snapshot
from emberlake.store.publishing import BranchServer, SchemaServer, Snapshots, TableIdentity
from emberlake.store.snapshots import SnapshotStore

# After any other failure, the server may have done what was asked, or may still do it.
_REFUSALS: Final = frozenset((400, 401, 403, 404, 405, 406, 409, 413, 415, 501))


class RestSnapshots(Snapshots):
    """Asks the server for the latest snapshot, and to publish; reads the others from files."""

    def __init__(
        self,
        api: RestApi,
        storage: Storage,
        layout: TableLayout,
        identity: TableIdentity,
        names: PartitionNames,
    ) -> None:
        super().__init__(layout)
        base = identity.identifier
        branch = None if layout.branch == MAIN_BRANCH else layout.branch
        self._identifier = Identifier(base.database, base.table, branch)
        self._api = api
        self._files = SnapshotStore(storage, layout)
        self._table_id = identity.uuid
        self._names = names

    # --- reading ----------------------------------------------------------------------------------

    def find(self, snapshot_id: int) -> Snapshot | None:
        """The snapshot with that id; None if it was never written or has expired."""
        return self._files.find(snapshot_id)

    def find_each(self, ids: Iterable[int]) -> Iterator[Snapshot | None]:
        """The snapshots of some ids, as they are now or were when they were last listed."""
        return self._files.find_each(ids)

    def list_ids(self) -> tuple[int, ...]:
        """The ids of all snapshots, ascending."""
        return self._files.list_ids()

    def latest(self) -> Snapshot | None:
        """The newest snapshot, as the server says; None while nothing was committed."""
        found = self._api.latest_snapshot(self._identifier)
        return None if found is None else found.snapshot

    def latest_id(self) -> int | None:
        """The id of the newest snapshot; None while nothing was committed."""
        found = self.latest()
        return None if found is None else found.id

    def earliest_id(self) -> int | None:
        """The id of the oldest snapshot; None while nothing was committed."""
        return self._files.earliest_id()

    def exists(self, snapshot_id: int) -> bool:
        """Whether there is a snapshot with that id; it is not read."""
        return self._files.exists(snapshot_id)

    # --- publishing -------------------------------------------------------------------------------

    def publish(
        self,
        snapshot: Snapshot,
        after: Sequence[str] = (),
        *,
        base_uuid: str | None = None,
        entries: Sequence[ManifestEntry] = (),
    ) -> bool:
        """Ask the server to make the snapshot the next one; False if another one is.

        Raises:
            TableNotFound: it was dropped, or dropped and created again.
            ServerError: the server refused it (``had_no_effect``), or the outcome is unknown.
        """
        del after  # they are durable since they were written: see DurableStorage
        request = CommitRequest(
            table_id=self._table_id,
            snapshot=snapshot,
            base_snapshot_uuid=base_uuid,
            statistics=partition_statistics(entries, self._names),
        )
        doubt: ServerError | None = None  # of an earlier try, which may have landed
        attempt = 0
        while True:
            answer: Answer | None = None
            try:
                sent = self._api.commit(self._identifier, request)
                answer = sent.answer
                if sent.error is None:
                    is_ours = self._api.is_committed(sent)
                    return is_ours or (doubt is not None and self._is_standing(snapshot))
                failure = _failure_of(sent)
            except ServerError as error:
                failure = error
            if isinstance(failure, TableNotFound) or failure.had_no_effect:
                if self._is_known_to_stand(snapshot):
                    return True
                if doubt is not None and not _is_passing(failure):
                    raise doubt from failure
                if not _is_passing(failure):
                    raise failure
            else:
                doubt = failure
                found = self._look(snapshot.id)
                if found is not None:
                    return found.mark == snapshot.mark
            if attempt >= self._api.session.http.max_retries:
                raise doubt or failure
            self._api.env.sleep_ms(wait_before(attempt, answer, self._api.env))
            attempt += 1

    def _look(self, snapshot_id: int) -> Snapshot | None:
        """The snapshot that has the id by now; None if there is none yet, or nobody can tell."""
        try:
            latest = self.latest()
            if latest is None or latest.id < snapshot_id:
                return None
            return latest if latest.id == snapshot_id else self.find(snapshot_id)
        except EmberlakeError:
            return None

    def _is_standing(self, snapshot: Snapshot) -> bool:
        found = self.find(snapshot.id)
        return found is not None and found.mark == snapshot.mark

    def _is_known_to_stand(self, snapshot: Snapshot) -> bool:
        # A gateway may have put its own answer in the place of the server's. Files of a snapshot
        # that stands must never be deleted, so even a clear no is worth one look.
        try:
            return self._is_standing(snapshot)
        except EmberlakeError:
            return False

    def roll_back_to(self, target: Snapshot, tag_name: str | None = None) -> None:
        """Ask the server to make a snapshot the latest one."""
        if tag_name is not None:
            try:
                self._api.rollback(self._identifier, Instant.tag(tag_name))
                return
            except TagNotFound:
                # Not every server knows the tags that others have put next to the table.
                if not self.exists(target.id):
                    raise
        self._api.rollback(self._identifier, Instant.snapshot(target.id))

    def follow(self, history: Sequence[Snapshot]) -> None:
        """Refuse: the server itself gives a table the history of a branch."""
        del history
        raise Unsupported("the server of a catalog moves tables forward, not its clients")

    def delete_expired(
        self,
        ids: Sequence[int],
        first_retained: int,
        on_deleted: Callable[[], None] = lambda: None,
    ) -> None:
        """Delete the files of snapshots; servers leave that to the client that expires them."""
        self._files.delete_expired(ids, first_retained, on_deleted)

    def drop(self) -> None:
        """Delete the files of all snapshots, and the hints."""
        self._files.drop()

    def write_latest_hint(self, snapshot_id: int) -> None:
        """The server has written it with the snapshot."""


@dataclass(frozen=True)
class RestBranches:
    """The branches of a table, which its server makes."""

    api: RestApi
    table: Identifier

    def list(self) -> list[str]:
        """The names of all branches except the main one, sorted."""
        return sorted(name for name in self.api.list_branches(self._base) if name != MAIN_BRANCH)

    def create(self, name: str, tag_name: str | None) -> None:
        """Create a branch that starts with the snapshot of a tag, or an empty one."""
        self.api.create_branch(self._base, name, tag_name)

    def delete(self, name: str) -> None:
        """Delete a branch."""
        self.api.drop_branch(self._base, name)

    def rename(self, old: str, new: str) -> None:
        """Give a branch another name."""
        self.api.rename_branch(self._base, old, new)

    def forward(self, name: str) -> None:
        """Give the main branch the history of a branch."""
        if self.table.branch is not None:
            raise Unsupported(
                f"{self.table}: servers move only the main branch forward, not other branches"
            )
        self.api.forward_branch(self._base, name)

    @property
    def _base(self) -> Identifier:
        return Identifier(self.table.database, self.table.table)


@dataclass(frozen=True)
class RestSchema:
    """The schema of a table, which its server changes."""

    api: RestApi
    table: Identifier

    def alter(self, changes: Sequence[SchemaChange]) -> None:
        """Make all changes, or none."""
        self.api.alter_table(self.table, changes)


@dataclass(frozen=True)
class RestPublisher:
    """The server, and how partitions are spelled: a worker that gets it asks the same server."""

    session: Session
    names: PartitionNames
    env: Env = field(default=SYSTEM_ENV, compare=False, repr=False)

    def snapshots(
        self, storage: Storage, layout: TableLayout, identity: TableIdentity
    ) -> Snapshots:
        """The snapshots of the branch of a table that the layout is for."""
        return RestSnapshots(self._api, storage, layout, identity, self.names)

    def branch_server(self, identity: TableIdentity) -> BranchServer:
        """The server makes branches."""
        return RestBranches(self._api, identity.identifier)

    def schema_server(self, identity: TableIdentity) -> SchemaServer:
        """The server keeps schemas."""
        return RestSchema(self._api, identity.identifier)

    @property
    def _api(self) -> RestApi:
        return RestApi(self.session, self.env)

    def __reduce__(self) -> tuple[object, ...]:
        return RestPublisher, (self.session, self.names)  # the clock belongs to the process


@dataclass(frozen=True)
class RestRowAccess:
    """The server decides who sees which rows; workers that get it could ask it, too."""

    session: Session
    env: Env = field(default=SYSTEM_ENV, compare=False, repr=False)

    def ask(self, identifier: Identifier, columns: Sequence[str]) -> QueryAuth:
        """The rules for a read of some columns."""
        return RestApi(self.session, self.env).authorize_query(identifier, columns)

    def __reduce__(self) -> tuple[object, ...]:
        return RestRowAccess, (self.session,)  # the clock belongs to the process


def _failure_of(sent: Sent) -> ServerError | TableNotFound:
    """What the answer to a commit means, if it is neither yes nor no."""
    assert sent.error is not None
    error = sent.failure()
    if isinstance(error, ServerError | TableNotFound):
        return error
    code = sent.error.code
    if isinstance(error, NotFound):  # a wrong prefix, or a gateway that knows nothing of it
        error = ServerError(f"{error}; check the option uri")
    return ServerError(str(error), had_no_effect=code in _REFUSALS, code=code)


def _is_passing(failure: ServerError | TableNotFound) -> bool:
    """Whether the same commit may succeed in a moment."""
    if isinstance(failure, TableNotFound | NotAuthenticated):
        return False
    return failure.code is None or failure.code == Code.TOO_MANY_REQUESTS

"""One atomic commit: a change becomes the next snapshot, or nothing at all.

    Change ──► check it against the latest snapshot ──► write manifests ──► put-if-absent snapshot-N
                   ▲                                                      │
                   │      Lost: another writer took N                     │
                   ├── back off, check again on top of theirs ◄───────────┤
                   │      Unknown: the storage failed while publishing    │
                   └── the same, but nothing is deleted until it is known │
                                                                          ▼
                                                     Committed: hints, callbacks, result

Checking writes nothing and writing cannot conflict, so a conflict in the first attempt leaves no
file behind. Files are deleted only when it is certain that no snapshot refers to them. Spec:
"Commit protocol".
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Final, assert_never

from emberlake.base.requests import leave
from emberlake.commit.change import (
    NOTHING_COMMITTED,
    Change,
    CommitResult,
    combined,
    written_change,
)
from emberlake.commit.conflicts import check_change_itself
from emberlake.commit.draft import Draft, Drafter, Request
from emberlake.commit.history import History, claims_of, guards_keys, newest_identifier, stream_of
from emberlake.commit.presence import check_present, look_for_files
from emberlake.commit.resolve import Resolved, check_not_dropped, present_schema, resolve_change
from emberlake.commit.verify import verify
from emberlake.errors import (
    CommitConflict,
    CommitUnknown,
    ConflictReason,
    EmberlakeError,
    FileNotFound,
    InvalidInput,
    StorageError,
    TableNotFound,
)
from emberlake.options import (
    COMMIT_MAX_RETRIES,
    COMMIT_MAX_WAIT_MS,
    COMMIT_MIN_WAIT_MS,
    COMMIT_TIMEOUT_MS,
)
from emberlake.spec.manifest import FileKind, ManifestEntry
from emberlake.spec.snapshot import BATCH_COMMIT_IDENTIFIER, Snapshot
from emberlake.store.table_store import TableStore
from emberlake.wire import CommitMessage

_JITTER: Final = 0.2
# The rows are in the first snapshot. The others compact it, and any later compaction does the same.
STANDS_REMEDY: Final = "compact the table; do not write the rows again"


@dataclass(frozen=True)
class CommitCallbackContext:
    """The argument of a callback: what a commit did."""

    snapshot: Snapshot
    commit_entries: tuple[ManifestEntry, ...]
    identifier: int


CommitCallback = Callable[[CommitCallbackContext], None]


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
        then: Sequence[Change] = (),
    ) -> CommitResult:
        """Publish a change, retrying while others win.

        Args:
            change: What the snapshot changes.
            identifier: The number of the commit, for streams.
            properties: Properties of the snapshot.
            then: The changes that are to follow. Their files must be there too.

        Raises:
            AlreadyCommitted: the files of this change are, or were, in the table.
            FilesMissing: files of the changes are not there.
            CommitConflict: what others committed makes this change wrong, or they won every race.
            SnapshotOverwritten: another engine has put its snapshot in the place of this one.
            CommitUnknown: the storage failed, and nobody can tell whether the commit took effect.
        """
        if change.is_empty:
            return NOTHING_COMMITTED
        _check_texts((self._commit_user, *chain.from_iterable((properties or {}).items())))
        conflict = check_change_itself((*change.added, *change.deleted))
        if conflict is not None:
            raise conflict
        request = Request(
            change=change,
            commit_user=self._commit_user,
            identifier=identifier,
            properties=dict(properties or {}),
            then=tuple(then),
        )
        attempts = _Attempts(self._store, request)
        committed = attempts.run()
        if committed is None:
            return NOTHING_COMMITTED
        # The commit has happened. A hint that cannot be written must not make it look failed.
        with suppress(StorageError):
            leave(
                partial(self._store.snapshots.write_latest_hint, committed.snapshot.id),
                self._store.storage.traits.requests_at_once,
            )
        verify(self._store, committed, (*change.index_added, *committed.new_vectors))
        self._delete_unused(change)
        return self._finish(committed, attempts)

    def commit_all(
        self,
        changes: Sequence[Change],
        identifier: int = BATCH_COMMIT_IDENTIFIER,
        *,
        properties: Mapping[str, str] | None = None,
    ) -> CommitResult:
        """Publish changes one after the other, with one identifier.

        Raises:
            CommitConflict: one of them conflicts; those before it stand, and the error says so.
        """
        results: list[CommitResult] = []
        for number, change in enumerate(changes, start=1):
            then = changes[number:]
            try:
                result = self.commit(change, identifier, properties=properties, then=then)
                results.append(result)
            except CommitConflict as error:
                done = combined(results).snapshot_id
                if done is None:
                    raise
                detail = f"snapshot {done} stands, but what follows it does not: {error.detail}"
                raise type(error)(error.reason, detail, STANDS_REMEDY) from error
        return combined(results)

    def check_not_committed(self, messages: Sequence[CommitMessage]) -> None:
        """Raise ``AlreadyCommitted`` if files of the messages are, or were, in the table."""
        self.check_not_in(self._store.snapshots.latest(), messages)

    def check_not_in(self, snapshot: Snapshot | None, messages: Sequence[CommitMessage]) -> None:
        """Raise ``AlreadyCommitted`` if files of the messages are, or were, there by then."""
        History(self._store, written_change(messages)).catch_up(snapshot)

    def check_files(self, change: Change) -> None:
        """Raise ``FilesMissing`` if files of a change are gone.

        Raises:
            AlreadyCommitted: it was committed before, which explains why they are gone.
        """
        history = History(self._store, change)
        history.catch_up(self._store.snapshots.latest())
        found = look_for_files(self._store, [change])
        check_present(self._store, found, has_gaps=history.has_gaps)

    def newest_identifier(self) -> int | None:
        """The identifier of the newest snapshot of this commit user, if there is one."""
        return newest_identifier(self._store, self._commit_user)

    def _delete_unused(self, change: Change) -> None:
        for entry in change.unused:
            with suppress(StorageError):  # nothing refers to it: garbage, not a problem
                place = entry.partition, entry.bucket, entry.file
                self._store.storage.delete(self._store.data_file_path(*place))

    def _finish(self, draft: Draft, attempts: "_Attempts") -> CommitResult:
        snapshot, entries = draft.snapshot, draft.entries
        for callback in self._callbacks:
            callback(CommitCallbackContext(snapshot, entries, snapshot.commit_identifier))
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
            retries=attempts.retries,
        )


@dataclass(frozen=True, slots=True)
class _Committed:
    draft: Draft


@dataclass(frozen=True, slots=True)
class _Lost:
    """Another snapshot has the id; ours is not in the table."""


@dataclass(frozen=True, slots=True)
class _Unknown:
    """Publishing failed and no snapshot is there yet, but the storage may still create it."""

    error: EmberlakeError


_Outcome = _Committed | _Lost | _Unknown


class _Look:
    """What an attempt finds in the table. Where requests take long, all of it is asked for at once.

    Elsewhere each thing is looked at when it is needed.
    """

    def __init__(self, store: TableStore, request: Request, *, is_first: bool) -> None:
        changes = (request.change, *request.then) if is_first else ()
        self.schema = store.begin(store.schemas.latest)
        self.presence = store.begin(partial(look_for_files, store, changes))
        self.latest = store.latest_snapshot()


class _Attempts:
    """Tries to publish a request until it is in the table or is refused."""

    def __init__(self, store: TableStore, request: Request) -> None:
        self.retries = 0
        self._store = store
        self._request = request
        self._drafter = Drafter(store, request)
        stream = stream_of(request.commit_user, request.identifier)
        claims = claims_of(store.schema, request.change)
        guarded = guards_keys(store.schema, request.change)
        self._history = History(store, request.change, stream, claims, guards_keys=guarded)
        self._is_schema_published = False
        self._published: dict[str, Draft] = {}  # by mark: any of them may be in the table
        self._unsettled: tuple[int, EmberlakeError | None] | None = None  # snapshot id, why
        timeout = store.options.value(COMMIT_TIMEOUT_MS)
        self._deadline_ms = None if timeout is None else store.env.now_ms() + timeout

    def run(self) -> Draft | None:
        """The draft that was published; None when there was nothing to change."""
        try:
            committed = self._until_committed()
        except EmberlakeError as error:
            if self._unsettled is not None:
                raise self._unknown(error) from error
            self._drafter.discard()
            raise
        leave(partial(self._drafter.discard, keep=committed), self._at_once)
        return committed

    @property
    def _at_once(self) -> int:
        return self._store.storage.traits.requests_at_once

    def _until_committed(self) -> Draft | None:
        while True:
            look = _Look(self._store, self._request, is_first=not self._published)
            ours = self._catch_up(look.latest)
            if ours is not None:
                return ours
            resolved = self._check(look)
            if resolved is None:
                return None
            if self._store.new_schema is not None and not self._is_schema_published:
                self._store.publish_schema()
                self._is_schema_published = True
                continue  # the snapshot is checked on top of it
            # On object stores this last look is under way while the manifests are written.
            is_there = self._store.begin(
                partial(check_not_dropped, self._store, resolved.schema_id)
            )
            draft = self._drafter.draft(resolved)
            is_there()
            outcome = self._publish(draft)
            match outcome:
                case _Committed(draft):
                    return draft
                case _Lost():
                    self._settle(draft.snapshot.id)
                case _Unknown(error):
                    self._unsettled = (draft.snapshot.id, error)
                case _:
                    assert_never(outcome)
            self._back_off()

    def _check(self, look: "_Look") -> Resolved | None:
        """Find every reason not to commit, before anything is written."""
        check_present(self._store, look.presence(), has_gaps=self._history.has_gaps)
        return resolve_change(self._store, self._request.change, look.latest, look.schema)

    def _catch_up(self, latest: Snapshot | None) -> Draft | None:
        latest_id = latest.id if latest else 0
        try:
            ours = self._history.catch_up(latest, self._published)
        except CommitConflict:
            self._settle(latest_id)  # our own snapshot would have been found before
            raise
        if ours is None:
            self._settle(latest_id)
            return None
        return self._published[ours.mark]

    def _publish(self, draft: Draft) -> _Outcome:
        self._published[draft.snapshot.mark] = draft
        before, self._unsettled = self._unsettled, (draft.snapshot.id, None)
        failure: EmberlakeError | None = None
        try:
            standing = self._store.snapshots.claim(
                draft.snapshot, draft.new_paths, base_uuid=draft.base_uuid, entries=draft.entries
            )
        except FileNotFound:
            self._unsettled = before
            present_schema(self._store)  # "the table is gone" explains more than a missing file
            raise
        except TableNotFound:  # a server says so before it does anything
            self._unsettled = before
            raise
        except EmberlakeError as error:
            if isinstance(error, StorageError) and error.had_no_effect:
                self._unsettled = before
                raise
            failure = error
            self._unsettled = (draft.snapshot.id, error)
            self._drafter.forget()  # the manifests may not have reached the disk
            standing = self._store.snapshots.find(draft.snapshot.id)
        # A storage that repeats a request after a lost answer finds our own snapshot in its way.
        # So even a clear no needs a look at whose snapshot has the id.
        if standing is None:
            return _Lost() if failure is None else _Unknown(failure)
        known = self._published.get(standing.mark)
        return _Lost() if known is None else _Committed(known)

    def _settle(self, snapshot_id: int) -> None:
        """Another snapshot has that id, so nothing we published under it or a lower id landed."""
        if self._unsettled is not None and self._unsettled[0] <= snapshot_id:
            self._unsettled = None

    def _back_off(self) -> None:
        options, env = self._store.options, self._store.env
        if self.retries >= options.value(COMMIT_MAX_RETRIES):
            raise _exhausted(f"{self.retries + 1} attempts failed", "commit.max-retries")
        if self._deadline_ms is not None and env.now_ms() > self._deadline_ms:
            raise _exhausted("commit.timeout has passed", "commit.timeout")
        wait = min(
            options.value(COMMIT_MIN_WAIT_MS) * 2**self.retries,
            options.value(COMMIT_MAX_WAIT_MS),
        )
        self.retries += 1
        env.sleep_ms(wait * (1 + _JITTER * env.chance()))

    def _unknown(self, last: EmberlakeError) -> CommitUnknown:
        assert self._unsettled is not None
        snapshot_id, failure = self._unsettled
        return CommitUnknown(
            f"publishing snapshot {snapshot_id} failed ({failure or 'its id is taken'}), and "
            f"whether it took effect cannot be found out ({last}); before committing again, look "
            f"for a snapshot of commit user {self._request.commit_user} with the "
            f"delta manifest list {' or '.join(self._published)}"
        )


def _check_texts(texts: Iterable[str]) -> None:
    """Refuse text that a snapshot cannot hold before anything is written."""
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InvalidInput(
                f"{text!r} cannot be a commit user or a property of a snapshot: it holds something "
                "that is not a character"
            ) from error


def _exhausted(what: str, option: str) -> CommitConflict:
    return CommitConflict(
        ConflictReason.RETRIES_EXHAUSTED,
        f"{what}; every attempt lost the race for the next snapshot",
        f"commit again when there are fewer other writers, or raise {option}",
    )

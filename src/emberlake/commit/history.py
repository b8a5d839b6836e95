"""Check a change against every snapshot that others made since its writers began.

It looks for two things: a commit of our own, made earlier with these messages or by an attempt
whose outcome was unknown; and commits of others that make the change wrong.
"""

from collections.abc import Collection, Iterator
from contextlib import suppress
from functools import cache, partial
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from emberlake.commit.change import Change
from emberlake.commit.conflicts import (
    Claims,
    check_already_committed,
    check_bucket_counts,
    check_counted_on,
    check_key_places,
    check_levels,
    check_read_rows,
    check_seen_all,
    check_sequence_numbers,
    claims_on,
    reaches_claimed_numbers,
)
from emberlake.commit.key_bounds import stored_key_bound
from emberlake.errors import (
    AlreadyCommitted,
    CommitConflict,
    ConflictReason,
    EmberlakeError,
)
from emberlake.merge.plan import depends_on_arrival
from emberlake.scan.files import delta_manifests_of, in_partitions, live_entries
from emberlake.spec.manifest import FileKind, ManifestEntry
from emberlake.spec.schema import TableSchema
from emberlake.spec.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind, Snapshot
from emberlake.spec.values import Value
from emberlake.store.entries import ManifestEntries
from emberlake.store.table_store import TableStore
from emberlake.wire import BaseSnapshot

_READ_AHEAD: Final = 64  # snapshots that are checked together


class History:
    """Follows the snapshots of a table from the ones that a change's writers saw.

    Args:
        store: The table.
        change: What is to be committed.
        stream: Commit user and identifier, if they identify a repeated commit.
        claims: The new rows that must be newer than all others with their keys.
        guards_keys: Whether others may not have written keys of the change, in any partition.

    ``has_gaps`` is true if some of those snapshots have expired, so an earlier commit of the change
    may have gone unnoticed.
    """

    def __init__(
        self,
        store: TableStore,
        change: Change,
        stream: tuple[str, int] | None = None,
        claims: Claims | None = None,
        *,
        guards_keys: bool = False,
    ) -> None:
        self._store = store
        self._change = change
        self._stream = stream
        self._claims: Claims = claims or {}
        self._guarded = change.added if guards_keys else ()
        self._awaited = set(change.counts_on) if guards_keys else set()
        self._names = change.new_names
        self._compacted = _compacted_buckets(store.schema, change)
        self._seen = change.bases  # snapshots after them are yet to be checked
        self.has_gaps = False

    def catch_up(self, latest: Snapshot | None, ours: Collection[str] = ()) -> Snapshot | None:
        """Check all snapshots up to ``latest``; return the one whose mark is in ``ours``, if any.

        Raises:
            AlreadyCommitted: the files of the change are, or were, in the table.
            CommitConflict: what others committed makes the change wrong.
        """
        if latest is None:
            _raise(check_counted_on(self._awaited))
            return None
        first, has_expired = self._first_id(latest)
        rivals: list[ManifestEntry] = []
        for snapshot in self._since(first, latest):
            if snapshot is None:
                has_expired = True
                continue
            if snapshot.mark in ours:
                return snapshot
            rivals += self._check(snapshot)
        if has_expired:
            self.has_gaps = True
            _raise(check_seen_all(self._change.stale_after))
            if self._guarded:
                raise keys_unknown()
            rivals = self._check_live(latest)  # a file that was added is live, unless deleted since
        bound_of = cache(partial(stored_key_bound, self._store))
        were_read = bool(self._change.stale_after)
        _raise(check_sequence_numbers(self._claims, rivals, bound_of, were_read=were_read))
        _raise(check_counted_on(self._awaited))
        self._seen = frozenset({BaseSnapshot.of(latest)})
        return None

    def _since(self, first: int, latest: Snapshot) -> Iterator[Snapshot | None]:
        """The snapshots from an id to the latest one; None for those that are not there."""
        ids = range(first, latest.id)
        for start in range(0, len(ids), _READ_AHEAD):
            some = self._store.snapshots.find_each(ids[start : start + _READ_AHEAD])
            yield from self._with_changes(some)
        if first <= latest.id:
            yield from self._with_changes(iter([latest]))

    def _with_changes(self, some: Iterator[Snapshot | None]) -> Iterator[Snapshot | None]:
        """The same. If requests take long, the changes of the snapshots are fetched together."""
        if not (self._store.storage.traits.is_remote and self._reads_changes):
            return some
        snapshots = list(some)
        lists = [
            (snapshot.delta_manifest_list, snapshot.delta_manifest_list_size)
            for snapshot in snapshots
            if snapshot is not None
        ]
        with suppress(EmberlakeError):  # a caller that needs it meets the failure again
            deltas = self._store.manifests.read_lists(lists)
            self._store.manifests.read_manifests([m for delta in deltas for m in delta])
        return iter(snapshots)

    @property
    def _reads_changes(self) -> bool:
        return bool(self._names or self._compacted or self._guarded)

    def _first_id(self, latest: Snapshot) -> tuple[int, bool]:
        """The first snapshot that is yet to be checked, and whether some before it have expired."""
        first = min((self._after(base, latest) for base in self._seen), default=latest.id + 1)
        if first > 1:
            return first, False  # the one before it is there, so none has expired
        earliest = self._store.snapshots.earliest_id() or latest.id
        return earliest, earliest > 1

    def _after(self, base: BaseSnapshot | None, latest: Snapshot) -> int:
        if base is None or base.id > latest.id:
            return 1
        now = latest
        if base.id != latest.id:
            found = next(self._store.snapshots.find_each([base.id]))
            if found is None:
                return 1
            now = found
        # Another snapshot has this id: the table was rolled back, so nothing is known from here.
        return base.id + 1 if now.delta_manifest_list == base.delta_manifest_list else 1

    def _check(self, snapshot: Snapshot) -> list[ManifestEntry]:
        """Check one snapshot; return its entries of files that may be newer than our rows."""
        if self._stream is not None:
            user, identifier = self._stream
            if snapshot.commit_user == user and self._is_done(snapshot, identifier):
                raise already_committed(user, identifier, snapshot.commit_identifier)
        _raise(check_read_rows(self._change.stale_after, snapshot))
        if not self._reads_changes:
            return []
        theirs = self._store.manifests.read_manifests(delta_manifests_of(self._store, snapshot))
        relevant = theirs.take(self._concerns_us(theirs)).entries()
        _raise(check_already_committed(self._names, relevant, snapshot_id=snapshot.id))
        _raise(check_levels(self._compacted, relevant))
        if self._change.kind is not CommitKind.OVERWRITE:
            added = self._change.added
            _raise(check_bucket_counts(added, relevant, snapshot_id=snapshot.id))
        if self._guarded and snapshot.commit_kind is not CommitKind.COMPACT:
            self._awaited.difference_update(theirs.file_name.to_pylist() if self._awaited else ())
            self._check_key_places(theirs)
        return [entry for entry in relevant if reaches_claimed_numbers(self._claims, entry)]

    def _check_key_places(self, theirs: ManifestEntries) -> None:
        """Compare the keys of a commit that added or removed rows with ours."""
        is_replaced = in_partitions(self._change.replaces or frozenset())
        places = {(entry.partition, entry.bucket) for entry in self._guarded}
        rivals = [
            entry
            for entry in theirs.entries()
            if entry.bucket >= 0
            and not is_replaced(entry.partition)
            and (
                entry.file.file_name not in self._change.counts_on
                if entry.kind is FileKind.ADD
                else (entry.partition, entry.bucket) in places
            )
        ]
        bound_of = cache(partial(stored_key_bound, self._store))
        columns_of = cache(partial(_values_in_key, self._store))
        _raise(check_key_places(self._guarded, rivals, bound_of, columns_of))

    def _is_done(self, snapshot: Snapshot, identifier: int) -> bool:
        if snapshot.commit_identifier != identifier:
            return snapshot.commit_identifier > identifier
        # A write and its compaction are two snapshots with one identifier.
        kinds = (snapshot.commit_kind, self._change.kind)
        return kinds.count(CommitKind.COMPACT) != 1

    def _check_live(self, latest: Snapshot) -> list[ManifestEntry]:
        """Check the live files; return those of partitions in which our rows must be the newest."""
        touched = frozenset(entry.partition for entry in self._change.added)
        live = live_entries(self._store, latest, partitions=touched)
        # Nobody can tell any more who added the files of a level: better compact once too often.
        known = {entry.identity for entry in self._change.deleted}
        ours = live.take(_in_partitions(live, self._compacted_partitions)).entries()
        _raise(check_levels(self._compacted, [e for e in ours if e.identity not in known]))
        present = live.take(_is_named(live, self._names)).entries()
        _raise(check_already_committed(self._names, present, snapshot_id=latest.id))
        return live.take(_in_partitions(live, self._claimed_partitions)).entries()

    def _concerns_us(self, entries: ManifestEntries) -> npt.NDArray[np.bool_]:
        """Which entries name our files or, in bucketed tables, our partitions."""
        ours = {entry.partition for entry in self._change.added if entry.total_buckets > 0}
        ours |= self._claimed_partitions
        ours |= self._compacted_partitions
        return _is_named(entries, self._names) | _in_partitions(entries, ours)

    @property
    def _compacted_partitions(self) -> set[bytes]:
        return {partition for partition, _ in self._compacted}

    @property
    def _claimed_partitions(self) -> set[bytes]:
        return {partition for partition, _ in self._claims}


def _compacted_buckets(schema: TableSchema, change: Change) -> frozenset[tuple[bytes, int]]:
    """The buckets that nobody else may have compacted meanwhile."""
    if change.kind is not CommitKind.COMPACT or not schema.profile.looks_up:
        return frozenset()
    return frozenset((entry.partition, entry.bucket) for entry in change.added)


def claims_of(schema: TableSchema, change: Change) -> Claims:
    """The new rows of a change that must be newer than all others with their keys.

    An overwrite replaces what others wrote, and a compaction does not change the age of rows. Rows
    that were computed from rows of the table must follow those, whatever orders the records.
    """
    is_upsert = change.replaces is None and change.kind is not CommitKind.COMPACT
    follows = bool(change.stale_after) or depends_on_arrival(schema)
    if schema.profile.has_keys and is_upsert and follows:
        return claims_on(change.added)
    return {}


def guards_keys(schema: TableSchema, change: Change) -> bool:
    """Whether others may not have written keys of a change meanwhile, in any partition."""
    return schema.profile.crosses_partitions and change.kind is not CommitKind.COMPACT


def _values_in_key(store: TableStore, partition: bytes) -> tuple[Value, ...]:
    """The values of the partition columns that are in the primary key."""
    keys, values = store.schema.partition_keys, store.partition_values(partition)
    return tuple(
        v for name, v in zip(keys, values, strict=True) if name in store.schema.primary_keys
    )


def keys_unknown() -> CommitConflict:
    """Nobody can tell which keys snapshots wrote that have expired."""
    return CommitConflict(
        ConflictReason.KEY_INDEX_CHANGED,
        "snapshots that came between have expired, and may have written the same keys",
        "write the data again with a new writer",
    )


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
    """The error for a stream identifier that was committed before."""
    return AlreadyCommitted(
        ConflictReason.ALREADY_COMMITTED,
        f"commit user {commit_user} has committed identifier {newest}, so {identifier} is done",
        "use filter_and_commit to skip what is done, or give an identifier that has not been used",
    )


def stream_of(commit_user: str, identifier: int) -> tuple[str, int] | None:
    """What identifies a repeated commit; None for batch commits, which share one identifier."""
    return None if identifier == BATCH_COMMIT_IDENTIFIER else (commit_user, identifier)


def _is_named(entries: ManifestEntries, names: Collection[str]) -> npt.NDArray[np.bool_]:
    found = pc.is_in(entries.file_name, value_set=pa.array(sorted(names), pa.large_string()))
    return np.asarray(found.to_numpy(zero_copy_only=False), bool)


def _in_partitions(
    entries: ManifestEntries, partitions: Collection[bytes]
) -> npt.NDArray[np.bool_]:
    if not partitions:
        return np.zeros(len(entries), bool)
    is_in = np.array([partition in partitions for partition in entries.partitions], bool)
    return is_in[entries.partition_codes]


def _raise(conflict: CommitConflict | None) -> None:
    if conflict is not None:
        raise conflict

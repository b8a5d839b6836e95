"""Expire snapshots: delete old versions of a table, and the files that nobody else needs.

Spec: "Snapshot expiration". A file is deleted before whatever names it, and snapshots come last,
oldest first. So an interrupted run leaves every retained snapshot whole, and the next run resumes.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from emberlake.base.html import html_box, html_facts, html_title
from emberlake.base.parallel import parallel_map
from emberlake.base.texts import size_text
from emberlake.base.times import to_millis
from emberlake.errors import InvalidInput, InvalidState, SnapshotNotFound, Unsupported
from emberlake.maintenance.deletion import Deletion, Progress
from emberlake.maintenance.expire_files import Doomed, find_doomed
from emberlake.maintenance.holders import Holder, load_holders, tag_paths
from emberlake.options import (
    CHANGELOG_RETAIN_MAX,
    CHANGELOG_RETAIN_MIN,
    CHANGELOG_RETAIN_MS,
    SNAPSHOT_EXPIRE_LIMIT,
    SNAPSHOT_RETAIN_MAX,
    SNAPSHOT_RETAIN_MIN,
    SNAPSHOT_RETAIN_MS,
    TableOptions,
)
from emberlake.spec.snapshot import Snapshot
from emberlake.store.consumers import ConsumerStore
from emberlake.store.table_store import TableStore

_READ_AHEAD: Final = 64  # how many snapshots are read at once for their times


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ExpireResult:
    """What an expiration deleted, or would delete."""

    snapshots: tuple[int, ...] = ()
    data_files: int = 0
    metadata_files: int = 0
    bytes: int = 0  # of the files whose sizes the table knows
    remaining: int = 0  # snapshots that are due but exceed the limit of one run
    dry_run: bool = False

    def __repr__(self) -> str:
        ids = self.snapshots
        which = f" ({ids[0]} to {ids[-1]})" if ids else ""
        return (
            f"ExpireResult(snapshots={len(ids)}{which}, data_files={self.data_files}, "
            f"metadata_files={self.metadata_files}, bytes={self.bytes}, "
            f"remaining={self.remaining}, dry_run={self.dry_run})"
        )

    def _repr_html_(self) -> str:
        ids = self.snapshots
        facts: dict[str, object] = {
            "snapshots": f"{len(ids):,}" + (f" ({ids[0]} to {ids[-1]})" if ids else ""),
            "data files": self.data_files,
            "metadata files": self.metadata_files,
            "size": size_text(self.bytes),
            "still due": self.remaining,
        }
        done = "would be deleted" if self.dry_run else "deleted"
        return html_box(html_title("Expired snapshots", done), html_facts(facts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """Which snapshots stay."""

    at_least: int  # this many of the newest always stay
    at_most: int  # snapshots beyond this many go, whatever their age
    older_than_ms: int  # in between, those that were replaced before this time go
    limit: int  # at most this many go in one run

    def __post_init__(self) -> None:
        if self.at_least < 1:
            raise InvalidInput(f"retain_min is {self.at_least}: at least one snapshot stays")
        if self.at_most < self.at_least:
            raise InvalidInput(
                f"retain_max ({self.at_most}) is less than retain_min ({self.at_least}); "
                "give both, or change the table's snapshot.num-retained options"
            )
        if self.limit < 0:
            raise InvalidInput(f"max_deletes is {self.limit}: it cannot be negative")


def retention_of(
    options: TableOptions,
    now_ms: int,
    *,
    retain_max: int | None = None,
    retain_min: int | None = None,
    older_than: datetime | int | None = None,
    max_deletes: int | None = None,
) -> Retention:
    """The retention that the caller asks for; the table's options give the rest."""
    before = now_ms - options.value(SNAPSHOT_RETAIN_MS)
    return Retention(
        at_least=_or(retain_min, options.value(SNAPSHOT_RETAIN_MIN)),
        at_most=_or(retain_max, options.value(SNAPSHOT_RETAIN_MAX)),
        older_than_ms=before if older_than is None else to_millis(older_than),
        limit=_or(max_deletes, options.value(SNAPSHOT_EXPIRE_LIMIT)),
    )


def first_to_retain(
    ids: Sequence[int],
    retention: Retention,
    time_of: Callable[[int], int | None],
    consumed_up_to: int | None,
) -> int:
    """The first snapshot that is not due, whatever the limit of a run.

    Args:
        ids: The ids of all snapshots, ascending; at least one.
        retention: Which snapshots stay.
        time_of: When a snapshot was committed; None if it is not there.
        consumed_up_to: The first snapshot that a consumer has yet to read.
    """
    earliest, latest = ids[0], ids[-1]
    end = min(
        latest - retention.at_least + 1,
        latest if consumed_up_to is None else consumed_up_to,
    )
    for snapshot_id in range(max(latest - retention.at_most + 1, earliest), end):
        # A snapshot is current until the next one: its age counts from there.
        replaced_ms = time_of(snapshot_id + 1)
        if replaced_ms is not None and replaced_ms >= retention.older_than_ms:
            end = snapshot_id
            break
    return next(number for number in ids if number >= end)


def first_to_leave(ids: Sequence[int], due_end: int, limit: int) -> int:
    """The first snapshot kept by a run that expires at most ``limit`` of those that are due."""
    return next(number for number in ids if number >= min(due_end, ids[0] + limit))


def expire_snapshots(
    store: TableStore,
    retention: Retention,
    *,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> ExpireResult:
    """Delete the snapshots that are due, and the files that only they need.

    Raises:
        Unsupported: the table keeps changelogs for longer than snapshots.
        InvalidState: what other snapshots need cannot be found out; nothing was deleted.
    """
    _check_changelogs(store.options)
    ids = store.snapshots.list_ids()
    if not ids:
        return ExpireResult(dry_run=dry_run)
    consumers = ConsumerStore(store.storage, store.layout)
    times = _Times(store, ids[-1])
    due_end = first_to_retain(ids, retention, times.of, consumers.earliest_next())
    end = first_to_leave(ids, due_end, retention.limit)
    gone = [number for number in ids if number < end]
    remaining = sum(end <= number < due_end for number in ids)
    if not gone:
        return ExpireResult(remaining=remaining, dry_run=dry_run)
    found = _find_each(store, gone)
    # Another expiration may be running; what it has deleted is done.
    expired = [snapshot for snapshot in found if snapshot is not None]
    first_retained = store.snapshots.load(end)
    holders = load_holders(store, without=gone)
    doomed = find_doomed(store, expired, first_retained, holders)
    result = ExpireResult(
        snapshots=tuple(snapshot.id for snapshot in expired),
        data_files=len(doomed.data_files),
        metadata_files=doomed.metadata_files,
        bytes=doomed.bytes,
        remaining=remaining,
        dry_run=dry_run,
    )
    if not dry_run:
        _check_unchanged(store, first_retained, holders)
        _delete(store, doomed, end, progress)
    return result


def _delete(store: TableStore, doomed: Doomed, end: int, progress: Progress | None) -> None:
    deletion = Deletion(store.storage, len(doomed.data_files) + doomed.metadata_files, progress)
    for step in doomed.steps:
        deletion.delete(step)
    store.snapshots.delete_expired(doomed.snapshots, end, deletion.count)


class _Times:
    """When snapshots were committed. They are asked for in order, and read several at a time."""

    def __init__(self, store: TableStore, latest: int) -> None:
        self._store = store
        self._latest = latest
        self._known: dict[int, int | None] = {}

    def of(self, snapshot_id: int) -> int | None:
        """When a snapshot was committed; None if it is not there."""
        if snapshot_id not in self._known:
            window = range(snapshot_id, min(snapshot_id + _READ_AHEAD, self._latest + 1))
            found = _find_each(self._store, window)
            times = (None if snapshot is None else snapshot.time_millis for snapshot in found)
            self._known = dict(zip(window, times, strict=True))
        return self._known[snapshot_id]


def _find_each(store: TableStore, ids: Sequence[int]) -> Iterator[Snapshot | None]:
    if store.storage.traits.is_remote:
        return store.snapshots.find_each(ids)
    return parallel_map(lambda number: _find(store, number), ids)


def _find(store: TableStore, snapshot_id: int) -> Snapshot | None:
    try:
        return store.snapshots.load(snapshot_id)
    except SnapshotNotFound:
        return None


def _check_unchanged(
    store: TableStore, first_retained: Snapshot, holders: Sequence[Holder]
) -> None:
    """Stop if the table was rolled back, or somebody new needs its files."""
    known = {holder.path for holder in holders}
    new = [path for path in tag_paths(store) if path not in known]
    if _find(store, first_retained.id) != first_retained or new:
        what = f"{new[0]} is new" if new else f"snapshot {first_retained.id} has changed"
        raise InvalidState(
            f"{what} since the expiration began, by a rollback, a tag, a branch or another "
            "expiration; nothing was deleted, run it again"
        )


def _check_changelogs(options: TableOptions) -> None:
    longer = [
        option.key
        for option, of_snapshots in (
            (CHANGELOG_RETAIN_MIN, options.value(SNAPSHOT_RETAIN_MIN)),
            (CHANGELOG_RETAIN_MAX, options.value(SNAPSHOT_RETAIN_MAX)),
            (CHANGELOG_RETAIN_MS, options.value(SNAPSHOT_RETAIN_MS)),
        )
        if _or(options.value(option), of_snapshots) > of_snapshots
    ]
    if longer:
        raise Unsupported(
            f"{', '.join(longer)}: keeping changelogs for longer than snapshots is not "
            "implemented; expire the snapshots of this table with Java, or change the option"
        )


def _or(given: int | None, default: int) -> int:
    return default if given is None else given

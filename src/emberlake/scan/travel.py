"""Which snapshot a read is of: the latest, or the one that the table's options travel to.

Spec: "Time travel (batch)".
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from emberlake.errors import InvalidOption, SnapshotNotFound, TagNotFound, Unsupported
from emberlake.options import (
    INCREMENTAL_BETWEEN,
    INCREMENTAL_BETWEEN_TIMESTAMP,
    SCAN_MODE,
    SCAN_SNAPSHOT_ID,
    SCAN_TAG_NAME,
    SCAN_TIMESTAMP,
    SCAN_TIMESTAMP_MILLIS,
    SCAN_VERSION,
    SCAN_WATERMARK,
    Option,
    TableOptions,
)
from emberlake.spec.snapshot import Snapshot
from emberlake.store.table_store import TableStore

_TRAVEL: Final[tuple[Option[Any], ...]] = (
    SCAN_SNAPSHOT_ID,
    SCAN_TAG_NAME,
    SCAN_TIMESTAMP_MILLIS,
    SCAN_TIMESTAMP,
    SCAN_VERSION,
    SCAN_WATERMARK,
)
_BATCH_MODES: Final = ("default", "full", "latest-full", "latest")
_TRAVEL_MODES: Final = (*_BATCH_MODES, "from-snapshot", "from-snapshot-full", "from-timestamp")
_FOREIGN_OPTIONS: Final = (
    "scan.file-creation-time-millis",
    "scan.creation-time-millis",
    "scan.bounded.watermark",
    "incremental-to-auto-tag",
)


@dataclass(frozen=True, slots=True)
class Between:
    """An incremental read: what came after ``start`` up to and with ``end``."""

    start: Snapshot | None  # None: from the beginning
    end: Snapshot
    is_diff: bool  # compare the two states instead of adding up the changes between them


def is_travelling(options: TableOptions) -> bool:
    """Whether the options name another snapshot than the latest."""
    return any(options.is_set(option) for option in _TRAVEL)


def is_incremental(options: TableOptions) -> bool:
    """Whether the options ask for changes between two snapshots."""
    return options.is_set(INCREMENTAL_BETWEEN) or options.is_set(INCREMENTAL_BETWEEN_TIMESTAMP)


def check_scan_options(options: TableOptions) -> None:
    """Refuse options that contradict each other or that are not supported, before any read."""
    given = [option.key for option in _TRAVEL if options.is_set(option)]
    if is_incremental(options):
        given.append("incremental-between")
    if len(given) > 1:
        raise InvalidOption(f"give one of {', '.join(given)}, not several")
    foreign = [key for key in _FOREIGN_OPTIONS if key in options]
    if foreign:
        raise Unsupported(f"the scan options {', '.join(foreign)} are not supported")
    mode = options.value(SCAN_MODE)
    allowed = _TRAVEL_MODES if given else _BATCH_MODES
    if mode not in (*allowed, "incremental" if is_incremental(options) else "default"):
        raise Unsupported(f"scan.mode={mode} is not supported for batch reads")


def travel(store: TableStore) -> Snapshot | None:
    """The snapshot to read; None when the table has none and no other was asked for."""
    options = store.options
    if (snapshot_id := options.value(SCAN_SNAPSHOT_ID)) is not None:
        return store.snapshots.load(snapshot_id)
    if (tag := options.value(SCAN_TAG_NAME)) is not None:
        return store.tags.load(tag)
    if (millis := options.value(SCAN_TIMESTAMP_MILLIS)) is not None:
        return _at(store, millis, str(millis))
    if (text := options.value(SCAN_TIMESTAMP)) is not None:
        return _at(store, _local_millis(text), text)
    if (version := options.value(SCAN_VERSION)) is not None:
        return _version(store, version)
    if (watermark := options.value(SCAN_WATERMARK)) is not None:
        return _at_watermark(store, watermark)
    return store.snapshots.latest()


def between(store: TableStore) -> Between:
    """The two ends of an incremental read."""
    options = store.options
    by_time = options.value(INCREMENTAL_BETWEEN_TIMESTAMP)
    ends = by_time or options.value(INCREMENTAL_BETWEEN)
    if len(ends) != 2:
        raise InvalidOption(
            f"incremental-between wants two ends, as in 3,7, not {','.join(ends)!r}"
        )
    start, end = (_end_by_time(store, e) if by_time else _end(store, e) for e in ends)
    if end is None:
        raise SnapshotNotFound(f"incremental-between: there is no snapshot {ends[1]!r}")
    are_tags = not by_time and not any(e.isdigit() for e in ends)
    if start is not None and start.id > end.id:
        raise InvalidOption(f"incremental-between: {ends[0]} is later than {ends[1]}")
    return Between(start, end, is_diff=are_tags)


def _at(store: TableStore, millis: int, shown: str) -> Snapshot:
    snapshot = store.snapshots.at_or_before(millis)
    if snapshot is None:
        raise SnapshotNotFound(f"there is no snapshot at or before {shown}")
    return snapshot


def _local_millis(text: str) -> int:
    try:
        return int(datetime.fromisoformat(text.strip()).astimezone().timestamp() * 1000)
    except ValueError as error:
        raise InvalidOption(f"scan.timestamp={text!r} is not a timestamp") from error


def _version(store: TableStore, version: str) -> Snapshot:
    """A tag of that name if there is one, else a watermark or a snapshot id."""
    try:
        return store.tags.load(version)
    except TagNotFound:
        if version.startswith("watermark-") and version[len("watermark-") :].isdigit():
            return _at_watermark(store, int(version[len("watermark-") :]))
        if version.isdigit():
            return store.snapshots.load(int(version))
        raise


def _at_watermark(store: TableStore, watermark: int) -> Snapshot:
    for snapshot_id in store.snapshots.list_ids():
        snapshot = store.snapshots.load(snapshot_id)
        if snapshot.watermark is not None and snapshot.watermark >= watermark:
            return snapshot
    raise SnapshotNotFound(f"there is no snapshot with a watermark of {watermark} or later")


def _end(store: TableStore, text: str) -> Snapshot | None:
    if not text.isdigit():
        return store.tags.load(text)
    snapshot_id = int(text)
    # The start may be one before the first snapshot: everything since the beginning.
    earliest = store.snapshots.earliest_id()
    if snapshot_id == (earliest or 1) - 1:
        return None
    return store.snapshots.load(snapshot_id)


def _end_by_time(store: TableStore, text: str) -> Snapshot | None:
    if not text.isdigit():
        raise InvalidOption(f"incremental-between-timestamp wants milliseconds, not {text!r}")
    return store.snapshots.at_or_before(int(text))

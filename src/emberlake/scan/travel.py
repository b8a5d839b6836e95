"""Which snapshot to read: the latest, or the one that the table's options travel to.

Spec: "Time travel (batch)".
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from emberlake.errors import InvalidOption, SnapshotNotFound, TagNotFound, Unsupported
from emberlake.options import (
    INCREMENTAL_BETWEEN,
    INCREMENTAL_BETWEEN_TIMESTAMP,
    INCREMENTAL_SCAN_MODE,
    INCREMENTAL_TAG_TO_SNAPSHOT,
    INCREMENTAL_TO_AUTO_TAG,
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
from emberlake.scan.auto_tags import tag_before, time_of
from emberlake.spec.snapshot import Snapshot
from emberlake.store.table_store import TableStore

# The values of scan.mode for a batch read, and the options that each of them uses. A mode that is
# not listed is for streams only, or not supported.
_LATEST_MODES: Final = ("default", "full", "latest-full", "latest")
_BY_SNAPSHOT: Final = (SCAN_SNAPSHOT_ID, SCAN_TAG_NAME, SCAN_VERSION, SCAN_WATERMARK)
_BY_TIME: Final = (SCAN_TIMESTAMP_MILLIS, SCAN_TIMESTAMP)
_BETWEEN: Final[tuple[Option[Any], ...]] = (
    INCREMENTAL_BETWEEN,
    INCREMENTAL_BETWEEN_TIMESTAMP,
    INCREMENTAL_TO_AUTO_TAG,
)
_MODES: Final[Mapping[str, tuple[Option[Any], ...]]] = {
    **dict.fromkeys(_LATEST_MODES, ()),
    "from-snapshot": _BY_SNAPSHOT,
    "from-snapshot-full": (SCAN_SNAPSHOT_ID,),
    "from-timestamp": _BY_TIME,
    "incremental": _BETWEEN,
}
_TRAVEL: Final[tuple[Option[Any], ...]] = (*_BY_SNAPSHOT, *_BY_TIME)
_FOREIGN_OPTIONS: Final = (
    "scan.file-creation-time-millis",
    "scan.creation-time-millis",
    "scan.bounded.watermark",
)
_WATERMARK: Final = "watermark-"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class BetweenMode(StrEnum):
    """What an incremental read reads. Values of ``incremental-between-scan-mode``."""

    DELTA = "delta"  # the files that were added
    CHANGELOG = "changelog"  # the changelog files that a producer wrote
    DIFF = "diff"  # the two states, compared


@dataclass(frozen=True, slots=True)
class Between:
    """An incremental read: what came after ``start``, up to and including ``end``."""

    start: Snapshot | None  # None: from the beginning
    end: Snapshot | None  # None: before the first snapshot, so there is nothing to read
    mode: "BetweenMode"

    @property
    def is_empty(self) -> bool:
        return self.end is None or (self.start is not None and self.start.id == self.end.id)


def is_travelling(options: TableOptions) -> bool:
    """Whether the options name a snapshot other than the latest."""
    return any(options.is_set(option) for option in _TRAVEL)


def is_incremental(options: TableOptions) -> bool:
    """Whether the options ask for changes between two snapshots."""
    return any(options.is_set(option) for option in _BETWEEN)


def travel_options(options: TableOptions) -> list[str]:
    """The given options that name one or two snapshots."""
    return [option.key for option in (*_TRAVEL, *_BETWEEN) if options.is_set(option)]


def start_millis(options: TableOptions) -> int:
    """The time that the options travel to, in milliseconds since the epoch."""
    millis = options.value(SCAN_TIMESTAMP_MILLIS)
    text = options.value(SCAN_TIMESTAMP)
    if millis is None and text is None:
        raise InvalidOption(f"give {SCAN_TIMESTAMP_MILLIS.key} or {SCAN_TIMESTAMP.key}")
    return millis if millis is not None else _local_millis(SCAN_TIMESTAMP, text or "")


def check_scan_options(options: TableOptions) -> None:
    """Refuse options that contradict each other or that are not supported, before any read."""
    given = [option for option in (*_TRAVEL, *_BETWEEN) if options.is_set(option)]
    if len(given) > 1:
        raise InvalidOption(f"give one of {', '.join(o.key for o in given)}, not several")
    foreign = [key for key in _FOREIGN_OPTIONS if key in options]
    if foreign:
        raise Unsupported(f"the scan options {', '.join(foreign)} are not supported")
    mode = options.value(SCAN_MODE)
    wanted = _MODES.get(mode)
    if wanted is None:
        raise Unsupported(
            f"scan.mode={mode} is not supported for batch reads; use {', '.join(_MODES)}"
        )
    if mode != "default" and (given or wanted) and not set(given) & set(wanted):
        choices = " or ".join(option.key for option in wanted)
        found = given[0].key if given else "none of them"
        raise InvalidOption(
            f"scan.mode={mode} works with {choices or 'no time travel option'}, not with {found}; "
            "scan.mode=default works with all"
        )


def travel(store: TableStore) -> Snapshot | None:
    """The snapshot to read; None if the table has none and the options name none."""
    options = store.options
    if (snapshot_id := options.value(SCAN_SNAPSHOT_ID)) is not None:
        return store.snapshots.load(snapshot_id)
    if (tag := options.value(SCAN_TAG_NAME)) is not None:
        return store.tags.load(tag)
    if (millis := options.value(SCAN_TIMESTAMP_MILLIS)) is not None:
        return _at(store, millis, str(millis))
    if (text := options.value(SCAN_TIMESTAMP)) is not None:
        return _at(store, _local_millis(SCAN_TIMESTAMP, text), text)
    if (version := options.value(SCAN_VERSION)) is not None:
        return _version(store, version)
    if (watermark := options.value(SCAN_WATERMARK)) is not None:
        return _at_watermark(store, watermark)
    return store.latest_snapshot()


def between(store: TableStore) -> Between:
    """The two ends of an incremental read."""
    options = store.options
    option = next(option for option in _BETWEEN if options.is_set(option))
    ends = options.value(option)
    if option is INCREMENTAL_TO_AUTO_TAG:
        return _to_auto_tag(store, ends)
    if len(ends) != 2:
        raise InvalidOption(f"{option.key} needs two ends, as in 3,7, not {options[option.key]!r}")
    mode = _between_mode(store)
    if option is INCREMENTAL_BETWEEN_TIMESTAMP:
        return _between_times(store, ends[0], ends[1], mode)
    are_ids = [_is_number(end) for end in ends]
    if all(are_ids):
        start, end = _start_by_id(store, int(ends[0])), store.snapshots.load(int(ends[1]))
    elif not any(are_ids):
        start, end = store.tags.load(ends[0]), store.tags.load(ends[1])
        # The history between tags may have expired: only their states are sure to exist.
        if not options.value(INCREMENTAL_TAG_TO_SNAPSHOT):
            mode = BetweenMode.DIFF
    else:
        raise InvalidOption(
            f"{option.key} needs two snapshot ids or two tags, not {','.join(ends)}"
        )
    if start is not None and start.id > end.id:
        raise InvalidOption(f"{option.key}: {ends[0]} is later than {ends[1]}")
    return Between(start, end, mode)


def _to_auto_tag(store: TableStore, end: str) -> Between:
    if time_of(end, store.options) is None:
        raise InvalidOption(
            f"{INCREMENTAL_TO_AUTO_TAG.key}={end!r} is not the name of a tag that is created "
            "automatically: these are times, such as 2024-12-31"
        )
    tags = store.tags.list()
    start = tag_before(end, tags, store.options)
    if end not in tags or start is None:
        return Between(None, None, BetweenMode.DIFF)  # nothing, as in Java
    return Between(store.tags.load(start), store.tags.load(end), BetweenMode.DIFF)


def _between_mode(store: TableStore) -> BetweenMode:
    mode = store.options.value(INCREMENTAL_SCAN_MODE)
    has_changelog = store.schema.profile.has_changelog
    if mode == "auto":
        return BetweenMode.CHANGELOG if has_changelog else BetweenMode.DELTA
    if mode not in list(BetweenMode) or (mode == BetweenMode.CHANGELOG and not has_changelog):
        raise Unsupported(f"incremental-between-scan-mode={mode} is not supported for this table")
    return BetweenMode(mode)


def _at(store: TableStore, millis: int, shown: str) -> Snapshot:
    snapshot = store.snapshots.at_or_before(millis)
    if snapshot is None:
        raise SnapshotNotFound(f"there is no snapshot at or before {shown}")
    return snapshot


def _local_millis(option: Option[Any], text: str) -> int:
    """Milliseconds since the epoch; text without a zone is in the zone of this machine."""
    try:
        moment = datetime.fromisoformat(text.strip()).astimezone()
    except ValueError as error:
        raise InvalidOption(f"{option.key}={text!r} is not a timestamp") from error
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def _version(store: TableStore, version: str) -> Snapshot:
    """A tag of that name if there is one, otherwise a watermark or a snapshot id."""
    try:
        return store.tags.load(version)
    except TagNotFound:
        watermark = version.removeprefix(_WATERMARK)
        if watermark != version and _is_number(watermark):
            return _at_watermark(store, int(watermark))
        if _is_number(version):
            return store.snapshots.load(int(version))
        raise


def _at_watermark(store: TableStore, watermark: int) -> Snapshot:
    snapshot = store.snapshots.at_watermark(watermark)
    if snapshot is None:
        raise SnapshotNotFound(f"there is no snapshot with a watermark of {watermark} or later")
    return snapshot


def _start_by_id(store: TableStore, snapshot_id: int) -> Snapshot | None:
    # The start may be one before the first snapshot: everything since the beginning.
    if snapshot_id == (store.snapshots.earliest_id() or 1) - 1:
        return None
    return store.snapshots.load(snapshot_id)


def _between_times(store: TableStore, first: str, last: str, mode: BetweenMode) -> Between:
    start, end = (_millis(text) for text in (first, last))
    if start > end:
        raise InvalidOption(f"incremental-between-timestamp: {first} is later than {last}")
    at_or_before = store.snapshots.at_or_before
    return Between(at_or_before(start), at_or_before(end), mode)


def _millis(text: str) -> int:
    return int(text) if _is_number(text) else _local_millis(INCREMENTAL_BETWEEN_TIMESTAMP, text)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal()

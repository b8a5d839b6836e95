"""The positions of a stream, and what lies between two of them.

A position is the snapshot to read next, whether to read its whole state or its changes, and how
many units of that were read. A unit is the smallest part that can be read alone: a file, or files
whose keys overlap. Units and their order depend only on the snapshot, so a repeated batch reads the
same rows.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from emberlake.datasource.options import ReadLimits
from emberlake.errors import InvalidInput, SnapshotNotFound
from emberlake.options import SPLIT_TARGET_SIZE
from emberlake.predicates import ALL_SHOWN
from emberlake.scan.splits import DataSplit
from emberlake.scan.stream import StreamScan
from emberlake.spec.snapshot import Snapshot
from emberlake.store.table_store import TableStore

_CACHED_PLANS: Final = 4  # a batch is measured, and planned right after


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """What to read next: a snapshot, its state or its changes, and how many units were read."""

    snapshot: int
    full: bool
    units: int = 0

    def to_json(self) -> dict[str, Any]:
        """The offset that Spark writes to its checkpoint."""
        return {"snapshot": self.snapshot, "full": self.full, "units": self.units}

    @classmethod
    def from_json(cls, offset: Mapping[str, Any]) -> "Position":
        """The position of an offset."""
        try:
            return cls(int(offset["snapshot"]), bool(offset["full"]), int(offset["units"]))
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInput(f"{offset!r} is not an offset of an emberlake stream") from error

    @property
    def after_snapshot(self) -> "Position":
        return Position(self.snapshot + 1, full=False)


@dataclass
class StreamUnits:
    """The units of a table's snapshots."""

    store: TableStore
    consumer_id: str | None = None
    _plans: dict[tuple[int, bool], tuple[DataSplit, ...]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        # The smallest possible splits, whatever the table's options say now.
        schema = self.store.schema.with_options({SPLIT_TARGET_SIZE.key: "1"})
        # Positions count units, so no rule may leave any out. Readers apply the rules to the rows.
        store = self.store.with_schema(schema).under(ALL_SHOWN)
        self._scan = StreamScan(store, consumer_id=self.consumer_id)

    def start(self) -> Position:
        """Where a new stream begins."""
        start = self._scan.start()
        if start is None:  # the table is empty: begin with its first snapshot
            return Position(1, full=True)
        return Position(start.snapshot_id, full=start.is_full)

    def latest(self) -> int:
        """The id of the newest snapshot, 0 if there is none."""
        return self.store.snapshots.latest_id() or 0

    def end_after(self, start: Position, limits: ReadLimits, latest: int) -> Position:
        """The end of a batch: everything up to ``latest``, or as much as the limits allow.

        A batch has at least one unit; otherwise the stream would never advance.
        """
        if self._load(start) is None or start.snapshot > latest:
            return start
        if limits.is_unbounded:
            return Position(latest + 1, full=False)
        position, taken = start, _Taken()
        while position.snapshot <= latest:
            for unit in self._units(position)[position.units :]:
                more = taken.plus(unit)
                if taken.files and more.exceeds(limits):
                    return position
                taken, position = more, replace(position, units=position.units + 1)
            position = position.after_snapshot
        return position

    def between(self, start: Position, end: Position) -> Iterator[DataSplit]:
        """The units from one position to another.

        Raises:
            SnapshotNotFound: a snapshot between them has expired.
        """
        position = start
        while position < end:
            is_last = (position.snapshot, position.full) == (end.snapshot, end.full)
            stop = end.units if is_last else None
            yield from self._units(position)[position.units : stop]
            position = end if is_last else position.after_snapshot

    def remember(self, end: Position) -> None:
        """Record in the table how far the consumer has come, except in the middle of a state."""
        if not end.full:
            self._scan.notify_checkpoint_complete(end.snapshot)

    def _units(self, position: Position) -> tuple[DataSplit, ...]:
        key = (position.snapshot, position.full)
        if key not in self._plans:
            while len(self._plans) >= _CACHED_PLANS:
                del self._plans[next(iter(self._plans))]
            self._plans[key] = self._plan(position)
        return self._plans[key]

    def _plan(self, position: Position) -> tuple[DataSplit, ...]:
        snapshot = self._load(position)
        if snapshot is None:
            raise SnapshotNotFound(
                f"snapshot {position.snapshot} is to be read next, but does not exist: the table "
                "was rolled back, or created again; start the stream again with a new checkpoint"
            )
        if position.full:
            return self._scan.plan_state(snapshot).splits
        changes = self._scan.plan_changes(snapshot)
        return () if changes is None else changes.splits

    def _load(self, position: Position) -> Snapshot | None:
        """The snapshot of a position; None before it is committed."""
        found = self._scan.find(position.snapshot)
        if found is not None and position.full and not self.store.snapshots.exists(found.id):
            raise SnapshotNotFound(
                f"the stream reads the state of snapshot {found.id}, which has expired meanwhile; "
                "start it again with a new checkpoint"
            )
        return found


@dataclass(frozen=True, slots=True)
class _Taken:
    """How much is in a batch."""

    files: int = 0
    rows: int = 0
    size: int = 0

    def plus(self, unit: DataSplit) -> "_Taken":
        return _Taken(
            self.files + len(unit.entries), self.rows + unit.row_count, self.size + unit.file_size
        )

    def exceeds(self, limits: ReadLimits) -> bool:
        pairs = ((self.files, limits.files), (self.rows, limits.rows), (self.size, limits.size))
        return any(most is not None and value > most for value, most in pairs)

"""Pins a DataFrame to one snapshot.

Spark creates the source of a DataFrame once and keeps it, pickled, for all of its uses; a view
keeps the source of the statement that created it. So every use reads the snapshot that the source
found when it was created. Readers cannot do this: Spark keeps the first one, but plans again for
filters.
"""

from dataclasses import dataclass

from emberlake.datasource.options import SourceOptions
from emberlake.predicates import Predicate
from emberlake.scan.plan import find_target, plan_target
from emberlake.scan.splits import DataSplit
from emberlake.scan.travel import Between
from emberlake.spark.planned import planned_files
from emberlake.spec.snapshot import Snapshot
from emberlake.store.table_store import TableStore


@dataclass(frozen=True, slots=True)
class Pin:
    """A table at one point in its history."""

    store: TableStore
    target: Snapshot | Between | None  # None if the table was empty

    @classmethod
    def now(cls, options: SourceOptions) -> "Pin":
        """The table as it is now, or at the point that the options travel to.

        Raises:
            NotFound: there is no such table, snapshot or tag.
        """
        store = options.open_table().store
        return cls(store, find_target(store))

    def plan(self, predicate: Predicate | None) -> tuple[DataSplit, ...]:
        """The splits of the pinned snapshot.

        Raises:
            SnapshotNotFound: it no longer exists.
        """
        end = self.target.end if isinstance(self.target, Between) else self.target
        with planned_files(self.store, None if end is None else end.id):
            return plan_target(self.store, self.target, predicate, None).splits

"""Maintenance that changes no row: compaction, sorting, buckets, statistics."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from emberlake import maintenance
from emberlake.commit.change import CommitResult
from emberlake.errors import ColumnNotFound
from emberlake.predicates import Predicate, bind_partition_filter
from emberlake.store.table_store import TableStore


class Upkeep:
    """Operations that rewrite files or metadata; ``Table`` inherits them."""

    store: TableStore

    if TYPE_CHECKING:

        def _check_present(self) -> None: ...

    def compact(self, full: bool = False, where: Predicate | str | None = None) -> CommitResult:  # noqa: FBT001, FBT002
        """Merge files in one commit: no row changes, but reads get faster.

        Args:
            full: Whether to merge all files of a bucket into as few as possible, and drop deleted
                rows, instead of merging only those that are due by the table's options.
            where: Which partitions: a predicate on partition columns, or text.

        Raises:
            CommitConflict: another writer compacted the same files; nothing changes.
        """
        self._check_present()
        bound = bind_partition_filter(where, self.store.schema)
        user = self.store.new_commit_user()
        return maintenance.compact.compact_table(self.store, user, full=full, where=bound)

    def sort_compact(
        self,
        order_by: Sequence[str],
        strategy: str = "zorder",
        where: Predicate | str | None = None,
    ) -> CommitResult:
        """Sort the rows of an append table in one commit: filters on the columns skip more files.

        Args:
            order_by: The columns.
            strategy: ``"order"`` sorts by the first column, then by the next; ``"zorder"`` and
                ``"hilbert"`` treat all columns alike.
            where: Which partitions: a predicate on partition columns, or text. All rows of a
                partition are in memory at once.

        Raises:
            Unsupported: the table has buckets, a primary key or data evolution.
            CommitConflict: another writer replaced the same files; nothing changes.
        """
        self._check_present()
        kind = maintenance.sort_compact.order_kind(strategy)
        bound = bind_partition_filter(where, self.store.schema)
        user = self.store.new_commit_user()
        return maintenance.sort_compact.sort_table(self.store, user, order_by, kind, bound)

    def rescale(
        self, buckets: int | None = None, where: Predicate | str | None = None
    ) -> CommitResult:
        """Rewrite rows into another number of buckets, in one commit.

        The option ``bucket`` stays as it is. Set it before the next write.

        Args:
            buckets: How many; the default is the number that the partitions have.
            where: Which partitions: a predicate on partition columns, or text.

        Raises:
            Unsupported: the table has no fixed number of buckets.
            CommitConflict: rows changed meanwhile; nothing changes.
        """
        self._check_present()
        bound = bind_partition_filter(where, self.store.schema)
        user = self.store.new_commit_user()
        return maintenance.rescale.rescale_table(self.store, user, buckets, bound)

    def compact_manifests(self) -> CommitResult:
        """Merge all manifests into as few as possible, in one commit; data stays as it is."""
        self._check_present()
        user = self.store.new_commit_user()
        return maintenance.manifests.compact_manifests(self.store, user)

    def analyze(self, columns: Sequence[str] = ()) -> CommitResult:
        """Count the rows, compute statistics of columns, and commit them (``$statistics``).

        Args:
            columns: The columns.

        Raises:
            ColumnNotFound: there is no such column.
            Unsupported: the column has a type without statistics.
        """
        self._check_present()
        unknown = [name for name in columns if name not in self.store.schema.field_by_name]
        if unknown:
            raise ColumnNotFound(f"there is no column {unknown[0]}", column=unknown[0])
        user = self.store.new_commit_user()
        return maintenance.analyze.analyze_table(self.store, user, columns)

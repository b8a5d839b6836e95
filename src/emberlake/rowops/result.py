"""What an operation on rows did, and the ways in which tables let rows be changed."""

from dataclasses import dataclass, fields
from enum import StrEnum

from emberlake.commit.change import CommitResult
from emberlake.spec.schema import TableSchema


class Strategy(StrEnum):
    """How rows change. The table decides it, not the caller."""

    VECTORS = "vectors"  # rows are marked as deleted; new versions of them are appended
    REWRITE = "rewrite"  # the files that have such rows are written again
    COLUMNS = "columns"  # new values are written beside the files; deleted rows are marked
    KEYS = "keys"  # a record with the key of a row takes its place


def strategy_of(schema: TableSchema) -> Strategy:
    """How rows of a table change."""
    profile = schema.profile
    if profile.has_keys:
        return Strategy.KEYS
    if profile.evolves_data:
        return Strategy.COLUMNS
    return Strategy.VECTORS if profile.has_deletion_vectors else Strategy.REWRITE


@dataclass(frozen=True, kw_only=True, repr=False)
class WriteResult(CommitResult):
    """What a write of rows did."""

    rows_rejected: int = 0  # that did not fit: skipped, or in quarantine

    @staticmethod
    def of(done: CommitResult, rows_rejected: int = 0) -> "WriteResult":
        """A commit, and how many rows were not in it."""
        counts = {f.name: getattr(done, f.name) for f in fields(CommitResult)}
        return WriteResult(**counts, rows_rejected=rows_rejected)


@dataclass(frozen=True, kw_only=True, repr=False)
class RowChangeResult(WriteResult):
    """What an operation on rows did; ``snapshot_id`` is None if it changed no row.

    ``rows_inserted``, ``rows_updated`` and ``rows_deleted`` count rows as a reader sees them, and
    ``rows_copied`` those that were written again unchanged. ``rows_added``, the files and the bytes
    count what was written and removed.
    """

    rows_inserted: int = 0
    rows_updated: int = 0
    rows_copied: int = 0
    files_marked: int = 0
    strategy: Strategy = Strategy.REWRITE

    @property
    def files_removed(self) -> int:
        """The same as ``files_deleted``."""
        return self.files_deleted


@dataclass(frozen=True, kw_only=True)
class Tally:
    """Counts of rows and files, of one file or of a whole operation."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    copied: int = 0
    marked: int = 0

    def __add__(self, other: "Tally") -> "Tally":
        names = [f.name for f in fields(self)]
        return Tally(**{name: getattr(self, name) + getattr(other, name) for name in names})

    @property
    def changes_nothing(self) -> bool:
        return not (self.inserted or self.updated or self.deleted)

    def result(self, strategy: Strategy, committed: CommitResult | None) -> RowChangeResult:
        """The counts as the result of an operation; None: nothing was committed."""
        known = {} if committed is None else committed.to_dict()
        known = {"snapshot_id": None, **known, "rows_deleted": self.deleted}
        return RowChangeResult(
            **known,
            rows_inserted=self.inserted,
            rows_updated=self.updated,
            rows_copied=self.copied,
            files_marked=self.marked,
            strategy=strategy,
        )

"""The short forms of a table: one call is one read, or one commit.

The builders are for programs in which many processes write for one commit or read one plan.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from emberlake.commit.change import CommitResult
from emberlake.predicates import Predicate, columns_of
from emberlake.read.key_read import may_retract
from emberlake.read.short_reads import ShortReads
from emberlake.rowops.keys import delete_keys, upsert
from emberlake.rowops.write import write_rows
from emberlake.scan.splits import DataSplit
from emberlake.spec.replacement import Replacement
from emberlake.store.table_store import TableStore
from emberlake.table.read_builder import ReadBuilder
from emberlake.table.write_builder import BatchWriteBuilder, session_of


class ShortForms(ShortReads):
    """What a table can do in one call; ``Table`` inherits it."""

    store: TableStore

    if TYPE_CHECKING:

        def new_read_builder(self) -> ReadBuilder: ...
        def new_batch_write_builder(self) -> BatchWriteBuilder: ...

    # --- writing ----------------------------------------------------------------------------------

    def append(self, data: object) -> CommitResult:
        """Add rows, in one commit.

        In a table with a primary key, a row replaces or merges with the row that has its key.

        Args:
            data: An Arrow table or batch, a pandas or Polars DataFrame, or anything with
                ``__arrow_c_stream__``; its columns are found by name.

        Raises:
            DataMismatch: listing every column that does not fit; nothing was written.
            CommitConflict: a concurrent change makes the commit wrong; nothing changes, unless
                the error says that a snapshot stands.
        """
        return write_rows(session_of(self.new_batch_write_builder()), data)

    def upsert(self, data: object, on: Sequence[str] | None = None) -> CommitResult:
        """Replace the rows that have the same keys, and add the others, in one commit.

        Args:
            data: As for ``append``.
            on: The columns that identify a row: the primary key. It can be left out.

        Raises:
            Unsupported: the table has no primary key.
        """
        return upsert(session_of(self.new_batch_write_builder()), data, on)

    def overwrite(
        self, data: object, partition: Mapping[str, object] | None = None
    ) -> CommitResult:
        """Replace existing rows, in one commit.

        Args:
            data: As for ``append``.
            partition: What is replaced: by default the partitions of the new rows, or the whole
                table if it has no partitions; ``{"dt": "2026-06-26"}`` all partitions that match,
                even if there are no new rows; ``{}`` the whole table.

        Raises:
            DataMismatch: rows that do not fit the table, or outside of ``partition``.
        """
        schema = self.store.schema
        if partition is not None:
            replaced = Replacement.static(schema, partition)
        elif schema.partition_keys:
            replaced = Replacement.dynamic(schema)
        else:
            replaced = Replacement.whole_table(schema)
        builder = self.new_batch_write_builder().overwrite(replaced)
        return write_rows(session_of(builder), data)

    def delete_keys(self, data: object) -> CommitResult:
        """Delete the rows that have these keys, in one commit; unknown keys delete nothing.

        Args:
            data: The primary key of every row to delete, its partition, and the column that orders
                records (``sequence.field``). Columns that the table does not have are ignored.

        Raises:
            Unsupported: the table has no primary key, or a delete does not remove its row.
        """
        return delete_keys(session_of(self.new_batch_write_builder()), data)

    # --- reading ----------------------------------------------------------------------------------

    def count(self, filter: Predicate | str | None = None) -> int:  # noqa: A002
        """The number of rows, or of those that match.

        Metadata answers it for files whose rows need no merging and match all or not at all. The
        other files are read.
        """
        builder = self.new_read_builder().with_filter(filter)
        scan = builder.new_scan()
        splits = scan.plan().splits()
        has_keys = self.store.schema.profile.has_keys
        told = [_told_rows(split, has_keys=has_keys) for split in splits]
        unknown = [split for split, rows in zip(splits, told, strict=True) if rows is None]
        counted = sum(rows for rows in told if rows is not None)
        if not unknown:
            return counted
        # One column is enough, and those of the filter must be read anyway.
        asked = sorted(columns_of(scan.predicate)) if scan.predicate else []
        names = asked or list(self.store.schema.field_names)
        batches = builder.with_projection(names[:1]).new_read().to_arrow_batch_reader(unknown)
        rows: int = sum(batch.num_rows for batch in batches)
        return counted + rows


def _told_rows(split: DataSplit, *, has_keys: bool) -> int | None:
    """The number of rows of a split, if metadata tells it."""
    if not all(split.is_exact) or (has_keys and any(map(may_retract, split.files))):
        return None
    return split.merged_row_count()

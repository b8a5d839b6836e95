"""The short forms of a table: one call is one read, or one commit.

The builders are for programs in which many processes write for one commit or read one plan.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from emberlake.base.extras import load_extra
from emberlake.commit.change import CommitResult
from emberlake.errors import InvalidInput
from emberlake.options import SCAN_SNAPSHOT_ID, SCAN_TAG_NAME
from emberlake.predicates import Predicate, columns_of
from emberlake.read.key_read import may_retract
from emberlake.rowops.keys import delete_keys, upsert
from emberlake.rowops.write import write_rows
from emberlake.scan.splits import DataSplit
from emberlake.spec.replacement import Replacement
from emberlake.store.table_store import TableStore
from emberlake.table.read_builder import ReadBuilder
from emberlake.table.write_builder import BatchWriteBuilder, session_of

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl


class ShortForms:
    """What a table can do in one call; ``Table`` inherits it."""

    store: TableStore

    if TYPE_CHECKING:

        def new_read_builder(self) -> ReadBuilder: ...
        def new_batch_write_builder(self) -> BatchWriteBuilder: ...
        def copy(self, options: Mapping[str, object]) -> "ShortForms": ...

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

    def to_arrow(
        self,
        columns: Sequence[str] | None = None,
        filter: Predicate | str | None = None,  # noqa: A002
        limit: int | None = None,
        snapshot: int | None = None,
        tag: str | None = None,
    ) -> pa.Table:
        """The rows as an Arrow table.

        Args:
            columns: Only these columns, or fields of ROW columns (``"s.x"``, returned as ``s_x``).
            filter: Only rows that match: text such as ``"city = 'paris'"``, or a predicate.
            limit: At most this many rows, whichever come first.
            snapshot: The table as it was at that snapshot.
            tag: The table as it was when that tag was made.

        Raises:
            ColumnNotFound, InvalidPredicate: the table has no such column.
            SnapshotNotFound, TagNotFound: there is no such snapshot or tag.
        """
        builder, splits = self._planned(columns, filter, limit, snapshot, tag)
        return builder.new_read().to_arrow(splits)

    def to_batches(
        self,
        columns: Sequence[str] | None = None,
        filter: Predicate | str | None = None,  # noqa: A002
        limit: int | None = None,
        snapshot: int | None = None,
        tag: str | None = None,
    ) -> pa.RecordBatchReader:
        """The rows of ``to_arrow`` as a stream; memory does not grow with their number."""
        builder, splits = self._planned(columns, filter, limit, snapshot, tag)
        return builder.new_read().to_arrow_batch_reader(splits)

    def to_pandas(
        self,
        columns: Sequence[str] | None = None,
        filter: Predicate | str | None = None,  # noqa: A002
        limit: int | None = None,
        snapshot: int | None = None,
        tag: str | None = None,
    ) -> "pd.DataFrame":
        """The rows of ``to_arrow`` as a pandas DataFrame."""
        builder, splits = self._planned(columns, filter, limit, snapshot, tag)
        return builder.new_read().to_pandas(splits)

    def to_polars(
        self,
        columns: Sequence[str] | None = None,
        filter: Predicate | str | None = None,  # noqa: A002
        limit: int | None = None,
        snapshot: int | None = None,
        tag: str | None = None,
    ) -> "pl.DataFrame":
        """The rows of ``to_arrow`` as a Polars DataFrame."""
        builder, splits = self._planned(columns, filter, limit, snapshot, tag)
        return builder.new_read().to_polars(splits)

    def to_duckdb(
        self,
        columns: Sequence[str] | None = None,
        filter: Predicate | str | None = None,  # noqa: A002
        limit: int | None = None,
        snapshot: int | None = None,
        tag: str | None = None,
    ) -> "duckdb.DuckDBPyRelation":
        """The rows of ``to_arrow`` as a relation of DuckDB's default connection."""
        library = load_extra("duckdb", extra="duckdb")
        rows = self.to_arrow(columns, filter, limit, snapshot, tag)
        relation: duckdb.DuckDBPyRelation = library.from_arrow(rows)
        return relation

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

    def _planned(
        self,
        columns: Sequence[str] | None,
        filter: Predicate | str | None,  # noqa: A002
        limit: int | None,
        snapshot: int | None,
        tag: str | None,
    ) -> tuple[ReadBuilder, list[DataSplit]]:
        if snapshot is not None and tag is not None:
            raise InvalidInput("a read is of one state: give snapshot or tag, not both")
        asked = {SCAN_SNAPSHOT_ID.key: snapshot, SCAN_TAG_NAME.key: tag}
        travel = {key: value for key, value in asked.items() if value is not None}
        table = self.copy(travel) if travel else self
        builder = table.new_read_builder().with_filter(filter).with_projection(columns)
        builder.with_limit(limit)
        return builder, builder.new_scan().plan().splits()


def _told_rows(split: DataSplit, *, has_keys: bool) -> int | None:
    """The number of rows of a split, if metadata tells it."""
    if not all(split.is_exact) or (has_keys and any(map(may_retract, split.files))):
        return None
    return split.merged_row_count()

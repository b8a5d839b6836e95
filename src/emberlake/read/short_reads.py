"""Reads in one call, of anything that has a read builder: tables and system tables."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self

import pyarrow as pa

from emberlake.base.extras import load_extra
from emberlake.errors import InvalidInput
from emberlake.options import SCAN_SNAPSHOT_ID, SCAN_TAG_NAME
from emberlake.predicates import Predicate

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl


class _ReadBuilder(Protocol):
    """Collects what to read; its scan makes the splits that its read takes."""

    def with_filter(self, predicate: Predicate | str | None) -> Self: ...

    def with_projection(self, projection: Sequence[str] | None) -> Self: ...

    def with_limit(self, limit: int | None) -> Self: ...

    def new_scan(self) -> Any: ...

    def new_read(self) -> Any: ...


class ShortReads:
    """What can be read in one call; ``Table`` and ``SystemTable`` inherit it."""

    if TYPE_CHECKING:

        def new_read_builder(self) -> _ReadBuilder: ...
        def copy(self, options: Mapping[str, str]) -> "ShortReads": ...

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
        read, splits = self._planned(columns, filter, limit, snapshot, tag)
        return read.to_arrow(splits)

    def to_batches(
        self,
        columns: Sequence[str] | None = None,
        filter: Predicate | str | None = None,  # noqa: A002
        limit: int | None = None,
        snapshot: int | None = None,
        tag: str | None = None,
    ) -> pa.RecordBatchReader:
        """The rows of ``to_arrow`` as a stream; memory does not grow with their number."""
        read, splits = self._planned(columns, filter, limit, snapshot, tag)
        return read.to_arrow_batch_reader(splits)

    def to_pandas(
        self,
        columns: Sequence[str] | None = None,
        filter: Predicate | str | None = None,  # noqa: A002
        limit: int | None = None,
        snapshot: int | None = None,
        tag: str | None = None,
    ) -> "pd.DataFrame":
        """The rows of ``to_arrow`` as a pandas DataFrame."""
        read, splits = self._planned(columns, filter, limit, snapshot, tag)
        rows: pd.DataFrame = read.to_pandas(splits)
        return rows

    def to_polars(
        self,
        columns: Sequence[str] | None = None,
        filter: Predicate | str | None = None,  # noqa: A002
        limit: int | None = None,
        snapshot: int | None = None,
        tag: str | None = None,
    ) -> "pl.DataFrame":
        """The rows of ``to_arrow`` as a Polars DataFrame."""
        read, splits = self._planned(columns, filter, limit, snapshot, tag)
        rows: pl.DataFrame = read.to_polars(splits)
        return rows

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

    def _planned(
        self,
        columns: Sequence[str] | None,
        filter: Predicate | str | None,  # noqa: A002
        limit: int | None,
        snapshot: int | None,
        tag: str | None,
    ) -> tuple[Any, Any]:
        """A read, and its splits."""
        if snapshot is not None and tag is not None:
            raise InvalidInput("a read is of one state: give snapshot or tag, not both")
        asked = {SCAN_SNAPSHOT_ID.key: snapshot, SCAN_TAG_NAME.key: tag}
        travel = {key: str(value) for key, value in asked.items() if value is not None}
        table = self.copy(travel) if travel else self
        builder = table.new_read_builder().with_filter(filter).with_projection(columns)
        splits = builder.with_limit(limit).new_scan().plan().splits()
        return builder.new_read(), splits

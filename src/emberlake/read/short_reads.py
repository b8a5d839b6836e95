"""Reads in one call, of anything that has a read builder: tables and system tables."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from emberlake.errors import InvalidInput
from emberlake.options import SCAN_SNAPSHOT_ID, SCAN_TAG_NAME
from emberlake.predicates import Predicate
from emberlake.read.scan import ReadSteps, Scan
from emberlake.spec.identifier import Identifier

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl


class ShortReads:
    """What can be read in one call; ``Table`` and ``SystemTable`` inherit it."""

    if TYPE_CHECKING:

        @property
        def identifier(self) -> Identifier: ...
        def new_read_builder(self) -> ReadSteps: ...
        def copy(self, options: Mapping[str, str]) -> "ShortReads": ...

    def scan(
        self,
        columns: Sequence[str] | None = None,
        filter: Predicate | str | None = None,  # noqa: A002
        limit: int | None = None,
        snapshot: int | None = None,
        tag: str | None = None,
    ) -> Scan[Any]:
        """Say what to read, for libraries that take Arrow streams: DuckDB, Polars, pandas 3.

        Nothing is read before they ask; each read returns the rows of that time. The arguments
        are those of ``to_arrow``.
        """
        builder = self._reading(columns, filter, limit, snapshot, tag)
        return Scan(str(self.identifier), builder, asked_for(columns, filter, limit, snapshot, tag))

    def __arrow_c_schema__(self) -> object:
        return self.scan().__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.scan().__arrow_c_stream__(requested_schema)

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
        return self.scan(columns, filter, limit, snapshot, tag).to_arrow()

    def to_batches(
        self,
        columns: Sequence[str] | None = None,
        filter: Predicate | str | None = None,  # noqa: A002
        limit: int | None = None,
        snapshot: int | None = None,
        tag: str | None = None,
    ) -> pa.RecordBatchReader:
        """The rows of ``to_arrow`` as a stream; memory does not grow with their number."""
        return self.scan(columns, filter, limit, snapshot, tag).to_batches()

    def to_pandas(
        self,
        columns: Sequence[str] | None = None,
        filter: Predicate | str | None = None,  # noqa: A002
        limit: int | None = None,
        snapshot: int | None = None,
        tag: str | None = None,
    ) -> "pd.DataFrame":
        """The rows of ``to_arrow`` as a pandas DataFrame."""
        return self.scan(columns, filter, limit, snapshot, tag).to_pandas()

    def to_polars(
        self,
        columns: Sequence[str] | None = None,
        filter: Predicate | str | None = None,  # noqa: A002
        limit: int | None = None,
        snapshot: int | None = None,
        tag: str | None = None,
    ) -> "pl.DataFrame":
        """The rows of ``to_arrow`` as a Polars DataFrame."""
        return self.scan(columns, filter, limit, snapshot, tag).to_polars()

    def to_duckdb(
        self,
        columns: Sequence[str] | None = None,
        filter: Predicate | str | None = None,  # noqa: A002
        limit: int | None = None,
        snapshot: int | None = None,
        tag: str | None = None,
    ) -> "duckdb.DuckDBPyRelation":
        """The rows of ``to_arrow`` as a relation of DuckDB's default connection."""
        return self.scan(columns, filter, limit, snapshot, tag).to_duckdb()

    def _reading(
        self,
        columns: Sequence[str] | None,
        filter: Predicate | str | None,  # noqa: A002
        limit: int | None,
        snapshot: int | None,
        tag: str | None,
    ) -> Any:
        """A builder for the given arguments."""
        if snapshot is not None and tag is not None:
            raise InvalidInput("a read is of one state: give snapshot or tag, not both")
        asked = {SCAN_SNAPSHOT_ID.key: snapshot, SCAN_TAG_NAME.key: tag}
        travel = {key: str(value) for key, value in asked.items() if value is not None}
        table = self.copy(travel) if travel else self
        builder = table.new_read_builder().with_filter(filter).with_projection(columns)
        return builder.with_limit(limit)


def asked_for(
    columns: Sequence[str] | None,
    filter: Predicate | str | None,  # noqa: A002
    limit: int | None,
    snapshot: int | None,
    tag: str | None,
) -> dict[str, object]:
    """The arguments of a read that were given, to show them."""
    asked: dict[str, object] = {
        "columns": None if columns is None else list(columns),
        "filter": None if filter is None else str(filter),
        "limit": limit,
        "snapshot": snapshot,
        "tag": tag,
    }
    return {name: value for name, value in asked.items() if value is not None}

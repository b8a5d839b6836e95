"""The rows of a statement: read when they are asked for, in the form that is asked for."""

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from emberlake.base.extras import load_extra
from emberlake.base.html import html_box, html_note, html_table

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

_SHOWN_ROWS = 20


class SqlResult:
    """Rows of a query, or the answer of a statement.

    It is an Arrow stream for every library that takes one (``__arrow_c_stream__``). A query runs
    each time its rows are asked for, always on the snapshots that its tables had when it was made.
    """

    def __init__(
        self, find_schema: Callable[[], pa.Schema], open_stream: Callable[[], pa.RecordBatchReader]
    ) -> None:
        self._find_schema = find_schema
        self._open = open_stream

    @staticmethod
    def of_table(rows: pa.Table) -> "SqlResult":
        """A result whose rows are there already."""
        return SqlResult(lambda: rows.schema, rows.to_reader)

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns; no row is read."""
        return self._find_schema()

    @property
    def column_names(self) -> list[str]:
        return list(self.schema.names)

    def to_batches(self) -> pa.RecordBatchReader:
        """The rows as a stream; memory does not grow with their number."""
        return self._open()

    def first(self, count: int) -> pa.RecordBatchReader:
        """At most ``count`` rows; the others are not computed where that can be avoided."""
        return pa.RecordBatchReader.from_batches(self.schema, _first(self._open(), count))

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table."""
        return self._open().read_all()

    def to_pandas(self) -> "pd.DataFrame":
        """The rows as a pandas DataFrame."""
        load_extra("pandas", extra="pandas")
        rows: pd.DataFrame = self.to_arrow().to_pandas()
        return rows

    def to_polars(self) -> "pl.DataFrame":
        """The rows as a Polars DataFrame."""
        rows: pl.DataFrame = load_extra("polars", extra="polars").from_arrow(self.to_arrow())
        return rows

    def fetchall(self) -> list[tuple[Any, ...]]:
        """The rows as Python tuples."""
        table = self.to_arrow()
        return list(zip(*(column.to_pylist() for column in table.columns), strict=True))

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._open().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return _as_text(*self._shown())

    def _repr_html_(self) -> str:
        names, rows, has_more = self._shown()
        more = html_note(f"the first {len(rows)} rows") if has_more else ""
        return html_box(html_table(names, rows), more)

    def _shown(self) -> tuple[list[str], list[tuple[str, ...]], bool]:
        rows: list[tuple[str, ...]] = []
        for batch in self.first(_SHOWN_ROWS + 1):
            columns = [[_cell(value) for value in column.to_pylist()] for column in batch.columns]
            rows += zip(*columns, strict=True)
        return self.column_names, rows[:_SHOWN_ROWS], len(rows) > _SHOWN_ROWS


def _first(stream: pa.RecordBatchReader, count: int) -> Iterator[pa.RecordBatch]:
    """The first rows of a stream, which is closed afterwards."""
    with stream:
        while count > 0 and (batch := next(stream, None)) is not None:
            yield batch.slice(0, count)
            count -= batch.num_rows


def _cell(value: object) -> str:
    return "NULL" if value is None else str(value)


def _as_text(names: list[str], rows: list[tuple[str, ...]], has_more: bool) -> str:  # noqa: FBT001
    if not names:
        return "SqlResult()"
    widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
    line = "+" + "+".join("-" * (width + 2) for width in widths) + "+"

    def shown(row: tuple[str, ...] | list[str]) -> str:
        return "|" + "|".join(f" {c:<{w}} " for c, w in zip(row, widths, strict=True)) + "|"

    lines = [line, shown(names), line, *map(shown, rows), line]
    if has_more:
        lines.append(f"first {len(rows)} rows")
    return "\n".join(lines)

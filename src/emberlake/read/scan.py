"""A read that has not begun: which columns and rows of a table.

It has the protocol that Arrow libraries share (``__arrow_c_stream__``), so that DuckDB, Polars,
pandas 3 and others take it as it is. Each time it is read, it plans again and reads the current
state of the table, in batches.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar

import pyarrow as pa

from emberlake.base.extras import load_extra
from emberlake.base.html import html_box, html_facts, html_title
from emberlake.base.names import listed
from emberlake.predicates import Predicate
from emberlake.types import DataField, arrow_schema

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl


class ReadSteps(Protocol):
    """A read builder: its scan makes the splits that its read takes."""

    def with_filter(self, predicate: Predicate | str | None) -> Self: ...

    def with_projection(self, projection: Sequence[str] | None) -> Self: ...

    def with_limit(self, limit: int | None) -> Self: ...

    def read_type(self) -> list[DataField]: ...

    def new_scan(self) -> Any: ...

    def new_read(self) -> Any: ...


Steps = TypeVar("Steps", bound=ReadSteps)


@dataclass(frozen=True, eq=False, repr=False)
class Scan(Generic[Steps]):
    """Columns and rows of a table; ``table.scan(...)`` makes it. It holds no data."""

    name: str
    _builder: Steps
    _asked: Mapping[str, object] = field(default_factory=dict)

    @property
    def schema(self) -> pa.Schema:
        """The columns, as Arrow types."""
        return arrow_schema(tuple(self._builder.read_type()))

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_batches().__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table."""
        return self._builder.new_read().to_arrow(self._splits())

    def to_batches(self) -> pa.RecordBatchReader:
        """The rows as a stream; memory does not grow with their number."""
        return self._builder.new_read().to_arrow_batch_reader(self._splits())

    def to_pandas(self) -> "pd.DataFrame":
        """The rows as a pandas DataFrame."""
        rows: pd.DataFrame = self._builder.new_read().to_pandas(self._splits())
        return rows

    def to_polars(self) -> "pl.DataFrame":
        """The rows as a Polars DataFrame."""
        rows: pl.DataFrame = self._builder.new_read().to_polars(self._splits())
        return rows

    def to_duckdb(self) -> "duckdb.DuckDBPyRelation":
        """The rows as a relation of DuckDB's default connection."""
        library = load_extra("duckdb", extra="duckdb")
        relation: duckdb.DuckDBPyRelation = library.from_arrow(self.to_arrow())
        return relation

    def _splits(self) -> Any:
        return self._builder.new_scan().plan().splits()

    def __repr__(self) -> str:
        asked = "".join(f", {key}={value!r}" for key, value in self._asked.items())
        return f"{type(self).__name__}({self.name}{asked})"

    def _repr_html_(self) -> str:
        names = [column.name for column in self._builder.read_type()]
        facts = {"columns": listed(names, 20), **self._asked}
        return html_box(html_title(f"Scan of {self.name}"), html_facts(facts))

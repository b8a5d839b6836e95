"""What the manifest says about a data file of an append table, collected while it is written."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from emberlake.formats.parquet_footer import Chunk, Layout
from emberlake.formats.parquet_parts import RowGroup
from emberlake.options import STATS_DENSE_STORE
from emberlake.spec.key_value import SEQUENCE
from emberlake.spec.manifest import DataFile
from emberlake.spec.stats import ColumnStats, StatsCollector, column_stats_modes
from emberlake.store.table_store import TableStore
from emberlake.types import DataField


class AppendRecord:
    """Statistics of columns, and the numbers that order or date the rows.

    Args:
        store: The table.
        fields: The columns of the file.
        counter: Numbers rows, in tables that count them.
    """

    def __init__(
        self, store: TableStore, fields: tuple[DataField, ...], counter: "RowCounter"
    ) -> None:
        self._store = store
        self._fields = fields
        self._stats = StatsCollector(fields, column_stats_modes(fields, store.options))
        self._numbers: FileNumbers = CountedRows(counter)
        if store.schema.profile.tracks_rows:
            has_own = any(f.name == SEQUENCE for f in fields)
            self._numbers = DatedRows() if has_own else NewRows()

    def update(self, rows: pa.Table) -> None:
        self._stats.update(rows)
        self._numbers.update(rows)

    def update_column(self, name: str, values: pa.ChunkedArray) -> None:
        """Record values of one column; several threads may record one column each."""
        self._stats.update_column(name, values)
        if name == SEQUENCE:
            self._numbers.update(pa.table([values], [name]))

    def adopt(self, name: str, known: ColumnStats) -> None:
        """Record values of one column that are known only by their statistics."""
        self._stats.adopt(name, known)

    def describe(self, name: str, file_size: int, row_count: int) -> DataFile:
        store = self._store
        low, high = self._numbers.bounds(row_count)
        stats, stats_columns = self._stats.finish(dense=store.options.value(STATS_DENSE_STORE))
        is_whole = self._fields == store.schema.fields
        return DataFile(
            file_name=name,
            file_size=file_size,
            row_count=row_count,
            value_stats=stats,
            value_stats_cols=stats_columns,
            min_sequence_number=low,
            max_sequence_number=high,
            schema_id=store.schema.id,
            creation_time=store.env.local_now_ms(),
            write_cols=None if is_whole else tuple(f.name for f in self._fields),
        )


class RowCounter(Protocol):
    """Knows the number of the next row of its bucket."""

    next_sequence: int


class FileNumbers(Protocol):
    """Finds the least and the greatest sequence number of a file."""

    def update(self, rows: pa.Table) -> None: ...

    def bounds(self, row_count: int) -> tuple[int, int]: ...


@dataclass
class CountedRows:
    """Rows are numbered in the order in which they come to their bucket."""

    counter: RowCounter

    def update(self, rows: pa.Table) -> None:
        pass

    def bounds(self, row_count: int) -> tuple[int, int]:
        first = self.counter.next_sequence
        self.counter.next_sequence += row_count
        return first, first + row_count - 1


class NewRows:
    """Rows get the number of the snapshot, which the commit puts in the place of 0."""

    def update(self, rows: pa.Table) -> None:
        pass

    def bounds(self, row_count: int) -> tuple[int, int]:
        del row_count
        return 0, 0


class DatedRows:
    """Rows keep the number of the snapshot that last changed them; null: this commit does."""

    def __init__(self) -> None:
        self._known: list[tuple[int, int]] = []
        self._has_null = False

    def update(self, rows: pa.Table) -> None:
        found = pc.min_max(rows.column(SEQUENCE))
        self._has_null |= bool(rows.column(SEQUENCE).null_count)
        if found["min"].is_valid:
            self._known.append((found["min"].as_py(), found["max"].as_py()))

    def bounds(self, row_count: int) -> tuple[int, int]:
        del row_count
        low = min((low for low, _ in self._known), default=0)
        high = max((high for _, high in self._known), default=0)
        return low, 0 if self._has_null else high


class EditedRows(RowGroup, Protocol):
    """A row group of a file that takes the place of another one."""

    def known(self, field: DataField) -> ColumnStats | None:
        """The statistics of a column that may be copied as it is encoded; None: it may not."""


@dataclass(frozen=True)
class Recorded:
    """A row group whose columns are recorded when they are written."""

    rows: EditedRows
    record: AppendRecord

    @property
    def num_rows(self) -> int:
        return self.rows.num_rows

    def encoded(self, field: DataField, layout: Layout) -> Sequence[Chunk] | None:
        """The chunks of a column that is copied."""
        known = self.rows.known(field)
        chunks = None if known is None else self.rows.encoded(field, layout)
        if known is not None and chunks is not None:
            self.record.adopt(field.name, known)
        return chunks

    def column(self, field: DataField) -> pa.ChunkedArray:
        """The values of a column that is encoded."""
        values = self.rows.column(field)
        self.record.update_column(field.name, values)
        return values

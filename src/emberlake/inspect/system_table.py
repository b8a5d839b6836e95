"""System tables as users see them: the read side of a data table, over metadata.

A system table is planned and read like a data table. Its ``SystemTableKind`` says what it holds:
its columns, and functions that make a column on demand, so that a projection or a filter pays only
for the columns that it names.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn, TypeAlias

import pyarrow as pa

from emberlake.base.extras import load_extra
from emberlake.base.html import html_box, html_title
from emberlake.base.names import choices, listed
from emberlake.base.row import Row, iter_rows
from emberlake.errors import ColumnNotFound, InvalidInput, Unsupported
from emberlake.expressions.filters import parse_filter
from emberlake.expressions.query_auth import seeing_all
from emberlake.options import TableOptions
from emberlake.predicates import (
    Predicate,
    PredicateBuilder,
    columns_of,
    filter_rows,
)
from emberlake.read.short_reads import ShortReads
from emberlake.scan.travel import check_scan_options, travel
from emberlake.spec.identifier import Identifier
from emberlake.spec.schema_text import schema_html
from emberlake.spec.snapshot import Snapshot
from emberlake.store.table_store import TableStore
from emberlake.types import DataField, RowType, arrow_schema

LazyColumns: TypeAlias = Mapping[str, Callable[[], pa.Array]]
LoadColumns: TypeAlias = Callable[[TableStore, Snapshot | None], LazyColumns]


@dataclass(frozen=True)
class SystemTableKind:
    """One kind of system table: its name after the ``$``, and its columns.

    ``load`` gets the table's metadata and the snapshot to describe (None if the table has none)
    and returns a function for each column that makes it.
    """

    name: str
    fields: tuple[DataField, ...]
    primary_keys: tuple[str, ...]
    load: LoadColumns
    tells_values: bool = True  # of the rows, or which rows there are: partitions, keys, statistics


@dataclass(frozen=True, eq=False)
class SystemTable(ShortReads):
    """A read-only table over the metadata of a data table: ``db.t$snapshots``."""

    kind: SystemTableKind
    identifier: Identifier
    store: TableStore

    @property
    def name(self) -> str:
        return self.kind.name

    @property
    def fields(self) -> list[DataField]:
        return list(self.kind.fields)

    @property
    def field_names(self) -> list[str]:
        return [field.name for field in self.kind.fields]

    def row_type(self) -> RowType:
        """The columns as one type."""
        return RowType(False, self.kind.fields)

    @property
    def primary_keys(self) -> list[str]:
        return list(self.kind.primary_keys)

    @property
    def partition_keys(self) -> list[str]:
        return []

    @property
    def options(self) -> TableOptions:
        """The options of the data table."""
        return self.store.options

    def copy(self, options: Mapping[str, str | None]) -> "SystemTable":
        """The same table with other options, such as ``scan.snapshot-id`` or ``scan.tag-name``."""
        store = self.store.with_schema(self.store.schema.with_options(options))
        check_scan_options(store.options)
        travel(store)  # a snapshot or tag that does not exist is an error at once
        return replace(self, store=store)

    def new_read_builder(self) -> "SystemReadBuilder":
        """A builder for a read, which takes a filter, columns and a limit."""
        return SystemReadBuilder(self)

    def count(self, filter: Predicate | str | None = None) -> int:  # noqa: A002
        """The number of rows, or of those that match."""
        return len(self.to_arrow(self.field_names[:1], filter))

    def new_stream_read_builder(self) -> NoReturn:
        """Not supported: metadata has no changes to follow."""
        raise Unsupported(f"{self.identifier} cannot be followed; follow its table")

    def new_batch_write_builder(self) -> NoReturn:
        """Not supported: the content of a system table is written with its table."""
        raise Unsupported(f"{self.identifier} is read-only; write to its table")

    def new_stream_write_builder(self) -> NoReturn:
        """Not supported: the content of a system table is written with its table."""
        raise Unsupported(f"{self.identifier} is read-only; write to its table")

    def __repr__(self) -> str:
        return f"SystemTable({self.identifier}: {listed(self.field_names)})"

    def _repr_html_(self) -> str:
        title = html_title(f"System table {self.identifier}")
        return html_box(title, schema_html(self.kind.fields, (), self.kind.primary_keys, {}))


class SystemReadBuilder:
    """Collects filter, projection and limit; each ``with_`` changes the builder and returns it."""

    def __init__(self, table: SystemTable) -> None:
        self._table = table
        self._predicate: Predicate | None = None
        self._projection: tuple[str, ...] | None = None
        self._limit: int | None = None

    def with_filter(self, predicate: Predicate | str | None) -> "SystemReadBuilder":
        """Keep the rows that match: a predicate, or text such as ``"level = 0"``."""
        if isinstance(predicate, str):
            fields, env = self._table.kind.fields, self._table.store.env
            predicate = parse_filter(predicate, fields, env.now_ms)
        if predicate is not None:
            _check_columns(self._table, sorted(columns_of(predicate)))
        self._predicate = predicate
        return self

    def with_projection(self, projection: Sequence[str] | None) -> "SystemReadBuilder":
        """Read these columns, in this order."""
        if projection is not None:
            _check_columns(self._table, projection)
        self._projection = None if projection is None else tuple(projection)
        return self

    def with_limit(self, limit: int | None) -> "SystemReadBuilder":
        """Read at most this many rows."""
        if limit is not None and limit < 0:
            raise InvalidInput(f"the limit is {limit}; it must be 0 or more")
        self._limit = limit
        return self

    def new_predicate_builder(self) -> PredicateBuilder:
        """Predicates on the columns of this table."""
        return PredicateBuilder(self._table.kind.fields)

    def read_type(self) -> list[DataField]:
        """The columns that a read returns."""
        by_name = {field.name: field for field in self._table.kind.fields}
        names = self._table.field_names if self._projection is None else self._projection
        return [by_name[name] for name in names]

    def new_scan(self) -> "SystemScan":
        """The planning half of the read."""
        return SystemScan(self._table)

    def new_read(self) -> "SystemRead":
        """The reading half of the read."""
        return SystemRead(
            table=self._table,
            fields=tuple(self.read_type()),
            predicate=self._predicate,
            limit=self._limit,
        )


@dataclass(frozen=True)
class SystemSplit:
    """All rows of a system table, as of one snapshot of its data table."""

    identifier: Identifier
    snapshot: Snapshot | None


@dataclass(frozen=True)
class SystemPlan:
    """The splits of a system table: always one."""

    split: SystemSplit

    @property
    def snapshot_id(self) -> int | None:
        return None if self.split.snapshot is None else self.split.snapshot.id

    def splits(self) -> list[SystemSplit]:
        """The splits to pass to the read."""
        return [self.split]


@dataclass(frozen=True, eq=False)
class SystemScan:
    """Fixes the snapshot that a read will describe."""

    table: SystemTable

    def plan(self) -> SystemPlan:
        """A plan for the latest snapshot, or for the one that the options travel to."""
        return SystemPlan(SystemSplit(self.table.identifier, travel(self.table.store)))


@dataclass(frozen=True, eq=False)
class SystemRead:
    """Turns splits into rows."""

    table: SystemTable
    fields: tuple[DataField, ...]
    predicate: Predicate | None
    limit: int | None

    def to_arrow(self, splits: Sequence[SystemSplit]) -> pa.Table:
        """The rows as one Arrow table."""
        schema = arrow_schema(self.fields)
        parts = [self._read_split(split) for split in splits]
        rows = pa.concat_tables([schema.empty_table(), *parts])
        return rows if self.limit is None else rows.slice(0, self.limit)

    def to_arrow_batch_reader(self, splits: Sequence[SystemSplit]) -> pa.RecordBatchReader:
        """The rows as a stream of batches."""
        return self.to_arrow(splits).to_reader()

    def to_iterator(self, splits: Sequence[SystemSplit]) -> Iterator[Row]:
        """The rows one at a time, as tuples in the order of the columns."""
        for batch in self.to_arrow(splits).to_batches():
            yield from iter_rows(batch)

    def to_pandas(self, splits: Sequence[SystemSplit]) -> Any:
        """The rows as a pandas DataFrame."""
        load_extra("pandas", extra="pandas")
        return self.to_arrow(splits).to_pandas()

    def to_polars(self, splits: Sequence[SystemSplit]) -> Any:
        """The rows as a Polars DataFrame."""
        return load_extra("polars", extra="polars").from_arrow(self.to_arrow(splits))

    def to_duckdb(
        self, splits: Sequence[SystemSplit], table_name: str, connection: Any = None
    ) -> Any:
        """A DuckDB connection in which the rows are the view ``table_name``."""
        connection = connection or load_extra("duckdb", extra="duckdb").connect(":memory:")
        connection.register(table_name, self.to_arrow(splits))
        return connection

    def _read_split(self, split: SystemSplit) -> pa.Table:
        if getattr(split, "identifier", None) != self.table.identifier:
            raise InvalidInput(
                f"the split {split!r} is not a split of {self.table.identifier}; "
                "plan it with new_scan() of the same table"
            )
        with self.table.store.decoding_rows():
            return self._load(split)

    def _load(self, split: SystemSplit) -> pa.Table:
        kind, store = self.table.kind, self.table.store
        if kind.tells_values:
            store = seeing_all(store, f"shown by ${kind.name}")
        columns = kind.load(store, split.snapshot)
        filtered = frozenset() if self.predicate is None else columns_of(self.predicate)
        needed = tuple(
            field
            for field in self.table.kind.fields
            if field.name in filtered or field in self.fields
        )
        schema = arrow_schema(needed)
        arrays = [columns[field.name]().cast(field.type) for field in schema]
        rows = pa.Table.from_arrays(arrays, schema=schema)
        if self.predicate is not None:
            rows = filter_rows(self.predicate, rows)
        return rows.select([field.name for field in self.fields])


def _check_columns(table: SystemTable, names: Sequence[str]) -> None:
    unknown = [name for name in names if name not in table.field_names]
    if unknown:
        raise ColumnNotFound(
            f"{table.identifier} has no column {listed(unknown)}; "
            + choices(unknown, table.field_names, "its columns are")
        )

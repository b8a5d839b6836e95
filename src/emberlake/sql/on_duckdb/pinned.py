"""A table at one snapshot, as a source that DuckDB scans by columns and filters.

After optimizing a query, DuckDB hands a scan the columns that it needs, and offers it predicates.
Those that mean the same in both engines become filters of the scan, so that partitions, files and
row groups are skipped; DuckDB evaluates the others itself.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from duckdb._sources import ArrowScanSource

from emberlake.errors import EmberlakeError
from emberlake.expressions.query_auth import authorized_reader
from emberlake.predicates import Predicate, and_all
from emberlake.read.projection import project, project_all
from emberlake.read.table_reader import TableReader
from emberlake.scan.plan import find_target, plan_target
from emberlake.scan.splits import attach_folders
from emberlake.scan.travel import Between
from emberlake.spec.snapshot import Snapshot
from emberlake.spec.support import check_readable
from emberlake.sql.on_duckdb.filters import to_predicate
from emberlake.store.table_store import TableStore
from emberlake.table import Table
from emberlake.types import DataField, arrow_schema


@dataclass(frozen=True)
class PinnedTable:
    """A table at the snapshot that was found when the statement began."""

    store: TableStore
    target: Snapshot | Between | None  # None: the table is empty
    fields: tuple[DataField, ...]

    @staticmethod
    def of(table: Table) -> "PinnedTable":
        """The table as it is now, or where its options travel to."""
        return PinnedTable.at(table.store, find_target(table.store))

    @staticmethod
    def at(store: TableStore, target: Snapshot | Between | None) -> "PinnedTable":
        """A table at a snapshot that was found before."""
        check_readable(store.schema)
        return PinnedTable(store, target, store.schema.fields)

    def showing(self, hidden: Sequence[DataField]) -> "PinnedTable":
        """The same with some hidden columns."""
        return replace(self, fields=(*self.fields, *hidden))

    def batches(self, names: Sequence[str] | None, where: Predicate | None) -> pa.RecordBatchReader:
        """The rows, a batch at a time."""
        projection = project_all(self.fields) if names is None else project(self.fields, names)
        reader = authorized_reader(TableReader(self.store, projection, where))
        splits = plan_target(reader.store, self.target, where, None).splits
        attach_folders(splits, self.store.bucket_folder)
        return pa.RecordBatchReader.from_batches(reader.arrow_schema, reader.read_batches(splits))


class Pins:
    """The tables of one statement: each is pinned once, however often it is named."""

    def __init__(self) -> None:
        self._pinned: dict[tuple[object, ...], PinnedTable] = {}
        self._found: dict[tuple[object, ...], Snapshot | None] = {}

    def of(self, table: Table) -> PinnedTable:
        """The table as it was when the statement first named it."""
        key = _key(table.store)
        if key not in self._pinned:
            is_found = key in self._found
            pinned = PinnedTable.at(table.store, self._found[key]) if is_found else None
            self._pinned[key] = pinned or PinnedTable.of(table)
        return self._pinned[key]

    def hold(self, store: TableStore, snapshot: Snapshot | None) -> None:
        """Let the statement see a table at a snapshot: it changes rows that it has found there."""
        self._found[_key(store)] = snapshot


def _key(store: TableStore) -> tuple[object, ...]:
    return store.identity.identifier, tuple(sorted(store.options.items()))


class TellingSource:
    """A source that keeps why it could not be opened; DuckDB only passes on the text of that."""

    problem: EmberlakeError | None = None

    @contextmanager
    def opening(self) -> Iterator[None]:
        """Keep the error, if there is one."""
        self.problem = None
        try:
            yield
        except EmberlakeError as error:
            self.problem = error
            raise


class TableSource(ArrowScanSource, TellingSource):  # type: ignore[misc]
    """The source of a scan by DuckDB."""

    schema_is_stable = True

    def __init__(self, pinned: PinnedTable) -> None:
        super().__init__(pinned)
        self._pinned = pinned
        self._schema = arrow_schema(pinned.fields)

    def __arrow_c_schema__(self) -> object:
        return self._schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        with self.opening():
            return self._pinned.batches(None, None).__arrow_c_stream__(requested_schema)

    def accepts(self, predicate: Any) -> bool:
        """Whether the scan keeps exactly the rows for which a predicate is true."""
        return to_predicate(predicate, self._pinned.fields) is not None

    def stream(self, columns: Sequence[int] | None, filters: Sequence[Any]) -> tuple[object, bool]:
        """A stream of these columns; only rows for which all filters are true."""
        found = [to_predicate(predicate, self._pinned.fields) for predicate in filters]
        # A scan that needs no column, such as count(*), still has to count something.
        names = self._schema.names
        chosen = None if columns is None else [names[i] for i in columns]
        if chosen == []:
            chosen = [self._cheapest()]
        with self.opening():
            batches = self._pinned.batches(chosen, and_all(found))
            return batches.__arrow_c_stream__(), bool(columns)

    def _cheapest(self) -> str:
        widths = [
            (f.type.bit_width if pa.types.is_primitive(f.type) else 1 << 20, at)
            for at, f in enumerate(self._schema)
        ]
        return str(self._schema.names[min(widths)[1]])

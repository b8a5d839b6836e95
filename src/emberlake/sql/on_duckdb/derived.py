"""System tables that are reads of the data table: audit_log, binlog, ro and row_tracking."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from emberlake.errors import Unsupported
from emberlake.expressions.query_auth import authorized_reader
from emberlake.read.projection import ROW_KIND, project_all
from emberlake.read.table_reader import TableReader
from emberlake.scan.plan import find_target, plan_last_level, plan_target
from emberlake.scan.splits import DataSplit, attach_folders
from emberlake.scan.travel import Between
from emberlake.spec.row_tracking import HIDDEN_FIELDS
from emberlake.sql.on_duckdb.pinned import PinnedTable, TableSource
from emberlake.sql.on_duckdb.types import quoted
from emberlake.table import Table

_KIND: Final = "rowkind"


@dataclass(frozen=True)
class Rows:
    """Rows of splits that were planned, as something that DuckDB scans."""

    reader: TableReader
    splits: tuple[DataSplit, ...]

    def __arrow_c_schema__(self) -> object:
        return self.reader.arrow_schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        batches = self.reader.read_batches(self.splits)
        stream = pa.RecordBatchReader.from_batches(self.reader.arrow_schema, batches)
        return stream.__arrow_c_stream__(requested_schema)


@dataclass(frozen=True)
class Derived:
    """What to scan, and the columns to select from it."""

    source: object
    columns: str = "*"


def _audit_log(table: Table) -> Derived:
    """All rows with their kind, including deleted ones."""
    names = [quoted(name) for name in table.field_names]
    columns = ", ".join((f"{quoted(ROW_KIND)} AS {_KIND}", *names))
    return Derived(_with_kinds(table), columns)


def _binlog(table: Table) -> Derived:
    """The same, each value in an array; without a changelog, an array has one element."""
    arrays = [f"[{quoted(name)}] AS {quoted(name)}" for name in table.field_names]
    columns = ", ".join((f"{quoted(ROW_KIND)} AS {_KIND}", *arrays))
    return Derived(_with_kinds(table), columns)


def _with_kinds(table: Table) -> Rows:
    store = table.store
    fields = project_all(store.schema.fields)
    reader = authorized_reader(TableReader(store, fields, with_kind=True, with_deletes=True))
    splits = plan_target(reader.store, find_target(store), None, None).splits
    attach_folders(splits, store.bucket_folder)
    return Rows(reader, tuple(splits))


def _read_optimized(table: Table) -> Derived:
    """Only what needs no merging: the files of the last level."""
    store = table.store
    if not store.schema.profile.has_keys:
        return Derived(TableSource(PinnedTable.of(table)))
    target = find_target(store)
    if isinstance(target, Between):
        raise Unsupported("changes between two snapshots have no $ro")
    reader = authorized_reader(TableReader(store, project_all(store.schema.fields)))
    splits = plan_last_level(reader.store, target).splits
    attach_folders(splits, store.bucket_folder)
    return Derived(Rows(reader, tuple(splits)))


def _row_tracking(table: Table) -> Derived:
    """The rows with their ids and the numbers of their last changes."""
    if not table.table_schema.profile.tracks_rows:
        raise Unsupported("rows have ids only where row-tracking.enabled is set")
    return Derived(TableSource(PinnedTable.of(table).showing(HIDDEN_FIELDS)))


DERIVED: Final[Mapping[str, Callable[[Table], Derived]]] = {
    "audit_log": _audit_log,
    "binlog": _binlog,
    "ro": _read_optimized,
    "row_tracking": _row_tracking,
}

"""System tables that are reads of the data table: audit_log, binlog, ro and row_tracking."""

from collections.abc import Callable, Mapping
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from emberlake.errors import Unsupported
from emberlake.expressions.query_auth import authorized_reader
from emberlake.read.projection import ROW_KIND, project_all
from emberlake.read.table_reader import TableReader
from emberlake.scan.plan import plan_last_level
from emberlake.scan.splits import attach_folders
from emberlake.scan.travel import Between
from emberlake.spark.read import read_dataframe
from emberlake.spec.row_tracking import HIDDEN_NAMES
from emberlake.sql.names import quoted
from emberlake.sql.on_spark.scans import Pinned, scan

_KIND: Final = "rowkind"

Derive = Callable[[Pinned, SparkSession], DataFrame]


def _audit_log(pinned: Pinned, spark: SparkSession) -> DataFrame:
    """All rows with their kind, including deleted ones."""
    store = pinned.table.store
    fields = project_all(store.schema.fields)
    reader = authorized_reader(TableReader(store, fields, with_kind=True, with_deletes=True))
    rows = read_dataframe(reader, pinned.splits(reader), spark)
    names = [quoted(name) for name in store.schema.field_names]
    return rows.select(F.col(ROW_KIND).alias(_KIND), *names)


def _binlog(pinned: Pinned, spark: SparkSession) -> DataFrame:
    """The same, each value in an array; without a changelog, an array has one element."""
    names = pinned.schema.field_names
    arrays = (F.array(quoted(name)).alias(name) for name in names)
    return _audit_log(pinned, spark).select(_KIND, *arrays)


def _read_optimized(pinned: Pinned, spark: SparkSession) -> DataFrame:
    """Only what needs no merging: the files of the last level."""
    store = pinned.table.store
    if not store.schema.profile.has_keys:
        return scan(pinned, spark)
    if isinstance(pinned.target, Between):
        raise Unsupported("changes between two snapshots have no $ro")
    reader = authorized_reader(TableReader(store, project_all(store.schema.fields)))
    splits = plan_last_level(reader.store, pinned.target).splits
    attach_folders(splits, store.bucket_folder)
    return read_dataframe(reader, list(splits), spark)


def _row_tracking(pinned: Pinned, spark: SparkSession) -> DataFrame:
    """The rows with their ids and the numbers of their last changes."""
    if not pinned.schema.profile.tracks_rows:
        raise Unsupported("rows have ids only where row-tracking.enabled is set")
    return scan(pinned, spark, hidden=HIDDEN_NAMES)


DERIVED: Final[Mapping[str, Derive]] = {
    "audit_log": _audit_log,
    "binlog": _binlog,
    "ro": _read_optimized,
    "row_tracking": _row_tracking,
}

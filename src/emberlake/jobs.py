"""Whole jobs on Spark: a table by its name in, a DataFrame or the outcome of a commit out.

``emberlake.spark`` hands these out. They open the table; the work is done in ``emberlake.spark``.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from emberlake.catalog import CatalogFactory
from emberlake.commit.change import CommitResult
from emberlake.errors import InvalidInput, InvalidOption
from emberlake.options import KNOWN_KEYS, SCAN_SNAPSHOT_ID, SCAN_TAG_NAME, unknown_option
from emberlake.predicates import Predicate
from emberlake.spark.compaction import compact_on_spark
from emberlake.spark.session import find_session
from emberlake.spec.identifier import Identifier
from emberlake.spec.replacement import Replacement
from emberlake.table import Table

if TYPE_CHECKING:
    from pyspark.resource import ResourceProfile
    from pyspark.sql import DataFrame, SparkSession

    from emberlake.spark.write import SparkWriteResult


def open_table(identifier: str | Identifier, catalog_options: Mapping[str, object]) -> Table:
    """The table of a catalog; system tables are none that jobs can work on."""
    table = CatalogFactory.create(dict(catalog_options)).get_table(identifier)
    if not isinstance(table, Table):
        raise InvalidInput(f"{identifier} is a system table; read it without Spark")
    return table


def read_paimon(  # noqa: PLR0913
    identifier: str | Identifier,
    catalog_options: Mapping[str, object],
    *,
    spark: "SparkSession | None" = None,
    filter: Predicate | str | None = None,  # noqa: A002
    projection: Sequence[str] | None = None,
    limit: int | None = None,
    snapshot_id: int | None = None,
    tag_name: str | None = None,
    dynamic_options: Mapping[str, object] | None = None,
    num_partitions: int | None = None,
) -> "DataFrame":
    """A table as a DataFrame; files are pruned now, rows are read by actions of Spark.

    Plain Parquet files are read by Spark itself, the others by Python workers, in one DataFrame.
    Say with ``projection`` and ``filter`` what is needed: of what workers read, Spark leaves out
    nothing by itself, whatever is selected of the DataFrame.

    Args:
        identifier: ``"db.t"``, or ``"db.t$branch_b"``.
        catalog_options: What ``CatalogFactory.create`` takes.
        spark: The session; the active one by default.
        filter: Keep only matching rows: a predicate, or text such as ``"city = 'paris'"``.
        projection: Columns, or fields of ROW columns (``"s.x"``, handed out as ``s_x``).
        limit: At most this many rows, whichever come first.
        snapshot_id: The state of that snapshot, rather than the latest.
        tag_name: The state that has the tag.
        dynamic_options: Table options for this read, such as ``incremental-between``.
        num_partitions: The number of partitions, at least one; Python workers read all files then.

    Raises:
        TableNotFound, SnapshotNotFound, TagNotFound: there is none of that name.
        InvalidOption: an option that does not exist, or cannot be used.
        InvalidInput: arguments that cannot be used, or that contradict each other.
    """
    table = open_table(identifier, catalog_options)
    options = _scan_options(snapshot_id, tag_name, dynamic_options or {})
    if options:
        table = table.copy(options)
    builder = table.new_read_builder().with_filter(filter).with_projection(projection)
    builder.with_limit(limit)
    splits = builder.new_scan().plan().splits()
    return builder.new_read().to_spark(splits, spark, num_partitions)


def _scan_options(
    snapshot_id: int | None, tag_name: str | None, dynamic_options: Mapping[str, object]
) -> dict[str, object]:
    if snapshot_id is not None and tag_name is not None:
        raise InvalidInput("a read is of one snapshot: give snapshot_id or tag_name, not both")
    named = {SCAN_SNAPSHOT_ID.key: snapshot_id, SCAN_TAG_NAME.key: tag_name}
    given = {key: value for key, value in named.items() if value is not None}
    twice = [key for key in given if key in dynamic_options]
    if twice:
        raise InvalidInput(f"{twice[0]} is given twice: as an argument, and as an option")
    unknown = [unknown_option(key) for key in dynamic_options if key not in KNOWN_KEYS]
    if unknown:
        # A misspelt way to travel would read the latest snapshot.
        raise InvalidOption("; ".join(unknown))
    return {**dynamic_options, **given}


def write_paimon(
    df: "DataFrame",
    identifier: str | Identifier,
    catalog_options: Mapping[str, object],
    *,
    overwrite: bool | str = False,
    static_partition: Mapping[str, object] | None = None,
    concurrency: int | None = None,
    resource_profile: "ResourceProfile | Mapping[str, object] | None" = None,
) -> "SparkWriteResult":
    """Write a DataFrame to a table by parallel tasks, and make it visible in one commit.

    Args:
        df: Its columns are aligned with the table's by name. In tables with a primary key rows
            replace, or merge with, those of their key; a column ``_row_kind`` (``+I``, ``-D``, ...)
            tells what a row does.
        identifier: ``"db.t"``.
        catalog_options: What ``CatalogFactory.create`` takes.
        overwrite: Replace instead of append. ``True``: the partitions that match
            ``static_partition``, also by no rows; without it those that the data touches, or all
            that is there in tables without partitions and with the table option
            ``dynamic-partition-overwrite=false``. Whatever the option says: ``"dynamic"`` replaces
            the partitions that the data touches, ``"static"`` all that match ``static_partition``
            or the whole table, also by no rows, and ``"all"`` the whole table.
        static_partition: With ``overwrite``: data outside of the partitions that match is refused,
            and no other partition is replaced.
        concurrency: The number of write tasks; Spark decides without it. A bucket is written by
            one of them, so that some may have nothing to do.
        resource_profile: What Spark is to give every write task: a profile of Spark's, or a dict
            such as ``{"cpus": 2, "memory": "4g"}``.

    Raises:
        DataMismatch: listing every column that does not fit; no task was started.
        InvalidInput: arguments that cannot be used, or that contradict each other.
        Unsupported: the session's master gives tasks no resource profiles.
        IncompleteJob: not every task told what it wrote; nothing changes.
        CommitConflict: a concurrent change makes the commit wrong; nothing changes, unless the
            error says that a snapshot stands.
    """
    builder = open_table(identifier, catalog_options).new_batch_write_builder()
    replaces = Replacement.chosen(builder.store.schema, static_partition, overwrite=overwrite)
    if replaces is not None:
        builder.overwrite(replaces)
    with builder.new_write() as write:
        return write.write_spark(df, concurrency=concurrency, resource_profile=resource_profile)


def compact(
    identifier: str | Identifier,
    catalog_options: Mapping[str, object],
    *,
    spark: "SparkSession | None" = None,
    where: Predicate | str | None = None,
    full: bool = False,
) -> CommitResult:
    """Compact a table: its buckets in parallel by Spark's tasks, all of it in one commit.

    Args:
        identifier: ``"db.t"``.
        catalog_options: What ``CatalogFactory.create`` takes.
        spark: The session; the active one without it.
        where: Only the partitions that match, as a filter on partition columns.
        full: Rewrite every bucket into one sorted run, whatever it costs.

    Raises:
        CommitConflict: another writer replaced the same files; nothing changes.
        IncompleteJob: of some buckets nothing was heard; nothing changes.
    """
    table = open_table(identifier, catalog_options)
    # Both say what is wrong, before anything starts, as a write and a read would.
    user = table.new_batch_write_builder().commit_user
    partitions = table.new_read_builder().with_partition_filter(where).partition_filter
    session = find_session(spark)
    return compact_on_spark(table.store, user, session, full=full, where=partitions)

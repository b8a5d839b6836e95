"""Whole jobs on Spark: they take the name of a table and return a DataFrame or a commit result.

``emberlake.spark`` exports these functions. They open the table; ``emberlake.spark`` does the work.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from emberlake.catalog import CatalogFactory
from emberlake.catalog.target import TargetRules, open_target
from emberlake.commit.change import CommitResult
from emberlake.errors import InvalidInput, InvalidOption
from emberlake.options import KNOWN_KEYS, SCAN_SNAPSHOT_ID, SCAN_TAG_NAME, unknown_option
from emberlake.predicates import Predicate, bind_partition_filter
from emberlake.rowops.merge_plan import On
from emberlake.rowops.quarantine import BadRowRule
from emberlake.rowops.result import RowChangeResult
from emberlake.rowops.schema_growth import write_growing
from emberlake.session.write_session import WriteSession
from emberlake.spark.compaction import compact_on_spark
from emberlake.spark.merge_job import SparkMergeBuilder, merge_on_spark
from emberlake.spark.row_changes import change_on_spark
from emberlake.spark.sessions import find_session
from emberlake.spark.sifting import sifting_of
from emberlake.spark.types import new_table_fields
from emberlake.spark.write import SparkWriteResult, WriteJob, check_frame
from emberlake.spec.identifier import Identifier
from emberlake.spec.replacement import Replacement
from emberlake.table import Table

if TYPE_CHECKING:
    from pyspark.resource import ResourceProfile
    from pyspark.sql import Column, DataFrame, SparkSession


def open_table(identifier: str | Identifier, catalog_options: Mapping[str, object]) -> Table:
    """Open a table of a catalog. Jobs cannot work on system tables."""
    table = CatalogFactory.create(catalog_options).get_table(identifier)
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
    """Read a table as a DataFrame; files are pruned now, rows are read by Spark actions.

    Plain Parquet files are read by Spark itself, the others by Python workers, in one DataFrame.
    Say with ``projection`` and ``filter`` what is needed: Spark cannot prune what the workers read,
    whatever is later selected from the DataFrame.

    Args:
        identifier: ``"db.t"``, or ``"db.t$branch_b"``.
        catalog_options: What ``CatalogFactory.create`` takes.
        spark: The session; the active one by default.
        filter: Keep only matching rows: a predicate, or text such as ``"city = 'paris'"``.
        projection: Columns, or fields of ROW columns (``"s.x"``, returned as ``s_x``).
        limit: At most this many rows, whichever come first.
        snapshot_id: Read that snapshot rather than the latest.
        tag_name: Read the snapshot that has the tag.
        dynamic_options: Table options for this read, such as ``incremental-between``.
        num_partitions: The number of partitions, at least one. Python workers then read all files.

    Raises:
        TableNotFound, SnapshotNotFound, TagNotFound: it does not exist.
        InvalidOption: an option does not exist or cannot be used.
        InvalidInput: arguments cannot be used, or contradict each other.
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
        raise InvalidInput("a read has one snapshot: give snapshot_id or tag_name, not both")
    named = {SCAN_SNAPSHOT_ID.key: snapshot_id, SCAN_TAG_NAME.key: tag_name}
    given = {key: value for key, value in named.items() if value is not None}
    twice = [key for key in given if key in dynamic_options]
    if twice:
        raise InvalidInput(f"{twice[0]} is given twice: as an argument, and as an option")
    unknown = [unknown_option(key) for key in dynamic_options if key not in KNOWN_KEYS]
    if unknown:
        # A misspelt time travel option would silently read the latest snapshot.
        raise InvalidOption("; ".join(unknown))
    return {**dynamic_options, **given}


def write_paimon(  # noqa: PLR0913
    df: "DataFrame",
    identifier: str | Identifier,
    catalog_options: Mapping[str, object],
    *,
    mode: str = "append",
    create: bool = False,
    primary_keys: Sequence[str] | None = None,
    partition_by: Sequence[str] | None = None,
    table_options: Mapping[str, object] | None = None,
    merge_schema: bool = False,
    overwrite: bool | str = False,
    static_partition: Mapping[str, object] | None = None,
    concurrency: int | None = None,
    resource_profile: "ResourceProfile | Mapping[str, object] | None" = None,
    on_bad_rows: str = "fail",
) -> SparkWriteResult:
    """Write a DataFrame to a table in parallel tasks, and make it visible in one commit.

    Args:
        df: Its columns are aligned with the table's by name. In tables with a primary key, a row
            replaces the row of its key or merges with it; a column ``_row_kind`` (``+I``, ``-D``,
            ...) says what each row does.
        identifier: ``"db.t"``.
        catalog_options: What ``CatalogFactory.create`` takes.
        mode: ``"append"`` adds rows; in tables with a primary key it is an upsert. ``"upsert"`` is
            the same, and refuses tables without a key. ``"overwrite"`` replaces rows. ``"error"``
            creates the table, which must not exist. ``"ignore"`` also creates it, but
            does nothing if it exists.
        create: Create the table, and its database, if it does not exist. If the write then fails
            before anything was committed, the table is dropped again.
        primary_keys: The key of a new table. An existing table must have the same.
        partition_by: The partition columns of a new table. An existing table must have the same.
        table_options: Options of a new table, such as ``{"bucket": 4}``.
        merge_schema: Add columns that the table lacks, and widen types of numbers. They become
            visible with the rows: a write that fails adds none.
        overwrite: What ``mode="overwrite"`` replaces, which it implies. ``True`` replaces the
            partitions that match
            ``static_partition``, even if there are no rows. Without ``static_partition`` it
            replaces the partitions that the data touches, or everything if the table has no
            partitions or has the option ``dynamic-partition-overwrite=false``. The other values
            ignore that option: ``"dynamic"`` replaces the partitions that the data touches,
            ``"static"`` those that match ``static_partition`` or else the whole table, even if
            there are no rows, and ``"all"`` the whole table.
        static_partition: With ``overwrite``: data outside of the matching partitions is refused,
            and no other partition is replaced.
        concurrency: The number of write tasks; by default Spark decides. Each bucket is written by
            one task, so some tasks may have nothing to do.
        resource_profile: The resources of every write task: a Spark ``ResourceProfile``, or a dict
            such as ``{"cpus": 2, "memory": "4g"}``.
        on_bad_rows: ``"fail"``: one row that does not fit fails the write. ``"skip"``: such rows
            are left out. The name or the path of a table: they go there, with the reason; it is
            created if it does not exist. The result counts them (``rows_rejected``).

    Raises:
        DataMismatch: lists every column that does not fit; no task was started.
        TableNotFound: the table does not exist, and is not to be created.
        TableAlreadyExists: it exists, and the mode is ``"error"``.
        InvalidInput: arguments cannot be used, or contradict each other.
        Unsupported: the session's master does not support resource profiles.
        IncompleteJob: not every task reported what it wrote; nothing changes.
        CommitConflict: a concurrent change makes the commit wrong; nothing changes, unless the
            error says that a snapshot stands.
    """
    rules = TargetRules.of(
        mode,
        overwrite=overwrite,
        create=create,
        primary_keys=primary_keys,
        partition_by=partition_by,
        table_options=table_options,
        merge_schema=merge_schema,
    )
    bad_rows = BadRowRule.parse(on_bad_rows)
    catalog = CatalogFactory.create(catalog_options)
    check_frame(df)
    is_needed = rules.create or rules.merge_schema
    fields = new_table_fields(df.schema) if is_needed else ()
    with open_target(catalog, identifier, fields, rules) as table:
        if table is None:
            return SparkWriteResult(snapshot_id=None)
        builder = table.new_batch_write_builder()
        replaces = Replacement.chosen(
            table.table_schema, static_partition, overwrite=rules.overwrite
        )
        job = WriteJob(
            session=WriteSession(builder.store, builder.commit_user, replaces),
            concurrency=concurrency,
            resource_profile=resource_profile,
            sifting=sifting_of(bad_rows, builder.store, builder.commit_user),
        )
        if not rules.merge_schema:
            return job.run(df)
        return write_growing(builder.store, fields, lambda store: job.on(store).run(df))


def compact(
    identifier: str | Identifier,
    catalog_options: Mapping[str, object],
    *,
    spark: "SparkSession | None" = None,
    where: Predicate | str | None = None,
    full: bool = False,
) -> CommitResult:
    """Compact the buckets of a table in parallel Spark tasks, and publish them in one commit.

    Args:
        identifier: ``"db.t"``.
        catalog_options: What ``CatalogFactory.create`` takes.
        spark: The session; the active one by default.
        where: Only the partitions that match this filter on partition columns.
        full: Rewrite every bucket into one sorted run, whatever it costs.

    Raises:
        CommitConflict: another writer replaced the same files; nothing changes.
        IncompleteJob: not every bucket was reported; nothing changes.
    """
    table = open_table(identifier, catalog_options)
    # Both raise before anything starts if something is wrong, just as a write and a read would.
    user = table.new_batch_write_builder().commit_user
    partitions = bind_partition_filter(where, table.store.schema)
    session = find_session(spark)
    return compact_on_spark(table.store, user, session, full=full, where=partitions)


def delete(
    identifier: str | Identifier,
    catalog_options: Mapping[str, object],
    where: "Predicate | str | Column",
    *,
    spark: "SparkSession | None" = None,
) -> RowChangeResult:
    """Delete the rows for which a condition is true, in parallel Spark tasks and one commit.

    Args:
        identifier: ``"db.t"``.
        catalog_options: What ``CatalogFactory.create`` takes.
        where: Text such as ``"price > 100"``, a predicate, or a Spark Column.
        spark: The session; the active one by default.

    Raises:
        InvalidExpression, InvalidPredicate, ColumnNotFound: the condition does not fit the table.
        Unsupported: rows of this table cannot be deleted.
        IncompleteJob: not every task reported what it wrote; nothing changes.
        CommitConflict: others changed the same rows again and again.
    """
    if where is None:
        raise InvalidInput("say which rows to delete; all of them are deleted by truncate_table()")
    return change_on_spark(_session(identifier, catalog_options), find_session(spark), where, None)


def update(
    identifier: str | Identifier,
    catalog_options: Mapping[str, object],
    set: Mapping[str, object],  # noqa: A002
    where: "Predicate | str | Column | None" = None,
    *,
    spark: "SparkSession | None" = None,
) -> RowChangeResult:
    """Set columns of the rows for which a condition is true, in parallel tasks and one commit.

    Args:
        identifier: ``"db.t"``.
        catalog_options: What ``CatalogFactory.create`` takes.
        set: By column, an expression in text, a Spark Column, or a value; ``lit("x")`` is a value
            of text.
        where: Text such as ``"price > 100"``, a predicate, or a Spark Column; None: all rows.
        spark: The session; the active one by default.

    If one of them is a Column, Spark evaluates all of them: text is Spark's SQL then.

    Raises:
        InvalidExpression, InvalidPredicate, ColumnNotFound: values or condition do not fit.
        DataMismatch: a value cannot be computed, or does not fit its column; nothing changes.
        Unsupported: rows of this table cannot be updated like this.
        IncompleteJob: not every task reported what it wrote; nothing changes.
        CommitConflict: others changed the same rows again and again.
    """
    if not set:
        raise InvalidInput(
            "say what to set: a dictionary of columns and their new values, such as "
            '{"price": "price * 1.1"}'
        )
    return change_on_spark(_session(identifier, catalog_options), find_session(spark), where, set)


def merge(  # noqa: PLR0913
    df: "DataFrame",
    identifier: str | Identifier,
    catalog_options: Mapping[str, object],
    on: "On | Column",
    *,
    source_alias: str = "s",
    target_alias: str = "t",
    merge_schema: bool = False,
    isolation: str = "snapshot",
) -> SparkMergeBuilder:
    """Start a merge of a DataFrame into a table; Spark runs it when ``execute()`` is called.

    Args:
        df: The source. It is computed once for a merge.
        identifier: ``"db.t"``.
        catalog_options: What ``CatalogFactory.create`` takes.
        on: When rows match: a condition such as ``"t.id = s.id"``, columns that are equal, a
            dictionary of columns of the table and of the source, or a Spark Column such as
            ``col("t.id") == col("s.id")``. Conditions and values of clauses can be Columns, too; if
            one is, Spark evaluates all of them, and text is Spark's SQL.
        source_alias: What expressions call the source.
        target_alias: What expressions call the table.
        merge_schema: Whether columns that the table lacks are added to it.
        isolation: ``"serializable"``: start again after any commit that changed rows meanwhile.

    Raises:
        InvalidInput: the source is not a batch DataFrame, or an argument is wrong.
    """
    return merge_on_spark(
        _session(identifier, catalog_options),
        df,
        on,
        source_alias=source_alias,
        target_alias=target_alias,
        merge_schema=merge_schema,
        isolation=isolation,
    )


def _session(identifier: str | Identifier, options: Mapping[str, object]) -> WriteSession:
    builder = open_table(identifier, options).new_batch_write_builder()
    return WriteSession(builder.store, builder.commit_user)

"""Changes of files of an append table: each file, or group of files, is changed by one task.

A task gets the file that it owns, and the rows that change: their places, the numbers of their
clauses, and the values that come with them. Rows of the table itself are not sent: the owner reads
what it needs from its file. New rows go to tasks of their own, in the same job. Everything that the
tasks write becomes one commit.
"""

from dataclasses import replace
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from emberlake.commit.discard import discard
from emberlake.predicates import Predicate
from emberlake.rowops.edits import Prepared
from emberlake.rowops.result import Tally
from emberlake.spark.dealt_splits import split_table
from emberlake.spark.failures import typed_errors
from emberlake.spark.job import Job
from emberlake.spark.kept import kept
from emberlake.spark.located import FILE, POSITION, LocatedRows, unit_name
from emberlake.spark.merge_tasks import InsertTask
from emberlake.spark.numbering import numbered
from emberlake.spark.owner_task import UNIT, FileWork, OwnerTask, joined
from emberlake.spark.reports import REPORT_SCHEMA, Reports, counted, gather
from emberlake.spark.sessions import fast_arrow
from emberlake.spark.types import nullable_fields, spark_schema
from emberlake.spark.write import WriteJob
from emberlake.wire import CommitMessage

NEW_UNIT: Final = -1  # the unit of new rows
_MOST_OWNERS: Final = 200  # at most this many tasks change files
_INSERTERS: Final = 8  # at most this many tasks write new rows
_SHUFFLE_TASKS: Final = "spark.sql.shuffle.partitions"


def with_units(located: LocatedRows, changes: DataFrame) -> DataFrame:
    """Changes with the number of their unit instead of the name of their file."""
    names = [unit_name(unit) for unit in located.units]
    known = pa.table({"_name": pa.array(names, pa.string()), UNIT: range(len(names))})
    units = located.spark.createDataFrame(known.cast(_UNITS_SCHEMA))
    found = changes.join(sql.broadcast(units), sql.col(FILE) == sql.col("_name"), "left")
    lost = sql.raise_error(sql.concat(sql.lit("a place that was not read: "), sql.col(FILE)))
    unit = sql.coalesce(sql.col(UNIT), lost.cast("int"))
    numbered = sql.when(sql.col(FILE).isNull(), sql.lit(NEW_UNIT)).otherwise(unit)
    return found.withColumn(UNIT, numbered).drop(FILE, "_name")


_UNITS_SCHEMA: Final = pa.schema([("_name", pa.string()), (UNIT, pa.int32())])


def change_files(
    located: LocatedRows, changes: DataFrame, work: FileWork, *, is_dry: bool = False
) -> Prepared:
    """Change files, and write new rows.

    Args:
        located: The rows that were read.
        changes: ``UNIT``, ``POSITION``, ``CLAUSE`` and the columns of the work.
        work: What happens to the rows.
        is_dry: Whether nothing is written, only counted.

    Raises:
        DataMismatch: a row would be changed more than once, or a value does not fit its column.
        IncompleteJob: not every task reported what it wrote.
    """
    profile = located.store.schema.profile
    with typed_errors(), fast_arrow(located.spark):
        if not work.new or is_dry or not (profile.is_partitioned or profile.has_buckets):
            messages, reports = _run(located, changes, work, is_dry=is_dry)
            return Prepared(tuple(messages), tally_in(reports))
        return _change_and_route(located, changes, work)


def _change_and_route(located: LocatedRows, changes: DataFrame, work: FileWork) -> Prepared:
    """Change files; then let the ordinary write bring new rows to their partitions and buckets."""
    is_new = sql.col(UNIT) == NEW_UNIT
    with kept(changes) as both:  # two jobs use it, so it is computed once
        messages, reports = _run(located, both.filter(~is_new), replace(work, new=()))
        try:
            made = write_new(located, both.filter(is_new), work)
        except BaseException:
            discard(located.store, messages)
            raise
    return joined(Prepared(tuple(messages), tally_in(reports)), made)


def write_new(located: LocatedRows, rows: DataFrame, work: FileWork) -> Prepared:
    """Write new rows, none of which is known to be in the table.

    Args:
        located: The table, as it was read.
        rows: The columns of the work.
        work: Its clauses for new rows apply.
    """
    session, store = located.session, located.store
    values = rows.select(*work.columns.names)
    with typed_errors(), fast_arrow(located.spark):
        if store.schema.profile.is_partitioned or store.schema.profile.has_buckets:
            fields = store.schema.fields
            shape = nullable_fields(spark_schema(numbered(fields, "t")))
            task = InsertTask(work.new, work.columns, fields, shape, work.now_ms)
            new = values.mapInArrow(task, shape).toDF(*store.schema.field_names)
            messages, _ = WriteJob(session=session).write(new)
            inserted = sum(f.row_count for message in messages for f in message.new_files)
            return Prepared(tuple(messages), Tally(inserted=inserted))
        job = Job(store, store.env.new_id())
        owner = OwnerTask(
            session, job.id, located.snapshot, work, (), 0, is_ordered=False, is_dry=False
        )
        few = values.coalesce(_inserters(located.spark))  # or each would write a small file
        made, reports = job.run(lambda: gather(counted(few.mapInArrow(owner, REPORT_SCHEMA))))
        return Prepared(tuple(made), tally_in(reports))


def _inserters(spark: SparkSession) -> int:
    return min(_INSERTERS, int(spark.conf.get(_SHUFFLE_TASKS) or _INSERTERS))


def _run(
    located: LocatedRows, changes: DataFrame, work: FileWork, *, is_dry: bool = False
) -> tuple[list[CommitMessage], Reports]:
    session, store, units = located.session, located.store, located.units
    owners = min(len(units), _MOST_OWNERS)
    is_ordered = len(units) > owners
    rows = changes
    predicates: tuple[Predicate | None, ...] = ()
    if units:
        owned, predicates = split_table(units)
        owned = owned.append_column(UNIT, pa.array(range(len(units)), pa.int32()))
        whole = located.spark.createDataFrame(owned)
        whole = whole.withColumn(POSITION, sql.lit(-1).cast("bigint"))
        rows = whole.unionByName(changes, allowMissingColumns=True)
    owner = sql.pmod(sql.col(UNIT), sql.lit(max(1, owners)))
    tasks = owners
    if work.new:
        inserters = _inserters(located.spark)
        new_owner = sql.lit(owners) + sql.pmod(sql.spark_partition_id(), sql.lit(inserters))
        owner = sql.when(sql.col(UNIT) == NEW_UNIT, new_owner).otherwise(owner)
        tasks += inserters
    if not tasks:
        return [], Reports((), 0)
    rows = rows.repartitionById(tasks, owner.cast("int"))
    if is_ordered:
        rows = rows.sortWithinPartitions(UNIT, POSITION)
    job = Job(store, store.env.new_id())
    task = OwnerTask(
        session, job.id, located.snapshot, work, predicates, owners,
        is_ordered=is_ordered, is_dry=is_dry,
    )  # fmt: skip
    return job.run(lambda: gather(counted(rows.mapInArrow(task, REPORT_SCHEMA))))


def tally_in(reports: Reports) -> Tally:
    """The sum of what tasks counted."""
    counts = reports.counts()
    return (
        Tally(**dict(zip(Tally.__dataclass_fields__, counts, strict=True))) if counts else Tally()
    )

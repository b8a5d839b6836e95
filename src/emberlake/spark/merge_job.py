"""Merge a DataFrame into a table: Spark joins the keys, and each file is changed by one task.

Only keys and the columns of conditions are read of the table to find the rows that match. Where
they are travels to the tasks that own the files, with the values of the source that they need; the
rows of the table stay where they are. All that is written becomes one commit.
"""

from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from emberlake.commit.discard import discard
from emberlake.errors import DataMismatch, InvalidInput
from emberlake.predicates import Predicate
from emberlake.rowops.clauses import NO_CLAUSE, SOURCE
from emberlake.rowops.edits import Prepared
from emberlake.rowops.merge_builder import MergeBuilder, new_merge
from emberlake.rowops.merge_plan import MergePlan, On
from emberlake.rowops.result import Tally
from emberlake.scan.plan import plan_target
from emberlake.scan.splits import DataSplit
from emberlake.session.write_session import WriteSession
from emberlake.spark.failures import typed_errors
from emberlake.spark.job import Job
from emberlake.spark.merge_frames import MergeFrames, updates_of
from emberlake.spark.merge_keys import merge_keys, new_rows
from emberlake.spark.merge_tasks import CLAUSE, ID, PART, POSITION, UNIT, OwnerTask
from emberlake.spark.read_task import PARTITION
from emberlake.spark.reports import REPORT_SCHEMA, Reports, counted, gather
from emberlake.spark.row_changes import check_shared, tally_in
from emberlake.spark.session import check_workers, fast_arrow
from emberlake.spark.types import paimon_fields
from emberlake.spark.write import WriteJob
from emberlake.spec.snapshot import Snapshot
from emberlake.types import arrow_schema
from emberlake.wire import CommitMessage

_MOST_OWNERS: Final = 200  # tasks that change files


@dataclass
class SparkMergeBuilder(MergeBuilder):
    """The builder of a merge that runs on Spark; its clauses are those of ``MergeBuilder``."""

    _df: DataFrame | None = None

    def _outline(self, current: WriteSession) -> tuple[MergePlan, Predicate | None, int]:
        with typed_errors():
            frames = self._frames(current)
            pruning = None if frames.plan.orphaned else frames.pruning()
            return frames.plan, pruning, frames.source.count()

    def _prepare(
        self, current: WriteSession, snapshot: Snapshot | None, *, is_dry: bool = False
    ) -> Prepared:
        frames = self._frames(current)
        with typed_errors(), fast_arrow(frames.spark):
            if current.store.schema.profile.has_keys:
                return merge_keys(current, snapshot, frames, is_dry=is_dry)
            return _merge_files(current, snapshot, frames, is_dry=is_dry)

    def _frames(self, current: WriteSession) -> MergeFrames:
        store = current.store
        assert self._df is not None
        plan = self._plan(store.schema)
        return MergeFrames(store, plan, self._df, self._source_fields, store.env.now_ms())


def merge_on_spark(session: WriteSession, df: Any, on: On, **options: Any) -> SparkMergeBuilder:
    """Start a merge of a DataFrame into a table.

    Raises:
        InvalidInput: the source is no batch DataFrame, or an argument is wrong.
        DataMismatch: the source has columns of the same name.
    """
    if not isinstance(df, DataFrame):
        raise InvalidInput(f"merge takes a Spark DataFrame, not {type(df).__name__}")
    if df.isStreaming:
        raise InvalidInput("a stream is merged batch by batch: use merge in foreachBatch")
    check_shared(session.store)
    check_workers(df.sparkSession)
    names = df.columns
    if len(set(names)) < len(names):
        raise DataMismatch("the source has several columns with the same name")
    rows = arrow_schema(paimon_fields(df.schema)).empty_table()
    builder = new_merge(session, rows, on, **options)
    known = {f: getattr(builder, f) for f in builder.__dataclass_fields__}
    return SparkMergeBuilder(**known, _df=df)


def _merge_files(
    session: WriteSession, snapshot: Snapshot | None, frames: MergeFrames, *, is_dry: bool
) -> Prepared:
    """Change the files of an append table, and write the new rows.

    Raises:
        DataMismatch: several rows of the source would change the same row.
    """
    store, plan = session.store, frames.plan
    predicate = None if plan.orphaned else frames.pruning()
    splits = plan_target(store, snapshot, predicate, None).splits
    messages: list[CommitMessage] = []
    tally = Tally()
    matched = frames.spark.createDataFrame([], f"{ID} bigint")
    try:
        if splits:
            hits = frames.hits(splits, predicate).localCheckpoint()
            matched = hits.select(ID)
            if frames.has_repeated_keys:
                _check_once(frames, hits)
            if plan.for_table:
                made, reports = _change(session, snapshot, frames, splits, hits, is_dry=is_dry)
                messages += made
                tally += tally_in(reports)
        if plan.new:
            new = new_rows(frames, matched, store.schema).toDF(*store.schema.field_names)
            if is_dry:
                tally += Tally(inserted=new.count())
            else:
                made, _ = WriteJob(session=session).write(new)
                messages += made
                tally += Tally(inserted=sum(f.row_count for m in made for f in m.new_files))
    except BaseException:
        discard(store, messages)
        raise
    return Prepared(tuple(messages), tally)


def _check_once(frames: MergeFrames, hits: DataFrame) -> None:
    place = [UNIT, PART, POSITION]
    acting = hits.filter(sql.col(CLAUSE) != NO_CLAUSE)
    is_update = sql.col(CLAUSE).isin(updates_of(frames.plan.for_table))
    groups = acting.groupBy(*place).agg(
        sql.count(sql.lit(1)).alias("n"), sql.max(is_update).alias("harms")
    )
    harmed = groups.filter("n > 1 AND harms").select(*place)
    error = frames.ambiguous(acting.join(harmed, place, "left_semi").select(ID))
    if error is not None:
        raise error


def _change(
    session: WriteSession,
    snapshot: Snapshot | None,
    frames: MergeFrames,
    splits: tuple[DataSplit, ...] | list[DataSplit],
    hits: DataFrame,
    *,
    is_dry: bool,
) -> tuple[list[CommitMessage], Reports]:
    """Let each split be changed by the task that owns it."""
    store, plan, spark = session.store, frames.plan, frames.spark
    work, predicates = frames.split_rows(splits)
    names = frozenset().union(*(clause.columns(SOURCE) for clause in plan.matched))
    values, sent = frames.columns.of(names), frames.columns.only(names)
    if not plan.orphaned:  # or a match that no clause changes still counts
        hits = hits.filter(sql.col(CLAUSE) != NO_CLAUSE)
    if sent:
        # Two steps: so many columns may be too large to send everywhere, unlike keys.
        renamed = [sql.col(old).alias(new) for old, new in zip(sent, values.names, strict=True)]
        hits = hits.join(frames.used.select(ID, *renamed), ID)
    whole = spark.createDataFrame(work).drop(PARTITION)
    whole = whole.withColumns({PART: sql.lit(-1), POSITION: sql.lit(-1).cast("bigint")})
    owners = min(len(splits), _MOST_OWNERS)
    rows = whole.unionByName(hits.drop(ID), allowMissingColumns=True)
    owned = rows.repartitionById(owners, sql.pmod(sql.col(UNIT), sql.lit(owners)))
    owned = owned.sortWithinPartitions(UNIT, PART, POSITION)
    job = Job(store, store.env.new_id())
    task = OwnerTask(
        session, job.id, snapshot, plan, values, predicates, frames.now_ms, is_dry=is_dry
    )
    return job.run(lambda: gather(counted(owned.mapInArrow(task, REPORT_SCHEMA))))

"""Delete and update rows on Spark: each task finds the rows of its files, and writes what changes.

A condition is about one row, so nothing is shuffled: a task gets splits, reads the columns of the
condition, and rewrites, marks or adds to the files of these splits, with the same code as without
Spark. Rows of tables with a primary key go through the ordinary write (``key_rows``).
"""

from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass, replace

import pyarrow as pa
from pyspark.sql import Column, SparkSession

from emberlake.base.parallel import limit_threads
from emberlake.predicates import Predicate
from emberlake.rowops.attempts import run_change
from emberlake.rowops.change import change_clause
from emberlake.rowops.clauses import Editor
from emberlake.rowops.edits import Prepared, write_edits
from emberlake.rowops.find import Condition, bind_where, find_in_splits
from emberlake.rowops.key_changes import found_rows
from emberlake.rowops.result import RowChangeResult, Tally
from emberlake.scan.plan import plan_target
from emberlake.session.write_session import WriteSession
from emberlake.spark.changes import check_reachable
from emberlake.spark.column_changes import change_by_columns, uses_columns
from emberlake.spark.dealt_splits import DealtSplits
from emberlake.spark.failures import reported_errors, typed_errors
from emberlake.spark.job import Job
from emberlake.spark.job_files import task_store
from emberlake.spark.key_rows import KeyChangeTask, changed_rows, read_rows, write_key_rows
from emberlake.spark.owners import tally_in
from emberlake.spark.reports import (
    REPORT_SCHEMA,
    Reports,
    TaskReport,
    counted,
    gather,
    report_batch,
    task_number,
)
from emberlake.spark.sessions import fast_arrow
from emberlake.spark.split_frames import frame_of_splits
from emberlake.spec.snapshot import Snapshot


def change_on_spark(
    session: WriteSession,
    spark: SparkSession,
    where: Predicate | str | Column | None,
    values: Mapping[str, object] | None,
) -> RowChangeResult:
    """Delete the rows that match (no values), or set columns of them, in one commit.

    If the condition or a value is a Column, Spark evaluates all of them (``column_changes``).

    Raises:
        InvalidExpression, InvalidPredicate, ColumnNotFound: values or condition do not fit.
        DataMismatch: a value cannot be computed, or does not fit its column; nothing changes.
        Unsupported: rows of this table cannot be changed like this.
        CommitConflict: others changed the same rows again and again.
    """
    if isinstance(where, Column) or uses_columns((values or {}).values()):
        return change_by_columns(session, spark, where, values)
    check_reachable(session, spark)
    return run_change(session, lambda now, state: _prepare(now, state, spark, where, values))


def _prepare(
    current: WriteSession,
    snapshot: Snapshot | None,
    spark: SparkSession,
    where: Predicate | str | None,
    values: Mapping[str, object] | None,
) -> Prepared:
    store = current.store
    condition = bind_where(where, store.schema)
    editor = Editor((change_clause(store.schema, values),), now_ms=store.env.now_ms())
    if store.schema.profile.has_keys:
        rows = read_rows(store, snapshot, condition.predicate, spark)
        to_records = KeyChangeTask(store, editor, found_rows(condition, editor.now_ms))
        return write_key_rows(current, snapshot, changed_rows(rows, to_records, store.schema))
    splits = plan_target(store, snapshot, condition.predicate, None).splits
    if not splits:
        return Prepared((), Tally())
    frame, dealt = frame_of_splits(spark, splits, store.options)
    job = Job(store, store.env.new_id())
    task = ChangeTask(current, job.id, snapshot, condition, editor, dealt)

    def run() -> Reports:
        with typed_errors(), fast_arrow(spark):
            return gather(counted(frame.mapInArrow(task, REPORT_SCHEMA)))

    messages, reports = job.run(run)
    return Prepared(tuple(messages), tally_in(reports))


@dataclass(frozen=True, slots=True)
class ChangeTask:
    """Changes the rows of one task's splits."""

    session: WriteSession
    job_id: str
    snapshot: Snapshot | None
    condition: Condition
    editor: Editor
    dealt: DealtSplits

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Find and change; yield one report."""
        limit_threads()
        number = task_number()
        with reported_errors():
            made = self._change(batches, number)
        report = TaskReport.of(self.job_id, number, made.messages, astuple(made.tally))
        yield report_batch([report])

    def _change(self, batches: Iterator[pa.RecordBatch], number: int) -> Prepared:
        store = task_store(self.session.store, self.job_id, number)
        (clause,) = self.editor.clauses
        with store.decoding_rows():
            splits = self.dealt.splits(batches)
            edits = find_in_splits(store, splits, self.condition, clause, self.editor.now_ms)
            session = replace(self.session, store=store)
            return write_edits(session, self.snapshot, self.editor, edits)

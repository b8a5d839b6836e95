"""The reports of the tasks of a job, and the check that all of them arrived.

Every task reports once, even if it has nothing to write. A commit of what only some tasks wrote
would lose the rows of the others and look like a success, so the driver has to know how many tasks
there are. Spark decides that while the job runs, and does not tell Python workers. So one more
partition is put after those that write: its number is the number of tasks.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from emberlake.errors import IncompleteJob
from emberlake.wire import CommitMessage

REPORT_SCHEMA: Final = "job string, number int, messages array<binary>, counts array<bigint>"
_ARROW_SCHEMA: Final = pa.schema(
    [
        ("job", pa.string()),
        ("number", pa.int32()),
        ("messages", pa.list_(pa.binary())),
        ("counts", pa.list_(pa.int64())),
    ]
)
# A local relation, because Spark merges two plans that have one partition each into one partition.
_LAST: Final = (
    "SELECT CAST(NULL AS STRING) AS job, CAST(NULL AS INT) AS number, "
    "CAST(NULL AS ARRAY<BINARY>) AS messages, CAST(NULL AS ARRAY<BIGINT>) AS counts "
    "FROM VALUES (0)"
)
_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class TaskReport:
    """What one task of a job wrote, or did for one part of its work."""

    job_id: str
    number: int  # of the task, or of the part: from 0, without gaps
    messages: tuple[bytes, ...]  # commit messages in their byte form
    counts: tuple[int, ...] = ()  # other figures, which are summed over all tasks

    @staticmethod
    def of(
        job_id: str, number: int, messages: Iterable[CommitMessage], counts: Sequence[int] = ()
    ) -> "TaskReport":
        """The report of these messages."""
        raws = tuple(message.to_bytes() for message in messages)
        return TaskReport(job_id, number, raws, tuple(counts))


@dataclass(frozen=True, slots=True)
class Reports:
    """The reports that reached the driver."""

    received: tuple[TaskReport, ...]
    total: int | None  # how many there must be; None if unknown

    def messages(self, job_id: str) -> list[CommitMessage]:
        """The messages of all tasks of the job, in the order of the tasks.

        A report that arrived twice counts once, if both are equal.

        Raises:
            IncompleteJob: a report is missing, is of another job, or contradicts another.
        """
        problem = _problem(self.received, job_id, self.total)
        if problem is not None:
            raise incomplete(job_id, problem)
        found = {report.number: report for report in self.received}
        raws = (raw for number in sorted(found) for raw in found[number].messages)
        return [CommitMessage.from_bytes(raw) for raw in raws]

    def counts(self) -> list[int]:
        """The sums of what the tasks counted; empty if they counted nothing."""
        by_task = {report.number: report.counts for report in self.received}
        return [sum(of_tasks) for of_tasks in zip(*by_task.values(), strict=True)]


def incomplete(job_id: str, problem: str) -> IncompleteJob:
    """The error for a job with missing reports."""
    return IncompleteJob(
        f"the job {job_id} is not committed: {problem}. The table is unchanged. The files of the "
        "job were left in place, because a task that did not report may have written them. "
        "Run the job again; remove_orphan_files() deletes them once they are old enough"
    )


def _problem(received: Sequence[TaskReport], job_id: str, total: int | None) -> str | None:
    strange = sorted({report.job_id for report in received} - {job_id})
    if strange:
        return f"there are reports of another job: {_listed(strange)}"
    if total is None:
        return "the number of its tasks is unknown"
    found: dict[int, TaskReport] = {}
    for report in received:
        if found.setdefault(report.number, report) != report:
            return f"there are two different reports of task {report.number}"
    missing = [number for number in range(total) if number not in found]
    if missing:
        return f"{len(missing)} of {total} tasks sent no report: {_listed(missing)}"
    extra = sorted(number for number in found if not 0 <= number < total)
    return f"it has {total} tasks, but task {_listed(extra)} also reported" if extra else None


def _listed(values: Sequence[object]) -> str:
    more = len(values) - _SHOWN
    shown = ", ".join(str(value) for value in values[:_SHOWN])
    return f"{shown} and {more} more" if more > 0 else shown


def task_number() -> int:
    """In a task: the number of its partition; 0 outside of tasks."""
    task = TaskContext.get()
    return 0 if task is None else task.partitionId()


def report_batch(reports: Sequence[TaskReport]) -> pa.RecordBatch:
    """In a task: reports in the form that is sent to the driver."""
    columns = [
        pa.array([report.job_id for report in reports], pa.string()),
        pa.array([report.number for report in reports], pa.int32()),
        pa.array([list(report.messages) for report in reports], pa.list_(pa.binary())),
        pa.array([list(report.counts) for report in reports], pa.list_(pa.int64())),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_ARROW_SCHEMA)


def counted(reports: DataFrame) -> DataFrame:
    """The reports of all tasks of a DataFrame, and a row with the number of tasks."""
    last = reports.sparkSession.sql(_LAST)
    total = sql.when(sql.col("number").isNull(), sql.spark_partition_id())
    return reports.union(last).select("*", total.alias("total"))


def gather(reports: DataFrame, total: int | None = None) -> Reports:
    """Run the job; ``total`` is how many reports there must be, unless the job returns it."""
    received: list[TaskReport] = []
    for row in reports.collect():
        if row.number is None:
            total = row.total
        else:
            messages = tuple(bytes(raw) for raw in row.messages)
            received.append(TaskReport(row.job, row.number, messages, tuple(row.counts)))
    return Reports(tuple(received), total)

"""Compact a table: tasks compact buckets in parallel, and one commit publishes the result."""

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql import SparkSession

from emberlake.base.parallel import limit_threads
from emberlake.commit.change import NOTHING_COMMITTED, CommitResult
from emberlake.compaction.buckets import with_present_schema
from emberlake.expressions.query_auth import seeing_all
from emberlake.maintenance.compact import CompactionShare, compact_places, compaction_places
from emberlake.options import POSTPONE_BUCKET
from emberlake.predicates import Predicate
from emberlake.session.write_session import WriteSession
from emberlake.spark.failures import reported_errors, typed_errors
from emberlake.spark.job import Job
from emberlake.spark.job_files import task_store
from emberlake.spark.reports import REPORT_SCHEMA, Reports, TaskReport, gather, report_batch
from emberlake.spark.sessions import check_workers
from emberlake.spec.snapshot import Snapshot
from emberlake.spec.support import check_compactable
from emberlake.store.table_store import TableStore
from emberlake.wire import CommitMessage

_PLACES: Final = "task int, number int, partition binary, bucket int"
_MAX_TASKS: Final = 256  # each task plans the table; with more, planning would dominate the cost


def compact_on_spark(
    store: TableStore,
    commit_user: str,
    spark: SparkSession,
    *,
    full: bool,
    where: Predicate | None,
) -> CommitResult:
    """Compact the buckets of all partitions, or of those that match, and commit the result.

    Raises:
        CommitConflict: another writer replaced the same files; nothing changes.
        IncompleteJob: some buckets were not reported; nothing changes, and no file is deleted.
    """
    snapshot = store.snapshots.latest()
    store = seeing_all(with_present_schema(store), "compacted")
    check_compactable(store.schema)
    if snapshot is None:
        return NOTHING_COMMITTED
    check_workers(spark)
    job = Job(store, store.env.new_id())
    messages, _ = job.run(lambda: _compact(store, spark, snapshot, job.id, full=full, where=where))
    return WriteSession(store, commit_user).commit_or_abort(messages)


def _compact(
    store: TableStore,
    spark: SparkSession,
    snapshot: Snapshot,
    job_id: str,
    *,
    full: bool,
    where: Predicate | None,
) -> Reports:
    """Compact every place in one task, which reports it once, by its number."""
    places = compaction_places(store, snapshot, where)
    if not places:
        return Reports((), 0)
    tasks = spread(places, _MAX_TASKS)
    of_tasks = [(task, place) for task, its in enumerate(tasks) for place in its]
    rows = [
        (task, number, bytearray(place.partition), place.bucket)
        for number, (task, place) in enumerate(of_tasks)
    ]
    frame = spark.createDataFrame(rows, _PLACES).repartitionById(len(tasks), "task")
    compacted = frame.mapInArrow(CompactTask(store, job_id, snapshot.id, full), REPORT_SCHEMA)
    with typed_errors():
        return gather(compacted, total=len(places))


def spread(places: Sequence[CompactionShare], max_tasks: int) -> list[list[CompactionShare]]:
    """The places of every task: the largest first, each to the task with the least to do."""
    tasks: list[list[CompactionShare]] = [[] for _ in range(min(len(places), max_tasks))]
    loads = [0] * len(tasks)
    for place in sorted(places, key=lambda place: place.file_size, reverse=True):
        least = loads.index(min(loads))
        tasks[least].append(place)
        loads[least] += place.file_size
    return tasks


@dataclass(frozen=True, slots=True)
class CompactTask:
    """Compacts the buckets of one task, in the state of a snapshot."""

    store: TableStore
    job_id: str
    snapshot_id: int
    full: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Compact the places of all batches; yield a report of each."""
        limit_threads()
        rows = [row for batch in batches for row in batch.to_pylist()]
        numbers = {CompactionShare(row["partition"], row["bucket"]): row["number"] for row in rows}
        with reported_errors():
            store = task_store(self.store, self.job_id)
            snapshot = store.snapshots.load(self.snapshot_id)
            messages = compact_places(store, snapshot, list(numbers), full=self.full)
        found: dict[int, list[CommitMessage]] = {number: [] for number in numbers.values()}
        for message in messages:
            found[numbers[_place_of(message, numbers)]].append(message)
        yield report_batch([TaskReport.of(self.job_id, n, found[n]) for n in found])


def _place_of(message: CommitMessage, places: Container[CompactionShare]) -> CompactionShare:
    """The bucket of a message, or its whole partition if rows were waiting for their bucket."""
    bucket = CompactionShare(message.partition, message.bucket)
    return bucket if bucket in places else CompactionShare(message.partition, POSTPONE_BUCKET)

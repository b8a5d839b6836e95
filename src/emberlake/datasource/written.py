"""The part of a write that one task does, in batches and streams: write rows, return messages.

Spark does not let a data source say which task gets which row, so any task may write to any bucket.
That is correct: a bucket accepts files of several writers in one commit, and rows of one key are
merged wherever they are. The cost is more and smaller files.

Tasks number their rows one task after the other. Among rows of one key, the one in the last
partition of the DataFrame is the newest for every reader and compaction; with the same numbers in
two files, each reader would choose at random.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import WriterCommitMessage

from emberlake.base.parallel import limit_threads
from emberlake.errors import InvalidState
from emberlake.session.write_session import WriteSession
from emberlake.spark.reports import Reports, TaskReport, task_number
from emberlake.spark.sifting import Sifting, TaskSifter
from emberlake.spark.write_task import gathered
from emberlake.spec.replacement import Replacement
from emberlake.store.table_store import TableStore
from emberlake.wire import CommitMessage
from emberlake.write.rows_writer import RowsWriter
from emberlake.write.table_writer import TableWriter

# How many sequence numbers of a bucket each task has. A write with a thousand tasks takes 2**34 of
# 2**63. If a task writes more rows to one bucket, it runs into the numbers of the next task.
SEQUENCES_PER_TASK: Final = 1 << 24


@dataclass(frozen=True, slots=True)
class WrittenFiles(WriterCommitMessage):
    """What a task tells the driver: its report, the commit user and the query."""

    report: TaskReport
    commit_user: str
    query_id: str | None = None


@dataclass(frozen=True, slots=True)
class TaskSifting:
    """What a task does with rows that do not fit, and how they describe the job."""

    sifting: Sifting
    job: str
    place: Callable[[TableStore], TableStore]


def write_rows(
    store: TableStore,
    batches: Iterator[pa.RecordBatch],
    *,
    commit_user: str,
    replaces: Replacement | None = None,
    bad_rows: TaskSifting | None = None,
) -> tuple[list[CommitMessage], int]:
    """Write all rows of a task; if that fails, what was written is deleted.

    Returns:
        What is to be committed, and how many rows did not fit.
    """
    limit_threads()
    writer: RowsWriter
    if store.schema.profile.crosses_partitions:
        writer = WriteSession(store, commit_user, replaces).new_placing()
    else:
        writer = TableWriter(
            store,
            commit_user=commit_user,
            ignore_previous=replaces is not None,
            sequence_offset=task_number() * SEQUENCES_PER_TASK,
        )
    sifter = None
    if bad_rows is not None:
        arguments = bad_rows.sifting, bad_rows.job, bad_rows.place
        sifter = TaskSifter(writer, store.schema, *arguments)
    taking = sifter or writer
    with closing(taking):  # deletes what was not returned
        for table in gathered(batches):
            _check_one_assigner(store)
            taking.write(table)
        # The commit compacts tables that hide new files: other tasks write to the same buckets.
        return taking.prepare(), 0 if sifter is None else sifter.rows_rejected


def _check_one_assigner(store: TableStore) -> None:
    """Refuse dynamic buckets assigned by more than one task; the commit would refuse them anyway.

    In a partitioned table every partition can have its own task, which only the commit can check.
    """
    schema = store.schema
    has_one_index = schema.profile.keeps_key_index and not schema.partition_keys
    if (has_one_index or schema.profile.crosses_partitions) and task_number() > 0:
        raise InvalidState(
            "the table has dynamic buckets (bucket=-1), which one task must assign, but the rows "
            "are in several tasks: write df.coalesce(1), or use emberlake.spark.write_paimon, "
            "which brings the rows of a key together"
        )


def reports_of(messages: Sequence[WriterCommitMessage | None]) -> Reports:
    """The reports of all tasks; Spark has an entry for each task, None if nothing arrived."""
    return Reports(tuple(written.report for written in files_of(messages)), len(messages))


def files_of(messages: Sequence[WriterCommitMessage | None]) -> list[WrittenFiles]:
    """What tasks wrote; Spark has None for a task that failed."""
    return [message for message in messages if isinstance(message, WrittenFiles)]


def merged_by_bucket(messages: Iterable[CommitMessage]) -> list[CommitMessage]:
    """One message per bucket, with what all tasks wrote to it."""
    buckets: dict[tuple[bytes, int], CommitMessage] = {}
    for message in messages:
        place = (message.partition, message.bucket)
        known = buckets.get(place)
        buckets[place] = message if known is None else _merged(known, message)
    return list(buckets.values())


def _merged(one: CommitMessage, other: CommitMessage) -> CommitMessage:
    bases = [one.base, other.base]
    return replace(
        one,
        new_files=(*one.new_files, *other.new_files),
        changelog_files=(*one.changelog_files, *other.changelog_files),
        new_index_files=(*one.new_index_files, *other.new_index_files),
        deleted_index_files=(*one.deleted_index_files, *other.deleted_index_files),
        base=None if None in bases else min(filter(None, bases), key=lambda base: base.id),
    )

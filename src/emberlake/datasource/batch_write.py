"""Batch writes: tasks write files, and the driver commits all of them at once."""

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from emberlake.datasource.options import SourceOptions
from emberlake.datasource.written import WrittenFiles, merged_by_bucket, reports_of, write_rows
from emberlake.spark.alignment import check_alignment
from emberlake.spark.job import Job
from emberlake.spark.job_files import begin_job, end_job, is_open, marked, task_store
from emberlake.spark.reports import Reports, TaskReport, task_number
from emberlake.spark.sweep import sweep_failed, swept_unless_done
from emberlake.spec.support import check_writable
from emberlake.table.write_builder import session_of
from emberlake.wire import CommitMessage


class BatchWriter(DataSourceArrowWriter):
    """Appends to a table, or overwrites it; created on the driver before any task starts."""

    def __init__(self, options: SourceOptions, schema: StructType, *, overwrite: bool) -> None:
        table = options.open_table()
        check_writable(table.table_schema)
        check_alignment(schema, table.table_schema)
        builder = table.new_batch_write_builder()
        self._session = session_of(builder.overwrite() if overwrite else builder)
        self._store = self._session.store
        self._job_id = self._store.env.new_id()
        begin_job(self._store, self._job_id)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenFiles:
        """Write the rows of a task."""
        number = task_number()
        messages = write_rows(
            task_store(self._store, self._job_id, number),
            iterator,
            commit_user=self._session.commit_user,
            ignore_previous=self._session.is_overwrite,
        )
        report = TaskReport.of(self._job_id, number, messages)
        return WrittenFiles(report, self._session.commit_user)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Make the files of all tasks visible in one snapshot.

        Raises:
            IncompleteJob: not every task reported; nothing changes, and the files that were
                written are left in place.
        """
        with swept_unless_done(self._store, self._job_id):
            written = self._finished(reports_of(messages))
        self._session.commit_or_abort(written)

    def _finished(self, reports: Reports) -> list[CommitMessage]:
        """The messages to commit, after deleting the files of attempts that do not count."""
        end_job(self._store, self._job_id)
        written = Job(self._store, self._job_id).messages(reports)
        if not self._session.is_overwrite:
            return written
        # A table that hides new files would look empty until they are compacted.
        session = replace(self._session, store=marked(self._store, self._job_id))
        return session.new_compaction().compact(merged_by_bucket(written))

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:  # noqa: ARG002
        """Delete what tasks wrote, unless its commit has begun.

        Spark also aborts after a failed commit, in another process. The commit ends the job before
        it does anything else. By then it has deleted its files, or must not: they may be in the
        table, or belong to a task that has not reported.
        """
        if is_open(self._store, self._job_id):
            end_job(self._store, self._job_id)
            sweep_failed(self._store, self._job_id)

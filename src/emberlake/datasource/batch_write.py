"""Batch writes: tasks write files, and the driver commits all of them at once."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from emberlake.datasource.options import SourceOptions
from emberlake.datasource.target import batch_sifting, open_checked
from emberlake.datasource.written import (
    TaskSifting,
    WrittenFiles,
    merged_by_bucket,
    reports_of,
    write_rows,
)
from emberlake.spark.job import Job
from emberlake.spark.job_files import begin_job, end_job, is_open, marked, task_store
from emberlake.spark.reports import Reports, TaskReport, task_number
from emberlake.spark.sweep import sweep_failed, swept_unless_done
from emberlake.store.table_store import TableStore
from emberlake.table.write_builder import session_of
from emberlake.wire import CommitMessage


class BatchWriter(DataSourceArrowWriter):
    """Appends to a table, or overwrites it; created on the driver before any task starts."""

    def __init__(self, options: SourceOptions, schema: StructType, *, overwrite: bool) -> None:
        table = open_checked(options, schema)
        builder = table.new_batch_write_builder()
        self._session = session_of(builder.overwrite() if overwrite else builder)
        self._store = self._session.store
        self._sifting = batch_sifting(options, table, self._session.commit_user)
        self._job_id = self._store.env.new_id()
        for store in self._stores:
            begin_job(store, self._job_id)

    @property
    def _stores(self) -> tuple[TableStore, ...]:
        """The table, and the one that keeps bad rows."""
        return (self._store, *(() if self._sifting is None else self._sifting.stores))

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenFiles:
        """Write the rows of a task."""
        number = task_number()

        def place(store: TableStore) -> TableStore:
            return task_store(store, self._job_id, number)

        sifting = self._sifting
        messages, _ = write_rows(
            place(self._store),
            iterator,
            commit_user=self._session.commit_user,
            replaces=self._session.replaces,
            bad_rows=None if sifting is None else TaskSifting(sifting, self._job_id, place),
        )
        report = TaskReport.of(self._job_id, number, messages)
        return WrittenFiles(report, self._session.commit_user)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Make the files of all tasks visible in one snapshot.

        Raises:
            IncompleteJob: not every task reported; nothing changes, and the files that were
                written are left in place.
        """
        with ExitStack() as swept:
            for store in self._stores:
                swept.enter_context(swept_unless_done(store, self._job_id))
            written = self._finished(reports_of(messages))
            if self._sifting is not None and self._sifting.quarantine is not None:
                # Quarantine comes first, so that every row is in one of the tables.
                written, rejected = self._sifting.divided(written)
                self._sifting.quarantine.commit_or_abort(rejected)
        self._session.commit_or_abort(self._visible(written))

    def _finished(self, reports: Reports) -> list[CommitMessage]:
        """The messages to commit, after deleting the files of attempts that do not count."""
        for store in self._stores:
            end_job(store, self._job_id)
        return Job(self._store, self._job_id, self._stores[1:]).messages(reports)

    def _visible(self, written: list[CommitMessage]) -> list[CommitMessage]:
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
        for store in self._stores:
            if is_open(store, self._job_id):
                end_job(store, self._job_id)
                sweep_failed(store, self._job_id)

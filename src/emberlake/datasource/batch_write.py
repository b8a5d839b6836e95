"""Batch writes: tasks write files, the driver makes one commit of all of them."""

from collections.abc import Iterator
from contextlib import suppress

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from emberlake.datasource.options import SourceOptions
from emberlake.datasource.written import (
    WrittenFiles,
    decoded,
    files_of,
    marked,
    merged_by_bucket,
    write_rows,
)
from emberlake.errors import AlreadyCommitted, CommitConflict, InvalidInput
from emberlake.maintenance.compact import WrittenCompaction
from emberlake.spark.alignment import check_alignment
from emberlake.spark.job_files import begin_job, end_job, task_store
from emberlake.spark.sweep import sweep_failed, sweep_repeated
from emberlake.spec.support import check_writable
from emberlake.wire import CommitMessage


class BatchWriter(DataSourceArrowWriter):
    """Appends to a table, or overwrites it; made on the driver before any task starts."""

    def __init__(self, options: SourceOptions, schema: StructType, *, overwrite: bool) -> None:
        table = options.open_table()
        check_writable(table.table_schema)
        check_alignment(schema, table.table_schema)
        self._builder = table.new_batch_write_builder()
        self._is_overwrite = overwrite
        if overwrite:
            self._builder.overwrite()
        self._store = self._builder.store
        self._job_id = self._store.env.new_id()
        begin_job(self._store, self._job_id)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenFiles:
        """Write the rows of a task."""
        messages = write_rows(
            task_store(self._store, self._job_id),
            iterator,
            commit_user=self._builder.commit_user,
            ignore_previous=self._is_overwrite,
        )
        return WrittenFiles(self._job_id, self._builder.commit_user, messages)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Make the files of all tasks visible in one snapshot."""
        try:
            written = self._finished(decoded(files_of(messages)))
        except BaseException:
            sweep_failed(self._store, self._job_id)
            raise
        commit = self._builder.new_commit()
        try:
            commit.commit(written)
        except (CommitConflict, InvalidInput):
            # Other failures leave it open whether the files are in the table: they stay.
            with suppress(AlreadyCommitted):
                commit.abort(written)
            raise

    def _finished(self, written: list[CommitMessage]) -> list[CommitMessage]:
        """What is to be committed; attempts that do not count are over, and their files gone."""
        end_job(self._store, self._job_id)
        sweep_repeated(self._store, self._job_id, written)
        if not self._is_overwrite:
            return written
        # A table that hides new files would be seen empty until they are compacted.
        store = marked(self._store, self._job_id)
        return WrittenCompaction(store, ignore_previous=True).compact(merged_by_bucket(written))

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Delete what tasks wrote, unless all of them succeeded.

        Spark aborts after a commit that failed as well. That has deleted its files by then, or must
        not because the files may be in the table.
        """
        end_job(self._store, self._job_id)
        if None in messages:
            sweep_failed(self._store, self._job_id)

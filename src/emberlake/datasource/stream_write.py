"""Stream writes: every micro-batch is committed exactly once.

A query is identified by the id that Spark keeps in its checkpoint. The commit user is derived from
it, and the number of the batch is the commit identifier. A batch that Spark repeats after a crash
is already in the table: its files are deleted, and nothing is committed twice.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from emberlake.datasource.options import COMMIT_USER, SourceOptions
from emberlake.datasource.target import open_checked, stream_sifting
from emberlake.datasource.written import (
    TaskSifting,
    WrittenFiles,
    files_of,
    reports_of,
    write_rows,
)
from emberlake.errors import (
    AlreadyCommitted,
    IncompleteJob,
    InvalidOption,
    InvalidState,
    Unsupported,
)
from emberlake.maintenance.compact import compact_table
from emberlake.session.compact_written import is_due_fully
from emberlake.session.write_session import WriteSession
from emberlake.spark.job import Job
from emberlake.spark.job_files import hold_job, is_held, marked
from emberlake.spark.reports import TaskReport, task_number
from emberlake.spark.sweep import sweep_failed
from emberlake.spec.snapshot import CommitKind, Snapshot
from emberlake.store.table_store import TableStore
from emberlake.wire import CommitMessage

# The property in which Spark tells tasks the id of their query, which is that of its checkpoint.
_QUERY_ID: Final = "sql.streaming.queryId"
# The snapshot property that names the query that made it.
_QUERY_PROPERTY: Final = "spark.query-id"
# And the one that counts the rows of the batch that did not fit.
_REJECTED_PROPERTY: Final = "spark.rows-rejected"


class StreamWriter(DataSourceStreamArrowWriter):
    """Appends micro-batches to a table; Spark creates one per batch, and one per commit."""

    def __init__(self, options: SourceOptions, schema: StructType, *, overwrite: bool) -> None:
        if overwrite:
            raise Unsupported(
                "the output mode complete would replace the table with every batch; use the mode "
                "append, or overwrite it in foreachBatch with emberlake.spark.write_paimon"
            )
        if options.commit_user is None and options.checkpoint is None:
            raise InvalidOption(
                "a stream needs the option checkpointLocation on the query itself, or "
                f"{COMMIT_USER}: without it a repeated batch could not be recognised"
            )
        table = open_checked(options, schema, is_stream=True)
        self._store = table.new_stream_write_builder(options.commit_user).store
        self._commit_user = options.commit_user
        self._sifting = stream_sifting(options, schema, table, options.commit_user or "")
        self._job_id = self._store.env.new_id()

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenFiles:
        """Write the rows of a task of a batch."""
        query_id, number = _query_id(), task_number()
        user = self._commit_user or f"spark-{query_id}"
        sifting = self._sifting

        def place(store: TableStore) -> TableStore:
            return marked(store, self._job_id, number)

        messages, rejected = write_rows(
            place(self._store),
            iterator,
            commit_user=user,
            bad_rows=None if sifting is None else TaskSifting(sifting, user, place),
        )
        counts = [] if sifting is None else [rejected]
        return WrittenFiles(TaskReport.of(self._job_id, number, messages, counts), user, query_id)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Make a batch visible in one snapshot, unless it already is.

        Raises:
            IncompleteJob: not every task reported; nothing changes, and the files that were
                written are left in place.
        """
        tasks, reports = files_of(messages), reports_of(messages)
        # Spark created this object for the commit: the job id is the one that the tasks agree on.
        job_id = tasks[0].report.job_id if tasks else self._job_id
        try:
            written = Job(self._store, job_id, self._stores[1:]).messages(reports)
        except IncompleteJob:
            # Spark aborts after a failed commit, in another process.
            hold_job(self._store, job_id)
            raise
        if not written:
            return
        user, query_id = tasks[0].commit_user, tasks[0].query_id or ""
        if self._sifting is not None:
            written, rejected = self._sifting.divided(written)
            for store in self._stores[1:]:
                # Quarantine comes first, so that every row is in one of the tables. If the query
                # is killed in between, the repeated batch is recognised here as well.
                if rejected:
                    MicroBatch(store, user, query_id, batchId).commit(rejected)
        if written:
            count = sum(reports.counts())
            properties = {_REJECTED_PROPERTY: str(count)} if count else {}
            MicroBatch(self._store, user, query_id, batchId).commit(written, properties)

    @property
    def _stores(self) -> tuple[TableStore, ...]:
        """The table, and the one that keeps bad rows."""
        return (self._store, *(() if self._sifting is None else self._sifting.stores))

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803
        """Delete what tasks wrote, unless all of them succeeded: then the commit has failed.

        A failed commit has deleted its files, or must not because they may be in the table.
        """
        if None in messages:
            for job_id in {task.report.job_id for task in files_of(messages)}:
                if not is_held(self._store, job_id):
                    for store in self._stores:
                        sweep_failed(store, job_id)


def _query_id() -> str:
    task = TaskContext.get()
    query_id = task.getLocalProperty(_QUERY_ID) if task is not None else None
    if query_id is None:
        raise InvalidState("Spark does not say which query this is; is it a stream?")
    return query_id


class MicroBatch:
    """The commit of one micro-batch."""

    def __init__(self, store: TableStore, commit_user: str, query_id: str, identifier: int) -> None:
        self._store = store
        self._query_id = query_id
        self._identifier = identifier
        self._session = WriteSession(store, commit_user)

    def commit(
        self, messages: Sequence[CommitMessage], properties: Mapping[str, str] | None = None
    ) -> bool:
        """Commit the messages; if the batch is already in the table, delete their files instead.

        Args:
            messages: Of all tasks.
            properties: More properties of the snapshot, about the batch.

        Returns:
            Whether the batch was committed now.
        """
        newest = self._newest()
        if newest is not None and newest.commit_identifier >= self._identifier:
            self._session.abort(messages)
            self._check_same_query(newest)
            self._finish(newest)
            return False
        properties = {_QUERY_PROPERTY: self._query_id, **(properties or {})}
        try:
            self._session.commit_or_abort(messages, self._identifier, properties)
        except AlreadyCommitted:  # another driver of the same query was faster
            return False
        return True

    def _newest(self) -> Snapshot | None:
        """The newest snapshot of the commit user."""
        latest = self._store.snapshots.latest_id()
        if latest is None:
            return None
        users = self._store.snapshots.iter_back(latest)
        return next((s for s in users if s.commit_user == self._session.commit_user), None)

    def _check_same_query(self, newest: Snapshot) -> None:
        """Spark only repeats the last batch of a query; anything else is another query."""
        known = newest.properties.get(_QUERY_PROPERTY, self._query_id)
        if newest.commit_identifier == self._identifier and known == self._query_id:
            return
        raise InvalidState(
            f"{self._session.commit_user} has committed batch {newest.commit_identifier} of query "
            f"{known}, and now gets batch {self._identifier} of query {self._query_id}: the "
            "checkpoint is new, or belongs to another query; give that query its own "
            f"{COMMIT_USER}"
        )

    def _finish(self, newest: Snapshot) -> None:
        """Compact what was written just before a crash, if the commit was to compact it."""
        schema, user = self._store.schema, self._store.new_commit_user()
        full = is_due_fully(schema, newest.commit_identifier)
        is_compacted = newest.commit_kind is CommitKind.COMPACT
        if (schema.profile.compacts_on_write or full) and not is_compacted:
            compact_table(self._store, user, full=full, where=None)

"""Write a DataFrame: many tasks write files, the driver makes one commit of them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol

from pyspark.sql import DataFrame

from emberlake.commit.change import CommitResult
from emberlake.errors import AlreadyCommitted, CommitConflict, InvalidInput, Unsupported
from emberlake.spark.alignment import check_alignment
from emberlake.spark.clustering import Rows, cluster, plan_clustering
from emberlake.spark.failures import typed_errors
from emberlake.spark.job_files import open_job
from emberlake.spark.session import check_workers, fast_arrow
from emberlake.spark.sweep import sweep_failed, sweep_repeated
from emberlake.spark.write_task import MESSAGE_SCHEMA, WriteTask
from emberlake.store.table_store import TableStore
from emberlake.wire import CommitMessage

if TYPE_CHECKING:
    from pyspark.resource import ResourceProfile


class Commit(Protocol):
    """The half of a write that makes files visible, or deletes them."""

    def commit(self, messages: Sequence[CommitMessage]) -> CommitResult: ...

    def abort(self, messages: Sequence[CommitMessage]) -> None: ...


@dataclass(frozen=True, kw_only=True)
class SparkWriteResult(CommitResult):
    """What a distributed write did, and how long its stages took."""

    seconds: Mapping[str, float] = field(default_factory=dict, hash=False)  # check, write, commit


@dataclass(frozen=True, kw_only=True)
class WriteJob:
    """A write of a DataFrame to a table."""

    store: TableStore
    commit_user: str
    commit: Commit
    ignore_previous: bool = False
    accepts: Callable[[bytes], bool] | None = None
    write_columns: tuple[str, ...] | None = None
    concurrency: int | None = None
    resource_profile: "ResourceProfile | None" = None

    def run(self, df: DataFrame) -> SparkWriteResult:
        """Write all rows and make them visible in one snapshot.

        Raises:
            DataMismatch: the DataFrame does not fit the table; no task was started.
            CommitConflict: a concurrent change makes the commit wrong; nothing changes, and what
                was written is deleted, unless the error says that a snapshot stands.
        """
        seconds: dict[str, float] = {}
        with _timed(seconds, "check"):
            self._check(df)
            check_workers(df.sparkSession)
        job_id = self.store.env.new_id()
        with _timed(seconds, "write"):
            try:
                with open_job(self.store, job_id):
                    messages = self._write(df, job_id)
                # Attempts that Spark repeated may have left files that no message names.
                sweep_repeated(self.store, job_id, messages)
            except BaseException:
                sweep_failed(self.store, job_id)
                raise
        with _timed(seconds, "commit"):
            done = self._commit(messages)
        counts: dict[str, Any] = {f.name: getattr(done, f.name) for f in fields(CommitResult)}
        return SparkWriteResult(**counts, seconds=seconds)

    def _check(self, df: DataFrame) -> None:
        if not isinstance(df, DataFrame):
            raise InvalidInput(f"write_spark takes a Spark DataFrame, not {type(df).__name__}")
        tasks = self.concurrency
        if tasks is not None and (type(tasks) is not int or tasks < 1):  # a bool is an int
            raise InvalidInput(f"concurrency is a number of tasks, not {tasks!r}")
        if df.isStreaming:
            raise InvalidInput(
                "a stream is written batch by batch: use writeStream.format('emberlake'), or "
                "write_paimon in foreachBatch"
            )
        if not self.store.storage.traits.is_shared:
            raise Unsupported("a table in memory is out of reach of Spark's workers")
        check_alignment(df.schema, self.store.schema, self.write_columns)

    def _write(self, df: DataFrame, job_id: str) -> list[CommitMessage]:
        clustering = plan_clustering(self.store.schema, self.concurrency)
        task = WriteTask(
            self.store,
            job_id,
            self.commit_user,
            tuple(df.columns),
            self.ignore_previous,
            self.accepts,
            self.write_columns,
            assigners=(clustering.tasks or 1) if clustering.rows is Rows.BY_KEY else 1,
        )
        clustered = cluster(df, self.store.schema, clustering)
        written = clustered.mapInArrow(task, MESSAGE_SCHEMA, profile=self.resource_profile)
        with typed_errors(), fast_arrow(df.sparkSession):
            rows = written.collect()
        return [CommitMessage.from_bytes(bytes(row.message)) for row in rows]

    def _commit(self, messages: Sequence[CommitMessage]) -> CommitResult:
        try:
            return self.commit.commit(messages)
        except (CommitConflict, InvalidInput):
            # Other failures leave it open whether the files are in the table: they stay.
            with suppress(AlreadyCommitted):
                self.commit.abort(messages)
            raise


@contextmanager
def _timed(seconds: dict[str, float], stage: str) -> Iterator[None]:
    start = perf_counter()
    yield
    seconds[stage] = perf_counter() - start

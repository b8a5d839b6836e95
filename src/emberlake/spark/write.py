"""Write a DataFrame: many tasks write files, and the driver commits them at once."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, fields, replace
from time import perf_counter
from typing import Any

from pyspark.resource import ResourceProfile
from pyspark.sql import DataFrame

from emberlake.commit.change import CommitResult
from emberlake.commit.discard import discard
from emberlake.errors import DataMismatch, EmberlakeError, InvalidInput, Unsupported
from emberlake.rowops.result import WriteResult
from emberlake.session.write_session import WriteSession
from emberlake.spark.alignment import check_alignment
from emberlake.spark.clustering import Numbered, cluster, plan_clustering
from emberlake.spark.failures import typed_errors
from emberlake.spark.job import Job
from emberlake.spark.key_places import KeyPlaces, find_places
from emberlake.spark.reports import REPORT_SCHEMA, Reports, counted, gather
from emberlake.spark.resources import find_profile
from emberlake.spark.sessions import check_workers, fast_arrow, small_pieces
from emberlake.spark.sifting import Sifting, read_text_columns, without_texts
from emberlake.spark.write_task import WriteTask
from emberlake.spec.snapshot import Snapshot
from emberlake.spec.support import check_writable
from emberlake.store.table_store import TableStore
from emberlake.wire import CommitMessage


@dataclass(frozen=True, kw_only=True, repr=False)
class SparkWriteResult(WriteResult):
    """What a distributed write did, with how many tasks, and how long its stages took."""

    tasks: int = 0  # that wrote, or had nothing to write
    seconds: Mapping[str, float] = field(default_factory=dict, hash=False)  # check, write, commit


@dataclass(frozen=True, kw_only=True)
class WriteJob:
    """A write of a DataFrame to a table."""

    session: WriteSession
    write_columns: tuple[str, ...] | None = None
    concurrency: int | None = None
    resource_profile: ResourceProfile | Mapping[str, object] | None = None
    as_of: Snapshot | None = None  # the state that the rows were read from, if it was the table
    sifting: Sifting | None = None  # what happens to rows that do not fit; None: the write fails

    def on(self, store: TableStore) -> "WriteJob":
        """The same write, to the same table with other columns."""
        return replace(self, session=replace(self.session, store=store))

    def run(self, df: DataFrame) -> SparkWriteResult:
        """Write all rows and make them visible in one snapshot.

        Raises:
            DataMismatch: the DataFrame does not fit the table; no task was started.
            IncompleteJob: not every task reported; nothing changes, and the files that were
                written are left in place.
            CommitConflict: a concurrent change makes the commit wrong; nothing changes, and what
                was written is deleted, unless the error says that a snapshot stands.
        """
        seconds: dict[str, float] = {}
        with _timed(seconds, "check"):
            job, df = self._reading_texts(df)
            job.check(df)
            profile = find_profile(self.resource_profile, df.sparkSession)
            check_workers(df.sparkSession)
        with _timed(seconds, "write"):
            messages, reports = job.write(df, profile)
        with _timed(seconds, "commit"):
            done = self._commit(messages)
        counts: dict[str, Any] = {f.name: getattr(done, f.name) for f in fields(CommitResult)}
        return SparkWriteResult(
            **counts,
            tasks=reports.total or 0,
            rows_rejected=sum(reports.counts()),
            seconds=seconds,
        )

    def prepare(self, df: DataFrame) -> list[CommitMessage]:
        """Write all rows, as ``run`` does, without a commit; returns what is to be committed."""
        job, df = self._reading_texts(df)
        job.check(df)
        profile = find_profile(self.resource_profile, df.sparkSession)
        check_workers(df.sparkSession)
        messages, _ = job.write(df, profile)
        return messages

    def _reading_texts(self, df: DataFrame) -> tuple["WriteJob", DataFrame]:
        """If bad rows are allowed, Spark reads text as values of the types that the table has."""
        check_writable(self.session.store.schema)
        check_frame(df)
        if self.sifting is None:
            return self, df
        df, texts = read_text_columns(df, self.session.store.schema)
        return replace(self, sifting=replace(self.sifting, texts=texts)), df

    def _commit(self, messages: list[CommitMessage]) -> CommitResult:
        """Commit bad rows to quarantine first, so that every row is in one of the tables."""
        if self.sifting is None or self.sifting.quarantine is None:
            return self.session.commit_or_abort(messages)
        written, rejected = self.sifting.divided(messages)
        try:
            self.sifting.quarantine.commit_or_abort(rejected)
        except EmberlakeError:
            with suppress(EmberlakeError):  # the first failure matters more than leftover files
                self.session.abort(written)
            raise
        return self.session.commit_or_abort(written)

    def write(
        self, df: DataFrame, profile: ResourceProfile | None = None
    ) -> tuple[list[CommitMessage], Reports]:
        """Write all rows of a DataFrame that fits; returns what is to be committed."""
        store = self.session.store
        job = Job(store, store.env.new_id(), () if self.sifting is None else self.sifting.stores)
        given = Numbered.over(df, store.schema)
        if not store.schema.profile.crosses_partitions:
            return job.run(lambda: self._write(given, job.id, profile, None))
        with find_places(self.session, given, self.as_of) as (rows, places):
            messages, reports = job.run(lambda: self._write(rows, job.id, profile, places))
        try:
            places.check_replaced(store, messages)
        except DataMismatch:
            discard(store, messages)
            raise
        return messages, reports

    def check(self, df: DataFrame) -> None:
        """Refuse a DataFrame that cannot be written, before any task starts."""
        tasks = self.concurrency
        if tasks is not None and (type(tasks) is not int or tasks < 1):  # a bool is an int
            raise InvalidInput(f"concurrency is a number of tasks, not {tasks!r}")
        if not self.session.store.storage.traits.is_shared:
            raise Unsupported("Spark's workers cannot reach a table in memory")
        check_alignment(
            without_texts(df.schema, self.sifting), self.session.store.schema, self.write_columns
        )

    def _write(
        self,
        rows: Numbered,
        job_id: str,
        profile: ResourceProfile | None,
        places: KeyPlaces | None,
    ) -> Reports:
        schema = self.session.store.schema
        clustering = plan_clustering(schema, self.concurrency)
        task = WriteTask(
            self.session,
            job_id,
            tuple(rows.numbers),
            self.write_columns,
            as_of=self.as_of if places is None else places.snapshot,
            assigners=clustering.assigners,
            sifting=self.sifting,
            live=None if places is None else places.live,
        )
        session = rows.frame.sparkSession
        clustered = cluster(rows, clustering, None if places is None else places.keys)
        written = counted(clustered.mapInArrow(task, REPORT_SCHEMA, profile=profile))
        pieces = small_pieces(session) if clustering.shares_partitions else nullcontext()
        with typed_errors(), fast_arrow(session), pieces:
            return gather(written)


def check_frame(df: object) -> None:
    """Refuse anything but a batch DataFrame.

    Raises:
        InvalidInput: says what to use instead.
    """
    if not isinstance(df, DataFrame):
        package = type(df).__module__.partition(".")[0]
        given = f"{package}.{type(df).__name__}".removeprefix("builtins.")
        raise InvalidInput(
            f"only a Spark DataFrame is written by Spark tasks, not a {given}: make one with "
            "spark.createDataFrame, or write without Spark with table.append"
        )
    if df.isStreaming:
        raise InvalidInput(
            "a stream is written batch by batch: use writeStream.format('emberlake'), or "
            "write_paimon in foreachBatch"
        )


@contextmanager
def _timed(seconds: dict[str, float], stage: str) -> Iterator[None]:
    start = perf_counter()
    yield
    seconds[stage] = round(perf_counter() - start, 6)

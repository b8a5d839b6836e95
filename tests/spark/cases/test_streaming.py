"""``readStream`` and ``writeStream``: every row once, also across restarts, on any session.

Queries read all that is there and stop (``availableNow``), so that a second run with the same
checkpoint is a restart.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from changelogs import check_replay
from emberlake import Table
from emberlake.spec.snapshot import CommitKind, Snapshot
from emberlake.store.consumers import ConsumerStore
from emberlake.types import arrow_schema
from spark.tables import Row, data_files, live_files, new_table, reopened, rows_of, some_rows

CHECKPOINT = "spark.sql.streaming.checkpointLocation"


@dataclass
class Flow:
    """Two tables, and a query that goes from one to the other."""

    spark: SparkSession
    folder: Path
    local: Path  # for checkpoints, which Spark keeps by itself
    source: Table
    sink: Table

    @property
    def checkpoint(self) -> Path:
        return self.local / "checkpoint"

    def add(self, rows: Sequence[Row], kind: str | None = None) -> None:
        """Commit rows to the source."""
        table = reopened(self.source)
        names = table.field_names
        data = [dict(zip(names, row, strict=True)) for row in rows]
        builder = table.new_batch_write_builder()
        with builder.new_write() as write:
            write.write_arrow(
                pa.Table.from_pylist(data, arrow_schema(tuple(table.fields))), row_kind=kind
            )
            builder.new_commit().commit(write.prepare_commit())

    def run(
        self,
        change: Callable[[DataFrame], DataFrame] = lambda rows: rows,
        sink_options: dict[str, str] | None = None,
        mode: str = "append",
        **options: str,
    ) -> None:
        """Run the query until all is read; options of the read have `_` for `-`, `__` for `.`."""
        named = {key.replace("__", ".").replace("_", "-"): value for key, value in options.items()}
        rows = (
            self.spark.readStream.format("emberlake")
            .option("warehouse", str(self.folder / "source"))
            .options(**named)
            .load("db.t")
        )
        if sink_options is None:
            sink_options = {"checkpointLocation": str(self.checkpoint)}
        query = (
            change(rows)
            .writeStream.format("emberlake")
            .option("warehouse", str(self.folder / "sink"))
            .options(**sink_options)
            .outputMode(mode)
            .trigger(availableNow=True)
            .start("db.t")
        )
        query.awaitTermination()

    def forget_last_commit(self) -> None:
        """As if the driver had died after our commit, before Spark wrote down its own."""
        last = max(self.written_down("commits"))
        for name in (str(last), f".{last}.crc"):
            (self.checkpoint / "commits" / name).unlink(missing_ok=True)

    def written_down(self, what: str) -> list[int]:
        """The batches in a log of the checkpoint: ``offsets`` or ``commits``."""
        names = (path.name for path in (self.checkpoint / what).iterdir())
        return sorted(int(name) for name in names if name.isdecimal())

    def snapshots(self) -> list[Snapshot]:
        """The snapshots of the sink."""
        manager = self.sink.snapshot_manager()
        return [manager.load(number) for number in manager.list_ids()]

    @property
    def ids(self) -> list[int]:
        """The ids in the sink."""
        return [row[0] for row in rows_of(self.sink)]


@pytest.fixture
def new_flow(spark: SparkSession, tmp_path: Path, local_path: Path) -> Callable[..., Flow]:
    def make(*, sink: dict[str, str] | None = None, **options: str) -> Flow:
        """Two tables with the same options, or others for the sink; keyed if they have buckets."""
        keys = ["id"] if options else []
        tables = [
            new_table(tmp_path / name, primary_keys=keys, **settings)
            for name, settings in (("source", options), ("sink", options if sink is None else sink))
        ]
        return Flow(spark, tmp_path, local_path, *tables)

    return make


@contextmanager
def refused(*texts: str) -> Iterator[None]:
    with pytest.raises(PySparkException) as error:
        yield
    for text in texts:
        assert text in str(error.value)


# --- exactly once ---------------------------------------------------------------------------------


def test_a_stream_goes_on_where_it_stopped(new_flow: Callable[..., Flow]) -> None:
    flow = new_flow()
    flow.add(some_rows(range(5)))
    flow.add(some_rows(range(5, 8)))

    flow.run()
    flow.add(some_rows(range(8, 10)))
    flow.add(some_rows(range(10, 12)))
    flow.run()
    flow.run()

    assert rows_of(flow.sink) == some_rows(range(12))
    first, second = flow.snapshots()
    assert (first.commit_identifier, second.commit_identifier) == (0, 1)
    assert first.commit_user == second.commit_user
    assert first.commit_user.startswith("spark-")


def test_a_batch_that_spark_repeats_is_skipped(new_flow: Callable[..., Flow]) -> None:
    flow = new_flow()
    for start in (0, 5):
        flow.add(some_rows(range(start, start + 5)))
        flow.run()
    files = data_files(flow.sink)

    flow.forget_last_commit()
    flow.run()

    assert rows_of(flow.sink) == some_rows(range(10))
    assert len(flow.snapshots()) == 2
    assert data_files(flow.sink) == files
    assert flow.written_down("commits") == [0, 1]


FULL = {"changelog_producer": "full-compaction", "full_compaction__delta_commits": "1"}


@pytest.mark.parametrize(
    ("producer", "options"),
    [
        ({"changelog_producer": "input"}, {}),
        ({"changelog_producer": "lookup"}, {"deletion_vectors__enabled": "true"}),
        (FULL, {"changelog_producer": "lookup"}),
        ({"changelog_producer": "lookup"}, FULL),
    ],
    ids=["merged", "deletion-vectors", "lookup", "full-compaction"],
)
def test_changes_of_a_key_table_make_the_same_table(
    new_flow: Callable[..., Flow], producer: dict[str, str], options: dict[str, str]
) -> None:
    flow = new_flow(bucket="2", **producer, sink={"bucket": "2", **options})
    flow.add(some_rows(range(6)))
    flow.run(row_kind="true")
    flow.add(some_rows([1, 2, 9], name="second"))
    flow.add(some_rows([3, 9]), "-D")

    flow.run(row_kind="true")
    flow.forget_last_commit()
    flow.run(row_kind="true")

    assert rows_of(flow.sink) == rows_of(flow.source)
    assert [row[2] for row in rows_of(flow.sink)][:3] == ["first-0", "second-1", "second-2"]
    kinds = [s.commit_kind for s in flow.snapshots() if s.commit_kind is not CommitKind.COMPACT]
    assert kinds == [CommitKind.APPEND] * 2
    for table in (flow.source, flow.sink):
        if table.store.schema.profile.changelog_producer not in ("none", "input"):
            check_replay(reopened(table))


@pytest.mark.parametrize("options", [{"changelog_producer": "lookup"}, FULL])
def test_changes_of_a_batch_are_recorded_once_if_the_driver_dies_before_their_compaction(
    new_flow: Callable[..., Flow], options: dict[str, str]
) -> None:
    flow = new_flow(bucket="2", **options)
    flow.add(some_rows(range(6)))
    flow.run()
    flow.add(some_rows([1, 9], name="second"))
    flow.run()
    sink = reopened(flow.sink)
    last = flow.snapshots()[-1]
    assert last.commit_kind is CommitKind.COMPACT
    sink.rollback_to(last.id - 1)  # as if it had not been committed
    flow.forget_last_commit()

    flow.run()

    check_replay(reopened(sink))
    assert rows_of(sink) == rows_of(flow.source)
    assert flow.snapshots()[-1].changelog_record_count == 3


def test_a_checkpoint_that_is_started_over_is_another_query(new_flow: Callable[..., Flow]) -> None:
    flow = new_flow()
    flow.add(some_rows(range(3)))
    flow.run()

    other = {"checkpointLocation": str(flow.local / "another")}
    flow.run(sink_options=other)

    assert flow.ids == [0, 0, 1, 1, 2, 2]
    assert len({snapshot.commit_user for snapshot in flow.snapshots()}) == 2


def test_a_commit_user_is_for_one_query(new_flow: Callable[..., Flow]) -> None:
    flow = new_flow()
    flow.add(some_rows(range(3)))
    places = [str(flow.local / name) for name in ("one", "two")]

    flow.run(sink_options={"checkpointLocation": places[0], "commit-user": "me"})
    with refused("InvalidState", "me has committed batch 0 of query", "commit-user"):
        flow.run(sink_options={"checkpointLocation": places[1], "commit-user": "me"})

    assert flow.ids == [0, 1, 2]
    assert [snapshot.commit_user for snapshot in flow.snapshots()] == ["me"]
    assert data_files(flow.sink) == live_files(flow.sink)


# --- what is refused ------------------------------------------------------------------------------


def test_a_sink_that_could_not_recognise_a_repeated_batch_is_refused(
    new_flow: Callable[..., Flow],
) -> None:
    flow = new_flow()
    flow.add(some_rows(range(3)))
    flow.spark.conf.set(CHECKPOINT, str(flow.local / "session"))
    try:
        with refused("InvalidOption", "checkpointLocation", "commit-user"):
            flow.run(sink_options={})
    finally:
        flow.spark.conf.unset(CHECKPOINT)

    assert flow.snapshots() == []


def test_rows_that_do_not_fit_and_other_modes_are_refused(new_flow: Callable[..., Flow]) -> None:
    flow = new_flow()
    flow.add(some_rows(range(3)))

    with refused("DataMismatch", "colour"):
        flow.run(lambda rows: rows.selectExpr("id", "name colour"))
    with refused("Unsupported", "complete"):
        flow.run(
            lambda rows: rows.groupBy("id").count().selectExpr("id"),
            {"checkpointLocation": str(flow.local / "another")},
            "complete",
        )

    assert flow.snapshots() == []
    assert data_files(flow.sink) == []


# --- where a stream starts, and how much it reads at once -----------------------------------------


def test_a_stream_starts_where_its_options_say(new_flow: Callable[..., Flow]) -> None:
    flow = new_flow()
    for number in range(4):
        flow.add(some_rows([number]))
    millis = flow.source.snapshot_manager().load(3).time_millis

    starts = {
        "latest": {"scan__mode": "latest"},
        "snapshot": {"snapshot_id": "2"},
        "time": {"timestamp": str(millis)},
        "state": {"scan__mode": "from-snapshot-full", "scan__snapshot_id": "2"},
    }
    found = {}
    for name, options in starts.items():
        before = flow.ids
        flow.run(sink_options={"checkpointLocation": str(flow.local / name)}, **options)
        found[name] = len(flow.ids) - len(before)

    assert found == {"latest": 0, "snapshot": 3, "time": 2, "state": 4}


def test_a_batch_reads_no_more_than_it_may(new_flow: Callable[..., Flow]) -> None:
    flow = new_flow()
    for number in range(3):
        flow.add(some_rows(range(number * 10, number * 10 + 10)))

    flow.run(max_files_per_trigger="2")
    state = [snapshot.delta_record_count for snapshot in flow.snapshots()]
    for number in range(3, 6):
        flow.add(some_rows(range(number * 10, number * 10 + 10)))
    flow.run(max_rows_per_trigger="15")

    assert state == [20, 10]
    assert [snapshot.delta_record_count for snapshot in flow.snapshots()] == [20, 10, 10, 10, 10]
    assert flow.ids == list(range(60))


def test_deletes_come_only_on_request(new_flow: Callable[..., Flow]) -> None:
    flow = new_flow(bucket="1", sink={"bucket": "1", "merge_engine": "partial-update"})
    flow.add(some_rows(range(3)))
    flow.run(columns="id,name")
    flow.add(some_rows([1]), "-D")
    flow.add(some_rows([5]))

    flow.run(columns="id,name")

    assert flow.ids == [0, 1, 2, 5]
    assert {row[3] for row in rows_of(flow.sink)} == {None}


def test_a_consumer_keeps_what_is_not_read_yet(new_flow: Callable[..., Flow]) -> None:
    flow = new_flow()
    flow.add(some_rows([0]))
    flow.run(consumer_id="me", max_files_per_trigger="1")
    for number in (1, 2):
        flow.add(some_rows([number]))
    flow.run(consumer_id="me", max_files_per_trigger="1")

    consumers = ConsumerStore(flow.source.store.storage, flow.source.store.layout)

    # Spark tells the source of a batch when it starts the next one.
    assert consumers.next_snapshot("me") in (3, 4)
    assert flow.ids == [0, 1, 2]

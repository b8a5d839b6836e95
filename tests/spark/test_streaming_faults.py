"""Queries that are killed in the middle of batches, and started again: every row is there once."""

from itertools import cycle
from pathlib import Path

import pyarrow as pa
import pytest

from emberlake import Table
from emberlake.spec.snapshot import CommitKind
from spark.drivers.faulty_sink import Kill
from spark.drivers.session import KILLED, run_driver
from spark.reads import write_arrow
from spark.tables import new_table, rows_of

ROWS = 40  # of every batch
ID = pa.field("id", pa.int64(), nullable=False)
TOTAL = pa.schema([ID, ("total", pa.int64())])
SUM = {"merge_engine": "aggregation", "fields__total__aggregate_function": "sum"}
KEY = {"columns": TOTAL, "primary_keys": ["id"], "bucket": "2"}
SINKS = {
    "append": {"columns": pa.schema([ID])},
    # A row that is written twice counts twice.
    "sums": {**KEY, **SUM},
    # Every batch has two snapshots: what is written is hidden before it is compacted.
    "vectors": {**KEY, "deletion_vectors__enabled": "true"},
}
MOMENTS = ("written", "before", "between", "after")


def run(folder: Path, batches: int, kills: list[Kill]) -> dict[str, Table]:
    """Stream that many batches to the sinks of the kills, until all kills have happened."""
    source = new_table(folder / "source", columns=pa.schema([ID]))
    for batch in range(batches):
        ids = range(batch * ROWS, (batch + 1) * ROWS)
        write_arrow(source, pa.table({"id": ids}))
    names = sorted({kill.sink for kill in kills})
    sinks = {name: new_table(folder / name, **SINKS[name]) for name in names}
    (folder / "kills").mkdir()
    for kill in kills:
        (folder / "kills" / kill.name).touch()
    drivers = sum(kill.victim == "driver" for kill in kills)
    while run_driver("killed_streams", folder, *sinks) == KILLED:
        drivers -= 1
        assert drivers >= 0
    assert list((folder / "kills").iterdir()) == []
    return sinks


def check_every_row_is_there_once(sinks: dict[str, Table], batches: int) -> None:
    expected = {
        "append": [(number,) for number in range(batches * ROWS)],
        "sums": [(number, batches) for number in range(ROWS)],
        "vectors": [(number, (batches - 1) * ROWS + number) for number in range(ROWS)],
    }
    for name, table in sinks.items():
        assert rows_of(table) == expected[name], name
        assert committed_batches(table) == list(range(batches)), name


def committed_batches(table: Table) -> list[int]:
    """The batches that brought rows, in the order of their snapshots."""
    manager = table.snapshot_manager()
    snapshots = [manager.load(snapshot_id) for snapshot_id in manager.list_ids()]
    return [s.commit_identifier for s in snapshots if s.commit_kind is not CommitKind.COMPACT]


@pytest.mark.timeout(600)
def test_a_stream_that_is_killed_twice_loses_no_row_and_brings_none_twice(
    tmp_path: Path,
) -> None:
    kills = [
        Kill("sums", 0, "written", "worker"),
        Kill("sums", 1, "after", "driver"),
    ]

    sinks = run(tmp_path, 2, kills)

    check_every_row_is_there_once(sinks, 2)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_streams_that_are_killed_twenty_times_lose_no_row_and_bring_none_twice(
    tmp_path: Path,
) -> None:
    kills = []
    for sink, first in (("append", 0), ("sums", 1), ("vectors", 2)):
        moments = cycle(MOMENTS[first:] + MOMENTS[:first])
        for batch in range(20):
            victim = "driver" if batch % 6 == first else "worker"
            kills.append(Kill(sink, batch, next(moments), victim))

    sinks = run(tmp_path, 21, kills)

    check_every_row_is_there_once(sinks, 21)

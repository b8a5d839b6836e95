"""Streams from one table to others, whose processes are killed by a plan: every row comes once."""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from emberlake import Table
from emberlake.spec.snapshot import CommitKind
from spark.drivers.faulty_sink import Kill
from spark.drivers.session import KILLED, run_driver
from spark.reads import write_arrow
from spark.tables import Row, new_table, reopened, rows_of

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
LONG_S = 1500
STOPPING_S = 15


@dataclass(frozen=True)
class Flows:
    """The source and its sinks below ``warehouses``, and a folder for all that is not a table."""

    folder: Path
    sinks: Mapping[str, Table]
    warehouses: str

    @property
    def starts(self) -> int:
        """How often a query was started."""
        with suppress(FileNotFoundError):
            return len((self.folder / "starts").read_text().splitlines())
        return 0

    @property
    def planned(self) -> int:
        """The kills that have not happened."""
        return len([*(self.folder / "kills").iterdir()])

    def run(self, seconds: float | None = None) -> int:
        """Stream until all rows are read; how often the driver was killed and started again.

        If there are only so many seconds, the queries are stopped then; a driver that does not stop
        is killed.
        """
        end, drivers = time.time() + (seconds or LONG_S), 0
        arguments = (self.folder, self.warehouses, end, *self.sinks)
        while time.time() < end:
            drivers += 1
            try:
                patience = max(1.0, end - time.time()) + STOPPING_S
                if run_driver("killed_streams", *arguments, timeout_s=patience) != KILLED:
                    break
            except TimeoutError:
                if seconds is None:
                    raise
        return max(0, drivers - 1)

    def check(self, batches: int | None = None) -> int:
        """Every batch is there once, up to the last one; how many rows were compared."""
        compared = 0
        for name, table in self.sinks.items():
            done = committed_batches(table)
            assert done == list(range(len(done) if batches is None else batches)), (name, done)
            if name == "vectors" and batches is None:  # it may have been stopped in between
                reopened(table).compact()
            rows = rows_of(table)
            assert rows == expected_rows(name, len(done)), name
            compared += len(rows)
        return compared


def prepare(folder: Path, batches: int, kills: Sequence[Kill], warehouses: object = None) -> Flows:
    """Tables, and a plan of who is to be killed when."""
    home = str(warehouses or folder)
    source = new_table(f"{home}/source", columns=pa.schema([ID]))
    for batch in range(batches):
        ids = range(batch * ROWS, (batch + 1) * ROWS)
        write_arrow(source, pa.table({"id": ids}))
    names = sorted({kill.sink for kill in kills})
    sinks = {name: new_table(f"{home}/{name}", **SINKS[name]) for name in names}
    (folder / "kills").mkdir()
    for kill in kills:
        (folder / "kills" / kill.name).touch()
    return Flows(folder, sinks, home)


def expected_rows(sink: str, batches: int) -> list[Row]:
    """What a sink has after so many batches."""
    if sink == "append":
        return [(number,) for number in range(batches * ROWS)]
    if not batches:
        return []
    last = (batches - 1) * ROWS
    return [(n, batches if sink == "sums" else last + n) for n in range(ROWS)]


def committed_batches(table: Table) -> list[int]:
    """The batches that brought rows, in the order of their snapshots."""
    manager = table.snapshot_manager()
    snapshots = [manager.load(snapshot_id) for snapshot_id in manager.list_ids()]
    return [s.commit_identifier for s in snapshots if s.commit_kind is not CommitKind.COMPACT]

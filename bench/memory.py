"""Time and peak memory of writing rows from a stream, and of reading them back as a stream.

The jobs ``key-write`` and ``key-merge-read`` are about a table with a primary key, all of it in one
bucket: it is written in five commits, each a run over the whole range of keys, and merged.

The job ``commits`` writes its rows one by one, each in a commit of its own.

Runs as a process of its own, so that its peak is that of one job: ``memory.py JOB ROWS WAREHOUSE``.
The warehouse is a folder, or in a store that the environment says how to reach.
Prints the seconds, and the peak resident set in bytes before the job and after it, as JSON.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from emberlake import CatalogFactory, Schema, Table

BATCH_ROWS = 100_000
RUNS = 5
BUFFER_BYTES = 384 * 1024**2  # holds a run of the key table, of 20 million rows in all
STRIDE = 7_919_111  # has no divisor in common with any number of rows that is used
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("a", pa.int32()),
        ("b", pa.float64()),
        ("c", pa.string()),
        ("d", pa.string()),
        ("e", pa.timestamp("us")),
        ("g", pa.bool_()),
        ("p", pa.int32()),
    ]
)


def batches(rows: int, first: int = 0, distinct: int | None = None) -> Iterator[pa.RecordBatch]:
    """Rows that are made as they are asked for.

    With ``distinct`` their ids are in no order, and come again after so many rows.
    """
    base = base_batch()
    for start in range(first, first + rows, BATCH_ROWS):
        count = min(BATCH_ROWS, first + rows - start)
        ids = np.arange(start, start + count)
        if distinct is not None:
            ids = ids * STRIDE % distinct
        batch = base.slice(0, count).set_column(0, "id", pa.array(ids))
        yield batch.set_column(7, "p", pa.array(ids % 5, pa.int32()))


def base_batch() -> pa.RecordBatch:
    """Values that all batches share: making new ones would cost more than writing them."""
    rng, count = np.random.default_rng(7), BATCH_ROWS
    return pa.record_batch(
        [
            pa.nulls(count, pa.int64()),
            pa.array(rng.integers(0, 2**31, count), pa.int32()),
            pa.array(rng.random(count)),
            pa.array(rng.integers(0, 1000, count)).cast(pa.string()),
            pa.array(rng.integers(0, 2**62, count)).cast(pa.string()),
            pa.array(rng.integers(0, 2**50, count)).cast(pa.timestamp("us")),
            pa.array(rng.random(count) < 0.5),
            pa.nulls(count, pa.int32()),
        ],
        schema=SCHEMA,
    )


def shuffled(rows: int) -> Iterator[pa.RecordBatch]:
    """The same rows with keys that come five times each, in no order."""
    for number, batch in enumerate(batches(rows)):
        ids = np.random.default_rng(number).integers(0, rows // 5, batch.num_rows)
        yield batch.set_column(0, "id", pa.array(ids))


def write(table: Table, rows: int) -> None:
    """Write a stream of batches in one commit."""
    builder = table.new_batch_write_builder()
    with builder.new_write() as writing, builder.new_commit() as commit:
        stream = shuffled(rows) if table.is_primary_key_table else batches(rows)
        writing.write_arrow(pa.RecordBatchReader.from_batches(SCHEMA, stream))
        commit.commit(writing.prepare_commit())


def commit_rows(table: Table, rows: int) -> None:
    """Write every row in a commit of its own."""
    for row in range(rows):
        builder = table.new_batch_write_builder()
        with builder.new_write() as writing, builder.new_commit() as commit:
            writing.write_arrow(pa.table({"id": [row]}))
            commit.commit(writing.prepare_commit())


def write_runs(table: Table, rows: int) -> None:
    """Write runs that overlap; the last one has the keys of the first."""
    count = rows // RUNS
    for run in range(RUNS):
        builder = table.new_batch_write_builder()
        with builder.new_write() as writing, builder.new_commit() as commit:
            made = batches(count, run * count, distinct=count * (RUNS - 1))
            writing.write_arrow(pa.RecordBatchReader.from_batches(SCHEMA, made))
            commit.commit(writing.prepare_commit())


def merge_runs(table: Table, rows: int) -> None:
    """Merge all runs as a stream of batches."""
    files = table.new_read_builder().new_scan().plan().splits()[0].files
    assert len({file.level for file in files}) == 1, "the runs were compacted"
    found = count_rows(table)
    assert found == rows // RUNS * (RUNS - 1), f"{found} rows came back of {rows}"


def read(table: Table, rows: int) -> None:
    """Read all rows as a stream of batches."""
    found = count_rows(table)
    assert found == rows or table.is_primary_key_table, f"{found} rows came back of {rows}"


def count_rows(table: Table) -> int:
    builder = table.new_read_builder()
    splits = builder.new_scan().plan().splits()
    return sum(batch.num_rows for batch in builder.new_read().to_arrow_batch_reader(splits))


def _keyed(**options: str) -> Schema:
    return Schema.from_pyarrow_schema(
        SCHEMA, primary_keys=["id"], options={"bucket": "1", **options}
    )


PLAIN = Schema.from_pyarrow_schema(SCHEMA)
PARTITIONED = Schema.from_pyarrow_schema(SCHEMA, partition_keys=["p"])
RUNS_OF_KEYS = _keyed(**{"write-buffer-size": f"{BUFFER_BYTES} b"})
JOBS: dict[str, tuple[str, Schema, Callable[[Table, int], None]]] = {
    "write": ("db.plain", PLAIN, write),
    "read": ("db.plain", PLAIN, read),
    "commits": ("db.commits", PLAIN, commit_rows),
    "write-partitioned": ("db.partitioned", PARTITIONED, write),
    "read-partitioned": ("db.partitioned", PARTITIONED, read),
    "write-key": ("db.key", _keyed(), write),
    "read-key": ("db.key", _keyed(), read),
    "key-write": ("db.runs", RUNS_OF_KEYS, write_runs),
    "key-merge-read": ("db.runs", RUNS_OF_KEYS, merge_runs),
}


def peak_bytes() -> int:
    """The most that this process has held; what getrusage says has its parent's peak in it."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def main() -> None:
    """Run one job and print its peaks."""
    job, rows, warehouse = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    catalog = CatalogFactory.create({"warehouse": warehouse})
    catalog.create_database("db", ignore_if_exists=True)
    name, schema, run = JOBS[job]
    catalog.create_table(name, schema, ignore_if_exists=True)
    before = peak_bytes()
    start = time.perf_counter()
    run(catalog.get_table(name), rows)
    seconds = time.perf_counter() - start
    after = peak_bytes()
    found = {"job": job, "rows": rows, "seconds": seconds}
    print(json.dumps(found | {"before_bytes": before, "peak_bytes": after}))


if __name__ == "__main__":
    main()

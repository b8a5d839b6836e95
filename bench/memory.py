"""Peak memory of writing rows from a stream, and of reading them back as a stream.

Runs as a process of its own, so that its peak is that of one job: ``memory.py JOB ROWS FOLDER``.
Prints the peak resident set in bytes, before the job and after it, as JSON.
"""

import json
import resource
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from emberlake import CatalogFactory, Schema, Table

BATCH_ROWS = 100_000
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


def batches(rows: int) -> Iterator[pa.RecordBatch]:
    """Rows that are made as they are asked for."""
    rng = np.random.default_rng(7)
    for start in range(0, rows, BATCH_ROWS):
        count = min(BATCH_ROWS, rows - start)
        ids = np.arange(start, start + count)
        numbers = pa.array(ids)
        yield pa.record_batch(
            [
                numbers,
                pa.array(rng.integers(0, 2**31, count), pa.int32()),
                pa.array(rng.random(count)),
                pa.array(rng.integers(0, 1000, count)).cast(pa.string()),
                pa.array(rng.integers(0, 2**62, count)).cast(pa.string()),
                pa.array(rng.integers(0, 2**50, count)).cast(pa.timestamp("us")),
                pa.array(rng.random(count) < 0.5),
                pa.array(ids % 5, pa.int32()),
            ],
            schema=SCHEMA,
        )


def write(table: Table, rows: int) -> None:
    """Write a stream of batches in one commit."""
    builder = table.new_batch_write_builder()
    with builder.new_write() as writing, builder.new_commit() as commit:
        writing.write_arrow(pa.RecordBatchReader.from_batches(SCHEMA, batches(rows)))
        commit.commit(writing.prepare_commit())


def read(table: Table, rows: int) -> None:
    """Read all rows as a stream of batches."""
    builder = table.new_read_builder()
    splits = builder.new_scan().plan().splits()
    found = sum(batch.num_rows for batch in builder.new_read().to_arrow_batch_reader(splits))
    assert found == rows, f"{found} rows came back of {rows}"


def main() -> None:
    """Run one job and print its peaks."""
    job, rows, folder = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    catalog = CatalogFactory.create({"warehouse": str(folder)})
    catalog.create_database("db", ignore_if_exists=True)
    keys = ["p"] if "partitioned" in job else []
    name = "db.partitioned" if keys else "db.plain"
    schema = Schema.from_pyarrow_schema(SCHEMA, partition_keys=keys)
    catalog.create_table(name, schema, ignore_if_exists=True)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    (write if job.startswith("write") else read)(catalog.get_table(name), rows)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"job": job, "rows": rows, "before_bytes": before, "peak_bytes": after}))


if __name__ == "__main__":
    main()

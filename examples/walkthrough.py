"""A tour of emberlake in cells, without Spark: open it as a notebook, or run it as a program.

Editors that know `# %%` run it cell by cell. `python examples/walkthrough.py [warehouse folder]`
runs all of it; without a folder a temporary one is used.
"""

# %% Open a catalog, which is a folder.
import sys
import tempfile

import pyarrow as pa
import pyarrow.compute as pc

from emberlake import AtomicType, CatalogFactory, CommitConflict, CommitResult, SchemaChange, Table

temporary = tempfile.TemporaryDirectory()
warehouse = sys.argv[1] if len(sys.argv) > 1 else temporary.name
catalog = CatalogFactory.create({"warehouse": warehouse})
catalog.create_database("bike", ignore_if_exists=True)

# %% Create an append table, partitioned by day: trips of rented bikes.
trips_schema = pa.schema(
    [
        pa.field("trip", pa.int64(), nullable=False),
        pa.field("bike", pa.int32(), nullable=False),
        pa.field("km", pa.float64()),
        pa.field("start", pa.struct([("station", pa.string()), ("hour", pa.int8())])),
        pa.field("day", pa.string(), nullable=False),
    ]
)
trips = catalog.create_table("bike.trips", trips_schema, partition_keys=["day"])
print(trips)


# %% Write: one call is one commit, which makes all rows visible at once.
def report(result: CommitResult) -> None:
    """Print what a write did."""
    print(f"snapshot {result.snapshot_id}: +{result.rows_added} rows in {result.files_added} files")


def trips_of(day: str, first: int, count: int) -> pa.Table:
    """Some trips of a day."""
    numbers = range(first, first + count)
    return pa.table(
        {
            "trip": list(numbers),
            "bike": [n % 5 for n in numbers],
            "km": [1.5 + n % 7 for n in numbers],
            "start": [{"station": "north" if n % 2 else "south", "hour": n % 24} for n in numbers],
            "day": [day] * count,
        }
    )


report(trips.append(trips_of("2026-06-22", 0, 1000)))
report(trips.append(trips_of("2026-06-23", 1000, 1000)))

# %% Read: only what is asked for. Filters are exact, and skip files where they can.
condition = "day = '2026-06-23' AND km > 7 AND start.station = 'north'"
for row in trips.to_arrow(["trip", "km", "start.hour"], filter=condition, limit=3).to_pylist():
    print(row)

# %% Find out why it was fast. A builder reads in steps: what to read, which files, their rows.
builder = trips.new_read_builder().with_filter(condition)
builder.with_projection(["trip", "km", "start.hour"]).with_limit(3)
print(str(builder.explain()).replace(warehouse, "<warehouse>"))

# %% A stream of batches needs no more memory for a billion rows than for a thousand.
batches = trips.to_batches(["km"])
print("km in total:", sum(pc.sum(batch.column("km")).as_py() for batch in batches))

# %% Replace a day: only the partitions that the new rows touch are replaced.
result = trips.overwrite(trips_of("2026-06-22", 0, 10))
print(f"replaced {result.rows_deleted} rows with {result.rows_added}")

# %% Nothing is lost: every snapshot can still be read, and a tag keeps one from expiring.
trips.create_tag("before-the-correction", snapshot_id=2)
before = trips.to_arrow(["trip"], tag="before-the-correction")
print("now:", trips.count(), "rows; before:", before.num_rows, "rows")

# %% A table with a primary key has one row per key: where each bike is. The newer report wins.
bikes_schema = pa.schema(
    [
        pa.field("bike", pa.int32(), nullable=False),
        pa.field("station", pa.string()),
        pa.field("seen", pa.int64()),
    ]
)
bikes_options = {"bucket": "2", "sequence.field": "seen"}
bikes = catalog.create_table(
    "bike.bikes", bikes_schema, primary_keys=["bike"], options=bikes_options
)
first_reports = {"bike": [1, 2, 3], "station": ["north", "south", "south"], "seen": [5] * 3}
report(bikes.upsert(pa.table(first_reports)))
report(bikes.upsert(pa.table({"bike": [1, 2], "station": ["east", "late report"], "seen": [7, 2]})))

# %% The kind of a row says what it does: here a delete, which is ordered by its time.
deletes = bikes.new_batch_write_builder()
with deletes.new_write() as write, deletes.new_commit() as finish:
    write.write_arrow(pa.table({"bike": [3], "seen": [9]}), row_kind="-D")
    report(finish.commit(write.prepare_commit()))


def show(table: Table) -> None:
    """Print all rows of a small table."""
    for row in sorted(table.to_arrow().to_pylist(), key=lambda row: row["bike"]):
        print("  ", row)


show(bikes)

# %% Follow it: the state first, then every change with its kind.
stream = bikes.new_stream_read_builder().with_include_row_kind()
scan, read = stream.new_streaming_scan(), stream.new_read()
while (plan := scan.plan()) is not None:
    print("state:", read.to_arrow(plan.splits()).num_rows, "bikes")
report(bikes.upsert(pa.table({"bike": [2], "station": ["west"], "seen": [11]})))
while (plan := scan.plan()) is not None:
    print("change:", read.to_arrow(plan.splits()).to_pylist())

# %% Merge the files of many small writes.
done = bikes.compact(full=True)
print(f"compaction: {done.files_deleted} files became {done.files_added}")
show(bikes)

# %% Change the schema; old files are read with the new one.
catalog.alter_table(
    "bike.bikes",
    [
        SchemaChange.add_column("battery", AtomicType("DECIMAL(4, 1)")),
        SchemaChange.rename_column("station", "place"),
    ],
)
bikes = catalog.get_table("bike.bikes")
show(bikes)

# %% Two writers upsert one key without a sequence field: the second is refused, nothing is lost.
prices_schema = pa.schema([pa.field("bike", pa.int32(), nullable=False), ("cents", pa.int32())])
prices = catalog.create_table(
    "bike.prices", prices_schema, primary_keys=["bike"], options={"bucket": "1"}
)
one, two = prices.new_batch_write_builder(), prices.new_batch_write_builder()
with one.new_write() as first, two.new_write() as second:
    first.write_arrow(pa.table({"bike": [1], "cents": [100]}))
    second.write_arrow(pa.table({"bike": [1], "cents": [250]}))
    one.new_commit().commit(first.prepare_commit())
    late = second.prepare_commit()
    try:
        two.new_commit().commit(late)
    except CommitConflict as conflict:
        print("refused:", conflict.reason.value)
        two.new_commit().abort(late)

# %% What a table knows about itself is a table too.
history = catalog.get_table("bike.bikes$snapshots")
print(history.to_pandas(["snapshot_id", "commit_kind", "total_record_count"]))

# %% Clean up.
temporary.cleanup()

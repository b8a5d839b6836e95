"""Load a feed of changes into a table with a primary key on Spark, then compact the table.

A database sends the changes to its customers (created, updated, deleted) with their times, not
always in order. The job turns operations into row kinds, lets the time of the change decide which
one is newer, and merges the files at the end. Run it with `python examples/upsert_job.py`; it
makes its own feed.
"""

import argparse
import json
import tempfile
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import emberlake.spark
from emberlake import CatalogFactory
from emberlake.spark import compact, read_paimon, write_paimon

TABLE = "crm.customers"
COLUMNS = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("name", pa.string()),
        pa.field("city", pa.string()),
        pa.field("changed", pa.timestamp("us")),
    ]
)
TABLE_OPTIONS = {
    "bucket": "2",
    "sequence.field": "changed",  # the newer change wins, whenever it arrives
    "changelog-producer": "input",  # keeps every change, for readers that follow the table
}
FEEDS = (
    [
        {"op": "c", "at": "2026-06-22 08:00:00", "id": 1, "name": "Ada", "city": "london"},
        {"op": "c", "at": "2026-06-22 08:01:00", "id": 2, "name": "Emmy", "city": "erlangen"},
        {"op": "c", "at": "2026-06-22 08:02:00", "id": 3, "name": "Sofia", "city": "moscow"},
    ],
    [
        {"op": "u", "at": "2026-06-23 09:30:00", "id": 2, "name": "Emmy", "city": "bryn mawr"},
        {"op": "d", "at": "2026-06-23 09:31:00", "id": 1},
        {"op": "c", "at": "2026-06-23 09:32:00", "id": 4, "name": "Grace", "city": "new york"},
    ],
    [  # delayed on the way: it is older than what the table knows about customer 2
        {"op": "u", "at": "2026-06-22 20:00:00", "id": 2, "name": "Emmy", "city": "göttingen"},
        {"op": "u", "at": "2026-06-24 10:00:00", "id": 3, "name": "Sofia", "city": "stockholm"},
    ],
)


def main(warehouse: str, master: str) -> None:
    """Run the whole job: load the feed, look at the table, compact it."""
    options = {"warehouse": warehouse}
    create_table(options)
    spark = emberlake.spark.session(master, spark_app_name="upsert", spark_sql_shuffle_partitions=4)
    with tempfile.TemporaryDirectory() as folder:
        for number, feed in enumerate(FEEDS):
            path = Path(folder) / f"feed-{number}.json"
            path.write_text("\n".join(map(json.dumps, feed)), encoding="utf-8")
            result = write_paimon(read_feed(spark, path), TABLE, options)
            print(f"snapshot {result.snapshot_id}: {result.rows_added} changes")
    show("customers now:", read_paimon(TABLE, options, spark=spark).orderBy("id"))
    show("customers on the first day:", read_paimon(TABLE, options, snapshot_id=1).orderBy("id"))

    between = {"incremental-between": "1,3"}
    changes = read_paimon(TABLE, options, dynamic_options=between, projection=["id", "changed"])
    show("inserts and updates since:", changes.orderBy("changed"))

    done = compact(TABLE, options, spark=spark, full=True)
    print(f"compacted: {done.files_deleted} files became {done.files_added}")
    spark.stop()


def read_feed(spark: SparkSession, path: Path) -> DataFrame:
    """Read a feed with its operations as row kinds; a delete needs only the key and the time."""
    columns = "op STRING, at TIMESTAMP_NTZ, id BIGINT, name STRING, city STRING"
    kind = "CASE op WHEN 'd' THEN '-D' WHEN 'u' THEN '+U' ELSE '+I' END AS _row_kind"
    feed = spark.read.schema(columns).json(str(path))
    return feed.selectExpr("id", "name", "city", "at AS changed", kind)


def show(title: str, rows: DataFrame) -> None:
    """Print a few rows."""
    print(title)
    for row in rows.collect():
        print("  " + "  ".join(str(value) for value in row))


def create_table(options: dict[str, str]) -> None:
    """Create the table unless it exists."""
    catalog = CatalogFactory.create(options)
    catalog.create_database("crm", ignore_if_exists=True)
    catalog.create_table(
        TABLE, COLUMNS, ignore_if_exists=True, primary_keys=["id"], options=TABLE_OPTIONS
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--warehouse", help="a folder; a temporary one by default")
    parser.add_argument("--master", default="local[2]", help="the Spark master")
    arguments = parser.parse_args()
    if arguments.warehouse:
        main(arguments.warehouse, arguments.master)
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(temporary, arguments.master)

"""Stream one table into another with Structured Streaming, exactly once, whatever happens.

Clicks are appended to a table. A query follows it and adds them up by page: the target table sums
the rows that it gets, so a click that is counted twice, or not at all, would show. The query is
stopped and started again, and one batch is repeated as after a crash. Run it with
`python examples/streaming_job.py`.
"""

import argparse
import tempfile
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import emberlake.spark
from emberlake import CatalogFactory, Table
from emberlake.spark import write_paimon

CLICKS = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), pa.field("url", pa.string(), nullable=False)]
)
PAGES = pa.schema([pa.field("page", pa.string(), nullable=False), ("clicks", pa.int64())])
SUMS = {
    "bucket": "2",
    "merge-engine": "aggregation",
    "fields.clicks.aggregate-function": "sum",
}


def main(warehouse: str, master: str) -> None:
    """Run the whole example: two runs of the query, and one that is repeated."""
    catalog = CatalogFactory.create({"warehouse": warehouse})
    catalog.create_database("web", ignore_if_exists=True)
    catalog.create_table("web.clicks", CLICKS)
    pages = catalog.create_table("web.pages", PAGES, primary_keys=["page"], options=SUMS)
    spark = emberlake.spark.session(
        master, spark_app_name="streaming", spark_sql_shuffle_partitions=4
    )
    checkpoint = Path(warehouse) / "checkpoints" / "pages"

    add_clicks(spark, warehouse, 0, 600)
    run(count_clicks(spark, warehouse, checkpoint))
    show(pages, "after 600 clicks:", 600)

    add_clicks(spark, warehouse, 600, 1000)
    run(count_clicks(spark, warehouse, checkpoint))
    show(pages, "after 400 more, by a query that continued from its checkpoint:", 1000)

    # The batch is in the table, but Spark was killed before it could record that: it is repeated.
    forget_last_batch(checkpoint)
    run(count_clicks(spark, warehouse, checkpoint))
    show(pages, "after a crash, with the last batch repeated:", 1000)
    spark.stop()


def count_clicks(spark: SparkSession, warehouse: str, checkpoint: Path) -> StreamingQuery:
    """The query: it reads everything there is, and ends. Without the trigger it would never end."""
    clicks = spark.readStream.format("emberlake").option("warehouse", warehouse).load("web.clicks")
    pages = clicks.selectExpr("split(url, '[?]')[0] AS page", "CAST(1 AS BIGINT) AS clicks")
    return (
        pages.writeStream.format("emberlake")
        .option("warehouse", warehouse)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start("web.pages")
    )


def run(query: StreamingQuery) -> None:
    """Wait for the end of a query, and print how many rows its batches had."""
    query.awaitTermination()
    rows = [progress["numInputRows"] for progress in query.recentProgress]
    print(f"query ended: {sum(rows)} clicks read")


def forget_last_batch(checkpoint: Path) -> None:
    """Remove the last batch from Spark's record of what is done, as if it had been killed."""
    notes = [path for path in (checkpoint / "commits").iterdir() if path.name.isdecimal()]
    last = max(notes, key=lambda path: int(path.name))
    last.with_name(f".{last.name}.crc").unlink(missing_ok=True)
    last.unlink()


def add_clicks(spark: SparkSession, warehouse: str, first: int, end: int) -> None:
    """Append clicks on three pages."""
    url = "concat('/page-', id % 3, '?user=', id % 7) AS url"
    write_paimon(
        spark.range(first, end).selectExpr("id", url), "web.clicks", {"warehouse": warehouse}
    )


def show(pages: Table, title: str, clicks: int) -> None:
    """Print the sums, and check that they count every click once; a few rows need no Spark."""
    rows = pages.to_arrow().sort_by("page")
    sums = dict(zip(*(column.to_pylist() for column in rows.columns), strict=True))
    print(title, ", ".join(f"{page} {count}" for page, count in sums.items()))
    assert sum(sums.values()) == clicks


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

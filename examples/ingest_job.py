"""Load raw files of three formats into one partitioned table on Spark, then replace one day of it.

Three shops deliver their orders as CSV, JSON and Parquet, each with its own columns and types.
The job aligns them, appends them to a table that is partitioned by day, and replaces one day when
a shop delivers it again. Run it with `python examples/ingest_job.py`; it makes its own input.
"""

import argparse
import json
import tempfile
from datetime import date
from functools import partial, reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import emberlake.spark
from emberlake import CatalogFactory
from emberlake.spark import read_paimon, write_paimon

TABLE = "shop.orders"
COLUMNS = pa.schema(
    [
        pa.field("shop", pa.string(), nullable=False),
        pa.field("order_id", pa.int64(), nullable=False),
        pa.field("price", pa.decimal128(10, 2)),
        pa.field("day", pa.date32(), nullable=False),
    ]
)


def main(warehouse: str, master: str) -> None:
    """Run the whole job: make input, ingest it, correct one day."""
    options = {"warehouse": warehouse}
    create_table(options)
    spark = emberlake.spark.session(master, spark_app_name="ingest", spark_sql_shuffle_partitions=4)
    with tempfile.TemporaryDirectory() as folder:
        raw = Path(folder)
        make_input(raw)

        result = write_paimon(read_raw(spark, raw), TABLE, options)
        print(f"snapshot {result.snapshot_id}: {result.rows_added} orders appended")
        show_days(spark, options)

        # A day is delivered again: an overwrite replaces only the days that are in the data.
        corrected = read_raw(spark, raw).where("day = '2026-06-23' AND order_id % 2 = 0")
        result = write_paimon(corrected, TABLE, options, overwrite=True)
        print(
            f"snapshot {result.snapshot_id}: one day replaced, "
            f"{result.rows_deleted} orders with {result.rows_added}"
        )
        show_days(spark, options)
    before = read_paimon(TABLE, options, spark=spark, snapshot_id=1).count()
    print(f"snapshot 1 still has {before} orders")
    spark.stop()


def read_raw(spark: SparkSession, raw: Path) -> DataFrame:
    """All deliveries with the names and types of the table; a missing price is null."""
    paris = spark.read.schema("number BIGINT, amount DECIMAL(10, 2), date DATE")
    rome = spark.read.schema("id BIGINT, price DECIMAL(10, 2), at TIMESTAMP_NTZ")
    deliveries = (
        paris.csv(str(raw / "paris.csv"), header=True).selectExpr(
            "'paris' AS shop", "number AS order_id", "amount AS price", "date AS day"
        ),
        rome.json(str(raw / "rome.json")).selectExpr(
            "'rome' AS shop", "id AS order_id", "price", "CAST(at AS DATE) AS day"
        ),
        spark.read.parquet(str(raw / "oslo.parquet")).selectExpr(
            "'oslo' AS shop", "order AS order_id", "day"
        ),
    )
    # Columns are matched by name, and an INT is accepted for a BIGINT column.
    return reduce(partial(DataFrame.unionByName, allowMissingColumns=True), deliveries)


def show_days(spark: SparkSession, options: dict[str, str]) -> None:
    """Print the orders of every day."""
    days = read_paimon(TABLE, options, spark=spark, projection=["day", "price"]).groupBy("day")
    counted = days.agg({"*": "count", "price": "sum"}).orderBy("day")
    for day, *sums in counted.select("day", "count(1)", "sum(price)").collect():
        print(f"  {day}  {sums[0]:>3} orders  {sums[1]:>8} in total")


def create_table(options: dict[str, str]) -> None:
    """Create the table unless it exists."""
    catalog = CatalogFactory.create(options)
    catalog.create_database("shop", ignore_if_exists=True)
    catalog.create_table(TABLE, COLUMNS, ignore_if_exists=True, partition_keys=["day"])


def make_input(raw: Path) -> None:
    """Write what the three shops deliver: three days of orders each."""
    days = [date(2026, 6, 22 + n % 3) for n in range(60)]
    lines = [f"{n},{n * 1.5},{day}" for n, day in enumerate(days)]
    (raw / "paris.csv").write_text("number,amount,date\n" + "\n".join(lines) + "\n")
    orders: list[dict[str, Any]] = [
        {"id": n, "price": n + 0.25, "at": f"{day}T12:00:00"} for n, day in enumerate(days)
    ]
    (raw / "rome.json").write_text("\n".join(map(json.dumps, orders)) + "\n")
    numbers = pa.array(range(60), pa.int32())
    pq.write_table(pa.table({"order": numbers, "day": days}), raw / "oslo.parquet")


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

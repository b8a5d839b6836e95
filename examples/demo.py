"""Run the whole pipeline on local Spark: load raw files into tables, and look inside them.

    make demo
    make demo S3=1
    python examples/demo.py [FOLDER] [--rows 600000] [--master local[*]]
    python examples/demo.py --warehouse s3://bucket/folder [--option s3.region=eu-west-1]

The tables stay in FOLDER/warehouse, where the command line can open them, or in the warehouse that
``--warehouse`` names, which must not have a database ``shop``. Keys of an object store are best
put into the environment: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_ENDPOINT_URL_S3.
"""

import argparse
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
from pyspark.sql import DataFrame, SparkSession
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from emberlake import Catalog, CatalogFactory
from emberlake.spark import compact, read_paimon, write_paimon
from emberlake.spark.local import local_session, watch_tasks

DAYS = ("2026-06-24", "2026-06-25", "2026-06-26")
CITIES = pa.array(["amsterdam", "lisbon", "oslo", "paris", "rome", "vienna"])
ORDERS = pa.schema(
    [
        pa.field("order_id", pa.int64(), nullable=False),
        ("customer_id", pa.int64()),
        ("city", pa.string()),
        ("price", pa.decimal128(10, 2)),
        ("day", pa.date32()),
    ]
)
CUSTOMERS = pa.schema(
    [
        pa.field("customer_id", pa.int64(), nullable=False),
        ("name", pa.string()),
        ("city", pa.string()),
        ("orders", pa.int64()),
    ]
)


class Demo:
    """The tables, the session, and how long each step took."""

    def __init__(
        self, console: Console, spark: SparkSession, raw: Path, warehouse: dict[str, str]
    ) -> None:
        self.console = console
        self.spark = spark
        self.raw = raw
        self.warehouse = warehouse
        self.catalog: Catalog = CatalogFactory.create(self.warehouse)
        self.timings: list[tuple[str, float, str]] = []

    def run(self) -> None:
        """Run all steps, in the order of a first working day."""
        self.step("create a partitioned append table and a key table", self.create_tables)
        self.step("raw CSV files -> shop.orders", self.append_orders)
        self.step("raw Parquet files -> shop.customers", self.write_customers)
        self.step("upserts and deletes in shop.customers", self.upsert_customers)
        self.step("replace one day of shop.orders (dynamic overwrite)", self.overwrite_a_day)
        self.step("time travel", self.travel)
        self.step("filtered read with an aggregate", self.read_filtered)
        self.step("compact shop.customers", self.compact_customers)

    def step(self, title: str, action: Callable[[], str]) -> None:
        """Run a step under a progress bar and record how long it took."""
        with task_bar(self.console, self.spark, title):
            start = time.perf_counter()
            outcome = action()
            seconds = time.perf_counter() - start
        self.timings.append((title, seconds, outcome))
        self.console.print(f"[green]✓[/] {title} [dim]{seconds:.1f} s[/]\n  {outcome}")

    # --- the steps ----------------------------------------------------------------------------

    def create_tables(self) -> str:
        """The catalog creates databases and tables, without Spark."""
        self.catalog.create_database("shop")
        self.catalog.create_table("shop.orders", ORDERS, partition_keys=["day"])
        self.catalog.create_table(
            "shop.customers", CUSTOMERS, primary_keys=["customer_id"], options={"bucket": "4"}
        )
        return "shop.orders is partitioned by day; shop.customers has 4 buckets by customer_id"

    def append_orders(self) -> str:
        """The text of CSV files is cast to the table's types; what does not fit is refused."""
        raw = self.spark.read.option("header", True).csv(str(self.raw / "orders"))
        typed = raw.selectExpr(
            "cast(order_id as bigint) order_id",
            "cast(customer_id as bigint) customer_id",
            "city",
            "cast(price as decimal(10, 2)) price",
            "cast(day as date) day",
        )
        return written(write_paimon(typed, "shop.orders", self.warehouse))

    def write_customers(self) -> str:
        """Rows are sent to the task that owns their bucket, which sorts them by key."""
        raw = self.spark.read.parquet(str(self.raw / "customers"))
        # A row replaces the whole row with its key, so every column is given: here a null.
        rows = raw.selectExpr("*", "cast(null as bigint) orders")
        return written(write_paimon(rows, "shop.customers", self.warehouse))

    def upsert_customers(self) -> str:
        """The kind of every row says what it does to its key."""
        orders = read_paimon("shop.orders", self.warehouse, spark=self.spark)
        counted = orders.groupBy("customer_id").count()
        customers = read_paimon("shop.customers", self.warehouse, spark=self.spark)
        changes = customers.drop("orders").join(counted, "customer_id", "left")
        kinds = "case when count is null then '-D' else '+U' end as _row_kind"
        rows = changes.selectExpr("customer_id", "name", "city", "count as orders", kinds)
        return written(write_paimon(rows, "shop.customers", self.warehouse))

    def overwrite_a_day(self) -> str:
        """An overwrite replaces only the partitions that the new rows are in."""
        day = f"day = DATE '{DAYS[-1]}'"
        late = read_paimon("shop.orders", self.warehouse, spark=self.spark, filter=day)
        cheaper = late.where("price < 900")
        return written(write_paimon(cheaper, "shop.orders", self.warehouse, overwrite=True))

    def travel(self) -> str:
        """Every commit is a snapshot that can still be read."""
        counts = [
            read_paimon(
                "shop.orders", self.warehouse, spark=self.spark, snapshot_id=snapshot
            ).count()
            for snapshot in (1, 2)
        ]
        return f"snapshot 1 has {counts[0]:,} orders, snapshot 2 has {counts[1]:,}"

    def read_filtered(self) -> str:
        """Files whose partition or statistics cannot match are not read at all."""
        condition = f"day = DATE '{DAYS[0]}' AND city = 'paris'"
        rows = read_paimon(
            "shop.orders",
            self.warehouse,
            spark=self.spark,
            filter=condition,
            projection=["customer_id", "price"],
        )
        best = top_customer(rows)
        builder = self.catalog.get_table("shop.orders").new_read_builder().with_filter(condition)
        plan = builder.new_scan().plan()
        files = sum(len(split.files) for split in plan.splits())
        every = self.inspect("shop.orders$files").num_rows
        return f"read {files} of {every} files; {best}"

    def compact_customers(self) -> str:
        """Buckets are compacted in parallel, and committed together."""
        before = self.inspect("shop.customers$files").num_rows
        compact("shop.customers", self.warehouse, spark=self.spark, full=True)
        after = self.inspect("shop.customers$files").num_rows
        return f"{before} files became {after}"

    # --- the report -------------------------------------------------------------------------------

    def report(self) -> None:
        """Print what is in the warehouse now."""
        for name in ("shop.orders", "shop.customers"):
            self.console.print(self.snapshots_of(name))
            self.console.print(self.buckets_of(name))

    def inspect(self, name: str) -> pa.Table:
        """Read a system table, like any other table."""
        return self.catalog.get_table(name).to_arrow()

    def snapshots_of(self, name: str) -> Table:
        """One line for every commit."""
        rows = self.inspect(f"{name}$snapshots").to_pylist()
        shown = new_table(f"Snapshots of {name}", "snapshot", "kind", "rows", "total rows")
        for row in rows:
            counts = row["delta_record_count"], row["total_record_count"]
            shown.add_row(str(row["snapshot_id"]), row["commit_kind"], *map(format_count, counts))
        return shown

    def buckets_of(self, name: str) -> Table:
        """Files, rows and bytes of every bucket."""
        files = self.inspect(f"{name}$files")
        sums = files.group_by(["partition", "bucket"]).aggregate(
            [("record_count", "count"), ("record_count", "sum"), ("file_size_in_bytes", "sum")]
        )
        shown = new_table(f"Files of {name}", "partition", "bucket", "files", "rows", "KiB")
        for row in sums.sort_by([("partition", "ascending"), ("bucket", "ascending")]).to_pylist():
            numbers = row["record_count_count"], row["record_count_sum"]
            size = row["file_size_in_bytes_sum"] // 1024
            place = row["partition"] or "", str(row["bucket"])
            shown.add_row(*place, *map(format_count, (*numbers, size)))
        return shown


def written(result: Any) -> str:
    """What a write did, in one line."""
    stages = ", ".join(f"{stage} {seconds:.1f} s" for stage, seconds in result.seconds.items())
    rows = f"{result.rows_added:,} rows in {result.files_added} files"
    return f"snapshot {result.snapshot_id}: {rows} ({stages})"


def top_customer(rows: DataFrame) -> str:
    """The customer who spent the most."""
    spent = rows.groupBy("customer_id").agg({"price": "sum"})
    best = spent.orderBy("sum(price)", "customer_id", ascending=[False, True]).first()
    assert best is not None
    return f"customer {best[0]} spent the most in paris that day: {best[1]}"


def make_raw_files(folder: Path, rows: int) -> None:
    """Write orders of three days as CSV, customers as Parquet; seeded, so every run is the same."""
    rng = np.random.default_rng(26)
    customers = rows // 20
    for number, day in enumerate(DAYS):
        count = rows // len(DAYS)
        cents = pa.array(rng.integers(100, 100_000, count))
        orders = pa.table(
            {
                "order_id": pa.array(np.arange(count) + number * count),
                "customer_id": pa.array(rng.integers(0, customers * 9 // 10, count)),
                "city": CITIES.take(pa.array(rng.integers(0, len(CITIES), count))),
                "price": pc.divide(cents.cast(pa.float64()), 100),
                "day": pa.repeat(day, count),
            }
        )
        (folder / "orders").mkdir(parents=True, exist_ok=True)
        pyarrow.csv.write_csv(orders, folder / "orders" / f"{day}.csv")
    ids = pa.array(rng.permutation(customers))
    people = pa.table(
        {
            "customer_id": ids,
            "name": pc.binary_join_element_wise("customer", ids.cast(pa.string()), "-"),
            "city": CITIES.take(pa.array(rng.integers(0, len(CITIES), customers))),
        }
    )
    (folder / "customers").mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(people, folder / "customers" / "part-0.parquet")


@contextmanager
def task_bar(console: Console, spark: SparkSession, title: str) -> Iterator[None]:
    """Show a progress bar of the running tasks, which disappears when they are done."""
    columns = TextColumn("  {task.description}"), BarColumn(), TextColumn("{task.fields[tasks]}")
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as bar:
        task = bar.add_task(title, total=None, tasks="")

        def advance(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total, tasks=f"{done}/{total} tasks")

        with watch_tasks(spark, advance):
            yield


def new_table(title: str, *columns: str) -> Table:
    """A table with numbers aligned to the right."""
    table = Table(title=title, title_justify="left", header_style="bold")
    for column in columns:
        table.add_column(column, justify="left" if column in ("partition", "kind") else "right")
    return table


def format_count(count: int) -> str:
    """With commas."""
    return f"{count:,}"


def main() -> None:
    """Run the demo."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=Path("demo"))
    parser.add_argument("--rows", type=int, default=600_000)
    parser.add_argument("--master", default="local[*]")
    parser.add_argument("--warehouse")
    parser.add_argument("--option", action="append", default=[], metavar="KEY=VALUE")
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    warehouse = arguments.warehouse or str(folder / "warehouse")
    options = {"warehouse": warehouse, **dict(text.split("=", 1) for text in arguments.option)}
    for part in ("raw",) if arguments.warehouse else ("raw", "warehouse"):
        shutil.rmtree(folder / part, ignore_errors=True)
    console = Console(highlight=False)
    start = time.perf_counter()
    make_raw_files(folder / "raw", arguments.rows)
    console.print(f"{arguments.rows:,} raw orders are in {folder / 'raw'}; starting Spark ...")
    with local_session(arguments.master) as spark:
        demo = Demo(console, spark, folder / "raw", options)
        demo.run()
        demo.report()
    seconds = time.perf_counter() - start
    if arguments.warehouse:
        console.print(f"Done in {seconds:.0f} s. The tables are in {warehouse}.")
        return
    console.print(f"Done in {seconds:.0f} s. The warehouse stays. To look inside:\n")
    warehouse = str(arguments.folder / "warehouse")
    for command in ("snapshots shop.orders", "read shop.customers --limit 5", "check shop.orders"):
        console.print(f"  .venv/bin/emberlake --warehouse {warehouse} {command}", soft_wrap=True)


if __name__ == "__main__":
    main()

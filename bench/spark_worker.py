"""emberlake on Spark beside Spark's own Parquet files, in one session, as ratios.

    python bench/spark.py                       10,000,000 rows of 8 columns on local[2]
    python bench/spark.py --rows 1000000 --repeat 1 --json out.json

Every job runs in turn with the one it is compared with; the best of the repetitions counts.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from emberlake import CatalogFactory, Schema
from emberlake.spark import compact, read_paimon, write_paimon

COLUMNS = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("k", pa.int32()),
        pa.field("price", pa.float64()),
        pa.field("qty", pa.int64()),
        pa.field("name", pa.string()),
        pa.field("d", pa.date32()),
        pa.field("ts", pa.timestamp("us", tz="UTC")),
        pa.field("flag", pa.bool_()),
    ]
)
EXPRESSIONS = (
    "id",
    "cast(id % 1000 as int) as k",
    "rand(1) as price",
    "cast(rand(2) * 1e6 as bigint) as qty",
    "concat('user-', cast(cast(rand(3) * 100000 as int) as string)) as name",
    "date_add(date'2026-01-01', cast(id % 365 as int)) as d",
    "timestamp_micros(1700000000000000 + id * 1000) as ts",
    "id % 3 = 0 as flag",
)


@dataclass(frozen=True)
class Job:
    """What is measured, what it is compared with, and the ratio to stay below."""

    name: str
    run: Callable[[], None]
    beside: str
    target: float


class Bench:
    """The data, the tables and the jobs on them."""

    def __init__(self, spark: SparkSession, folder: Path, rows: int) -> None:
        self.spark = spark
        self.folder = folder
        self.rows = rows
        self.warehouse = {"warehouse": str(folder / "warehouse")}
        self.catalog = CatalogFactory.create(dict(self.warehouse))
        self.catalog.create_database("db", ignore_if_exists=True)
        self._made = 0
        self.source = self._parquet("source", self._rows(0, rows))
        self.second = self._parquet("second", self._rows(0, rows, 2))
        self.third = self._parquet("third", self._rows(0, rows, 3))

    def _rows(self, start: int, stop: int, step: int = 1) -> DataFrame:
        return self.spark.range(start, stop, step, 8).selectExpr(*EXPRESSIONS)

    def _parquet(self, name: str, df: DataFrame) -> DataFrame:
        path = str(self.folder / name)
        df.write.option("compression", "zstd").parquet(path)
        return self.spark.read.parquet(path)

    def new_table(self, **layout: Any) -> str:
        self._made += 1
        name = f"db.t{self._made}"
        self.catalog.create_table(name, Schema.from_pyarrow_schema(COLUMNS, **layout))
        return name

    def key_table(self) -> str:
        return self.new_table(primary_keys=["id"], options={"bucket": "4"})

    def prepare(self) -> None:
        """Tables that are read: not part of what is measured."""
        self.appended = self.new_table()
        write_paimon(self.source, self.appended, self.warehouse)
        self.merged = self.key_table()
        for df in (self.source, self.second, self.third):
            write_paimon(df, self.merged, self.warehouse)

    # --- Spark alone ------------------------------------------------------------------------------

    def parquet_write(self) -> None:
        out = str(self.folder / "out")
        self.source.write.mode("overwrite").option("compression", "zstd").parquet(out)

    def parquet_scan(self) -> None:
        read_all(self.spark.read.parquet(str(self.folder / "source")))

    def parquet_sum(self) -> None:
        self.spark.read.parquet(str(self.folder / "source")).agg({"qty": "sum"}).collect()

    # --- emberlake --------------------------------------------------------------------------------

    def append_write(self) -> None:
        write_paimon(self.source, self.new_table(), self.warehouse)

    def key_write(self) -> None:
        write_paimon(self.source, self.key_table(), self.warehouse)

    def scan(self) -> None:
        read_all(read_paimon(self.appended, self.warehouse, spark=self.spark))

    def sum(self) -> None:
        read_paimon(self.appended, self.warehouse, spark=self.spark).agg({"qty": "sum"}).collect()

    def merge_scan(self) -> None:
        read_all(read_paimon(self.merged, self.warehouse, spark=self.spark))

    def merge_sum(self) -> None:
        df = read_paimon(self.merged, self.warehouse, spark=self.spark, projection=["qty"])
        df.agg({"qty": "sum"}).collect()

    def full_compaction(self) -> None:
        compact(self.merged, self.warehouse, spark=self.spark, full=True)
        self.catalog.get_table(self.merged).rollback_to(3)

    def jobs(self) -> list[Job]:
        return [
            Job("append write", self.append_write, "parquet write", 1.25),
            Job("key write, 4 buckets", self.key_write, "parquet write", 2.2),
            Job("scan", self.scan, "parquet scan", 1.15),
            Job("sum of one column", self.sum, "parquet sum", 1.3),
            Job("merge read", self.merge_scan, "parquet scan", 3.3),
            Job("merge read, sum of one column", self.merge_sum, "parquet sum", 5.0),
            Job("full compaction", self.full_compaction, "parquet write", 1.6),
        ]

    def baselines(self) -> dict[str, Callable[[], None]]:
        return {
            "parquet write": self.parquet_write,
            "parquet scan": self.parquet_scan,
            "parquet sum": self.parquet_sum,
        }


def read_all(df: DataFrame) -> None:
    df.write.format("noop").mode("overwrite").save()


def timed(run: Callable[[], None]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def measure(bench: Bench, repeat: int) -> list[dict[str, Any]]:
    baselines = bench.baselines()
    found = []
    for job in bench.jobs():
        own, other = [], []
        for _ in range(repeat):
            other.append(timed(baselines[job.beside]))
            own.append(timed(job.run))
        ratio = min(own) / min(other)
        row = {
            "job": job.name,
            "seconds": min(own),
            "beside": job.beside,
            "beside_seconds": min(other),
            "ratio": ratio,
            "target": job.target,
        }
        verdict = "" if ratio <= job.target else "   MISSED"
        print(
            f"{job.name:32} {min(own):7.2f} s   {job.beside:14} {min(other):7.2f} s   "
            f"ratio {ratio:5.2f}   target {job.target:4.2f}{verdict}",
            flush=True,
        )
        found.append(row)
    return found


def new_session(folder: Path) -> SparkSession:
    return (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.memory", "6g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.sql.warehouse.dir", str(folder / "spark"))
        .getOrCreate()
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="emberlake-bench-"))
    try:
        bench = Bench(new_session(folder), folder, arguments.rows)
        bench.prepare()
        found = measure(bench, arguments.repeat)
        bench.spark.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if arguments.json:
        arguments.json.write_text(json.dumps({"rows": arguments.rows, "jobs": found}, indent=2))


if __name__ == "__main__":
    main()

"""Spark in a process of its own: with emberlake's tables, or with Spark's own Parquet files.

Both get the same rows, which are Parquet files that the first request made. `rows` says how many.
"""

import os
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from emberlake import CatalogFactory, Schema
from emberlake.spark import compact, read_paimon, write_paimon
from memory_use import measured_tree, own_peak
from requests_in_turn import answer_requests

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
KEYED = {"primary_keys": ["id"], "options": {"bucket": "4"}}
UPDATES = (1, 2, 3)  # a key table is written three times: all rows, every second, every third


class SparkWorker:
    """What both do."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark

    def source(self, request: dict[str, Any]) -> dict[str, Any]:
        """Make the rows, unless they are there."""
        for step in UPDATES:
            path = source_path(request, step)
            if not path.exists():
                rows = self.spark.range(0, request["rows"], step, 8).selectExpr(*EXPRESSIONS)
                rows.write.option("compression", "zstd").parquet(str(path))
        return {}

    def rows(self, request: dict[str, Any], step: int = 1) -> DataFrame:
        return self.spark.read.parquet(str(source_path(request, step)))


class ParquetWorker(SparkWorker):
    """Spark's own files: the rows of every job without a table."""

    def prepare(self, _: dict[str, Any]) -> dict[str, Any]:
        return {}

    def write(self, request: dict[str, Any]) -> dict[str, Any]:
        rows = self.rows(request)
        out = str(Path(request["folder"]) / "out")
        with measured_tree() as answer:
            rows.write.mode("overwrite").option("compression", "zstd").parquet(out)
        return answer

    def scan(self, request: dict[str, Any]) -> dict[str, Any]:
        with measured_tree() as answer:
            read_all(self.rows(request))
        return answer

    def total(self, request: dict[str, Any]) -> dict[str, Any]:
        with measured_tree() as answer:
            add_up(self.rows(request))
        return answer

    key_write = compaction = write
    merge_scan = scan
    merge_total = total


class EmberlakeWorker(SparkWorker):
    """Tables."""

    def __init__(self, spark: SparkSession) -> None:
        super().__init__(spark)
        self.made = 0

    def prepare(self, request: dict[str, Any]) -> dict[str, Any]:
        """The tables that are read: not part of what is measured."""
        # Two checkouts of emberlake have the same names for their tables.
        folder = Path(request["folder"]) / f"warehouse-{os.getpid()}"
        self.warehouse = {"warehouse": str(folder)}
        self.catalog = CatalogFactory.create(dict(self.warehouse))
        self.catalog.create_database("db", ignore_if_exists=True)
        self.appended, self.merged = self.new_table(), self.new_table(**KEYED)
        write_paimon(self.rows(request), self.appended, self.warehouse)
        for step in UPDATES:
            write_paimon(self.rows(request, step), self.merged, self.warehouse)
        return {}

    def new_table(self, **layout: Any) -> str:
        self.made += 1
        name = f"db.t{self.made}"
        self.catalog.create_table(name, Schema.from_pyarrow_schema(COLUMNS, **layout))
        return name

    def write(self, request: dict[str, Any], **layout: Any) -> dict[str, Any]:
        rows, name = self.rows(request), self.new_table(**layout)
        with measured_tree() as answer:
            write_paimon(rows, name, self.warehouse)
        self.catalog.drop_table(name)
        return answer

    def key_write(self, request: dict[str, Any]) -> dict[str, Any]:
        return self.write(request, **KEYED)

    def scan(self, _: dict[str, Any]) -> dict[str, Any]:
        return self.scan_of(self.appended)

    def merge_scan(self, _: dict[str, Any]) -> dict[str, Any]:
        return self.scan_of(self.merged)

    def scan_of(self, name: str) -> dict[str, Any]:
        with measured_tree() as answer:
            read_all(read_paimon(name, self.warehouse, spark=self.spark))
        return answer

    def total(self, _: dict[str, Any]) -> dict[str, Any]:
        return self.total_of(self.appended)

    def merge_total(self, _: dict[str, Any]) -> dict[str, Any]:
        return self.total_of(self.merged)

    def total_of(self, name: str) -> dict[str, Any]:
        with measured_tree() as answer:
            add_up(read_paimon(name, self.warehouse, spark=self.spark, projection=["qty"]))
        return answer

    def compaction(self, _: dict[str, Any]) -> dict[str, Any]:
        """Of the key table, which is put back afterwards."""
        with measured_tree() as answer:
            compact(self.merged, self.warehouse, spark=self.spark, full=True)
        self.catalog.get_table(self.merged).rollback_to(len(UPDATES))
        return answer

    def growth(self, request: dict[str, Any]) -> dict[str, Any]:
        """Write and read so many rows; the memory is that of the driver's Python alone."""
        with own_peak() as peak:
            answers = {
                "append write": self.write(request),
                "key write": self.key_write(request),
                "scan": self.scan(request),
                "merge read": self.merge_scan(request),
            }
        seconds = {job: answer["seconds"] for job, answer in answers.items()}
        return {"seconds": seconds, "driver_bytes": peak.bytes, "heap_bytes": self.live_heap()}

    def live_heap(self) -> int:
        """What the driver's JVM still holds after a garbage collection."""
        jvm = self.spark.sparkContext._jvm  # noqa: SLF001
        assert jvm is not None
        jvm.System.gc()
        runtime = jvm.Runtime.getRuntime()
        return int(runtime.totalMemory() - runtime.freeMemory())


def read_all(df: DataFrame) -> None:
    df.write.format("noop").mode("overwrite").save()


def add_up(df: DataFrame) -> None:
    df.agg({"qty": "sum"}).collect()


def source_path(request: dict[str, Any], step: int) -> Path:
    return Path(request["folder"]) / f"source-{request['rows']}-{step}"


def new_session(master: str) -> SparkSession:
    # Executors that are processes of their own look for their Python here.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    return (
        SparkSession.builder.master(master)
        .config("spark.driver.memory", "4g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )


if __name__ == "__main__":
    engine, session = sys.argv[1], new_session(sys.argv[2])
    worker = EmberlakeWorker if engine == "emberlake" else ParquetWorker
    answer_requests(worker(session))

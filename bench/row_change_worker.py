"""Changes of rows on Spark: emberlake's tables, Delta Lake's, and Spark's own files as the measure.

Each starts from the same table in every repetition: what a job changed is taken back afterwards.
Delta Lake runs in an environment of its own, so emberlake is imported only where it is used.
"""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

from pyspark.sql import DataFrame, SparkSession

if "delta" not in sys.argv:
    from emberlake import CatalogFactory, Schema
    from emberlake.spark import delete, merge, write_paimon
    from emberlake.spark.types import paimon_fields
    from emberlake.types import arrow_schema

from memory_use import measured_tree
from requests_in_turn import answer_requests

FILES = 8
COLUMNS = (
    "id",
    "cast(id % 1000 as int) as k",
    "rand({seed}) as price",
    "cast(rand({seed} + 1) * 1e6 as bigint) as qty",
    "concat('user-', cast(cast(rand({seed} + 2) * 100000 as int) as string)) as name",
    "date_add(date'2026-01-01', cast(id % 365 as int)) as d",
    "timestamp_micros(1700000000000000 + id * 1000) as ts",
    "id % 3 = 0 as flag",
)
WARM_UP_ROWS = 100_000
MOST_WRITES = 4  # of Spark's own


class Worker:
    """What all do: the rows of the table, and those of sources."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.made: dict[tuple[str, int], Any] = {}

    def table_rows(self, request: dict[str, Any]) -> DataFrame:
        return self._saved(request, "table", self.spark.range(0, request["rows"], 1, FILES), 1)

    def source(self, request: dict[str, Any]) -> DataFrame:
        """A share of the rows, spread over all files; one in ten of them is new."""
        rows, step = request["rows"], round(1 / request["share"])
        some = self.spark.range(0, rows, step, 2)
        is_new = f"id / {step} % 10 = 9"
        keys = some.selectExpr(f"if({is_new}, {rows} + id, id) as id")
        return self._saved(request, f"source-{step}", keys, 2)

    def _saved(self, request: dict[str, Any], name: str, keys: DataFrame, seed: int) -> DataFrame:
        path = Path(request["folder"]) / f"{name}-{request['rows']}"
        if not path.exists():
            rows = keys.selectExpr(*(column.format(seed=10 * seed) for column in COLUMNS))
            rows.write.option("compression", "zstd").parquet(str(path))
        return self.spark.read.parquet(str(path))

    def warm_up(self, request: dict[str, Any]) -> dict[str, Any]:
        """Let the JVM compile what the jobs need, on a few rows."""
        if request["rows"] < WARM_UP_ROWS:
            return {}
        small = {**request, "rows": min(WARM_UP_ROWS, request["rows"])}
        for _ in range(1 if self.made else 3):
            self.change(small)
        return {}

    def change(self, request: dict[str, Any]) -> dict[str, Any]:
        """Change rows of a table of some kind, and take it back."""
        key = self.layout(request), request["rows"]
        if key not in self.made:
            self.made[key] = self.new_table(request)
        table = self.made[key]
        work = self.deleting if request["what"] == "delete" else self.merging
        run = work(table, request)
        with measured_tree() as answer:
            run()
        self.take_back(table)
        return answer

    def layout(self, request: dict[str, Any]) -> str:
        """What tells tables apart."""
        return str(request["kind"])

    def new_table(self, request: dict[str, Any]) -> Any:
        raise NotImplementedError

    def merging(self, table: Any, request: dict[str, Any]) -> Callable[[], object]:
        raise NotImplementedError

    def deleting(self, table: Any, request: dict[str, Any]) -> Callable[[], object]:
        raise NotImplementedError

    def take_back(self, table: Any) -> None:
        raise NotImplementedError


class ParquetWorker(Worker):
    """Spark's own Parquet write of the whole table, whatever the job changes."""

    def __init__(self, spark: SparkSession) -> None:
        super().__init__(spark)
        self.writes: list[dict[str, Any]] = []

    def warm_up(self, request: dict[str, Any]) -> dict[str, Any]:
        return {} if self.writes else super().warm_up(request)

    def change(self, request: dict[str, Any]) -> dict[str, Any]:
        """The best of the first few; all jobs write the same."""
        if request["rows"] <= WARM_UP_ROWS:
            return super().change(request)
        if len(self.writes) < MOST_WRITES:
            self.writes.append(super().change(request))
        return min(self.writes, key=lambda answer: answer["seconds"])

    def layout(self, _: dict[str, Any]) -> str:
        return "parquet"

    def new_table(self, request: dict[str, Any]) -> Path:
        return Path(request["folder"]) / "parquet-out"

    def merging(self, table: Path, request: dict[str, Any]) -> Callable[[], object]:
        rows = self.table_rows(request)
        writer = rows.write.mode("overwrite").option("compression", "zstd")
        return lambda: writer.parquet(str(table))

    deleting = merging

    def take_back(self, table: Path) -> None:
        shutil.rmtree(table)


LAYOUTS: dict[str, dict[str, Any]] = {
    "rewrite": {},
    "vectors": {"options": {"deletion-vectors.enabled": "true"}},
    "columns": {
        "options": {
            "deletion-vectors.enabled": "true",
            "row-tracking.enabled": "true",
            "data-evolution.enabled": "true",
        }
    },
    "keys": {"primary_keys": ["id"], "options": {"bucket": "4"}},
}


class EmberlakeWorker(Worker):
    """Tables of each strategy."""

    def new_table(self, request: dict[str, Any]) -> str:
        self.warehouse = {"warehouse": str(Path(request["folder"]) / f"warehouse-{os.getpid()}")}
        self.catalog = CatalogFactory.create(dict(self.warehouse))
        self.catalog.create_database("db", ignore_if_exists=True)
        name = f"db.{request['kind']}{request['rows']}"
        rows = self.table_rows(request)
        columns = arrow_schema(paimon_fields(rows.schema))
        layout = LAYOUTS[request["kind"]]
        self.catalog.create_table(name, Schema.from_pyarrow_schema(columns, **layout))
        write_paimon(rows, name, self.warehouse)
        return name

    def merging(self, table: str, request: dict[str, Any]) -> Callable[[], object]:
        builder = merge(self.source(request), table, self.warehouse, on=["id"])
        if request["kind"] == "columns":
            builder.when_matched_update({"price": "s.price"})
        else:
            builder.when_matched_update_all()
        return builder.when_not_matched_insert_all().execute

    def deleting(self, table: str, request: dict[str, Any]) -> Callable[[], object]:
        step = round(1 / request["share"])
        where = f"id % {step} = 7"
        return lambda: delete(table, self.warehouse, where, spark=self.spark)

    def take_back(self, table: str) -> None:
        self.catalog.get_table(table).rollback_to(1)


class DeltaWorker(Worker):
    """Delta Lake's own connector: with deletion vectors, or rewriting files."""

    def layout(self, request: dict[str, Any]) -> str:
        return "rewrite" if request["kind"] == "rewrite" else "vectors"

    def new_table(self, request: dict[str, Any]) -> str:
        path = Path(request["folder"]) / f"delta-{self.layout(request)}-{request['rows']}"
        writer = self.table_rows(request).write.format("delta")
        writer = writer.option("compression", "zstd")
        marks = "false" if request["kind"] == "rewrite" else "true"
        writer.option("delta.enableDeletionVectors", marks).save(str(path))
        return f"delta.`{path}`"

    def merging(self, table: str, request: dict[str, Any]) -> Callable[[], object]:
        self.source(request).createOrReplaceTempView("source")
        values = "price = s.price" if request["kind"] == "columns" else "*"
        text = (
            f"MERGE INTO {table} t USING source s ON t.id = s.id "
            f"WHEN MATCHED THEN UPDATE SET {values} WHEN NOT MATCHED THEN INSERT *"
        )
        return lambda: self.spark.sql(text).collect()

    def deleting(self, table: str, request: dict[str, Any]) -> Callable[[], object]:
        step = round(1 / request["share"])
        return lambda: self.spark.sql(f"DELETE FROM {table} WHERE id % {step} = 7").collect()

    def take_back(self, table: str) -> None:
        self.spark.sql(f"RESTORE TABLE {table} TO VERSION AS OF 0").collect()


def new_session(master: str, engine: str) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = (
        SparkSession.builder.master(master)
        .config("spark.driver.memory", "2g")  # three of them fit in 8 GB, with their workers
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "8")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
    )
    if engine == "delta":
        jars = sorted((Path(sys.prefix) / "jars").glob("*.jar"))
        builder = (
            builder.config("spark.jars", ",".join(map(str, jars)))
            # By default 50 tasks read the log of a table, however small it is.
            .config("spark.databricks.delta.snapshotPartitions", "2")
            .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
            .config(
                "spark.sql.catalog.spark_catalog",
                "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            )
        )
    return builder.getOrCreate()


WORKERS = {"emberlake": EmberlakeWorker, "parquet": ParquetWorker, "delta": DeltaWorker}

if __name__ == "__main__":
    answer_requests(WORKERS[sys.argv[1]](new_session(sys.argv[2], sys.argv[1])))

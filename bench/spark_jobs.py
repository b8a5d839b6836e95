"""The jobs on Spark: emberlake's tables beside Spark's own Parquet files."""

import shutil
from collections.abc import Iterator

from engines import SPARK, Measurement
from state import Bench, Job, Measure, Run

# operation of spark_worker -> title; what plain Parquet does instead is in spark_worker
TITLES = {
    "write": "append write",
    "key_write": "key table write, 4 buckets",
    "scan": "scan",
    "total": "sum of one column",
    "merge_scan": "merged read of three writes",
    "merge_total": "sum of one column of it",
    "compaction": "its full compaction",
}


def spark_jobs() -> list[Job]:
    return [
        Job(f"spark-{operation.replace('_', '-')}", title, SPARK, measuring(operation), "spark")
        for operation, title in TITLES.items()
    ]


def measuring(operation: str) -> Run:
    def run(bench: Bench) -> Iterator[Measure]:
        request = {"folder": str(bench.folder), "rows": bench.settings.spark_rows}
        prepare(bench, request)
        yield lambda engine: Measurement.of(bench.spark(engine).ask(operation, **request))

    return run


def prepare(bench: Bench, request: dict[str, object]) -> None:
    """The rows, and the tables that are read, once in a run."""
    if not (bench.folder / "prepared").exists():
        bench.spark("parquet").ask("source", **request)
        for engine in SPARK.keys() - {"parquet"}:
            bench.spark(engine).ask("prepare", **request)
        (bench.folder / "prepared").touch()


def growth(bench: Bench, rows: int) -> dict[str, object]:
    """Seconds by job, and the memory of the driver, at a number of rows."""
    folder = bench.folder / f"growth-{rows}"
    request = {"folder": str(folder), "rows": rows}
    process = bench.spark("emberlake")
    for operation in ("source", "prepare"):
        process.ask(operation, **request)
    if rows == min(bench.settings.growth_rows):
        process.ask("growth", **request)  # the JVM has to get warm
    answer = process.ask("growth", **request)
    shutil.rmtree(folder)
    return answer

"""Do time per row and memory stay the same when there are more rows?"""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import spark_jobs
from state import Bench

# job of memory.py -> title; in this order, since some read what another wrote
LOCAL_JOBS = {
    "write": "append",
    "read": "scan",
    "key-write": "key table, 5 overlapping writes",
    "key-merge-read": "merged read of them",
}


@dataclass(frozen=True)
class Point:
    """One job at one number of rows."""

    job: str
    rows: int
    seconds: float
    peak_bytes: int | None = None  # of the process; on Spark, of the driver's Python
    heap_bytes: int | None = None  # held by the driver's JVM afterwards

    @property
    def microseconds_per_row(self) -> float:
        return self.seconds / self.rows * 1e6


def local_growth(bench: Bench) -> Iterator[Point]:
    """Rows are streamed in and out; every job is a process of its own."""
    for rows in bench.settings.growth_rows:
        folder = bench.folder / f"growth-{rows}"
        for job, title in LOCAL_JOBS.items():
            command = [sys.executable, str(Path(__file__).with_name("memory.py"))]
            done = subprocess.run(
                [*command, job, str(rows), str(folder)], check=True, capture_output=True
            )
            answer = json.loads(done.stdout)
            yield Point(title, rows, answer["seconds"], answer["peak_bytes"])
        shutil.rmtree(folder)


def spark_growth(bench: Bench) -> Iterator[Point]:
    """The same on Spark."""
    for rows in bench.settings.growth_rows:
        answer = spark_jobs.growth(bench, rows)
        for job, seconds in answer["seconds"].items():
            memory = answer["driver_bytes"], answer["heap_bytes"]
            yield Point(f"Spark: {job}", rows, seconds, *memory)


def slowdown(points: list[Point]) -> dict[str, float]:
    """By job: the time per row at most rows in multiples of that at any smaller number of rows."""
    found = {}
    for job in dict.fromkeys(point.job for point in points):
        *fewer, most = sorted((p for p in points if p.job == job), key=lambda p: p.rows)
        found[job] = max(most.microseconds_per_row / p.microseconds_per_row for p in fewer)
    return found

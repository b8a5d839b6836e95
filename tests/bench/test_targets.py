"""How fast emberlake must be, as ratios to its peers measured in the same run.

Machines are shared: a job that misses its target is measured again, twice at most.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from servers import Server

pytestmark = [pytest.mark.bench, pytest.mark.slow, pytest.mark.interop, pytest.mark.timeout(1800)]

BENCH = Path(__file__).parents[2] / "bench"
TRIES = 3

# Seconds of emberlake over seconds of pypaimon-rust, the best of several runs of each.
TO_RUST = {
    "append": 1.0,
    "append-partitioned": 1.0,
    "append-bucketed": 0.9,
    "key-write": 0.8,
    "key-write-string": 0.9,
    "key-upsert": 0.8,
    "scan": 1.1,
    "merge-read": 0.6,
    "merge-read-2-columns": 0.8,
    "plan-10000-files": 3.0,
    "plan-100000-files-warm": 1.0,
}
# The same on an S3 server, over the best of pypaimon-rust, pypaimon and pyarrow's S3 filesystem.
TO_BEST_ON_S3 = {
    f"s3-{job}-{delay}ms": ratio
    for delay in (0, 30)
    for job, ratio in {
        "write": 1.1,
        "scan": 1.1,
        "read-100-files": 1.0,
        "plan-100": 1.0 if delay else 1.2,
        "plan-100-warm": 1.0,
        "commit": 1.0,
    }.items()
}
# The same over seconds of Spark's own Parquet files.
TO_SPARK = {
    "spark-write": 1.25,
    "spark-key-write": 2.2,
    "spark-scan": 1.15,
    "spark-total": 1.3,
    "spark-merge-scan": 3.3,
    "spark-merge-total": 5.0,
    "spark-compaction": 1.6,
    # Over Spark's Parquet write of the whole table.
    "row-merge-10-vectors": 0.7,
    "row-merge-10-columns": 0.9,
    "row-merge-10-rewrite": 1.6,
    "row-merge-1-vectors": 0.4,
    "row-delete-1-vectors": 0.3,
    "row-merge-10-keys": 1.0,
}


@pytest.mark.parametrize("job", TO_RUST)
def test_a_job_keeps_up_with_pypaimon_rust(job: str, tmp_path: Path) -> None:
    ratios = []
    for _ in range(TRIES):
        found = measure(tmp_path, [job], ["emberlake", "rust", "parquet"])
        ratios.append(found[job]["ratios"]["rust"])
        if ratios[-1] <= TO_RUST[job]:
            return
    pytest.fail(f"{job} took {ratios} times as long as pypaimon-rust")


def test_jobs_on_spark_keep_up_with_its_own_files(tmp_path: Path) -> None:
    missed = dict(TO_SPARK)
    for _ in range(TRIES):
        found = measure(tmp_path, list(missed), ["emberlake", "parquet"])
        missed = {
            job: target
            for job, target in missed.items()
            if found[job]["ratios"]["parquet"] > target
        }
        if not missed:
            return
    pytest.fail(f"too slow: { {job: found[job]['ratios'] for job in missed} }")


@pytest.mark.parametrize("job", TO_BEST_ON_S3)
def test_a_job_on_an_s3_server_keeps_up_with_the_best(s3: Server, job: str, tmp_path: Path) -> None:
    peers = ["rust", "pypaimon", "parquet"]
    ratios = []
    for _ in range(TRIES):
        found = measure(tmp_path, [job], ["emberlake", *peers])
        ratios.append(max(found[job]["ratios"].values()))
        if ratios[-1] <= TO_BEST_ON_S3[job]:
            return
    pytest.fail(f"{job} took {ratios} times as long as the best of {', '.join(peers)}")


def test_no_job_is_slower_than_pypaimon(tmp_path: Path) -> None:
    # Commits until they would survive a crash: pypaimon leaves that to chance, and returns earlier.
    commits = ["durable-commit-0-files", "durable-commit-10000-files"]
    jobs = [*TO_RUST, "scan-filtered", "merge-read-filtered", *commits, "import"]
    found = measure(tmp_path, jobs, ["emberlake", "rust", "pypaimon", "parquet"], "quick")

    slower = {job: entry["ratios"]["pypaimon"] for job, entry in found.items()}

    assert {job: ratio for job, ratio in slower.items() if ratio > 1} == {}


def test_a_commit_does_not_slow_down_with_the_number_of_files(tmp_path: Path) -> None:
    jobs = ["commit-0-files", "commit-10000-files"]
    ratios = []
    for _ in range(TRIES):
        found = measure(tmp_path, jobs, ["emberlake"])
        empty, full = (min(found[job]["engines"]["emberlake"]["seconds"]) for job in jobs)
        ratios.append(full / empty)
        if ratios[-1] <= 1.5:
            return
    pytest.fail(f"a commit on 10,000 files took {ratios} times that on an empty table")


def test_importing_emberlake_takes_less_than_three_tenths_of_a_second() -> None:
    program = (
        "import time; t = time.perf_counter(); import emberlake; print(time.perf_counter() - t)"
    )
    runs = [
        float(
            subprocess.run([sys.executable, "-c", program], check=True, capture_output=True).stdout
        )
        for _ in range(5)
    ]

    assert min(runs) < 0.3


def measure(
    folder: Path, jobs: list[str], engines: list[str], size: str = "full"
) -> dict[str, Any]:
    command = [sys.executable, str(BENCH), "--size", size, "--out", str(folder)]
    command += ["--jobs", *jobs, "--engines", *engines]
    subprocess.run(command, check=True, capture_output=True)
    found: dict[str, Any] = json.loads((folder / "results.json").read_text())["jobs"]
    return found

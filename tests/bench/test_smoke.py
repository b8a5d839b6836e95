"""The benchmarks run: a few rows through every job, every engine and every report."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from servers import Server

BENCH = Path(__file__).parents[2] / "bench"
# One of every kind; `make bench` runs them all.
JOBS = (
    "append-partitioned",
    "key-upsert",
    "scan-filtered",
    "merge-read-2-columns",
    "commit-0-files",
    "spark-write",
)


@pytest.mark.slow
@pytest.mark.interop
def test_a_few_rows_pass_through_all_kinds_of_jobs(tmp_path: Path) -> None:
    done = run(tmp_path, "--jobs", *JOBS)

    report = json.loads((tmp_path / "results.json").read_text())
    assert list(report["jobs"]) == list(JOBS)
    for name, job in report["jobs"].items():
        for engine, found in job["engines"].items():
            assert min(found.get("seconds", [0])) > 0, (name, engine, found)
    assert report["versions"]["emberlake"]
    for plot in ("engines.svg", "spark.svg"):
        assert "</svg>" in (tmp_path / plot).read_text()
    assert "append, 5 partitions" in done


@pytest.mark.slow
@pytest.mark.interop
def test_a_few_rows_pass_through_all_jobs_on_an_s3_server(s3: Server, tmp_path: Path) -> None:
    done = run(tmp_path, "--s3")

    jobs = json.loads((tmp_path / "results.json").read_text())["jobs"]
    assert set(jobs["s3-scan-30ms"]["engines"]) == {"emberlake", "rust", "pypaimon", "parquet"}
    for name, job in jobs.items():
        for engine, found in job["engines"].items():
            # No answer comes before its time, and all need more than one.
            least = 0.06 if name.endswith("-30ms") and "warm" not in name else 0
            assert min(found.get("seconds", [0])) > least, (name, engine, found)
    assert "MB/s at 30 ms" in done
    assert "</svg>" in (tmp_path / "s3.svg").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "count"),
    [
        (["--jobs", "row-merge-1-vectors", "--engines", "emberlake"], 1),
        (["--row-changes", "--engines", "emberlake", "parquet"], 6),
    ],
)
def test_a_few_rows_are_changed_on_spark(tmp_path: Path, asked: list[str], count: int) -> None:
    run(tmp_path, *asked)

    jobs = json.loads((tmp_path / "results.json").read_text())["jobs"]
    assert len(jobs) == count
    for name, job in jobs.items():
        for engine, found in job["engines"].items():
            assert min(found.get("seconds", [0])) > 0, (name, engine, found)
            assert found["cpu_seconds"] > 0
    assert "</svg>" in (tmp_path / "row-changes.svg").read_text()


@pytest.mark.slow
@pytest.mark.interop
def test_a_few_rows_pass_through_all_jobs_and_growth_is_shown(tmp_path: Path) -> None:
    done = run(tmp_path)

    report = json.loads((tmp_path / "results.json").read_text())
    assert {point["rows"] for point in report["growth"]} == {1_000, 2_000}
    assert "</svg>" in (tmp_path / "growth.svg").read_text()
    assert "time per row" in done
    assert "failed" not in done


def test_a_job_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    command = [sys.executable, str(BENCH), "--size", "smoke", "--jobs", "scann"]

    ended = subprocess.run(command, capture_output=True, text=True, check=False)

    assert ended.returncode != 0
    assert "no such job: scann" in ended.stderr


def run(folder: Path, *arguments: str) -> str:
    command = [sys.executable, str(BENCH), "--size", "smoke", "--out", str(folder), *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout

"""How fast emberlake must be, as ratios to its peers measured in the same run.

Machines are shared: a job that misses its target is measured again, twice at most.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.bench, pytest.mark.slow, pytest.mark.interop, pytest.mark.timeout(1800)]

COMPARE = Path(__file__).parents[2] / "bench" / "compare.py"
TRIES = 3

# Seconds of emberlake over seconds of pypaimon-rust, the best of several runs of each.
TO_RUST = {
    "append": 1.0,
    "append-5-partitions": 1.0,
    "append-8-buckets": 0.9,
    "key-write-bigint": 0.8,
    "key-write-string-bigint": 0.9,
    "key-upsert": 0.8,
    "scan": 1.1,
    "plan-10000-files-cold": 3.0,
    "plan-10000-files-warm": 1.0,
}


@pytest.mark.parametrize("job", TO_RUST)
def test_a_job_keeps_up_with_pypaimon_rust(job: str, tmp_path: Path) -> None:
    ratios = []
    for _ in range(TRIES):
        seconds = measure(tmp_path, [job], ["emberlake", "rust"])[job]
        ratios.append(min(seconds["emberlake"]) / min(seconds["rust"]))
        if ratios[-1] <= TO_RUST[job]:
            return
    pytest.fail(f"{job} took {ratios} times as long as pypaimon-rust")


def test_a_commit_does_not_slow_down_with_the_number_of_files(tmp_path: Path) -> None:
    jobs = ["commit-empty", "commit-10000-files"]
    ratios = []
    for _ in range(TRIES):
        found = measure(tmp_path, jobs, ["emberlake"])
        ratios.append(min(found[jobs[1]]["emberlake"]) / min(found[jobs[0]]["emberlake"]))
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


def measure(folder: Path, jobs: list[str], engines: list[str]) -> dict[str, dict[str, list[float]]]:
    report = folder / "report.json"
    command = [sys.executable, str(COMPARE), "--json", str(report), "--repeat", "7"]
    command += ["--jobs", *jobs, "--engines", *engines]
    subprocess.run(command, check=True, capture_output=True)
    seconds: dict[str, dict[str, list[float]]] = json.loads(report.read_text())["seconds"]
    return seconds

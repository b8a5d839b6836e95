"""Twice the rows cost twice the time, and no more memory on the driver."""

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.bench, pytest.mark.slow, pytest.mark.timeout(1800)]

BENCH = Path(__file__).parents[2] / "bench"
MEBIBYTE = 1024**2
TRIES = 3


def test_time_per_row_does_not_grow_with_the_rows_and_nor_does_the_drivers_memory(
    tmp_path: Path,
) -> None:
    for _ in range(TRIES):  # the machine may be busy with something else
        points = measure(tmp_path)
        slower = {job: factor for job, factor in slowdowns(points).items() if factor > 1.3}
        if not slower:
            break
    assert slower == {}
    on_spark = [point for point in points if point["heap_bytes"] is not None]
    heaps = [point["heap_bytes"] for point in on_spark]
    assert max(heaps) - min(heaps) < 50 * MEBIBYTE
    assert max(point["peak_bytes"] for point in on_spark) < 100 * MEBIBYTE


def slowdowns(points: list[dict[str, Any]]) -> dict[str, float]:
    """By job, the time per row at most rows in multiples of that at fewer."""
    by_job = defaultdict(list)
    for point in points:
        by_job[point["job"]].append((point["rows"], point["seconds"] / point["rows"]))
    return {
        job: max(max(line)[1] / per_row for _, per_row in sorted(line)[:-1])
        for job, line in by_job.items()
    }


def measure(folder: Path) -> list[dict[str, Any]]:
    command = [sys.executable, str(BENCH), "--growth", "--jobs", "import", "--engines", "emberlake"]
    subprocess.run([*command, "--out", str(folder)], check=True, capture_output=True)
    points: list[dict[str, Any]] = json.loads((folder / "results.json").read_text())["growth"]
    return points

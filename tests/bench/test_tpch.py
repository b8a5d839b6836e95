"""TPC-H by SQL gives the rows that plain Parquet files give."""

import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench"


@pytest.mark.parametrize("layout", ["append", "keys"])
def test_all_queries_have_the_same_rows_without_spark(tmp_path: Path, layout: str) -> None:
    run(tmp_path, "--layout", layout, "--ways", "duckdb", "local")


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("layout", ["append", "keys"])
def test_all_queries_have_the_same_rows_on_spark(tmp_path: Path, layout: str) -> None:
    run(tmp_path, "--layout", layout, "--ways", "spark", "lake", "attached", "local")


def run(folder: Path, *arguments: str) -> None:
    """Fails if a query has other rows."""
    command = [sys.executable, str(BENCH), "--tpch", "--scale", "0.01", "--repeat", "1"]
    command += ["--folder", str(folder), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "q22" in done.stdout

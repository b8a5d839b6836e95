"""Memory does not grow with the rows: streams are written and read in bounded memory."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.bench, pytest.mark.slow, pytest.mark.timeout(900)]

SCRIPT = Path(__file__).parents[2] / "bench" / "memory.py"
ROWS = 20_000_000
GIBIBYTE = 1024**3


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("memory")


@pytest.mark.parametrize("job", ["write", "read", "write-partitioned", "read-partitioned"])
def test_twenty_million_rows_pass_through_less_than_a_gibibyte(job: str, warehouse: Path) -> None:
    assert peak_bytes(job, warehouse) < GIBIBYTE


def peak_bytes(job: str, warehouse: Path) -> int:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), job, str(ROWS), str(warehouse)],
        check=True,
        capture_output=True,
        text=True,
    )
    peak: int = json.loads(done.stdout)["peak_bytes"]
    return peak

"""Memory does not grow with the rows: streams are written and read in bounded memory."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from servers import Server

pytestmark = [pytest.mark.bench, pytest.mark.slow, pytest.mark.timeout(900)]

SCRIPT = Path(__file__).parents[2] / "bench" / "memory.py"
ROWS = 20_000_000
MEBIBYTE = 1024**2
GIBIBYTE = 1024**3


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("memory")


@pytest.mark.parametrize("job", ["write", "read", "write-partitioned", "read-partitioned"])
def test_twenty_million_rows_pass_through_less_than_a_gibibyte(job: str, warehouse: Path) -> None:
    assert peak_bytes(job, warehouse) < GIBIBYTE


def test_a_key_table_is_written_in_little_more_memory_than_its_buffer(warehouse: Path) -> None:
    buffer_bytes, more = 256 * 1024**2, 512 * 1024**2

    assert peak_bytes("write-key", warehouse) < buffer_bytes + more


def test_runs_of_keys_are_written_in_little_more_than_the_buffer(warehouse: Path) -> None:
    buffer_bytes = 384 * MEBIBYTE  # as the table of the script has it
    assert peak_bytes("key-write", warehouse) < buffer_bytes + 512 * MEBIBYTE


def test_overlapping_runs_are_merged_in_less_than_a_gibibyte(warehouse: Path) -> None:
    if not (warehouse / "db.db" / "runs").exists():
        peak_bytes("key-write", warehouse)
    assert peak_bytes("key-merge-read", warehouse) < GIBIBYTE


def test_a_loop_of_small_commits_does_not_take_more_and_more_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EMBERLAKE_METADATA_CACHE", "8 mb")

    few = peak_bytes("commits", tmp_path / "few", rows=800)
    many = peak_bytes("commits", tmp_path / "many", rows=2400)

    assert many - few < 16 * MEBIBYTE


@pytest.mark.parametrize("jobs", [("write", "read"), ("write-partitioned", "read-partitioned")])
def test_memory_does_not_grow_with_what_passes_to_an_object_store_and_back(
    s3: Server, monkeypatch: pytest.MonkeyPatch, jobs: tuple[str, ...]
) -> None:
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    few, many = ROWS // 4, ROWS
    for job in jobs:
        peaks = [peak_bytes(job, f"{s3.root}/{jobs[0]}-{rows}", rows) for rows in (few, many)]

        assert peaks[1] < GIBIBYTE, job
        assert peaks[1] - peaks[0] < 128 * MEBIBYTE, job


def peak_bytes(job: str, warehouse: Path | str, rows: int = ROWS) -> int:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), job, str(rows), str(warehouse)],
        check=True,
        capture_output=True,
        text=True,
    )
    peak: int = json.loads(done.stdout)["peak_bytes"]
    return peak

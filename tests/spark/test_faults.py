"""Failures around a write: tasks, executors, drivers, and workers that cannot do the work.

What happens on a cluster is in the folder `faults`, which has a session of its own.
"""

import subprocess
import sys
import sysconfig
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from weakref import WeakSet

import pytest
from pyspark.sql import SparkSession

from emberlake import InvalidState, Table
from emberlake.spark import compact, sessions, write_paimon
from spark.cases.test_row_operations import KINDS as CHANGED
from spark.children import run_pytest
from spark.conftest import MODE
from spark.drivers.session import KILLED, run_driver
from spark.reads import write
from spark.tables import data_files, frame, new_table, reopened, rows_of, some_rows
from table_reads import left_over

FAULTS: Final = Path(__file__).parent / "faults"
OLD: Final = some_rows(range(1000, 1010))
NEW: Final = some_rows(range(200))
KEY: Final = {"primary_keys": ["id"], "bucket": "2"}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", ["not slow", pytest.param("slow", marks=pytest.mark.slow)])
def test_writes_survive_their_tasks_and_executors(part: str) -> None:
    run_pytest(FAULTS, "-m", part, environment={"EMBERLAKE_FAULTS": "1"}, timeout_s=870)


def table_with_old_rows(warehouse: Path, **options: object) -> Table:
    return write(new_table(warehouse, **options), range(1000, 1010))


def write_new_rows(spark: SparkSession, table: Table) -> None:
    warehouse = {"warehouse": str(Path(table.table_path).parents[1])}
    write_paimon(frame(spark, NEW), "db.t", warehouse)


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["tasks", "before"])
def test_a_driver_that_is_killed_before_the_commit_leaves_only_files_that_nothing_refers_to(
    spark: SparkSession, tmp_path: Path, moment: str
) -> None:
    table = table_with_old_rows(tmp_path, **KEY)

    assert run_driver("killed_write", tmp_path, moment) == KILLED

    assert rows_of(table) == OLD
    garbage = left_over(reopened(table))
    assert any("/bucket-" in path for path in garbage)
    write_new_rows(spark, table)
    assert rows_of(table) == NEW + OLD
    assert left_over(reopened(table)) >= garbage


def test_a_driver_that_is_killed_after_the_commit_leaves_a_whole_snapshot(tmp_path: Path) -> None:
    table = table_with_old_rows(tmp_path, **KEY)

    assert run_driver("killed_write", tmp_path, "after") == KILLED

    assert rows_of(table) == NEW + OLD
    assert left_over(reopened(table)) == set()


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["tasks", "before", "after"])
@pytest.mark.parametrize("kind", ["rewrite", "vectors", "columns", "keys"])
def test_a_driver_that_is_killed_in_a_merge_leaves_all_of_it_or_nothing(
    tmp_path: Path, kind: str, moment: str
) -> None:
    table = write(new_table(tmp_path, **CHANGED[kind]), range(10))

    assert run_driver("killed_merge", tmp_path, moment) == KILLED

    is_done = moment == "after"
    merged = some_rows(range(5)) + some_rows(range(5, 200), name="merged")
    assert rows_of(table) == (merged if is_done else some_rows(range(10)))
    garbage = left_over(reopened(table))
    assert bool(garbage) is not is_done
    reopened(table).remove_orphan_files(older_than=datetime.now(UTC))
    assert left_over(reopened(table)) == set()
    assert len(rows_of(table)) == (200 if is_done else 10)


@pytest.fixture
def python_without(tmp_path: Path) -> Path:
    """A Python that has nothing but itself."""
    home = tmp_path / "python"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True, timeout=120)
    return home


def give_packages(home: Path, *, but: str) -> None:
    """Let a Python have what this one has, except for one package."""
    (target,) = home.glob("lib/python*/site-packages")
    for path in Path(sysconfig.get_paths()["purelib"]).iterdir():
        if but not in path.name and path.suffix != ".pth":
            (target / path.name).symlink_to(path)


@pytest.mark.skipif(MODE == "connect", reason="the Python of a server is the server's affair")
@pytest.mark.parametrize("package", ["emberlake", pytest.param("pyarrow", marks=pytest.mark.slow)])
def test_workers_that_lack_a_package_are_reported_before_the_job(
    spark: SparkSession,
    tmp_path: Path,
    python_without: Path,
    monkeypatch: pytest.MonkeyPatch,
    package: str,
) -> None:
    table = table_with_old_rows(tmp_path)
    give_packages(python_without, but=package)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(python_without / "bin" / "python"))
    monkeypatch.setattr(sessions, "_checked", WeakSet())
    files = data_files(table)

    for job in (
        lambda: write_new_rows(spark, table),
        lambda: compact("db.t", {"warehouse": str(tmp_path)}, spark=spark),
    ):
        with pytest.raises(InvalidState, match=package) as refused:
            job()
        assert "PYSPARK_PYTHON" in str(refused.value)

    assert data_files(table) == files
    assert left_over(reopened(table)) == set()

"""Tasks, workers and executors that fail while they compact."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from emberlake import Table
from emberlake.commit.change import CommitResult
from emberlake.spark.compaction import compact_on_spark
from spark.mischief import (
    CrashedWorker,
    Happening,
    InFirstAttempts,
    KilledExecutor,
    Once,
    WaitFor,
    with_mischief,
)
from spark.reads import write
from spark.tables import new_table, reopened, rows_of, some_rows
from table_reads import left_over

ROWS = some_rows(range(150))


def table_to_compact(warehouse: Path) -> Table:
    table = new_table(warehouse, primary_keys=["id"], bucket="4")
    for start in (0, 50, 100):
        write(table, range(start, start + 50))
    return reopened(table)


def compact(table: Table, spark: SparkSession, happening: Happening) -> CommitResult:
    """Compact with a task for every bucket, in which something happens after its first file."""
    store = with_mischief(table, happening)
    return compact_on_spark(store, "me", spark, full=True, where=None)


def check(table: Table, *, snapshot_id: int) -> None:
    latest = reopened(table).latest_snapshot()
    assert latest is not None
    assert latest.id == snapshot_id
    assert rows_of(table) == ROWS
    assert left_over(reopened(table)) == set()


@pytest.mark.parametrize(
    "happening",
    [
        pytest.param(CrashedWorker(), id="worker", marks=pytest.mark.slow),
        pytest.param(KilledExecutor(), id="executor", marks=pytest.mark.slow),
    ],
)
def test_a_compaction_survives_a_process(
    spark: SparkSession, tmp_path: Path, happening: Happening
) -> None:
    table = table_to_compact(tmp_path)
    happened = tmp_path / "happened"

    compact(table, spark, Once(happening, happened))

    assert happened.exists()
    check(table, snapshot_id=4)


@pytest.mark.slow
def test_of_two_attempts_at_compacting_a_bucket_one_is_committed(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = table_to_compact(tmp_path)
    slow = Once(WaitFor(tmp_path / "goes on"), tmp_path / "has file")

    compact(table, spark, InFirstAttempts(slow))

    assert (tmp_path / "has file").exists()
    (tmp_path / "goes on").touch()
    check(table, snapshot_id=4)


def test_a_compaction_that_fails_leaves_the_table_as_it_was(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = table_to_compact(tmp_path)

    with pytest.raises(Exception, match="crashed"):
        compact(table, spark, CrashedWorker())

    check(table, snapshot_id=3)

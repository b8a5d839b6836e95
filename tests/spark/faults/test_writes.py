"""Tasks, workers and executors that fail while they write."""

import time
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from emberlake import EmberlakeError, InvalidState, Table
from emberlake.spark.write import SparkWriteResult
from spark import reads
from spark.mischief import (
    CrashedWorker,
    Failed,
    Happening,
    InFirstAttempts,
    KilledExecutor,
    Once,
    Stage,
    Steps,
    Touched,
    WaitFor,
    with_mischief,
)
from spark.tables import SPARK_COLUMNS, frame, new_table, rows_of, some_rows
from table_reads import left_over

KEY = {"primary_keys": ["id"]}
KINDS = {
    "append": {},
    "partitioned": {"partition_keys": ["day"]},
    # A row that is written twice is counted twice.
    "sums": {
        **KEY,
        "bucket": "3",
        "merge_engine": "aggregation",
        "fields__price__aggregate_function": "sum",
    },
    "deletion vectors": {**KEY, "bucket": "2", "deletion_vectors__enabled": "true"},
    "dynamic buckets": {**KEY, "bucket": "-1"},
}
QUICK = ("sums",)  # the others take their time, and are no other than this
every_kind = pytest.mark.parametrize(
    "kind",
    [kind if kind in QUICK else pytest.param(kind, marks=pytest.mark.slow) for kind in KINDS],
)
every_happening = pytest.mark.parametrize(
    "happening",
    [
        pytest.param(Failed(), id="fails"),
        pytest.param(CrashedWorker(), id="crashes", marks=pytest.mark.slow),
    ],
)
OLD = some_rows(range(1000, 1010))
NEW = some_rows(range(200))


def table_with_old_rows(warehouse: Path, kind: str) -> Table:
    return reads.write(new_table(warehouse, **KINDS[kind]), range(1000, 1010))


def write(table: Table, df: DataFrame, happening: Happening) -> SparkWriteResult:
    """Write with several tasks, in which something happens as soon as a file is written."""
    builder = table.new_batch_write_builder()
    builder = replace(builder, store=with_mischief(table, happening))
    with builder.new_write() as opened:
        return opened.write_spark(df, concurrency=3)


def check_written_once(table: Table, result: SparkWriteResult) -> None:
    assert rows_of(table) == sorted(OLD + NEW)
    assert result.rows_added - result.rows_deleted == len(NEW)
    assert left_over(table) == set()


def check_as_before(table: Table) -> None:
    """The write has left nothing, and the next one works."""
    assert rows_of(table) == OLD
    assert left_over(table) == set()


@pytest.mark.slow
@every_kind
@every_happening
def test_a_task_that_goes_wrong_once_is_repeated(
    spark: SparkSession, tmp_path: Path, kind: str, happening: Happening
) -> None:
    table = table_with_old_rows(tmp_path, kind)
    happened = tmp_path / "happened"

    result = write(table, frame(spark, NEW), Once(happening, happened))

    assert happened.exists()
    check_written_once(table, result)


@every_kind
@every_happening
def test_a_task_that_always_goes_wrong_leaves_the_table_as_it_was(
    spark: SparkSession, tmp_path: Path, kind: str, happening: Happening
) -> None:
    table = table_with_old_rows(tmp_path, kind)

    with pytest.raises(Exception, match=r"went wrong in a task|crashed") as failure:
        write(table, frame(spark, NEW), happening)

    assert not isinstance(failure.value, EmberlakeError)
    check_as_before(table)
    check_written_once(table, write(table, frame(spark, NEW), lambda: None))


def test_an_error_of_emberlake_in_a_task_comes_out_as_what_it_is(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = table_with_old_rows(tmp_path, "append")

    def refuse() -> None:
        raise InvalidState("the table is not to be written today")

    with pytest.raises(InvalidState, match="not to be written today"):
        write(table, frame(spark, NEW), refuse)

    check_as_before(table)


@every_kind
def test_an_executor_that_is_killed_costs_no_row_and_brings_none_twice(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    table = table_with_old_rows(tmp_path, kind)
    happened = tmp_path / "happened"

    result = write(table, frame(spark, NEW), Once(KilledExecutor(), happened))

    assert happened.exists()
    check_written_once(table, result)


@pytest.mark.slow
@every_kind
def test_of_two_attempts_at_a_task_one_is_committed(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    """Spark starts a second attempt at a task that takes much longer than others."""
    table = table_with_old_rows(tmp_path, kind)
    has_file, goes_on = tmp_path / "has file", tmp_path / "goes on"
    slow = Once(WaitFor(goes_on), has_file)

    result = write(table, frame(spark, NEW), InFirstAttempts(slow))

    assert has_file.exists()
    check_written_once(table, result)
    goes_on.touch()
    check_stays(table)


@pytest.mark.slow
def test_a_task_that_outlives_its_job_leaves_no_file(spark: SparkSession, tmp_path: Path) -> None:
    table = table_with_old_rows(tmp_path, "append")
    started, goes_on = tmp_path / "started", tmp_path / "goes on"
    df = spark.createDataFrame(NEW, SPARK_COLUMNS).repartition(2)
    df = df.mapInArrow(Stage(Steps((WaitFor(started), Failed())), 0), SPARK_COLUMNS)
    df = df.mapInArrow(Stage(Steps((Touched(started), WaitFor(goes_on))), 1), SPARK_COLUMNS)

    with pytest.raises(Exception, match="went wrong in a task"):
        table.new_batch_write_builder().new_write().write_spark(df)

    check_as_before(table)
    goes_on.touch()
    check_stays(table)


def check_stays(table: Table, seconds: float = 2.0) -> None:
    """Nothing comes to the table's files any more."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert left_over(table) == set()
        time.sleep(0.1)

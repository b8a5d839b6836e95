"""Tasks and executors that fail while they change rows: nothing is lost, nothing comes twice."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from emberlake import EmberlakeError, Table
from emberlake.rowops.result import RowChangeResult
from emberlake.session.write_session import WriteSession
from emberlake.spark.merge_job import merge_on_spark
from emberlake.spark.row_changes import change_on_spark
from spark import reads
from spark.cases.test_row_operations import KINDS
from spark.mischief import CrashedWorker, Failed, Happening, KilledExecutor, Once, with_mischief
from spark.tables import Row, frame, new_table, reopened, rows_of, some_rows
from table_reads import left_over

pytestmark = pytest.mark.slow  # what tasks do with files is tried in every run by writes
every_kind = pytest.mark.parametrize("kind", KINDS)
SOURCE = some_rows(range(50, 70), name="new")


def table_with_rows(warehouse: Path, kind: str) -> Table:
    table = new_table(warehouse, **KINDS[kind])
    for number in range(3):
        table = reads.write(table, range(20 * number, 20 * number + 20))
    return table


def merged_rows() -> list[Row]:
    return some_rows(range(50)) + SOURCE


def session_with(table: Table, happening: Happening) -> WriteSession:
    builder = reopened(table).new_batch_write_builder()
    return WriteSession(with_mischief(reopened(table), happening), builder.commit_user)


def merge(spark: SparkSession, table: Table, happening: Happening) -> RowChangeResult:
    """Merge with tasks in which something happens as soon as a file is written."""
    builder = merge_on_spark(session_with(table, happening), frame(spark, SOURCE), ["id"])
    return builder.when_matched_update_all().when_not_matched_insert_all().execute()


def check_merged(table: Table, result: RowChangeResult) -> None:
    assert rows_of(table) == merged_rows()
    assert (result.rows_updated, result.rows_inserted) == (10, 10)
    assert left_over(reopened(table)) == set()


@every_kind
@pytest.mark.parametrize("happening", [Failed(), CrashedWorker()], ids=["fails", "crashes"])
def test_a_task_that_goes_wrong_once_is_repeated(
    spark: SparkSession, tmp_path: Path, kind: str, happening: Happening
) -> None:
    table = table_with_rows(tmp_path, kind)
    happened = tmp_path / "happened"

    result = merge(spark, table, Once(happening, happened))

    assert happened.exists()
    check_merged(table, result)


@every_kind
def test_a_task_that_always_goes_wrong_leaves_the_table_as_it_was(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    table = table_with_rows(tmp_path, kind)

    for change in (
        lambda: merge(spark, table, Failed()),
        lambda: change_on_spark(
            session_with(table, Failed()), spark, sql.col("id") < 30, {"name": sql.lit("x")}
        ),
    ):
        with pytest.raises(Exception, match="went wrong in a task") as failure:
            change()
        assert not isinstance(failure.value, EmberlakeError)
        assert rows_of(table) == some_rows(range(60))
        assert left_over(reopened(table)) == set()
    check_merged(table, merge(spark, table, lambda: None))


@every_kind
def test_an_executor_that_is_killed_costs_no_row_and_brings_none_twice(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    table = table_with_rows(tmp_path, kind)
    happened = tmp_path / "happened"

    result = merge(spark, table, Once(KilledExecutor(), happened))

    assert happened.exists()
    check_merged(table, result)

"""Splits for Python workers: Spark knows how much comes out of them, and loses none."""

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from emberlake import Table
from emberlake.options import TableOptions
from emberlake.spark.read import read_dataframe
from emberlake.spark.split_frames import bytes_of, frame_of_splits
from spark.reads import local_rows, planned, spark_rows, write
from spark.tables import new_table

GIB = 1024**3


def expected_bytes(df: DataFrame) -> int:
    """The size that Spark expects, by which it chooses its joins."""
    return int(df._jdf.queryExecution().optimizedPlan().stats().sizeInBytes())


@pytest.fixture
def merged(tmp_path: Path) -> Table:
    """A table whose rows only Python workers can read."""
    table = write(new_table(tmp_path, primary_keys=["id"], bucket="2", write_only="true"))
    return write(table, range(5), name="second")


@pytest.mark.parametrize("output_bytes", [1024**2, 9 * 1024**2, GIB])
def test_spark_expects_what_tasks_return(
    spark: SparkSession, merged: Table, output_bytes: int
) -> None:
    _, splits = planned(merged)

    frame, _ = frame_of_splits(spark, splits, TableOptions({}), output_bytes=output_bytes)

    assert expected_bytes(frame) == pytest.approx(output_bytes, rel=0.1)
    assert [row.partition for row in frame.collect()] == list(range(frame.rdd.getNumPartitions()))


def test_no_estimate_keeps_spark_counting(spark: SparkSession, merged: Table) -> None:
    _, splits = planned(merged)

    frame, _ = frame_of_splits(spark, splits, TableOptions({}), output_bytes=240 * GIB)

    assert expected_bytes(frame) > GIB
    assert frame.count() == len(splits)


def test_splits_get_to_their_partitions_without_a_shuffle(
    spark: SparkSession, merged: Table
) -> None:
    frame = read_dataframe(*planned(merged), spark)

    assert "Exchange" not in frame._jdf.queryExecution().executedPlan().toString()


def test_a_merged_read_is_as_large_for_spark_as_the_columns_of_its_files(
    spark: SparkSession, merged: Table, monkeypatch: pytest.MonkeyPatch
) -> None:

    every, ids = (
        read_dataframe(reader, splits, spark)
        for reader, splits in (planned(merged), planned(merged, columns=["id"]))
    )

    size = bytes_of(planned(merged)[1])
    assert expected_bytes(every) == pytest.approx(size, rel=0.1)
    assert expected_bytes(ids) == pytest.approx(size / 4, rel=0.1)
    assert spark_rows(every) == local_rows(merged)


def test_a_large_merged_read_is_not_broadcast(
    spark: SparkSession, merged: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("emberlake.spark.read.bytes_of", lambda _: 20 * GIB)
    large = read_dataframe(*planned(merged), spark)

    joined = large.alias("l").join(large.alias("r"), "id")

    assert "BroadcastHashJoin" not in joined._jdf.queryExecution().executedPlan().toString()
    assert joined.count() == large.count()

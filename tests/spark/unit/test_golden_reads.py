"""Every golden table as a DataFrame, read by Spark where it can, and by workers alone."""

import pytest
from pyspark.sql import SparkSession

from canonical import canonical_rows, sorted_rows
from emberlake import CatalogFactory
from golden.reads import Golden, GoldenRead, golden_reads
from spark.reads import local_rows


@pytest.mark.slow
@pytest.mark.parametrize("read", golden_reads(), ids=str)
def test_a_golden_table_is_read_row_for_row(
    spark: SparkSession, golden: Golden, read: GoldenRead
) -> None:
    options = dict(read.options)
    branch = options.pop("branch", None)
    name = f"golden.{read.table}" + (f"$branch_{branch}" if branch else "")
    table = CatalogFactory.create({"warehouse": golden.warehouse}).get_table(name).copy(options)
    builder = table.new_read_builder()
    splits = builder.new_scan().plan().splits()
    expected = sorted_rows(local_rows(table), unordered=read.unordered)

    for num_partitions in (None, 2):
        df = builder.new_read().to_spark(splits, spark, num_partitions)

        assert df.columns == list(read.columns)
        assert sorted_rows(canonical_rows(df.toArrow()), unordered=read.unordered) == expected

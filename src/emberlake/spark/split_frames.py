"""Splits for tasks that read them in Python workers: a DataFrame with a row for each partition."""

from collections.abc import Sequence
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from emberlake.options import TableOptions
from emberlake.scan.splits import DataSplit
from emberlake.spark.dealt_splits import PARTITION, DealtSplits
from emberlake.spark.packing import pack_partitions, spread_partitions, weight_of

_ID: Final = "id"
# What Spark takes for the size of a row that has a number and an empty column for bytes, for each
# number that ``range`` counts: 8 bytes times 116 / 16.
_BYTES_PER_NUMBER: Final = 58
_MOST_PER_PARTITION: Final = 10_000_000  # numbers; counting these takes Spark some 10 ms


def frame_of_splits(
    spark: SparkSession,
    splits: Sequence[DataSplit],
    options: TableOptions,
    *,
    num_partitions: int | None = None,
    output_bytes: int = 0,
) -> tuple[DataFrame, DealtSplits]:
    """A row for each partition, and the splits that the tasks find by these rows.

    Args:
        spark: The session.
        splits: At least one.
        options: Those of the table: they say how much one partition reads.
        num_partitions: The number of partitions, instead.
        output_bytes: About how many bytes the tasks return. Spark must know this if their output
            takes part in joins.
    """
    weights = [weight_of(split, options) for split in splits]
    if num_partitions is None:
        places = pack_partitions(weights, options)
    else:
        places = spread_partitions(weights, num_partitions)
    count = num_partitions or places[-1] + 1
    return _numbers(spark, count, output_bytes), DealtSplits.of(splits, places)


def bytes_of(splits: Sequence[DataSplit]) -> int:
    """The bytes of the files of splits."""
    states = [state for split in splits for state in (split, split.before) if state is not None]
    return sum(state.file_size for state in states)


def _numbers(spark: SparkSession, count: int, size: int) -> DataFrame:
    """The numbers of partitions, each in its own; Spark expects tasks to return this many bytes.

    Spark takes the output of a Python task to be as large as its input, and numbers are small. It
    would broadcast tables of any size in joins, until memory runs out. So it gets a range of many
    more numbers, of which a filter keeps one in each partition. Spark cannot know how many a filter
    keeps.
    """
    each = min(_MOST_PER_PARTITION, max(1, size // (count * _BYTES_PER_NUMBER)))
    numbers = spark.range(0, count * each, 1, count)
    if each > 1:
        numbers = numbers.where(f"{_ID} % {each} = 0")
    empty = sql.lit(None).cast("binary").alias("empty")
    return numbers.select(sql.expr(f"{_ID} div {each}").alias(PARTITION), empty)

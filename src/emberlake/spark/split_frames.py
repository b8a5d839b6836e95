"""Splits as a DataFrame, one row for each, for tasks that read them in Python workers."""

from collections.abc import Sequence
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from emberlake.options import TableOptions
from emberlake.predicates import Predicate
from emberlake.scan.splits import DataSplit
from emberlake.spark.packing import pack_partitions, spread_partitions, weight_of
from emberlake.spark.read_task import PARTITION, SPLIT, split_table

_MIB: Final = 1024 * 1024
_SMALL_BYTES: Final = 8 * _MIB  # Spark broadcasts up to 10 MB, unless it is configured otherwise
_ROW_BYTES: Final = 116  # what Spark takes for the size of a row of a split
_MOST_ROWS: Final = (1 << 31) - 1  # Spark counts the rows of a limit in 32 bits


def frame_of_splits(
    spark: SparkSession,
    splits: Sequence[DataSplit],
    options: TableOptions,
    *,
    num_partitions: int | None = None,
    output_bytes: int = 0,
) -> tuple[DataFrame, tuple[Predicate | None, ...]]:
    """A row for each split, in the partition that reads it, and the predicates of the splits.

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
    work, predicates = split_table(splits, places)
    frame = _sized(spark.createDataFrame(work), len(splits), output_bytes)
    return frame.repartitionById(num_partitions or places[-1] + 1, sql.col(PARTITION)), predicates


def bytes_of(splits: Sequence[DataSplit]) -> int:
    """The bytes of the files of splits."""
    states = [state for split in splits for state in (split, split.before) if state is not None]
    return sum(state.file_size for state in states)


def _sized(frame: DataFrame, rows: int, size: int) -> DataFrame:
    """The same rows, but Spark expects that tasks return this many bytes for them.

    Spark takes the output of a Python task to be as large as its input. For splits, that is a few
    bytes, so it would broadcast tables of any size in joins. It believes in a limit, though, if it
    does not know that there are fewer rows. An ``explode`` hides that from it.
    """
    if size <= _SMALL_BYTES:
        return frame
    others = [name for name in frame.columns if name != SPLIT]
    hidden = frame.select(*others, sql.explode(sql.array(SPLIT)).alias(SPLIT))
    # A limit on one partition needs no shuffle.
    return hidden.coalesce(1).limit(min(max(rows, size // _ROW_BYTES), _MOST_ROWS))

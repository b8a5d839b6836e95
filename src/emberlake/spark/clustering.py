"""Which task gets which row of a write.

A bucket belongs to one task, so that its files are few and sorted, and so that a key has its rows
in one place, in order. Tables without buckets need no shuffle, unless they have partitions, of
which every task would write a small file otherwise.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import lit, pmod

from emberlake.merge.plan import hides_level_0
from emberlake.options import BUCKET, DYNAMIC_BUCKET_MAX, POSTPONE_BUCKET, UNAWARE_BUCKET
from emberlake.spark.bucketing import (
    ColumnOf,
    bucket_column,
    by_name,
    key_hash_column,
    missing_column,
    partition_hash_column,
)
from emberlake.spec.schema import TableSchema

# Every assigner opens buckets of its own, so that more of them make more, smaller buckets.
_ASSIGNERS: Final = 8


class Rows(Enum):
    """What keeps rows together."""

    ANYWHERE = auto()  # they stay where they are
    BY_PARTITION = auto()  # a partition has a few tasks, by its size
    BY_BUCKET = auto()  # a bucket has one task
    BY_KEY = auto()  # a key has one task
    BY_WHOLE_PARTITION = auto()  # a partition has one task


@dataclass(frozen=True, slots=True)
class Clustering:
    """What keeps rows together, and the number of tasks; None: as many as Spark finds right."""

    rows: Rows
    tasks: int | None


def plan_clustering(schema: TableSchema, concurrency: int | None = None) -> Clustering:
    """How the rows of a write to a table are spread over tasks."""
    buckets = schema.options.value(BUCKET)
    is_partitioned = bool(schema.partition_keys)
    if buckets > 0:
        if is_partitioned:
            return Clustering(Rows.BY_BUCKET, concurrency)
        return Clustering(Rows.BY_BUCKET, min(buckets, concurrency or buckets))
    if not schema.primary_keys:
        rows = Rows.BY_PARTITION if is_partitioned else Rows.ANYWHERE
        return Clustering(rows, concurrency)
    if buckets == POSTPONE_BUCKET:
        return Clustering(Rows.BY_KEY, concurrency)
    assert buckets == UNAWARE_BUCKET
    if hides_level_0(schema.options):
        # The bucket of a key is found in an index, not computed: keys of several tasks can be in
        # one bucket, which only one of them may compact before the commit.
        return Clustering(Rows.BY_WHOLE_PARTITION, concurrency if is_partitioned else 1)
    assigners = concurrency or _ASSIGNERS
    most = schema.options.value(DYNAMIC_BUCKET_MAX)
    return Clustering(Rows.BY_KEY, min(assigners, most) if most > 0 else assigners)


def cluster(df: DataFrame, schema: TableSchema, clustering: Clustering) -> DataFrame:
    """The DataFrame with its rows where they belong, and its columns numbered instead of named.

    To Spark names that differ in case only are one, and others are expressions; numbers are not.
    """
    numbers = {name: str(number) for number, name in enumerate(df.columns)}
    numbered = df.toDF(*numbers.values())

    def column_of(name: str) -> Column:
        number = numbers.get(name)
        return missing_column(schema.field_by_name[name]) if number is None else by_name(number)

    partitions = [column_of(name) for name in schema.partition_keys if name in numbers]
    return _clustered(numbered, schema, clustering, partitions, column_of)


def _clustered(
    df: DataFrame,
    schema: TableSchema,
    clustering: Clustering,
    partitions: Sequence[Column],
    column_of: ColumnOf,
) -> DataFrame:
    tasks = clustering.tasks
    match clustering.rows:
        case Rows.ANYWHERE:
            return df if tasks is None else df.repartition(tasks)
        case Rows.BY_PARTITION:
            # Spark's adaptive execution splits large partitions and puts small ones together.
            return df.hint("rebalance", *([tasks] if tasks else []), *partitions)
        case Rows.BY_BUCKET:
            number = bucket_column(schema, column_of)
        case Rows.BY_KEY:
            number = key_hash_column(schema, column_of)
        case Rows.BY_WHOLE_PARTITION:
            if not partitions:
                return df.repartition(1)
            return df.repartition(tasks, *partitions) if tasks else df.repartition(*partitions)
    if tasks is None:
        return df.repartition(*partitions, number)
    if schema.partition_keys:
        number = partition_hash_column(schema, column_of).cast("bigint") + number
    # Buckets are numbered from 0, so that taking the number as it is uses every task.
    return df.repartitionById(tasks, pmod(number, lit(tasks)).cast("int"))

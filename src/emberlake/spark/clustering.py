"""Decides which task gets which row of a write.

A bucket belongs to one task, so that its files are few and sorted, and so that all rows of a key
are in one place, in order. Tables without buckets need no shuffle, unless they have partitions:
otherwise every task would write a small file to every partition.

If the user gives a number of tasks, exactly this many run: Spark's adaptive execution changes how
many partitions a shuffle has, but not if the shuffle itself has a number.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import col, lit, pmod, spark_partition_id
from pyspark.sql.functions import hash as hash_of

from emberlake.options import DYNAMIC_BUCKET_MAX
from emberlake.session.compact_written import compacts_batches
from emberlake.spark.bucketing import (
    ColumnOf,
    bucket_column,
    by_name,
    key_hash_column,
    missing_column,
    partition_hash_column,
    whole_key_hash_column,
)
from emberlake.spec.profile import BucketMode
from emberlake.spec.schema import TableSchema

# Every assigner opens its own buckets, so more assigners make more and smaller buckets.
_ASSIGNERS: Final = 8

LIVE_PLACE: Final = "place"  # the number of the place of a key; names of columns are numbers
_OWNER: Final = "owner"


class Rows(Enum):
    """What keeps rows together."""

    ANYWHERE = auto()  # they stay where they are
    BY_PARTITION = auto()  # a partition has a few tasks, by its size
    BY_BUCKET = auto()  # a bucket has one task
    BY_KEY = auto()  # a key of a partition has one task
    BY_WHOLE_KEY = auto()  # a key has one task, whatever the partitions of its rows
    BY_WHOLE_PARTITION = auto()  # a partition has one task


_ASSIGNING: Final = frozenset({Rows.BY_KEY, Rows.BY_WHOLE_KEY})


@dataclass(frozen=True, slots=True)
class Clustering:
    """What keeps rows together, and the number of tasks; with None, Spark decides."""

    rows: Rows
    tasks: int | None
    owners: int | None = None  # how many of the tasks get rows, if not all of them do

    @property
    def assigners(self) -> int:
        """How many tasks assign dynamic buckets, each numbered like its partition."""
        return (self.owners or self.tasks or 1) if self.rows in _ASSIGNING else 1

    @property
    def shares_partitions(self) -> bool:
        """Whether several tasks should share a large partition."""
        return self.rows is Rows.BY_PARTITION and (self.tasks or 1) > 1


def plan_clustering(schema: TableSchema, concurrency: int | None = None) -> Clustering:
    """How the rows of a write are distributed over tasks."""
    profile = schema.profile
    match profile.bucket_mode:
        case BucketMode.FIXED:
            tasks = concurrency if profile.is_partitioned else concurrency or profile.bucket_count
            return Clustering(Rows.BY_BUCKET, tasks)
        case BucketMode.UNAWARE:
            rows = Rows.BY_PARTITION if profile.is_partitioned else Rows.ANYWHERE
            return Clustering(rows, concurrency)
        case BucketMode.POSTPONED:
            return Clustering(Rows.BY_KEY, concurrency)
        case BucketMode.DYNAMIC if compacts_batches(schema):
            # The bucket of a key is found in an index, not computed: keys of several tasks can be
            # in one bucket, which only one of them may compact before the commit.
            tasks = concurrency if profile.is_partitioned else concurrency or 1
            return Clustering(Rows.BY_WHOLE_PARTITION, tasks)
        case BucketMode.DYNAMIC:
            return _by_key(schema, concurrency, Rows.BY_KEY)
        case BucketMode.CROSS_PARTITION if compacts_batches(schema):
            # Any row may belong to any bucket, which only one task may compact before the commit.
            return Clustering(Rows.BY_WHOLE_KEY, concurrency or 1, owners=1)
        case BucketMode.CROSS_PARTITION:
            return _by_key(schema, concurrency, Rows.BY_WHOLE_KEY)


def _by_key(schema: TableSchema, concurrency: int | None, rows: Rows) -> Clustering:
    """Every task opens buckets for its new keys."""
    tasks = concurrency or _ASSIGNERS
    most = schema.options.value(DYNAMIC_BUCKET_MAX)
    owners = min(tasks, most) if most > 0 else tasks
    return Clustering(rows, concurrency or owners, owners)


@dataclass(frozen=True)
class Numbered:
    """A DataFrame that fits a table, with its columns numbered instead of named.

    Spark treats names that differ only in case as one, and some names as expressions; numbers are
    safe.
    """

    frame: DataFrame
    schema: TableSchema
    numbers: Mapping[str, str]  # by name

    @classmethod
    def over(cls, df: DataFrame, schema: TableSchema) -> "Numbered":
        """The same rows."""
        numbers = {name: str(number) for number, name in enumerate(df.columns)}
        return cls(df.toDF(*numbers.values()), schema, numbers)

    def of(self, frame: DataFrame) -> "Numbered":
        """Other rows with the same columns."""
        return replace(self, frame=frame)

    def column_of(self, name: str) -> Column:
        """The values of a column of the table, also of one that is left out."""
        number = self.numbers.get(name)
        field = self.schema.field_by_name[name]
        return missing_column(field) if number is None else by_name(number)


def cluster(rows: Numbered, clustering: Clustering, live: DataFrame | None = None) -> DataFrame:
    """The DataFrame with its rows in the right tasks.

    Args:
        rows: What is to be written.
        clustering: What keeps rows together.
        live: Keys of the table that go to where their rows go: ``k0``, ``k1`` and so on, and
            ``LIVE_PLACE``, which is null for rows.
    """
    numbered, schema, numbers = rows.frame, rows.schema, rows.numbers
    column_of = rows.column_of
    if clustering.rows is Rows.BY_WHOLE_KEY:
        return _by_whole_key(rows, clustering, live)
    partitions = [column_of(name) for name in schema.partition_keys if name in numbers]
    tasks = clustering.tasks
    if clustering.rows is Rows.ANYWHERE:
        return numbered if tasks is None else numbered.repartition(tasks)
    if clustering.rows is Rows.BY_PARTITION:
        return _balanced(numbered, partitions, tasks)
    owner = _owner(clustering.rows, schema, column_of)
    if tasks is None and clustering.rows is Rows.BY_WHOLE_PARTITION:
        return numbered.repartition(*partitions) if partitions else numbered.repartition(1)
    if tasks is None:
        return numbered.repartition(*partitions, owner)
    if not any(name in numbers for name in _owner_columns(clustering.rows, schema)):
        # Spark turns a shuffle by a constant into one task; this is 0, but not a constant.
        owner = owner + pmod(spark_partition_id(), lit(1))
    # Buckets are numbered from 0, so using the number directly gives every task a bucket.
    place = pmod(owner, lit(clustering.owners or tasks)).cast("int")
    return numbered.repartitionById(tasks, place)


def _by_whole_key(rows: Numbered, clustering: Clustering, live: DataFrame | None) -> DataFrame:
    """Rows and keys of the table, in the tasks that own their keys."""
    tasks = clustering.tasks or 1
    owners = lit(clustering.owners or tasks)
    hashes = whole_key_hash_column(rows.schema, rows.column_of)
    # Spark turns a shuffle by a constant into one task; this is 0, but not a constant.
    hashes = hashes + pmod(spark_partition_id(), lit(1))
    both = rows.frame.withColumn(_OWNER, pmod(hashes, owners).cast("int"))
    if live is not None:
        keys = [col(f"k{number}") for number in range(len(rows.schema.primary_keys))]
        owned = live.withColumn(_OWNER, pmod(hash_of(*keys), owners).cast("int"))
        both = both.unionByName(owned, allowMissingColumns=True)
        order = [*rows.frame.columns, *live.columns, _OWNER]
        both = both.select(*(by_name(name) for name in order))
    return both.repartitionById(tasks, col(_OWNER)).drop(_OWNER)


def _balanced(df: DataFrame, partitions: Sequence[Column], tasks: int | None) -> DataFrame:
    """Let Spark's adaptive execution split large partitions and combine small ones.

    Spark chooses the number of pieces by size. If the number of tasks is given, the pieces are
    distributed over these tasks, with those of one partition one after the other. This takes a
    second shuffle, which does not look at the rows again. It adds a third to the cost of a write,
    but makes only a file or two per partition; distributing the rows would make one for every task.
    """
    if tasks == 1:
        return df.repartition(1)
    pieces = df.hint("rebalance", *partitions)
    return pieces if tasks is None else pieces.repartitionById(tasks, spark_partition_id() % tasks)


def _owner(rows: Rows, schema: TableSchema, column_of: ColumnOf) -> Column:
    """A number for each row; rows with the same number go to the same task."""
    partition = partition_hash_column(schema, column_of) if schema.partition_keys else lit(0)
    match rows:
        case Rows.BY_BUCKET:
            number = bucket_column(schema, column_of)
        case Rows.BY_KEY:
            number = key_hash_column(schema, column_of)
        case _:
            return partition
    return partition.cast("bigint") + number if schema.partition_keys else number


def _owner_columns(rows: Rows, schema: TableSchema) -> tuple[str, ...]:
    """The columns that determine the number."""
    match rows:
        case Rows.BY_BUCKET:
            return (*schema.partition_keys, *schema.bucket_keys)
        case Rows.BY_KEY:
            return (*schema.partition_keys, *schema.trimmed_primary_keys)
        case _:
            return tuple(schema.partition_keys)

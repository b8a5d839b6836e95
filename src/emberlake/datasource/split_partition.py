"""Packs splits into partitions of a Spark scan, and reads them in a task."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from emberlake.base.parallel import limit_threads
from emberlake.datasource.columns import Columns
from emberlake.options import TableOptions
from emberlake.predicates import Predicate, RowRules
from emberlake.read.table_reader import TableReader
from emberlake.scan.split_form import split_from_bytes, split_to_bytes
from emberlake.scan.splits import DataSplit
from emberlake.spark.packing import pack_partitions, weight_of
from emberlake.spark.planned import read_planned
from emberlake.store.table_store import TableStore


@dataclass(frozen=True)
class SplitPartition(InputPartition):
    """What one task reads: splits in their byte form, one after the other.

    ``rules`` are those of a micro-batch: tasks get the reader as it was before that was planned.
    """

    splits: tuple[bytes, ...]
    rules: RowRules | None = None

    @classmethod
    def of(cls, splits: Sequence[DataSplit]) -> "SplitPartition":
        """The partition that reads these splits."""
        return cls(tuple(split_to_bytes(split) for split in splits))


def pack_splits(splits: Sequence[DataSplit], options: TableOptions) -> list[SplitPartition]:
    """Pack splits into partitions by weight, in order."""
    places = iter(pack_partitions([weight_of(split, options) for split in splits], options))
    packed = groupby(splits, key=lambda _: next(places))
    return [SplitPartition.of(list(group)) for _, group in packed]


def read_partition(
    store: TableStore,
    columns: Columns,
    predicate: Predicate | None,
    partition: InputPartition,
    planned: Predicate | None,
) -> Iterator[pa.RecordBatch]:
    """The rows of a partition, in bounded memory; none for the one Spark adds to an empty plan.

    ``planned`` is what its splits were planned with.
    """
    limit_threads()
    if not isinstance(partition, SplitPartition):
        return
    if partition.rules is not None:
        store = store.under(partition.rules)
    reader = TableReader(store, columns.projection, predicate, with_kind=columns.with_kind)
    splits = (split_from_bytes(raw, planned) for raw in partition.splits)
    for batch in read_planned(reader, splits):
        yield columns.to_spark(batch)

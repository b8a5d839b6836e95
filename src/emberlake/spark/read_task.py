"""The part of a read that one Spark task does: it gets splits in byte form and returns rows."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from emberlake.base.parallel import limit_threads
from emberlake.predicates import Predicate
from emberlake.read.table_reader import TableReader
from emberlake.scan.split_form import split_from_bytes, split_to_bytes
from emberlake.scan.splits import DataSplit
from emberlake.spark.failures import reported_errors
from emberlake.spark.planned import read_planned
from emberlake.spark.types import to_spark_batch

PARTITION: Final = "partition"
_PLAN: Final = "plan"
SPLIT: Final = "split"
# One row per split: the partition that reads it, the number of the predicate that it was planned
# with, and its byte form.
SPLIT_SCHEMA: Final = pa.schema(
    [
        pa.field(PARTITION, pa.int32(), nullable=False),
        pa.field(_PLAN, pa.int32(), nullable=False),
        pa.field(SPLIT, pa.binary(), nullable=False),
    ]
)


@dataclass(frozen=True, slots=True)
class DealtSplits:
    """Splits, each dealt to one partition of a DataFrame.

    They travel inside the function of a task, not as rows. Rows would take a shuffle to get to
    their partitions. Spark measures what goes through a shuffle, takes what tasks make of it to be
    as small, and broadcasts that in joins.

    Args:
        table: What ``split_table`` makes of them. Every task gets the whole table, but decodes only
            the splits of its own partitions.
        predicates: Those that the splits were planned with.
    """

    table: pa.Table
    predicates: tuple[Predicate | None, ...]

    def numbered(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, DataSplit]]:
        """The splits of the partitions that batches name, and where each is among all splits."""
        for batch in batches:
            for partition in batch.column(PARTITION):
                mine = pc.equal(self.table.column(PARTITION), partition)
                numbers = pc.indices_nonzero(mine).to_pylist()
                rows = self.table.filter(mine).to_batches()
                yield from zip(numbers, splits_in(rows, self.predicates), strict=True)

    def splits(self, batches: Iterable[pa.RecordBatch]) -> Iterator[DataSplit]:
        """The splits of the partitions that batches name."""
        return (split for _, split in self.numbered(batches))


NO_SPLITS: Final = DealtSplits(SPLIT_SCHEMA.empty_table(), ())


@dataclass(frozen=True, slots=True)
class ReadTask:
    """Reads the splits of one task, in order and in bounded memory."""

    reader: TableReader
    schema: pa.Schema  # of the rows, as Spark expects them
    dealt: DealtSplits

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of the splits of the partitions that the batches name."""
        limit_threads()
        with reported_errors():
            for batch in read_planned(self.reader, self.dealt.splits(batches)):
                yield to_spark_batch(batch, self.schema)


def split_table(
    splits: Sequence[DataSplit], places: Sequence[int]
) -> tuple[pa.Table, tuple[Predicate | None, ...]]:
    """A row for each split, with the partition that gets it, and the predicates of all splits."""
    predicates: list[Predicate | None] = []
    for split in splits:
        if split.predicate not in predicates:
            predicates.append(split.predicate)
    plans = [predicates.index(split.predicate) for split in splits]
    forms = [split_to_bytes(split) for split in splits]
    return pa.table([places, plans, forms], schema=SPLIT_SCHEMA), tuple(predicates)


def splits_in(
    batches: Iterable[pa.RecordBatch], predicates: Sequence[Predicate | None]
) -> Iterator[DataSplit]:
    """The splits of rows that ``split_table`` made."""
    for batch in batches:
        plans = batch.column(_PLAN).to_pylist()
        for plan, raw in zip(plans, batch.column(SPLIT), strict=True):
            yield split_from_bytes(raw.as_py(), predicates[plan])

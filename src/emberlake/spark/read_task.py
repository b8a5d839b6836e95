"""The part of a read that one Spark task does: it gets splits in byte form and returns rows."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from emberlake.base.parallel import limit_threads
from emberlake.predicates import Predicate
from emberlake.read.table_reader import TableReader
from emberlake.scan.split_form import split_from_bytes
from emberlake.scan.splits import DataSplit
from emberlake.spark.failures import reported_errors
from emberlake.spark.planned import read_planned
from emberlake.spark.types import to_spark_batch

PARTITION: Final = "partition"
_PLAN: Final = "plan"
_SPLIT: Final = "split"
# One row per split: the partition that reads it, the number of the predicate that it was planned
# with, and its byte form.
SPLIT_SCHEMA: Final = pa.schema(
    [
        pa.field(PARTITION, pa.int32(), nullable=False),
        pa.field(_PLAN, pa.int32(), nullable=False),
        pa.field(_SPLIT, pa.binary(), nullable=False),
    ]
)


@dataclass(frozen=True, slots=True)
class ReadTask:
    """Reads the splits of one task, in order and in bounded memory."""

    reader: TableReader
    schema: pa.Schema  # of the rows, as Spark expects them
    predicates: tuple[Predicate | None, ...]  # those that the splits were planned with

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of the splits that the batches name."""
        limit_threads()
        with reported_errors():
            for batch in read_planned(self.reader, self._splits(batches)):
                yield to_spark_batch(batch, self.schema)

    def _splits(self, batches: Iterator[pa.RecordBatch]) -> Iterator[DataSplit]:
        for batch in batches:
            plans = batch.column(_PLAN).to_pylist()
            for plan, raw in zip(plans, batch.column(_SPLIT), strict=True):
                yield split_from_bytes(raw.as_py(), self.predicates[plan])

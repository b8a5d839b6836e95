"""The part of a read that one Spark task does: it gets splits in byte form and returns rows."""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from emberlake.base.parallel import limit_threads
from emberlake.read.table_reader import TableReader
from emberlake.spark.dealt_splits import DealtSplits
from emberlake.spark.failures import reported_errors
from emberlake.spark.planned import read_planned
from emberlake.spark.types import to_spark_batch


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

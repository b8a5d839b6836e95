"""Merges whose source has few enough keys to be sent everywhere: each task joins its own files.

Only the columns that decide are collected from the source: keys, and columns of conditions. Tasks
read the same columns from files and match both as a merge without Spark does, so no row of the
table goes through the JVM. The result is pairs: the place of a row in the table, and the number of
a row in the source.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import IntegerType, LongType, StructField, StructType

from emberlake.base.parallel import limit_threads
from emberlake.predicates import Predicate
from emberlake.rowops.locate import split_reads
from emberlake.rowops.merge import Merge, located_pairs
from emberlake.rowops.merge_plan import MergePlan
from emberlake.scan.splits import DataSplit
from emberlake.spark.dealt_splits import DealtSplits
from emberlake.spark.failures import reported_errors
from emberlake.spark.located import POSITION
from emberlake.spark.merge_tasks import CLAUSE, ID, handed
from emberlake.spark.owner_task import UNIT
from emberlake.spark.planned import planned_files
from emberlake.spark.split_frames import frame_of_splits
from emberlake.spec.column_buffers import I64
from emberlake.store.table_store import TableStore

PAIRS: Final = StructType(
    [
        StructField(UNIT, IntegerType()),
        StructField(POSITION, LongType()),
        StructField(ID, LongType()),
        StructField(CLAUSE, IntegerType()),
    ]
)


@dataclass(frozen=True)
class SmallSource:
    """The columns of a source that decide, in memory.

    Args:
        token: Tells sources apart.
        plan: What is to be done.
        rows: The columns that decide, of the rows that can match.
        ids: The numbers of these rows.
        now_ms: The current time, the same for all rows.
    """

    token: str
    plan: MergePlan = field(compare=False, repr=False)
    rows: pa.Table = field(compare=False, repr=False)
    ids: I64 = field(compare=False, repr=False)
    now_ms: int = field(compare=False)

    @property
    def merge(self) -> Merge:
        """The merge of these rows; its index is made once per process."""
        return _merge_of(self)


@lru_cache(maxsize=1)
def _merge_of(source: SmallSource) -> Merge:
    return Merge(source.plan, source.rows, source.now_ms)


@dataclass(frozen=True)
class UnitTask(ABC):
    """Does something with each of one task's units and the source.

    Args:
        store: The table.
        source: The rows of the source.
        predicate: Only rows of the table that match it.
        columns: The columns of the table that decide.
        dealt: The units, once they are dealt to partitions.
    """

    store: TableStore
    source: SmallSource
    predicate: Predicate | None
    columns: tuple[str, ...]
    dealt: DealtSplits = field(default=DealtSplits(), kw_only=True)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The results of the units of the partitions that the batches name."""
        limit_threads()
        with reported_errors(), self.store.decoding_rows():
            for number, unit in self.dealt.numbered(batches):
                with planned_files(self.store, unit.snapshot_id):
                    yield from self._results(number, unit)

    @abstractmethod
    def _results(self, number: int, unit: DataSplit) -> Iterator[pa.RecordBatch]:
        """The results of one unit."""


def over_units(
    spark: SparkSession, units: Sequence[DataSplit], task: UnitTask, shape: StructType
) -> DataFrame:
    """The results of a task for units, whose rows it reads by itself."""
    if not units:
        return spark.createDataFrame([], shape)
    frame, dealt = frame_of_splits(spark, units, task.store.options)
    return frame.mapInArrow(replace(task, dealt=dealt), shape)


@dataclass(frozen=True)
class FindTask(UnitTask):
    """Finds the pairs of one task's units that match, in the form of ``PAIRS``."""

    def _results(self, number: int, unit: DataSplit) -> Iterator[pa.RecordBatch]:
        merge = self.source.merge
        for placed in split_reads(self.store, [unit], self.predicate, self.columns):
            for positions, found in located_pairs(merge, placed):
                columns = [
                    pa.array(np.full(len(found.places), number, np.int32)),
                    pa.array(positions[found.places]),
                    pa.array(self.source.ids[found.matches]),
                    pa.array(found.clauses.astype(np.int32)),
                ]
                yield from handed(columns, PAIRS)

"""Splits on their way to the tasks that read them: in byte form, each for one partition.

They travel inside the function of a task, not as rows. Rows would take a shuffle to get to their
partitions. Spark measures what goes through a shuffle, takes what tasks make of it to be as small,
and broadcasts that in joins. The function is the same for all tasks, so each of them gets all
splits. They are compressed in blocks, and a task opens only the block of its partition.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from emberlake.base.option_texts import MEBIBYTE
from emberlake.predicates import Predicate
from emberlake.scan.split_form import split_from_bytes, split_to_bytes
from emberlake.scan.splits import DataSplit

PARTITION: Final = "partition"  # the number of the partition that reads a split
SPLIT: Final = "split"
_PLAN: Final = "plan"
# One row per split: the number of the predicate that it was planned with, and its byte form.
_SCHEMA: Final = pa.schema(
    [pa.field(_PLAN, pa.int32(), nullable=False), pa.field(SPLIT, pa.binary(), nullable=False)]
)
_PARTITION_FIELD: Final = pa.field(PARTITION, pa.int32(), nullable=False)
_BLOCK_BYTES: Final = MEBIBYTE  # before they are compressed


def split_table(
    splits: Sequence[DataSplit],
) -> tuple[pa.Table, tuple[Predicate | None, ...]]:
    """A row for each split, and the predicates of all splits."""
    predicates: list[Predicate | None] = []
    for split in splits:
        if split.predicate not in predicates:
            predicates.append(split.predicate)
    plans = [predicates.index(split.predicate) for split in splits]
    forms = [split_to_bytes(split) for split in splits]
    return pa.table([plans, forms], schema=_SCHEMA), tuple(predicates)


def splits_in(
    batches: Iterable[pa.RecordBatch], predicates: Sequence[Predicate | None]
) -> Iterator[DataSplit]:
    """The splits of rows that ``split_table`` made."""
    for batch in batches:
        plans = batch.column(_PLAN).to_pylist()
        for plan, raw in zip(plans, batch.column(SPLIT), strict=True):
            yield split_from_bytes(raw.as_py(), predicates[plan])


@dataclass(frozen=True, slots=True)
class DealtSplits:
    """Splits, each dealt to one partition of a DataFrame.

    Args:
        blocks: The splits, compressed.
        predicates: Those that the splits were planned with.
    """

    blocks: tuple["_Block", ...] = ()
    predicates: tuple[Predicate | None, ...] = ()

    @classmethod
    def of(cls, splits: Sequence[DataSplit], places: Sequence[int]) -> "DealtSplits":
        """Splits with the partition of each; partitions are in order."""
        table, predicates = split_table(splits)
        partitions = np.array(places, np.int32)
        table = table.append_column(_PARTITION_FIELD, pa.array(partitions))
        sizes = pc.binary_length(table.column(SPLIT)).to_numpy()
        before = np.cumsum(sizes, dtype=np.int64) - sizes
        # A partition is in one block: that of its first split.
        blocks = before[np.searchsorted(partitions, partitions)] // _BLOCK_BYTES
        starts = np.flatnonzero(np.diff(blocks, prepend=-1)).tolist()
        parts = (table.slice(a, b - a) for a, b in pairwise([*starts, len(table)]))
        return cls(tuple(map(_Block.of, starts, parts)), predicates)

    def numbered(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, DataSplit]]:
        """The splits of the partitions that batches name, and where each is among all splits."""
        for batch in batches:
            for partition in batch.column(PARTITION).to_pylist():
                for block in self.blocks:
                    if partition in block.partitions:
                        yield from block.numbered(partition, self.predicates)

    def splits(self, batches: Iterable[pa.RecordBatch]) -> Iterator[DataSplit]:
        """The splits of the partitions that batches name."""
        return (split for _, split in self.numbered(batches))


@dataclass(frozen=True, slots=True)
class _Block:
    """The splits of some partitions.

    Args:
        first: The number of its first split.
        partitions: All partitions that its splits are in.
        rows: The splits with their partitions, as an Arrow stream.
    """

    first: int
    partitions: range
    rows: bytes

    @classmethod
    def of(cls, first: int, rows: pa.Table) -> "_Block":
        partitions = rows.column(PARTITION)
        sink = pa.BufferOutputStream()
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        with pa.ipc.new_stream(sink, rows.schema, options=options) as writer:
            writer.write_table(rows)
        span = range(partitions[0].as_py(), partitions[-1].as_py() + 1)
        return cls(first, span, sink.getvalue().to_pybytes())

    def numbered(
        self, partition: int, predicates: Sequence[Predicate | None]
    ) -> Iterator[tuple[int, DataSplit]]:
        """The splits of a partition, with their numbers."""
        rows = pa.ipc.open_stream(self.rows).read_all()
        mine = pc.equal(rows.column(PARTITION), partition)
        numbers = (self.first + at for at in pc.indices_nonzero(mine).to_pylist())
        yield from zip(numbers, splits_in(rows.filter(mine).to_batches(), predicates), strict=True)

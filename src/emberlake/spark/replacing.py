"""Merges that replace whole rows of a table with deletion vectors: the most common kind.

A row of the source becomes the same row of the table, whether it matches or not. So the tasks that
read the keys of a file mark its rows that match, and the source is written where it is, because its
values need no row of the table. Neither side is shuffled.

This does not work if a row of the source matches several rows of the table: it would have to
replace each of them. Such a merge is left to ``merge_job``; marks are only messages, so nothing has
been written by then.
"""

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from emberlake.errors import IncompleteJob
from emberlake.rowops.clauses import Action
from emberlake.rowops.edits import Prepared
from emberlake.rowops.locate import split_reads
from emberlake.rowops.marks import Marked, mark_rows
from emberlake.rowops.merge import find_in_file
from emberlake.rowops.merge_plan import KeyPair, MergePlan
from emberlake.rowops.result import Strategy, Tally, strategy_of
from emberlake.scan.splits import DataSplit
from emberlake.spark.located import LocatedRows
from emberlake.spark.merge_frames import MergeFrames
from emberlake.spark.merge_tasks import handed, native_key
from emberlake.spark.owner_task import UNIT, FileWork, joined
from emberlake.spark.owners import write_new
from emberlake.spark.small_source import SmallSource, UnitTask, over_units
from emberlake.spec.schema import TableSchema
from emberlake.spec.snapshot import Snapshot
from emberlake.wire import CommitMessage

_MOST_BYTES: Final = 64 * 1024**2  # of the bitmaps of source rows that tasks report
_SHAPE: Final = StructType(
    [
        StructField(UNIT, LongType()),
        StructField("rows", LongType()),
        StructField("repeated", LongType()),  # matches of rows of the source beyond the first
        StructField("message", BinaryType()),
        StructField("matched", BinaryType()),
    ]
)


def replace_rows(located: LocatedRows, frames: MergeFrames, work: FileWork) -> Prepared | None:
    """Carry out a merge that replaces whole rows; None if it is of another kind.

    Raises:
        DataMismatch: several rows of the source would change the same row.
    """
    source = frames.small
    if source is None or not _replaces(frames.plan, located.store.schema):
        return None
    if len(located.units) * len(source.ids) // 8 > _MOST_BYTES:
        return None
    marked = _mark(located, source, frames)
    if marked is None:
        return None
    sent = frames.columns.only(f.name for f in work.columns.fields)
    new = write_new(located, frames.source.select(*sent).toDF(*work.columns.names), work)
    # The rows written are new versions of rows that match, and new rows.
    fewer = Tally(inserted=-marked.tally.updated)
    return joined(marked, Prepared(new.messages, new.tally + fewer))


# --- whether it is one ----------------------------------------------------------------------------


def _replaces(plan: MergePlan, schema: TableSchema) -> bool:
    """Whether a row of the source becomes the same row, no matter whether it matches."""
    if strategy_of(schema) is not Strategy.VECTORS or schema.profile.tracks_rows:
        return False
    if plan.orphaned or plan.on.of_source is not None:
        return False
    if (len(plan.matched), len(plan.new)) != (1, 1):
        return False
    (old,), (new,) = plan.matched, plan.new
    if old.action is not Action.UPDATE or old.where is not None or new.where is not None:
        return False
    equal = dict(pair for pair in map(_equal_columns, plan.on.keys) if pair is not None)
    for name in schema.field_names:
        value = new.values.get(name)
        if value is None:
            return False
        if name in old.values:
            if old.values[name].typed != value.typed:
                return False
        elif equal.get(name) != value.typed:
            return False
    return True


def _equal_columns(pair: KeyPair) -> tuple[str, object] | None:
    """A column of the table, and the expression of the source that equals it in matching rows."""
    column = native_key(pair.target)
    if column is None or pair.matches_null or pair.columns is None:
        return None
    return column.name, pair.source.typed


# --- marks ----------------------------------------------------------------------------------------


def _mark(located: LocatedRows, source: SmallSource, frames: MergeFrames) -> Prepared | None:
    """Mark rows that match; None if a row of the source matches several."""
    task = MarkTask(located.store, source, frames.predicate, frames.decisive, located.snapshot)
    found = over_units(located.spark, located.units, task, _SHAPE).toArrow()
    numbers = found.column(UNIT).to_numpy()
    if not np.array_equal(np.sort(numbers), np.arange(len(located.units))):
        raise IncompleteJob(
            f"the merge is not committed: {len(located.units)} files were to be searched, but "
            f"{len(numbers)} reports came. Nothing was written. Run it again"
        )
    if sum(found.column("repeated").to_pylist()) or _overlap(found.column("matched"), source):
        return None
    counts = found.column("rows").to_pylist()
    raws = found.column("message").drop_null().to_pylist()
    tally = Tally(updated=sum(counts), marked=len(raws))
    return Prepared(tuple(CommitMessage.from_bytes(raw) for raw in raws), tally)


def _overlap(found: pa.ChunkedArray, source: SmallSource) -> bool:
    """Whether some row of the source matches in more than one file."""
    every = np.zeros(-(-len(source.ids) // 8), np.uint8)
    for raw in found.drop_null().to_pylist():
        some = np.frombuffer(zlib.decompress(raw), np.uint8)
        if (every & some).any():
            return True
        every |= some
    return False


@dataclass(frozen=True)
class MarkTask(UnitTask):
    """Marks the rows of one task's units that match the source; a report for each."""

    snapshot: Snapshot | None

    def _results(self, number: int, unit: DataSplit) -> Iterator[pa.RecordBatch]:
        merge = self.source.merge
        rows = repeated = 0
        message = matched = None
        for placed in split_reads(self.store, [unit], self.predicate, self.columns):
            edit = find_in_file(merge, placed)
            if edit is None or edit.positions is None or edit.matches is None:
                continue
            is_matched = np.zeros(len(self.source.ids), bool)
            is_matched[edit.matches] = True
            rows, repeated = len(edit.matches), len(edit.matches) - int(is_matched.sum())
            marks = [Marked(placed.place, edit.positions)]
            (made,) = mark_rows(self.store, self.snapshot, marks, is_exclusive=True)
            message, matched = made.to_bytes(), _packed(is_matched)
        values: Sequence[object] = (number, rows, repeated, message, matched)
        columns = [pa.array([value]) for value in values]
        yield from handed(columns, _SHAPE)


def _packed(mask: npt.NDArray[np.bool_]) -> bytes:
    return zlib.compress(np.packbits(mask).tobytes(), 1)

"""Look up the rows of the same keys on higher levels while newer records leave level 0.

A record that leaves level 0 replaces the row above it, or gives way to it. The older row is merged
into the new one if the merge engine needs it, and is what the row was before the change. With
deletion vectors it is marked as deleted; otherwise it stays, and the new one stands for it. In
first-row tables the newer record is dropped. Spec: "Levels and compaction", "Deletion vectors".
"""

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from emberlake.compaction.vectors import BucketVectors
from emberlake.merge.order import KeyBound, key_at, key_bound, order_rows, rows_up_to
from emberlake.merge.plan import MergePlan
from emberlake.merge.rows import take_rows
from emberlake.options import MergeEngine
from emberlake.read.file_read import FileRead
from emberlake.spec.column_buffers import I64, Mask
from emberlake.spec.key_value import KIND, SEQUENCE
from emberlake.types import DataField


class OlderRows:
    """Adds the rows of the same keys on higher levels to records that come in key order.

    Args:
        plan: How records are merged.
        levels: The files of every higher level in key order, with the key columns or, if the older
            rows are handed out, the same columns as the new records.
        vectors: Where replaced rows are marked; None in tables without deletion vectors.
        hands_out: Whether the older rows join the new records, to be merged with them.
    """

    def __init__(
        self,
        plan: MergePlan,
        levels: Sequence[Sequence[FileRead]],
        vectors: BucketVectors | None,
        *,
        hands_out: bool,
    ) -> None:
        self._plan = plan
        self._vectors = vectors
        self._hands_out = hands_out
        self._cursors = [_Cursor(plan.keys, files) for files in levels]

    @property
    def has_files(self) -> bool:
        return bool(self._cursors)

    def complete(self, rows: pa.Table, bound: KeyBound) -> pa.Table:
        """The records to merge, for new ones with keys up to a bound."""
        pieces = [piece for cursor in self._cursors for piece in cursor.take(bound)]
        if not pieces:
            return rows
        is_new, is_old = _match(self._plan.keys, [rows, *(piece.rows for piece in pieces)])
        if self._plan.engine is MergeEngine.FIRST_ROW:
            return take_rows(rows, np.flatnonzero(~is_new)) if is_new.any() else rows
        older: list[pa.Table] = []
        start = 0
        for piece in pieces:
            matched = np.flatnonzero(is_old[start : start + piece.rows.num_rows])
            start += piece.rows.num_rows
            if not len(matched):
                continue
            if self._vectors is not None:
                self._vectors.mark(piece.file_name, piece.positions[matched])
            if self._hands_out:
                older.append(take_rows(piece.rows, matched))
        if not older:
            return rows
        return pa.concat_tables([*(t.select(rows.column_names) for t in older), rows])

    def close(self) -> None:
        """Release the files."""
        for cursor in self._cursors:
            cursor.close()


@dataclass(frozen=True)
class _Piece:
    """Rows of one file and their positions in it."""

    file_name: str
    positions: I64
    rows: pa.Table


class _Cursor:
    """Goes through the files of one level."""

    def __init__(self, keys: Sequence[DataField], files: Sequence[FileRead]) -> None:
        self._keys = keys
        self._pieces = _pieces(files)
        self._current: _Piece | None = None
        self._last: KeyBound = ()

    def take(self, bound: KeyBound) -> Iterator[_Piece]:
        """The next rows with keys up to a bound."""
        while self._current is not None or self._advance():
            piece = self._current
            assert piece is not None
            if self._last <= bound:
                self._current = None
                yield piece
                continue
            count = rows_up_to(piece.rows, self._keys, bound)
            if count:
                self._current = _slice(piece, count, piece.rows.num_rows)
                yield _slice(piece, 0, count)
            return

    def close(self) -> None:
        self._pieces.close()

    def _advance(self) -> bool:
        for piece in self._pieces:
            if piece.rows.num_rows:
                self._current = piece
                last = piece.rows.num_rows - 1
                self._last = key_bound(key_at(piece.rows, self._keys, last))
                return True
        return False


def _pieces(files: Sequence[FileRead]) -> Generator[_Piece, None, None]:
    for file in files:
        with closing(file.located_tables()) as tables:
            for positions, rows in tables:
                yield _Piece(file.name, positions, rows)


def _slice(piece: _Piece, start: int, stop: int) -> _Piece:
    rows = piece.rows.slice(start, stop - start)
    return _Piece(piece.file_name, piece.positions[start:stop], rows)


def _match(keys: Sequence[DataField], tables: Sequence[pa.Table]) -> tuple[Mask, Mask]:
    """Which rows of the first table share keys with rows of the others, and with which of them."""
    counts = [table.num_rows for table in tables]
    names = [f.name for f in keys]
    together = pa.concat_tables([table.select(names) for table in tables])
    # The rows of one key may be in any order.
    zeros = pa.array(np.zeros(together.num_rows, np.int64))
    together = together.append_column(SEQUENCE, zeros).append_column(KIND, zeros.cast(pa.int8()))
    order = order_rows(together, keys, ())
    is_new = order.rows < counts[0]
    has_new = np.logical_or.reduceat(is_new, order.starts)
    has_old = np.logical_or.reduceat(~is_new, order.starts)
    sizes = np.diff(np.append(order.starts, len(order.rows)))
    is_shared = np.empty(len(order.rows), bool)
    is_shared[order.rows] = np.repeat(has_new & has_old, sizes)
    return is_shared[: counts[0]], is_shared[counts[0] :]

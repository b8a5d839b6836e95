"""Find the rows of a table that retract a row, and take rows by position."""

from typing import Final

import numpy as np
import pyarrow as pa

from emberlake.spec.column_buffers import I64, Mask
from emberlake.spec.key_value import KIND, RowKind

# Rows in runs of at least this many on average are sliced, not copied.
_LONG_RUN: Final = 4096
# Arrow joins texts with 32-bit offsets: more bytes than this are taken in several steps.
_MAX_BYTES_AT_ONCE: Final = 1 << 30


def retracts_of(rows: pa.Table) -> Mask:
    """Which records retract a row rather than add one."""
    kinds = rows.column(KIND).to_numpy()
    retracts: Mask = (kinds == RowKind.UPDATE_BEFORE) | (kinds == RowKind.DELETE)
    return retracts


def take_rows(table: pa.Table, rows: I64) -> pa.Table:
    """The rows at the given positions, in that order."""
    if not len(rows):
        return table.slice(0, 0)
    breaks = np.flatnonzero(rows[1:] != rows[:-1] + 1) + 1
    if len(rows) >= (len(breaks) + 1) * min(_LONG_RUN, table.num_rows):
        return _cut(table, rows, breaks)
    steps = -(-table.nbytes // _MAX_BYTES_AT_ONCE)
    if steps < 2:
        return table.take(pa.array(rows))
    return pa.concat_tables(table.take(pa.array(part)) for part in np.array_split(rows, steps))


def _cut(table: pa.Table, rows: I64, breaks: I64) -> pa.Table:
    starts = [0, *breaks.tolist()]
    ends = [*breaks.tolist(), len(rows)]
    pieces = [
        table.slice(int(rows[start]), end - start) for start, end in zip(starts, ends, strict=True)
    ]
    return pieces[0] if len(pieces) == 1 else pa.concat_tables(pieces)

"""What must be true of rows that have the columns of a table, and how many of them are taken."""

import math
from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa

from emberlake.base.option_texts import MEBIBYTE
from emberlake.errors import DataMismatch

_SLICE_BYTES: Final = 256 * MEBIBYTE


def check_keys(rows: pa.Table, keys: Iterable[str]) -> None:
    """Refuse null keys: tables of other engines may have keys that are not declared NOT NULL."""
    nulls = [name for name in keys if rows.column(name).null_count]
    if nulls:
        raise DataMismatch(f"the primary key has nulls, in {', '.join(nulls)}")


def slices(table: pa.Table) -> Iterator[pa.Table]:
    """Slices of a table that stay within Arrow's 32-bit offsets when their rows are taken."""
    count = max(1, math.ceil(table.nbytes / _SLICE_BYTES))
    rows = max(1, math.ceil(table.num_rows / count))
    for start in range(0, table.num_rows, rows):
        yield table.slice(start, rows)

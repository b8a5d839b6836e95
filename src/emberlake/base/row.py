"""Rows as Python values, for those who ask for them one at a time."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa


class Row(tuple[Any, ...]):
    """One row as a tuple of Python values."""

    __slots__ = ()

    def get_field(self, pos: int) -> Any:
        """The value of a column by its position."""
        return self[pos]


def iter_rows(batch: pa.RecordBatch) -> Iterator[Row]:
    """The rows of a batch."""
    # Python objects are what is asked for here, so this loop cannot be avoided.
    for values in zip(*(column.to_pylist() for column in batch.columns), strict=True):
        yield Row(values)

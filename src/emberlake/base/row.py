"""Rows as Python values, for callers that take them one at a time."""

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
    # The caller asks for Python objects, so this loop cannot be avoided.
    for values in zip(*(column.to_pylist() for column in batch.columns), strict=True):
        yield Row(values)

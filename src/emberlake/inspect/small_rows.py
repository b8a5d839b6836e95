"""Columns of system tables with few rows."""

from collections.abc import Callable, Sequence
from functools import partial

import pyarrow as pa

from emberlake.types import AtomicType, DataField, DataType, arrow_type


def fields_of(**types: str | DataType) -> tuple[DataField, ...]:
    """The columns of a system table, by the texts of their types."""
    return tuple(
        DataField(index, name, AtomicType(text) if isinstance(text, str) else text)
        for index, (name, text) in enumerate(types.items())
    )


def columns_of_rows(
    fields: Sequence[DataField], rows: Sequence[Sequence[object]]
) -> dict[str, Callable[[], pa.Array]]:
    """Columns made from rows: loading the small files behind them costs more than this loop."""
    return {
        field.name: partial(pa.array, [row[index] for row in rows], arrow_type(field.type))
        for index, field in enumerate(fields)
    }

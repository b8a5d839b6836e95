"""Statistics of row groups as column ranges, so that row groups can be skipped unread.

Minima and maxima have the physical type of the column and are only as good as their writer.
Whatever is not certain (INT96, unsigned integers, NaN, broken text, missing values) is unknown.
"""

from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from emberlake.formats.conform import plan_conversion
from emberlake.predicates.prune import ColumnRange
from emberlake.types import AtomicType, DataField, arrow_type

_RAW_TYPES: Final = {
    "BOOLEAN": pa.bool_(),
    "INT32": pa.int32(),
    "INT64": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "BYTE_ARRAY": pa.binary(),
    "FIXED_LEN_BYTE_ARRAY": pa.binary(),
}
_UNKNOWN: Final = ColumnRange(None, None, None)


def column_range(
    metadata: pq.FileMetaData, leaf: int, stored: pa.DataType, field: DataField
) -> ColumnRange:
    """The range of one top-level column for each row group.

    Args:
        metadata: the footer of the file.
        leaf: the position of the primitive column in the file.
        stored: the Arrow type of the column in the file.
        field: the column in the schema.
    """
    if not isinstance(field.type, AtomicType) or pa.types.is_nested(stored):
        return _UNKNOWN
    chunks = [metadata.row_group(i).column(leaf) for i in range(metadata.num_row_groups)]
    statistics = [chunk.statistics if chunk.is_stats_set else None for chunk in chunks]
    null_counts = [s.null_count if s is not None and s.has_null_count else None for s in statistics]
    bounds = [
        (s.min_raw, s.max_raw) if s is not None and s.has_min_max else (None, None)
        for s in statistics
    ]
    physical = chunks[0].physical_type if chunks else ""
    low, high = (
        _bounds([pair[side] for pair in bounds], physical, stored, field) for side in (0, 1)
    )
    return ColumnRange(low, high, pa.array(null_counts, pa.int64()))


def absent_range(metadata: pq.FileMetaData, field: DataField) -> ColumnRange:
    """The range of a column that the file lacks: null in every row."""
    rows = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    nothing = pa.nulls(len(rows), arrow_type(field.type))
    return ColumnRange(nothing, nothing, pa.array(rows, pa.int64()))


def _bounds(
    raw: list[Any], physical: str, stored: pa.DataType, field: DataField
) -> pa.Array | None:
    if physical not in _RAW_TYPES or pa.types.is_unsigned_integer(stored):
        return None
    if pa.types.is_float16(stored) or pa.types.is_fixed_size_binary(stored):
        return None
    if pa.types.is_floating(stored):
        # A NaN makes the statistics useless; it is the only value that differs from itself.
        raw = [value if value == value else None for value in raw]  # noqa: PLR0124
    try:
        values = _as_stored(pa.array(raw, _RAW_TYPES[physical]), stored, field)
        convert = plan_conversion(values.type, field.type)
        return convert(values) if convert else values
    except ValueError:  # bounds that are not values of the column, such as cut text
        return None


def _as_stored(values: pa.Array, stored: pa.DataType, field: DataField) -> pa.Array:
    if pa.types.is_decimal(stored):
        # Unscaled numbers: they only mean the same if the scales are the same.
        if stored.scale != arrow_type(field.type).scale:
            raise ValueError("another scale")
        return values
    if pa.types.is_temporal(stored):
        return values.view(stored)
    return values.cast(stored)

"""Rows in the canonical form of tests/golden/README.md: plain JSON values, equal for equal rows.

Everything that reads a table, emberlake, its peers or Java, is compared through this form.
"""

import json
import struct
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

Row = list[Any]


def canonical_rows(table: pa.Table, *, kinds: Sequence[str] | None = None) -> list[Row]:
    """The rows of an Arrow table, the row kind first ("+I" unless given)."""
    columns = [canonical_values(column) for column in table.columns]
    first = list(kinds) if kinds is not None else ["+I"] * table.num_rows
    return [list(row) for row in zip(first, *columns, strict=True)]


def sorted_rows(rows: Iterable[Row], *, unordered: Iterable[int] = ()) -> list[Row]:
    """Rows in a fixed order; lists at the positions in `unordered` are sorted too."""
    loose = frozenset(unordered)
    prepared = [
        [
            sorted(value, key=_sort_key)
            if index in loose and value is not None
            else _settled(value)
            for index, value in enumerate(row)
        ]
        for row in rows
    ]
    return sorted(prepared, key=_sort_key)


def canonical_values(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    if isinstance(column, pa.ChunkedArray):
        return [value for chunk in column.chunks for value in canonical_values(chunk)]
    kind = column.type
    if isinstance(column, pa.ExtensionArray):
        return canonical_values(column.storage)
    if pa.types.is_dictionary(kind):
        return canonical_values(column.dictionary_decode())
    if pa.types.is_struct(kind):
        return _struct_values(column)
    if pa.types.is_map(kind):
        return _map_values(column)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return _list_values(column)
    return [None if value is None else _atom(kind, value) for value in _plain(column).to_pylist()]


def _plain(column: pa.Array) -> pa.Array:
    """Times as integers: Python's own time types end at microseconds."""
    kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_time64(kind):
        return column.cast(pa.int64())
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return column.cast(pa.int32())
    return column


_UNITS_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def _atom(kind: pa.DataType, value: Any) -> Any:
    if pa.types.is_timestamp(kind):
        nanos = value * (1_000_000_000 // _UNITS_PER_SECOND[kind.unit])
        return [nanos // 1_000_000, nanos % 1_000_000]
    if pa.types.is_time(kind):
        return value * 1_000 // _UNITS_PER_SECOND[kind.unit]
    if pa.types.is_float64(kind):
        return "7ff8000000000000" if value != value else _bits("<d", "<Q", value)
    if pa.types.is_float32(kind):
        return "7fc00000" if value != value else _bits("<f", "<I", value)
    if pa.types.is_decimal(kind):
        return format(value, "f")
    if isinstance(value, bytes):
        return value.hex()
    return value


def _bits(float_format: str, int_format: str, value: float) -> str:
    return format(struct.unpack(int_format, struct.pack(float_format, value))[0], "x")


def _struct_values(column: pa.StructArray) -> list[Any]:
    fields = [canonical_values(field) for field in column.flatten()]
    rows = [list(row) for row in zip(*fields, strict=True)] if fields else [[] for _ in column]
    return [row if valid else None for row, valid in zip(rows, _validity(column), strict=True)]


def _list_values(column: pa.Array) -> list[Any]:
    return [None if item is None else canonical_values(item) for item in _items(column)]


def _map_values(column: pa.MapArray) -> list[Any]:
    # A map is a list of (key, value) structs; each cell is one such array.
    return [
        None if item is None else {"map": sorted(canonical_values(item), key=_sort_key)}
        for item in _items(column)
    ]


def _items(column: pa.Array) -> Iterable[pa.Array | None]:
    """The child array of every cell."""
    for scalar in column:
        yield scalar.values if scalar.is_valid else None


def _validity(column: pa.Array) -> list[bool]:
    valid: list[bool] = column.is_valid().to_pylist()
    return valid


def _settled(value: Any) -> Any:
    """The value with its maps in our own order: every writer sorts their entries differently."""
    if isinstance(value, dict):
        return {"map": sorted((_settled(pair) for pair in value["map"]), key=_sort_key)}
    if isinstance(value, list):
        return [_settled(item) for item in value]
    return value


def _sort_key(value: Any) -> str:
    return json.dumps(value)

"""Single values of columns: to Arrow, from Arrow and as readable text.

Inside the engine a value (``Value``) has one form per type: BOOLEAN bool; integers int; FLOAT and
DOUBLE float; DECIMAL ``Decimal``; CHAR and VARCHAR str; BINARY and VARBINARY bytes; DATE int (days
since the epoch); TIME int (milliseconds of the day); TIMESTAMP and TIMESTAMP_LTZ int (nanoseconds
since the epoch); ARRAY list; MAP and MULTISET list of pairs; ROW tuple; null ``None``.
"""

import decimal
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from emberlake.types import (
    ArrayType,
    AtomicType,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeRoot,
    VectorType,
    arrow_type,
)

Value: TypeAlias = (
    bool | int | float | decimal.Decimal | str | bytes | list[Any] | tuple[Any, ...] | None
)
NANOS_PER_DAY: Final = 86_400_000_000_000
NANOS_OF_UNIT: Final = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}


def to_arrow_scalar(data_type: DataType, value: Value) -> pa.Scalar:
    """A value as a scalar of the column's Arrow type."""
    return pa.scalar(_to_arrow(data_type, value), type=arrow_type(data_type))


def to_arrow_array(data_type: DataType, values: list[Value]) -> pa.Array:
    """Values as an array of the column's Arrow type."""
    return pa.array([_to_arrow(data_type, v) for v in values], type=arrow_type(data_type))


def from_arrow_array(data_type: DataType, array: pa.Array | pa.ChunkedArray) -> list[Value]:
    """The values of an array of the column's Arrow type, or of one that casts to it safely."""
    if isinstance(array, pa.ChunkedArray):
        return [value for chunk in array.chunks for value in from_arrow_array(data_type, chunk)]
    if array.type != arrow_type(data_type):
        array = array.cast(arrow_type(data_type))
    match data_type:
        case AtomicType(root=TypeRoot.DATE | TypeRoot.TIME):
            return _list(array.cast(pa.int32()))
        case AtomicType(root=TypeRoot.TIMESTAMP | TypeRoot.TIMESTAMP_LTZ):
            # Python integers: seconds and milliseconds reach further than 64 bits of nanoseconds.
            step = nanos_per_tick(data_type)
            ticks = array.cast(pa.int64()).to_pylist()
            return [None if tick is None else tick * step for tick in ticks]
        case ArrayType(element=element):
            return _lists_from_arrow(array, from_arrow_array(element, array.values))
        case MapType(key=key, value=value):
            return _maps_from_arrow(array, key, value)
        case MultisetType(element=element):
            return _maps_from_arrow(array, element, AtomicType("INT", nullable=False))
        case RowType(fields=fields):
            children = [
                from_arrow_array(f.type, child)
                for f, child in zip(fields, array.flatten(), strict=True)
            ]
            rows = zip(*children, strict=True) if children else [()] * len(array)
            valid = array.is_valid().to_pylist()
            return [row if ok else None for row, ok in zip(rows, valid, strict=True)]
        case _:
            return _list(array)


def nanos_per_tick(data_type: AtomicType) -> int:
    """Nanoseconds per tick of the Arrow type of a timestamp column."""
    return NANOS_OF_UNIT[arrow_type(data_type).unit]


def _list(array: pa.Array) -> list[Value]:
    values: list[Value] = array.to_pylist()
    return values


def _to_arrow(data_type: DataType, value: Value) -> object:
    """A value in the form that pyarrow's converters take for the column's Arrow type."""
    match data_type, value:
        case AtomicType(root=TypeRoot.TIMESTAMP | TypeRoot.TIMESTAMP_LTZ), int():
            return value // nanos_per_tick(data_type)
        case ((ArrayType(element=element) | VectorType(element=element)), list()):
            return [_to_arrow(element, v) for v in value]
        case MapType(key=key, value=item), list():
            return [(_to_arrow(key, k), _to_arrow(item, v)) for k, v in value]
        case MultisetType(element=element), list():
            return [(_to_arrow(element, k), count) for k, count in value]
        case RowType(fields=fields), tuple():
            return {f.name: _to_arrow(f.type, v) for f, v in zip(fields, value, strict=True)}
        case _:
            return value


def _lists_from_arrow(array: pa.Array, items: list[Value]) -> list[Value]:
    offsets = array.offsets.to_pylist()
    valid = array.is_valid().to_pylist()
    return [items[offsets[i] : offsets[i + 1]] if ok else None for i, ok in enumerate(valid)]


def _maps_from_arrow(array: pa.MapArray, key: DataType, item: DataType) -> list[Value]:
    keys, items = from_arrow_array(key, array.keys), from_arrow_array(item, array.items)
    pairs: list[Value] = list(zip(keys, items, strict=True))
    return _lists_from_arrow(array, pairs)


# --- printing -------------------------------------------------------------------------------------


def format_value(data_type: DataType, value: Value) -> str:
    """A value as readable text: strings without quotes, dates and times as ISO, bytes as hex."""
    match data_type, value:
        case _, None:
            return "null"
        case AtomicType(), _:
            return _format_atomic(data_type.root, value)
        case ((ArrayType(element=element) | VectorType(element=element)), list()):
            return f"[{', '.join(format_value(element, v) for v in value)}]"
        case MapType(key=key, value=item), list():
            return _format_pairs(key, item, value)
        case MultisetType(element=element), list():
            return _format_pairs(element, AtomicType("INT"), value)
        case RowType(fields=fields), tuple():
            pairs = zip(fields, value, strict=True)
            return f"{{{', '.join(f'{f.name}: {format_value(f.type, v)}' for f, v in pairs)}}}"
        case _:
            return str(value)


def _format_atomic(root: TypeRoot, value: Value) -> str:
    match root, value:
        case TypeRoot.BOOLEAN, bool():
            return "true" if value else "false"
        case TypeRoot.DATE, int():
            return _format_date(value)
        case TypeRoot.TIME, int():
            return _format_time(value * NANOS_OF_UNIT["ms"])
        case ((TypeRoot.TIMESTAMP | TypeRoot.TIMESTAMP_LTZ), int()):
            days, nanos = divmod(value, NANOS_PER_DAY)
            zone = "Z" if root is TypeRoot.TIMESTAMP_LTZ else ""
            return f"{_format_date(days)} {_format_time(nanos)}{zone}"
        case TypeRoot.FLOAT, float():
            return str(np.float32(value))
        case _, decimal.Decimal():
            return format(value, "f")
        case _, bytes():
            return f"0x{value.hex()}"
        case _:
            return str(value)


def _format_date(days: int) -> str:
    year, month, day = str(np.datetime64(days, "D")).rsplit("-", 2)
    return f"{int(year):0{5 if int(year) < 0 else 4}d}-{month}-{day}"


def _format_time(nanos: int) -> str:
    seconds, fraction = divmod(nanos, 10**9)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{text}.{fraction:09d}".rstrip("0") if fraction else text


def _format_pairs(key: DataType, item: DataType, pairs: list[Any]) -> str:
    inner = ", ".join(f"{format_value(key, k)}: {format_value(item, v)}" for k, v in pairs)
    return f"{{{inner}}}"

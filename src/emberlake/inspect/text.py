"""Format values of serialized rows as text, one column at a time.

Partitions are named ``key=value/key2=value2`` with readable values and with the table's name for
null; keys and statistics are JSON, so that programs can read them. Equal values are formatted
once: the work grows with the number of distinct values, not with the number of files.
"""

import json
import math
from collections.abc import Callable, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from emberlake.spec.row_columns import decode_column
from emberlake.spec.values import Value, format_value, from_arrow_array
from emberlake.store.table_store import TableStore
from emberlake.types import AtomicType, DataField, DataType, TypeRoot

_JSON_NULL: Final = "null"


def partition_values(
    fields: Sequence[DataField], partitions: Sequence[bytes], default_name: str
) -> list[tuple[str, ...]]:
    """The readable values of partitions; a null value is ``default_name``."""
    rows = pa.array(partitions, pa.large_binary())
    types = [field.type for field in fields]
    columns = [
        pc.fill_null(_texts(field.type, decode_column(types, rows, index)), default_name)
        for index, field in enumerate(fields)
    ]
    if not columns:
        return [()] * len(partitions)
    return list(zip(*(column.to_pylist() for column in columns), strict=True))


def partition_name(keys: Sequence[str], values: Sequence[str]) -> str:
    """``key=value/key2=value2``; empty for the only partition of an unpartitioned table."""
    return "/".join(f"{key}={value}" for key, value in zip(keys, values, strict=True))


def json_rows(types: Sequence[DataType], rows: pa.Array) -> pa.Array:
    """Serialized rows as JSON lists: ``[1,"a"]``."""
    columns = [json_values(t, decode_column(types, rows, index)) for index, t in enumerate(types)]
    return _join(columns, "[", ",", "]", len(rows))


def json_objects(names: Sequence[str], columns: Sequence[pa.Array], length: int) -> pa.Array:
    """Columns of JSON texts as JSON objects: ``{"a":1,"b":null}``."""
    members = [
        pc.binary_join_element_wise(_json_text(name), column, ":")
        for name, column in zip(names, columns, strict=True)
    ]
    return _join(members, "{", ",", "}", length)


def json_values(data_type: DataType, column: pa.Array) -> pa.Array:
    """The values of a column as JSON texts; null is ``null``."""
    if isinstance(data_type, AtomicType) and (
        data_type.root.is_integer or data_type.root is TypeRoot.BOOLEAN
    ):
        texts = pc.cast(column, pa.string())
    else:
        texts = _map_distinct(data_type, column, lambda value: _json_value(data_type, value))
    return pc.fill_null(texts, _JSON_NULL)


def _texts(data_type: DataType, column: pa.Array) -> pa.Array:
    return _map_distinct(data_type, column, lambda value: _text(data_type, value))


def _text(data_type: DataType, value: Value) -> str:
    return _bytes_text(value) if isinstance(value, bytes) else format_value(data_type, value)


def _map_distinct(
    data_type: DataType, column: pa.Array, text_of: Callable[[Value], str]
) -> pa.Array:
    encoded = column.dictionary_encode()
    texts = [text_of(value) for value in from_arrow_array(data_type, encoded.dictionary)]
    return pa.array(texts, pa.string()).take(encoded.indices)


def _json_value(data_type: DataType, value: Value) -> str:
    text = _text(data_type, value)
    is_number = isinstance(value, float) and math.isfinite(value)  # JSON has no other numbers
    return text if is_number else _json_text(text)


def _bytes_text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.hex()


def _json_text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _join(columns: Sequence[pa.Array], start: str, comma: str, end: str, length: int) -> pa.Array:
    if not columns:
        return pa.repeat(start + end, length)
    inner = columns[0] if len(columns) == 1 else pc.binary_join_element_wise(*columns, comma)
    return pc.binary_join_element_wise(start, inner, end, "")


def braced_partitions(store: TableStore, partitions: Sequence[bytes]) -> list[str]:
    """Partitions as Java writes rows: ``{a, null}``."""
    rows = partition_values(store.schema.partition_fields, partitions, "null")
    return ["{" + ", ".join(values) + "}" for values in rows]

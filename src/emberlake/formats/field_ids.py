"""Field ids in data files: those of columns, and generated ones for list and map children.

Spec: "Field ids": an element or map value has ``base + parent * 1024 + depth``, a map key
``base - parent * 1024 - depth``, where depth counts the lists and maps since the last named field.
Other engines show these ids, but none of them needs them.
"""

from typing import Final

import pyarrow as pa

from emberlake.types import (
    ArrayType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    arrow_type,
)

_BASE: Final = 536_870_911
_CHILDREN_PER_FIELD: Final = 1024


def schema_with_ids(fields: tuple[DataField, ...], key: bytes) -> pa.Schema:
    """``arrow_schema(fields)`` whose fields carry their ids as metadata under ``key``."""
    return pa.schema([_field(f, key) for f in fields])


def _field(field: DataField, key: bytes) -> pa.Field:
    return _named(field.name, _typed(field.type, field.id, 1, key), field.type, field.id, key)


def _typed(data_type: DataType, parent: int, depth: int, key: bytes) -> pa.DataType:
    distance = parent * _CHILDREN_PER_FIELD + depth
    match data_type:
        case ArrayType(element=element):
            inner = _typed(element, parent, depth + 1, key)
            return pa.list_(_named("element", inner, element, _BASE + distance, key))
        case MapType(key=map_key, value=value):
            return pa.map_(
                _named(
                    "key",
                    _typed(map_key, parent, depth + 1, key),
                    map_key.with_nullable(False),
                    _BASE - distance,
                    key,
                ),
                _named(
                    "value",
                    _typed(value, parent, depth + 1, key),
                    value,
                    _BASE + distance,
                    key,
                ),
            )
        case MultisetType(element=element):
            inner = _typed(element, parent, depth + 1, key)
            count = pa.field(
                "value", pa.int32(), nullable=False, metadata=_id(_BASE + distance, key)
            )
            never_null = element.with_nullable(False)
            return pa.map_(_named("key", inner, never_null, _BASE - distance, key), count)
        case RowType(fields=fields):
            return pa.struct([_field(f, key) for f in fields])
        case _:
            return arrow_type(data_type)


def _named(
    name: str, arrow: pa.DataType, data_type: DataType, field_id: int, key: bytes
) -> pa.Field:
    return pa.field(name, arrow, nullable=data_type.nullable, metadata=_id(field_id, key))


def _id(field_id: int, key: bytes) -> dict[bytes, bytes]:
    return {key: str(field_id).encode()}

"""Avro schemas of columns, and values in the plain form that Avro stores.

Spec: "Avro data files". The names of the timestamp types are the reverse of what Avro means:
TIMESTAMP is ``timestamp-*`` and TIMESTAMP_LTZ is ``local-timestamp-*``.
"""

import re
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from emberlake.errors import Unsupported
from emberlake.formats.nested import entries_of, relabelled
from emberlake.types import (
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeRoot,
)

Json: TypeAlias = Any  # a schema as json.loads gives it

_ROOT_NAME: Final = "org.apache.paimon.avro.generated.record"
_NAME: Final = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*$")
_COUNT: Final = AtomicType("INT")  # of a multiset's element; nullable in Avro files
_PLAIN: Final = {
    TypeRoot.BOOLEAN: "boolean",
    TypeRoot.TINYINT: "int",
    TypeRoot.SMALLINT: "int",
    TypeRoot.INT: "int",
    TypeRoot.BIGINT: "long",
    TypeRoot.FLOAT: "float",
    TypeRoot.DOUBLE: "double",
    TypeRoot.CHAR: "string",
    TypeRoot.VARCHAR: "string",
    TypeRoot.BINARY: "bytes",
    TypeRoot.VARBINARY: "bytes",
}
_STORED: Final = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "bytes": pa.binary(),
    "fixed": pa.binary(),
    "enum": pa.string(),
}
_LOGICAL: Final = {
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.time32("ms"),
    ("long", "time-micros"): pa.time64("us"),
    **{
        ("long", f"{prefix}timestamp-{word}"): pa.timestamp(unit)
        for prefix in ("", "local-")
        for word, unit in (("millis", "ms"), ("micros", "us"), ("nanos", "ns"))
    },
}


# --- Schemas ---


def avro_schema(fields: tuple[DataField, ...]) -> Json:
    """The Avro record of columns; ``Unsupported`` names a column that Avro cannot hold."""
    return _Namer().record(_ROOT_NAME, fields)


def without_logical_types(schema: Json) -> Json:
    """The schema of the plain numbers and bytes that a schema stores."""
    if isinstance(schema, list):
        return [without_logical_types(branch) for branch in schema]
    if isinstance(schema, dict):
        return {k: without_logical_types(v) for k, v in schema.items() if k != "logicalType"}
    return schema


def stored_type(schema: Json, names: Mapping[str, Json]) -> pa.DataType:
    """The Arrow type that holds the plain values of an Avro type; decimals are bytes.

    Args:
        schema: the type.
        names: the named types of the file, see ``named_types``.
    """
    kind, schema = _resolved(schema, names)
    match kind:
        case "array":
            return pa.list_(pa.field("element", stored_type(schema["items"], names)))
        case "map":
            return pa.map_(pa.string(), stored_type(schema["values"], names))
        case "record":
            return pa.struct(
                [pa.field(f["name"], stored_type(f["type"], names)) for f in schema["fields"]]
            )
        case _ if kind in _STORED:
            logical = schema.get("logicalType", "")
            return _LOGICAL.get((kind, logical), _STORED[kind])
        case _:
            raise ValueError(f"{kind} is not a type of Avro")


def check_scales(schema: Json, names: Mapping[str, Json], data_type: DataType) -> None:
    """Refuse decimals whose scale is not the column's: their bytes would mean something else."""
    kind, schema = _resolved(schema, names)
    match data_type:
        case AtomicType(root=TypeRoot.DECIMAL, scale=scale):
            found = schema.get("scale", 0)
            if schema.get("logicalType") == "decimal" and found != scale:
                raise ValueError(f"the file has a scale of {found}, but the schema has {scale}")
        case ArrayType(element=element) if kind == "array":
            check_scales(schema["items"], names, element)
        case MapType(value=value) if kind == "map":
            check_scales(schema["values"], names, value)
        case MapType(key=key, value=value) if kind == "array":
            pair = RowType(nullable=False, fields=(DataField(0, "key", key), _value_field(value)))
            check_scales(schema["items"], names, pair)
        case RowType(fields=fields) if kind == "record":
            found_fields = {f["name"]: f["type"] for f in schema["fields"]}
            for field in fields:
                if field.name in found_fields:
                    check_scales(found_fields[field.name], names, field.type)
        case _:
            return


def named_types(schema: Json) -> dict[str, Json]:
    """The named types that a schema defines, by full and by short name."""
    found: dict[str, Json] = {}
    pending = [schema]
    while pending:
        part = pending.pop()
        if isinstance(part, list):
            pending += part
        elif isinstance(part, dict):
            if "name" in part and part.get("type") in ("record", "enum", "fixed"):
                space = part.get("namespace")
                found[part["name"]] = part
                found[f"{space}.{part['name']}" if space else part["name"]] = part
                found[part["name"].rpartition(".")[2]] = part
            pending += [v for v in part.values() if isinstance(v, (dict, list))]
    return found


class _Namer:
    """Builds schemas; every record gets a unique name, as Avro requires."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def record(self, name: str, fields: tuple[DataField, ...]) -> Json:
        unique = self._unique(name)
        return {
            "type": "record",
            "name": unique,
            "fields": [self._field(f, name) for f in fields],
        }

    def _field(self, field: DataField, record: str) -> Json:
        if not _NAME.match(field.name):
            raise Unsupported(
                f"the column {field.name!r} cannot be stored in Avro files: Avro allows letters, "
                "digits and underscores in names; choose another file.format or rename it"
            )
        try:
            kind = self.type(field.type, f"{record}_{field.name}")
        except ValueError as error:
            raise Unsupported(
                f"the column {field.name} ({field.type}) cannot be stored in Avro files: {error}; "
                "choose another file.format"
            ) from error
        has_default = {"default": None} if field.type.nullable else {}
        return {"name": field.name, "type": kind, **has_default}

    def type(self, data_type: DataType, name: str) -> Json:
        plain = self._plain(data_type, name)
        return ["null", plain] if data_type.nullable else plain

    def _plain(self, data_type: DataType, name: str) -> Json:
        match data_type:
            case AtomicType():
                return _atomic(data_type)
            case RowType(fields=fields):
                return self.record(name, fields)
            case ArrayType(element=element):
                return {"type": "array", "items": self.type(element, name)}
            case MapType(key=key, value=value):
                return self._map(key, value, name)
            case MultisetType(element=element):
                return self._map(element, _COUNT, name)
            case _:
                raise ValueError("it has no Avro type")

    def _map(self, key: DataType, value: DataType, name: str) -> Json:
        if _is_text(key):
            return {"type": "map", "values": self.type(value, name)}
        default = {"default": None} if value.nullable else {}
        return {
            "type": "array",
            "logicalType": "map",
            "items": {
                "type": "record",
                "name": self._unique(name),
                "fields": [
                    {"name": "key", "type": self.type(key, f"{name}_key")},
                    {"name": "value", "type": self.type(value, f"{name}_value"), **default},
                ],
            },
        }

    def _unique(self, name: str) -> str:
        unique, number = name, 1
        while unique in self._taken:
            number += 1
            unique = f"{name}_{number}"
        self._taken.add(unique)
        return unique


def _atomic(data_type: AtomicType) -> Json:
    root, precision = data_type.root, data_type.precision
    match root:
        case TypeRoot.DATE:
            return {"type": "int", "logicalType": "date"}
        case TypeRoot.TIME if precision <= 3:
            return {"type": "int", "logicalType": "time-millis"}
        case TypeRoot.TIMESTAMP | TypeRoot.TIMESTAMP_LTZ if precision <= 6:
            prefix = "local-" if root is TypeRoot.TIMESTAMP_LTZ else ""
            word = "millis" if precision <= 3 else "micros"
            return {"type": "long", "logicalType": f"{prefix}timestamp-{word}"}
        case TypeRoot.DECIMAL:
            return {
                "type": "bytes",
                "logicalType": "decimal",
                "precision": precision,
                "scale": data_type.scale,
            }
        case _ if root in _PLAIN:
            return _PLAIN[root]
        case TypeRoot.TIME:
            raise ValueError("Avro times have at most 3 digits")
        case TypeRoot.TIMESTAMP | TypeRoot.TIMESTAMP_LTZ:
            raise ValueError("Avro timestamps have at most 6 digits")
        case _:
            raise ValueError("it has no Avro type")


def _resolved(schema: Json, names: Mapping[str, Json]) -> tuple[str, Mapping[str, Any]]:
    if isinstance(schema, list):
        branches = [branch for branch in schema if branch != "null"]
        if len(branches) != 1:
            raise ValueError(f"the union {schema} is not a nullable type")
        return _resolved(branches[0], names)
    if isinstance(schema, str):
        if schema in _STORED:
            return schema, {}
        if schema not in names:
            raise ValueError(f"{schema} is not a type of Avro")
        return _resolved(names[schema], names)
    kind = schema["type"]
    return (kind, schema) if isinstance(kind, str) else _resolved(kind, names)


def _is_text(data_type: DataType) -> bool:
    return isinstance(data_type, AtomicType) and data_type.root.is_text


def _value_field(value: DataType) -> DataField:
    return DataField(0, "value", value)


# --- Values ---


def plain_values(column: pa.ChunkedArray, data_type: DataType) -> list[Any]:
    """The values of a column as Avro stores them: numbers, text, bytes, lists, dictionaries."""
    out: list[Any] = []
    for chunk in column.chunks:
        out += _plain_array(chunk, data_type).to_pylist(maps_as_pydicts="strict")
    return out


def _plain_array(array: pa.Array, data_type: DataType) -> pa.Array:
    match data_type:
        case AtomicType(root=TypeRoot.DECIMAL):
            return _decimal_bytes(array)
        case AtomicType(root=TypeRoot.DATE | TypeRoot.TIME):
            return array.view(pa.int32())
        case AtomicType(root=TypeRoot.TIMESTAMP | TypeRoot.TIMESTAMP_LTZ):
            unit = "ms" if data_type.precision <= 3 else "us"
            zoned = pa.timestamp(unit, array.type.tz)
            return array.cast(zoned).view(pa.int64())
        case AtomicType():
            return array
        case ArrayType(element=element):
            return _plain_list(array, _plain_array(array.values, element))
        case MapType(key=key, value=value):
            return _plain_map(array, key, value)
        case MultisetType(element=element):
            return _plain_map(array, element, _COUNT)
        case RowType(fields=fields):
            return _plain_row(array, fields)
        case _:
            raise Unsupported(f"{data_type} cannot be stored in Avro files")


def _plain_row(array: pa.Array, fields: tuple[DataField, ...]) -> pa.Array:
    children = [_plain_array(array.field(i), f.type) for i, f in enumerate(fields)]
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(children, names=[f.name for f in fields], mask=mask)


def _plain_map(array: pa.Array, key: DataType, value: DataType) -> pa.Array:
    keys, items = _plain_array(array.keys, key), _plain_array(array.items, value)
    if not _is_text(key):
        pairs = pa.StructArray.from_arrays([keys, items], names=["key", "value"])
        return _plain_list(array, pairs)
    kind = pa.map_(keys.type, items.type)
    return relabelled(array, kind, entries_of(kind, keys, items))


def _plain_list(array: pa.Array, values: pa.Array) -> pa.Array:
    return relabelled(array, pa.list_(values.type), values)


def _decimal_bytes(array: pa.Array) -> pa.Array:
    """Unscaled values as big-endian two's complement, without needless leading bytes."""
    width = 16
    raw = np.frombuffer(array.buffers()[1] or b"", np.uint8)
    raw = raw[width * array.offset : width * (array.offset + len(array))]
    digits = raw.reshape(len(array), width)[:, ::-1]
    negative = digits[:, 0] >= 0x80
    padding = np.where(negative, 0xFF, 0)[:, None]
    is_digit = digits != padding
    first = np.where(is_digit.any(axis=1), is_digit.argmax(axis=1), width)
    # The highest bit of the first byte that is kept must show the sign.
    shown = digits[np.arange(len(array)), np.minimum(first, width - 1)] >= 0x80
    first = np.minimum(np.where(shown == negative, first, first - 1), width - 1)
    kept = digits[np.arange(width)[None, :] >= first[:, None]]
    offsets = np.concatenate([[0], np.cumsum(width - first)]).astype(np.int32)
    values = pa.Array.from_buffers(
        pa.binary(), len(array), [None, pa.py_buffer(offsets), pa.py_buffer(kept)]
    )
    if not array.null_count:
        return values
    return pa.compute.if_else(array.is_valid(), values, pa.scalar(None, pa.binary()))

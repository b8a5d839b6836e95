"""Types and fields as they stand in schema files. Spec: "Type notation"."""

import re
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from emberlake.errors import InvalidSchema
from emberlake.types.data_types import (
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    VectorType,
)

Json: TypeAlias = Any  # what json.loads returns

_VECTOR: Final = re.compile(r"^VECTOR\s*<\s*(.+?)\s*,\s*(\d+)\s*>\s*(NOT NULL)?$", re.IGNORECASE)


def type_to_json(data_type: DataType) -> Json:
    """The JSON value of a type."""
    match data_type:
        case AtomicType():
            return str(data_type)
        case ArrayType(element=element):
            return {"type": _word("ARRAY", data_type), "element": type_to_json(element)}
        case MultisetType(element=element):
            return {"type": _word("MULTISET", data_type), "element": type_to_json(element)}
        case VectorType(element=element, length=length):
            return {
                "type": _word("VECTOR", data_type),
                "element": type_to_json(element),
                "length": length,
            }
        case MapType(key=key, value=value):
            return {
                "type": _word("MAP", data_type),
                "key": type_to_json(key),
                "value": type_to_json(value),
            }
        case RowType(fields=fields):
            return {"type": _word("ROW", data_type), "fields": [field_to_json(f) for f in fields]}
        case _:
            raise InvalidSchema(f"{data_type!r} is not a type")


def type_from_json(value: Json) -> DataType:
    """The type of a JSON value, in any of the spellings that engines write."""
    if isinstance(value, str):
        vector = _VECTOR.match(value.strip())
        if vector:
            element = AtomicType(vector.group(1))
            return VectorType(vector.group(3) is None, element, int(vector.group(2)))
        return AtomicType(value)
    if not isinstance(value, Mapping) or not isinstance(value.get("type"), str):
        raise InvalidSchema(f"{value!r} is not a type")
    word, _, null = value["type"].upper().strip().partition(" ")
    nullable = null.strip() != "NOT NULL"
    try:
        match word:
            case "ARRAY":
                return ArrayType(nullable, type_from_json(value["element"]))
            case "MULTISET":
                return MultisetType(nullable, type_from_json(value["element"]))
            case "VECTOR":
                return VectorType(nullable, type_from_json(value["element"]), int(value["length"]))
            case "MAP":
                return MapType(
                    nullable, type_from_json(value["key"]), type_from_json(value["value"])
                )
            case "ROW":
                return RowType(nullable, tuple(field_from_json(f) for f in value["fields"]))
            case _:
                raise InvalidSchema(f"{value['type']!r} is not a type")
    except KeyError as missing:
        raise InvalidSchema(f"the type {word} lacks {missing}") from missing


def field_to_json(field: DataField) -> dict[str, Json]:
    """The JSON object of a field; keys without a value are left out."""
    out: dict[str, Json] = {"id": field.id, "name": field.name, "type": type_to_json(field.type)}
    if field.description is not None:
        out["description"] = field.description
    if field.default_value is not None:
        out["defaultValue"] = field.default_value
    return out


def field_from_json(value: Json) -> DataField:
    """The field of a JSON object."""
    try:
        return DataField(
            int(value["id"]),
            value["name"],
            type_from_json(value["type"]),
            value.get("description"),
            value.get("defaultValue"),
        )
    except (KeyError, TypeError) as error:
        raise InvalidSchema(f"{value!r} is not a field: {error!r}") from error


def _word(name: str, data_type: DataType) -> str:
    return name if data_type.nullable else f"{name} NOT NULL"

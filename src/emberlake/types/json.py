"""Types and fields in the JSON form of schema files. Spec: "Type notation"."""

from emberlake.errors import InvalidSchema
from emberlake.types.data_types import DataField, DataType, Json


def type_to_json(data_type: DataType) -> Json:
    """The JSON value of a type."""
    if not isinstance(data_type, DataType):
        raise InvalidSchema(f"{data_type!r} is not a type")
    return data_type.to_dict()


def type_from_json(value: Json) -> DataType:
    """The type of a JSON value, in any of the spellings that engines write."""
    return DataType.from_dict(value)


def field_to_json(field: DataField) -> dict[str, Json]:
    """The JSON object of a field; keys without a value are left out."""
    return field.to_dict()


def field_from_json(value: Json) -> DataField:
    """The field of a JSON object."""
    return DataField.from_dict(value)

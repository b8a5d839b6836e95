"""Changes of a table's schema as JSON: ``{"action": "addColumn", "fieldNames": ["x"], ...}``."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Final

from emberlake.errors import InvalidInput, Unsupported
from emberlake.rest.reading import Fields, reading
from emberlake.spec.schema_change import (
    AddColumn,
    DropColumn,
    Move,
    MoveType,
    RemoveOption,
    RenameColumn,
    SchemaChange,
    SetOption,
    UpdateColumnComment,
    UpdateColumnDefaultValue,
    UpdateColumnNullability,
    UpdateColumnPosition,
    UpdateColumnType,
    UpdateComment,
)
from emberlake.types import DataType
from emberlake.types.json import type_from_json, type_to_json

# The keys of a change are the names of its fields: `new_data_type` is `newDataType`.
_ACTIONS: Final[Mapping[type[SchemaChange], str]] = {
    AddColumn: "addColumn",
    DropColumn: "dropColumn",
    RenameColumn: "renameColumn",
    UpdateColumnType: "updateColumnType",
    UpdateColumnNullability: "updateColumnNullability",
    UpdateColumnComment: "updateColumnComment",
    UpdateColumnDefaultValue: "updateColumnDefaultValue",
    UpdateColumnPosition: "updateColumnPosition",
    SetOption: "setOption",
    RemoveOption: "removeOption",
    UpdateComment: "updateComment",
}


def changes_to_json(changes: Iterable[SchemaChange]) -> dict[str, Any]:
    """The body of a request to alter a table."""
    return {"changes": [change_to_json(change) for change in changes]}


def changes_from_json(value: object) -> tuple[SchemaChange, ...]:
    """The changes that a request asks for, in their order."""
    return Fields(value, "the request").read_all("changes", change_from_json)


def change_to_json(change: SchemaChange) -> dict[str, Any]:
    """The JSON object of a change."""
    if type(change) not in _ACTIONS or not is_dataclass(change):
        raise InvalidInput(f"{change!r} is not a change of a schema")
    values = {_key(each.name): _value(getattr(change, each.name)) for each in fields(change)}
    return {"action": _ACTIONS[type(change)], **values}


def _key(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def _value(value: object) -> object:
    match value:
        case DataType():
            return type_to_json(value)
        case Move(field_name, reference, kind):
            return {"fieldName": field_name, "referenceFieldName": reference, "type": kind.value}
        case tuple():
            return list(value)
        case _:
            return value


def change_from_json(value: object) -> SchemaChange:
    """The change that a JSON object describes.

    Raises:
        InvalidInput: it is not a change.
        Unsupported: it is one that emberlake does not make.
    """
    given = Fields(value, "the change")
    action = given.text("action")
    if action == "dropPrimaryKey":
        raise Unsupported("emberlake does not drop the primary key of a table")
    decode = _DECODERS.get(action)
    if decode is None:
        raise InvalidInput(
            f"{action!r} is not a change of a table; there are {', '.join(_DECODERS)}"
        )
    return decode(given)


def _add_column(given: Fields) -> SchemaChange:
    move = given.raw("move")
    return SchemaChange.add_column(
        given.texts("fieldNames"),
        given.read("dataType", type_from_json),
        given.optional_text("comment"),
        None if move is None else reading("the move", _move_from_json, move),
    )


def _update_type(given: Fields) -> SchemaChange:
    return SchemaChange.update_column_type(
        given.texts("fieldNames"),
        given.read("newDataType", type_from_json),
        given.flag("keepNullability"),
    )


_DECODERS: Final[Mapping[str, Callable[[Fields], SchemaChange]]] = {
    "addColumn": _add_column,
    "dropColumn": lambda f: SchemaChange.drop_column(f.texts("fieldNames")),
    "renameColumn": lambda f: SchemaChange.rename_column(f.texts("fieldNames"), f.text("newName")),
    "updateColumnType": _update_type,
    "updateColumnNullability": lambda f: SchemaChange.update_column_nullability(
        f.texts("fieldNames"), f.required_flag("newNullability")
    ),
    "updateColumnComment": lambda f: SchemaChange.update_column_comment(
        f.texts("fieldNames"), f.optional_text("newComment")
    ),
    "updateColumnDefaultValue": lambda f: SchemaChange.update_column_default_value(
        f.texts("fieldNames"), f.optional_text("newDefaultValue")
    ),
    "updateColumnPosition": lambda f: SchemaChange.update_column_position(
        f.read("move", _move_from_json)
    ),
    "setOption": lambda f: SchemaChange.set_option(f.text("key"), f.text("value")),
    "removeOption": lambda f: SchemaChange.remove_option(f.text("key")),
    "updateComment": lambda f: SchemaChange.update_comment(f.optional_text("comment")),
}


def _move_from_json(value: object) -> Move:
    given = Fields(value, "the move")
    try:
        kind = MoveType(given.text("type"))
    except ValueError as error:
        raise InvalidInput(f"a column cannot be moved to {given.raw('type')!r}") from error
    return Move(given.text("fieldName"), given.optional_text("referenceFieldName"), kind)

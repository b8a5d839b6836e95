"""Find columns by their path, nested ones too, and change them.

Paths are those of ``schema_change``. The ``edit`` functions return the columns of the whole table.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from emberlake.base.names import choices
from emberlake.errors import ColumnNotFound
from emberlake.spec.schema_change import Path
from emberlake.types import ArrayType, DataField, DataType, MapType, RowType

Fields: TypeAlias = tuple[DataField, ...]


def edit_siblings(fields: Fields, path: Path, edit: Callable[[Fields], Fields]) -> Fields:
    """The columns after a change of the field that the path leads to and its siblings."""
    if len(path) == 1:
        return edit(fields)

    def edit_row(data_type: DataType) -> DataType:
        if not isinstance(data_type, RowType):
            raise ColumnNotFound(
                f"{format_path(path[:-1])} is of type {data_type} and has no fields",
                column=format_path(path),
            )
        return RowType(data_type.nullable, edit(data_type.fields))

    return edit_type(fields, path[:-1], edit_row)


def edit_column(fields: Fields, path: Path, edit: Callable[[DataField], DataField]) -> Fields:
    """The columns after a change of the one that the path leads to."""
    return edit_siblings(
        fields, path, lambda siblings: _edit_at(siblings, position_of(siblings, path), edit)
    )


def edit_type(fields: Fields, path: Path, edit: Callable[[DataType], DataType]) -> Fields:
    """The columns after a change of the type that the path leads to."""
    return _edit_type(fields, path, 0, edit)


def position_of(fields: Fields, path: Path, depth: int = -1) -> int:
    """The position among ``fields`` of the column that the path names at ``depth``.

    Raises:
        ColumnNotFound: no field has that name.
    """
    names = [field.name for field in fields]
    if path[depth] not in names:
        raise ColumnNotFound(
            f"column {format_path(path)} does not exist "
            f"({choices(path[depth], names, 'there are:')})",
            column=format_path(path),
        )
    return names.index(path[depth])


def format_path(path: Path) -> str:
    """``a.b``: how messages name a column."""
    return ".".join(path)


def _edit_at(fields: Fields, position: int, edit: Callable[[DataField], DataField]) -> Fields:
    return (*fields[:position], edit(fields[position]), *fields[position + 1 :])


def _edit_type(
    fields: Fields, path: Path, depth: int, edit: Callable[[DataType], DataType]
) -> Fields:
    return _edit_at(
        fields,
        position_of(fields, path, depth),
        lambda field: replace(field, type=_edit_inside(field.type, path, depth + 1, edit)),
    )


def _edit_inside(
    data_type: DataType, path: Path, depth: int, edit: Callable[[DataType], DataType]
) -> DataType:
    if depth == len(path):
        return edit(data_type)
    match data_type, path[depth]:
        case RowType(nullable, fields), _:
            return RowType(nullable, _edit_type(fields, path, depth, edit))
        case ArrayType(nullable, element), "element":
            return ArrayType(nullable, _edit_inside(element, path, depth + 1, edit))
        case MapType(nullable, key, value), "value":
            return MapType(nullable, key, _edit_inside(value, path, depth + 1, edit))
        case _, name:
            raise ColumnNotFound(
                f"column {format_path(path)} does not exist: {data_type} has nothing named {name}",
                column=format_path(path),
            )

"""Changes of a table's schema, as values; ``schema_evolution`` applies them.

Columns inside others are named by a path: ``["address", "city"]``, with ``element`` for the
elements of an ARRAY and ``value`` for the values of a MAP.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from emberlake.errors import InvalidInput
from emberlake.types import AtomicType, DataType

Path: TypeAlias = tuple[str, ...]


class MoveType(StrEnum):
    """Where a column moves to."""

    FIRST = "FIRST"
    AFTER = "AFTER"
    BEFORE = "BEFORE"
    LAST = "LAST"


@dataclass(frozen=True)
class Move:
    """The new position of a column."""

    field_name: str
    reference_field_name: str | None
    type: MoveType

    @staticmethod
    def first(field_name: str) -> "Move":
        return Move(field_name, None, MoveType.FIRST)

    @staticmethod
    def after(field_name: str, reference_field_name: str) -> "Move":
        return Move(field_name, reference_field_name, MoveType.AFTER)

    @staticmethod
    def before(field_name: str, reference_field_name: str) -> "Move":
        return Move(field_name, reference_field_name, MoveType.BEFORE)

    @staticmethod
    def last(field_name: str) -> "Move":
        return Move(field_name, None, MoveType.LAST)


class SchemaChange:
    """One change of a schema; made by the functions below."""

    @staticmethod
    def add_column(
        field_name: str | Sequence[str],
        data_type: DataType | str,
        comment: str | None = None,
        move: Move | None = None,
    ) -> "AddColumn":
        """Add a nullable column, at the end or where ``move`` says; the type may be text."""
        return AddColumn(_path(field_name), _type(data_type), comment, move)

    @staticmethod
    def drop_column(field_name: str | Sequence[str]) -> "DropColumn":
        """Drop a column; its values stay in old files, its id is never used again."""
        return DropColumn(_path(field_name))

    @staticmethod
    def rename_column(field_name: str | Sequence[str], new_name: str) -> "RenameColumn":
        """Rename a column, also in the options that name it."""
        return RenameColumn(_path(field_name), new_name)

    @staticmethod
    def update_column_type(
        field_name: str | Sequence[str],
        new_data_type: DataType | str,
        keep_nullability: bool = False,  # noqa: FBT001, FBT002
    ) -> "UpdateColumnType":
        """Give a column a wider type."""
        return UpdateColumnType(_path(field_name), _type(new_data_type), keep_nullability)

    @staticmethod
    def update_column_nullability(
        field_name: str | Sequence[str],
        new_nullability: bool,  # noqa: FBT001
    ) -> "UpdateColumnNullability":
        """Set whether a column may hold nulls."""
        return UpdateColumnNullability(_path(field_name), new_nullability)

    @staticmethod
    def update_column_comment(
        field_name: str | Sequence[str], comment: str | None
    ) -> "UpdateColumnComment":
        """Set the description of a column."""
        return UpdateColumnComment(_path(field_name), comment)

    @staticmethod
    def update_column_default_value(
        field_names: str | Sequence[str], default_value: str | None
    ) -> "UpdateColumnDefaultValue":
        """Set the text that writers use where a column is missing."""
        return UpdateColumnDefaultValue(_path(field_names), default_value)

    @staticmethod
    def update_column_position(move: Move) -> "UpdateColumnPosition":
        """Move a column."""
        return UpdateColumnPosition(move)

    @staticmethod
    def set_option(key: str, value: str) -> "SetOption":
        """Set an option."""
        return SetOption(key, value)

    @staticmethod
    def remove_option(key: str) -> "RemoveOption":
        """Reset an option to its default."""
        return RemoveOption(key)

    @staticmethod
    def update_comment(comment: str | None) -> "UpdateComment":
        """Set the description of the table."""
        return UpdateComment(comment)


@dataclass(frozen=True)
class AddColumn(SchemaChange):
    """See ``SchemaChange.add_column``."""

    field_names: Path
    data_type: DataType
    comment: str | None = None
    move: Move | None = None


@dataclass(frozen=True)
class DropColumn(SchemaChange):
    """See ``SchemaChange.drop_column``."""

    field_names: Path


@dataclass(frozen=True)
class RenameColumn(SchemaChange):
    """See ``SchemaChange.rename_column``."""

    field_names: Path
    new_name: str


@dataclass(frozen=True)
class UpdateColumnType(SchemaChange):
    """See ``SchemaChange.update_column_type``."""

    field_names: Path
    new_data_type: DataType
    keep_nullability: bool = False


@dataclass(frozen=True)
class UpdateColumnNullability(SchemaChange):
    """See ``SchemaChange.update_column_nullability``."""

    field_names: Path
    new_nullability: bool


@dataclass(frozen=True)
class UpdateColumnComment(SchemaChange):
    """See ``SchemaChange.update_column_comment``."""

    field_names: Path
    new_comment: str | None


@dataclass(frozen=True)
class UpdateColumnDefaultValue(SchemaChange):
    """See ``SchemaChange.update_column_default_value``."""

    field_names: Path
    new_default_value: str | None


@dataclass(frozen=True)
class UpdateColumnPosition(SchemaChange):
    """See ``SchemaChange.update_column_position``."""

    move: Move


@dataclass(frozen=True)
class SetOption(SchemaChange):
    """See ``SchemaChange.set_option``."""

    key: str
    value: str


@dataclass(frozen=True)
class RemoveOption(SchemaChange):
    """See ``SchemaChange.remove_option``."""

    key: str


@dataclass(frozen=True)
class UpdateComment(SchemaChange):
    """See ``SchemaChange.update_comment``."""

    comment: str | None


def _path(field_name: str | Sequence[str]) -> Path:
    path = (field_name,) if isinstance(field_name, str) else tuple(field_name)
    if not path:
        raise InvalidInput("the path of a column needs at least one name")
    return path


def _type(data_type: DataType | str) -> DataType:
    if isinstance(data_type, str):
        return AtomicType(data_type)
    if not isinstance(data_type, DataType):
        raise InvalidInput(f'{data_type!r} is not a column type: give AtomicType("INT") or "INT"')
    return data_type

"""Changes of a table's schema, and what a schema becomes by them.

Spec: "Schema evolution". Data files are never rewritten for a change, so a change is only allowed
when every value that the table holds stays what it is: columns are added as nullable, types only
widen, and what decides where rows lie (keys, buckets, merge engine) is fixed once there is data.
Columns inside others are named by a path: ``["address", "city"]``, with ``element`` for the
elements of an ARRAY and ``value`` for the values of a MAP.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, TypeAlias

from emberlake.errors import ColumnAlreadyExists, ColumnNotFound, InvalidInput, InvalidSchema
from emberlake.options import (
    BUCKET,
    BUCKET_KEY,
    DELETION_VECTORS,
    KNOWN,
    NULL_TO_NOT_NULL_DISABLED,
    PRIMARY_KEY_NULLABLE,
    ROWKIND_FIELD,
    SEQUENCE_FIELD,
    TYPE,
    TableOptions,
    parse_bool,
    parse_words,
)
from emberlake.spec.schema import SCHEMA_VERSION, TableSchema, highest_field_id
from emberlake.spec.validation import (
    assign_field_ids,
    check_known_kind,
    find_problems,
    normalise_key_columns,
)
from emberlake.types import (
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    RowType,
    TypeRoot,
)

Path: TypeAlias = tuple[str, ...]


class MoveType(StrEnum):
    """Where a column goes."""

    FIRST = "FIRST"
    AFTER = "AFTER"
    BEFORE = "BEFORE"
    LAST = "LAST"


@dataclass(frozen=True)
class Move:
    """The new place of a column."""

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
        data_type: DataType,
        comment: str | None = None,
        move: Move | None = None,
    ) -> "AddColumn":
        """A new column, nullable, at the end or where ``move`` says."""
        return AddColumn(_path(field_name), data_type, comment, move)

    @staticmethod
    def drop_column(field_name: str | Sequence[str]) -> "DropColumn":
        """A column less; its values stay in old files, its id is never used again."""
        return DropColumn(_path(field_name))

    @staticmethod
    def rename_column(field_name: str | Sequence[str], new_name: str) -> "RenameColumn":
        """Another name for a column, also in the options that name it."""
        return RenameColumn(_path(field_name), new_name)

    @staticmethod
    def update_column_type(
        field_name: str | Sequence[str],
        new_data_type: DataType,
        keep_nullability: bool = False,  # noqa: FBT001, FBT002
    ) -> "UpdateColumnType":
        """A wider type for a column."""
        return UpdateColumnType(_path(field_name), new_data_type, keep_nullability)

    @staticmethod
    def update_column_nullability(
        field_name: str | Sequence[str],
        new_nullability: bool,  # noqa: FBT001
    ) -> "UpdateColumnNullability":
        """Whether a column may hold nulls."""
        return UpdateColumnNullability(_path(field_name), new_nullability)

    @staticmethod
    def update_column_comment(
        field_name: str | Sequence[str], comment: str | None
    ) -> "UpdateColumnComment":
        """The description of a column."""
        return UpdateColumnComment(_path(field_name), comment)

    @staticmethod
    def update_column_default_value(
        field_names: str | Sequence[str], default_value: str | None
    ) -> "UpdateColumnDefaultValue":
        """The text that writers put where a column is missing."""
        return UpdateColumnDefaultValue(_path(field_names), default_value)

    @staticmethod
    def update_column_position(move: Move) -> "UpdateColumnPosition":
        """Another place for a column."""
        return UpdateColumnPosition(move)

    @staticmethod
    def set_option(key: str, value: str) -> "SetOption":
        """An option's value."""
        return SetOption(key, value)

    @staticmethod
    def remove_option(key: str) -> "RemoveOption":
        """An option back to its default."""
        return RemoveOption(key)

    @staticmethod
    def update_comment(comment: str | None) -> "UpdateComment":
        """The description of the table."""
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


def apply_changes(
    schema: TableSchema,
    changes: Sequence[SchemaChange],
    *,
    has_snapshots: bool,
    time_millis: int,
) -> TableSchema:
    """The next schema of a table; the same one when the changes change nothing.

    Args:
        schema: The latest schema of the table.
        changes: Applied one after the other.
        has_snapshots: Whether the table holds, or ever held, data.
        time_millis: When the change is made.

    Raises:
        ColumnNotFound: a change names a column that does not exist.
        ColumnAlreadyExists: a column is added or renamed to a name that is taken.
        InvalidSchema: a change is not allowed, or its result would not be.
    """
    changed = schema
    for change in changes:
        changed = _apply(changed, change, has_snapshots=has_snapshots)
    if changed == schema:
        return schema
    known = set(find_problems(schema))  # what other engines let pass does not stop a change
    problems = [problem for problem in find_problems(changed) if problem not in known]
    if problems:
        raise InvalidSchema("the table cannot be changed: " + "; ".join(problems))
    check_known_kind(changed)
    return replace(changed, id=schema.id + 1, time_millis=time_millis, version=SCHEMA_VERSION)


def is_widening(old: DataType, new: DataType) -> bool:
    """Whether every value of one type is a value of the other, whatever nullability they have."""
    if old.with_nullable(True) == new.with_nullable(True):
        return True
    if not (isinstance(old, AtomicType) and isinstance(new, AtomicType)):
        return False
    if old.root.is_integer:
        return _integer_widens(old, new)
    match old.root, new.root:
        case TypeRoot.FLOAT, TypeRoot.DOUBLE:
            return True
        case TypeRoot.DECIMAL, TypeRoot.DECIMAL:
            digits = old.precision - old.scale
            return new.scale >= old.scale and new.precision - new.scale >= digits
        case (
            (TypeRoot.CHAR, TypeRoot.CHAR | TypeRoot.VARCHAR)
            | (TypeRoot.VARCHAR, TypeRoot.VARCHAR)
            | (TypeRoot.BINARY, TypeRoot.BINARY | TypeRoot.VARBINARY)
            | (TypeRoot.VARBINARY, TypeRoot.VARBINARY)
        ):
            return new.length >= old.length
        case (TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP) | (
            TypeRoot.TIMESTAMP_LTZ,
            TypeRoot.TIMESTAMP_LTZ,
        ):
            return new.precision >= old.precision
        case _:
            return False


# Decimal digits of the largest value, and the floating types that hold all values exactly.
_INTEGERS: Final = {
    TypeRoot.TINYINT: (3, (TypeRoot.FLOAT, TypeRoot.DOUBLE)),
    TypeRoot.SMALLINT: (5, (TypeRoot.FLOAT, TypeRoot.DOUBLE)),
    TypeRoot.INT: (10, (TypeRoot.DOUBLE,)),
    TypeRoot.BIGINT: (19, ()),
}


def _integer_widens(old: AtomicType, new: AtomicType) -> bool:
    digits, floats = _INTEGERS[old.root]
    if new.root in _INTEGERS:
        return _INTEGERS[new.root][0] >= digits
    if new.root is TypeRoot.DECIMAL:
        return new.precision - new.scale >= digits
    return new.root in floats


# --- one change -----------------------------------------------------------------------------------


def _path(field_name: str | Sequence[str]) -> Path:
    path = (field_name,) if isinstance(field_name, str) else tuple(field_name)
    if not path:
        raise InvalidInput("a column is named by at least one name")
    return path


def _apply(  # noqa: C901
    schema: TableSchema, change: SchemaChange, *, has_snapshots: bool
) -> TableSchema:
    match change:
        case AddColumn():
            return _add(schema, change)
        case DropColumn():
            return _drop(schema, change)
        case RenameColumn():
            return _rename(schema, change)
        case UpdateColumnType():
            return _retype(schema, change, has_snapshots=has_snapshots)
        case UpdateColumnNullability():
            return _renull(schema, change)
        case UpdateColumnComment(path, comment):
            return _edit_field(schema, path, lambda f: replace(f, description=comment))
        case UpdateColumnDefaultValue(path, default):
            return _edit_field(schema, path, lambda f: replace(f, default_value=default))
        case UpdateColumnPosition(move):
            return replace(schema, fields=_move(schema.fields, move))
        case SetOption(key, value):
            return _set_option(schema, key, value, has_snapshots=has_snapshots)
        case RemoveOption(key):
            return _remove_option(schema, key, has_snapshots=has_snapshots)
        case UpdateComment(comment):
            return replace(schema, comment=comment)
        case _:
            raise InvalidInput(f"{change!r} is not a change of a schema")


def _add(schema: TableSchema, change: AddColumn) -> TableSchema:
    if not change.data_type.nullable:
        raise InvalidSchema(
            f"column {_show(change.field_names)} cannot be added as NOT NULL: the rows that are "
            "there have no value for it"
        )
    name = change.field_names[-1]
    new = DataField(0, name, change.data_type, change.comment)
    (column,) = assign_field_ids([new], next_id=schema.highest_field_id + 1)

    def edit(fields: tuple[DataField, ...]) -> tuple[DataField, ...]:
        if _index(fields, name) is not None:
            raise ColumnAlreadyExists(f"column {_show(change.field_names)} exists already")
        if change.move is not None:
            return _move((*fields, column), replace(change.move, field_name=name))
        place = _place_of_new(schema, fields, change.field_names)
        return (*fields[:place], column, *fields[place:])

    return replace(
        schema,
        fields=_edit_container(schema.fields, change.field_names, edit),
        highest_field_id=highest_field_id([column]),
    )


def _place_of_new(schema: TableSchema, fields: tuple[DataField, ...], path: Path) -> int:
    """The end, or, where the table asks for that, before its partition columns."""
    before_partition = schema.options.get("add-column-before-partition", "false").lower() == "true"
    if not before_partition or len(path) > 1:
        return len(fields)
    places = (i for i, field in enumerate(fields) if field.name in schema.partition_keys)
    return next(places, len(fields))


def _drop(schema: TableSchema, change: DropColumn) -> TableSchema:
    path = change.field_names
    _refuse_key(schema, path, "dropped", schema.partition_keys + schema.primary_keys)

    def edit(fields: tuple[DataField, ...]) -> tuple[DataField, ...]:
        kept = tuple(field for field in fields if field.name != path[-1])
        if len(kept) == len(fields):
            raise _not_found(path, fields)
        if not kept:
            raise InvalidSchema(f"column {_show(path)} is the only one left and stays")
        return kept

    return replace(schema, fields=_edit_container(schema.fields, path, edit))


def _rename(schema: TableSchema, change: RenameColumn) -> TableSchema:
    path, new_name = change.field_names, change.new_name
    _refuse_key(schema, path, "renamed", schema.partition_keys)

    def edit(fields: tuple[DataField, ...]) -> tuple[DataField, ...]:
        index = _index(fields, path[-1])
        if index is None:
            raise _not_found(path, fields)
        if new_name != path[-1] and _index(fields, new_name) is not None:
            raise ColumnAlreadyExists(f"column {_show((*path[:-1], new_name))} exists already")
        return (*fields[:index], replace(fields[index], name=new_name), *fields[index + 1 :])

    renamed = replace(schema, fields=_edit_container(schema.fields, path, edit))
    if len(path) > 1:
        return renamed
    return replace(
        renamed,
        primary_keys=_renamed(schema.primary_keys, path[0], new_name),
        options=_rename_in_options(schema.options, path[0], new_name),
    )


def _retype(schema: TableSchema, change: UpdateColumnType, *, has_snapshots: bool) -> TableSchema:
    path = change.field_names
    _refuse_key(schema, path, "given another type", schema.partition_keys + schema.primary_keys)

    def edit(old: DataType) -> DataType:
        new = change.new_data_type
        if change.keep_nullability:
            new = new.with_nullable(old.nullable)
        _check_nullability(schema, path, old, new)
        if not is_widening(old, new):
            raise InvalidSchema(
                f"column {_show(path)} is of type {old} and cannot become {new}: a type can only "
                "widen, so that every value stays what it is; add a column of the new type"
            )
        changes_hash = old.with_nullable(True) != new.with_nullable(True)
        if has_snapshots and changes_hash and path[0] in schema.options.value(BUCKET_KEY):
            raise InvalidSchema(
                f"column {_show(path)} decides the bucket of rows that are there, so its type stays"
            )
        return new

    return replace(schema, fields=_edit_type_at(schema.fields, path, path, edit))


def _renull(schema: TableSchema, change: UpdateColumnNullability) -> TableSchema:
    path = change.field_names
    if change.new_nullability:
        _refuse_key(schema, path, "made nullable", schema.primary_keys)

    def edit(old: DataType) -> DataType:
        new = old.with_nullable(change.new_nullability)
        _check_nullability(schema, path, old, new)
        return new

    return replace(schema, fields=_edit_type_at(schema.fields, path, path, edit))


def _check_nullability(schema: TableSchema, path: Path, old: DataType, new: DataType) -> None:
    if old.nullable and not new.nullable and schema.options.value(NULL_TO_NOT_NULL_DISABLED):
        raise InvalidSchema(
            f"column {_show(path)} may hold nulls and cannot become NOT NULL; if it holds none, "
            f"set {NULL_TO_NOT_NULL_DISABLED.key} to false first"
        )


def _move(fields: tuple[DataField, ...], move: Move) -> tuple[DataField, ...]:
    index = _index(fields, move.field_name)
    if index is None:
        raise _not_found((move.field_name,), fields)
    column = fields[index]
    rest = (*fields[:index], *fields[index + 1 :])
    match move.type:
        case MoveType.FIRST:
            place = 0
        case MoveType.LAST:
            place = len(rest)
        case MoveType.BEFORE | MoveType.AFTER:
            if move.reference_field_name == move.field_name:
                raise InvalidSchema(f"column {move.field_name} cannot be moved next to itself")
            reference = _index(rest, move.reference_field_name)
            if reference is None:
                raise _not_found((str(move.reference_field_name),), fields)
            place = reference + (move.type is MoveType.AFTER)
    return (*rest[:place], column, *rest[place:])


# --- paths ----------------------------------------------------------------------------------------


def _show(path: Path) -> str:
    return ".".join(path)


def _index(fields: Sequence[DataField], name: str | None) -> int | None:
    return next((i for i, field in enumerate(fields) if field.name == name), None)


def _not_found(path: Path, fields: Sequence[DataField]) -> ColumnNotFound:
    names = ", ".join(field.name for field in fields)
    return ColumnNotFound(f"column {_show(path)} does not exist (there are: {names})")


def _refuse_key(schema: TableSchema, path: Path, what: str, keys: Sequence[str]) -> None:
    if len(path) == 1 and path[0] in keys:
        kind = "a partition column" if path[0] in schema.partition_keys else "in the primary key"
        raise InvalidSchema(f"column {path[0]} is {kind} and cannot be {what}")


def _edit_container(
    fields: tuple[DataField, ...],
    path: Path,
    edit: Callable[[tuple[DataField, ...]], tuple[DataField, ...]],
) -> tuple[DataField, ...]:
    """The columns after a change of those among which the last name of the path stands."""
    if len(path) == 1:
        return edit(fields)

    def edit_row(data_type: DataType) -> DataType:
        if not isinstance(data_type, RowType):
            raise ColumnNotFound(f"{_show(path[:-1])} is of type {data_type} and has no fields")
        return RowType(data_type.nullable, edit(data_type.fields))

    return _edit_type_at(fields, path[:-1], path[:-1], edit_row)


def _edit_field(
    schema: TableSchema, path: Path, change: Callable[[DataField], DataField]
) -> TableSchema:
    def edit(fields: tuple[DataField, ...]) -> tuple[DataField, ...]:
        index = _index(fields, path[-1])
        if index is None:
            raise _not_found(path, fields)
        return (*fields[:index], change(fields[index]), *fields[index + 1 :])

    return replace(schema, fields=_edit_container(schema.fields, path, edit))


def _edit_type_at(
    fields: tuple[DataField, ...], rest: Path, path: Path, edit: Callable[[DataType], DataType]
) -> tuple[DataField, ...]:
    """The columns after a change of the type that the path leads to."""
    index = _index(fields, rest[0])
    if index is None:
        raise _not_found(path, fields)
    field = fields[index]
    changed = replace(field, type=_edit_inside(field.type, rest[1:], path, edit))
    return (*fields[:index], changed, *fields[index + 1 :])


def _edit_inside(
    data_type: DataType, rest: Path, path: Path, edit: Callable[[DataType], DataType]
) -> DataType:
    match data_type:
        case _ if not rest:
            return edit(data_type)
        case RowType(nullable, fields):
            return RowType(nullable, _edit_type_at(fields, rest, path, edit))
        case ArrayType(nullable, element) if rest[0] == "element":
            return ArrayType(nullable, _edit_inside(element, rest[1:], path, edit))
        case MapType(nullable, key, value) if rest[0] == "value":
            return MapType(nullable, key, _edit_inside(value, rest[1:], path, edit))
        case _:
            raise ColumnNotFound(
                f"column {_show(path)} does not exist: {data_type} has nothing named {rest[0]}"
            )


# --- options --------------------------------------------------------------------------------------

_FIXED: Final = frozenset({TYPE.key, "primary-key", "partition", "path"})
# Options that decide how the rows that are there are to be understood.
_FIXED_WITH_DATA: Final = frozenset(
    {
        BUCKET.key,
        BUCKET_KEY.key,
        "bucket-function.type",
        "data-file.path-directory",
        "merge-engine",
        "sequence.snapshot-ordering",
        "aggregation.remove-record-on-delete",
        "partial-update.remove-record-on-delete",
        "partial-update.remove-record-on-sequence-group",
        ROWKIND_FIELD.key,
        "primary-key.nullable",
        "dynamic-bucket.initial-buckets",
        "force-lookup",
        "row-tracking.enabled",
        "data-evolution.enabled",
        "index-file-in-data-file-dir",
        "blob-field",
        "blob-descriptor-field",
        "blob-view-field",
        "pk-clustering-override",
    }
)
_ONLY_TO_TRUE: Final = frozenset({"ignore-delete", "ignore-update-before"})
_DV_MODIFIABLE: Final = "deletion-vectors.modifiable"
_KNOWN: Final = {option.key: option for option in KNOWN}


def _set_option(schema: TableSchema, key: str, value: str, *, has_snapshots: bool) -> TableSchema:
    if key in (BUCKET_KEY.key, SEQUENCE_FIELD.key):
        value = ",".join(parse_words(value))  # engines split these at the comma and do not trim
    if key in _FIXED and _is_as_declared(schema, key, value):
        return schema
    options = schema.options.merged({key: value})
    _check_option(schema.options, options, key, has_snapshots=has_snapshots)
    return _with_options(schema, options)


def _remove_option(schema: TableSchema, key: str, *, has_snapshots: bool) -> TableSchema:
    if key not in schema.options:
        return schema
    options = schema.options.merged({key: None})
    _check_option(schema.options, options, key, has_snapshots=has_snapshots)
    return _with_options(schema, options)


def _with_options(schema: TableSchema, options: TableOptions) -> TableSchema:
    if options.value(PRIMARY_KEY_NULLABLE) == schema.options.value(PRIMARY_KEY_NULLABLE):
        return replace(schema, options=options)
    fields = normalise_key_columns(schema.fields, schema.primary_keys, options)
    return replace(schema, options=options, fields=fields)


def _is_as_declared(schema: TableSchema, key: str, value: str) -> bool:
    match key:
        case "primary-key":
            return parse_words(value) == schema.primary_keys
        case "partition":
            return parse_words(value) == schema.partition_keys
        case TYPE.key:
            return value.lower() == schema.options.value(TYPE).lower()
        case _:
            return value == schema.options.get(key)


def _check_option(old: TableOptions, new: TableOptions, key: str, *, has_snapshots: bool) -> None:
    if key in _FIXED:
        raise InvalidSchema(f"option {key} cannot be changed")
    if not has_snapshots or _effective(old, key) == _effective(new, key):
        return
    if key in _FIXED_WITH_DATA:
        raise InvalidSchema(f"option {key} cannot be changed once the table holds data")
    if key in _ONLY_TO_TRUE and _is_true(old, key):
        raise InvalidSchema(f"option {key} cannot go from true to false once the table holds data")
    if key == DELETION_VECTORS.key and not _is_true(old, _DV_MODIFIABLE):
        raise InvalidSchema(
            f"option {key} cannot be changed once the table holds data: rows could appear twice "
            f"until a full compaction; set {_DV_MODIFIABLE} to true first if you are sure"
        )


def _effective(options: TableOptions, key: str) -> object:
    option = _KNOWN.get(key)
    return options.get(key) if option is None else options.value(option)


def _is_true(options: TableOptions, key: str) -> bool:
    try:
        return parse_bool(options.get(key, "false"))
    except ValueError as error:
        raise InvalidSchema(f"option {key}={options[key]}: {error}") from error


# Options whose value is a column or a list of columns.
_COLUMN_LISTS: Final = frozenset(
    {
        BUCKET_KEY.key,
        SEQUENCE_FIELD.key,
        ROWKIND_FIELD.key,
        "partial-update.remove-record-on-sequence-group",
        "record-level.time-field",
        "clustering.columns",
    }
)


def _rename_in_options(options: TableOptions, old: str, new: str) -> TableOptions:
    renamed = {}
    for key, value in options.items():
        holds_columns = (
            key in _COLUMN_LISTS
            or (key.startswith("file-index.") and key.endswith(".columns"))
            or (key.startswith("fields.") and key.endswith(".sequence-group"))
        )
        names = _renamed(parse_words(value), old, new) if holds_columns else ()
        changed = holds_columns and names != parse_words(value)
        renamed[_rename_in_key(key, old, new)] = ",".join(names) if changed else value
    return TableOptions(renamed)


def _rename_in_key(key: str, old: str, new: str) -> str:
    if not key.startswith("fields."):
        return key
    rest = key.removeprefix("fields.")
    if rest.startswith(f"{old}."):
        return f"fields.{new}{rest.removeprefix(old)}"
    if rest.endswith(".sequence-group"):  # ordered by several columns
        names = parse_words(rest.removesuffix(".sequence-group"))
        if old in names:
            return f"fields.{','.join(_renamed(names, old, new))}.sequence-group"
    return key


def _renamed(names: tuple[str, ...], old: str, new: str) -> tuple[str, ...]:
    return tuple(new if name == old else name for name in names)

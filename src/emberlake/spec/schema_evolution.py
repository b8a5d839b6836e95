"""Apply changes to a schema.

Spec: "Schema evolution". Data files are never rewritten for a change, so a change is only allowed
if every value in the table stays the same: columns are added as nullable, types only widen, and
whatever decides where rows are stored (keys, buckets, merge engine) is fixed once there is data.
"""

from collections.abc import Sequence
from dataclasses import replace

from emberlake.errors import ColumnAlreadyExists, InvalidInput, InvalidSchema
from emberlake.options import ADD_COLUMN_BEFORE_PARTITION, BUCKET_KEY, NULL_TO_NOT_NULL_DISABLED
from emberlake.spec.field_ids import assign_field_ids, highest_field_id
from emberlake.spec.field_paths import (
    Fields,
    edit_column,
    edit_siblings,
    edit_type,
    format_path,
    position_of,
)
from emberlake.spec.option_changes import remove_option, set_option
from emberlake.spec.option_columns import is_compared, rename_in, rename_in_options
from emberlake.spec.rules import find_problems
from emberlake.spec.schema import SCHEMA_VERSION, TableSchema
from emberlake.spec.schema_change import (
    AddColumn,
    DropColumn,
    Move,
    MoveType,
    Path,
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
from emberlake.spec.support import check_alterable, check_kind
from emberlake.spec.widening import can_become, is_number_as_text
from emberlake.types import DataField, DataType


def apply_changes(
    schema: TableSchema,
    changes: Sequence[SchemaChange],
    *,
    has_snapshots: bool,
    time_millis: int,
    for_others: bool = False,
) -> TableSchema:
    """The next schema of a table; the same one when the changes change nothing.

    Args:
        schema: The latest schema of the table.
        changes: Applied one after the other.
        has_snapshots: Whether the table holds, or ever held, data.
        time_millis: When the change is made.
        for_others: Whether other engines use the table, which may do more than emberlake.

    Raises:
        ColumnNotFound: a change names a column that does not exist.
        ColumnAlreadyExists: a column is added or renamed to a name that is taken.
        InvalidSchema: a change is not allowed, or its result would not be.
        Unsupported: emberlake could no longer use the table.
    """
    changed = schema
    for change in changes:
        changed = _apply(changed, change, has_snapshots=has_snapshots)
    if changed == schema:
        return schema
    known = set(find_problems(schema))  # old problems do not block a change
    problems = [problem for problem in find_problems(changed) if problem not in known]
    if problems:
        raise InvalidSchema("the table cannot be changed: " + "; ".join(problems))
    if for_others:
        check_kind(changed)
    else:
        check_alterable(schema, changed)
    return replace(changed, id=schema.id + 1, time_millis=time_millis, version=SCHEMA_VERSION)


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
            return _change_type(schema, change, has_snapshots=has_snapshots)
        case UpdateColumnNullability():
            return _change_nullability(schema, change)
        case UpdateColumnComment(path, comment):
            fields = edit_column(schema.fields, path, lambda f: replace(f, description=comment))
            return replace(schema, fields=fields)
        case UpdateColumnDefaultValue(path, default):
            fields = edit_column(schema.fields, path, lambda f: replace(f, default_value=default))
            return replace(schema, fields=fields)
        case UpdateColumnPosition(move):
            return replace(schema, fields=_move(schema.fields, move))
        case SetOption(key, value):
            return set_option(schema, key, value, has_snapshots=has_snapshots)
        case RemoveOption(key):
            return remove_option(schema, key, has_snapshots=has_snapshots)
        case UpdateComment(comment):
            return replace(schema, comment=comment)
        case _:
            raise InvalidInput(f"{change!r} is not a change of a schema")


# --- columns --------------------------------------------------------------------------------------


def _add(schema: TableSchema, change: AddColumn) -> TableSchema:
    path = change.field_names
    if not change.data_type.nullable:
        raise InvalidSchema(
            f"column {format_path(path)} cannot be added as NOT NULL: existing rows have no value "
            "for it"
        )
    new = DataField(0, path[-1], change.data_type, change.comment)
    (column,) = assign_field_ids([new], next_id=schema.highest_field_id + 1)

    def edit(fields: Fields) -> Fields:
        _refuse_taken(fields, path)
        if change.move is not None:
            return _move((*fields, column), replace(change.move, field_name=column.name))
        position = _position_of_new(schema, fields, path)
        return (*fields[:position], column, *fields[position:])

    return replace(
        schema,
        fields=edit_siblings(schema.fields, path, edit),
        highest_field_id=highest_field_id([column]),
    )


def _position_of_new(schema: TableSchema, fields: Fields, path: Path) -> int:
    """The end, or before the partition columns if the table's options say so."""
    before_partition = schema.options.value(ADD_COLUMN_BEFORE_PARTITION)
    if not before_partition or len(path) > 1:
        return len(fields)
    positions = (i for i, field in enumerate(fields) if field.name in schema.partition_keys)
    return next(positions, len(fields))


def _drop(schema: TableSchema, change: DropColumn) -> TableSchema:
    path = change.field_names
    _refuse_key(schema, path, "dropped", schema.partition_keys + schema.primary_keys)

    def edit(fields: Fields) -> Fields:
        position = position_of(fields, path)
        if len(fields) == 1:
            raise InvalidSchema(
                f"column {format_path(path)} is the only one left and cannot be dropped"
            )
        return (*fields[:position], *fields[position + 1 :])

    return replace(schema, fields=edit_siblings(schema.fields, path, edit))


def _rename(schema: TableSchema, change: RenameColumn) -> TableSchema:
    path, new_name = change.field_names, change.new_name
    _refuse_key(schema, path, "renamed", schema.partition_keys)

    def edit(fields: Fields) -> Fields:
        at = position_of(fields, path)
        if new_name != path[-1]:
            _refuse_taken(fields, (*path[:-1], new_name))
        return (*fields[:at], replace(fields[at], name=new_name), *fields[at + 1 :])

    renamed = replace(schema, fields=edit_siblings(schema.fields, path, edit))
    if len(path) > 1:
        return renamed
    return replace(
        renamed,
        primary_keys=rename_in(schema.primary_keys, path[0], new_name),
        options=rename_in_options(schema.options, path[0], new_name),
    )


def _change_type(
    schema: TableSchema, change: UpdateColumnType, *, has_snapshots: bool
) -> TableSchema:
    path = change.field_names
    _refuse_key(schema, path, "given another type", schema.partition_keys + schema.primary_keys)

    def edit(old: DataType) -> DataType:
        new = change.new_data_type
        if change.keep_nullability:
            new = new.with_nullable(old.nullable)
        _check_nullability(schema, path, old, new)
        if not can_become(old, new):
            raise InvalidSchema(
                f"column {format_path(path)} is of type {old} and cannot become {new}: a type can "
                "only widen, so that no value changes; add a column of the new type"
            )
        decides = len(path) == 1 and is_compared(schema.options, path[0])
        if decides and is_number_as_text(old, new):
            raise InvalidSchema(
                f"column {path[0]} decides between the changes of a key, and as text its values "
                "would have another order; add a column of the new type"
            )
        changes_hash = old.with_nullable(True) != new.with_nullable(True)
        if has_snapshots and changes_hash and path[0] in schema.options.value(BUCKET_KEY):
            raise InvalidSchema(
                f"column {format_path(path)} decides the bucket of existing rows, so its type "
                "cannot change"
            )
        return new

    return replace(schema, fields=edit_type(schema.fields, path, edit))


def _change_nullability(schema: TableSchema, change: UpdateColumnNullability) -> TableSchema:
    path = change.field_names
    if change.new_nullability:
        _refuse_key(schema, path, "made nullable", schema.primary_keys)

    def edit(old: DataType) -> DataType:
        new = old.with_nullable(change.new_nullability)
        _check_nullability(schema, path, old, new)
        return new

    return replace(schema, fields=edit_type(schema.fields, path, edit))


def _check_nullability(schema: TableSchema, path: Path, old: DataType, new: DataType) -> None:
    if old.nullable and not new.nullable and schema.options.value(NULL_TO_NOT_NULL_DISABLED):
        raise InvalidSchema(
            f"column {format_path(path)} may hold nulls and cannot become NOT NULL; if it holds "
            f"none, set {NULL_TO_NOT_NULL_DISABLED.key} to false first"
        )


def _refuse_taken(fields: Fields, path: Path) -> None:
    if any(field.name == path[-1] for field in fields):
        name = format_path(path)
        raise ColumnAlreadyExists(f"column {name} already exists", column=name)


def _refuse_key(schema: TableSchema, path: Path, what: str, keys: Sequence[str]) -> None:
    if len(path) == 1 and path[0] in keys:
        kind = "a partition column" if path[0] in schema.partition_keys else "in the primary key"
        raise InvalidSchema(f"column {path[0]} is {kind} and cannot be {what}")


def _move(fields: Fields, move: Move) -> Fields:
    start = position_of(fields, (move.field_name,))
    rest = (*fields[:start], *fields[start + 1 :])
    match move.type:
        case MoveType.FIRST:
            position = 0
        case MoveType.LAST:
            position = len(rest)
        case MoveType.BEFORE | MoveType.AFTER:
            if move.reference_field_name == move.field_name:
                raise InvalidSchema(f"column {move.field_name} cannot be moved next to itself")
            reference = position_of(rest, (str(move.reference_field_name),))
            position = reference + (move.type is MoveType.AFTER)
    return (*rest[:position], fields[start], *rest[position:])

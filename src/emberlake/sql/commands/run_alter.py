"""Carry out ALTER TABLE: changes of the schema, partitions and tags."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from emberlake.errors import ColumnNotFound, InvalidInput, InvalidSchema, NotFound, Unsupported
from emberlake.options import PARTITION_DEFAULT_NAME
from emberlake.spec.partition_match import partitions_of
from emberlake.spec.schema_change import Move, SchemaChange
from emberlake.sql.commands.context import Session
from emberlake.sql.commands.run_tables import identifier_of
from emberlake.sql.commands.values import (
    AddColumns,
    AddPartitions,
    AlterColumns,
    AnalyzeTable,
    Column,
    ColumnChange,
    CreateTag,
    DeleteTag,
    DropColumns,
    DropPartitions,
    Path,
    RenameColumn,
    RenameTable,
    RenameTag,
    SetTableProperties,
    UnsetTableProperties,
)
from emberlake.sql.names import TableName
from emberlake.table import Table
from emberlake.types import ArrayType, DataField, DataType, MapType, RowType

_COMMENT: Final = "comment"


# --- columns --------------------------------------------------------------------------------------


def add_columns(command: AddColumns, session: Session) -> None:
    """Carry out ADD COLUMNS."""
    fields = session.table(command.table).fields
    _alter(session, command.table, [_added(column, fields) for column in command.columns])


def drop_columns(command: DropColumns, session: Session) -> None:
    """Carry out DROP COLUMNS."""
    fields = session.table(command.table).fields
    changes = []
    for column in command.columns:
        try:
            changes.append(SchemaChange.drop_column(column_path(fields, column)))
        except ColumnNotFound:
            if not command.if_exists:
                raise
    _alter(session, command.table, changes)


def rename_column(command: RenameColumn, session: Session) -> None:
    """Carry out RENAME COLUMN."""
    fields = session.table(command.table).fields
    path = column_path(fields, command.column)
    taken = {f.name.lower() for f in _siblings(fields, path)} - {path[-1].lower()}
    if command.new_name.lower() in taken:
        raise InvalidSchema(
            f"[FIELD_ALREADY_EXISTS] column {'.'.join(path)} cannot be renamed: column "
            f"{command.new_name} already exists"
        )
    _alter(session, command.table, [SchemaChange.rename_column(path, command.new_name)])


def alter_columns(command: AlterColumns, session: Session) -> None:
    """Carry out ALTER COLUMN."""
    fields = session.table(command.table).fields
    changes = [change for column in command.changes for change in _changes(column, fields)]
    _alter(session, command.table, changes)


def _changes(column: ColumnChange, fields: Sequence[DataField]) -> Iterator[SchemaChange]:
    path = column_path(fields, column.column)
    if column.type is not None:
        yield SchemaChange.update_column_type(path, column.type, keep_nullability=True)
    if column.nullable is not None:
        yield SchemaChange.update_column_nullability(path, column.nullable)
    if column.comment is not None:
        yield SchemaChange.update_column_comment(path, column.comment)
    if column.default is not None or column.drops_default:
        yield SchemaChange.update_column_default_value(path, column.default)
    if column.is_first or column.after is not None:
        if len(path) > 1:
            raise Unsupported(f"{'.'.join(path)}: fields of a struct cannot be moved")
        if column.is_first and fields[0].name == path[0]:
            raise InvalidSchema(f"column {path[0]} is the first one already")
        yield SchemaChange.update_column_position(_move(column, path, fields))


def _added(column: Column, fields: Sequence[DataField]) -> SchemaChange:
    if column.default is not None:
        raise InvalidSchema(
            f"column {'.'.join(column.path)} cannot be added with a default: add it, then ALTER "
            "COLUMN ... SET DEFAULT ..., which applies to rows written from then on"
        )
    parents = column_path(fields, column.path[:-1]) if len(column.path) > 1 else ()
    path = (*parents, column.path[-1])
    siblings = _siblings(fields, path)
    if column.path[-1].lower() in {f.name.lower() for f in siblings}:
        raise InvalidSchema(f"[FIELD_ALREADY_EXISTS] column {'.'.join(column.path)} already exists")
    move = _move(column, path, siblings) if column.is_first or column.after else None
    return SchemaChange.add_column(path, column.type, column.comment, move)


def _move(said: Column | ColumnChange, path: Path, siblings: Sequence[DataField]) -> Move:
    if said.after is None:
        return Move.first(path[-1])
    return Move.after(path[-1], _found(siblings, said.after).name)


def column_path(fields: Sequence[DataField], path: Path) -> Path:
    """The path of a column as the table spells it; statements may use any letter case.

    Raises:
        ColumnNotFound: there is no such column.
    """
    name, *rest = path
    field = _found(fields, name)
    return (field.name, *_inner_path(field.type, tuple(rest), path))


def _inner_path(data_type: DataType, rest: Path, path: Path) -> Path:
    if not rest:
        return ()
    word = rest[0].lower()
    match data_type:
        case RowType(fields=fields):
            return column_path(fields, rest)
        case ArrayType(element=inner) if word == "element":
            return (word, *_inner_path(inner, rest[1:], path))
        case MapType(key=inner) if word == "key":
            return (word, *_inner_path(inner, rest[1:], path))
        case MapType(value=inner) if word == "value":
            return (word, *_inner_path(inner, rest[1:], path))
        case _:
            raise ColumnNotFound(f"there is no column {'.'.join(path)}", column=".".join(path))


def _siblings(fields: Sequence[DataField], path: Path) -> Sequence[DataField]:
    """The fields beside the one that a path leads to."""
    if len(path) == 1:
        return fields
    data_type: DataType = _found(fields, path[0]).type
    for word in path[1:-1]:
        match data_type:
            case RowType(fields=inner):
                data_type = _found(inner, word).type
            case ArrayType(element=inner_type) | MapType(value=inner_type):
                data_type = inner_type
            case _:
                return ()
    return data_type.fields if isinstance(data_type, RowType) else ()


def _found(fields: Sequence[DataField], name: str) -> DataField:
    for field in fields:
        if field.name.lower() == name.lower():
            return field
    raise ColumnNotFound(
        f"[UNRESOLVED_COLUMN.WITH_SUGGESTION] there is no column {name}; there are "
        + ", ".join(f.name for f in fields),
        column=name,
    )


# --- properties -----------------------------------------------------------------------------------


def set_properties(command: SetTableProperties, session: Session) -> None:
    """Carry out SET TBLPROPERTIES, and COMMENT ON TABLE."""
    changes = [
        SchemaChange.update_comment(value or None)
        if key == _COMMENT
        else SchemaChange.set_option(key, value)
        for key, value in command.properties
    ]
    _alter(session, command.table, changes)


def unset_properties(command: UnsetTableProperties, session: Session) -> None:
    """Carry out UNSET TBLPROPERTIES."""
    # An unknown key is not an error, with or without IF EXISTS, as in Java.
    changes = [
        SchemaChange.update_comment(None) if key == _COMMENT else SchemaChange.remove_option(key)
        for key in command.keys
    ]
    _alter(session, command.table, changes)


def rename_table(command: RenameTable, session: Session) -> None:
    """Carry out RENAME TO."""
    source = identifier_of(session, command.table)
    target = command.new_name
    if len(target.parts) == 1:  # in the database of the old one, whatever the current one is
        target = replace(target, parts=(source.database, *target.parts))
    session.table(command.table)
    session.catalog.rename_table(source, identifier_of(session, target))


def _alter(session: Session, name: TableName, changes: Sequence[SchemaChange]) -> None:
    session.catalog.alter_table(identifier_of(session, name), changes)


# --- partitions -----------------------------------------------------------------------------------


def partition_values(table: Table, spec: Sequence[tuple[str, object]]) -> dict[str, object]:
    """The values of partition columns, by their names in the table.

    Raises:
        NotFound: the table is not partitioned by one of these columns.
        InvalidInput: a value does not fit its column.
    """
    names = {name.lower(): name for name in table.partition_keys}
    unknown = [name for name, _ in spec if name.lower() not in names]
    if unknown:
        by = ", ".join(table.partition_keys)
        raise NotFound(
            f"[PARTITIONS_NOT_FOUND] {table.identifier} is not partitioned by {', '.join(unknown)}"
            + (f", but by {by}" if by else "; it has no partitions")
        )
    null = table.options.value(PARTITION_DEFAULT_NAME)
    values = {names[name.lower()]: null if value is None else value for name, value in spec}
    partitions_of(table.table_schema, values)
    return dict(values)


def add_partitions(command: AddPartitions, session: Session) -> None:
    """Carry out ADD PARTITION."""
    # A partition exists once it has rows. Java accepts the statement and adds nothing.
    table = session.table(command.table)
    for spec in command.partitions:
        partition_values(table, spec)


def drop_partitions(command: DropPartitions, session: Session) -> None:
    """Carry out DROP PARTITION."""
    table = session.table(command.table)
    found: list[dict[str, object]] = []
    for spec in command.partitions:
        values = partition_values(table, spec)
        _refuse_gaps(table, values)
        is_whole = len(values) == len(table.partition_keys)
        if not is_whole or has_partition(session, table, values):
            found.append(values)
        elif not command.if_exists:
            raise NotFound(
                f"[PARTITIONS_NOT_FOUND] {table.identifier} has no partition "
                + ", ".join(f"{name} = {value}" for name, value in values.items())
            )
    if found:
        session.catalog.drop_partitions(table.identifier, found)


def _refuse_gaps(table: Table, values: Mapping[str, object]) -> None:
    """Refuse values of partition columns that are not the first ones, as Paimon's connector."""
    first = table.partition_keys[: len(values)]
    if set(first) != set(values):
        raise InvalidInput(
            f"DROP PARTITION takes the first partition columns of {table.identifier}, which is "
            f"partitioned by {', '.join(table.partition_keys)}: give values for "
            f"{', '.join(first)}, or use DELETE"
        )


def has_partition(session: Session, table: Table, values: dict[str, object]) -> bool:
    """Whether the table has a partition with these values."""
    matches = partitions_of(table.table_schema, values).values
    listed = session.catalog.list_partitions_paged(table.identifier).elements
    schema = table.table_schema
    return any(
        set(matches) <= set(partitions_of(schema, partition.spec).values) for partition in listed
    )


# --- tags -----------------------------------------------------------------------------------------


def create_tag(command: CreateTag, session: Session) -> None:
    """Carry out CREATE TAG and REPLACE TAG."""
    table = session.table(command.table)
    is_there = command.tag in table.list_tags()
    if command.or_replace and is_there:  # REPLACE TAG creates one as well, as in Java
        table.replace_tag(command.tag, command.snapshot_id, command.time_retained)
        return
    if command.if_not_exists and is_there:
        return
    if not command.tag.strip():
        raise InvalidInput("the tag name is empty")
    table.create_tag(command.tag, command.snapshot_id, time_retained=command.time_retained)


def rename_tag(command: RenameTag, session: Session) -> None:
    """Carry out RENAME TAG."""
    session.table(command.table).rename_tag(command.tag, command.new_tag)


def delete_tag(command: DeleteTag, session: Session) -> None:
    """Carry out DELETE TAG."""
    table = session.table(command.table)
    for tag in command.tag.split(","):  # several in one name, as in Java
        table.delete_tag(tag.strip())


# --- statistics -----------------------------------------------------------------------------------


def analyze_table(command: AnalyzeTable, session: Session) -> None:
    """Carry out ANALYZE TABLE."""
    table = session.table(command.table)
    if command.is_all:
        table.analyze(table.field_names)
        return
    table.analyze([column_path(table.fields, path)[0] for path in command.columns])

"""ALTER TABLE and COMMENT ON, from text."""

from dataclasses import replace

from emberlake.errors import InvalidSql, Unsupported
from emberlake.sql.commands.clauses import (
    accept_if_exists,
    accept_if_not_exists,
    read_column,
    read_columns,
    read_keys,
    read_names,
    read_new_partitions,
    read_partitions,
    read_properties,
    refuse_purge,
)
from emberlake.sql.commands.types import read_type
from emberlake.sql.commands.values import (
    AddColumns,
    AddPartitions,
    AlterColumns,
    ColumnChange,
    CreateTag,
    DeleteTag,
    DropColumns,
    DropPartitions,
    RenameColumn,
    RenameTable,
    RenameTag,
    SetTableProperties,
    UnsetTableProperties,
)
from emberlake.sql.commands.words import is_text, read_integer, take_one_of
from emberlake.sql.cursor import Cursor
from emberlake.sql.names import TableName
from emberlake.sql.statements import Command

_CHANGES = ("TYPE", "COMMENT", "SET", "DROP", "FIRST", "AFTER")
_UNITS = {"DAYS": "d", "DAY": "d", "HOURS": "h", "HOUR": "h", "MINUTES": "min", "MINUTE": "min"}


def parse_alter(cursor: Cursor) -> Command | None:
    """After ALTER: a table; None for everything else."""
    if take_one_of(cursor, "DATABASE", "SCHEMA", "NAMESPACE"):
        raise Unsupported("ALTER DATABASE is not supported: a database has no properties to alter")
    if not cursor.take("TABLE"):
        return None
    table = cursor.table()
    command = _parse_action(cursor, table)
    cursor.expect_end()
    return command


def parse_comment_on(cursor: Cursor) -> Command | None:
    """After COMMENT ON: a table or a column."""
    if cursor.take("COLUMN"):
        *parts, column = cursor.path()
        cursor.expect("IS")
        comment = _comment(cursor)
        cursor.expect_end()
        table = TableName(tuple(parts))
        return AlterColumns(table, (ColumnChange((column,), comment=comment),))
    if not cursor.take("TABLE"):
        raise Unsupported("only tables and columns have comments: COMMENT ON TABLE db.t IS '...'")
    table = cursor.table()
    cursor.expect("IS")
    comment = _comment(cursor)
    cursor.expect_end()
    return SetTableProperties(table, (("comment", comment),))


def _comment(cursor: Cursor) -> str:
    return "" if cursor.take("NULL") else cursor.string()


def _parse_action(cursor: Cursor, table: TableName) -> Command:  # noqa: C901
    match cursor.name().upper():
        case "ADD":
            return _parse_add(cursor, table)
        case "DROP":
            return _parse_drop(cursor, table)
        case "RENAME":
            return _parse_rename(cursor, table)
        case "ALTER":
            cursor.take("COLUMN")
            return _parse_columns(cursor, table)
        case "CHANGE":
            cursor.take("COLUMN")
            return _parse_hive_change(cursor, table)
        case "SET" if cursor.take("TBLPROPERTIES"):
            return SetTableProperties(table, read_properties(cursor))
        case "UNSET" if cursor.take("TBLPROPERTIES"):
            if_exists = accept_if_exists(cursor)
            return UnsetTableProperties(table, read_keys(cursor), if_exists)
        case "CREATE":
            return _parse_create_tag(cursor, table)
        case "REPLACE" if cursor.take("TAG"):
            return replace(_parse_tag(cursor, table), or_replace=True)
        case "DELETE":
            cursor.expect("TAG")
            accept_if_exists(cursor)
            return DeleteTag(table, _tag_name(cursor))
        case action:
            raise Unsupported(
                f"ALTER TABLE ... {action} {cursor.rest()[:40]} is not supported; supported are "
                "ADD, DROP, RENAME and ALTER COLUMN, RENAME TO, SET and UNSET TBLPROPERTIES, DROP "
                "PARTITION, and CREATE, REPLACE, RENAME and DELETE TAG"
            )


def _parse_add(cursor: Cursor, table: TableName) -> Command:
    if cursor.take("COLUMN") or cursor.take("COLUMNS"):
        if cursor.is_at("("):
            return AddColumns(table, read_columns(cursor))
        columns = [read_column(cursor)]
        while cursor.take(","):
            columns.append(read_column(cursor))
        return AddColumns(table, tuple(columns))
    accept_if_not_exists(cursor)
    if cursor.is_at("PARTITION"):
        return AddPartitions(table, read_new_partitions(cursor))
    raise Unsupported(
        f"ALTER TABLE ... ADD {cursor.rest()[:40]} is not supported; use ADD COLUMN or ADD COLUMNS"
    )


def _parse_drop(cursor: Cursor, table: TableName) -> Command:
    if cursor.take("COLUMN") or cursor.take("COLUMNS"):
        if_exists = accept_if_exists(cursor)
        return DropColumns(table, read_names(cursor), if_exists)
    if_exists = accept_if_exists(cursor)
    partitions = read_partitions(cursor)
    refuse_purge(cursor)
    return DropPartitions(table, partitions, if_exists)


def _parse_rename(cursor: Cursor, table: TableName) -> Command:
    if cursor.take("COLUMN"):
        column = cursor.path()
        cursor.expect("TO")
        return RenameColumn(table, column, cursor.name())
    if cursor.take("TAG"):
        tag = _tag_name(cursor)
        cursor.expect("TO")
        return RenameTag(table, tag, _tag_name(cursor))
    cursor.expect("TO")
    return RenameTable(table, cursor.table())


def _parse_columns(cursor: Cursor, table: TableName) -> AlterColumns:
    """``a TYPE BIGINT, b COMMENT '...'``: one change of each column, as in Spark."""
    changes = [_parse_change(cursor, ColumnChange(cursor.path()))]
    while cursor.take(","):
        changes.append(_parse_change(cursor, ColumnChange(cursor.path())))
    return AlterColumns(table, tuple(changes))


def _parse_change(cursor: Cursor, column: ColumnChange) -> ColumnChange:
    changed = column
    if cursor.take("TYPE"):
        changed = replace(column, type=read_type(cursor))
    elif cursor.take("COMMENT"):
        changed = replace(column, comment=cursor.string())
    elif cursor.take("SET", "NOT", "NULL"):
        changed = replace(column, nullable=False)
    elif cursor.take("DROP", "NOT", "NULL"):
        changed = replace(column, nullable=True)
    elif cursor.take("SET", "DEFAULT"):
        changed = replace(column, default=cursor.expression())
    elif cursor.take("DROP", "DEFAULT"):
        changed = replace(column, drops_default=True)
    elif cursor.take("FIRST"):
        changed = replace(column, is_first=True)
    elif cursor.take("AFTER"):
        changed = replace(column, after=cursor.name())
    else:
        cursor.fail(
            "expected TYPE, COMMENT, SET or DROP NOT NULL, SET or DROP DEFAULT, FIRST or AFTER"
        )
    return changed


def _parse_hive_change(cursor: Cursor, table: TableName) -> AlterColumns:
    """Hive's form repeats the name and the type: CHANGE COLUMN a a BIGINT COMMENT '...'."""
    start = cursor.at
    change = ColumnChange(cursor.path())
    if cursor.token.is_word(*_CHANGES):
        cursor.at = start
        return _parse_columns(cursor, table)
    column = read_column(cursor)
    if not column.type.nullable or column.default is not None:
        raise InvalidSql(
            "CHANGE COLUMN takes no NOT NULL and no DEFAULT: use ALTER COLUMN a SET NOT NULL, or "
            "SET DEFAULT"
        )
    if column.path[-1].lower() != change.column[-1].lower():
        raise InvalidSql("CHANGE COLUMN cannot rename a column: use RENAME COLUMN a TO b")
    changed = replace(
        change,
        type=column.type,
        comment=column.comment,
        is_first=column.is_first,
        after=column.after,
    )
    return AlterColumns(table, (changed,))


def _parse_create_tag(cursor: Cursor, table: TableName) -> CreateTag:
    or_replace = cursor.take("OR", "REPLACE")
    cursor.expect("TAG")
    return replace(_parse_tag(cursor, table), or_replace=or_replace)


def _parse_tag(cursor: Cursor, table: TableName) -> CreateTag:
    if_not_exists = accept_if_not_exists(cursor)
    tag = _tag_name(cursor)
    snapshot_id = retained = None
    if cursor.take("AS", "OF", "VERSION"):
        snapshot_id = read_integer(cursor)
    if cursor.take("RETAIN"):
        number = read_integer(cursor)
        unit = take_one_of(cursor, *_UNITS) or cursor.fail("expected DAYS, HOURS or MINUTES")
        retained = f"{number} {_UNITS[unit]}"
    return CreateTag(table, tag, snapshot_id, retained, if_not_exists)


def _tag_name(cursor: Cursor) -> str:
    return cursor.string() if is_text(cursor) else cursor.name()

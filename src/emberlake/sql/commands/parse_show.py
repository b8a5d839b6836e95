"""SHOW, DESCRIBE and ANALYZE, from text."""

from emberlake.errors import InvalidSql, Unsupported
from emberlake.sql.commands.clauses import read_key, read_partition
from emberlake.sql.commands.values import (
    AnalyzeTable,
    DescribeDatabase,
    DescribeTable,
    ShowColumns,
    ShowCreateTable,
    ShowCurrentNamespace,
    ShowDatabases,
    ShowPartitions,
    ShowTableProperties,
    ShowTables,
    ShowTags,
    ShowViews,
)
from emberlake.sql.commands.words import is_text, take_one_of
from emberlake.sql.cursor import Cursor
from emberlake.sql.names import TableName
from emberlake.sql.statements import Command

_DATABASES = ("DATABASES", "SCHEMAS", "NAMESPACES")
_DATABASE = ("DATABASE", "SCHEMA", "NAMESPACE")
_QUERY = ("QUERY", "SELECT", "WITH", "VALUES", "FROM", "(")


def parse_show(cursor: Cursor) -> Command | None:
    """After SHOW; None if the statement is not about the lake's tables."""
    command = _parse_show(cursor)
    if command is not None:
        cursor.expect_end()
    return command


def _parse_show(cursor: Cursor) -> Command | None:  # noqa: C901
    if take_one_of(cursor, *_DATABASES):
        within = _read_in(cursor)
        return ShowDatabases(_read_pattern(cursor), within)
    if cursor.take("TABLES"):
        return ShowTables(_read_in(cursor), _read_pattern(cursor))
    if cursor.take("TABLE", "EXTENDED"):
        return _parse_extended(cursor)
    if cursor.take("VIEWS"):
        return ShowViews(_read_in(cursor), _read_pattern(cursor))
    if cursor.take("PARTITIONS"):
        name = cursor.table()
        return ShowPartitions(name, read_partition(cursor) if cursor.take("PARTITION") else ())
    if cursor.take("TAGS"):
        return ShowTags(cursor.table())
    if cursor.take("CREATE", "TABLE"):
        name = cursor.table()
        if cursor.is_at("AS", "SERDE"):
            raise Unsupported("SHOW CREATE TABLE ... AS SERDE is for Hive tables")
        return ShowCreateTable(name)
    if cursor.take("TBLPROPERTIES"):
        return _parse_properties(cursor)
    if cursor.take("COLUMNS"):
        return _parse_columns(cursor)
    if cursor.is_at("PROCEDURES"):
        raise Unsupported("procedures cannot be listed; CALL of an unknown one names them all")
    if cursor.take("CURRENT"):
        take_one_of(cursor, *_DATABASE)
        return ShowCurrentNamespace()
    return None


def parse_describe(cursor: Cursor) -> Command | None:
    """After DESCRIBE or DESC; None for a query or a function."""
    if any(cursor.is_at(word) for word in _QUERY) or cursor.is_at("FUNCTION"):
        return None
    if take_one_of(cursor, *_DATABASE):
        is_extended = cursor.take("EXTENDED")
        name = cursor.table()
        cursor.expect_end()
        return DescribeDatabase(name, is_extended)
    cursor.take("TABLE")
    is_extended = take_one_of(cursor, "EXTENDED", "FORMATTED") is not None
    name = cursor.table()
    if cursor.take("PARTITION"):
        partition = read_partition(cursor)
        cursor.expect_end()
        return DescribeTable(name, is_extended, partition=partition)
    column = None if cursor.is_done else cursor.path()
    cursor.expect_end()
    return DescribeTable(name, is_extended, column)


def parse_analyze(cursor: Cursor) -> AnalyzeTable:
    """After ANALYZE."""
    cursor.expect("TABLE")
    table = cursor.table()
    if cursor.is_at("PARTITION"):
        raise Unsupported("ANALYZE of one partition is not supported: use the whole table")
    cursor.expect("COMPUTE", "STATISTICS")
    if cursor.take("NOSCAN"):
        raise Unsupported("NOSCAN is not supported: rows are counted by reading them")
    if not cursor.take("FOR"):
        cursor.expect_end()
        return AnalyzeTable(table)
    if cursor.take("ALL"):
        cursor.expect("COLUMNS")
        cursor.expect_end()
        return AnalyzeTable(table, is_all=True)
    cursor.expect("COLUMNS")
    columns = [cursor.path()]
    while cursor.take(","):
        columns.append(cursor.path())
    cursor.expect_end()
    return AnalyzeTable(table, tuple(columns))


def _parse_extended(cursor: Cursor) -> ShowTables:
    database = _read_in(cursor)
    pattern = _read_pattern(cursor)
    if pattern is None:
        raise InvalidSql("SHOW TABLE EXTENDED needs a pattern: LIKE 'orders*'")
    partition = read_partition(cursor) if cursor.take("PARTITION") else None
    return ShowTables(database, pattern, is_extended=True, partition=partition)


def _parse_properties(cursor: Cursor) -> ShowTableProperties:
    name = cursor.table()
    key = None
    if cursor.take("("):
        key = read_key(cursor)
        cursor.expect(")")
    return ShowTableProperties(name, key)


def _parse_columns(cursor: Cursor) -> ShowColumns:
    table = _read_in(cursor) or cursor.fail("expected FROM or IN, and the name of a table")
    database = _read_in(cursor)
    if database is None:
        return ShowColumns(table)
    if table.parts[:-1] not in ((), database.parts):
        raise InvalidSql(f"SHOW COLUMNS names two databases, that of {table} and {database}")
    return ShowColumns(TableName((*database.parts, table.last)))


def _read_in(cursor: Cursor) -> TableName | None:
    return cursor.table() if take_one_of(cursor, "FROM", "IN") else None


def _read_pattern(cursor: Cursor) -> str | None:
    if cursor.take("LIKE"):
        return cursor.string()
    return cursor.string() if is_text(cursor) else None

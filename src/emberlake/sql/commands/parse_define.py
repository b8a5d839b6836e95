"""CREATE, REPLACE, DROP, USE: statements about whole databases and tables, from text."""

from dataclasses import replace

from emberlake.errors import InvalidSchema, InvalidSql, Unsupported
from emberlake.sql.commands.clauses import (
    accept_if_exists,
    accept_if_not_exists,
    read_columns,
    read_properties,
    refuse_purge,
)
from emberlake.sql.commands.types import read_type
from emberlake.sql.commands.values import (
    Column,
    CreateDatabase,
    CreateTableLike,
    DropDatabase,
    DropTable,
    Properties,
    Use,
)
from emberlake.sql.commands.words import take_one_of
from emberlake.sql.cursor import Cursor
from emberlake.sql.names import TableName
from emberlake.sql.statements import Command, CreateTable, CreateTableAs, Statement
from emberlake.types import DataField

_DATABASE = ("DATABASE", "SCHEMA", "NAMESPACE")
_QUERY = ("SELECT", "WITH", "VALUES", "TABLE", "FROM", "(")


def parse_create(cursor: Cursor) -> Statement | None:
    """After CREATE or REPLACE: a database or a table; None for everything else."""
    or_replace = cursor.take("OR", "REPLACE")
    if cursor.take("TABLE") or cursor.take("EXTERNAL", "TABLE"):
        return _parse_create_table(cursor, or_replace=or_replace)
    if not or_replace and take_one_of(cursor, *_DATABASE):
        return _parse_create_database(cursor)
    return None


def parse_replace(cursor: Cursor) -> Statement | None:
    """After REPLACE: a table."""
    if not cursor.take("TABLE"):
        return None
    match _parse_create_table(cursor, or_replace=True):
        case CreateTable() as create if not create.if_not_exists:
            return replace(create, must_exist=True)
        case CreateTableAs() as create if not create.create.if_not_exists:
            return replace(create, create=replace(create.create, must_exist=True))
        case _:
            raise InvalidSql("REPLACE TABLE takes columns or a query")


def parse_drop(cursor: Cursor) -> Command | None:
    """After DROP: a database or a table; None for everything else."""
    if cursor.take("TABLE"):
        if_exists = accept_if_exists(cursor)
        name = cursor.table()
        refuse_purge(cursor)
        cursor.expect_end()
        return DropTable(name, if_exists)
    if take_one_of(cursor, *_DATABASE):
        if_exists = accept_if_exists(cursor)
        name = cursor.table()
        cascade = take_one_of(cursor, "CASCADE", "RESTRICT") == "CASCADE"
        cursor.expect_end()
        return DropDatabase(name, if_exists, cascade)
    return None


def parse_use(cursor: Cursor) -> Use:
    """After USE."""
    if cursor.ahead().is_name:
        take_one_of(cursor, *_DATABASE)
    name = cursor.table()
    cursor.expect_end()
    return Use(name)


def _parse_create_database(cursor: Cursor) -> CreateDatabase:
    if_not_exists = accept_if_not_exists(cursor)
    name = cursor.table()
    properties: Properties = ()
    while not cursor.is_done:
        if cursor.take("COMMENT"):
            properties += (("comment", cursor.string()),)
        elif cursor.take("LOCATION"):
            properties += (("location", cursor.string()),)
        else:
            cursor.take("WITH")
            if not cursor.take("DBPROPERTIES"):
                cursor.expect("PROPERTIES")
            properties += read_properties(cursor)
    return CreateDatabase(name, if_not_exists, properties)


def _parse_create_table(cursor: Cursor, *, or_replace: bool) -> Statement:
    if_not_exists = accept_if_not_exists(cursor)
    if if_not_exists and or_replace:
        raise InvalidSql("use OR REPLACE or IF NOT EXISTS, not both")
    table = cursor.table()
    if cursor.take("LIKE"):
        return _parse_like(cursor, table, if_not_exists=if_not_exists)
    columns = read_columns(cursor) if cursor.is_at("(") else ()
    create = CreateTable(
        table=table,
        columns=tuple(map(_declared, columns)),
        if_not_exists=if_not_exists,
        replace=or_replace,
    )
    create = _read_definition(cursor, create)
    if cursor.take("AS") or any(map(cursor.is_at, _QUERY)):
        if columns:
            raise InvalidSql(
                "the columns of CREATE TABLE ... AS are those of the query; name them there"
            )
        return CreateTableAs(create=create, query=cursor.rest())
    cursor.expect_end()
    return create


def _declared(column: Column) -> DataField:
    if len(column.path) > 1 or column.is_first or column.after is not None:
        raise InvalidSql(
            f"column {'.'.join(column.path)}: CREATE TABLE takes no nested names, FIRST or AFTER"
        )
    return DataField(0, column.path[0], column.type, column.comment, column.default)


def _parse_like(cursor: Cursor, table: TableName, *, if_not_exists: bool) -> CreateTableLike:
    source = cursor.table()
    said = _read_definition(cursor, CreateTable(table=table))
    cursor.expect_end()
    if said.partitioned_by or said.comment is not None:
        raise InvalidSql("CREATE TABLE ... LIKE takes properties only")
    properties = tuple(said.properties.items())
    return CreateTableLike(table, source, if_not_exists, properties, said.provider)


def _read_definition(cursor: Cursor, create: CreateTable) -> CreateTable:
    """What follows the columns, in any order: provider, partitions, comment, properties."""
    while True:
        if cursor.take("USING"):
            create = replace(create, provider=cursor.name())
        elif cursor.take("PARTITIONED", "BY"):
            create = _read_partitioning(cursor, create)
        elif cursor.take("COMMENT"):
            create = replace(create, comment=cursor.string())
        elif cursor.take("TBLPROPERTIES"):
            properties = {**dict(read_properties(cursor)), **create.properties}  # OPTIONS count
            create = replace(create, properties=properties)
        elif cursor.take("OPTIONS"):
            options = read_properties(cursor)
            # Spark hands OPTIONS over twice, and Java stores both.
            twice = tuple((f"option.{key}", value) for key, value in options)
            create = _with_properties(create, options + twice)
        elif cursor.take("LOCATION"):
            create = replace(create, location=cursor.string())
        elif cursor.is_at("CLUSTERED", "BY") or cursor.is_at("CLUSTER", "BY"):
            raise Unsupported("give buckets as properties: 'bucket' = '4', 'bucket-key' = 'id'")
        else:
            return create


def _with_properties(create: CreateTable, found: Properties) -> CreateTable:
    return replace(create, properties={**create.properties, **dict(found)})


def _read_partitioning(cursor: Cursor, create: CreateTable) -> CreateTable:
    declared: list[DataField] = []

    def read() -> str:
        name = cursor.name()
        if cursor.is_at("("):
            raise InvalidSchema(
                f"PARTITIONED BY ({name}(...)): a table is partitioned by columns, not by "
                "expressions; add a column with that value"
            )
        if not (cursor.is_at(",") or cursor.is_at(")")):  # Hive: the column is declared here
            data_type = read_type(cursor)
            comment = cursor.string() if cursor.take("COMMENT") else None
            declared.append(DataField(0, name, data_type, comment))
        return name

    names = cursor.in_parentheses(read)
    return replace(create, columns=(*create.columns, *declared), partitioned_by=names)

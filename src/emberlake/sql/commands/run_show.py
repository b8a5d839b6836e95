"""Carry out SHOW and DESCRIBE."""

from collections.abc import Sequence

import pyarrow as pa

from emberlake.errors import InvalidInput, NotFound, Unsupported
from emberlake.inspect import SystemTable
from emberlake.options import PARTITION_DEFAULT_NAME
from emberlake.spec.identifier import SYSTEM_DATABASE, Identifier
from emberlake.spec.listing import Partition
from emberlake.spec.partition import escape_path_name
from emberlake.spec.partition_match import partitions_of
from emberlake.sql.commands.answers import column_rows, matching, rows_of, texts_of
from emberlake.sql.commands.context import Session
from emberlake.sql.commands.run_alter import column_path, partition_values
from emberlake.sql.commands.run_databases import database_of, is_missing_default
from emberlake.sql.commands.types import (
    quoted_if_needed,
    spark_declaration,
    spark_type,
    text_literal,
)
from emberlake.sql.commands.values import (
    DescribeTable,
    PartitionSpec,
    RefreshTable,
    ShowColumns,
    ShowCreateTable,
    ShowPartitions,
    ShowTableProperties,
    ShowTables,
    ShowTags,
    ShowViews,
)
from emberlake.sql.derived_fields import derived_fields
from emberlake.sql.names import TableName
from emberlake.sql.system_database import SYSTEM_DATABASE_TABLES, system_table_fields
from emberlake.table import Table
from emberlake.types import AtomicType, DataField, DataType, TypeRoot

_TABLES = (("namespace", pa.string()), ("tableName", pa.string()), ("isTemporary", pa.bool_()))
_DESCRIPTION = ("col_name", "data_type", "comment")
# The columns that every table has besides its own.
_METADATA = (("__paimon_file_path", "string"), ("__paimon_row_index", "bigint"))


# --- lists ----------------------------------------------------------------------------------------


def show_tables(command: ShowTables, session: Session) -> pa.Table:
    """Carry out SHOW TABLES and SHOW TABLE EXTENDED."""
    database = database_of(session, command.database)
    names = matching(_tables_in(session, database), command.pattern)
    space = quoted_if_needed(database)
    if not command.is_extended:
        return rows_of(_TABLES, [(space, name, False) for name in names])
    columns = (*_TABLES, ("information", pa.string()))
    if command.partition is not None:
        table = session.table(TableName((database, command.pattern or "")))
        information = _partition_information(session, table, command.partition)
        return rows_of(columns, [(space, table.identifier.table, False, information)])
    rows = [
        (space, name, False, _information(session, TableName((database, name)))) for name in names
    ]
    return rows_of(columns, rows)


def _tables_in(session: Session, database: str) -> list[str]:
    if database == SYSTEM_DATABASE:
        return sorted(SYSTEM_DATABASE_TABLES)
    if is_missing_default(session, database):
        return []
    return session.catalog.list_tables(database)


def show_views(command: ShowViews, session: Session) -> pa.Table:
    """Carry out SHOW VIEWS."""
    database = database_of(session, command.database)
    is_missing = is_missing_default(session, database)
    names = matching([] if is_missing else session.catalog.list_views(database), command.pattern)
    columns = (_TABLES[0], ("viewName", pa.string()), _TABLES[2])
    return rows_of(columns, [(database, name, False) for name in names])


def show_columns(command: ShowColumns, session: Session) -> pa.Table:
    """Carry out SHOW COLUMNS."""
    names = [(f.name,) for f in _described(session, command.table)[0]]
    return texts_of(("column",), names)


def show_partitions(command: ShowPartitions, session: Session) -> pa.Table:
    """Carry out SHOW PARTITIONS."""
    table = session.table(command.table)
    if not table.partition_keys:
        raise InvalidInput(
            "[INVALID_PARTITION_OPERATION.PARTITION_SCHEMA_IS_EMPTY] "
            f"{table.identifier} is not partitioned"
        )
    names = [
        "/".join(_shown_values(table, partition))
        for partition in _partitions(session, table, command.partition)
    ]
    return texts_of(("partition",), [(name,) for name in names])


def _partitions(session: Session, table: Table, spec: PartitionSpec) -> list[Partition]:
    """The partitions of a table that have these values."""
    wanted = set(partitions_of(table.table_schema, partition_values(table, spec)).values)
    listed = session.catalog.list_partitions_paged(table.identifier).elements
    return [p for p in listed if wanted <= set(partitions_of(table.table_schema, p.spec).values)]


def _shown_values(table: Table, partition: Partition) -> list[str]:
    null = table.options.value(PARTITION_DEFAULT_NAME)
    types = {field.name: field.type for field in table.partition_keys_fields}
    return [
        f"{escape_path_name(key)}={'null' if text == null else _shown_value(types[key], text)}"
        for key, text in partition.spec.items()
    ]


def _shown_value(data_type: DataType, text: str) -> str:
    is_utc = isinstance(data_type, AtomicType) and data_type.root is TypeRoot.TIMESTAMP_LTZ
    return escape_path_name(text.removesuffix("Z") if is_utc else text) if text else text


def _partition_information(session: Session, table: Table, spec: PartitionSpec) -> str:
    partition = _one_partition(session, table, spec)
    values = ", ".join(_shown_values(table, partition))
    return (
        f"Partition Values: [{values}]\nPartition Parameters: {{{_parameters(partition)}}}\n"
        f"Partition Statistics: {_statistics(partition)}\n\n"
    )


def _one_partition(session: Session, table: Table, spec: PartitionSpec) -> Partition:
    found = _partitions(session, table, spec)
    if len(found) != 1:
        raise NotFound(
            f"[PARTITIONS_NOT_FOUND] {len(found)} partitions of {table.identifier} have these "
            "values, not one"
        )
    return found[0]


def _parameters(partition: Partition) -> str:
    return (
        f"recordCount={partition.record_count}, fileSizeInBytes={partition.file_size_in_bytes}, "
        f"fileCount={partition.file_count}, "
        f"lastFileCreationTime={partition.last_file_creation_time}"
    )


def _statistics(partition: Partition) -> str:
    return f"{partition.record_count} rows, {partition.file_size_in_bytes} bytes"


def show_tags(command: ShowTags, session: Session) -> pa.Table:
    """Carry out SHOW TAGS."""
    tags = session.table(command.table).list_tags()
    return texts_of(("tag",), [(tag,) for tag in tags])


# --- one table ------------------------------------------------------------------------------------


def show_properties(command: ShowTableProperties, session: Session) -> pa.Table:
    """Carry out SHOW TBLPROPERTIES."""
    properties = _properties(session.table(command.table))
    if command.key is None:
        return texts_of(("key", "value"), sorted(properties.items()))
    name = ".".join((session.name, *_full(session, command.table)))
    absent = f"Table {name} does not have property: {command.key}"
    value = properties.get(command.key, absent)
    return texts_of(("key", "value"), [(command.key, value)])


def refresh_table(command: RefreshTable, session: Session) -> None:
    """Carry out REFRESH TABLE: there is nothing to do, since statements read the current table."""
    readable(session, command.table)


def show_create_table(command: ShowCreateTable, session: Session) -> pa.Table:
    """Carry out SHOW CREATE TABLE."""
    table = session.table(command.table)
    name = ".".join(
        quoted_if_needed(part) for part in (session.name, *_full(session, command.table))
    )
    columns = ",\n".join(f"  {_declaration(f)}" for f in table.fields)
    lines = [f"CREATE TABLE {name} (\n{columns})", "USING paimon"]
    if table.partition_keys:
        keys = ", ".join(quoted_if_needed(key) for key in table.partition_keys)
        lines.append(f"PARTITIONED BY ({keys})")
    if table.table_schema.comment is not None:
        lines.append(f"COMMENT {text_literal(table.table_schema.comment)}")
    lines.append(f"LOCATION {text_literal(table.table_path)}")
    shown = ",\n".join(
        f"  {text_literal(key)} = {text_literal(value)}"
        for key, value in sorted(_properties(table).items())
    )
    lines.append(f"TBLPROPERTIES (\n{shown})\n")
    return texts_of(("createtab_stmt",), [("\n".join(lines),)])


def describe_table(command: DescribeTable, session: Session) -> pa.Table:
    """Carry out DESCRIBE."""
    fields, partition_keys = _described(session, command.table)
    if command.column is not None:
        return _describe_column(fields, command.column)
    rows = column_rows(fields, [spark_type(f.type) for f in fields])
    if partition_keys:
        keys = [f for f in fields if f.name in partition_keys]
        rows += [("# Partition Information", "", ""), ("# col_name", "data_type", "comment")]
        rows += column_rows(keys, [spark_type(f.type) for f in keys])
    if command.partition is not None:
        return texts_of(_DESCRIPTION, [*rows, *_partition_details(session, command)])
    table = session.find(command.table)
    if command.is_extended and isinstance(table, Table):
        rows += _details(session, table, command.table)
    return texts_of(_DESCRIPTION, rows)


def _partition_details(session: Session, command: DescribeTable) -> list[tuple[str, str, str]]:
    """What DESCRIBE EXTENDED shows of one partition; otherwise it is only checked."""
    table, spec = session.table(command.table), command.partition or ()
    if len(partition_values(table, spec)) < len(table.partition_keys):
        raise InvalidInput(
            f"DESCRIBE of a partition needs a value for each of {', '.join(table.partition_keys)}"
        )
    if not command.is_extended:
        return []
    partition = _one_partition(session, table, spec)
    name, created = table.identifier, partition.last_file_creation_time
    return [
        ("", "", ""),
        ("# Detailed Partition Information", "", ""),
        ("Database", name.database, ""),
        ("Table", name.table, ""),
        ("Partition Values", f"[{', '.join(_shown_values(table, partition))}]", ""),
        ("Partition Parameters", f"{{{_parameters(partition)}}}", ""),
        ("Created Time", str(created), ""),
        ("Partition Statistics", _statistics(partition), ""),
        ("", "", ""),
    ]


def _described(session: Session, name: TableName) -> tuple[Sequence[DataField], Sequence[str]]:
    """The columns of everything that can be read, and its partition columns."""
    fields = system_table_fields(name)
    if fields is not None:
        return fields, ()
    identifier = session.identify(name)
    kind = None if identifier is None else identifier.system_table
    if identifier is not None and kind is not None:
        base = Identifier(identifier.database, identifier.table, identifier.branch)
        table = session.find(TableName((base.database, base.object_name)))
        derived = derived_fields(kind, table) if isinstance(table, Table) else None
        if isinstance(table, Table) and derived is not None:
            return derived, table.partition_keys
    view = session.view(name) if session.find(name) is None else None
    if view is not None:
        return view.fields, ()
    found = readable(session, name)
    return found.fields, found.partition_keys


def _describe_column(fields: Sequence[DataField], column: tuple[str, ...]) -> pa.Table:
    name, *inner = column_path(fields, column)
    if inner:
        raise Unsupported(f"DESCRIBE shows whole columns: describe {name}")
    field = next(f for f in fields if f.name == name)
    rows = [
        ("col_name", name),
        ("data_type", spark_type(field.type)),
        ("comment", field.description or "NULL"),
    ]
    return texts_of(("info_name", "info_value"), rows)


def _details(session: Session, table: Table, name: TableName) -> list[tuple[str, str, str | None]]:
    by_name = table.field_dict
    keys = ",".join(f"{key}:{spark_type(by_name[key].type)}" for key in table.partition_keys)
    columns = (*_METADATA, ("__paimon_partition", f"struct<{keys}>"), ("__paimon_bucket", "int"))
    properties = ",".join(f"{k}={v}" for k, v in sorted(_properties(table).items()))
    rows: list[tuple[str, str, str | None]] = [("", "", ""), ("# Metadata Columns", "", "")]
    rows += [(column, kind, "") for column, kind in columns]
    rows += [
        ("", "", ""),
        ("# Detailed Table Information", "", ""),
        ("Name", ".".join(_full(session, name)), ""),
        ("Type", "MANAGED", ""),
        ("Location", table.table_path, ""),
        ("Provider", "paimon", ""),
        ("Table Properties", f"[{properties}]", ""),
    ]
    if table.table_schema.comment is not None:
        rows.append(("Comment", table.table_schema.comment, ""))
    latest = table.latest_snapshot()
    if latest is not None and latest.total_record_count is not None:
        rows.append(("Statistics", f"{latest.total_record_count} rows", None))
    return rows


def _information(session: Session, name: TableName) -> str:
    table = session.table(name)
    columns = "".join(f"\n |-- {f.name}: {spark_type(f.type)}" for f in table.fields)
    keys = ", ".join(table.partition_keys)
    return (
        f"Catalog: {session.name}\nNamespace: {name.parts[-2]}\nTable: {name.last}\n"
        f"Type: MANAGED\nProvider: paimon\nLocation: {table.table_path}\n"
        f"Partition Columns: [{keys}]\nSchema: root{columns}\n"
    )


def readable(session: Session, name: TableName) -> Table | SystemTable:
    """The table or system table of that name.

    Raises:
        TableNotFound: the lake has none.
    """
    table = session.find(name)
    if table is None:
        raise session.unknown_table(name)
    return table


def _full(session: Session, name: TableName) -> tuple[str, str]:
    *database, table = name.parts
    return database[-1] if database else session.database, table


def _properties(table: Table) -> dict[str, str]:
    found = {**table.table_schema.options, "path": table.table_path}
    if table.primary_keys:
        found["primary-key"] = ",".join(table.primary_keys)
    if table.identifier.branch is not None:
        found["branch"] = table.identifier.branch
    return found


def _declaration(field: DataField) -> str:
    text = f"{quoted_if_needed(field.name)} {spark_declaration(field.type)}"
    if not field.type.nullable:
        text += " NOT NULL"
    if field.default_value is not None:
        text += f" DEFAULT {field.default_value}"
    if field.description is not None:
        text += f" COMMENT {text_literal(field.description)}"
    return text

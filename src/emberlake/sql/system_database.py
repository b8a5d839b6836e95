"""The database ``sys``: tables about all tables of a catalog."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import pyarrow as pa

from emberlake.catalog import Catalog
from emberlake.errors import TableNotFound
from emberlake.spec.identifier import SYSTEM_DATABASE, Identifier
from emberlake.sql.names import TableName
from emberlake.table import Table
from emberlake.types import AtomicType, DataField, arrow_schema

_HIDDEN: Final = ("owner", "path")
Row = Sequence[object]


def system_table_rows(name: TableName, catalog: Catalog) -> pa.Table | None:
    """The rows of ``sys.tables`` and the like; None if the name is not in ``sys``.

    Raises:
        TableNotFound: there is no such table in ``sys``.
    """
    fields = system_table_fields(name)
    if fields is None:
        return None
    load = SYSTEM_DATABASE_TABLES[name.last.lower()][1]
    rows = [(*_name(table), *row) for table in _tables(catalog) for row in load(catalog, table)]
    schema = arrow_schema(fields)
    columns = [pa.array([row[at] for row in rows], column.type) for at, column in enumerate(schema)]
    return pa.table(columns, schema=schema)


def system_table_fields(name: TableName) -> tuple[DataField, ...] | None:
    """The columns of such a table; None if the name is not in ``sys``.

    Raises:
        TableNotFound: there is no such table in ``sys``.
    """
    if len(name.parts) < 2 or name.parts[-2].lower() != SYSTEM_DATABASE:
        return None
    kind = SYSTEM_DATABASE_TABLES.get(name.last.lower())
    if kind is None:
        raise TableNotFound(f"[TABLE_OR_VIEW_NOT_FOUND] there is no table sys.{name.last}")
    return kind[0]


def _tables(catalog: Catalog) -> Iterator[Table]:
    for database in catalog.list_databases():
        for name in catalog.list_tables(database):
            try:
                found = catalog.get_table(Identifier(database, name))
            except TableNotFound:  # dropped meanwhile
                continue
            if isinstance(found, Table):
                yield found


def _name(table: Table) -> tuple[str, str]:
    return table.identifier.database, table.identifier.table


def _table_row(_: Catalog, table: Table) -> list[Row]:
    # Only catalogs with a server know who changed a table, and when.
    return [("table", bool(table.partition_keys), bool(table.primary_keys), *[None] * 9)]


def _option_rows(_: Catalog, table: Table) -> list[Row]:
    options = sorted(table.table_schema.options.items())
    return [(key, value) for key, value in options if key not in _HIDDEN]


def _partition_rows(catalog: Catalog, table: Table) -> list[Row]:
    if not table.partition_keys:
        return []
    return [
        (
            "/".join(f"{name}={value}" for name, value in partition.spec.items()),
            partition.record_count,
            partition.file_size_in_bytes,
            partition.file_count,
            partition.last_file_creation_time,
            partition.done,
        )
        for partition in catalog.list_partitions_paged(table.identifier).elements
    ]


def _fields(**types: str) -> tuple[DataField, ...]:
    named = {"database_name": "STRING", "table_name": "STRING", **types}
    return tuple(DataField(at, name, AtomicType(t)) for at, (name, t) in enumerate(named.items()))


SYSTEM_DATABASE_TABLES: Final[
    Mapping[str, tuple[tuple[DataField, ...], Callable[[Catalog, Table], list[Row]]]]
] = {
    "all_table_options": (_fields(key="STRING", value="STRING"), _option_rows),
    "partitions": (
        _fields(
            partition_name="STRING",
            record_count="BIGINT",
            file_size_in_bytes="BIGINT",
            file_count="BIGINT",
            last_file_creation_time="BIGINT",
            done="BOOLEAN",
        ),
        _partition_rows,
    ),
    "tables": (
        _fields(
            table_type="STRING",
            partitioned="BOOLEAN",
            primary_key="BOOLEAN",
            owner="STRING",
            created_at="BIGINT",
            created_by="STRING",
            updated_at="BIGINT",
            updated_by="STRING",
            record_count="BIGINT",
            file_size_in_bytes="BIGINT",
            file_count="BIGINT",
            last_file_creation_time="BIGINT",
        ),
        _table_row,
    ),
}

"""The database ``sys``: tables about all tables of a catalog."""

import pyarrow as pa

from emberlake.catalog import Catalog
from emberlake.errors import TableNotFound
from emberlake.spec.identifier import SYSTEM_DATABASE, Identifier
from emberlake.sql.names import TableName

_HIDDEN = ("owner", "path")


def system_table_rows(name: TableName, catalog: Catalog) -> pa.Table | None:
    """The rows of ``sys.tables`` and ``sys.all_table_options``; None: it is none of these."""
    if len(name.parts) < 2 or name.parts[-2].lower() != SYSTEM_DATABASE:
        return None
    tables = [
        Identifier(database, table)
        for database in catalog.list_databases()
        for table in catalog.list_tables(database)
    ]
    match name.last.lower():
        case "tables":
            return pa.table(
                {
                    "database_name": pa.array([t.database for t in tables], pa.string()),
                    "table_name": pa.array([t.table for t in tables], pa.string()),
                }
            )
        case "all_table_options":
            rows = [
                (t.database, t.table, *option) for t in tables for option in _options(catalog, t)
            ]
            columns = list(zip(*rows, strict=True)) or [(), (), (), ()]
            names = ("database_name", "table_name", "key", "value")
            return pa.table(
                {n: pa.array(c, pa.string()) for n, c in zip(names, columns, strict=True)}
            )
        case other:
            raise TableNotFound(f"[TABLE_OR_VIEW_NOT_FOUND] there is no table sys.{other}")


def _options(catalog: Catalog, identifier: Identifier) -> list[tuple[str, str]]:
    try:
        options = catalog.get_table(identifier).table_schema.options
    except TableNotFound:
        return []  # dropped meanwhile
    return [(key, value) for key, value in sorted(options.items()) if key not in _HIDDEN]

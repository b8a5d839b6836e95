"""Column types in DuckDB's notation, and the results of queries in the types of Spark."""

from typing import Final

from emberlake.errors import Unsupported
from emberlake.types import ArrayType, AtomicType, DataType, MapType, RowType, TypeRoot

_ROOTS: Final = {
    TypeRoot.BOOLEAN: "BOOLEAN",
    TypeRoot.TINYINT: "TINYINT",
    TypeRoot.SMALLINT: "SMALLINT",
    TypeRoot.INT: "INTEGER",
    TypeRoot.BIGINT: "BIGINT",
    TypeRoot.FLOAT: "FLOAT",
    TypeRoot.DOUBLE: "DOUBLE",
    TypeRoot.CHAR: "VARCHAR",
    TypeRoot.VARCHAR: "VARCHAR",
    TypeRoot.BINARY: "BLOB",
    TypeRoot.VARBINARY: "BLOB",
    TypeRoot.DATE: "DATE",
    TypeRoot.TIME: "TIME",
    TypeRoot.TIMESTAMP: "TIMESTAMP",
    TypeRoot.TIMESTAMP_LTZ: "TIMESTAMP WITH TIME ZONE",
}
# Types of results that DuckDB has and Spark does not.
_RESULTS: Final = {
    "HUGEINT": "BIGINT",
    "UHUGEINT": "BIGINT",
    "UBIGINT": "BIGINT",
    "UINTEGER": "BIGINT",
    "USMALLINT": "INTEGER",
    "UTINYINT": "SMALLINT",
    "UUID": "VARCHAR",
    "TIMESTAMP_S": "TIMESTAMP",  # of TIMESTAMP(0)
    "TIMESTAMP_MS": "TIMESTAMP",  # of TIMESTAMP(3)
    '"NULL"': "INTEGER",
}


def duckdb_type(data_type: DataType) -> str:
    """The text of a type for DuckDB.

    Raises:
        Unsupported: DuckDB has no such type.
    """
    match data_type:
        case AtomicType(root=TypeRoot.DECIMAL, precision=precision, scale=scale):
            return f"DECIMAL({precision}, {scale})"
        case AtomicType(root=root) if root in _ROOTS:
            return _ROOTS[root]
        case ArrayType(element=element):
            return f"{duckdb_type(element)}[]"
        case MapType(key=key, value=value):
            return f"MAP({duckdb_type(key)}, {duckdb_type(value)})"
        case RowType(fields=fields):
            inner = ", ".join(f"{quoted(f.name)} {duckdb_type(f.type)}" for f in fields)
            return f"STRUCT({inner})"
        case _:
            raise Unsupported(f"columns of type {data_type} cannot be written by SQL")


def result_type(text: str) -> str | None:
    """The type that a result column has in Spark; None if it is the same."""
    return _RESULTS.get(text)


def quoted(name: str) -> str:
    """A name for DuckDB."""
    return '"' + name.replace('"', '""') + '"'

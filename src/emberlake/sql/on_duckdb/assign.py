"""Values for columns of a table: the ANSI casts of Spark, expressed in DuckDB's SQL.

Columns are assigned by position, and so are the fields of structs. A cast whose result would differ
from Spark's is written in another way, or refused.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from emberlake.errors import Unsupported
from emberlake.sql.names import text_literal
from emberlake.sql.on_duckdb.types import duckdb_type, quoted
from emberlake.types import ArrayType, AtomicType, DataField, DataType, MapType, RowType, TypeRoot
from emberlake.types.data_types import MAX_LENGTH


def assigned(
    value: str, kind: str, target: DataType, *, by_name: bool = False, fills: bool = False
) -> str:
    """An expression of DuckDB with a value of the type of a column.

    Args:
        value: An expression.
        kind: Its type, as DuckDB spells it.
        target: The type of the column.
        by_name: Whether fields of structs are found by name, not by position.
        fills: Whether structs may lack fields, which are NULL then.

    Raises:
        Unsupported: Spark's cast cannot be expressed in DuckDB's SQL.
    """
    wanted = duckdb_type(target)
    if kind in (wanted, '"NULL"'):
        return _sized(f"CAST({value} AS {wanted})", target)
    match target:
        case AtomicType():
            return _sized(_atomic(value, kind, target, wanted), target)
        case ArrayType(element=element) if kind.endswith("[]"):
            inner = assigned("x", kind[:-2], element, by_name=by_name, fills=fills)
            return f"list_transform({value}, lambda x: {inner})"
        case RowType(fields=fields) if kind.startswith("STRUCT("):
            return _row(value, kind, fields, by_name=by_name, fills=fills)
        case MapType(key=key, value=item) if kind.startswith("MAP("):
            return _map(value, kind, (key, item), by_name=by_name, fills=fills)
        case _:
            raise Unsupported(f"a value of type {kind} cannot be assigned to {target}")


def _row(value: str, kind: str, fields: Sequence[DataField], *, by_name: bool, fills: bool) -> str:
    parts: list[tuple[str, str] | None] = [*struct_fields(kind)]
    if by_name:
        places = {name.lower(): (name, part) for name, part in struct_fields(kind)}
        known = {f.name.lower() for f in fields}
        if not (set(places) <= known if fills else set(places) == known):
            raise Unsupported(f"a struct of {', '.join(places)} has other fields than the column")
        parts = [places.get(f.name.lower()) for f in fields]
    if len(parts) != len(fields):
        raise Unsupported(f"a struct of {len(parts)} fields cannot be assigned to {len(fields)}")

    def field_value(field: DataField, part: tuple[str, str] | None) -> str:
        if part is None:
            return f"CAST(NULL AS {duckdb_type(field.type)})"
        inner = f"struct_extract({value}, {text_literal(part[0])})"
        return assigned(inner, part[1], field.type, by_name=by_name, fills=fills)

    inner = ", ".join(
        f"{quoted(f.name)} := {field_value(f, part)}" for f, part in zip(fields, parts, strict=True)
    )
    return f"CASE WHEN {value} IS NULL THEN NULL ELSE struct_pack({inner}) END"


def _map(
    value: str, kind: str, target: tuple[DataType, DataType], *, by_name: bool, fills: bool
) -> str:
    keys, values = (
        f"list_transform({parts}({value}), lambda x: "
        f"{assigned('x', part, to, by_name=by_name, fills=fills)})"
        for parts, part, to in zip(
            ("map_keys", "map_values"), _parts(kind[len("MAP(") : -1]), target, strict=True
        )
    )
    return f"CASE WHEN {value} IS NULL THEN NULL ELSE map({keys}, {values}) END"


def struct_fields(kind: str) -> list[tuple[str, str]]:
    """Names and types in the text of a struct type."""
    return [_field(part) for part in _parts(kind[len("STRUCT(") : -1])]


def _parts(inner: str) -> list[str]:
    """What commas separate, but not those in quotes or parentheses."""
    found, depth, start, in_quotes = [], 0, 0, False
    for at, char in enumerate(inner + ","):
        if char == '"':
            in_quotes = not in_quotes
        if in_quotes:
            continue
        depth += (char == "(") - (char == ")")
        if char == "," and depth == 0:
            found.append(inner[start:at].strip())
            start = at + 1
    return found


def _field(text: str) -> tuple[str, str]:
    match = re.fullmatch(r'(?:"((?:[^"]|"")*)"|(\w+))\s+(.*)', text, re.DOTALL)
    assert match is not None
    name = match.group(2) if match.group(1) is None else match.group(1).replace('""', '"')
    return name, match.group(3)


def _atomic(value: str, kind: str, target: AtomicType, wanted: str) -> str:
    root = target.root
    if root.is_text:
        return as_text(value, kind)
    if kind.endswith(("[]", ")")) and not kind.startswith("DECIMAL"):
        raise Unsupported(f"a value of type {kind} cannot be assigned to {target} without Spark")
    if root.is_integer:
        return f"CAST(spark_long({value}) AS {wanted})"
    cast = _CASTS.get(root)
    return f"CAST({value} AS {wanted})" if cast is None else f"CAST({cast}({value}) AS {wanted})"


_CASTS: Final = {
    TypeRoot.BOOLEAN: "spark_boolean",
    TypeRoot.FLOAT: "spark_double",
    TypeRoot.DOUBLE: "spark_double",
    TypeRoot.DECIMAL: "spark_exact",
    TypeRoot.DATE: "spark_date",
    TypeRoot.TIMESTAMP: "spark_timestamp_ntz",
    TypeRoot.TIMESTAMP_LTZ: "spark_timestamp",
    TypeRoot.BINARY: "spark_binary",
    TypeRoot.VARBINARY: "spark_binary",
}


def as_text(value: str, kind: str) -> str:
    """A value as Spark casts it to a string: ``{1, a}``, ``[1, null]``."""
    if kind.startswith("MAP("):
        raise Unsupported("a map cannot be cast to a string without Spark")
    if kind.endswith("[]"):
        inner = f"coalesce({as_text('x', kind[:-2])}, 'null')"
        return f"('[' || array_to_string(list_transform({value}, lambda x: {inner}), ', ') || ']')"
    if kind.startswith("STRUCT("):
        parts = (
            f"coalesce({as_text(f'struct_extract({value}, {text_literal(name)})', part)}, 'null')"
            for name, part in struct_fields(kind)
        )
        return f"CASE WHEN {value} IS NOT NULL THEN '{{' || {_joined(parts)} || '}}' END"
    return f"spark_text({value})"


def _joined(parts: Iterable[str]) -> str:
    return " || ', ' || ".join(parts)


def _sized(value: str, target: DataType) -> str:
    """Trailing spaces do not count: CHAR(n) is padded with them, excess ones are cut off."""
    if not (isinstance(target, AtomicType) and target.root.is_text) or target.length == MAX_LENGTH:
        return value
    kind = "char" if target.root is TypeRoot.CHAR else "varchar"
    return f"spark_{kind}({value}, {target.length})"

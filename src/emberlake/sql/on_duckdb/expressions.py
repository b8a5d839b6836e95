"""Expressions of DELETE, UPDATE and MERGE for the engine's own parser, token by token.

Names become those that the operation knows; parameters and subqueries become values. Everything
else stays as it was written, and the parser refuses what it does not know.
"""

import datetime as dt
import decimal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from emberlake.errors import EmberlakeError, InvalidSql, Unsupported
from emberlake.sql.cursor import Cursor
from emberlake.sql.engine import Args
from emberlake.sql.lexer import Kind, text_value
from emberlake.sql.names import quoted, text_literal
from emberlake.sql.on_duckdb.context import Local

_MAX_VALUES: Final = 100_000
_SUFFIXES: Final = "lLsSyYdDfF"
_OWN_ALIAS: Final = "t"  # means the table in the engine's own expressions, not in SQL


@dataclass(frozen=True)
class Side:
    """A table whose columns expressions can name.

    Args:
        names: What may stand in front of a column: (t,), (db, t), an alias; in any case.
        alias: Its alias in the operation; None: its columns have no qualifier.
        columns: The columns; names are case-insensitive.
    """

    names: tuple[tuple[str, ...], ...]
    alias: str | None
    columns: tuple[str, ...]

    def column(self, path: Sequence[str]) -> str | None:
        """The column that a name with dots refers to, as the operation writes it."""
        lower = tuple(part.lower() for part in path)
        for name in self.names:
            if lower[:-1] == tuple(part.lower() for part in name):
                return self._own(path[-1])
        return self._own(path[0]) if len(path) == 1 and self.alias is None else None

    def has(self, column: str) -> bool:
        """Whether it has a column of that name."""
        return self._own(column) is not None

    def _own(self, column: str) -> str | None:
        for own in self.columns:
            if own.lower() == column.lower():
                return quoted(own) if self.alias is None else f"{quoted(self.alias)}.{quoted(own)}"
        return None


def expression(engine: Local, text: str, args: Args, sides: Sequence[Side]) -> str:
    """The text for the engine's own parser.

    Raises:
        Unsupported: a subquery depends on the row, or has too many rows.
        InvalidSql: a parameter has no value.
    """
    cursor = Cursor(text)
    parts: list[str] = []
    while not cursor.is_done:
        token = cursor.token
        if token.is_symbol(":") and cursor.ahead().kind is Kind.WORD:
            cursor.next()
            parts.append(_parameter(cursor.next().text, args))
        elif token.is_symbol("(") and cursor.ahead().is_word("SELECT", "WITH"):
            parts.append(_subquery(engine, cursor, args, parts))
        elif token.is_name and not cursor.ahead().is_symbol("("):
            parts.append(_name(cursor, sides))
        else:
            parts.append(_plain(cursor))
    return " ".join(parts)


def _name(cursor: Cursor, sides: Sequence[Side]) -> str:
    is_word = cursor.token.kind is Kind.WORD
    start = cursor.at
    path = cursor.path()
    for side in sides:
        found = side.column(path)
        if found is not None:
            return found
    if is_word and len(path) == 1:
        return path[0]  # a keyword, or an unknown column, which the parser refuses
    if len(path) > 1 and path[0].lower() == _OWN_ALIAS and not any(s.has(path[0]) for s in sides):
        raise Unsupported(f"{'.'.join(path)}: the statement has no table {path[0]}")
    cursor.at = start
    return ".".join(quoted(part) for part in cursor.path())


def _plain(cursor: Cursor) -> str:
    token = cursor.next()
    if token.kind is Kind.TEXT:
        return _literal(text_value(token))
    if token.kind is Kind.NUMBER:
        return token.text.rstrip(_SUFFIXES)
    return token.text


def _parameter(name: str, args: Mapping[str, Any]) -> str:
    if name not in args:
        raise InvalidSql(f"[UNBOUND_SQL_PARAMETER] the parameter :{name} has no value in args")
    return _literal(args[name])


def _subquery(engine: Local, cursor: Cursor, args: Args, before: Sequence[str]) -> str:
    """The values of a query that does not depend on the row; it runs first."""
    query = cursor.skip_parentheses()[1:-1]
    try:
        rows = engine.database.stream(engine.prepare(query, args)).read_all()
    except EmberlakeError as error:
        raise Unsupported(
            f"without Spark, a subquery of DELETE or UPDATE must not depend on the row: "
            f"({query[:80]}): {error}"
        ) from error
    word = before[-1].upper() if before else ""
    if word == "EXISTS":
        raise Unsupported("EXISTS needs Spark; use IN or MERGE")
    if rows.num_columns != 1:
        raise Unsupported(f"a subquery has one column here, not {rows.num_columns}: ({query[:80]})")
    if (
        word == "IN" and not 0 < rows.num_rows <= _MAX_VALUES
    ):  # nothing is IN no rows, not even NULL
        raise Unsupported(f"the subquery has {rows.num_rows} rows: ({query[:80]})")
    if word != "IN" and rows.num_rows > 1:
        raise InvalidSql(f"the subquery has {rows.num_rows} rows: ({query[:80]})")
    values = [_literal(value) for value in rows.column(0).to_pylist()] or ["NULL"]
    return f"({', '.join(values)})"


def _literal(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int() | decimal.Decimal():
            return f"({value})" if value < 0 else str(value)
        case float():
            return f"CAST('{value!r}' AS DOUBLE)"
        case str():
            return text_literal(value)
        case dt.datetime():
            return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
        case dt.date():
            return f"DATE '{value.isoformat()}'"
        case _:
            raise InvalidSql(f"a {type(value).__name__} cannot be a value in an expression")

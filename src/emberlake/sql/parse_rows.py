"""Parsers of the statements that move rows: INSERT, DELETE, UPDATE, MERGE, TRUNCATE."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Final

from emberlake.errors import InvalidSql, Unsupported
from emberlake.sql.cursor import Cursor
from emberlake.sql.lexer import Kind
from emberlake.sql.statements import (
    Assignment,
    CreateTemporaryView,
    Delete,
    DeleteRow,
    Insert,
    InsertRow,
    Inserts,
    Merge,
    MergeClause,
    PartitionValue,
    Rows,
    Statement,
    Truncate,
    Update,
    UpdateRow,
)


def with_ctes(ctes: str, query: str) -> str:
    """A query with the common table expressions of its statement."""
    if not ctes:
        return query
    begins_with_own = Cursor(query).is_at("WITH")
    return f"{ctes} ({query})" if begins_with_own else f"{ctes} {query}"


# --- INSERT ---------------------------------------------------------------------------------------


def parse_inserts(cursor: Cursor, ctes: str) -> Statement | None:
    """``FROM source INSERT INTO t SELECT ... INSERT INTO u SELECT ...``; None: a query."""
    start = cursor.at
    source = _before_insert(cursor)
    inserts: list[Insert] = []
    while cursor.is_at("INSERT"):
        insert = _parse_insert_head(cursor)
        query = f"{source} {_before_insert(cursor)}"
        inserts.append(replace(insert, query=with_ctes(ctes, query)))
    if not inserts:
        cursor.at = start
        return None
    cursor.expect_end()
    return Inserts(inserts=tuple(inserts))


def _before_insert(cursor: Cursor) -> str:
    """The text up to the next INSERT outside of parentheses, or to the end."""
    start = last = cursor.token.start
    while cursor.token.kind is not Kind.END and not cursor.token.is_symbol(";"):
        if cursor.is_at("INSERT", "INTO") or cursor.is_at("INSERT", "OVERWRITE"):
            break
        if cursor.token.is_symbol("("):
            cursor.skip_parentheses()
        else:
            cursor.next()
        last = cursor.tokens[cursor.at - 1].end
    return cursor.text[start:last]


def _parse_insert(cursor: Cursor, ctes: str) -> Statement:
    insert = _parse_insert_head(cursor)
    query = cursor.rest()
    if not query:
        cursor.fail("expected a query")
    return replace(insert, query=with_ctes(ctes, query))


def _parse_insert_head(cursor: Cursor) -> Insert:
    """Everything in front of the query."""
    cursor.expect("INSERT")
    overwrite = cursor.take("OVERWRITE")
    if not overwrite:
        cursor.expect("INTO")
    if (overwrite and cursor.is_at("DIRECTORY")) or cursor.is_at("LOCAL", "DIRECTORY"):
        raise Unsupported("INSERT OVERWRITE DIRECTORY writes no table; use DataFrame.write")
    cursor.take("TABLE")
    table = cursor.table()
    partition = parse_partition(cursor) if cursor.is_at("PARTITION") else None
    if cursor.take("IF", "NOT", "EXISTS"):
        raise Unsupported("INSERT ... IF NOT EXISTS is not supported; look for the partition first")
    by_name = cursor.take("BY", "NAME")
    where = None
    if not overwrite and cursor.take("REPLACE", "WHERE"):
        where = cursor.expression("SELECT", "VALUES", "WITH", "TABLE", "FROM")
    is_listed = not by_name and _is_column_list(cursor)
    columns = cursor.in_parentheses(cursor.name) if is_listed else None
    return Insert(
        table=table,
        query="",
        columns=columns,
        by_name=by_name,
        overwrite=overwrite or where is not None,
        partition=partition,
        replace_where=where,
    )


def _is_column_list(cursor: Cursor) -> bool:
    """Whether a list such as ``(a, b)`` comes next, rather than ``(SELECT ...)``."""
    if not cursor.token.is_symbol("("):
        return False
    at, wants_name = 1, True
    while not cursor.ahead(at).is_symbol(")"):
        token = cursor.ahead(at)
        if token.kind is Kind.END or wants_name != token.is_name:
            return False
        if not wants_name and not token.is_symbol(","):
            return False
        wants_name = not wants_name
        at += 1
    return not wants_name and cursor.ahead(at + 1).kind is not Kind.END


def parse_partition(cursor: Cursor) -> tuple[PartitionValue, ...]:
    """``PARTITION (a = 1, b)``."""
    cursor.expect("PARTITION")

    def item() -> PartitionValue:
        column = cursor.name()
        return PartitionValue(column, cursor.expression() if cursor.take("=") else None)

    values = cursor.in_parentheses(item)
    _refuse_twice([value.column for value in values])
    return values


def _refuse_twice(columns: list[str]) -> None:
    lower = [column.lower() for column in columns]
    twice = next((column for column in columns if lower.count(column.lower()) > 1), None)
    if twice is not None:
        raise InvalidSql(f"the column {twice} is named twice")


# --- DELETE, UPDATE, TRUNCATE ---------------------------------------------------------------------


def _parse_delete(cursor: Cursor, ctes: str) -> Statement:
    cursor.expect("DELETE", "FROM")
    table = cursor.table()
    alias = _alias(cursor, "WHERE")
    where = cursor.expression() if cursor.take("WHERE") else None
    return Delete(table=table, alias=alias, where=where, ctes=ctes)


def _parse_update(cursor: Cursor, ctes: str) -> Statement:
    cursor.expect("UPDATE")
    table = cursor.table()
    alias = _alias(cursor, "SET")
    cursor.expect("SET")
    assignments = _assignments(cursor, "WHERE")
    where = cursor.expression() if cursor.take("WHERE") else None
    return Update(table=table, alias=alias, assignments=assignments, where=where, ctes=ctes)


def _parse_truncate(cursor: Cursor, ctes: str) -> Statement:
    if ctes:
        cursor.fail("expected a query")
    cursor.expect("TRUNCATE", "TABLE")
    table = cursor.table()
    partition = parse_partition(cursor) if cursor.is_at("PARTITION") else None
    return Truncate(table=table, partition=partition)


def _alias(cursor: Cursor, *ends: str) -> str | None:
    if cursor.take("AS"):
        return cursor.name()
    return cursor.name() if cursor.token.is_name and not cursor.token.is_word(*ends) else None


def _assignments(cursor: Cursor, *ends: str) -> tuple[Assignment, ...]:
    found = [_assignment(cursor, *ends)]
    while cursor.take(","):
        found.append(_assignment(cursor, *ends))
    return tuple(found)


def _assignment(cursor: Cursor, *ends: str) -> Assignment:
    column = cursor.path()
    cursor.expect("=")
    return Assignment(column, cursor.expression(*ends))


# --- MERGE ----------------------------------------------------------------------------------------


def _parse_merge(cursor: Cursor, ctes: str) -> Statement:
    cursor.expect("MERGE")
    evolves = cursor.take("WITH", "SCHEMA", "EVOLUTION")
    cursor.expect("INTO")
    table = cursor.table()
    alias = _alias(cursor, "USING")
    cursor.expect("USING")
    source, source_alias = _source(cursor)
    cursor.expect("ON")
    on = cursor.expression("WHEN")
    clauses = _clauses(cursor)
    return Merge(
        table=table,
        alias=alias,
        source=source,
        source_alias=source_alias,
        on=on,
        clauses=clauses,
        evolves_schema=evolves,
        ctes=ctes,
    )


def _source(cursor: Cursor) -> tuple[str, str | None]:
    start = cursor.token.start
    if cursor.token.is_symbol("("):
        cursor.skip_parentheses()
    else:
        cursor.table()
        if cursor.token.is_symbol("("):
            cursor.skip_parentheses()  # a function that returns a table
        _skip_travel(cursor)
    source = cursor.text[start : cursor.tokens[cursor.at - 1].end]
    alias = _alias(cursor, "ON")
    if alias is not None and cursor.token.is_symbol("("):
        raise InvalidSql(
            "[COLUMN_ALIASES_NOT_ALLOWED] the source of MERGE cannot have column aliases; name its "
            "columns in the query"
        )
    return source, alias


def _skip_travel(cursor: Cursor) -> None:
    cursor.take("FOR")
    if cursor.is_at("VERSION") or cursor.is_at("SYSTEM_VERSION"):
        cursor.next()
        cursor.expect("AS", "OF")
        cursor.next()
    elif cursor.is_at("TIMESTAMP") or cursor.is_at("SYSTEM_TIME"):
        cursor.next()
        cursor.expect("AS", "OF")
        cursor.expression("AS", "ON")


_CONDITIONS: Final[Mapping[Rows, str]] = {
    Rows.MATCHED: "WHEN MATCHED",
    Rows.NOT_MATCHED: "WHEN NOT MATCHED",
    Rows.NOT_MATCHED_BY_SOURCE: "WHEN NOT MATCHED BY SOURCE",
}


def _clauses(cursor: Cursor) -> tuple[MergeClause, ...]:
    clauses: list[MergeClause] = []
    while cursor.is_at("WHEN"):
        clauses.append(_clause(cursor))
    if not clauses:
        cursor.fail("expected at least one WHEN clause")
    order = [clause.rows.value for clause in clauses]
    if order != sorted(order):
        raise InvalidSql(
            f"the clauses of MERGE must be in the order {', '.join(_CONDITIONS.values())}, as in "
            "Spark"
        )
    for clause, later in pairwise(clauses):
        if clause.rows is later.rows and clause.condition is None:
            raise InvalidSql(
                f"only the last {_CONDITIONS[clause.rows]} clause may have no condition: those "
                "after it would never apply"
            )
    return tuple(clauses)


def _clause(cursor: Cursor) -> MergeClause:
    cursor.expect("WHEN")
    rows = _rows(cursor)
    condition = cursor.expression("THEN") if cursor.take("AND") else None
    cursor.expect("THEN")
    if rows is Rows.NOT_MATCHED:
        cursor.expect("INSERT")
        return MergeClause(rows, _insert_row(cursor), condition)
    if cursor.take("DELETE"):
        return MergeClause(rows, DeleteRow(), condition)
    cursor.expect("UPDATE", "SET")
    if rows is Rows.MATCHED and cursor.take("*"):
        return MergeClause(rows, UpdateRow(None), condition)
    return MergeClause(rows, UpdateRow(_assignments(cursor, "WHEN")), condition)


def _rows(cursor: Cursor) -> Rows:
    if cursor.take("MATCHED"):
        return Rows.MATCHED
    cursor.expect("NOT", "MATCHED")
    if cursor.take("BY", "SOURCE"):
        return Rows.NOT_MATCHED_BY_SOURCE
    cursor.take("BY", "TARGET")
    return Rows.NOT_MATCHED


def _insert_row(cursor: Cursor) -> InsertRow:
    if cursor.take("*"):
        return InsertRow(None, None)
    columns = cursor.in_parentheses(cursor.path)
    cursor.expect("VALUES")
    values = cursor.in_parentheses(cursor.expression)
    if len(columns) != len(values):
        raise InvalidSql(f"INSERT names {len(columns)} columns and gives {len(values)} values")
    return InsertRow(columns, values)


# --- views ----------------------------------------------------------------------------------------


_QUERY: Final = ("SELECT", "WITH", "VALUES", "TABLE", "FROM", "(")


def parse_temporary_view(cursor: Cursor) -> Statement | None:
    """``CREATE [OR REPLACE] [GLOBAL] TEMPORARY VIEW v [(columns)] [COMMENT text] AS query``,
    ``ALTER VIEW v AS query``, or ``CACHE [LAZY] TABLE v [OPTIONS (...)] [AS] query``; else None.
    """  # noqa: D205
    parsers = {"CACHE": _cached_view, "CREATE": _temporary_view, "ALTER": _altered_view}
    parse = parsers.get(cursor.token.word)
    if parse is None:
        return None
    start = cursor.at
    found = parse(cursor)
    if found is None:
        cursor.at = start
    return found


def _cached_view(cursor: Cursor) -> Statement | None:
    cursor.expect("CACHE")
    is_lazy = cursor.take("LAZY")
    if not cursor.take("TABLE"):
        return None
    view, storage = cursor.name(), ""
    if cursor.take("OPTIONS"):
        storage = f"OPTIONS {cursor.skip_parentheses()}"
    if not cursor.take("AS") and not _is_query(cursor):
        return None  # a table that is there already
    return CreateTemporaryView(
        view=view, query=cursor.rest(), is_cached=True, is_lazy=is_lazy, storage=storage
    )


def _is_query(cursor: Cursor) -> bool:
    return any(cursor.is_at(word) for word in _QUERY)


def _altered_view(cursor: Cursor) -> Statement | None:
    cursor.expect("ALTER")
    if not cursor.take("VIEW"):
        return None
    view = cursor.name()
    if not cursor.take("AS") and not _is_query(cursor):
        return None  # RENAME, or the name has several parts
    return CreateTemporaryView(view=view, query=cursor.rest(), replace=True, must_exist=True)


def _temporary_view(cursor: Cursor) -> Statement | None:
    cursor.expect("CREATE")
    replace = cursor.take("OR", "REPLACE")
    is_global = cursor.take("GLOBAL")
    if not (cursor.take("TEMPORARY", "VIEW") or cursor.take("TEMP", "VIEW")):
        return None
    if cursor.is_at("IF"):
        return None  # temporary views have no IF NOT EXISTS; Spark reports it
    view = cursor.name()
    named: tuple[tuple[str, str | None], ...] = ()
    if cursor.is_at("("):
        named = cursor.in_parentheses(lambda: _view_column(cursor))
    if cursor.take("COMMENT"):
        cursor.string()  # no statement shows it
    if not cursor.take("AS"):
        return None  # USING: Spark's own
    return CreateTemporaryView(
        view=view,
        query=cursor.rest(),
        columns=tuple(name for name, _ in named) or None,
        comments={name: comment for name, comment in named if comment is not None},
        is_global=is_global,
        replace=replace,
    )


def _view_column(cursor: Cursor) -> tuple[str, str | None]:
    return cursor.name(), cursor.string() if cursor.take("COMMENT") else None


ROW_PARSERS: Final[Mapping[str, Callable[[Cursor, str], Statement]]] = {
    "INSERT": _parse_insert,
    "DELETE": _parse_delete,
    "UPDATE": _parse_update,
    "MERGE": _parse_merge,
    "TRUNCATE": _parse_truncate,
}

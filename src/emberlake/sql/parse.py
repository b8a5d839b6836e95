"""Text to a statement: the first words decide which parser reads it.

Parsers of statements that move rows are in ``parse_rows``, those of commands in ``commands``. A
statement that neither knows is ``Foreign``: it may be one of Spark's.
"""

from emberlake.sql.commands import parse_command
from emberlake.sql.cursor import Cursor
from emberlake.sql.parse_rows import ROW_PARSERS, parse_inserts, parse_temporary_view
from emberlake.sql.statements import Foreign, Query, Statement

_QUERIES = frozenset({"SELECT", "VALUES", "TABLE", "FROM", "MAP", "REDUCE"})


def parse_statement(text: str) -> Statement:
    """Parse one statement.

    Raises:
        InvalidSql: it does not follow the grammar; the message says where.
    """
    cursor = Cursor(text)
    ctes = take_ctes(cursor)
    word = cursor.token.word
    if word in ROW_PARSERS:
        statement = ROW_PARSERS[word](cursor, ctes)
        cursor.expect_end()
        return statement
    if word == "FROM" and (inserts := parse_inserts(cursor, ctes)) is not None:
        return inserts
    if ctes or word in _QUERIES or cursor.token.is_symbol("("):
        return Query(text=_whole(cursor))
    return parse_temporary_view(cursor) or parse_command(cursor) or Foreign(text=text)


def take_ctes(cursor: Cursor) -> str:
    """``WITH a AS (...), b AS (...)``, if the statement begins with it; moves past it."""
    if not cursor.is_at("WITH"):
        return ""
    start = cursor.token.start
    cursor.next()
    cursor.take("RECURSIVE")
    while True:
        cursor.name()
        if cursor.token.is_symbol("("):
            cursor.skip_parentheses()
        while not cursor.token.is_symbol("(") and not cursor.is_done:
            cursor.next()  # AS, MAX RECURSION LEVEL n
        cursor.skip_parentheses()
        if not cursor.take(","):
            break
    return cursor.text[start : cursor.tokens[cursor.at - 1].end]


def _whole(cursor: Cursor) -> str:
    """The whole text of a statement, without a last semicolon."""
    cursor.at = 0
    return cursor.rest()

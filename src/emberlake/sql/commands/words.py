"""Small parsing steps that only commands need."""

from typing import Final

from emberlake.sql.cursor import Cursor
from emberlake.sql.lexer import Kind

_SUFFIXES: Final = "lLsSyYdDfFbB"


def take_one_of(cursor: Cursor, *words: str) -> str | None:
    """Move over one of these words, if it comes next, and return it."""
    return next((word for word in words if cursor.take(word)), None)


def is_text(cursor: Cursor) -> bool:
    """Whether a quoted string comes next."""
    return cursor.token.kind is Kind.TEXT


def is_named(cursor: Cursor) -> bool:
    """Whether a named argument comes next: ``table => 'db.t'``."""
    return cursor.ahead().is_symbol("=>")


def read_number(cursor: Cursor) -> str:
    """A number as it is written, with its sign and without a letter for its type."""
    sign = "-" if cursor.take("-") else ""
    if cursor.token.kind is not Kind.NUMBER:
        cursor.fail("expected a value")
    return sign + cursor.next().text.rstrip(_SUFFIXES)


def read_integer(cursor: Cursor) -> int:
    """A whole number."""
    if not cursor.token.text.isdigit():
        cursor.fail("expected a whole number")
    return int(cursor.next().text)

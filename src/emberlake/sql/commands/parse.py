"""Text to a statement that moves no rows."""

import re
from collections.abc import Callable
from typing import Final

from emberlake.errors import InvalidSql, Unsupported
from emberlake.sql.commands.clauses import read_literal
from emberlake.sql.commands.of_peers import parse_peer
from emberlake.sql.commands.parse_alter import parse_alter, parse_comment_on
from emberlake.sql.commands.parse_define import (
    parse_create,
    parse_drop,
    parse_replace,
    parse_use,
)
from emberlake.sql.commands.parse_show import parse_analyze, parse_describe, parse_show
from emberlake.sql.commands.values import (
    Call,
    Literal,
    OfPeer,
    RefreshTable,
    ResetOption,
    SetOption,
    UseCatalog,
)
from emberlake.sql.commands.words import is_named, is_text
from emberlake.sql.cursor import Cursor
from emberlake.sql.lexer import Kind
from emberlake.sql.statements import Command, Statement


def parse_command(cursor: Cursor) -> Statement | None:
    """The command at the cursor; None if it is not about the lake, such as SHOW FUNCTIONS.

    Raises:
        InvalidSql: it begins like a command, but does not continue like one.
        Unsupported: the command has no counterpart here; the message says what to use instead.
    """
    start = cursor.at
    for words, parse in _PARSERS:
        if cursor.take(*words):
            command = parse(cursor)
            if command is not None:
                return command
            cursor.at = start
    return None


def parse_call(cursor: Cursor) -> Call:
    """After CALL."""
    name = cursor.path()
    cursor.expect("(")
    named: list[tuple[str, Literal]] = []
    positional: list[Literal] = []
    while not cursor.take(")"):
        if named or positional:
            cursor.expect(",")
        if not is_named(cursor):
            positional.append(read_literal(cursor))
        else:
            key = cursor.name().lower()
            cursor.expect("=>")
            named.append((key, read_literal(cursor)))
    cursor.expect_end()
    if named and positional:
        raise InvalidSql("CALL: name all arguments, or none of them")
    keys = [key for key, _ in named]
    twice = sorted({key for key in keys if keys.count(key) > 1})
    if twice:
        raise InvalidSql(f"CALL: {', '.join(twice)} is given twice")
    return Call(name, tuple(named), tuple(positional))


_OF_SPARK: Final = ("TIME", "VAR", "VARIABLE", "ROLE", "PATH")


_PLAIN_KEY: Final = re.compile(r"[\w.:\\]*", re.ASCII)  # what Spark takes without backquotes


def parse_set(cursor: Cursor) -> Command | None:
    """After SET: a key and its value, as Spark reads them; None for SET TIME ZONE, SET VAR, ..."""
    if cursor.is_done or cursor.is_at("-") or cursor.is_at("("):
        return None
    if cursor.token.is_word(*_OF_SPARK) and cursor.ahead().is_name:
        return None  # SET TIME ZONE ..., SET VAR x = ...
    if cursor.is_at("CATALOG") and (cursor.ahead().is_name or cursor.ahead().kind is Kind.TEXT):
        cursor.next()
        return UseCatalog(cursor.string() if is_text(cursor) else cursor.name())
    key, has_value, value = cursor.rest().partition("=")
    if not (key.lstrip().startswith("`") or _PLAIN_KEY.fullmatch(key.strip())):
        raise InvalidSql(f"[INVALID_SET_SYNTAX] {key.strip()} is no key; put it in backquotes")
    key = _unquoted(key)
    if not has_value:
        return SetOption(key)
    return SetOption(key, _unquoted(value))


def parse_refresh(cursor: Cursor) -> RefreshTable | None:
    """After REFRESH: a table; None for everything else."""
    if not cursor.take("TABLE"):
        return None
    table = cursor.table()
    cursor.expect_end()
    return RefreshTable(table)


def parse_reset(cursor: Cursor) -> ResetOption:
    """After RESET."""
    return ResetOption(_unquoted(cursor.rest()) if not cursor.is_done else None)


def _unquoted(text: str) -> str:
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] == "`":
        return text[1:-1].replace("``", "`")
    return text


def _refuse_msck(_: Cursor) -> Command:
    raise Unsupported("MSCK REPAIR TABLE is for Hive tables; snapshots name their own files")


def _of_peer(words: str) -> Callable[[Cursor], OfPeer | None]:
    return lambda cursor: parse_peer(cursor, words)


def _refuse_load(_: Cursor) -> Command:
    raise Unsupported("LOAD DATA is for Hive tables; use INSERT INTO ... SELECT ...")


_PARSERS: Final[tuple[tuple[tuple[str, ...], Callable[[Cursor], Statement | None]], ...]] = (
    (("CREATE",), parse_create),
    (("REPLACE",), parse_replace),
    (("DROP",), parse_drop),
    (("ALTER",), parse_alter),
    (("COMMENT", "ON"), parse_comment_on),
    (("USE",), parse_use),
    (("SHOW",), parse_show),
    (("DESCRIBE", "HISTORY"), _of_peer("DESCRIBE HISTORY")),
    (("DESCRIBE", "DETAIL"), _of_peer("DESCRIBE DETAIL")),
    (("DESC", "HISTORY"), _of_peer("DESCRIBE HISTORY")),
    (("DESC", "DETAIL"), _of_peer("DESCRIBE DETAIL")),
    (("OPTIMIZE",), _of_peer("OPTIMIZE")),
    (("VACUUM",), _of_peer("VACUUM")),
    (("RESTORE",), _of_peer("RESTORE")),
    (("DESCRIBE",), parse_describe),
    (("DESC",), parse_describe),
    (("ANALYZE",), parse_analyze),
    (("CALL",), parse_call),
    (("SET",), parse_set),
    (("RESET",), parse_reset),
    (("REFRESH",), parse_refresh),
    (("MSCK",), _refuse_msck),
    (("LOAD", "DATA"), _refuse_load),
)

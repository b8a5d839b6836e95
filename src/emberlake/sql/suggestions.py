"""What may come next in a statement that is being typed: names of the lake, columns, keywords."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from emberlake.sql.commands.procedures import PROCEDURES
from emberlake.sql.lexer import InvalidText, Kind, Token, tokenize
from emberlake.sql.names import quoted

KEYWORDS: Final = tuple(
    """
    ADD ALL ALTER AND AS ASC BETWEEN BY CALL CASE CAST COLUMN COMMENT CREATE CROSS DATABASE
    DATABASES DELETE DESC DESCRIBE DISTINCT DROP ELSE END EXCEPT EXISTS FALSE FROM FULL GROUP
    HAVING IF IN INNER INSERT INTERSECT INTO IS JOIN LEFT LIKE LIMIT MATCHED MERGE NOT NULL OF ON OR
    ORDER OUTER OVER OVERWRITE PARTITION PARTITIONED PARTITIONS REPLACE RENAME RIGHT SELECT SET SHOW
    TABLE TABLES TAGS TBLPROPERTIES TEMPORARY THEN TIMESTAMP TO TRUE TRUNCATE UNION UPDATE USE USING
    VALUES VERSION VIEW VIEWS WHEN WHERE WINDOW WITH
    AVG( COALESCE( CONCAT( COUNT( DATE_FORMAT( MAX( MIN( ROUND( ROW_NUMBER( SUM(
    """.split()  # noqa: SIM905 - a hundred quotes would hide the words
)
_BEFORE_TABLES: Final = frozenset(
    ["FROM", "JOIN", "INTO", "UPDATE", "TABLE", "OVERWRITE", "USING", "DESCRIBE", "DESC", "VIEW"]
)
_BEFORE_DATABASES: Final = frozenset(["USE", "DATABASE", "SCHEMA"])
_LISTS: Final = frozenset(["TABLES", "VIEWS"])  # SHOW TABLES IN a database
_SYSTEM: Final = "sys"
_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


class Known(Protocol):
    """The names that a session knows."""

    @property
    def catalog(self) -> str:
        """The name of the lake in statements."""

    @property
    def database(self) -> str:
        """The current database, for names of one part."""

    def databases(self) -> Iterable[str]:
        """All databases."""

    def tables(self, database: str) -> Iterable[str]:
        """The tables and views of a database; none if there is no such database."""

    def columns(self, table: tuple[str, ...]) -> Iterable[str]:
        """The columns of a table; none if there is no such table."""


@dataclass(frozen=True)
class Suggestion:
    """A word that may stand at the end of a text, in the place of the last ``replaces`` letters."""

    text: str
    replaces: int
    kind: str  # what it names: table, column, ...


@dataclass(frozen=True)
class _Begun:
    """The name that is being typed."""

    qualifiers: tuple[str, ...]  # what stands before its last dot
    prefix: str
    length: int  # of the prefix as it was typed, with its quote
    before: tuple[Token, ...]  # the tokens in front of the whole name


def suggest(before: str, after: str, known: Known) -> list[Suggestion]:
    """What may come at the cursor, between two texts; nothing inside strings and comments."""
    begun = _begun(before)
    if begun is None:
        return []
    prefix = begun.prefix.lower()
    found: dict[str, Suggestion] = {}
    for name, kind in _names(begun, _statement_around(before, after), known):
        if name.lower().startswith(prefix):
            text = name if kind in ("keyword", "procedure") else _written(name)
            found.setdefault(text, Suggestion(text, begun.length, kind))
    return list(found.values())


def _names(begun: _Begun, statement: str, known: Known) -> Iterator[tuple[str, str]]:
    previous = begun.before[-1] if begun.before else None
    word = "" if previous is None else previous.word
    if word == "CALL" or (begun.qualifiers and begun.qualifiers[-1].lower() == _SYSTEM):
        start = "" if begun.qualifiers else f"{_SYSTEM}."
        yield from ((f"{start}{name}(", "procedure") for name in PROCEDURES)
    elif begun.qualifiers:
        yield from _qualified(begun.qualifiers, statement, known)
    elif word in _BEFORE_DATABASES or _is_in_list(begun.before):
        yield from ((name, "database") for name in known.databases())
    elif word in _BEFORE_TABLES or _is_in_from(begun.before):
        yield from ((name, "table") for name in known.tables(known.database))
        yield from ((name, "database") for name in known.databases())
    else:
        yield from _words(begun.prefix, statement, known)


def _qualified(
    qualifiers: tuple[str, ...], statement: str, known: Known
) -> Iterator[tuple[str, str]]:
    tables = tables_in(statement)
    named = tables.get(qualifiers[-1].lower()) if len(qualifiers) == 1 else qualifiers
    if named is not None:
        yield from ((name, "column") for name in known.columns(named))
    if qualifiers == (known.catalog,):
        yield from ((name, "database") for name in known.databases())
    if len(qualifiers) == 1 or qualifiers[0] == known.catalog:
        yield from ((name, "table") for name in known.tables(qualifiers[-1]))


def _words(prefix: str, statement: str, known: Known) -> Iterator[tuple[str, str]]:
    tables = tables_in(statement)
    for parts in dict.fromkeys(tables.values()):
        yield from ((name, "column") for name in known.columns(parts))
    yield from ((name, "table") for name in tables)
    if prefix:
        change = str.lower if prefix == prefix.lower() else str.upper
        yield from ((change(word), "keyword") for word in KEYWORDS)


# --- where the cursor is --------------------------------------------------------------------------


def _begun(before: str) -> _Begun | None:
    """The name at the end of a text; None inside a string or a comment."""
    quote = 0
    try:
        tokens = list(tokenize(before)[:-1])
        end = len(before)
    except InvalidText as error:
        if not error.is_open or before[error.at] != "`":
            return None
        tokens = list(tokenize(before[: error.at])[:-1])
        end, quote = error.at, 1
    prefix, length = (before[end + 1 :], len(before) - end) if quote else ("", 0)
    if not quote and tokens and tokens[-1].is_name and tokens[-1].end == end:
        last = tokens.pop()
        prefix, length, end = last.name, last.end - last.start, last.start
    qualifiers: list[str] = []
    while _ends_with_dot(tokens, end):
        *tokens, name, dot = tokens
        qualifiers.insert(0, name.name)
        end = name.start if dot.start == name.end else -1
    last_end = max((at + 1 for at, token in enumerate(tokens) if token.is_symbol(";")), default=0)
    return _Begun(tuple(qualifiers), prefix, length, tuple(tokens[last_end:]))


def _ends_with_dot(tokens: list[Token], end: int) -> bool:
    return (
        len(tokens) > 1
        and tokens[-1].is_symbol(".")
        and tokens[-1].end == end
        and tokens[-2].is_name
    )


def _is_in_list(before: tuple[Token, ...]) -> bool:
    """SHOW TABLES IN, and FROM."""
    words = [token.word for token in before[-3:]]
    return len(words) == 3 and words[0] == "SHOW" and words[1] in _LISTS and words[2] != ""


def _is_in_from(before: tuple[Token, ...]) -> bool:
    """After a comma of FROM a, b."""
    if not before or not before[-1].is_symbol(","):
        return False
    for token in reversed(before):
        if token.word in ("SELECT", "WHERE", "BY", "SET", "ON", "VALUES") or token.is_symbol("("):
            return False
        if token.word in ("FROM", "JOIN"):
            return True
    return False


def _statement_around(before: str, after: str) -> str:
    """The statement at the cursor; without the text after it if that cannot be read."""
    for text in (before + after, before, before.rpartition("`")[0]):
        try:
            tokens = tokenize(text)
        except InvalidText:
            continue
        ends = [token.start for token in tokens if token.is_symbol(";")]
        start = max((end + 1 for end in ends if end < len(before)), default=0)
        stop = min((end for end in ends if end >= len(before)), default=len(text))
        return text[start:stop]
    return ""


def tables_in(statement: str) -> dict[str, tuple[str, ...]]:
    """The tables that a statement names, by the lower-case name that qualifies their columns.

    Half-typed statements follow no grammar, so this looks at words only.
    """
    tokens = tokenize(statement)
    found: dict[str, tuple[str, ...]] = {}
    is_expected = False
    at = 0
    while tokens[at].kind is not Kind.END:
        token = tokens[at]
        if is_expected and token.is_name:
            path, at = _path_at(tokens, at)
            alias, at = _alias_at(tokens, at)
            found[(alias or path[-1]).lower()] = path
            is_expected = tokens[at].is_symbol(",")
        elif token.word in _BEFORE_TABLES:
            is_expected = True
        elif not token.is_symbol(","):
            is_expected = False
        at += 1 if token is tokens[at] else 0
    return found


def _path_at(tokens: tuple[Token, ...], at: int) -> tuple[tuple[str, ...], int]:
    parts = [tokens[at].name]
    at += 1
    while tokens[at].is_symbol(".") and tokens[at + 1].is_name:
        parts.append(tokens[at + 1].name)
        at += 2
    return tuple(parts), at


def _alias_at(tokens: tuple[Token, ...], at: int) -> tuple[str | None, int]:
    if tokens[at].is_word("AS") and tokens[at + 1].is_name:
        return tokens[at + 1].name, at + 2
    if tokens[at].is_name and tokens[at].word not in KEYWORDS:
        return tokens[at].name, at + 1
    return None, at


def _written(name: str) -> str:
    """A name as it has to be written in a statement."""
    return name if _PLAIN.fullmatch(name) else quoted(name)

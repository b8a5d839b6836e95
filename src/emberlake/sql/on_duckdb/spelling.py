"""Spark's SQL in a spelling that sqlglot reads: keywords as names, and time travel."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from emberlake.errors import Unsupported
from emberlake.sql.lexer import Kind, Token, tokenize
from emberlake.sql.names import quoted
from emberlake.sql.references import Reference
from emberlake.sql.scanner import find_references

_TRAVELS: Final = {
    "VERSION": "VERSION",
    "SYSTEM_VERSION": "VERSION",
    "TIMESTAMP": "TIMESTAMP",
    "SYSTEM_TIME": "TIMESTAMP",
}
_VERSIONS: Final = ("scan.snapshot-id", "scan.tag-name", "scan.version")
_SET_OPERATORS: Final = ("UNION", "ALL", "DISTINCT", "INTERSECT", "EXCEPT", "MINUS")
# Words that begin or join parts of a query; Spark reads them as names where it needs a name.
_PARTS: Final = frozenset(
    {"SELECT", "FROM", "WHERE", "GROUP", "ORDER", "HAVING", "LIMIT", "UNION", "JOIN", "ON", "TABLE"}
    | {"VALUES", "WITH", "AS", "BY", "IN", "AND", "OR", "NOT", "CASE", "WHEN", "THEN", "ELSE"}
    | {"LEFT", "RIGHT", "INNER", "OUTER", "CROSS", "USING", "SET", "INTO", "INSERT", "UPDATE"}
    | {"DELETE", "MERGE", "CREATE", "DROP", "ALTER", "DISTINCT", "ALL", "INTERSECT", "END"}
)


def with_plain_travel(text: str) -> str:
    """The text with ``VERSION AS OF`` or ``TIMESTAMP AS OF`` for all their spellings."""
    tokens = tokenize(text)
    edits: list[tuple[int, int, str]] = []
    for at, token in enumerate(tokens[:-2]):
        word = _TRAVELS.get(token.word)
        follows = tokens[at + 1].is_word("AS") and tokens[at + 2].is_word("OF")
        if word is None or not follows or token.kind is not Kind.WORD:
            continue
        before = tokens[at - 1] if at else token
        start = before.start if before.is_word("FOR") else token.start
        if start != token.start or token.word != word:
            edits.append((start, token.end, word))
    return _edited(text, edits)


def with_travelled_options(text: str) -> str:
    """The text with ``VERSION AS OF 1`` for ``WITH ('scan.snapshot-id' = '1')`` behind a table.

    Raises:
        Unsupported: there are other options.
    """
    tokens = tokenize(text)
    if not any(a.is_word("WITH") and b.is_symbol("(") for a, b in pairwise(tokens)):
        return text
    edits = []
    for reference in find_references(text).references:
        if reference.options:
            inside = (t for t in tokens if reference.start < t.start < reference.end)
            start = max(token.start for token in inside if token.is_word("WITH"))
            edits.append((start, reference.end, _travel(reference)))
    return _edited(text, edits)


def _travel(reference: Reference) -> str:
    ((key, value), *others) = reference.options
    if others or key not in _VERSIONS or reference.version or reference.timestamp:
        raise Unsupported(
            f"{reference.name} WITH (...): without Spark only one option can stand there, of "
            f"{', '.join(_VERSIONS)}; SET `spark.paimon.<option>` takes others"
        )
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"VERSION AS OF '{escaped}'"


def with_selects(text: str) -> str:
    """The text with ``SELECT * FROM t`` for ``TABLE t``, which sqlglot does not know."""
    tokens = tokenize(text)
    edits = [
        (token.start, token.end, "SELECT * FROM")
        for at, token in enumerate(tokens)
        if token.is_word("TABLE") and _begins_query(tokens, at)
    ]
    return _edited(text, edits)


def _begins_query(tokens: Sequence[Token], at: int) -> bool:
    before, after = tokens[at - 1] if at else None, tokens[at + 1]
    if not after.is_name or after.is_word("FROM", "AS"):
        return False
    return before is None or before.is_symbol("(") or before.is_word(*_SET_OPERATORS)


def with_quoted_words(text: str) -> str:
    """The text with quotes around keywords that are used as names."""
    tokens = tokenize(text)
    edits = [
        (token.start, token.end, quoted(token.text))
        for at, token in enumerate(tokens)
        if token.kind is Kind.WORD and token.word in _PARTS and _is_name(tokens, at)
    ]
    return _edited(text, edits)


def _is_name(tokens: Sequence[Token], at: int) -> bool:
    before, after = tokens[at - 1] if at else None, tokens[min(at + 1, len(tokens) - 1)]
    if after.is_symbol(".") or (before is not None and before.is_symbol(".")):
        return True
    if before is None:
        return False
    ends = after.kind is Kind.END or after.is_symbol(",", ")")
    begins_list = before.is_word("SELECT", "BY", "DISTINCT") or before.is_symbol(",", "(")
    return begins_list and (ends or after.is_word("FROM"))


def _edited(text: str, edits: list[tuple[int, int, str]]) -> str:
    for start, end, new in reversed(edits):
        text = text[:start] + new + text[end:]
    return text

"""Parameters that must be known before a statement is parsed: ``?``, names, and those of commands.

All others are bound by the engine that evaluates the expressions they are in.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from itertools import pairwise
from typing import Any, Final

from emberlake.errors import InvalidSql
from emberlake.sql.cursor import Cursor
from emberlake.sql.lexer import Kind, Token, text_value, tokenize
from emberlake.sql.names import TableName, spark_literal
from emberlake.sql.replacing import Edit, edited

# Statements whose values are literals, not expressions. Those of ALTER VIEW are in a query.
_COMMANDS: Final = ("ANALYZE", "CALL", "COMMENT", "DESC", "DESCRIBE", "SHOW")
Given = Mapping[str, Any] | Sequence[Any] | None


def with_named_parameters(text: str, given: Given) -> tuple[str, Mapping[str, Any]]:
    """The text with ``:name`` for every ``?``, and the values by these names.

    Raises:
        InvalidSql: there are not as many values as parameters.
    """
    if given is None or isinstance(given, Mapping):
        return text, given or {}
    marks = list(_marks(tokenize(text)))
    if len(marks) != len(given):
        raise InvalidSql(
            f"[UNBOUND_SQL_PARAMETER] the statement has {len(marks)} parameters (?), and args has "
            f"{len(given)} values"
        )
    names = [f"_{number}" for number in range(1, len(marks) + 1)]
    edits = [Edit(m.start, m.end, f":{name}") for m, name in zip(marks, names, strict=True)]
    return edited(text, edits), dict(zip(names, given, strict=True))


def _marks(tokens: Sequence[Token]) -> Iterator[Token]:
    for token, after in pairwise(tokens):
        if token.is_symbol("?") and not after.is_symbol("::"):  # a ?:: INT is a cast
            yield token


def with_identifiers(text: str, args: Mapping[str, Any]) -> str:
    """The text with names in the place of ``IDENTIFIER('db.t')`` and ``IDENTIFIER(:name)``.

    Other arguments are left to the engine, which evaluates them in queries.

    Raises:
        InvalidSql: a text is not a name.
    """
    if "identifier" not in text.lower():
        return text
    tokens = tokenize(text)
    edits: list[Edit] = []
    for at, token in enumerate(tokens[:-3]):
        if not (token.is_word("IDENTIFIER") and tokens[at + 1].is_symbol("(")):
            continue
        close = next((n for n in range(at + 2, len(tokens)) if tokens[n].is_symbol(")")), None)
        value = None if close is None else _text(tokens[at + 2 : close], args)
        if value is not None and close is not None:
            edits.append(Edit(token.start, tokens[close].end, str(_name(value))))
    return edited(text, edits)


def with_literals(text: str, args: Mapping[str, Any]) -> str:
    """The text with literals for the parameters of a command, and for those of VERSION AS OF.

    Raises:
        InvalidSql: a parameter has no value, or one that cannot be a literal.
    """
    tokens = tokenize(text)
    of_all = tokens[0].is_word(*_COMMANDS) or (
        tokens[0].is_word("ALTER") and tokens[1].is_word("TABLE")
    )
    edits: list[Edit] = []
    for at, token in enumerate(tokens[:-1]):
        name = tokens[at + 1]
        if not (token.is_symbol(":") and name.is_name):
            continue
        words = " ".join(before.word for before in tokens[max(at - 3, 0) : at])
        is_version = words in ("VERSION AS OF", "SYSTEM_VERSION AS OF")
        # In ALTER TABLE ``a: INT`` is a field of a struct.
        is_value = of_all and (name.name in args or tokens[0].is_word("CALL"))
        if is_version or is_value:
            edits.append(Edit(token.start, name.end, _literal(name.name, args)))
    return edited(text, edits)


def _literal(name: str, args: Mapping[str, Any]) -> str:
    if name not in args:
        raise InvalidSql(f"[UNBOUND_SQL_PARAMETER] the parameter :{name} has no value in args")
    match args[name]:
        case None:
            return "NULL"
        case bool(value):
            return str(value).lower()
        case (int() | Decimal()) as value:
            return str(value)
        case str(value):
            return spark_literal(value)
        case datetime() as value:
            return f"TIMESTAMP '{value}'"
        case date() as value:
            return f"DATE '{value}'"
        case value:
            raise InvalidSql(f"the parameter :{name} cannot be a {type(value).__name__} here")


def _text(tokens: Sequence[Token], args: Mapping[str, Any]) -> str | None:
    """The value of texts and parameters with ``||`` between them; None for everything else."""
    parts: list[list[Token]] = [[]]
    for token in tokens:
        if token.is_symbol("||"):
            parts.append([])
        else:
            parts[-1].append(token)
    values = [_part(part, args) for part in parts]
    return None if None in values else "".join(value or "" for value in values)


def _part(tokens: Sequence[Token], args: Mapping[str, Any]) -> str | None:
    if tokens and all(token.kind is Kind.TEXT for token in tokens):
        return "".join(map(text_value, tokens))
    if len(tokens) == 2 and tokens[0].is_symbol(":") and tokens[1].is_name:
        value = args.get(tokens[1].name)
        return value if isinstance(value, str) else None
    return None


def _name(text: str) -> TableName:
    cursor = Cursor(text)
    name = cursor.table()
    cursor.expect_end()
    return name

"""Which side of a MERGE a plain name means where both have such a column.

In conditions and values of WHEN NOT MATCHED only the source has rows, and in those of WHEN NOT
MATCHED BY SOURCE only the table. The query that decides joins both, so such names are qualified.
"""

from collections.abc import Collection, Sequence

from emberlake.sql.lexer import Kind, Token, tokenize
from emberlake.sql.replacing import Edit, edited


def qualified(
    text: str, names: Collection[str], qualifier: str, sides: Collection[str] = ()
) -> str:
    """The text of an expression with a qualifier before the plain names of these columns.

    Expressions with a query inside stay as they are: its own tables may have such columns.

    Args:
        text: The expression.
        names: The names of columns, in lower case.
        qualifier: What stands before them, as it is written.
        sides: The names of both sides, in lower case, which qualify columns already.
    """
    tokens = tokenize(text)
    if any(token.is_word("SELECT", "FROM") for token in tokens):
        return text
    bound = _parameters(tokens)
    found = [
        token
        for before, token, after in zip([None, *tokens], tokens, tokens[1:], strict=False)
        if token.is_name
        and token.name.lower() in names
        and token.name.lower() not in bound
        and not (token.name.lower() in sides and after.is_symbol("."))
        and not _is_something_else(before, token, after)
    ]
    return edited(text, [Edit(t.start, t.start, f"{qualifier}.") for t in found])


def _parameters(tokens: Sequence[Token]) -> set[str]:
    """The names that functions inside of the expression bind: ``x -> x + 1``, ``(x, y) -> ...``."""
    bound: set[str] = set()
    for at, token in enumerate(tokens):
        if not token.is_symbol("->") or at == 0:
            continue
        before = at - 1
        if tokens[before].is_symbol(")"):
            while before > 0 and not tokens[before].is_symbol("("):
                before -= 1
        bound |= {t.name.lower() for t in tokens[before:at] if t.is_name}
    return bound


def _is_something_else(before: Token | None, token: Token, after: Token) -> bool:
    """Whether a word is a part of a name, a function, a type, a unit or a parameter."""
    if after.is_symbol("(", "=>") or after.kind is Kind.TEXT:
        return True  # n(...), n => 1, DATE '2024-01-01'
    if before is None:
        return False
    return (
        before.is_symbol(".", ":")
        or before.is_word("AS", "INTERVAL")
        or (before.kind in (Kind.TEXT, Kind.NUMBER) and token.kind is Kind.WORD)
    )

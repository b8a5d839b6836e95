"""Walks over the tokens of one statement; the parsers of all statements are written with it."""

from collections.abc import Callable
from typing import NoReturn, TypeVar

from emberlake.errors import InvalidSql
from emberlake.sql.lexer import Kind, Token, text_value, tokenize
from emberlake.sql.names import TableName

_T = TypeVar("_T")


class Cursor:
    """A place in a statement. ``take`` moves on only if it finds what it is given."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokenize(text)
        self.at = 0

    # --- looking ----------------------------------------------------------------------------------

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    def ahead(self, count: int = 1) -> Token:
        """A later token, or the end of the text."""
        return self.tokens[min(self.at + count, len(self.tokens) - 1)]

    @property
    def is_done(self) -> bool:
        """Whether nothing is left, except perhaps semicolons."""
        at = 0
        while self.ahead(at).is_symbol(";"):
            at += 1
        return self.ahead(at).kind is Kind.END

    def is_at(self, *words: str) -> bool:
        """Whether these words, or symbols, come next, in this order."""
        return all(
            token.is_word(word) or token.is_symbol(word)
            for word, token in zip(words, map(self.ahead, range(len(words))), strict=True)
        )

    # --- moving -----------------------------------------------------------------------------------

    def next(self) -> Token:
        """The token here; moves on."""
        token = self.token
        self.at = min(self.at + 1, len(self.tokens) - 1)
        return token

    def take(self, *words: str) -> bool:
        """Move over these words or symbols, if all of them come next."""
        if not self.is_at(*words):
            return False
        self.at += len(words)
        return True

    def expect(self, *words: str) -> None:
        """Move over these words or symbols.

        Raises:
            InvalidSql: something else comes next.
        """
        if not self.take(*words):
            self.fail(f"expected {' '.join(words)}")

    def expect_end(self) -> None:
        """Only a semicolon may be left."""
        if not self.is_done:
            self.fail("expected the end of the statement")

    def fail(self, problem: str) -> NoReturn:
        """Raise an error that names this place."""
        token = self.token
        found = "the end" if token.kind is Kind.END else f"{token.text!r}"
        raise InvalidSql(f"{problem}, not {found}, at character {token.start + 1}")

    # --- names, values, lists ---------------------------------------------------------------------

    def name(self) -> str:
        """One name, quoted or not."""
        if not self.token.is_name:
            self.fail("expected a name")
        return self.next().name

    def path(self) -> tuple[str, ...]:
        """A name of several parts: ``a.b.c``."""
        parts = [self.name()]
        while self.token.is_symbol(".") and self.ahead().is_name:
            self.next()
            parts.append(self.name())
        return tuple(parts)

    def table(self) -> TableName:
        """The name of a table."""
        return TableName(self.path())

    def string(self) -> str:
        """A string literal; adjacent literals are joined, as in Spark."""
        if self.token.kind is not Kind.TEXT:
            self.fail("expected a quoted string")
        value = text_value(self.next())
        while self.token.kind is Kind.TEXT:
            value += text_value(self.next())
        return value

    def in_parentheses(self, item: Callable[[], _T]) -> tuple[_T, ...]:
        """A list with commas, in parentheses; at least one item."""
        self.expect("(")
        items = [item()]
        while self.take(","):
            items.append(item())
        self.expect(")")
        return tuple(items)

    def skip_parentheses(self) -> str:
        """Everything from a parenthesis to the one that closes it, as it was written."""
        start = self.token.start
        self.expect("(")
        depth = 1
        while depth:
            token = self.next()
            if token.kind is Kind.END:
                self.fail("expected )")
            depth += token.is_symbol("(") - token.is_symbol(")")
        return self.text[start : self.tokens[self.at - 1].end]

    def expression(self, *ends: str) -> str:
        """The text of an expression: up to one of these words or symbols outside of parentheses,
        a comma, a closing parenthesis, or the end.

        ``CASE ... WHEN ... END`` is taken as a whole.
        """  # noqa: D205
        start, last, depth, cases = self.token.start, self.token.start, 0, 0
        while self.token.kind is not Kind.END and not self.token.is_symbol(";"):
            token = self.token
            if depth == 0 and token.is_symbol(",", ")"):
                break
            if depth == 0 and cases == 0 and self._is_keyword(token, ends):
                break
            depth += token.is_symbol("(", "[") - token.is_symbol(")", "]")
            cases += token.is_word("CASE") and not self._is_part()
            cases -= token.is_word("END") and cases > 0 and not self._is_part()
            last = self.next().end
        if last == start:
            self.fail("expected an expression")
        return self.text[start:last]

    def rest(self) -> str:
        """Everything that is left of the statement; moves to its end."""
        start = last = self.token.start
        while self.token.kind is not Kind.END and not self.token.is_symbol(";"):
            last = self.next().end
        self.expect_end()
        return self.text[start:last]

    def _is_keyword(self, token: Token, ends: tuple[str, ...]) -> bool:
        return (token.is_word(*ends) or token.is_symbol(*ends)) and not self._is_part()

    def _is_part(self) -> bool:
        """Whether the word here is part of a longer name: ``t.when``."""
        return self.at > 0 and self.tokens[self.at - 1].is_symbol(".")

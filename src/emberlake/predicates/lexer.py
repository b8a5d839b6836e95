"""Words, symbols and literals of SQL text, for the parsers of filters and of expressions.

Names are words, or quoted with ``"`` or a backtick; quotes inside quotes are doubled. A sign is a
symbol of its own: only the parser knows whether it belongs to a number or stands between two.
"""

import re
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Final, NoReturn

from emberlake.errors import InvalidInput
from emberlake.predicates.expressions import RESERVED_WORDS
from emberlake.predicates.like import LIKE_ESCAPE, escape_like
from emberlake.types import TypeRoot


class Kind(Enum):
    """What a token is."""

    WORD = "word"
    QUOTED = "quoted name"
    TEXT = "text"
    BYTES = "bytes"
    NUMBER = "number"
    SYMBOL = "symbol"
    END = "end"


@dataclass(frozen=True)
class Token:
    """A piece of the text."""

    kind: Kind
    text: str  # without quotes
    position: int  # of its first character, from 1

    def is_word(self, *words: str) -> bool:
        """Whether it is one of these words, in any case and without quotes."""
        return self.kind is Kind.WORD and self.text.upper() in words

    def is_symbol(self, *symbols: str) -> bool:
        """Whether it is one of these symbols."""
        return self.kind is Kind.SYMBOL and self.text in symbols


@dataclass(frozen=True)
class WrittenNumber:
    """A number as it was written: ``1``, ``1.0`` and ``1e0`` have different types."""

    text: str

    @property
    def value(self) -> Decimal:
        return Decimal(self.text)


@dataclass(frozen=True)
class Temporal:
    """A literal with its type in front, such as DATE '2026-06-26'."""

    word: str
    text: str


_MOMENTS: Final = frozenset({TypeRoot.DATE, TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ})
TEMPORAL_ROOTS: Final = {
    "DATE": _MOMENTS,
    "TIMESTAMP": _MOMENTS,
    "TIME": frozenset({TypeRoot.TIME}),
}
_OF_PYTHON: Final = {"&&": "AND", "&": "AND", "!": "NOT", "|": "OR"}
_TOKEN: Final = re.compile(
    r"""\s*(?:
      (?P<bytes>[xX]'(?:[0-9a-fA-F]{2})*')
    | (?P<text>'(?:[^']|'')*')
    | (?P<quoted>"(?:[^"]|"")+" | `(?:[^`]|``)+`)
    | (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    | (?P<word>[^\W\d][\w$]*)
    | (?P<symbol><=>|<=|>=|<>|!=|==|\|\||[=<>(),.+*/%-])
    )""",
    re.VERBOSE,
)


def tokenize(text: str, what: str, error: type[InvalidInput]) -> list[Token]:
    """The tokens of a text, the last of them END.

    Args:
        text: The text.
        what: What it is, for messages: ``filter``.
        error: What to raise for text that is not understood.
    """
    tokens: list[Token] = []
    end = len(text.rstrip())
    at = 0
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            at += len(text[at:]) - len(text[at:].lstrip())
            raise error(
                f"{text[at : at + 20]!r} at position {at + 1} of the {what} {text!r}: "
                f"{_problem(text[at:])}"
            )
        group = str(match.lastgroup)
        tokens.append(_token(Kind[group.upper()], match.group(group), match.start(group) + 1))
        at = match.end()
    return [*tokens, Token(Kind.END, "", end + 1)]


def _problem(rest: str) -> str:
    if rest[0] in "'\"`":
        return "a quote that is not closed"
    meant = next((word for sign, word in _OF_PYTHON.items() if rest.startswith(sign)), None)
    return "not understood" if meant is None else f"not understood; write {meant}"


def _token(kind: Kind, raw: str, position: int) -> Token:
    if kind is Kind.BYTES:
        raw = raw[2:-1]
    elif kind in (Kind.TEXT, Kind.QUOTED):
        quote = raw[0]
        raw = raw[1:-1].replace(quote * 2, quote)
    return Token(kind, raw, position)


class TokenReader:
    """Goes through the tokens of a text; parsers inherit it."""

    def __init__(self, text: str, what: str, error: type[InvalidInput]) -> None:
        self.text = text
        self.at = 0
        self._what = what
        self._error = error
        self._tokens = tokenize(text, what, error)

    @property
    def current(self) -> Token:
        return self._tokens[self.at]

    @property
    def following(self) -> Token:
        """The token after the current one."""
        return self._tokens[min(self.at + 1, len(self._tokens) - 1)]

    def fail(self, expected: str) -> NoReturn:
        """Say what was expected here, and what was found."""
        token = self.current
        found = "the end" if token.kind is Kind.END else repr(token.text)
        raise self._error(
            f"expected {expected}, found {found} at position {token.position} "
            f"of the {self._what} {self.text!r}"
        )

    # --- steps ------------------------------------------------------------------------------------

    def take_word(self, word: str) -> bool:
        """Step over a word, if it is there."""
        found = self.current.is_word(word)
        self.at += found
        return found

    def take_symbol(self, symbol: str) -> bool:
        """Step over a symbol, if it is there."""
        found = self.current.is_symbol(symbol)
        self.at += found
        return found

    def expect_word(self, word: str) -> None:
        if not self.take_word(word):
            self.fail(word)

    def expect_symbol(self, symbol: str) -> None:
        if not self.take_symbol(symbol):
            self.fail(repr(symbol))

    def expect_text(self, what: str) -> str:
        if self.current.kind is not Kind.TEXT:
            self.fail(what)
        self.at += 1
        return self._tokens[self.at - 1].text

    # --- names and literals -----------------------------------------------------------------------

    def name_parts(self) -> tuple[str, ...]:
        """A name, split at its dots."""
        parts = [self._name_part()]
        while self.take_symbol("."):
            parts.append(self._name_part())
        return tuple(parts)

    def _name_part(self) -> str:
        token = self.current
        is_reserved = token.kind is Kind.WORD and token.text.upper() in RESERVED_WORDS
        if token.kind not in (Kind.WORD, Kind.QUOTED) or is_reserved:
            self.fail("the name of a column")
        self.at += 1
        return token.text

    def starts_literal(self) -> bool:
        """Whether a literal begins here; a sign begins one only in front of a number."""
        token = self.current
        if token.kind in (Kind.TEXT, Kind.BYTES, Kind.NUMBER):
            return True
        if token.is_symbol("+", "-"):
            return self.following.kind is Kind.NUMBER
        # A DATE that no text follows is a column.
        is_temporal = token.is_word(*TEMPORAL_ROOTS) and self.following.kind is Kind.TEXT
        return is_temporal or token.is_word("TRUE", "FALSE", "NULL")

    def literal(self) -> object:
        """A literal: str, bytes, bool, None, ``WrittenNumber`` or ``Temporal``."""
        if not self.starts_literal():
            self.fail("a literal (text goes in single quotes)")
        token = self.current
        self.at += 1
        match token.kind:
            case Kind.TEXT:
                return token.text
            case Kind.BYTES:
                return bytes.fromhex(token.text)
            case Kind.NUMBER:
                return WrittenNumber(token.text)
            case Kind.SYMBOL:
                self.at += 1
                return WrittenNumber(token.text + self._tokens[self.at - 1].text)
            case _ if token.is_word(*TEMPORAL_ROOTS):
                self.at += 1
                return Temporal(token.text.upper(), self._tokens[self.at - 1].text)
            case _:
                return {"TRUE": True, "FALSE": False, "NULL": None}[token.text.upper()]

    def like_pattern(self) -> str | None:
        r"""A pattern after LIKE, with ``\`` as its escape character; None for NULL."""
        if self.take_word("NULL"):
            return None
        pattern = self.expect_text("a pattern in single quotes")
        if not self.take_word("ESCAPE"):
            return pattern
        escape = self.expect_text("one character in single quotes")
        if len(escape) != 1:
            self.at -= 1
            self.fail("one character in single quotes")
        return _with_backslash(pattern, escape)


def _with_backslash(pattern: str, escape: str) -> str:
    """A pattern with another escape character, rewritten to the usual one."""
    out: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            out.append(LIKE_ESCAPE + next(characters, ""))
        else:
            out.append(escape_like(character) if character == LIKE_ESCAPE else character)
    return "".join(out)

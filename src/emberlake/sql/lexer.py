"""Words, symbols and literals of SQL text as Spark reads it, with their places in the text.

Names are plain words, or quoted with backticks. Text is in single or double quotes, where a
backslash escapes; ``r'...'`` is raw. Comments nest. Whatever is replaced in a statement later is
replaced by its place, so tokens know where they begin and end.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from emberlake.errors import InvalidSql


class InvalidText(InvalidSql):
    """Text that cannot be split into tokens.

    Attributes:
        at: The place in the text.
        is_open: Whether more text could complete it: a quote or a comment is still open.
    """

    def __init__(self, message: str, at: int = 0, *, is_open: bool = False) -> None:
        super().__init__(message)
        self.at = at
        self.is_open = is_open


class Kind(Enum):
    """What a token is."""

    WORD = "word"
    QUOTED = "quoted name"
    TEXT = "text"
    NUMBER = "number"
    SYMBOL = "symbol"
    END = "end"


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the text, as it was written."""

    kind: Kind
    text: str
    start: int
    end: int  # exclusive

    @property
    def is_name(self) -> bool:
        """Whether it can name something; nearly every word of Spark's grammar can."""
        return self.kind is Kind.WORD or self.kind is Kind.QUOTED

    @property
    def name(self) -> str:
        """The name, without quotes."""
        return self.text[1:-1].replace("``", "`") if self.kind is Kind.QUOTED else self.text

    @property
    def word(self) -> str:
        """The word in capitals; empty if it is not a plain word."""
        return self.text.upper() if self.kind is Kind.WORD else ""

    def is_word(self, *words: str) -> bool:
        """Whether it is one of these words, in any case and without quotes."""
        return self.kind is Kind.WORD and self.text.upper() in words

    def is_symbol(self, *symbols: str) -> bool:
        """Whether it is one of these symbols."""
        return self.kind is Kind.SYMBOL and self.text in symbols


_TOKEN: Final = re.compile(
    r"""
      (?P<space>\s+ | --(?:\\\n|[^\r\n])*)
    | (?P<comment>/\*)
    | (?P<text>'(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.|"")*" | [rR]'[^']*' | [rR]"[^"]*")
    | (?P<quoted>`(?:[^`]|``)*`)
    | (?P<number>(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)(?:[eE][+-]?[0-9]+)?
        (?:[lLsSyYdDfF]|[bB][dD])?(?!\w))
    | (?P<word>\w+)
    | (?P<symbol>\|>|->|=>|<=>|<=|>=|<>|!=|==|\|\||::|[^\s\w'"`])
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_EDGE: Final = re.compile(r"/\*|\*/")
_KINDS: Final = {
    "text": Kind.TEXT,
    "quoted": Kind.QUOTED,
    "number": Kind.NUMBER,
    "word": Kind.WORD,
    "symbol": Kind.SYMBOL,
}
_QUOTES: Final = {"'": "text", '"': "text", "`": "name"}


def tokenize(text: str) -> tuple[Token, ...]:
    """The tokens of a text; the last one is its end.

    Raises:
        InvalidText: a quote or a comment does not end, or a name needs quotes.
    """
    return (*_tokens(text), Token(Kind.END, "", len(text), len(text)))


def _tokens(text: str) -> Iterator[Token]:
    at = 0
    after_dot = False
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            what = _QUOTES.get(text[at], "text")
            raise InvalidText(
                f"the {what} that begins at character {at + 1} does not end", at, is_open=True
            )
        kind = found.lastgroup or "symbol"
        if kind == "comment":
            at = _end_of_comment(text, at)
            continue
        if kind == "number" and text[at] == "." and _follows_name(text, at):
            kind, end = "symbol", at + 1  # t.1st: a name follows, not a number
        elif kind == "number" and after_dot:
            kind, end = "word", _end_of_word(text, at)
        else:
            end = found.end()
        if kind == "word" and not text[at:end].isascii():
            raise InvalidText(f"a non-ASCII name needs backquotes: `{text[at:end]}`", at)
        if kind != "space":
            yield Token(_KINDS[kind], text[at:end], at, end)
            after_dot = text[at:end] == "."
        at = end


def _end_of_word(text: str, start: int) -> int:
    end = start
    while end < len(text) and (text[end].isalnum() or text[end] == "_"):
        end += 1
    return end


def _follows_name(text: str, at: int) -> bool:
    return at > 0 and (text[at - 1].isalnum() or text[at - 1] in "_`")


def _end_of_comment(text: str, start: int) -> int:
    depth, at = 1, start + 2
    while depth:
        edge = _COMMENT_EDGE.search(text, at)
        if edge is None:
            raise InvalidText(
                f"the comment that begins at character {start + 1} does not end",
                start,
                is_open=True,
            )
        depth += 1 if edge.group() == "/*" else -1
        at = edge.end()
    return at


_ESCAPE: Final = re.compile(
    r"\\(?:u(?P<four>[0-9a-fA-F]{4})|U(?P<eight>[0-9a-fA-F]{8})|(?P<octal>[0-3][0-7]{2})|(?P<one>.))",
    re.DOTALL,
)
_ESCAPED: Final = {
    "0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_",
}  # fmt: skip


def text_value(token: Token) -> str:
    """The value of a string literal, with quotes and escapes as in Spark."""
    if token.text[0] in "rR":
        return token.text[2:-1]
    return _unescaped(token.text[1:-1], token.text[0])


def _unescaped(inner: str, quote: str) -> str:
    out: list[str] = []
    at = 0
    while at < len(inner):
        if inner.startswith(quote * 2, at):
            out.append(quote)
            at += 2
        elif inner[at] == "\\" and (found := _ESCAPE.match(inner, at)) is not None:
            out.append(_escaped(found))
            at = found.end()
        else:
            out.append(inner[at])
            at += 1
    return "".join(out)


def _escaped(found: re.Match[str]) -> str:
    code = found["four"] or found["eight"]
    if code is not None:
        return chr(int(code, 16))
    if found["octal"] is not None:
        return chr(int(found["octal"], 8))
    return _ESCAPED.get(found["one"], found["one"])

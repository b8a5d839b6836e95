"""Filters from text: ``"city = 'paris' AND price BETWEEN 1 AND 5"``.

The language is the usual subset of SQL, keywords in any case:

    filter     = filter OR filter | filter AND filter | NOT filter | "(" filter ")" | test
    test       = name op literal | literal op name
               | name [NOT] BETWEEN literal AND literal
               | name [NOT] IN "(" [literal {"," literal}] ")"
               | name [NOT] LIKE text [ESCAPE character]
               | name IS [NOT] NULL
               | name                                    (a BOOLEAN)
    op         = "=" | "==" | "<>" | "!=" | "<" | "<=" | ">" | ">="
    name       = part {"." part};  part = word | `quoted` | "quoted"
    literal    = 'text' | number | TRUE | FALSE | NULL | X'hex'
               | DATE 'text' | TIME 'text' | TIMESTAMP 'text'

Quotes inside quotes are doubled. A text literal is cast to the type of its column. NOT is resolved
while parsing, with SQL's rules for null: what remains are comparisons joined by AND and OR.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Final, NoReturn

from emberlake.errors import InvalidPredicate
from emberlake.predicates.builder import PredicateBuilder, Target
from emberlake.predicates.expressions import RESERVED_WORDS, Op, Predicate, and_all, or_all
from emberlake.predicates.like import LIKE_ESCAPE, escape_like
from emberlake.types import AtomicType, DataField, TypeRoot

_MAX_DEPTH: Final = 100


def parse_predicate(
    text: str,
    fields: Sequence[DataField],
    aliases: Mapping[str, tuple[str, ...]] | None = None,
) -> Predicate:
    """Parse a filter on the given columns; ``aliases`` are more names for them.

    Raises:
        InvalidPredicate: The text is not a filter; the message says where and what was expected.
        ColumnNotFound: It names a column that does not exist.
    """
    parser = _Parser(text, PredicateBuilder(fields, aliases))
    predicate = parser.parse_or(negated=False)
    if parser.current.kind is not _Kind.END:
        parser.fail("AND, OR or the end")
    return predicate


class _Kind(Enum):
    WORD = "word"
    QUOTED = "quoted name"
    TEXT = "text"
    BYTES = "bytes"
    NUMBER = "number"
    SYMBOL = "symbol"
    END = "end"


@dataclass(frozen=True)
class _Token:
    kind: _Kind
    text: str  # without quotes
    position: int  # of its first character, from 1

    def is_word(self, *words: str) -> bool:
        return self.kind is _Kind.WORD and self.text.upper() in words

    def is_symbol(self, symbol: str) -> bool:
        return self.kind is _Kind.SYMBOL and self.text == symbol


@dataclass(frozen=True)
class _Temporal:
    """A literal with its type in front, such as DATE '2026-06-26'."""

    word: str
    text: str


_TOKEN: Final = re.compile(
    r"""\s*(?:
      (?P<bytes>[xX]'(?:[0-9a-fA-F]{2})*')
    | (?P<text>'(?:[^']|'')*')
    | (?P<quoted>"(?:[^"]|"")+" | `(?:[^`]|``)+`)
    | (?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    | (?P<word>[^\W\d][\w$]*)
    | (?P<symbol><=|>=|<>|!=|==|[=<>(),.])
    )""",
    re.VERBOSE,
)
_COMPARISONS: Final = {
    "=": Op.EQUAL,
    "==": Op.EQUAL,
    "<>": Op.NOT_EQUAL,
    "!=": Op.NOT_EQUAL,
    "<": Op.LESS_THAN,
    "<=": Op.LESS_OR_EQUAL,
    ">": Op.GREATER_THAN,
    ">=": Op.GREATER_OR_EQUAL,
}
# The operator that turns "literal op name" into "name op literal".
_REVERSED: Final = {
    Op.LESS_THAN: Op.GREATER_THAN,
    Op.LESS_OR_EQUAL: Op.GREATER_OR_EQUAL,
    Op.GREATER_THAN: Op.LESS_THAN,
    Op.GREATER_OR_EQUAL: Op.LESS_OR_EQUAL,
}
_MOMENTS: Final = frozenset({TypeRoot.DATE, TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ})
_TEMPORAL_ROOTS: Final = {
    "DATE": _MOMENTS,
    "TIMESTAMP": _MOMENTS,
    "TIME": frozenset({TypeRoot.TIME}),
}


def _tokenize(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    end = len(text.rstrip())
    at = 0
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            at += len(text[at:]) - len(text[at:].lstrip())
            problem = "a quote that is not closed" if text[at] in "'\"`" else "not understood"
            raise InvalidPredicate(
                f"{text[at : at + 20]!r} at position {at + 1} of the filter {text!r}: {problem}"
            )
        group = str(match.lastgroup)
        tokens.append(_token(_Kind[group.upper()], match.group(group), match.start(group) + 1))
        at = match.end()
    return [*tokens, _Token(_Kind.END, "", end + 1)]


def _token(kind: _Kind, raw: str, position: int) -> _Token:
    if kind is _Kind.BYTES:
        raw = raw[2:-1]
    elif kind in (_Kind.TEXT, _Kind.QUOTED):
        quote = raw[0]
        raw = raw[1:-1].replace(quote * 2, quote)
    return _Token(kind, raw, position)


class _Parser:
    """Recursive descent; ``negated`` means that an odd number of NOTs applies."""

    def __init__(self, text: str, builder: PredicateBuilder) -> None:
        self._text = text
        self._builder = builder
        self._tokens = _tokenize(text)
        self._at = 0
        self._depth = 0

    @property
    def current(self) -> _Token:
        return self._tokens[self._at]

    def fail(self, expected: str) -> NoReturn:
        token = self.current
        found = "the end" if token.kind is _Kind.END else repr(token.text)
        raise InvalidPredicate(
            f"expected {expected}, found {found} at position {token.position} "
            f"of the filter {self._text!r}"
        )

    def parse_or(self, *, negated: bool) -> Predicate:
        parts = [self._parse_and(negated=negated)]
        while self._take_word("OR"):
            parts.append(self._parse_and(negated=negated))
        return _joined(parts, is_and=negated)

    def _parse_and(self, *, negated: bool) -> Predicate:
        parts = [self._parse_not(negated=negated)]
        while self._take_word("AND"):
            parts.append(self._parse_not(negated=negated))
        return _joined(parts, is_and=not negated)

    def _parse_not(self, *, negated: bool) -> Predicate:
        while self._take_word("NOT"):
            negated = not negated
        if not self._take_symbol("("):
            return self._parse_test(negated=negated)
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            self.fail(f"at most {_MAX_DEPTH} nested parentheses")
        inner = self.parse_or(negated=negated)
        self._expect_symbol(")")
        self._depth -= 1
        return inner

    def _parse_test(self, *, negated: bool) -> Predicate:
        start = self.current
        if self._starts_literal():
            literal = self._literal()
            op = self._comparison()
            test = (self._target(), _REVERSED.get(op, op), literal)
            return self._compare(test, start, negated=negated)
        target = self._target()
        if self.current.kind is _Kind.SYMBOL and self.current.text in _COMPARISONS:
            test = (target, self._comparison(), self._literal())
            return self._compare(test, start, negated=negated)
        if self._take_word("IS"):
            negated ^= self._take_word("NOT")
            self._expect_word("NULL")
            return target.leaf(Op.IS_NOT_NULL if negated else Op.IS_NULL)
        is_bare = not self.current.is_word("NOT", "BETWEEN", "IN", "LIKE")
        if is_bare and _is_boolean(target):
            return self._compare((target, Op.EQUAL, True), start, negated=negated)
        negated ^= self._take_word("NOT")
        return self._parse_words(target, start, negated=negated)

    def _parse_words(self, target: Target, start: _Token, *, negated: bool) -> Predicate:
        if self._take_word("BETWEEN"):
            low = self._cast(target, self._literal())
            self._expect_word("AND")
            high = self._cast(target, self._literal())
            with self._located(start):
                return target.not_between(low, high) if negated else target.between(low, high)
        if self._take_word("IN"):
            literals = [self._cast(target, literal) for literal in self._literals()]
            with self._located(start):
                return target.is_not_in(literals) if negated else target.is_in(literals)
        if not self._take_word("LIKE"):
            self.fail("a comparison, BETWEEN, IN, LIKE or IS NULL")
        pattern = self._like_pattern()
        with self._located(start):
            return target.not_like(pattern) if negated else target.like(pattern)

    def _compare(
        self, test: tuple[Target, Op, object], start: _Token, *, negated: bool
    ) -> Predicate:
        target, op, literal = test
        value = self._cast(target, literal)
        with self._located(start):
            return target.not_compare(op, value) if negated else target.compare(op, value)

    def _comparison(self) -> Op:
        token = self.current
        if token.kind is not _Kind.SYMBOL or token.text not in _COMPARISONS:
            self.fail("a comparison")
        self._at += 1
        return _COMPARISONS[token.text]

    # --- Names and literals ---

    def _target(self) -> Target:
        parts = [self._name_part()]
        while self._take_symbol("."):
            parts.append(self._name_part())
        return self._builder.resolve(tuple(parts))

    def _name_part(self) -> str:
        token = self.current
        is_reserved = token.kind is _Kind.WORD and token.text.upper() in RESERVED_WORDS
        if token.kind not in (_Kind.WORD, _Kind.QUOTED) or is_reserved:
            self.fail("the name of a column")
        self._at += 1
        return token.text

    def _starts_literal(self) -> bool:
        token = self.current
        if token.kind in (_Kind.TEXT, _Kind.BYTES, _Kind.NUMBER):
            return True
        return token.is_word("TRUE", "FALSE", "NULL") or self._is_temporal()

    def _is_temporal(self) -> bool:
        """Whether a DATE, TIME or TIMESTAMP is the start of a literal, not a column."""
        if not self.current.is_word(*_TEMPORAL_ROOTS):
            return False
        return self._tokens[self._at + 1].kind is _Kind.TEXT

    def _literal(self) -> object:
        if not self._starts_literal():
            self.fail("a literal (text goes in single quotes)")
        token = self.current
        self._at += 1
        match token.kind:
            case _Kind.TEXT:
                return token.text
            case _Kind.BYTES:
                return bytes.fromhex(token.text)
            case _Kind.NUMBER:
                return Decimal(token.text)
            case _ if token.is_word(*_TEMPORAL_ROOTS):
                self._at += 1
                return _Temporal(token.text.upper(), self._tokens[self._at - 1].text)
            case _:
                return {"TRUE": True, "FALSE": False, "NULL": None}[token.text.upper()]

    def _literals(self) -> list[object]:
        self._expect_symbol("(")
        literals: list[object] = []
        if not self.current.is_symbol(")"):
            literals.append(self._literal())
            while self._take_symbol(","):
                literals.append(self._literal())
        self._expect_symbol(")")
        return literals

    def _like_pattern(self) -> object:
        if self._take_word("NULL"):
            return None
        pattern = self._expect_text("a pattern in single quotes")
        if not self._take_word("ESCAPE"):
            return pattern
        escape = self._expect_text("one character in single quotes")
        if len(escape) != 1:
            self._at -= 1
            self.fail("one character in single quotes")
        return _with_backslash(pattern, escape)

    def _cast(self, target: Target, literal: object) -> object:
        if not isinstance(literal, _Temporal):
            return literal
        root = target.type.root if isinstance(target.type, AtomicType) else None
        if root not in _TEMPORAL_ROOTS[literal.word]:
            raise InvalidPredicate(
                f"{target.name} is {target.type}: it cannot be compared with "
                f"{literal.word} {literal.text!r} in the filter {self._text!r}"
            )
        return literal.text

    # --- Steps ---

    def _take_word(self, word: str) -> bool:
        found = self.current.is_word(word)
        self._at += found
        return found

    def _take_symbol(self, symbol: str) -> bool:
        found = self.current.is_symbol(symbol)
        self._at += found
        return found

    def _expect_word(self, word: str) -> None:
        if not self._take_word(word):
            self.fail(word)

    def _expect_symbol(self, symbol: str) -> None:
        if not self._take_symbol(symbol):
            self.fail(repr(symbol))

    def _expect_text(self, what: str) -> str:
        if self.current.kind is not _Kind.TEXT:
            self.fail(what)
        self._at += 1
        return self._tokens[self._at - 1].text

    @contextmanager
    def _located(self, token: _Token) -> Iterator[None]:
        try:
            yield
        except InvalidPredicate as error:
            raise InvalidPredicate(
                f"{error} (at position {token.position} of the filter {self._text!r})"
            ) from error


def _joined(parts: list[Predicate], *, is_and: bool) -> Predicate:
    joined = and_all(parts) if is_and else or_all(parts)
    assert joined is not None
    return joined


def _is_boolean(target: Target) -> bool:
    return isinstance(target.type, AtomicType) and target.type.root is TypeRoot.BOOLEAN


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

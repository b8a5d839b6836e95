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

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from emberlake.errors import ColumnNotFound, InvalidPredicate
from emberlake.predicates.builder import PredicateBuilder, Target
from emberlake.predicates.expressions import Op, Predicate, and_all, or_all
from emberlake.predicates.lexer import (
    TEMPORAL_ROOTS,
    Kind,
    Temporal,
    Token,
    TokenReader,
    WrittenNumber,
)
from emberlake.types import AtomicType, DataField, TypeRoot

_MAX_DEPTH: Final = 100
# Words that begin expressions, unless a column has the name.
_WORDS_OF_EXPRESSIONS: Final = ("CASE", "CURRENT_DATE", "CURRENT_TIMESTAMP")


class NoSimpleFilter(InvalidPredicate):
    """The text is not in this language; it may be a condition of the larger one."""


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
    try:
        return parse_simple(text, fields, aliases)
    except NoSimpleFilter as error:
        raise InvalidPredicate(str(error)) from error


def parse_simple(
    text: str,
    fields: Sequence[DataField],
    aliases: Mapping[str, tuple[str, ...]] | None = None,
) -> Predicate:
    """The same; raises ``NoSimpleFilter`` for text that is not in this language at all."""
    parser = _Parser(text, PredicateBuilder(fields, aliases))
    predicate = parser.parse_or(negated=False)
    if parser.current.kind is not Kind.END:
        parser.fail("AND, OR or the end")
    return predicate


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


class _Parser(TokenReader):
    """Recursive descent; ``negated`` means that an odd number of NOTs applies."""

    def __init__(self, text: str, builder: PredicateBuilder) -> None:
        super().__init__(text, "filter", NoSimpleFilter)
        self._builder = builder
        self._depth = 0

    def parse_or(self, *, negated: bool) -> Predicate:
        parts = [self._parse_and(negated=negated)]
        while self.take_word("OR"):
            parts.append(self._parse_and(negated=negated))
        return _joined(parts, is_and=negated)

    def _parse_and(self, *, negated: bool) -> Predicate:
        parts = [self._parse_not(negated=negated)]
        while self.take_word("AND"):
            parts.append(self._parse_not(negated=negated))
        return _joined(parts, is_and=not negated)

    def _parse_not(self, *, negated: bool) -> Predicate:
        while self.take_word("NOT"):
            negated = not negated
        if not self.take_symbol("("):
            return self._parse_test(negated=negated)
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            self.fail(f"at most {_MAX_DEPTH} nested parentheses")
        inner = self.parse_or(negated=negated)
        self.expect_symbol(")")
        self._depth -= 1
        return inner

    def _parse_test(self, *, negated: bool) -> Predicate:
        start = self.current
        if self.starts_literal():
            literal = self.literal()
            op = self._comparison()
            test = (self._target(), _REVERSED.get(op, op), literal)
            return self._compare(test, start, negated=negated)
        target = self._target()
        if self.current.kind is Kind.SYMBOL and self.current.text in _COMPARISONS:
            test = (target, self._comparison(), self.literal())
            return self._compare(test, start, negated=negated)
        if self.take_word("IS"):
            negated ^= self.take_word("NOT")
            self.expect_word("NULL")
            return target.leaf(Op.IS_NOT_NULL if negated else Op.IS_NULL)
        is_bare = not self.current.is_word("NOT", "BETWEEN", "IN", "LIKE")
        if is_bare and _is_boolean(target):
            return self._compare((target, Op.EQUAL, True), start, negated=negated)
        negated ^= self.take_word("NOT")
        return self._parse_words(target, start, negated=negated)

    def _parse_words(self, target: Target, start: Token, *, negated: bool) -> Predicate:
        if self.take_word("BETWEEN"):
            low = self._cast(target, self.literal())
            self.expect_word("AND")
            high = self._cast(target, self.literal())
            with self._located(start):
                return target.not_between(low, high) if negated else target.between(low, high)
        if self.take_word("IN"):
            literals = [self._cast(target, literal) for literal in self._literals()]
            with self._located(start):
                return target.is_not_in(literals) if negated else target.is_in(literals)
        if not self.take_word("LIKE"):
            self.fail("a comparison, BETWEEN, IN, LIKE, ILIKE or IS NULL")
        pattern = self.like_pattern()
        with self._located(start):
            return target.not_like(pattern) if negated else target.like(pattern)

    def _compare(
        self, test: tuple[Target, Op, object], start: Token, *, negated: bool
    ) -> Predicate:
        target, op, literal = test
        value = self._cast(target, literal)
        with self._located(start):
            return target.not_compare(op, value) if negated else target.compare(op, value)

    def _comparison(self) -> Op:
        token = self.current
        if token.kind is not Kind.SYMBOL or token.text not in _COMPARISONS:
            self.fail("a comparison")
        self.at += 1
        return _COMPARISONS[token.text]

    # --- Names and literals ---

    def _target(self) -> Target:
        if self.current.kind is Kind.WORD and self.following.is_symbol("("):
            self.fail("a column")  # it is a function
        start = self.at
        try:
            return self._builder.resolve(self.name_parts())
        except ColumnNotFound:
            self.at = start
            if self.current.is_word(*_WORDS_OF_EXPRESSIONS):
                self.fail("a column")
            raise

    def _literals(self) -> list[object]:
        self.expect_symbol("(")
        literals: list[object] = []
        if not self.current.is_symbol(")"):
            literals.append(self.literal())
            while self.take_symbol(","):
                literals.append(self.literal())
        self.expect_symbol(")")
        return literals

    def _cast(self, target: Target, literal: object) -> object:
        if isinstance(literal, WrittenNumber):
            return literal.value
        if not isinstance(literal, Temporal):
            return literal
        root = target.type.root if isinstance(target.type, AtomicType) else None
        if root not in TEMPORAL_ROOTS[literal.word]:
            raise InvalidPredicate(
                f"{target.name} is {target.type}: it cannot be compared with "
                f"{literal.word} {literal.text!r} in the filter {self.text!r}"
            )
        return literal.text

    @contextmanager
    def _located(self, token: Token) -> Iterator[None]:
        try:
            yield
        except InvalidPredicate as error:
            raise InvalidPredicate(
                f"{error} (at position {token.position} of the filter {self.text!r})"
            ) from error


def _joined(parts: list[Predicate], *, is_and: bool) -> Predicate:
    joined = and_all(parts) if is_and else or_all(parts)
    assert joined is not None
    return joined


def _is_boolean(target: Target) -> bool:
    return isinstance(target.type, AtomicType) and target.type.root is TypeRoot.BOOLEAN

"""The types and values of literals."""

import re
from contextlib import suppress
from typing import Final

import pyarrow as pa

from emberlake.errors import EmberlakeError, InvalidExpression, InvalidInput
from emberlake.expressions.coercion import STRING, decimal
from emberlake.expressions.typed import BOOLEAN, UNTYPED_NULL, Constant
from emberlake.predicates.lexer import Temporal, WrittenNumber
from emberlake.spec.literals import cast_literal
from emberlake.spec.values import to_arrow_scalar
from emberlake.types import AtomicType
from emberlake.types.data_types import MAX_DECIMAL_PRECISION

_ZONE: Final = re.compile(r"(Z|[+-]\d{2}:?\d{2})$", re.IGNORECASE)


def constant_of(value: object) -> Constant:
    """The constant of a literal, in the form that the lexer returns."""
    match value:
        case None:
            return UNTYPED_NULL
        case WrittenNumber(text):
            return _number(text)
        case Temporal(word, text):
            return _temporal(word, text)
        case bool():
            return Constant(pa.scalar(value), BOOLEAN)
        case bytes():
            return Constant(pa.scalar(value, pa.binary()), AtomicType("BYTES"))
        case _:
            return Constant(pa.scalar(value, pa.string()), STRING)


def _number(text: str) -> Constant:
    kind = AtomicType("DOUBLE")
    if "e" not in text.lower():
        _, digits, exponent = WrittenNumber(text).value.as_tuple()
        assert isinstance(exponent, int)
        scale = max(0, -exponent)
        precision = max(len(digits), scale)
        if precision > MAX_DECIMAL_PRECISION:
            raise InvalidExpression(f"{text} has more than {MAX_DECIMAL_PRECISION} digits")
        kind = decimal(precision, scale)
        if "." not in text:
            fitting = [AtomicType(name) for name in ("INT", "BIGINT")]
            kind = next((t for t in fitting if _fits(t, text)), kind)
    return Constant(to_arrow_scalar(kind, cast_literal(kind, WrittenNumber(text).value)), kind)


def _fits(kind: AtomicType, text: str) -> bool:
    with suppress(InvalidInput):
        cast_literal(kind, WrittenNumber(text).value)
        return True
    return False


def _temporal(word: str, text: str) -> Constant:
    names = {"DATE": ["DATE"], "TIME": ["TIME(3)"], "TIMESTAMP": ["TIMESTAMP(6)", "TIMESTAMP(9)"]}
    kinds = names[word]
    if word == "TIMESTAMP" and _ZONE.search(text.strip()[10:]):
        kinds = ["TIMESTAMP_LTZ(6)", "TIMESTAMP_LTZ(9)"]
    problem: EmberlakeError | None = None
    for kind in map(AtomicType, kinds):
        try:
            return Constant(to_arrow_scalar(kind, cast_literal(kind, text)), kind)
        except InvalidInput as error:
            problem = problem or error
    raise InvalidExpression(f"{word} {text!r}: {problem}") from problem

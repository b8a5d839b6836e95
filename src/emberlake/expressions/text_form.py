"""Typed expressions as SQL text, which can be parsed again; implicit casts are written out."""

from typing import Final, assert_never

import pyarrow as pa

from emberlake.expressions.typed import Apply, Column, Constant, Test, Typed
from emberlake.predicates.expressions import format_literal, quote_name
from emberlake.spec.values import from_arrow_array
from emberlake.types import AtomicType, arrow_type

_BETWEEN_ARGUMENTS: Final = frozenset(
    {"+", "-", "*", "/", "%", "||", "=", "<=>", "<>", "<", "<=", ">", ">=", "AND", "OR"}
    | {"LIKE", "ILIKE"}
)


def sql_text(typed: Typed) -> str:
    """The text of an expression."""
    match typed:
        case Column(field=field, path=path):
            return ".".join(quote_name(part) for part in (field.name, *path))
        case Constant():
            return _constant(typed)
        case Test(leaf=leaf):
            return str(leaf)
        case Apply(function, args, result):
            return _call(function, [_inner(arg) for arg in args], str(result))
        case _:
            assert_never(typed)


def _call(function: str, args: list[str], result: str) -> str:
    if function in _BETWEEN_ARGUMENTS:
        return f" {function} ".join(args)
    match function, args:
        case "CAST", [arg]:
            return f"CAST({arg} AS {result.removesuffix(' NOT NULL')})"
        case "NOT" | "NEGATE", [arg]:
            return f"{'NOT ' if function == 'NOT' else '- '}{arg}"
        case "IS NULL", [arg]:
            return f"{arg} IS NULL"
        case "CASE", [*pairs, last]:
            whens = [
                f"WHEN {condition} THEN {value}"
                for condition, value in zip(pairs[::2], pairs[1::2], strict=True)
            ]
            return f"CASE {' '.join(whens)} ELSE {last} END"
        case _, []:
            return function
        case _:
            return f"{function}({', '.join(args)})"


def _inner(typed: Typed) -> str:
    """An argument, in parentheses if precedence could split it."""
    text = sql_text(typed)
    is_open = isinstance(typed, Test) or (
        isinstance(typed, Apply)
        and (typed.function in _BETWEEN_ARGUMENTS or typed.function in ("NOT", "NEGATE", "IS NULL"))
    )
    return f"({text})" if is_open else text


def _constant(constant: Constant) -> str:
    if constant.type is None or constant.is_null:
        return "NULL"
    scalar = constant.scalar
    if not isinstance(constant.type, AtomicType):
        return repr(scalar.as_py())
    (value,) = from_arrow_array(constant.type, pa.repeat(scalar, 1).cast(arrow_type(constant.type)))
    return format_literal(constant.type, value)

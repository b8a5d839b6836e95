"""The functions and operators of expressions: how many arguments they take, and of which types.

A rule gets typed arguments and returns the call with all implicit casts in it, or says what does
not fit. Nothing is evaluated here.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from emberlake.base.names import did_you_mean
from emberlake.errors import InvalidExpression, InvalidInput
from emberlake.expressions.coercion import (
    BIGINT,
    DOUBLE,
    INT,
    STRING,
    arithmetic_type,
    as_decimal,
    can_cast,
    common_type,
    decimal,
    is_boolean,
    is_bytes,
    is_decimal,
    is_float,
    is_integer,
    is_number,
    is_text,
    plain_type,
)
from emberlake.expressions.typed import BOOLEAN, Apply, Constant, Typed
from emberlake.spec.literals import cast_literal
from emberlake.spec.values import to_arrow_scalar
from emberlake.types import AtomicType, DataType

_MAX_EXACT_DIGITS: Final = 76
# Functions that are called without parentheses.
_WORDS: Final = frozenset({"NEGATE", "AND", "OR", "NOT", "LIKE", "ILIKE", "CASE"})
Args = tuple[Typed, ...]


@dataclass(frozen=True)
class Function:
    """A function: the least and the largest number of its arguments, and the rule of its types."""

    least: int
    most: int | None
    rule: Callable[[str, Args], Apply]


def apply(name: str, args: Sequence[Typed]) -> Apply:
    """A call with its type.

    Raises:
        InvalidExpression: there is no such function, or the arguments do not fit it.
    """
    function = FUNCTIONS.get(name)
    if function is None:
        known = sorted({n for n in FUNCTIONS if n.isidentifier()} - _WORDS | {"CAST", "NULLIF"})
        there_are = did_you_mean([name], known) or f"there are {', '.join(known)}"
        raise InvalidExpression(f"there is no function {name}; {there_are}")
    if len(args) < function.least or (function.most is not None and len(args) > function.most):
        raise InvalidExpression(f"{name} takes {_count(function)}, not {len(args)}")
    return function.rule(name, tuple(args))


def _count(function: Function) -> str:
    least, most = function.least, function.most
    if most is None:
        return f"at least {least} arguments"
    return f"{least} argument{'s' if least != 1 else ''}" if least == most else f"{least} to {most}"


def cast(arg: Typed, target: DataType) -> Typed:
    """The argument with another type; an untyped NULL simply gets that type."""
    target = target.with_nullable(True)
    if arg.type is None:
        return Constant(to_arrow_scalar(target, None), target)
    if plain_type(arg.type) == plain_type(target):
        return arg
    return Apply("CAST", (arg,), target)


def explicit_cast(arg: Typed, target: DataType) -> Typed:
    """What ``CAST`` makes of the argument."""
    if arg.type is not None and not can_cast(arg.type, target):
        raise InvalidExpression(f"{arg.type} cannot be cast to {target}")
    return cast(arg, target)


def unified(name: str, args: Args) -> tuple[Args, DataType | None]:
    """Arguments with a common type; text literals take the type of the others."""
    typed = [arg.type for arg in args if arg.type is not None]
    if not typed:
        return args, None
    others = [t for t in typed if not is_text(t)]
    if others and len(others) < len(typed):
        args = tuple(_parsed(name, arg, others[0]) for arg in args)
        typed = [arg.type for arg in args if arg.type is not None]
    common = common_type(typed)
    if common is None:
        shown = " and ".join(dict.fromkeys(str(t.with_nullable(True)) for t in typed))
        raise InvalidExpression(f"{name} does not take {shown} together: CAST one of them")
    return tuple(cast(arg, common) for arg in args), common


def _parsed(name: str, arg: Typed, target: DataType) -> Typed:
    """A text literal as a value of another type; other arguments unchanged."""
    if not isinstance(arg, Constant) or arg.type is None or not is_text(arg.type):
        return arg
    try:
        value = cast_literal(target, arg.scalar.as_py())
    except InvalidInput as error:
        raise InvalidExpression(f"{name}: {error}") from error
    return Constant(to_arrow_scalar(target, value), target)


# --- rules ----------------------------------------------------------------------------------------


def _number(name: str, arg: Typed) -> AtomicType:
    if arg.type is None:
        return INT
    if not isinstance(arg.type, AtomicType) or not is_number(arg.type):
        raise InvalidExpression(f"{name} takes numbers, not {arg.type}")
    return AtomicType(arg.type.type)


def _arithmetic(name: str, args: Args) -> Apply:
    left, right = (_number(name, arg) for arg in args)
    if is_float(left) or is_float(right):
        common = common_type([left, right])
        assert common is not None
        common = DOUBLE if name == "/" else common
        return Apply(name, tuple(cast(arg, common) for arg in args), common)
    if is_decimal(left) or is_decimal(right):
        left, right = (_exact(arg, t) for arg, t in zip(args, (left, right), strict=True))
        result = arithmetic_type(name, left, right)
        if name == "*" and left.precision + right.precision + 1 > _MAX_EXACT_DIGITS:
            raise InvalidExpression(f"{left} * {right} has too many digits: CAST one of them")
        return Apply(name, (cast(args[0], left), cast(args[1], right)), result)
    if name == "/":
        return Apply(name, tuple(cast(arg, DOUBLE) for arg in args), DOUBLE)
    common = common_type([left, right])
    assert common is not None
    return Apply(name, tuple(cast(arg, common) for arg in args), common)


def _exact(arg: Typed, found: AtomicType) -> AtomicType:
    """The decimal of a number; that of an integer literal has just as many digits."""
    if isinstance(arg, Constant) and is_integer(found) and not arg.is_null:
        return decimal(len(str(abs(arg.scalar.as_py()))), 0)
    return as_decimal(found)


def _negate(name: str, args: Args) -> Apply:
    found = _number("-" if name == "NEGATE" else name, args[0])
    return Apply(name, (cast(args[0], found),), found)


def _compare(name: str, args: Args) -> Apply:
    args, common = unified(name, args)
    if common is None:  # NULL = NULL
        args, common = tuple(cast(arg, BOOLEAN) for arg in args), BOOLEAN
    if not isinstance(common, AtomicType) or common.root.is_opaque:
        raise InvalidExpression(f"{name} does not compare {common}; only IS NULL takes it")
    return Apply(name, args, BOOLEAN)


def _logic(name: str, args: Args) -> Apply:
    for arg in args:
        if arg.type is not None and not is_boolean(arg.type):
            raise InvalidExpression(f"{name} takes conditions, not {arg.type}")
    return Apply(name, tuple(cast(arg, BOOLEAN) for arg in args), BOOLEAN)


def _is_null(name: str, args: Args) -> Apply:
    return Apply(name, tuple(cast(a, BOOLEAN) if a.type is None else a for a in args), BOOLEAN)


def _text(name: str, arg: Typed) -> Typed:
    if arg.type is not None and not is_text(arg.type):
        raise InvalidExpression(f"{name} takes text, not {arg.type}: CAST it to STRING")
    return cast(arg, STRING)


def _text_rule(result: AtomicType) -> Callable[[str, Args], Apply]:
    def rule(name: str, args: Args) -> Apply:
        return Apply(name, (_text(name, args[0]), *args[1:]), result)

    return rule


def _length(name: str, args: Args) -> Apply:
    if args[0].type is not None and is_bytes(args[0].type):
        return Apply(name, args, INT)
    return Apply(name, (_text(name, args[0]),), INT)


def _substring(name: str, args: Args) -> Apply:
    for arg in args[1:]:
        is_whole = arg.type is not None and is_integer(arg.type)
        if not (isinstance(arg, Constant) and is_whole):
            raise InvalidExpression("SUBSTRING takes a column, and positions that are numbers")
    return Apply(name, (_text(name, args[0]), *args[1:]), STRING)


def _concat(name: str, args: Args) -> Apply:
    for arg in args:
        if arg.type is not None and not can_cast(arg.type, STRING):
            raise InvalidExpression(f"{name} takes text, not {arg.type}")
    return Apply(name, tuple(cast(arg, STRING) for arg in args), STRING)


def _case(name: str, args: Args) -> Apply:
    conditions, values = args[:-1:2], (*args[1::2], args[-1])
    tests = _logic("WHEN" if name == "CASE" else name, conditions).args
    values, common = unified(name, values)
    if common is None:
        common = BOOLEAN
        values = tuple(cast(value, common) for value in values)
    pairs = [part for pair in zip(tests, values[:-1], strict=True) for part in pair]
    return Apply("CASE", (*pairs, values[-1]), common)


def _same_type(name: str, args: Args) -> Apply:
    args, common = unified(name, args)
    if common is None:
        common = BOOLEAN
        args = tuple(cast(arg, common) for arg in args)
    if name in ("GREATEST", "LEAST") and not isinstance(common, AtomicType):
        raise InvalidExpression(f"{name} does not compare {common}")
    return Apply(name, args, common)


def _round(name: str, args: Args) -> Apply:
    found = _number(name, args[0])
    digits: Typed = args[1] if len(args) > 1 else Constant(pa.scalar(0, pa.int32()), INT)
    if not isinstance(digits, Constant) or digits.type is None or not is_integer(digits.type):
        raise InvalidExpression("the second argument of ROUND is a whole number")
    if is_decimal(found):
        scale = min(found.scale, max(0, digits.scalar.as_py()))
        found_type: AtomicType = decimal(found.precision - found.scale + scale + 1, scale)
    else:
        found_type = found
    return Apply(name, (cast(args[0], found), digits), found_type)


def _whole(name: str, args: Args) -> Apply:
    found = _number(name, args[0])
    result = decimal(found.precision - found.scale + 1, 0) if is_decimal(found) else BIGINT
    return Apply(name, (cast(args[0], found),), result)


def _moment(name: str, args: Args) -> Apply:
    kind = "DATE" if name == "CURRENT_DATE" else "TIMESTAMP_LTZ(6)"
    return Apply(name, args, AtomicType(kind))


FUNCTIONS: Final = {
    **{symbol: Function(2, 2, _arithmetic) for symbol in ("+", "-", "*", "/", "%")},
    **{symbol: Function(2, 2, _compare) for symbol in ("=", "<=>", "<>", "<", "<=", ">", ">=")},
    "NEGATE": Function(1, 1, _negate),
    "AND": Function(1, None, _logic),
    "OR": Function(1, None, _logic),
    "NOT": Function(1, 1, _logic),
    "IS NULL": Function(1, 1, _is_null),
    "LIKE": Function(2, 2, _text_rule(BOOLEAN)),
    "ILIKE": Function(2, 2, _text_rule(BOOLEAN)),
    "CASE": Function(3, None, _case),
    "IF": Function(3, 3, _case),
    "COALESCE": Function(1, None, _same_type),
    "GREATEST": Function(2, None, _same_type),
    "LEAST": Function(2, None, _same_type),
    "UPPER": Function(1, 1, _text_rule(STRING)),
    "LOWER": Function(1, 1, _text_rule(STRING)),
    "TRIM": Function(1, 1, _text_rule(STRING)),
    "LENGTH": Function(1, 1, _length),
    "SUBSTRING": Function(2, 3, _substring),
    "CONCAT": Function(1, None, _concat),
    "CONCAT_WS": Function(2, None, _concat),
    "||": Function(2, 2, _concat),
    "ABS": Function(1, 1, _negate),
    "ROUND": Function(1, 2, _round),
    "FLOOR": Function(1, 1, _whole),
    "CEIL": Function(1, 1, _whole),
    "CURRENT_DATE": Function(0, 0, _moment),
    "CURRENT_TIMESTAMP": Function(0, 0, _moment),
}

"""Functions on whole columns; null in gives null out, unless a function is about nulls.

Values are arrays, or scalars that stand for every row. Numbers follow Spark's ANSI mode: overflow
and division by zero are errors, decimals are rounded half up.
"""

import decimal as decimals
import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from emberlake.errors import DataMismatch
from emberlake.expressions.casts import cast_ansi
from emberlake.predicates.like import like_regex
from emberlake.read.casts import cast_array
from emberlake.types import AtomicType, DataType, RowType, arrow_type, from_arrow_type

Value: TypeAlias = pa.Array | pa.Scalar
# Takes the values of the arguments and the type of the result.
Kernel: TypeAlias = Callable[[Sequence[Value], DataType], Value]

_MAX_DIGITS: Final = 76  # of Arrow's widest decimal


def as_array(value: Value, count: int) -> pa.Array:
    """A value for each of ``count`` rows."""
    return value if isinstance(value, pa.Array) else pa.repeat(value, count)


def _arrays(values: Sequence[Value]) -> list[pa.Array]:
    count = next((len(v) for v in values if isinstance(v, pa.Array)), 1)
    return [as_array(value, count) for value in values]


def _checked(kernel: Callable[..., Value]) -> Kernel:
    """A kernel of Arrow that fails when a result does not fit."""

    def run(values: Sequence[Value], result: DataType) -> Value:
        if pa.types.is_decimal(values[0].type):
            return _narrowed(kernel(*map(_wide, values)), result)
        return kernel(*values)

    return run


def _plain(kernel: Callable[..., Value]) -> Kernel:
    def run(values: Sequence[Value], _result: DataType) -> Value:
        return kernel(*values)

    return run


# --- decimals -------------------------------------------------------------------------------------


def _wide(value: Value) -> Value:
    return pc.cast(value, pa.decimal256(value.type.precision, value.type.scale))


def _narrowed(value: Value, result: DataType) -> Value:
    """Wide decimals rounded to the type of the result; those that do not fit are refused."""
    target = arrow_type(result)
    if value.type.scale > target.scale:
        value = pc.round(value, target.scale, "half_towards_infinity")
    try:
        value = pc.cast(value, pa.decimal256(_MAX_DIGITS, target.scale))
        return pc.cast(value, target)
    except pa.ArrowInvalid as error:
        raise DataMismatch(f"the result does not fit {result}") from error


def _check_divisor(left: Value, right: Value) -> None:
    is_zero = pc.equal(right, pa.scalar(0, right.type))
    if pc.any(pc.and_(is_zero, pc.is_valid(left))).as_py():
        raise DataMismatch("division by zero")


def _divide(values: Sequence[Value], result: DataType) -> Value:
    left, right = values
    _check_divisor(left, right)
    if not pa.types.is_decimal(left.type):
        return pc.divide(left, right)
    target = arrow_type(result)
    # One digit more than needed is enough to round half up. Arrow cuts what comes after it.
    gained = right.type.precision - right.type.scale + 1
    scale = max(left.type.scale, target.scale + 1 - gained)
    whole = left.type.precision - left.type.scale
    if whole + right.type.scale + scale + gained > _MAX_DIGITS:
        return _divide_exactly(_arrays(values), target)
    dividend = pc.cast(left, pa.decimal256(whole + scale, scale))
    return _narrowed(pc.divide(dividend, _wide(right)), result)


def _divide_exactly(values: Sequence[pa.Array], target: pa.DataType) -> pa.Array:
    """Quotients with more digits than Arrow has."""
    context = decimals.Context(prec=200, rounding=decimals.ROUND_HALF_UP)
    step = decimals.Decimal(1).scaleb(-target.scale)
    pairs = zip(*(value.to_pylist() for value in values), strict=True)
    made = [
        None if a is None or b is None else context.divide(a, b).quantize(step, context=context)
        for a, b in pairs
    ]
    return pa.array(made, target)


def _remainder(values: Sequence[Value], result: DataType) -> Value:
    """The remainder of a division, with the sign of the dividend."""
    left, right = _arrays(values)
    _check_divisor(left, right)
    if pa.types.is_decimal(left.type):
        scale = max(left.type.scale, right.type.scale)
        wide = [pc.cast(side, pa.decimal256(_MAX_DIGITS, scale)) for side in (left, right)]
        pairs = zip(wide[0].to_pylist(), wide[1].to_pylist(), strict=True)
        context = decimals.Context(prec=200)
        made = [None if a is None or b is None else context.remainder(a, b) for a, b in pairs]
        return _narrowed(pa.array(made, pa.decimal256(_MAX_DIGITS, scale)), result)
    is_null = pc.or_(left.is_null(), right.is_null()).to_numpy(zero_copy_only=False)
    one, zero = pa.scalar(1, right.type), pa.scalar(0, left.type)
    divisors = pc.if_else(pa.array(is_null), one, right).to_numpy(zero_copy_only=False)
    dividends = left.fill_null(zero).to_numpy(zero_copy_only=False)
    if pa.types.is_integer(left.type):
        divisors = np.where(divisors == -1, 1, divisors)  # the least integer would overflow
    return pa.array(np.fmod(dividends, divisors), left.type, mask=is_null)


def _negate(values: Sequence[Value], _result: DataType) -> Value:
    is_decimal = pa.types.is_decimal(values[0].type)
    return (pc.negate if is_decimal else pc.negate_checked)(values[0])


def _abs(values: Sequence[Value], _result: DataType) -> Value:
    is_decimal = pa.types.is_decimal(values[0].type)
    return (pc.abs if is_decimal else pc.abs_checked)(values[0])


def _round(values: Sequence[Value], result: DataType) -> Value:
    value, digits = values[0], values[1].as_py()
    if pa.types.is_decimal(value.type):
        rounded = pc.round(
            pc.cast(value, pa.decimal256(_MAX_DIGITS, value.type.scale)),
            min(digits, value.type.scale),
            "half_towards_infinity",
        )
        return _narrowed(rounded, result)
    if pa.types.is_integer(value.type):
        if digits >= 0:
            return value
        exact = pc.cast(pc.cast(value, pa.int64()), pa.decimal256(_MAX_DIGITS, 0))
        rounded = pc.round(exact, max(digits, 1 - _MAX_DIGITS), "half_towards_infinity")
        return pc.cast(pc.cast(rounded, pa.decimal128(38, 0)), value.type)
    return _round_floats(_arrays([value])[0], digits, result)


def _round_floats(array: pa.Array, digits: int, result: DataType) -> pa.Array:
    """Floats rounded by the digits that they are shown with: 2.675 is 2.68, not 2.67."""
    if digits < 0:
        exact = AtomicType("DECIMAL(38, 18)")
    else:
        exact = AtomicType(f"DECIMAL(38, {min(digits, 30)})")
    found = from_arrow_type(array.type)
    is_finite = pc.is_finite(array)
    finite = pc.if_else(is_finite, array, pa.scalar(None, array.type))
    rounded = cast_array(finite, found, exact)  # null if there are too many digits to round any
    if digits < 0:
        wide = pc.cast(rounded, pa.decimal256(_MAX_DIGITS, 18))
        wide = pc.round(wide, max(digits, -40), "half_towards_infinity")
        rounded = pc.cast(wide, pa.decimal128(38, 18))
    return pc.coalesce(cast_array(rounded, exact, result), array)


def _whole(direction: str) -> Kernel:
    def run(values: Sequence[Value], result: DataType) -> Value:
        (array,) = _arrays(values)
        if pa.types.is_integer(array.type):
            return pc.cast(array, pa.int64())
        if pa.types.is_decimal(array.type):
            wide = pc.cast(array, pa.decimal256(_MAX_DIGITS, array.type.scale))
            return _narrowed(pc.round(wide, 0, direction), result)
        rounded = (pc.floor if direction == "down" else pc.ceil)(array)
        return cast_ansi(rounded, from_arrow_type(array.type), result)

    return run


# --- comparisons ----------------------------------------------------------------------------------


def _equal_or_both_null(values: Sequence[Value], _result: DataType) -> Value:
    left, right = values
    equal = pc.fill_null(pc.equal(left, right), False)
    return pc.or_(equal, pc.and_(pc.is_null(left), pc.is_null(right)))


def _extreme(*, greatest: bool) -> Kernel:
    """The greatest or least value that is not null; NaN is greater than all others."""
    kernel = pc.max_element_wise if greatest else pc.min_element_wise

    def run(values: Sequence[Value], _result: DataType) -> Value:
        if not pa.types.is_floating(values[0].type):
            return kernel(*values, skip_nulls=True)
        return reduce(lambda a, b: _pick(a, b, greatest=greatest), _arrays(values))

    return run


def _pick(one: pa.Array, other: pa.Array, *, greatest: bool) -> pa.Array:
    is_more = pc.or_(pc.greater(one, other), pc.is_nan(one))
    both = pc.if_else(is_more, one, other) if greatest else pc.if_else(is_more, other, one)
    return pc.if_else(one.is_null(), other, pc.if_else(other.is_null(), one, both))


# --- text -----------------------------------------------------------------------------------------


def _like(prefix: str) -> Kernel:
    def run(values: Sequence[Value], _result: DataType) -> Value:
        pattern = values[1].as_py()
        if pattern is None:
            return pa.scalar(None, pa.bool_())
        return pc.match_substring_regex(values[0], pattern=prefix + like_regex(pattern))

    return run


def _length(values: Sequence[Value], _result: DataType) -> Value:
    is_text = pa.types.is_string(values[0].type)
    return (pc.utf8_length if is_text else pc.binary_length)(values[0])


def _substring(values: Sequence[Value], _result: DataType) -> Value:
    """Characters from a position on, counted from 1, or from the end if it is negative."""
    value, position = values[0], values[1].as_py()
    length = values[2].as_py() if len(values) > 2 else math.inf
    if position is None or length is None:
        return pa.scalar(None, pa.string())
    (array,) = _arrays([value])
    if position >= 0:
        start = max(0, position - 1)
        stop = (position - 1 if position else 0) + length
        return _sliced(array, start, stop)
    # From the end: a text that is shorter begins at its start, and loses what lies before it.
    sizes = pc.utf8_length(array)
    parts = pa.nulls(len(array), pa.string())
    for size in pc.unique(sizes).drop_null().to_pylist():
        is_it = pc.equal(sizes, size).fill_null(False)
        start = size + position
        cut = _sliced(array.filter(is_it), max(0, start), start + length)
        parts = pc.replace_with_mask(parts, is_it, cut)
    return parts


def _sliced(array: pa.Array, start: int, stop: float) -> pa.Array:
    if stop <= start:
        return pc.if_else(array.is_valid(), pa.scalar(""), pa.scalar(None, pa.string()))
    end = None if math.isinf(stop) else int(stop)
    return pc.utf8_slice_codeunits(array, start, end)


def _concat(values: Sequence[Value], _result: DataType) -> Value:
    return pc.binary_join_element_wise(*values, pa.scalar(""), null_handling="emit_null")


def _concat_with(values: Sequence[Value], _result: DataType) -> Value:
    """The texts that are not null, with the first value between them; null if that is null."""
    # Arrow's kernel loses rows whose texts are all null if it is to skip nulls.
    separator, *texts = _arrays(values)
    joined = pa.nulls(len(separator), pa.string())
    for text in texts:
        longer = _concat([joined, separator, text], _result)
        joined = pc.coalesce(longer, joined, text)
    joined = joined.fill_null("")
    return pc.if_else(separator.is_valid(), joined, pa.scalar(None, pa.string()))


def _spaces_trimmed(values: Sequence[Value], _result: DataType) -> Value:
    return pc.utf8_trim(values[0], characters=" ")


def _row(values: Sequence[Value], result: DataType) -> Value:
    """Rows of the values of their fields; none is null. Who writes them fits the values."""
    assert isinstance(result, RowType)
    names = [field.name for field in result.fields]
    made = pa.StructArray.from_arrays(_arrays(values), names=names)
    return made if any(isinstance(value, pa.Array) for value in values) else made[0]


KERNELS: Final[dict[str, Kernel]] = {
    "+": _checked(pc.add_checked),
    "-": _checked(pc.subtract_checked),
    "*": _checked(pc.multiply_checked),
    "/": _divide,
    "%": _remainder,
    "NEGATE": _negate,
    "ABS": _abs,
    "ROUND": _round,
    "FLOOR": _whole("down"),
    "CEIL": _whole("up"),
    "=": _plain(pc.equal),
    "<>": _plain(pc.not_equal),
    "<": _plain(pc.less),
    "<=": _plain(pc.less_equal),
    ">": _plain(pc.greater),
    ">=": _plain(pc.greater_equal),
    "<=>": _equal_or_both_null,
    "NOT": _plain(pc.invert),
    "IS NULL": _plain(pc.is_null),
    "LIKE": _like(""),
    "ILIKE": _like("(?i)"),
    "UPPER": _plain(pc.utf8_upper),
    "LOWER": _plain(pc.utf8_lower),
    "TRIM": _spaces_trimmed,
    "LENGTH": _length,
    "SUBSTRING": _substring,
    "CONCAT": _concat,
    "CONCAT_WS": _concat_with,
    "||": _concat,
    "ROW": _row,
    "GREATEST": _extreme(greatest=True),
    "LEAST": _extreme(greatest=False),
}


def never_fails(function: str, types: Sequence[Any]) -> bool:
    """Whether a function gives a result for all values of these types."""
    if function in ("+", "-", "*", "NEGATE", "ABS"):
        return all(pa.types.is_floating(arrow_type(t)) for t in types)
    return function not in ("/", "%", "ROUND", "FLOOR", "CEIL")

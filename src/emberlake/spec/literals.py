"""Literals as values of columns, or as positions between the values of columns.

``cast_literal`` turns a literal into a value exactly, or refuses it. ``place_literal`` finds where
it lies among the values that the column can hold. Nanoseconds are never lost. For TIMESTAMP_LTZ a
literal without a zone is UTC; for TIMESTAMP, DATE and TIME a literal with a zone is refused, since
the zone to convert to would be a guess.
"""

import decimal
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from emberlake.errors import InvalidInput
from emberlake.spec.plain_literals import (
    EPOCH_DAY,
    MILLIS_OF_DAY,
    Plain,
    clock_of,
    moment_of,
    number_of,
    plain_literal,
)
from emberlake.spec.values import NANOS_OF_UNIT, NANOS_PER_DAY, Value, nanos_per_tick
from emberlake.types import AtomicType, DataType, TypeRoot
from emberlake.types.data_types import INTEGER_BITS


@dataclass(frozen=True)
class Placement:
    """Where a literal lies among the values that a column can hold.

    ``below`` is the largest such value that is not above the literal and ``above`` the smallest
    that is not below it; None if there is none. If the column can hold the literal, both are the
    literal itself.
    """

    below: Value
    above: Value
    is_exact: bool

    @property
    def is_nan(self) -> bool:
        """Whether the literal is NaN, which is neither above nor below any value."""
        if self.below is None and self.above is None:
            return True
        return isinstance(self.below, float) and math.isnan(self.below)


def cast_literal(data_type: DataType, literal: object) -> Value:
    """Turn a literal into a value of a column; None is null.

    Accepts Python, NumPy, pandas and Arrow scalars, and text for every atomic type. FLOAT and
    DOUBLE take the nearest value they can hold; every other type takes a literal exactly.

    Raises:
        InvalidInput: The literal is of the wrong kind, out of range, or would lose digits.
    """
    placed = place_literal(data_type, literal)
    if placed is None:
        return None
    assert isinstance(data_type, AtomicType)
    problem = None if placed.is_exact else "it is out of range or has more digits than the type"
    problem = problem or _check_size(data_type, placed.below)
    if problem is not None:
        raise InvalidInput(f"{literal!r} does not fit {data_type}: {problem}")
    return placed.below


def place_literal(data_type: DataType, literal: object) -> Placement | None:
    """Where a literal lies among the values of a column; None for null.

    The grid of values is that of the column's Arrow type: a literal of 12:00:00.5 on TIMESTAMP(0)
    lies between two seconds, 1.5 on INT between 1 and 2, 300 on TINYINT above all. Texts longer
    than a VARCHAR(n) are placed as they are: files may hold longer texts than declared.

    Raises:
        InvalidInput: The literal is of a kind that cannot be compared with the column.
    """
    if not isinstance(data_type, AtomicType) or data_type.root not in _PLACERS:
        raise InvalidInput(f"{data_type} has no literals; it can only be tested for null")
    plain = plain_literal(literal)
    if plain is None:
        return None
    placed = _PLACERS[data_type.root](data_type, plain)
    if placed is None:
        # Numbers in the text of a filter are decimals.
        shown = str(literal) if isinstance(literal, decimal.Decimal) else repr(literal)
        raise InvalidInput(f"{shown} is not of type {data_type}: {_EXPECTED[data_type.root]}")
    return placed


# --- numbers --------------------------------------------------------------------------------------

_MAX_FLOAT: Final = {
    TypeRoot.FLOAT: float(np.finfo(np.float32).max),
    TypeRoot.DOUBLE: float(np.finfo(np.float64).max),
}
# Beyond the range of every type; such numbers are not expanded into integers.
_FAR_EXPONENT: Final = 64


def _exactly(value: Value) -> Placement:
    return Placement(value, value, is_exact=True)


def _place_integer(data_type: AtomicType, plain: Plain) -> Placement | None:
    limit = 1 << (INTEGER_BITS[data_type.root] - 1)
    return _place_number(number_of(plain), 0, (-limit, limit - 1), lambda steps: steps)


def _place_decimal(data_type: AtomicType, plain: Plain) -> Placement | None:
    limit = 10**data_type.precision - 1
    scale = data_type.scale
    return _place_number(number_of(plain), scale, (-limit, limit), lambda n: _decimal_of(n, scale))


def _decimal_of(unscaled: int, scale: int) -> decimal.Decimal:
    """The decimal ``unscaled / 10**scale``, whatever the precision of the thread's context."""
    digits = tuple(map(int, str(abs(unscaled))))
    return decimal.Decimal((int(unscaled < 0), digits, -scale))


def _place_number(
    number: decimal.Decimal | None,
    scale: int,
    bounds: tuple[int, int],
    value_of: Callable[[int], Value],
) -> Placement | None:
    """Place a number on the grid of multiples of ``10**-scale`` within bounds."""
    if number is None:
        return None
    if number.is_nan():  # neither above nor below any value
        return Placement(None, None, is_exact=False)
    if number.is_infinite() or (number and number.adjusted() > _FAR_EXPONENT):
        steps = bounds[0] - 1 if number < 0 else bounds[1] + 1
        return _place_steps(steps, steps, bounds, value_of)
    context = decimal.Context(
        prec=len(number.as_tuple().digits) + 2 * _FAR_EXPONENT,
        Emin=decimal.MIN_EMIN,
        Emax=decimal.MAX_EMAX,
    )
    scaled = number.scaleb(scale, context)
    floor = int(scaled.to_integral_value(decimal.ROUND_FLOOR, context))
    ceiling = int(scaled.to_integral_value(decimal.ROUND_CEILING, context))
    return _place_steps(floor, ceiling, bounds, value_of)


def _place_steps(
    floor: int, ceiling: int, bounds: tuple[int, int], value_of: Callable[[int], Value]
) -> Placement:
    low, high = bounds
    below = None if floor < low else value_of(min(floor, high))
    above = None if ceiling > high else value_of(max(ceiling, low))
    return Placement(below, above, is_exact=floor == ceiling and low <= floor <= high)


def _place_float(data_type: AtomicType, plain: Plain) -> Placement | None:
    number = number_of(plain)
    if number is None:
        return None
    if number.is_nan():
        return _exactly(math.nan)
    value = float(plain if isinstance(plain, float | np.floating) else number)
    if data_type.root is TypeRoot.FLOAT:
        with np.errstate(over="ignore"):  # an overflow gives infinity, handled below
            value = float(np.float32(value))
    if math.isinf(value) and number.is_finite():
        largest = _MAX_FLOAT[data_type.root]
        if value > 0:
            return Placement(largest, math.inf, is_exact=False)
        return Placement(-math.inf, -largest, is_exact=False)
    return _exactly(value)


# --- booleans, text and bytes ---------------------------------------------------------------------

_TRUE: Final = frozenset({"true", "t", "yes", "y", "1"})
_FALSE: Final = frozenset({"false", "f", "no", "n", "0"})


def _place_boolean(_: AtomicType, plain: Plain) -> Placement | None:
    if isinstance(plain, str):
        word = plain.strip().lower()
        plain = True if word in _TRUE else False if word in _FALSE else plain
    return _exactly(plain) if isinstance(plain, bool) else None


def _place_text(_: AtomicType, plain: Plain) -> Placement | None:
    if not isinstance(plain, str):
        return None
    _utf8(plain)
    return _exactly(plain)


def _place_bytes(_: AtomicType, plain: Plain) -> Placement | None:
    if isinstance(plain, str):
        plain = _utf8(plain)
    return _exactly(plain) if isinstance(plain, bytes) else None


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(f"{text!r} is not valid text: {error.reason}") from error


# --- dates and times ------------------------------------------------------------------------------


def _place_date(_: AtomicType, plain: Plain) -> Placement | None:
    if isinstance(plain, str) and EPOCH_DAY.fullmatch(plain.strip()):
        return _exactly(int(plain))
    moment = moment_of(plain)
    if moment is None or moment.is_zoned:
        return None
    return _place_nanos(moment.nanos, NANOS_PER_DAY, (-(2**31), 2**31 - 1), 1)


def _place_time(_: AtomicType, plain: Plain) -> Placement | None:
    step = NANOS_OF_UNIT["ms"]
    bounds = (0, NANOS_PER_DAY // step - 1)
    if isinstance(plain, str) and MILLIS_OF_DAY.fullmatch(plain.strip()):
        return _place_nanos(int(plain), 1, bounds, 1)
    clock = clock_of(plain)
    return None if clock is None else _place_nanos(clock.nanos, step, bounds, 1)


def _place_timestamp(data_type: AtomicType, plain: Plain) -> Placement | None:
    moment = moment_of(plain)
    if moment is None or (moment.is_zoned and data_type.root is TypeRoot.TIMESTAMP):
        return None
    step = nanos_per_tick(data_type)
    return _place_nanos(moment.nanos, step, (-(2**63), 2**63 - 1), step)


def _place_nanos(
    nanos: int | Fraction, step: int, bounds: tuple[int, int], value_step: int
) -> Placement:
    """Place nanoseconds on multiples of ``step``; values are multiples of ``value_step``."""
    floor, ceiling = int(nanos // step), int(-(-nanos // step))
    return _place_steps(floor, ceiling, bounds, lambda steps: steps * value_step)


# --- all types ------------------------------------------------------------------------------------

_PLACERS: Final[dict[TypeRoot, Callable[[AtomicType, Plain], Placement | None]]] = {
    TypeRoot.BOOLEAN: _place_boolean,
    **dict.fromkeys(INTEGER_BITS, _place_integer),
    TypeRoot.FLOAT: _place_float,
    TypeRoot.DOUBLE: _place_float,
    TypeRoot.DECIMAL: _place_decimal,
    TypeRoot.CHAR: _place_text,
    TypeRoot.VARCHAR: _place_text,
    TypeRoot.BINARY: _place_bytes,
    TypeRoot.VARBINARY: _place_bytes,
    TypeRoot.DATE: _place_date,
    TypeRoot.TIME: _place_time,
    TypeRoot.TIMESTAMP: _place_timestamp,
    TypeRoot.TIMESTAMP_LTZ: _place_timestamp,
}
_EXPECTED: Final = {
    TypeRoot.BOOLEAN: "give a bool or 'true' or 'false'",
    **dict.fromkeys(INTEGER_BITS, "give a number or its text"),
    TypeRoot.FLOAT: "give a number or its text",
    TypeRoot.DOUBLE: "give a number or its text",
    TypeRoot.DECIMAL: "give a number or its text",
    TypeRoot.CHAR: "give text in quotes",
    TypeRoot.VARCHAR: "give text in quotes",
    TypeRoot.BINARY: "give bytes, or a str for its UTF-8",
    TypeRoot.VARBINARY: "give bytes, or a str for its UTF-8",
    TypeRoot.DATE: "give a date, a datetime without zone, or text like '2026-06-26'",
    TypeRoot.TIME: "give a time without zone or text like '10:20:30.5'",
    TypeRoot.TIMESTAMP: "give a datetime without zone or text like '2026-06-26 10:20:30.5'",
    TypeRoot.TIMESTAMP_LTZ: "give a datetime (without zone: UTC) or '2026-06-26 10:20:30+02:00'",
}


def _check_size(data_type: AtomicType, value: Value) -> str | None:
    """Why a value that fits the Arrow type does not fit the declared type; None if it does."""
    if isinstance(value, str | bytes) and len(value) > data_type.length:
        return f"its length is {len(value)}"
    if data_type.root.is_timestamp and isinstance(value, int):
        step = 10 ** (9 - data_type.precision)
        return "it has more digits than the type" if value % step else None
    return None

"""Single values of columns: what users write, what the engine computes with, what is printed.

Inside the engine a value (``Value``) has one form per type: BOOLEAN bool; integers int; FLOAT and
DOUBLE float; DECIMAL ``Decimal``; CHAR and VARCHAR str; BINARY and VARBINARY bytes; DATE int (days
since the epoch); TIME int (milliseconds of the day); TIMESTAMP and TIMESTAMP_LTZ int (nanoseconds
since the epoch); ARRAY list; MAP and MULTISET list of pairs; ROW tuple; null ``None``.

A literal from outside becomes a value by ``cast_literal`` (exactly, or it is refused) or by
``place_literal`` (where it stands between the values that the column can hold). Nanoseconds are
never lost on the way. For TIMESTAMP_LTZ a literal without zone is UTC; for TIMESTAMP, DATE and
TIME a literal with a zone is refused, since the zone to convert to would be a guess.
"""

import datetime as dt
import decimal
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from emberlake.errors import InvalidInput
from emberlake.types import (
    ArrayType,
    AtomicType,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeRoot,
    VectorType,
    arrow_type,
)

Value: TypeAlias = (
    bool | int | float | decimal.Decimal | str | bytes | list[Any] | tuple[Any, ...] | None
)

NANOS_PER_DAY: Final = 86_400_000_000_000
NANOS_OF_UNIT: Final = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}


@dataclass(frozen=True)
class Placement:
    """Where a literal stands between the values that a column can hold.

    ``below`` is the greatest such value that is not above the literal and ``above`` the least that
    is not below it; None if there is none. Both are the literal itself when the column can hold it.
    """

    below: Value
    above: Value
    is_exact: bool

    @property
    def is_nan(self) -> bool:
        """Whether the literal is NaN, which is on no side of anything."""
        if self.below is None and self.above is None:
            return True
        return isinstance(self.below, float) and math.isnan(self.below)


def cast_literal(data_type: DataType, literal: object) -> Value:
    """The value of a column that a literal stands for; None is null.

    Accepts Python, NumPy, pandas and Arrow scalars, and text for every atomic type. FLOAT and
    DOUBLE take the nearest value they can hold; every other type takes a literal exactly.

    Raises:
        InvalidInput: The literal is of another kind, out of range, or would lose digits.
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
    """Where a literal stands among the values of a column; None for null.

    The grid of values is that of the column's Arrow type: a literal of 12:00:00.5 on TIMESTAMP(0)
    lies between two seconds, 1.5 on INT between 1 and 2, 300 on TINYINT above all. Texts longer
    than a VARCHAR(n) are placed as they are: files may hold longer texts than declared.

    Raises:
        InvalidInput: The literal is of a kind that cannot be compared with the column.
    """
    if not isinstance(data_type, AtomicType) or data_type.root not in _PLACERS:
        raise InvalidInput(f"{data_type} has no literals, only its null can be asked for")
    plain = _plain(literal)
    if plain is None:
        return None
    placed = _PLACERS[data_type.root](data_type, plain)
    if placed is None:
        raise InvalidInput(f"{literal!r} is no {data_type}: {_EXPECTED[data_type.root]}")
    return placed


def to_arrow_scalar(data_type: DataType, value: Value) -> pa.Scalar:
    """A value as a scalar of the column's Arrow type."""
    return pa.scalar(_to_arrow(data_type, value), type=arrow_type(data_type))


def to_arrow_array(data_type: DataType, values: list[Value]) -> pa.Array:
    """Values as an array of the column's Arrow type."""
    return pa.array([_to_arrow(data_type, v) for v in values], type=arrow_type(data_type))


def from_arrow_array(data_type: DataType, array: pa.Array | pa.ChunkedArray) -> list[Value]:
    """The values of an array of the column's Arrow type, or of one that casts to it safely."""
    if isinstance(array, pa.ChunkedArray):
        return [value for chunk in array.chunks for value in from_arrow_array(data_type, chunk)]
    if array.type != arrow_type(data_type):
        array = array.cast(arrow_type(data_type))
    match data_type:
        case AtomicType(root=TypeRoot.DATE | TypeRoot.TIME):
            return _list(array.cast(pa.int32()))
        case AtomicType(root=TypeRoot.TIMESTAMP | TypeRoot.TIMESTAMP_LTZ):
            # Python integers: seconds and milliseconds reach further than 64 bits of nanoseconds.
            step = _step(data_type)
            ticks = array.cast(pa.int64()).to_pylist()
            return [None if tick is None else tick * step for tick in ticks]
        case ArrayType(element=element):
            return _lists_from_arrow(array, from_arrow_array(element, array.values))
        case MapType(key=key, value=value):
            return _maps_from_arrow(array, key, value)
        case MultisetType(element=element):
            return _maps_from_arrow(array, element, AtomicType("INT", nullable=False))
        case RowType(fields=fields):
            children = [
                from_arrow_array(f.type, child)
                for f, child in zip(fields, array.flatten(), strict=True)
            ]
            rows = zip(*children, strict=True) if children else [()] * len(array)
            valid = array.is_valid().to_pylist()
            return [row if ok else None for row, ok in zip(rows, valid, strict=True)]
        case _:
            return _list(array)


def format_value(data_type: DataType, value: Value) -> str:
    """A value as people read it; texts are not quoted, dates and times are ISO, bytes are hex."""
    match data_type, value:
        case _, None:
            return "null"
        case AtomicType(), _:
            return _format_atomic(data_type.root, value)
        case ((ArrayType(element=element) | VectorType(element=element)), list()):
            return f"[{', '.join(format_value(element, v) for v in value)}]"
        case MapType(key=key, value=item), list():
            return _format_pairs(key, item, value)
        case MultisetType(element=element), list():
            return _format_pairs(element, AtomicType("INT"), value)
        case RowType(fields=fields), tuple():
            pairs = zip(fields, value, strict=True)
            return f"{{{', '.join(f'{f.name}: {format_value(f.type, v)}' for f, v in pairs)}}}"
        case _:
            return str(value)


# --- Literals: first made plain, so that each type has few kinds to know ---


@dataclass(frozen=True)
class _Moment:
    """A point in time: nanoseconds since the epoch, of UTC if zoned, else of some local clock."""

    nanos: int | Fraction
    is_zoned: bool


@dataclass(frozen=True)
class _Clock:
    """A time of day in nanoseconds."""

    nanos: int | Fraction


# A number is a binary float or a Decimal, which keeps the digits that were written.
_Plain: TypeAlias = (
    bool | float | np.floating[Any] | decimal.Decimal | str | bytes | _Moment | _Clock | None
)


def _plain(literal: object) -> _Plain:
    """A literal without its library; null for every kind of missing value."""
    match literal:
        case None:
            return None
        case pa.Scalar():
            return _plain_arrow(literal)
        case bool() | np.bool_():
            return bool(literal)
        case int() | np.integer():
            return decimal.Decimal(int(literal))
        case float() | np.floating() | decimal.Decimal():
            return literal
        case str():
            return str(literal)
        case bytes() | bytearray() | memoryview():
            return bytes(literal)
        case _:
            return _plain_temporal(literal)


def _plain_temporal(literal: object) -> _Plain:
    match literal:
        case np.datetime64():
            return _plain_datetime64(literal, is_zoned=False)
        case dt.datetime():
            return _plain_datetime(literal)
        case dt.date():
            return _Moment((literal.toordinal() - _EPOCH_ORDINAL) * NANOS_PER_DAY, is_zoned=False)
        case dt.time() if literal.tzinfo is None:
            seconds = (literal.hour * 60 + literal.minute) * 60 + literal.second
            return _Clock((seconds * 1_000_000 + literal.microsecond) * 1_000)
        case _ if type(literal).__name__ == "NAType":  # pandas.NA, without importing pandas
            return None
        case _:
            raise InvalidInput(f"{literal!r} of type {type(literal).__name__} is no literal")


_EPOCH_ORDINAL: Final = dt.date(1970, 1, 1).toordinal()


def _plain_arrow(scalar: pa.Scalar) -> _Plain:
    if not scalar.is_valid:
        return None
    kind = scalar.type
    if pa.types.is_timestamp(kind):
        return _Moment(scalar.value * NANOS_OF_UNIT[kind.unit], is_zoned=kind.tz is not None)
    if pa.types.is_date32(kind):
        return _Moment(scalar.value * NANOS_PER_DAY, is_zoned=False)
    if pa.types.is_date64(kind):
        return _Moment(scalar.value * NANOS_OF_UNIT["ms"], is_zoned=False)
    if pa.types.is_time(kind):
        return _Clock(scalar.value * NANOS_OF_UNIT[kind.unit])
    if pa.types.is_float32(kind):
        return _plain(np.float32(scalar.as_py()))
    if pa.types.is_dictionary(kind):
        return _plain_arrow(scalar.value)
    return _plain(scalar.as_py())


def _plain_datetime(moment: dt.datetime) -> _Plain:
    if moment != moment:  # noqa: PLR0124 - pandas.NaT is a datetime that differs from itself
        return None
    to_datetime64 = getattr(moment, "to_datetime64", None)  # pandas.Timestamp, in UTC if zoned
    if to_datetime64 is not None:
        return _plain_datetime64(to_datetime64(), is_zoned=moment.tzinfo is not None)
    seconds = (moment.hour * 60 + moment.minute) * 60 + moment.second
    nanos = (seconds * 1_000_000 + moment.microsecond) * 1_000
    nanos += (moment.toordinal() - _EPOCH_ORDINAL) * NANOS_PER_DAY
    offset = moment.utcoffset()
    if offset is None:
        return _Moment(nanos, is_zoned=False)
    return _Moment(nanos - offset // dt.timedelta(microseconds=1) * 1_000, is_zoned=True)


_DATETIME64_NANOS: Final[dict[str, int | Fraction]] = {
    "W": 7 * NANOS_PER_DAY,
    "D": NANOS_PER_DAY,
    "h": 3_600_000_000_000,
    "m": 60_000_000_000,
    **NANOS_OF_UNIT,
    "ps": Fraction(1, 10**3),
    "fs": Fraction(1, 10**6),
    "as": Fraction(1, 10**9),
}


def _plain_datetime64(moment: np.datetime64, *, is_zoned: bool) -> _Plain:
    if np.isnat(moment):
        return None
    unit, count = np.datetime_data(moment.dtype)
    if unit in ("Y", "M"):
        moment, unit, count = moment.astype("datetime64[D]"), "D", 1
    nanos = Fraction(_DATETIME64_NANOS[unit]) * count * int(moment.astype(np.int64))
    return _Moment(nanos, is_zoned=is_zoned)


_NUMBER: Final = re.compile(
    r"[+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]{1,9})?|inf(?:inity)?|nan)",
    re.IGNORECASE,
)
_DATE_TEXT: Final = r"(?P<year>[+-]?[0-9]{4,7})-(?P<month>[0-9]{1,2})-(?P<day>[0-9]{1,2})"
_TIME_TEXT: Final = (
    r"(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{1,2})"
    r"(?::(?P<second>[0-9]{1,2})(?:\.(?P<fraction>[0-9]+))?)?"
)
_ZONE_TEXT: Final = r"(?P<zone>Z|UTC|(?P<sign>[+-])(?P<zh>[0-9]{2})(?::?(?P<zm>[0-9]{2}))?)"
_MOMENT: Final = re.compile(
    rf"{_DATE_TEXT}(?:(?:[ ]+|T){_TIME_TEXT}(?:[ ]*{_ZONE_TEXT})?)?", re.IGNORECASE
)
_CLOCK: Final = re.compile(_TIME_TEXT)
# How engines write DATE and TIME partition values with partition.legacy-name: plain numbers.
_EPOCH_DAY: Final = re.compile(r"-?[0-9]{1,6}")
_MILLIS_OF_DAY: Final = re.compile(r"[0-9]{1,8}")


def _number(plain: _Plain) -> decimal.Decimal | None:
    if isinstance(plain, float | np.floating):
        # The shortest text that means this float: 1.1 is meant as 1.1, not as its binary tail.
        return decimal.Decimal(str(plain))
    if isinstance(plain, str) and _NUMBER.fullmatch(plain.strip()):
        return decimal.Decimal(plain.strip())
    return plain if isinstance(plain, decimal.Decimal) else None


def _moment(plain: _Plain) -> _Moment | None:
    if not isinstance(plain, str):
        return plain if isinstance(plain, _Moment) else None
    match = _MOMENT.fullmatch(plain.strip())
    if match is None:
        return None
    part = match.groupdict()
    day = f"{int(part['year']):05d}" if part["year"].startswith("-") else f"{int(part['year']):04d}"
    try:
        date = np.datetime64(f"{day}-{int(part['month']):02d}-{int(part['day']):02d}", "D")
    except ValueError:  # no such day
        return None
    clock = _clock_of(part) if part["hour"] else 0
    if clock is None:
        return None
    offset = 0
    if part["sign"]:
        minutes = int(part["zh"]) * 60 + int(part["zm"] or 0)
        offset = minutes * 60_000_000_000 * (-1 if part["sign"] == "-" else 1)
    nanos = int(date.astype(np.int64)) * NANOS_PER_DAY + clock - offset
    return _Moment(nanos, is_zoned=part["zone"] is not None)


def _clock(plain: _Plain) -> _Clock | None:
    if not isinstance(plain, str):
        return plain if isinstance(plain, _Clock) else None
    match = _CLOCK.fullmatch(plain.strip())
    nanos = None if match is None else _clock_of(match.groupdict())
    return None if nanos is None else _Clock(nanos)


def _clock_of(part: dict[str, str]) -> int | Fraction | None:
    hour, minute, second = (int(part[name] or 0) for name in ("hour", "minute", "second"))
    if hour > 23 or minute > 59 or second > 59:
        return None
    digits = part["fraction"] or "0"
    fraction = Fraction(int(digits) * 10**9, 10 ** len(digits))
    return ((hour * 60 + minute) * 60 + second) * 10**9 + fraction


# --- Placing: the literal between the values of the column's grid ---

_INTEGER_BITS: Final = {
    TypeRoot.TINYINT: 8,
    TypeRoot.SMALLINT: 16,
    TypeRoot.INT: 32,
    TypeRoot.BIGINT: 64,
}
_MAX_FLOAT: Final = {
    TypeRoot.FLOAT: float(np.finfo(np.float32).max),
    TypeRoot.DOUBLE: float(np.finfo(np.float64).max),
}
_TRUE: Final = frozenset({"true", "t", "yes", "y", "1"})
_FALSE: Final = frozenset({"false", "f", "no", "n", "0"})
_EXPECTED: Final = {
    TypeRoot.BOOLEAN: "give a bool or 'true' or 'false'",
    **dict.fromkeys(_INTEGER_BITS, "give a number or its text"),
    TypeRoot.FLOAT: "give a number or its text",
    TypeRoot.DOUBLE: "give a number or its text",
    TypeRoot.DECIMAL: "give a number or its text",
    TypeRoot.CHAR: "give a str",
    TypeRoot.VARCHAR: "give a str",
    TypeRoot.BINARY: "give bytes, or a str for its UTF-8",
    TypeRoot.VARBINARY: "give bytes, or a str for its UTF-8",
    TypeRoot.DATE: "give a date, a datetime without zone, or text like '2026-06-26'",
    TypeRoot.TIME: "give a time without zone or text like '10:20:30.5'",
    TypeRoot.TIMESTAMP: "give a datetime without zone or text like '2026-06-26 10:20:30.5'",
    TypeRoot.TIMESTAMP_LTZ: "give a datetime (without zone: UTC) or '2026-06-26 10:20:30+02:00'",
}


def _exactly(value: Value) -> Placement:
    return Placement(value, value, is_exact=True)


def _place_boolean(_: AtomicType, plain: _Plain) -> Placement | None:
    if isinstance(plain, str):
        word = plain.strip().lower()
        plain = True if word in _TRUE else False if word in _FALSE else plain
    return _exactly(plain) if isinstance(plain, bool) else None


def _place_integer(data_type: AtomicType, plain: _Plain) -> Placement | None:
    limit = 1 << (_INTEGER_BITS[data_type.root] - 1)
    return _place_number(_number(plain), 0, (-limit, limit - 1), lambda steps: steps)


def _place_decimal(data_type: AtomicType, plain: _Plain) -> Placement | None:
    limit = 10**data_type.precision - 1
    scale = data_type.scale
    return _place_number(_number(plain), scale, (-limit, limit), lambda n: decimal_of(n, scale))


def decimal_of(unscaled: int, scale: int) -> decimal.Decimal:
    """The decimal ``unscaled / 10**scale``, whatever the precision of the thread's context."""
    digits = tuple(map(int, str(abs(unscaled))))
    return decimal.Decimal((int(unscaled < 0), digits, -scale))


def _place_number(
    number: decimal.Decimal | None,
    scale: int,
    bounds: tuple[int, int],
    value_of: Callable[[int], Value],
) -> Placement | None:
    """Places a number on the grid of multiples of ``10**-scale`` within bounds."""
    if number is None:
        return None
    if number.is_nan():  # on no side of any value
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


# Beyond the range of every type; such numbers are not written out as integers.
_FAR_EXPONENT: Final = 64


def _place_steps(
    floor: int, ceiling: int, bounds: tuple[int, int], value_of: Callable[[int], Value]
) -> Placement:
    low, high = bounds
    below = None if floor < low else value_of(min(floor, high))
    above = None if ceiling > high else value_of(max(ceiling, low))
    return Placement(below, above, is_exact=floor == ceiling and low <= floor <= high)


def _place_float(data_type: AtomicType, plain: _Plain) -> Placement | None:
    number = _number(plain)
    if number is None:
        return None
    if number.is_nan():
        return _exactly(math.nan)
    value = float(plain if isinstance(plain, float | np.floating) else number)
    if data_type.root is TypeRoot.FLOAT:
        with np.errstate(over="ignore"):  # an overflow is the infinity that is looked at below
            value = float(np.float32(value))
    if math.isinf(value) and number.is_finite():
        largest = _MAX_FLOAT[data_type.root]
        if value > 0:
            return Placement(largest, math.inf, is_exact=False)
        return Placement(-math.inf, -largest, is_exact=False)
    return _exactly(value)


def _place_text(_: AtomicType, plain: _Plain) -> Placement | None:
    if not isinstance(plain, str):
        return None
    _utf8(plain)
    return _exactly(plain)


def _place_bytes(_: AtomicType, plain: _Plain) -> Placement | None:
    if isinstance(plain, str):
        plain = _utf8(plain)
    return _exactly(plain) if isinstance(plain, bytes) else None


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(f"{text!r} is not a text: {error.reason}") from error


def _place_date(_: AtomicType, plain: _Plain) -> Placement | None:
    if isinstance(plain, str) and _EPOCH_DAY.fullmatch(plain.strip()):
        return _exactly(int(plain))
    moment = _moment(plain)
    if moment is None or moment.is_zoned:
        return None
    return _place_nanos(moment.nanos, NANOS_PER_DAY, (-(2**31), 2**31 - 1), 1)


def _place_time(_: AtomicType, plain: _Plain) -> Placement | None:
    step = NANOS_OF_UNIT["ms"]
    bounds = (0, NANOS_PER_DAY // step - 1)
    if isinstance(plain, str) and _MILLIS_OF_DAY.fullmatch(plain.strip()):
        return _place_nanos(int(plain), 1, bounds, 1)
    clock = _clock(plain)
    return None if clock is None else _place_nanos(clock.nanos, step, bounds, 1)


def _place_timestamp(data_type: AtomicType, plain: _Plain) -> Placement | None:
    moment = _moment(plain)
    if moment is None or (moment.is_zoned and data_type.root is TypeRoot.TIMESTAMP):
        return None
    step = _step(data_type)
    return _place_nanos(moment.nanos, step, (-(2**63), 2**63 - 1), step)


def _place_nanos(
    nanos: int | Fraction, step: int, bounds: tuple[int, int], value_step: int
) -> Placement:
    """Places nanoseconds on multiples of ``step``; a value is counted in ``value_step``."""
    floor, ceiling = int(nanos // step), int(-(-nanos // step))
    return _place_steps(floor, ceiling, bounds, lambda steps: steps * value_step)


_PLACERS: Final[dict[TypeRoot, Callable[[AtomicType, _Plain], Placement | None]]] = {
    TypeRoot.BOOLEAN: _place_boolean,
    **dict.fromkeys(_INTEGER_BITS, _place_integer),
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


def _check_size(data_type: AtomicType, value: Value) -> str | None:
    """What keeps a value on the grid of the Arrow type from being one of the declared type."""
    if isinstance(value, str | bytes) and len(value) > data_type.length:
        return f"its length is {len(value)}"
    if data_type.root.is_timestamp and isinstance(value, int):
        step = 10 ** (9 - data_type.precision)
        return "it has more digits than the type" if value % step else None
    return None


# --- To and from Arrow ---


def _step(data_type: AtomicType) -> int:
    """Nanoseconds per tick of the Arrow type of a timestamp column."""
    return NANOS_OF_UNIT[arrow_type(data_type).unit]


def _list(array: pa.Array) -> list[Value]:
    values: list[Value] = array.to_pylist()
    return values


def _to_arrow(data_type: DataType, value: Value) -> object:
    """A value in the form that pyarrow's converters take for the column's Arrow type."""
    match data_type, value:
        case AtomicType(root=TypeRoot.TIMESTAMP | TypeRoot.TIMESTAMP_LTZ), int():
            return value // _step(data_type)
        case ((ArrayType(element=element) | VectorType(element=element)), list()):
            return [_to_arrow(element, v) for v in value]
        case MapType(key=key, value=item), list():
            return [(_to_arrow(key, k), _to_arrow(item, v)) for k, v in value]
        case MultisetType(element=element), list():
            return [(_to_arrow(element, k), count) for k, count in value]
        case RowType(fields=fields), tuple():
            return {f.name: _to_arrow(f.type, v) for f, v in zip(fields, value, strict=True)}
        case _:
            return value


def _lists_from_arrow(array: pa.Array, items: list[Value]) -> list[Value]:
    offsets = array.offsets.to_pylist()
    valid = array.is_valid().to_pylist()
    return [items[offsets[i] : offsets[i + 1]] if ok else None for i, ok in enumerate(valid)]


def _maps_from_arrow(array: pa.MapArray, key: DataType, item: DataType) -> list[Value]:
    keys, items = from_arrow_array(key, array.keys), from_arrow_array(item, array.items)
    pairs: list[Value] = list(zip(keys, items, strict=True))
    return _lists_from_arrow(array, pairs)


# --- Printing ---


def _format_atomic(root: TypeRoot, value: Value) -> str:
    match root, value:
        case TypeRoot.BOOLEAN, bool():
            return "true" if value else "false"
        case TypeRoot.DATE, int():
            return _format_date(value)
        case TypeRoot.TIME, int():
            return _format_time(value * NANOS_OF_UNIT["ms"])
        case ((TypeRoot.TIMESTAMP | TypeRoot.TIMESTAMP_LTZ), int()):
            days, nanos = divmod(value, NANOS_PER_DAY)
            zone = "Z" if root is TypeRoot.TIMESTAMP_LTZ else ""
            return f"{_format_date(days)} {_format_time(nanos)}{zone}"
        case TypeRoot.FLOAT, float():
            return str(np.float32(value))
        case _, decimal.Decimal():
            return format(value, "f")
        case _, bytes():
            return f"0x{value.hex()}"
        case _:
            return str(value)


def _format_date(days: int) -> str:
    year, month, day = str(np.datetime64(days, "D")).rsplit("-", 2)
    return f"{int(year):0{5 if int(year) < 0 else 4}d}-{month}-{day}"


def _format_time(nanos: int) -> str:
    seconds, fraction = divmod(nanos, 10**9)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{text}.{fraction:09d}".rstrip("0") if fraction else text


def _format_pairs(key: DataType, item: DataType, pairs: list[Any]) -> str:
    inner = ", ".join(f"{format_value(key, k)}: {format_value(item, v)}" for k, v in pairs)
    return f"{{{inner}}}"

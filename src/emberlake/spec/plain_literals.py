"""Reduce literals of any library to plain values, without loss.

Python, NumPy, pandas and Arrow scalars become one of a few kinds (``Plain``): bool, number, text,
bytes, a moment or a time of day with all their digits, or null. Text is parsed as a number, a
moment or a time of day if the column calls for it.
"""

import datetime as dt
import decimal
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from emberlake.errors import InvalidInput
from emberlake.spec.values import NANOS_OF_UNIT, NANOS_PER_DAY


@dataclass(frozen=True)
class Moment:
    """A point in time in nanoseconds since the epoch, in UTC if zoned, else on some local clock."""

    nanos: int | Fraction
    is_zoned: bool


@dataclass(frozen=True)
class Clock:
    """A time of day in nanoseconds."""

    nanos: int | Fraction


# A number is a binary float or a Decimal, which keeps the digits that were written.
Plain: TypeAlias = (
    bool | float | np.floating[Any] | decimal.Decimal | str | bytes | Moment | Clock | None
)


def plain_literal(literal: object) -> Plain:
    """The plain value of a literal; null for every kind of missing value."""
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


def _plain_temporal(literal: object) -> Plain:
    match literal:
        case np.datetime64():
            return _plain_datetime64(literal, is_zoned=False)
        case dt.datetime():
            return _plain_datetime(literal)
        case dt.date():
            return Moment((literal.toordinal() - _EPOCH_ORDINAL) * NANOS_PER_DAY, is_zoned=False)
        case dt.time() if literal.tzinfo is None:
            return Clock(_nanos_of_day(literal))
        case _ if type(literal).__name__ == "NAType":  # pandas.NA, without importing pandas
            return None
        case _:
            raise InvalidInput(f"{literal!r} of type {type(literal).__name__} is not a literal")


_EPOCH_ORDINAL: Final = dt.date(1970, 1, 1).toordinal()


def _plain_arrow(scalar: pa.Scalar) -> Plain:
    if not scalar.is_valid:
        return None
    kind = scalar.type
    if pa.types.is_timestamp(kind):
        return Moment(scalar.value * NANOS_OF_UNIT[kind.unit], is_zoned=kind.tz is not None)
    if pa.types.is_date32(kind):
        return Moment(scalar.value * NANOS_PER_DAY, is_zoned=False)
    if pa.types.is_date64(kind):
        return Moment(scalar.value * NANOS_OF_UNIT["ms"], is_zoned=False)
    if pa.types.is_time(kind):
        return Clock(scalar.value * NANOS_OF_UNIT[kind.unit])
    if pa.types.is_float32(kind):
        return plain_literal(np.float32(scalar.as_py()))
    if pa.types.is_dictionary(kind):
        return _plain_arrow(scalar.value)
    return plain_literal(scalar.as_py())


def _plain_datetime(moment: dt.datetime) -> Plain:
    if moment != moment:  # noqa: PLR0124 - pandas.NaT is a datetime that differs from itself
        return None
    to_datetime64 = getattr(moment, "to_datetime64", None)  # pandas.Timestamp, in UTC if zoned
    if to_datetime64 is not None:
        return _plain_datetime64(to_datetime64(), is_zoned=moment.tzinfo is not None)
    nanos = (moment.toordinal() - _EPOCH_ORDINAL) * NANOS_PER_DAY + _nanos_of_day(moment)
    offset = moment.utcoffset()
    if offset is None:
        return Moment(nanos, is_zoned=False)
    return Moment(nanos - offset // dt.timedelta(microseconds=1) * 1_000, is_zoned=True)


def _nanos_of_day(clock: dt.time | dt.datetime) -> int:
    seconds = (clock.hour * 60 + clock.minute) * 60 + clock.second
    return (seconds * 1_000_000 + clock.microsecond) * 1_000


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


def _plain_datetime64(moment: np.datetime64, *, is_zoned: bool) -> Plain:
    if np.isnat(moment):
        return None
    unit, count = np.datetime_data(moment.dtype)
    if unit in ("Y", "M"):
        moment, unit, count = moment.astype("datetime64[D]"), "D", 1
    nanos = Fraction(_DATETIME64_NANOS[unit]) * count * int(moment.astype(np.int64))
    return Moment(nanos, is_zoned=is_zoned)


_NUMBER: Final = re.compile(
    r"[+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]{1,9})?|inf(?:inity)?|nan)",
    re.IGNORECASE,
)
_DATE_TEXT: Final = r"(?P<year>[+-]?[0-9]{4,7})-(?P<month>[0-9]{1,2})-(?P<day>[0-9]{1,2})"
_TIME_TEXT: Final = (
    r"(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{1,2})"
    r"(?::(?P<second>[0-9]{1,2})(?:\.(?P<fraction>[0-9]{1,30}))?)?"
)
_ZONE_TEXT: Final = r"(?P<zone>Z|UTC|(?P<sign>[+-])(?P<zh>[0-9]{2})(?::?(?P<zm>[0-9]{2}))?)"
_MOMENT: Final = re.compile(
    rf"{_DATE_TEXT}(?:(?:[ ]+|T){_TIME_TEXT}(?:[ ]*{_ZONE_TEXT})?)?", re.IGNORECASE
)
_CLOCK: Final = re.compile(_TIME_TEXT)
# How engines write DATE and TIME partition values with partition.legacy-name: plain numbers.
EPOCH_DAY: Final = re.compile(r"-?[0-9]{1,6}")
MILLIS_OF_DAY: Final = re.compile(r"[0-9]{1,8}")


def number_of(plain: Plain) -> decimal.Decimal | None:
    """A literal as a number, None if it is not one; the Decimal may be NaN or infinite."""
    if isinstance(plain, float | np.floating):
        # The shortest text of this float: 1.1 means 1.1, not its binary expansion.
        return decimal.Decimal(str(plain))
    if isinstance(plain, str) and _NUMBER.fullmatch(plain.strip()):
        return decimal.Decimal(plain.strip())
    return plain if isinstance(plain, decimal.Decimal) else None


def moment_of(plain: Plain) -> Moment | None:
    """A literal as a point in time, None if it is not one."""
    if not isinstance(plain, str):
        return plain if isinstance(plain, Moment) else None
    match = _MOMENT.fullmatch(plain.strip())
    if match is None:
        return None
    part = match.groupdict()
    day = f"{int(part['year']):05d}" if part["year"].startswith("-") else f"{int(part['year']):04d}"
    try:
        date = np.datetime64(f"{day}-{int(part['month']):02d}-{int(part['day']):02d}", "D")
    except ValueError:  # no such day
        return None
    clock = _parse_clock(part) if part["hour"] else 0
    if clock is None:
        return None
    offset = 0
    if part["sign"]:
        minutes = int(part["zh"]) * 60 + int(part["zm"] or 0)
        offset = minutes * 60_000_000_000 * (-1 if part["sign"] == "-" else 1)
    nanos = int(date.astype(np.int64)) * NANOS_PER_DAY + clock - offset
    return Moment(nanos, is_zoned=part["zone"] is not None)


def clock_of(plain: Plain) -> Clock | None:
    """A literal as a time of day, None if it is not one."""
    if not isinstance(plain, str):
        return plain if isinstance(plain, Clock) else None
    match = _CLOCK.fullmatch(plain.strip())
    nanos = None if match is None else _parse_clock(match.groupdict())
    return None if nanos is None else Clock(nanos)


def _parse_clock(part: dict[str, str]) -> int | Fraction | None:
    hour, minute, second = (int(part[name] or 0) for name in ("hour", "minute", "second"))
    if hour > 23 or minute > 59 or second > 59:
        return None
    digits = part["fraction"] or "0"
    fraction = Fraction(int(digits) * 10**9, 10 ** len(digits))
    return ((hour * 60 + minute) * 60 + second) * 10**9 + fraction

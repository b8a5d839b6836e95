"""Parse text into values; text that is not a value is an error."""

import re
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from emberlake.read.casts.arrays import as_atomic, map_distinct
from emberlake.read.casts.families import Family, KernelTable
from emberlake.read.casts.numbers import decimal_of
from emberlake.read.casts.times import MILLIS_PER_DAY, POWERS_OF_TEN, UNIT_DIGITS, as_timestamp
from emberlake.types import AtomicType, DataType, TypeRoot, arrow_type

_TRUE: Final = ("t", "true", "y", "yes", "1")
_FALSE: Final = ("f", "false", "n", "no", "0")


def _text_to_boolean(array: pa.Array, _source: DataType, _target: DataType) -> pa.Array:
    lower = pc.utf8_lower(array)
    is_true = pc.is_in(lower, pa.array(_TRUE))
    _refuse(array, pc.or_(is_true, pc.is_in(lower, pa.array(_FALSE))), "a boolean")
    return pc.if_else(array.is_valid(), is_true, pa.scalar(None, pa.bool_()))


def _text_to_integer(array: pa.Array, _source: DataType, target: DataType) -> pa.Array:
    # A fraction is allowed and cut off; "." is 0.
    is_number = pc.match_substring_regex(array, r"^[+-]?([0-9]+|[0-9]*\.[0-9]*)$")
    _refuse(array, is_number, "a whole number")
    whole = pc.replace_substring_regex(array, r"\..*$", "")
    whole = pc.replace_substring_regex(whole, r"^\+", "")
    whole = pc.replace_substring_regex(whole, r"^-?$", "0")
    return pc.cast(whole, arrow_type(target))


def _text_to_float(array: pa.Array, _source: DataType, target: DataType) -> pa.Array:
    trimmed = pc.replace_substring_regex(array, r"^[\x00-\x20]+|[\x00-\x20]+$", "")
    is_number = pc.match_substring_regex(
        trimmed, r"^[+-]?(NaN|Infinity|([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[fFdD]?)$"
    )
    _refuse(array, is_number, "a number")
    bare = pc.replace_substring_regex(trimmed, r"^\+", "")
    bare = pc.replace_substring_regex(bare, r"([0-9.])[fFdD]$", r"\1")
    return pc.cast(bare, arrow_type(target))


def _text_to_decimal(array: pa.Array, _source: DataType, target: DataType) -> pa.Array:
    t = as_atomic(target)
    whole, fraction = t.precision - t.scale, rf"(\.[0-9]{{1,{t.scale}}})?" if t.scale else ""
    if whole and _all_match(array, rf"^-?[0-9]{{1,{whole}}}{fraction}$"):
        return pc.cast(array, arrow_type(t))
    return map_distinct(array, lambda v: decimal_of(str(v), t), arrow_type(t))


def _text_to_date(array: pa.Array, _source: DataType, _target: DataType) -> pa.Array:
    if _all_match(array, r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"):
        return pc.cast(array, pa.date32())
    days = map_distinct(array, lambda v: _parse_date(str(v)), pa.int32())
    return pc.cast(days, pa.date32())


def _text_to_time(array: pa.Array, _source: DataType, _target: DataType) -> pa.Array:
    millis = map_distinct(array, lambda v: _parse_time(str(v)), pa.int32())
    return pc.cast(millis, pa.time32("ms"))


def _text_to_timestamp(array: pa.Array, _source: DataType, target: DataType) -> pa.Array:
    t, arrow = as_atomic(target), arrow_type(target)
    if _all_match(array, _PLAIN_TIMESTAMP[t.precision]):
        try:
            return as_timestamp(array, target)
        except pa.ArrowInvalid:
            pass  # Arrow refuses the 31st of a shorter month and 24:00:00; the next lines do not
    counts = map_distinct(array, lambda v: _parse_timestamp(str(v), t, arrow.unit), pa.int64())
    return pc.cast(counts, arrow)


def _refuse(array: pa.Array, is_good: pa.Array, expected: str) -> None:
    bad = array.filter(pc.and_(array.is_valid(), pc.invert(is_good.fill_null(True))))
    if len(bad):
        raise ValueError(f"{bad[0].as_py()!r} is not {expected}")


def _all_match(array: pa.Array, pattern: str) -> bool:
    matches = pc.all(pc.match_substring_regex(array, pattern)).as_py()
    return matches is None or bool(matches)


# --- dates and times ------------------------------------------------------------------------------

_DIGITS: Final = re.compile(r"-?\d+", re.ASCII)
_DATE: Final = re.compile(r"\s*(\d+)\s*(?:-\s*(\d+)\s*(?:-\s*(\d+)\s*)?)?", re.ASCII)
_CLOCK: Final = re.compile(
    r"\s*(?P<h>\d+)\s*(?::\s*(?P<m>\d+)\s*(?::\s*(?P<s>\d+)\s*(?:\.\s*(?P<f>[^+-]*?))?)?)?"
    r"(?:(?P<sign>[+-])\s*(?P<zh>\d+)\s*(?::\s*(?P<zm>\d+)\s*)?)?",
    re.ASCII,
)
_TIMESTAMP: Final = re.compile(
    r"(?P<y>\d{4}|\+\d{5,9})-(?P<mo>\d{1,2})-(?P<d>\d{1,2})"
    r"(?: (?P<h>\d{1,2}):(?P<m>\d{1,2}):(?P<s>\d{1,2})(?:\.(?P<f>\d{0,9}))?"
    r"|T(?P<h2>\d{1,2}):(?P<m2>\d{1,2})(?::(?P<s2>\d{1,2})(?:\.(?P<f2>\d{0,9}))?)?)?",
    re.ASCII,
)
# With no more digits than the type has: Arrow would not cut them off.
_PLAIN_TIMESTAMP: Final = tuple(
    r"^[1-9][0-9]{3}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}"
    + (rf"(\.[0-9]{{1,{n}}})?$" if n else "$")
    for n in range(10)
)
_NANOS: Final = 1_000_000_000


def _parse_date(text: str) -> int:
    """Days since the epoch of ``y-m-d`` or ``y-m``, maybe with a time; digits alone are days."""
    if _DIGITS.fullmatch(text):
        return int(text)
    space = text.find(" ")
    match = _DATE.fullmatch(text[:space] if space > 0 else text)
    if match is None:
        raise ValueError(f"{text!r} is not a date")
    year, month, day = int(match[1]), int(match[2] or 1), int(match[3] or 1)
    if not (year <= 9999 and 1 <= month <= 12 and 1 <= day <= _days_of_month(year, month)):
        raise ValueError(f"{text!r} is not a date")
    return _days_of(year, month, day)


def _parse_time(text: str) -> int:
    """Milliseconds of ``h[:m[:s[.f]]][+zh[:zm]]``; digits alone are milliseconds."""
    if _DIGITS.fullmatch(text):
        return int(text)
    match = _CLOCK.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a time")
    sign = 1 if match["sign"] == "+" else -1
    hour = int(match["h"]) + sign * int(match["zh"] or 0)
    minute = int(match["m"] or 0) + sign * int(match["zm"] or 0)
    millis = _parse_millis((match["f"] or "").strip())
    total = hour * 3_600_000 + minute * 60_000 + int(match["s"] or 0) * 1000 + millis
    if not 0 <= total < MILLIS_PER_DAY:
        raise ValueError(f"{text!r} is not a time of day")
    return total


def _parse_millis(fraction: str) -> int:
    digits = "".join(c if c in "0123456789" else "0" for c in fraction[:4]).ljust(4, "0")
    return int(digits[:3]) + (digits[3] >= "5")


def _parse_timestamp(text: str, target: AtomicType, unit: str) -> int:
    """The count of units since the epoch; digits alone are a count of the type's own unit."""
    is_local = target.root is TypeRoot.TIMESTAMP_LTZ
    if not is_local and _DIGITS.fullmatch(text):
        if target.precision not in (0, 3, 6, 9):
            raise ValueError(f"{text!r}: a count needs a precision of 0, 3, 6 or 9")
        return int(text)
    nanos = _parse_nanos(text)
    nanos -= nanos % POWERS_OF_TEN[9 - target.precision]
    return nanos // POWERS_OF_TEN[9 - UNIT_DIGITS[unit]]


def _parse_nanos(text: str) -> int:
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a timestamp")
    year, month, day = int(match["y"]), int(match["mo"]), int(match["d"])
    hour, minute, second = (int(match[k] or match[f"{k}2"] or 0) for k in "hms")
    fraction = int((match["f"] or match["f2"] or "").ljust(9, "0"))
    is_midnight = hour == 24 and not (minute or second or fraction)
    if not (
        year >= 1
        and 1 <= month <= 12
        and 1 <= day <= 31
        and (hour <= 23 or is_midnight)
        and minute <= 59
        and second <= 59
    ):
        raise ValueError(f"{text!r} is not a timestamp")
    day = min(day, _days_of_month(year, month))  # the 31st of a shorter month is its last day
    seconds = ((_days_of(year, month, day) * 24 + hour) * 60 + minute) * 60 + second
    return seconds * _NANOS + fraction


def _days_of_month(year: int, month: int) -> int:
    if month == 2:
        is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
        return 29 if is_leap else 28
    return 30 if month in (4, 6, 9, 11) else 31


def _days_of(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 in the Gregorian calendar, for years from 0 on."""
    shifted = year - (month <= 2)  # years that begin in March end with the leap day
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return shifted * 365 + shifted // 4 - shifted // 100 + shifted // 400 + day_of_year - 719_468


KERNELS: Final[KernelTable] = {
    (Family.TEXT, Family.BOOLEAN): _text_to_boolean,
    (Family.TEXT, Family.INTEGER): _text_to_integer,
    (Family.TEXT, Family.FLOAT): _text_to_float,
    (Family.TEXT, Family.DECIMAL): _text_to_decimal,
    (Family.TEXT, Family.DATE): _text_to_date,
    (Family.TEXT, Family.TIME): _text_to_time,
    (Family.TEXT, Family.TIMESTAMP): _text_to_timestamp,
}

"""Parse the texts of options: numbers, sizes, durations, lists."""

import math
import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Final

MEBIBYTE: Final = 1024 * 1024


def parse_bool(text: str) -> bool:
    """``true`` or ``false`` in any case."""
    match text.strip().lower():
        case "true":
            return True
        case "false":
            return False
        case _:
            raise ValueError("expected true or false")


def is_true(text: str) -> bool:
    """Whether the text is ``true`` in any case; any other text means false."""
    return text.strip().lower() == "true"


def parse_int(text: str) -> int:
    """A whole number."""
    try:
        return int(text.strip())
    except ValueError:
        raise ValueError("expected a whole number") from None


def parse_ratio(text: str) -> float:
    """A finite number."""
    number = float(text.strip())
    if not math.isfinite(number):
        raise ValueError("expected a number")
    return number


def parse_words(text: str) -> tuple[str, ...]:
    """A list separated by commas."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


_SIZE: Final = re.compile(r"^\s*(\d+)\s*([a-zµ]*)\s*$", re.IGNORECASE)
_SIZE_UNITS: Final = {
    **dict.fromkeys(("", "b", "bytes"), 1),
    **dict.fromkeys(("k", "kb", "kibibytes"), 1024),
    **dict.fromkeys(("m", "mb", "mebibytes"), MEBIBYTE),
    **dict.fromkeys(("g", "gb", "gibibytes"), 1024 * MEBIBYTE),
    **dict.fromkeys(("t", "tb", "tebibytes"), 1024 * 1024 * MEBIBYTE),
}
_TIME_UNITS_MS: Final = {
    **dict.fromkeys(("", "ms", "milli", "millis", "millisecond", "milliseconds"), 1),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1000),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60_000),
    **dict.fromkeys(("h", "hour", "hours"), 3_600_000),
    **dict.fromkeys(("d", "day", "days"), 86_400_000),
}
_TIME_UNITS_US: Final = {
    **dict.fromkeys(("µs", "micro", "micros", "microsecond", "microseconds"), 1),
    **{name: 1000 * unit for name, unit in _TIME_UNITS_MS.items()},
}


def parse_size(text: str) -> int:
    """A number of bytes: ``128 mb``, ``64kb``, ``1024``."""
    return _parse_unit(text, _SIZE_UNITS, "a size such as 128 mb")


def parse_duration_ms(text: str) -> int:
    """A number of milliseconds: ``1 h``, ``10 s``, ``500 ms``."""
    return _parse_unit(text, _TIME_UNITS_MS, "a duration such as 10 s")


def parse_duration(text: str) -> timedelta:
    """A duration, down to microseconds: ``1 d``, ``500 micro``."""
    micros = _parse_unit(text, _TIME_UNITS_US, "a duration such as 10 s")
    try:
        return timedelta(microseconds=micros)
    except OverflowError as error:
        raise ValueError("it is too long") from error


def _parse_unit(text: str, units: Mapping[str, int], expected: str) -> int:
    match = _SIZE.match(text)
    unit = units.get(match.group(2).lower()) if match else None
    if match is None or unit is None:
        raise ValueError(f"expected {expected}")
    return int(match.group(1)) * unit


def parse_levels(text: str) -> dict[int, str]:
    """A word per level, such as a file format: ``0:avro,5:orc``."""
    pairs = [word.partition(":") for word in parse_words(text)]
    if not all(level.strip().isdecimal() and name.strip() for level, _, name in pairs):
        raise ValueError("expected pairs such as 0:avro")
    return {int(level): name.strip().lower() for level, _, name in pairs}

"""Counts, sizes, durations and times as people read them."""

from datetime import datetime
from typing import Final

_UNITS: Final = ("kB", "MB", "GB", "TB", "PB", "EB")


def count_text(count: int, noun: str, plural: str | None = None) -> str:
    """``1 file``, ``1,234 files``."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def size_text(size: int) -> str:
    """``17 B``, ``1.2 kB``, ``340 MB``: up to three digits, enough to compare sizes."""
    if abs(size) < 1000:
        return f"{size} B"
    value = float(size)
    for unit in _UNITS:
        value /= 1000
        # A value that would round to 1000 belongs to the next unit.
        if abs(value) < 999.5 or unit == _UNITS[-1]:
            digits = 0 if abs(value) >= 99.95 else 1
            return f"{value:.{digits}f} {unit}"
    raise AssertionError("the last unit takes every size")


def seconds_text(seconds: float) -> str:
    """``0.42 s``, ``12.3 s``, ``3 min 05 s``, ``2 h 07 min``."""
    if seconds < 10:
        return f"{seconds:.2f} s"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def time_text(time: datetime | None) -> str | None:
    """``2026-06-26 14:03:07``: the wall clock, without fractions of a second."""
    return None if time is None else time.strftime("%Y-%m-%d %H:%M:%S")

"""Tags that Java's engines create by themselves, once in a period: their names are times."""

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Final

from emberlake.options import (
    TAG_PERIOD,
    TAG_PERIOD_DURATION,
    TAG_PERIOD_FORMATTER,
    TableOptions,
)

_DAYS: Final = {"with_dashes": "%Y-%m-%d", "without_dashes": "%Y%m%d"}
_PATTERNS: Final = {
    "daily": {**_DAYS, "without_dashes_and_spaces": "%Y%m%d"},
    "hourly": {
        **{formatter: f"{day} %H" for formatter, day in _DAYS.items()},
        "without_dashes_and_spaces": "%Y%m%d%H",
    },
}
_MINUTES: Final = "%Y%m%d%H%M"  # of periods of any length
_TWO_HOURS: Final = "%Y-%m-%d %H"


def time_of(tag: str, options: TableOptions) -> datetime | None:
    """The time that the name of a tag says; None if no engine would give this name."""
    pattern = _pattern(options)
    if TAG_PERIOD.default == options.value(TAG_PERIOD):
        tag = tag.split(" ", maxsplit=1)[0]  # what follows the day does not count
    if pattern is None or not re.fullmatch(_digits(pattern), tag):
        return None
    try:
        return datetime.strptime(tag, pattern)  # noqa: DTZ007 - compared with each other only
    except ValueError:
        return None


def tag_before(tag: str, tags: Iterable[str], options: TableOptions) -> str | None:
    """The last of the tags whose time is before that of a tag."""
    end = time_of(tag, options)
    times = {name: time_of(name, options) for name in tags}
    earlier = {n: time for n, time in times.items() if time and end and time < end}
    return max(earlier, key=lambda name: earlier[name], default=None)


def _pattern(options: TableOptions) -> str | None:
    if options.value(TAG_PERIOD_DURATION) is not None:
        return _MINUTES
    period = options.value(TAG_PERIOD)
    if period == "two-hours":
        return _TWO_HOURS
    return _PATTERNS.get(period, {}).get(options.value(TAG_PERIOD_FORMATTER))


def _digits(pattern: str) -> str:
    return re.sub(r"%[mdHM]", r"\\d\\d", pattern.replace("%Y", r"\d\d\d\d"))

"""Moments as people type them: ``7d`` (seven days ago) or a date."""

import re
from datetime import datetime, timedelta
from typing import Final

from emberlake.cli.failures import UsageError

_AGO: Final = re.compile(r"(\d+)\s*(s|m|min|h|d|w)", re.IGNORECASE)
_UNITS: Final = {
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "min": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}


def parse_moment(text: str, now: datetime) -> datetime:
    """The moment that a text names; a date without a zone is local time.

    Raises:
        UsageError: it does not name a moment.
    """
    ago = _AGO.fullmatch(text.strip())
    try:
        if ago is not None:
            return now - int(ago.group(1)) * _UNITS[ago.group(2).lower()]
        return datetime.fromisoformat(text.strip()).astimezone()
    except (ValueError, OverflowError) as error:
        raise UsageError(
            f"{text!r} is not a time: expected 7d, 12h, 30m, or a date such as 2026-06-26T12:00"
        ) from error

"""Instants, and the wall clock of this machine's zone.

Snapshots store instants; data files store the wall clock of their writer. System tables show the
wall clock throughout, as other engines do, so that columns of different tables can be compared.
"""

from datetime import UTC, datetime, timedelta
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def to_millis(moment: datetime | int) -> int:
    """Milliseconds since the epoch; a datetime without a zone is in local time."""
    if isinstance(moment, datetime):
        return (moment.astimezone() - _EPOCH) // timedelta(milliseconds=1)
    return moment


def local_time(instant_ms: int) -> datetime:
    """An instant in local time, with its zone."""
    return (_EPOCH + timedelta(milliseconds=instant_ms)).astimezone()


def wall_clock(instant_ms: int) -> datetime:
    """An instant as local time, without a zone."""
    return local_time(instant_ms).replace(tzinfo=None)


def wall_clock_ms(instant_ms: int) -> int:
    """The local wall clock at an instant, in milliseconds as if it were UTC."""
    offset = datetime.fromtimestamp(instant_ms / 1000, tz=UTC).astimezone().utcoffset()
    return instant_ms + (int(offset.total_seconds() * 1000) if offset else 0)


def shown_time(instant_ms: int) -> str:
    """``2026-06-26 14:03:22 UTC``; in milliseconds if the time is outside of the calendar."""
    try:
        moment = datetime.fromtimestamp(instant_ms / 1000, tz=UTC)
    except (ValueError, OverflowError, OSError):
        return f"{instant_ms} ms"
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def instant_ms(wall_clock_ms: int) -> int:
    """The instant at which the local wall clock shows this time."""
    shown = datetime.fromtimestamp(wall_clock_ms / 1000, tz=UTC).replace(tzinfo=None)
    offset = shown.astimezone().utcoffset()
    return wall_clock_ms - (int(offset.total_seconds() * 1000) if offset else 0)

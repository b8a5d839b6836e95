"""Instants and the wall clock of this machine's zone.

Snapshots store instants; data files store the wall clock of their writer. System tables show the
wall clock throughout, as other engines do, so that columns of different tables can be compared.
"""

from datetime import UTC, datetime


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

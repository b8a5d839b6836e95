"""Moments: as users give them, as milliseconds since the epoch, and in local time."""

from datetime import UTC, datetime, timedelta
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def to_millis(moment: datetime | int) -> int:
    """Milliseconds since the epoch; a datetime without a zone is in local time."""
    if isinstance(moment, datetime):
        return (moment.astimezone() - _EPOCH) // timedelta(milliseconds=1)
    return moment


def wall_clock(instant_ms: int) -> datetime:
    """An instant as local time, without a zone."""
    moment = _EPOCH + timedelta(milliseconds=instant_ms)
    return moment.astimezone().replace(tzinfo=None)

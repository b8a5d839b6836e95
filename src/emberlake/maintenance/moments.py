"""Moments: as users give them, as milliseconds since the epoch, and on the wall of this machine."""

from datetime import UTC, datetime, timedelta
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def to_millis(moment: datetime | int) -> int:
    """Milliseconds since the epoch; a datetime without a zone is in this machine's."""
    if isinstance(moment, datetime):
        return (moment.astimezone() - _EPOCH) // timedelta(milliseconds=1)
    return moment


def wall_clock(instant_ms: int) -> datetime:
    """What the clock of this machine's zone shows at an instant; it says of no zone."""
    moment = _EPOCH + timedelta(milliseconds=instant_ms)
    return moment.astimezone().replace(tzinfo=None)

"""Moments as users give them, as the milliseconds since the epoch that files have."""

from datetime import UTC, datetime, timedelta
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def to_millis(moment: datetime | int) -> int:
    """Milliseconds since the epoch; a datetime without a zone is in this machine's."""
    if isinstance(moment, datetime):
        return (moment.astimezone() - _EPOCH) // timedelta(milliseconds=1)
    return moment

"""A tag: a snapshot that is kept under a name, permanently or for a time. Spec: "Tag".

The file is that of a snapshot. Only a tag with a time limit has two more keys, since old readers
do not know them.
"""

from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from emberlake.errors import CorruptFile
from emberlake.spec.snapshot import Snapshot, decode_snapshot

_CREATED: Final = "tagCreateTime"
_RETAINED: Final = "tagTimeRetained"
_MICROSECOND: Final = timedelta(microseconds=1)


@dataclass(frozen=True, kw_only=True)
class Tag(Snapshot):
    """A snapshot under a name, and how long it is kept.

    ``tag_create_time`` is the local wall clock when the tag was made. Without ``tag_time_retained``
    the tag stays until it is deleted.
    """

    tag_create_time: datetime | None = None
    tag_time_retained: timedelta | None = None

    @staticmethod
    def from_snapshot_and_tag_ttl(
        snapshot: Snapshot, tag_time_retained: timedelta | None, tag_create_time: datetime
    ) -> "Tag":
        """A tag of a snapshot; it stores its creation time only if it expires."""
        created = None if tag_time_retained is None else tag_create_time.replace(tzinfo=None)
        return Tag(
            **_values(snapshot), tag_create_time=created, tag_time_retained=tag_time_retained
        )

    def trim_to_snapshot(self) -> Snapshot:
        """The snapshot that the tag keeps."""
        return Snapshot(**_values(self))

    def has_expired(self, now: datetime) -> bool:
        """Whether the tag's retention is over, by the wall clock."""
        created, retained = self.tag_create_time, self.tag_time_retained
        if created is None or retained is None:
            return False
        # A difference: the sum of a date and a long retention may be out of range.
        return now.replace(tzinfo=None) - created > retained

    def to_json(self) -> dict[str, Any]:
        """The JSON object of the tag file."""
        out = super().to_json()
        if self.tag_create_time is not None:
            out[_CREATED] = _to_parts(self.tag_create_time)
        if self.tag_time_retained is not None:
            out[_RETAINED] = self.tag_time_retained.total_seconds()
        return out


def decode_tag(raw: bytes, path: str) -> Tag:
    """The tag in a tag file."""
    values = _values(decode_snapshot(raw, path))
    unknown = dict(values.pop("unknown"))
    created, retained = unknown.pop(_CREATED, None), unknown.pop(_RETAINED, None)
    try:
        return Tag(
            **values,
            unknown=unknown,
            tag_create_time=None if created is None else _from_parts(created),
            tag_time_retained=None if retained is None else timedelta(seconds=retained),
        )
    except (ValueError, TypeError, OverflowError) as error:
        raise CorruptFile(path, f"its retention cannot be read: {error}") from error


def format_duration(duration: timedelta) -> str:
    """ISO 8601 as Java writes it, in hours, minutes and seconds: ``PT36H``, ``PT0.5S``."""
    seconds, micros = divmod(duration // _MICROSECOND, 1_000_000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    rest = f"{seconds}.{micros:06d}".rstrip("0").rstrip(".")
    parts = [f"{hours}H" if hours else "", f"{minutes}M" if minutes else ""]
    parts.append(f"{rest}S" if seconds or micros else "")
    return "PT" + ("".join(parts) or "0S")


def as_if_utc_ms(wall_clock: datetime) -> int:
    """A wall clock reading in milliseconds since the epoch, as if it were UTC."""
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    return (wall_clock.replace(tzinfo=UTC) - epoch) // timedelta(milliseconds=1)


def _values(snapshot: Snapshot) -> dict[str, Any]:
    return {f.name: getattr(snapshot, f.name) for f in fields(Snapshot)}


def _to_parts(moment: datetime) -> list[int]:
    """``[year, month, day, hour, minute, second, nanosecond]``; the last two only if not zero."""
    parts = [moment.year, moment.month, moment.day, moment.hour, moment.minute]
    if moment.second or moment.microsecond:
        parts.append(moment.second)
    if moment.microsecond:
        parts.append(moment.microsecond * 1000)
    return parts


def _from_parts(parts: list[int]) -> datetime:
    year, month, day, hour, minute, second, nanos = (*parts, 0, 0, 0, 0)[:7]
    return datetime(year, month, day, hour, minute, second, nanos // 1000)  # noqa: DTZ001

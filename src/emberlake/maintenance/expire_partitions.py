"""Which partitions are too old, judged by the time that their values name, or of their files.

Pure decisions.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from emberlake.errors import InvalidInput
from emberlake.spec.listing import Partition

# Java's letters for parts of a timestamp, and Python's.
_LETTERS: Final = {
    "yyyy": "%Y",
    "MM": "%m",
    "dd": "%d",
    "HH": "%H",
    "mm": "%M",
    "ss": "%S",
    "SSS": "%f",
}
_PATTERN_PART: Final = re.compile(r"yyyy|MM|dd|HH|mm|SSS|ss|'[^']*'|[A-Za-z]+|.", re.DOTALL)
_DEFAULT_FORMATS: Final = ("%Y-%m-%d %H:%M:%S", "%Y-%m-%d")


@dataclass(frozen=True)
class PartitionExpiry:
    """When a partition is too old.

    Args:
        lifetime: How long a partition is kept after its time.
        formatter: Java's pattern of the time, such as ``yyyyMMdd``; None: date, or date and time.
        pattern: How values make the text of the time, such as ``$day $hour:00``; None: the value
            of the first partition column.
    """

    lifetime: timedelta
    formatter: str | None = None
    pattern: str | None = None

    def expired(self, partitions: Iterable[Partition], now: datetime) -> list[Partition]:
        """The partitions that are too old, oldest first; those that name no time stay.

        Raises:
            InvalidInput: the formatter or the pattern cannot be used.
        """
        formats = (_python_format(self.formatter),) if self.formatter else _DEFAULT_FORMATS
        limit = now - self.lifetime
        found = []
        for partition in partitions:
            moment = _moment(_text(partition, self.pattern), formats)
            if moment is not None and moment < limit:
                found.append((moment, tuple(partition.spec.values()), partition))
        return [partition for *_, partition in sorted(found, key=lambda f: f[:2])]


def not_written_since(partitions: Iterable[Partition], moment: datetime) -> list[Partition]:
    """The partitions whose newest file is older, those with the oldest files first."""
    limit = moment.timestamp() * 1000
    found = [p for p in partitions if (p.last_file_creation_time or 0) < limit]
    return sorted(found, key=lambda p: p.last_file_creation_time or 0)


def _text(partition: Partition, pattern: str | None) -> str:
    values = partition.spec
    if pattern is None:
        return next(iter(values.values()), "")
    for name in sorted(values, key=len, reverse=True):
        pattern = pattern.replace(f"${name}", values[name])
    if "$" in pattern:
        raise InvalidInput(
            f"the pattern {pattern!r} names a column that is not a partition column; those are "
            + ", ".join(values)
        )
    return pattern


def _moment(text: str, formats: Sequence[str]) -> datetime | None:
    for form in formats:
        try:
            return datetime.strptime(text, form)  # noqa: DTZ007 - local time, as in Java
        except ValueError:
            continue
    return None


def _python_format(pattern: str) -> str:
    out = []
    for part in _PATTERN_PART.findall(pattern):
        if part in _LETTERS:
            out.append(_LETTERS[part])
        elif part.startswith("'"):
            out.append(part[1:-1] or "'")
        elif part.isalpha():
            raise InvalidInput(
                f"the format {pattern!r} has {part!r}; supported are {', '.join(_LETTERS)}"
            )
        else:
            out.append("%%" if part == "%" else part)
    return "".join(out)

"""Statistics of a whole table: a JSON file that snapshots name. Spec: "Statistics of a table"."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from emberlake.errors import CorruptFile


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """What is known about a column; minimum and maximum are texts."""

    column_id: int
    distinct_count: int | None = None
    low: str | None = None
    high: str | None = None
    null_count: int | None = None
    average_length: int | None = None
    longest: int | None = None

    def to_json(self) -> dict[str, Any]:
        """The members in their order; what is unknown is left out."""
        members = {
            "colId": self.column_id,
            "distinctCount": self.distinct_count,
            "min": self.low,
            "max": self.high,
            "nullCount": self.null_count,
            "avgLen": self.average_length,
            "maxLen": self.longest,
        }
        return {key: value for key, value in members.items() if value is not None}


@dataclass(frozen=True, slots=True)
class TableStatistics:
    """The rows of one snapshot, and some of its columns."""

    snapshot_id: int
    schema_id: int
    row_count: int | None
    size: int | None
    columns: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """The content of the file."""
        members = {
            "snapshotId": self.snapshot_id,
            "schemaId": self.schema_id,
            "mergedRecordCount": self.row_count,
            "mergedRecordSize": self.size,
            "colStats": {name: self.columns[name] for name in _in_order(list(self.columns))},
        }
        return json.dumps(members, indent=2, ensure_ascii=False).encode()

    @staticmethod
    def from_bytes(path: str, raw: bytes) -> "TableStatistics":
        """What a file says.

        Raises:
            CorruptFile: it is not a statistics file.
        """
        try:
            found = json.loads(raw)
            return TableStatistics(
                int(found["snapshotId"]),
                int(found["schemaId"]),
                found.get("mergedRecordCount"),
                found.get("mergedRecordSize"),
                dict(found.get("colStats") or {}),
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CorruptFile(path, f"it has no statistics: {error}") from error

    @property
    def columns_text(self) -> str:
        """The columns as other engines print them."""
        if not self.columns:
            return "{ }"
        return json.dumps(self.columns, indent=2, separators=(",", " : "), ensure_ascii=False)


def _in_order(names: list[str]) -> list[str]:
    """Names in the order of Java's hash maps, so that the file reads like one of Java's."""
    places = 16
    while len(names) > places * 3 // 4:
        places *= 2
    return sorted(names, key=lambda name: _java_hash(name) % places)


def _java_hash(text: str) -> int:
    found = 0
    units = text.encode("utf-16-be")
    for at in range(0, len(units), 2):
        found = (31 * found + int.from_bytes(units[at : at + 2], "big")) & 0xFFFFFFFF
    return found ^ (found >> 16)

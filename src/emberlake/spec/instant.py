"""A snapshot or a tag that a table can be rolled back to. Servers use its JSON form."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from emberlake.errors import InvalidInput


class Instant(ABC):
    """A snapshot or a tag: ``Instant.snapshot(3)``, ``Instant.tag("monday")``."""

    @staticmethod
    def snapshot(snapshot_id: int) -> "SnapshotInstant":
        """The snapshot with that id."""
        return SnapshotInstant(snapshot_id)

    @staticmethod
    def tag(tag_name: str) -> "TagInstant":
        """The tag with that name."""
        return TagInstant(tag_name)

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The JSON object of this instant."""

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> "Instant":
        """The instant of a JSON object."""
        match data:
            case {"type": "snapshot", "snapshotId": int(snapshot_id)}:
                return SnapshotInstant(snapshot_id)
            case {"type": "tag", "tagName": str(tag_name)}:
                return TagInstant(tag_name)
            case _:
                raise InvalidInput(f"{dict(data)} is neither a snapshot nor a tag")


@dataclass(frozen=True)
class SnapshotInstant(Instant):
    """A snapshot by its id."""

    snapshot_id: int

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of this instant."""
        return {"type": "snapshot", "snapshotId": self.snapshot_id}


@dataclass(frozen=True)
class TagInstant(Instant):
    """A tag by its name."""

    tag_name: str

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of this instant."""
        return {"type": "tag", "tagName": self.tag_name}

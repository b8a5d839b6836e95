"""A snapshot: one version of a table. Spec: "Snapshot JSON".

Unknown keys survive a rewrite (tags copy snapshots of other engines).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from emberlake.base.html import html_box, html_facts, html_title
from emberlake.base.times import shown_time
from emberlake.errors import CorruptFile, Unsupported

SNAPSHOT_VERSION: Final = 3
BATCH_COMMIT_IDENTIFIER: Final = 2**63 - 1


class CommitKind(StrEnum):
    """Stored in snapshots. Never rename."""

    APPEND = "APPEND"
    COMPACT = "COMPACT"
    OVERWRITE = "OVERWRITE"
    ANALYZE = "ANALYZE"


class Operation(StrEnum):
    """What a user did to make a snapshot. Stored in snapshots. Never rename."""

    DELETE = "DELETE"
    UPDATE = "UPDATE"
    MERGE = "MERGE"
    TRUNCATE = "TRUNCATE"


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """One version of a table: the manifest lists that hold its files, who made it and when."""

    id: int
    schema_id: int
    base_manifest_list: str
    delta_manifest_list: str
    commit_user: str
    commit_identifier: int
    commit_kind: CommitKind
    time_millis: int
    total_record_count: int
    delta_record_count: int
    base_manifest_list_size: int | None = None
    delta_manifest_list_size: int | None = None
    changelog_manifest_list: str | None = None
    changelog_manifest_list_size: int | None = None
    changelog_record_count: int | None = None
    index_manifest: str | None = None
    watermark: int | None = None
    statistics: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    next_row_id: int | None = None
    operation: str | None = None
    writer_version: str | None = None
    uuid: str | None = None
    version: int = SNAPSHOT_VERSION
    unknown: Mapping[str, Any] = field(default_factory=dict)

    @property
    def state_lists(self) -> tuple[tuple[str, int | None], ...]:
        """The manifest lists that together name the whole state, with their sizes."""
        return (
            (self.base_manifest_list, self.base_manifest_list_size),
            (self.delta_manifest_list, self.delta_manifest_list_size),
        )

    @property
    def mark(self) -> str:
        """What identifies the commit: the name of a list that was written for it alone.

        Not every server that publishes snapshots keeps their uuids.
        """
        return self.delta_manifest_list

    def __repr__(self) -> str:
        return (
            f"Snapshot(id={self.id}, {self.commit_kind}, {shown_time(self.time_millis)}, "
            f"rows={self.total_record_count}, rows_added={self.delta_record_count}, "
            f"schema_id={self.schema_id})"
        )

    def _repr_html_(self) -> str:
        facts: dict[str, object] = {
            "time": shown_time(self.time_millis),
            "operation": self.operation,
            "rows": self.total_record_count,
            "rows added": self.delta_record_count,
            "rows of the changelog": self.changelog_record_count,
            "watermark": self.watermark,
            "next row id": self.next_row_id or None,
            "schema": self.schema_id,
            "commit user": self.commit_user,
            "commit identifier": (
                None
                if self.commit_identifier == BATCH_COMMIT_IDENTIFIER
                else str(self.commit_identifier)
            ),
            "written by": self.writer_version,
            **self.properties,
        }
        known = {name: value for name, value in facts.items() if value is not None}
        return html_box(html_title(f"Snapshot {self.id}", self.commit_kind), html_facts(known))

    def to_json(self) -> dict[str, Any]:
        """The JSON object of the snapshot file; absent values are left out."""
        out: dict[str, Any] = {}
        for key, name in _NAMES.items():
            value = getattr(self, name)
            if value is not None and not (name == "properties" and not value):
                out[key] = dict(value) if name == "properties" else value
        return {**out, **self.unknown}

    def encode(self) -> bytes:
        """The bytes of the snapshot file."""
        return json.dumps(self.to_json(), indent=2, ensure_ascii=False).encode()


_NAMES: Final = {
    "version": "version",
    "uuid": "uuid",
    "id": "id",
    "schemaId": "schema_id",
    "baseManifestList": "base_manifest_list",
    "baseManifestListSize": "base_manifest_list_size",
    "deltaManifestList": "delta_manifest_list",
    "deltaManifestListSize": "delta_manifest_list_size",
    "changelogManifestList": "changelog_manifest_list",
    "changelogManifestListSize": "changelog_manifest_list_size",
    "indexManifest": "index_manifest",
    "commitUser": "commit_user",
    "writerVersion": "writer_version",
    "commitIdentifier": "commit_identifier",
    "commitKind": "commit_kind",
    "timeMillis": "time_millis",
    "totalRecordCount": "total_record_count",
    "deltaRecordCount": "delta_record_count",
    "changelogRecordCount": "changelog_record_count",
    "watermark": "watermark",
    "statistics": "statistics",
    "properties": "properties",
    "nextRowId": "next_row_id",
    "operation": "operation",
}
_REQUIRED: Final = (
    "id",
    "schemaId",
    "baseManifestList",
    "deltaManifestList",
    "commitUser",
    "commitIdentifier",
    "commitKind",
    "timeMillis",
)


def decode_snapshot(raw: bytes, path: str) -> Snapshot:
    """The snapshot in a snapshot file or tag."""
    try:
        value = json.loads(raw)
        version = int(value.get("version") or 1)
        if version > SNAPSHOT_VERSION:
            raise Unsupported(
                f"{path} has snapshot version {version}; emberlake reads up to {SNAPSHOT_VERSION}"
            )
        missing = [key for key in _REQUIRED if value.get(key) is None]
        if missing:
            raise CorruptFile(path, f"it lacks {', '.join(missing)}")
        known = {name: value[key] for key, name in _NAMES.items() if value.get(key) is not None}
        wrong = [key for key, name in _NAMES.items() if not _fits(name, known.get(name))]
        if wrong:
            raise CorruptFile(path, f"it has no usable {', '.join(wrong)}")
        known["commit_kind"] = CommitKind(known["commit_kind"])
        # Snapshots of early releases have no counts.
        known.setdefault("total_record_count", 0)
        known.setdefault("delta_record_count", 0)
        unknown = {k: v for k, v in value.items() if k not in _NAMES}
        return Snapshot(**known, unknown=unknown)
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise CorruptFile(path, f"it is not a snapshot: {error}") from error


def _fits(name: str, value: object) -> bool:
    """Whether a value in a snapshot file has the type that its name calls for."""
    if value is None:
        return True
    if name in _TEXTS:
        # File names become part of paths.
        return isinstance(value, str) and not (name in _FILES and "/" in value)
    if name == "properties":
        return isinstance(value, dict)
    if not isinstance(value, int) or isinstance(value, bool):
        return False
    return -(2**63) <= value < 2**63


_FILES: Final = frozenset((
    "base_manifest_list",
    "delta_manifest_list",
    "changelog_manifest_list",
    "index_manifest",
    "statistics",
))  # fmt: skip
_TEXTS: Final = _FILES | {"commit_user", "commit_kind", "operation", "writer_version", "uuid"}

"""What a writer tells the committer: the files of one bucket, to be added, deleted or replaced.

The byte form is what crosses processes (nothing that arrives is unpickled)::

    offset  size  field
      0      4    magic "EMBM"
      4      1    version (1)
      5      -    JSON, UTF-8; bytes in base64; keys that hold their default are left out

Readers ignore keys that they do not know and refuse versions that they do not know.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, Final, TypeVar

from emberlake.errors import InvalidInput, Unsupported
from emberlake.spec.manifest import (
    DataFile,
    DeletionVectorRange,
    FileSource,
    GlobalIndex,
    IndexFile,
    SimpleStats,
)

_MAGIC: Final = b"EMBM"
_VERSION: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitMessage:
    """The outcome of writing one bucket of one partition."""

    partition: bytes
    bucket: int
    total_buckets: int
    new_files: tuple[DataFile, ...] = ()
    deleted_files: tuple[DataFile, ...] = ()
    changelog_files: tuple[DataFile, ...] = ()
    new_index_files: tuple[IndexFile, ...] = ()
    deleted_index_files: tuple[IndexFile, ...] = ()
    compact_before: tuple[DataFile, ...] = ()
    compact_after: tuple[DataFile, ...] = ()
    compact_changelog_files: tuple[DataFile, ...] = ()
    # The newest snapshot when the writer was opened. A commit of this message can only be in
    # snapshots after it, which bounds the search for one.
    base_snapshot_id: int = 0

    @property
    def is_empty(self) -> bool:
        return not any(
            getattr(self, f.name)
            for f in fields(self)
            if f.name.endswith(("files", "before", "after"))
        )

    @property
    def row_count(self) -> int:
        return sum(file.row_count for file in self.new_files)

    @property
    def written_files(self) -> tuple[DataFile, ...]:
        """All data files that writing this message created."""
        return (
            *self.new_files,
            *self.changelog_files,
            *self.compact_after,
            *self.compact_changelog_files,
        )

    def to_bytes(self) -> bytes:
        """The stable byte form."""
        body = json.dumps(_to_json(self), separators=(",", ":"), ensure_ascii=False)
        return _MAGIC + bytes([_VERSION]) + body.encode()

    @staticmethod
    def from_bytes(raw: bytes) -> "CommitMessage":
        """The message of a byte form."""
        if raw[:4] != _MAGIC:
            raise InvalidInput("these bytes are not a commit message")
        if raw[4] != _VERSION:
            raise Unsupported(f"commit message version {raw[4]}; this emberlake knows {_VERSION}")
        try:
            return _from_json(CommitMessage, json.loads(raw[5:]))
        except (ValueError, TypeError, KeyError) as error:
            raise InvalidInput(f"these bytes are not a commit message: {error}") from error


def _to_json(value: object) -> Any:
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, tuple):
        return [_to_json(item) for item in value]
    if hasattr(value, "__dataclass_fields__"):
        return {
            f.name: _to_json(item)
            for f in fields(value)  # type: ignore[arg-type]
            if (item := getattr(value, f.name)) != f.default or f.default is MISSING
        }
    return value


_Decoder = Callable[[Any], Any]
_T = TypeVar("_T")


def _tuple_of(decode: _Decoder) -> _Decoder:
    return lambda items: tuple(decode(item) for item in items)


def _optional(decode: _Decoder) -> _Decoder:
    return lambda item: None if item is None else decode(item)


def _as(kind: type) -> _Decoder:
    return lambda value: _from_json(kind, value)


_BYTES: Final[_Decoder] = b64decode
_PLAIN: Final[_Decoder] = _tuple_of(lambda item: item)
_FILES: Final[_Decoder] = _tuple_of(_as(DataFile))
_INDEX_FILES: Final[_Decoder] = _tuple_of(_as(IndexFile))

# How the fields that are not plain JSON values are read, by class and field.
_DECODERS: Final[Mapping[type, Mapping[str, _Decoder]]] = {
    CommitMessage: {
        "partition": _BYTES,
        **dict.fromkeys(
            (
                "new_files",
                "deleted_files",
                "changelog_files",
                "compact_before",
                "compact_after",
                "compact_changelog_files",
            ),
            _FILES,
        ),
        **dict.fromkeys(("new_index_files", "deleted_index_files"), _INDEX_FILES),
    },
    DataFile: {
        "min_key": _BYTES,
        "max_key": _BYTES,
        "key_stats": _as(SimpleStats),
        "value_stats": _as(SimpleStats),
        "extra_files": _PLAIN,
        "embedded_file_index": _optional(_BYTES),
        "file_source": _optional(FileSource),
        "value_stats_cols": _optional(_PLAIN),
        "write_cols": _optional(_PLAIN),
        "write_cols_sequences": _optional(_PLAIN),
    },
    SimpleStats: {
        "min_values": _BYTES,
        "max_values": _BYTES,
        "null_counts": _optional(_PLAIN),
    },
    IndexFile: {
        "deletion_vectors": _optional(_tuple_of(_as(DeletionVectorRange))),
        "global_index": _optional(_as(GlobalIndex)),
    },
    DeletionVectorRange: {},
    GlobalIndex: {
        "extra_field_ids": _optional(_PLAIN),
        "index_meta": _optional(_BYTES),
        "source_meta": _optional(_BYTES),
    },
}


def _from_json(kind: type[_T], value: Mapping[str, Any]) -> _T:
    decoders = _DECODERS[kind]
    known = {f.name for f in fields(kind)}  # type: ignore[arg-type]
    return kind(
        **{name: decoders.get(name, lambda v: v)(v) for name, v in value.items() if name in known}
    )

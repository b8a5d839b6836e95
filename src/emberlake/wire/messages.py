"""What a writer tells the committer: the files of one bucket, to be added, deleted or replaced.

The byte form is what crosses processes (nothing that arrives is unpickled)::

    offset  size  field
      0      4    magic "EMBM"
      4      1    version (1)
      5      -    JSON, UTF-8; bytes in base64; keys that hold their default are left out

Readers ignore keys that they do not know and refuse versions that they do not know. The names and
defaults of the fields of ``CommitMessage`` and of what is in it are therefore part of the form.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import IntEnum
from functools import cache
from types import UnionType
from typing import Any, Final, get_args, get_origin, get_type_hints

from emberlake.errors import InvalidInput, Unsupported
from emberlake.spec.manifest import DataFile, IndexFile

_MAGIC: Final = b"EMBM"
_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class BaseSnapshot:
    """The newest snapshot when a writer was opened.

    A commit of the writer's messages can only come after it, which bounds the search for one.
    After a rollback another snapshot may have the same id; the name of its delta tells them apart.
    """

    id: int
    delta_manifest_list: str


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
    compact_new_index_files: tuple[IndexFile, ...] = ()
    compact_deleted_index_files: tuple[IndexFile, ...] = ()
    base: BaseSnapshot | None = None  # None: the table had no snapshot

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
        # A file that only changes its level was there before.
        before = {file.file_name for file in self.compact_before}
        return (
            *self.new_files,
            *self.changelog_files,
            *(file for file in self.compact_after if file.file_name not in before),
            *self.compact_changelog_files,
        )

    def to_bytes(self) -> bytes:
        """The stable byte form."""
        body = json.dumps(_to_json(self), separators=(",", ":"), ensure_ascii=False)
        return _MAGIC + bytes([_VERSION]) + body.encode()

    @staticmethod
    def from_bytes(raw: bytes) -> "CommitMessage":
        """The message of a byte form.

        Raises:
            InvalidInput: the bytes are not a message.
            Unsupported: they are of a version that this release does not know.
        """
        if raw[:4] != _MAGIC or len(raw) < 5:
            raise InvalidInput("these bytes are not a commit message")
        if raw[4] != _VERSION:
            raise Unsupported(f"commit message version {raw[4]}; this emberlake knows {_VERSION}")
        try:
            message: CommitMessage = _decoder(CommitMessage)(json.loads(raw[5:]))
        except (ValueError, TypeError) as error:
            raise InvalidInput(f"these bytes are not a commit message: {error}") from error
        return message


def _to_json(value: Any) -> Any:
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, tuple):
        return [_to_json(item) for item in value]
    if is_dataclass(value):
        return {
            f.name: _to_json(item)
            for f in fields(value)
            if (item := getattr(value, f.name)) != f.default or f.default is MISSING
        }
    return value


_Decoder = Callable[[Any], Any]


@cache
def _decoder(kind: Any) -> _Decoder:
    """How a value of a type is read from JSON; the annotations of the fields drive it."""
    if get_origin(kind) is tuple:
        return _tuple_of(_decoder(get_args(kind)[0]))
    if isinstance(kind, UnionType):
        inner = _decoder(next(arm for arm in get_args(kind) if arm is not type(None)))
        return lambda value: None if value is None else inner(value)
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        return _object_of(kind, {f.name: _decoder(hints[f.name]) for f in fields(kind)})
    if kind is bytes:
        return lambda text: b64decode(_checked(str)(text), validate=True)
    if issubclass(kind, IntEnum):
        return lambda number: kind(_checked(int)(number))
    return _checked(kind)


def _checked(kind: type) -> _Decoder:
    def decode(value: Any) -> Any:
        if type(value) is not kind:  # not isinstance: a bool is an int
            raise TypeError(f"{value!r} where {kind.__name__} is expected")
        return value

    return decode


def _tuple_of(decode: _Decoder) -> _Decoder:
    as_list = _checked(list)
    return lambda items: tuple(map(decode, as_list(items)))


def _object_of(kind: Any, decoders: Mapping[str, _Decoder]) -> _Decoder:
    as_dict = _checked(dict)
    return lambda value: kind(
        **{name: decoders[name](v) for name, v in as_dict(value).items() if name in decoders}
    )

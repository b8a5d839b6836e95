"""Frozen dataclasses as bytes that can cross processes without pickle.

The bytes are::

    offset  size  field
      0      4    magic of the dataclass
      4      1    version
      5      -    JSON, UTF-8; bytes in base64; keys that hold their default are left out

Readers ignore unknown keys and refuse unknown versions. The names and defaults of the fields are
therefore part of the form.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import IntEnum, StrEnum
from functools import cache
from types import UnionType
from typing import Any, Generic, TypeVar, cast, get_args, get_origin, get_type_hints

from emberlake.errors import InvalidInput, Unsupported

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class ByteForm(Generic[_T]):
    """The byte form of values of one dataclass."""

    kind: type[_T]
    magic: bytes
    version: int
    name: str  # what errors call such a value

    def encode(self, value: _T) -> bytes:
        """Encode a value."""
        body = json.dumps(_to_json(value), separators=(",", ":"), ensure_ascii=False)
        return self.magic + bytes([self.version]) + body.encode()

    def decode(self, raw: bytes) -> _T:
        """Decode a value.

        Raises:
            InvalidInput: the bytes do not have this form.
            Unsupported: their version is unknown to this release.
        """
        if raw[:4] != self.magic or len(raw) < 5:
            raise InvalidInput(f"these bytes are not a {self.name}")
        if raw[4] != self.version:
            raise Unsupported(f"{self.name} version {raw[4]}; this emberlake reads {self.version}")
        try:
            decode = _decoder(cast("Any", self.kind))
            value: _T = decode(json.loads(raw[5:]))
        except (ValueError, TypeError, RecursionError) as error:
            raise InvalidInput(f"these bytes are not a {self.name}: {error}") from error
        return value


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
    """The function that reads a type from JSON, driven by the annotations of the fields."""
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
    if issubclass(kind, StrEnum):
        return lambda text: kind(_checked(str)(text))
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

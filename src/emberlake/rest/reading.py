"""Reads JSON of the other side: unknown keys are ignored, optional ones may be missing or null."""

import json
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

from emberlake.errors import EmberlakeError, InvalidInput, Unsupported

T = TypeVar("T")
_LARGEST: Final = 2**63  # integers of the protocol have 64 bits


class Fields:
    """The keys of a JSON object, each read as what it must be.

    Raises:
        InvalidInput: a key is missing or has another type. A server answers 400; for a client,
            the server has failed.
    """

    def __init__(self, value: object, what: str) -> None:
        if not isinstance(value, Mapping):
            raise InvalidInput(f"{what} is not a JSON object")
        self._values = value
        self._what = what

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def text(self, key: str) -> str:
        return self._required(key, self.optional_text(key))

    def optional_text(self, key: str) -> str | None:
        return self._checked(key, str)

    def integer(self, key: str) -> int:
        return self._required(key, self.optional_integer(key))

    def optional_integer(self, key: str) -> int | None:
        value = self._checked(key, int)
        if isinstance(value, bool):
            raise self._wrong(key)
        if value is not None and not -_LARGEST <= value < _LARGEST:
            raise InvalidInput(f"{self._what}: {key!r} has more than 64 bits")
        return value

    def flag(self, key: str) -> bool:
        """A truth value; false if it is missing."""
        return bool(self._checked(key, bool))

    def required_flag(self, key: str) -> bool:
        return self._required(key, self._checked(key, bool))

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts; empty if it is missing."""
        found = self._checked(key, list) or []
        if not all(isinstance(each, str) for each in found):
            raise self._wrong(key)
        return tuple(found)

    def text_map(self, key: str) -> dict[str, str]:
        """Texts by name, without nulls; empty if it is missing. Numbers become texts."""
        found: Mapping[str, Any] = self._checked(key, dict) or {}
        return {
            str(name): str(value).lower() if isinstance(value, bool) else str(value)
            for name, value in found.items()
            if value is not None
        }

    def objects(self, key: str) -> tuple[Any, ...]:
        """A list; empty if it is missing."""
        return tuple(self._checked(key, list) or ())

    def raw(self, key: str) -> Any:
        return self._values.get(key)

    def read(self, key: str, decode: Callable[[Any], T]) -> T:
        """What a function makes of a value."""
        return reading(f"{self._what}: {key}", decode, self._required(key, self.raw(key)))

    def read_all(self, key: str, decode: Callable[[Any], T]) -> tuple[T, ...]:
        """What a function makes of each value of a list."""
        what = f"{self._what}: {key}"
        return tuple(reading(what, decode, each) for each in self.objects(key))

    def _checked(self, key: str, kind: type[T]) -> T | None:
        value = self._values.get(key)
        if value is not None and not isinstance(value, kind):
            raise self._wrong(key)
        return value

    def _required(self, key: str, value: T | None) -> T:
        if value is None:
            raise InvalidInput(f"{self._what} lacks {key!r}")
        return value

    def _wrong(self, key: str) -> InvalidInput:
        found = type(self._values.get(key)).__name__
        return InvalidInput(f"{self._what}: {key!r} has a value of the wrong type ({found})")


def reading(what: str, decode: Callable[[Any], T], value: Any) -> T:
    """What a function makes of a value; whatever it cannot read is invalid input."""
    try:
        return decode(value)
    except (InvalidInput, Unsupported):
        raise
    except (
        EmberlakeError, ValueError, KeyError, TypeError, AttributeError, RecursionError
    ) as error:  # fmt: skip
        raise InvalidInput(f"{what} cannot be read: {error}") from error


def parse_json(data: bytes, what: str) -> Any:
    """The JSON value of a body, whatever its Content-Type says; None if it is empty."""
    if not data.strip():
        return None
    try:
        return json.loads(data, parse_constant=_refuse, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{what} is not JSON") from error


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse(text)


def _refuse(text: str) -> float:
    """Refuse NaN and infinity, which only Python accepts as JSON."""
    raise ValueError(f"{text} is not a number of JSON")


def encode_json(value: object) -> bytes:
    """The body of a request or an answer."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(f"a text has {error.object[error.start]!r}, not a character") from error


def present(pairs: Iterable[tuple[str, object]]) -> dict[str, Any]:
    """A JSON object of the keys that have a value."""
    return {key: value for key, value in pairs if value is not None}

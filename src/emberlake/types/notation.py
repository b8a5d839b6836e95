"""The text form of atomic types in schema files. Spec: "Type notation"."""

import re
from enum import StrEnum
from typing import Final

from emberlake.base.names import did_you_mean
from emberlake.errors import InvalidSchema

MAX_LENGTH: Final = 2_147_483_647
MAX_DECIMAL_PRECISION: Final = 38
# Decimals and timestamps up to these precisions fit the 8 bytes of a row slot.
COMPACT_DECIMAL_PRECISION: Final = 18
COMPACT_TIMESTAMP_PRECISION: Final = 3


class TypeRoot(StrEnum):
    """The names of atomic types as schema files spell them."""

    BOOLEAN = "BOOLEAN"
    TINYINT = "TINYINT"
    SMALLINT = "SMALLINT"
    INT = "INT"
    BIGINT = "BIGINT"
    FLOAT = "FLOAT"
    DOUBLE = "DOUBLE"
    DECIMAL = "DECIMAL"
    CHAR = "CHAR"
    VARCHAR = "VARCHAR"
    BINARY = "BINARY"
    VARBINARY = "VARBINARY"
    DATE = "DATE"
    TIME = "TIME"
    TIMESTAMP = "TIMESTAMP"
    TIMESTAMP_LTZ = "TIMESTAMP_LTZ"
    VARIANT = "VARIANT"
    BLOB = "BLOB"
    GEOMETRY = "GEOMETRY"
    GEOGRAPHY = "GEOGRAPHY"

    @property
    def is_integer(self) -> bool:
        return self in INTEGER_BITS

    @property
    def is_number(self) -> bool:
        return self in _NUMBERS

    @property
    def is_text(self) -> bool:
        return self in (TypeRoot.CHAR, TypeRoot.VARCHAR)

    @property
    def is_bytes(self) -> bool:
        return self in (TypeRoot.BINARY, TypeRoot.VARBINARY)

    @property
    def is_timestamp(self) -> bool:
        return self in (TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ)

    @property
    def is_opaque(self) -> bool:
        """Whether values have no order and so can be neither keys nor bounds."""
        return self in _OPAQUE


INTEGER_BITS: Final = {
    TypeRoot.TINYINT: 8,
    TypeRoot.SMALLINT: 16,
    TypeRoot.INT: 32,
    TypeRoot.BIGINT: 64,
}
_NUMBERS: Final = frozenset({*INTEGER_BITS, TypeRoot.FLOAT, TypeRoot.DOUBLE, TypeRoot.DECIMAL})
_OPAQUE: Final = frozenset({TypeRoot.VARIANT, TypeRoot.BLOB, TypeRoot.GEOMETRY, TypeRoot.GEOGRAPHY})


_ATOMIC: Final = re.compile(r"^([A-Z_]+(?: PRECISION)?)\s*(?:\((.*?)\))?\s*(.*?)$", re.IGNORECASE)
_ALIASES: Final = {
    "INTEGER": "INT",
    "DOUBLE PRECISION": "DOUBLE",
    "NUMERIC": "DECIMAL",
    "DEC": "DECIMAL",
}
_UNBOUNDED: Final = {"STRING": TypeRoot.VARCHAR, "BYTES": TypeRoot.VARBINARY}
_ZONES: Final = {
    "": TypeRoot.TIMESTAMP,
    "WITHOUT TIME ZONE": TypeRoot.TIMESTAMP,
    "WITH LOCAL TIME ZONE": TypeRoot.TIMESTAMP_LTZ,
}
_ROW: Final = (
    "RowType(True, [DataField(0, 'x', AtomicType('INT'))]), in JSON as "
    """{"type": "ROW", "fields": [{"name": "x", "type": "INT"}]}"""
)
_NESTED: Final = {
    "ARRAY": (
        "ArrayType(True, AtomicType('INT')), in JSON as "
        """{"type": "ARRAY", "element": "INT"}"""
    ),
    "MAP": (
        "MapType(True, AtomicType('STRING'), AtomicType('INT')), in JSON as "
        """{"type": "MAP", "key": "STRING", "value": "INT"}"""
    ),
    "ROW": _ROW,
    "STRUCT": _ROW,
}


def parse_atomic(text: str) -> dict[str, object]:
    """Parse the text of a type into its root, its nullability and its parameters."""
    words = " ".join(text.split())
    nullable = True
    upper = words.upper()
    if upper.endswith(" NOT NULL"):
        words, nullable = words[: -len(" NOT NULL")], False
    elif upper.endswith(" NULL"):
        words = words[: -len(" NULL")]
    match = _ATOMIC.match(words)
    if match is None:
        raise InvalidSchema(f"{text!r} is not a type")
    name, arguments, rest = match.group(1).upper(), match.group(2), match.group(3).upper()
    if name in _NESTED:
        raise InvalidSchema(f"{text!r}: nested types are not given as text, but as {_NESTED[name]}")
    root, numbers, detail = _parse_root(text, name, arguments, rest)
    return {"root": root, "nullable": nullable, "detail": detail, **numbers}


def _parse_root(
    text: str, name: str, arguments: str | None, rest: str
) -> tuple[TypeRoot, dict[str, int], str]:
    name = _ALIASES.get(name, name)
    if name in ("GEOMETRY", "GEOGRAPHY") and not rest:
        return TypeRoot(name), {"length": 0, "precision": 0, "scale": 0}, arguments or ""
    numbers = _parse_numbers(text, arguments)
    if name in _UNBOUNDED and arguments is None and not rest:
        return _UNBOUNDED[name], _numbers(length=MAX_LENGTH), ""
    if name == "TIMESTAMP" and rest in _ZONES:
        return _ZONES[rest], _precision(text, numbers, default=6), ""
    if name == "TIME" and rest in ("", "WITHOUT TIME ZONE"):
        return TypeRoot.TIME, _precision(text, numbers, default=0), ""
    if rest or name not in TypeRoot.__members__:
        known = [*TypeRoot.__members__, *_UNBOUNDED, *_ALIASES]
        near = "" if name in known else did_you_mean([name], known, before="; ")
        raise InvalidSchema(f"{text!r} is not a type{near}")
    root = TypeRoot(name)
    if root is TypeRoot.TIMESTAMP_LTZ:
        return root, _precision(text, numbers, default=6), ""
    if root is TypeRoot.DECIMAL:
        return root, _decimal(text, numbers), ""
    if root.is_text or root.is_bytes:
        return root, _length(text, numbers), ""
    if numbers:
        raise InvalidSchema(f"{text!r}: {root} takes no parameters")
    return root, _numbers(), ""


def _parse_numbers(text: str, arguments: str | None) -> list[int]:
    if arguments is None:
        return []
    try:
        return [int(part) for part in arguments.split(",")]
    except ValueError as error:
        raise InvalidSchema(f"{text!r} is not a type: its parameters are not numbers") from error


def _numbers(*, length: int = 0, precision: int = 0, scale: int = 0) -> dict[str, int]:
    return {"length": length, "precision": precision, "scale": scale}


def _precision(text: str, numbers: list[int], *, default: int) -> dict[str, int]:
    precision = numbers[0] if numbers else default
    if len(numbers) > 1 or not 0 <= precision <= 9:
        raise InvalidSchema(f"{text!r}: the precision must be a number from 0 to 9")
    return _numbers(precision=precision)


def _length(text: str, numbers: list[int]) -> dict[str, int]:
    length = numbers[0] if numbers else 1
    if len(numbers) > 1 or not 1 <= length <= MAX_LENGTH:
        raise InvalidSchema(f"{text!r}: the length must be a number from 1 to {MAX_LENGTH}")
    return _numbers(length=length)


def _decimal(text: str, numbers: list[int]) -> dict[str, int]:
    precision, scale = (*numbers, 0)[:2] if numbers else (10, 0)
    if len(numbers) > 2 or not (
        1 <= precision <= MAX_DECIMAL_PRECISION and 0 <= scale <= precision
    ):
        raise InvalidSchema(
            f"{text!r}: a decimal has a precision from 1 to {MAX_DECIMAL_PRECISION} "
            "and a scale from 0 to its precision"
        )
    return _numbers(precision=precision, scale=scale)

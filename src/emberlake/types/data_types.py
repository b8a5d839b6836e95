"""The closed family of column types.

An atomic type is its *root* (``INT``, ``DECIMAL``, ...) with the length, precision and scale that
the root has. ``AtomicType("DECIMAL(10, 2) NOT NULL")`` parses the text form of schema files.
Spec: "Type notation".
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, Self

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
        """Whether values have no order, so that they can be neither keys nor bounds."""
        return self in _OPAQUE


INTEGER_BITS: Final = {
    TypeRoot.TINYINT: 8,
    TypeRoot.SMALLINT: 16,
    TypeRoot.INT: 32,
    TypeRoot.BIGINT: 64,
}
_OPAQUE: Final = frozenset({TypeRoot.VARIANT, TypeRoot.BLOB, TypeRoot.GEOMETRY, TypeRoot.GEOGRAPHY})


class DataType:
    """A column type; ``nullable`` is part of it."""

    __slots__ = ()
    nullable: bool

    def with_nullable(self, nullable: bool) -> Self:  # noqa: FBT001
        """The same type with the given nullability."""
        return replace(self, nullable=nullable)  # type: ignore[type-var]

    @property
    def is_nested(self) -> bool:
        return not isinstance(self, AtomicType)


@dataclass(frozen=True, init=False, repr=False)
class AtomicType(DataType):
    """A type without children, made from its text: ``AtomicType("VARCHAR(10)")``."""

    root: TypeRoot
    nullable: bool = True
    length: int = 0  # CHAR, VARCHAR, BINARY, VARBINARY
    precision: int = 0  # DECIMAL, TIME, TIMESTAMP, TIMESTAMP_LTZ
    scale: int = 0  # DECIMAL
    detail: str = ""  # what GEOMETRY and GEOGRAPHY carry in parentheses

    def __init__(self, type: str, nullable: bool = True) -> None:  # noqa: A002, FBT001, FBT002
        parsed = _parse_atomic(type)
        for name, value in parsed.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "nullable", nullable and bool(parsed["nullable"]))

    def with_nullable(self, nullable: bool) -> "AtomicType":  # noqa: FBT001
        return AtomicType(self.type, nullable)

    @property
    def type(self) -> str:
        """The text form without nullability."""
        return _format_atomic(self)

    @property
    def is_compact(self) -> bool:
        """Whether a value of this decimal or timestamp fits a row slot."""
        if self.root is TypeRoot.DECIMAL:
            return self.precision <= COMPACT_DECIMAL_PRECISION
        return self.precision <= COMPACT_TIMESTAMP_PRECISION

    def __str__(self) -> str:
        return self.type if self.nullable else f"{self.type} NOT NULL"

    def __repr__(self) -> str:
        return f"AtomicType({str(self)!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return AtomicType, (self.type, self.nullable)


@dataclass(frozen=True)
class ArrayType(DataType):
    """``ARRAY<element>``."""

    nullable: bool
    element: DataType

    def __str__(self) -> str:
        return _with_null(f"ARRAY<{self.element}>", self)


@dataclass(frozen=True)
class VectorType(DataType):
    """``VECTOR<element, length>``: a list of fixed length."""

    nullable: bool
    element: DataType
    length: int

    def __str__(self) -> str:
        return _with_null(f"VECTOR<{self.element}, {self.length}>", self)


@dataclass(frozen=True)
class MultisetType(DataType):
    """``MULTISET<element>``: stored as a map from element to its count."""

    nullable: bool
    element: DataType

    def __str__(self) -> str:
        return _with_null(f"MULTISET<{self.element}>", self)


@dataclass(frozen=True)
class MapType(DataType):
    """``MAP<key, value>``."""

    nullable: bool
    key: DataType
    value: DataType

    def __str__(self) -> str:
        return _with_null(f"MAP<{self.key}, {self.value}>", self)


@dataclass(frozen=True)
class RowType(DataType):
    """``ROW<...>``: named fields with ids."""

    nullable: bool
    fields: tuple["DataField", ...] = field(default=())

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", tuple(self.fields))

    def field(self, name: str) -> "DataField | None":
        """The field of that name, or None."""
        return next((f for f in self.fields if f.name == name), None)

    def __str__(self) -> str:
        inner = ", ".join(f"{f.name} {f.type}" for f in self.fields)
        return _with_null(f"ROW<{inner}>", self)


@dataclass(frozen=True)
class DataField:
    """A column of a table or a field of a ROW; the id never changes, the name may."""

    id: int
    name: str
    type: DataType
    description: str | None = None
    default_value: str | None = None

    def __str__(self) -> str:
        return f"{self.name} {self.type}"


def nested_types(data_type: DataType) -> Iterator[DataType]:
    """A type and all types inside it, outermost first."""
    yield data_type
    match data_type:
        case RowType(fields=fields):
            for inner in fields:
                yield from nested_types(inner.type)
        case ArrayType(element=element) | MultisetType(element=element):
            yield from nested_types(element)
        case VectorType(element=element):
            yield from nested_types(element)
        case MapType(key=key, value=value):
            yield from nested_types(key)
            yield from nested_types(value)
        case _:
            return


def _with_null(text: str, data_type: DataType) -> str:
    return text if data_type.nullable else f"{text} NOT NULL"


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


def _parse_atomic(text: str) -> dict[str, object]:
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
        raise InvalidSchema(f"{text!r} is not a type")
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


def _format_atomic(t: AtomicType) -> str:
    match t.root:
        case TypeRoot.VARCHAR if t.length == MAX_LENGTH:
            return "STRING"
        case TypeRoot.VARBINARY if t.length == MAX_LENGTH:
            return "BYTES"
        case TypeRoot.CHAR | TypeRoot.VARCHAR | TypeRoot.BINARY | TypeRoot.VARBINARY:
            return f"{t.root}({t.length})"
        case TypeRoot.DECIMAL:
            return f"DECIMAL({t.precision}, {t.scale})"
        case TypeRoot.TIME | TypeRoot.TIMESTAMP:
            return f"{t.root}({t.precision})"
        case TypeRoot.TIMESTAMP_LTZ:
            return f"TIMESTAMP({t.precision}) WITH LOCAL TIME ZONE"
        case TypeRoot.GEOMETRY | TypeRoot.GEOGRAPHY if t.detail:
            return f"{t.root}({t.detail})"
        case _:
            return t.root.value

"""The closed family of column types.

An atomic type is its *root* (``INT``, ``DECIMAL``, ...) with the length, precision and scale that
the root has. ``AtomicType("DECIMAL(10, 2) NOT NULL")`` parses the text form of schema files.
Spec: "Type notation".
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self, TypeAlias

from emberlake.errors import ColumnNotFound, InvalidSchema
from emberlake.types.notation import (
    COMPACT_DECIMAL_PRECISION,
    COMPACT_TIMESTAMP_PRECISION,
    INTEGER_BITS,
    MAX_DECIMAL_PRECISION,
    MAX_LENGTH,
    TypeRoot,
    parse_atomic,
)

__all__ = [
    "COMPACT_DECIMAL_PRECISION",
    "INTEGER_BITS",
    "MAX_DECIMAL_PRECISION",
    "MAX_LENGTH",
    "ArrayType",
    "AtomicType",
    "DataField",
    "DataType",
    "MapType",
    "MultisetType",
    "RowType",
    "TypeRoot",
    "VectorType",
    "nested_types",
]

Json: TypeAlias = Any  # what json.loads returns


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

    def to_dict(self) -> Json:
        """The JSON value of the type in schema files: a string, or an object if it is nested."""
        return _type_to_dict(self)

    @classmethod
    def from_dict(cls, data: Json) -> Self:
        """The type of a JSON value in a schema file.

        Raises:
            InvalidSchema: the value is not a type, or a type of another class.
        """
        found = _type_from_dict(data)
        if not isinstance(found, cls):
            raise InvalidSchema(f"{data!r} is not a type of class {cls.__name__}")
        return found


@dataclass(frozen=True, init=False, repr=False)
class AtomicType(DataType):
    """A type without children, made from its text: ``AtomicType("VARCHAR(10)")``."""

    root: TypeRoot
    nullable: bool = True
    length: int = 0  # CHAR, VARCHAR, BINARY, VARBINARY
    precision: int = 0  # DECIMAL, TIME, TIMESTAMP, TIMESTAMP_LTZ
    scale: int = 0  # DECIMAL
    detail: str = ""  # the text in parentheses of GEOMETRY and GEOGRAPHY

    def __init__(self, type: str, nullable: bool = True) -> None:  # noqa: A002, FBT001, FBT002
        parsed = parse_atomic(type)
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

    def get_field_index(self, field_name: str) -> int:
        """The position of the field of that name.

        Raises:
            ColumnNotFound: there is none.
        """
        for position, inner in enumerate(self.fields):
            if inner.name == field_name:
                return position
        raise ColumnNotFound(f"there is no field {field_name!r} in {self}")

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

    def to_dict(self) -> dict[str, Json]:
        """The JSON object of the field in schema files; keys without a value are left out."""
        out: dict[str, Json] = {"id": self.id, "name": self.name, "type": self.type.to_dict()}
        if self.description is not None:
            out["description"] = self.description
        if self.default_value is not None:
            out["defaultValue"] = self.default_value
        return out

    @staticmethod
    def from_dict(data: Json) -> "DataField":
        """The field of a JSON object in a schema file.

        Raises:
            InvalidSchema: the object is not a field.
        """
        try:
            return DataField(
                int(data["id"]),
                data["name"],
                _type_from_dict(data["type"]),
                data.get("description"),
                data.get("defaultValue"),
            )
        except (KeyError, TypeError) as error:
            raise InvalidSchema(f"{data!r} is not a field: {error!r}") from error

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


# --- the JSON form in schema files ----------------------------------------------------------------

_VECTOR: Final = re.compile(r"^VECTOR\s*<\s*(.+?)\s*,\s*(\d+)\s*>\s*(NOT NULL)?$", re.IGNORECASE)


def _type_to_dict(data_type: DataType) -> Json:
    """The JSON value of a type."""
    match data_type:
        case AtomicType():
            return str(data_type)
        case ArrayType(element=element):
            return {"type": _keyword("ARRAY", data_type), "element": _type_to_dict(element)}
        case MultisetType(element=element):
            return {"type": _keyword("MULTISET", data_type), "element": _type_to_dict(element)}
        case VectorType(element=element, length=length):
            return {
                "type": _keyword("VECTOR", data_type),
                "element": _type_to_dict(element),
                "length": length,
            }
        case MapType(key=key, value=value):
            return {
                "type": _keyword("MAP", data_type),
                "key": _type_to_dict(key),
                "value": _type_to_dict(value),
            }
        case RowType(fields=fields):
            return {"type": _keyword("ROW", data_type), "fields": [f.to_dict() for f in fields]}
        case _:
            raise InvalidSchema(f"{data_type!r} is not a type")


def _type_from_dict(value: Json) -> DataType:
    """The type of a JSON value, in any of the spellings that engines write."""
    if isinstance(value, str):
        vector = _VECTOR.match(value.strip())
        if vector:
            element = AtomicType(vector.group(1))
            return VectorType(vector.group(3) is None, element, int(vector.group(2)))
        return AtomicType(value)
    if not isinstance(value, Mapping) or not isinstance(value.get("type"), str):
        raise InvalidSchema(f"{value!r} is not a type")
    word, _, null = value["type"].upper().strip().partition(" ")
    nullable = null.strip() != "NOT NULL"
    try:
        match word:
            case "ARRAY":
                return ArrayType(nullable, _type_from_dict(value["element"]))
            case "MULTISET":
                return MultisetType(nullable, _type_from_dict(value["element"]))
            case "VECTOR":
                return VectorType(nullable, _type_from_dict(value["element"]), int(value["length"]))
            case "MAP":
                return MapType(
                    nullable, _type_from_dict(value["key"]), _type_from_dict(value["value"])
                )
            case "ROW":
                return RowType(nullable, tuple(DataField.from_dict(f) for f in value["fields"]))
            case _:
                raise InvalidSchema(f"{value['type']!r} is not a type")
    except KeyError as missing:
        raise InvalidSchema(f"the type {word} lacks {missing}") from missing


def _keyword(name: str, data_type: DataType) -> str:
    return name if data_type.nullable else f"{name} NOT NULL"

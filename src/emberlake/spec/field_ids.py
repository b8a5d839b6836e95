"""Ids of columns: a column keeps its id even if it is renamed. Spec: "Schema files"."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from emberlake.spec.system_columns import SYSTEM_FIELD_ID_START
from emberlake.types import (
    ArrayType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    nested_types,
)


def assign_field_ids(fields: Iterable[DataField], *, next_id: int) -> tuple[DataField, ...]:
    """The same columns with ids from ``next_id`` on, in the order in which Paimon numbers them."""
    ids = iter(range(next_id, 2**31))
    return tuple(replace(f, id=next(ids), type=_number(f.type, ids)) for f in fields)


def highest_field_id(fields: Iterable[DataField]) -> int:
    """The largest id among fields and their nested fields; -1 for none; system ids do not count."""
    ids = (f.id for top in fields for f in _with_nested(top))
    return max((id_ for id_ in ids if id_ < SYSTEM_FIELD_ID_START), default=-1)


def _with_nested(top: DataField) -> Iterator[DataField]:
    yield top
    for inner in nested_types(top.type):
        if isinstance(inner, RowType):
            yield from inner.fields


def _number(data_type: DataType, ids: Iterator[int]) -> DataType:
    match data_type:
        case RowType(nullable=nullable, fields=fields):
            numbered = []
            for field in fields:
                inner = _number(field.type, ids)  # nested fields are numbered first
                numbered.append(replace(field, id=next(ids), type=inner))
            return RowType(nullable, tuple(numbered))
        case ArrayType(nullable=nullable, element=element):
            return ArrayType(nullable, _number(element, ids))
        case MultisetType(nullable=nullable, element=element):
            return MultisetType(nullable, _number(element, ids))
        case MapType(nullable=nullable, key=key, value=value):
            return MapType(nullable, _number(key, ids), _number(value, ids))
        case _:
            return data_type

"""Serialized rows with their hashes and buckets, as the Java implementation makes them."""

import json
from typing import Any, NamedTuple

import pytest

from emberlake.types import AtomicType
from format_vectors import Vector, types_of, values_of, vectors_of


class RowVector(NamedTuple):
    types: tuple[AtomicType, ...]
    values: tuple[Any, ...]
    raw: str
    hash: int
    buckets: tuple[int, int, int]  # of 2, 4 and 10


def _row_vector(vector: Vector) -> RowVector:
    types = types_of(vector["types"])
    values = values_of(types, vector["values"])
    buckets = tuple(json.loads(vector["buckets"]))
    return RowVector(types, values, vector["bytes"], int(vector["hash"]), buckets)


ROW_VECTORS = [
    pytest.param(_row_vector(vector), id=f"{vector['types']}: {vector['values']}")
    for vector in vectors_of("binary-row")
]

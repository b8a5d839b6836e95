"""Unions of serialized bitmaps of 32-bit integers: ``rbm32``. Spec: "Merge engines"."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from emberlake.errors import DataMismatch
from emberlake.merge.aggregates.steps import COMES_IN, Steps, pick, valid_of
from emberlake.types import DataField


def union_bitmaps(field: DataField, column: pa.Array, steps: Steps) -> pa.Array:
    """The union of the bitmaps; a single one stays as it is."""
    is_operand = valid_of(column) & steps.are(*COMES_IN)
    counts = steps.counts(is_operand)
    several = np.flatnonzero(counts > 1)
    single = pick(column, steps.last(is_operand))
    ends = np.cumsum(counts)
    at = np.flatnonzero(is_operand)
    unions: list[bytes] = []
    # Bitmaps are opaque bytes to Arrow, so their own library makes each union.
    for end, count in zip(ends[several].tolist(), counts[several].tolist(), strict=True):
        parts = column.take(pa.array(at[end - count : end])).to_pylist()
        unions.append(_union(field, parts))
    return pc.replace_with_mask(single, pa.array(counts > 1), pa.array(unions, column.type))


def _union(field: DataField, parts: list[bytes]) -> bytes:
    try:
        united = BitMap.union(*(BitMap.deserialize(part) for part in parts))
    except ValueError as error:
        raise DataMismatch(f"column {field.name} holds bytes that are not a bitmap") from error
    united.run_optimize()
    return bytes(united.serialize())

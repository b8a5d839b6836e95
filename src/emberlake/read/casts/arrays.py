"""Helpers of the kernels: nulls around NumPy, and loops over distinct values."""

from collections.abc import Callable
from typing import cast

import numpy as np
import pyarrow as pa

from emberlake.types import AtomicType, DataType


def as_atomic(data_type: DataType) -> AtomicType:
    """A type that must be atomic, because of the family of its kernel."""
    return cast("AtomicType", data_type)


def to_numpy(array: pa.Array) -> np.ndarray:
    """Values with zeros in place of nulls; ``from_numpy`` puts the nulls back."""
    filled = array.fill_null(pa.scalar(0, array.type)) if array.null_count else array
    return np.asarray(filled.to_numpy(zero_copy_only=False))


def from_numpy(values: np.ndarray, like: pa.Array, arrow: pa.DataType) -> pa.Array:
    """Values as an array, with the nulls of another array."""
    mask = like.is_null().to_numpy(zero_copy_only=False) if like.null_count else None
    return pa.array(values, arrow, mask=mask)


def map_distinct(
    array: pa.Array, convert: Callable[[object], object], arrow: pa.DataType
) -> pa.Array:
    """Convert every value; no Arrow kernel does it, so Python loops over the distinct ones."""
    encoded = array.dictionary_encode()
    values = [None if value is None else convert(value) for value in encoded.dictionary.to_pylist()]
    return pa.array(values, arrow).take(encoded.indices)

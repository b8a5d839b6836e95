"""Convert NumPy numbers and Python values to Arrow arrays and back, through the buffers.

``pa.array`` and ``to_numpy`` do this too, but they import pandas first where it is installed. That
import takes several times as long as planning a read of ten thousand files.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Nulls = npt.NDArray[np.bool_] | None

# Polars hands out views. Arrow neither takes nor filters them.
_PLAIN_OF_VIEW: Final = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}


def numbers_array(numbers: npt.NDArray[np.integer[Any]], *, is_null: Nulls = None) -> pa.Array:
    """The numbers as an array, null where the mask is true; nothing is copied."""
    values = np.ascontiguousarray(numbers)
    buffers = [_validity(is_null), pa.py_buffer(values)]
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), buffers)


def array_numbers(array: pa.Array) -> npt.NDArray[Any]:
    """The whole numbers of an array without nulls; nothing is copied."""
    dtype = np.dtype(array.type.to_pandas_dtype())
    if not len(array):
        return np.empty(0, dtype)
    start = array.offset * dtype.itemsize
    return np.frombuffer(array.buffers()[1], dtype, len(array), start)


def used_values(array: pa.DictionaryArray) -> pa.Array:
    """The distinct values that a dictionary array uses, without null."""
    places = array.indices.drop_null() if array.null_count else array.indices
    counts = np.bincount(array_numbers(places), minlength=len(array.dictionary))
    return array.dictionary.take(numbers_array(np.flatnonzero(counts)))


def decoded(array: pa.DictionaryArray) -> pa.Array:
    """The values of a dictionary array; views become plain."""
    plain = _PLAIN_OF_VIEW.get(array.type.value_type)
    if plain is not None:
        array = pa.DictionaryArray.from_arrays(array.indices, array.dictionary.cast(plain))
    return array.dictionary_decode()


def without_views(table: pa.Table) -> pa.Table:
    """The table with plain text and bytes where it has views, in dictionaries too."""
    for index, column in enumerate(table.columns):
        is_encoded = pa.types.is_dictionary(column.type)
        plain = _PLAIN_OF_VIEW.get(column.type.value_type if is_encoded else column.type)
        if plain is None:
            continue
        chunks = [decoded(chunk) if is_encoded else chunk.cast(plain) for chunk in column.chunks]
        table = table.set_column(index, table.column_names[index], pa.chunked_array(chunks, plain))
    return table


def values_array(values: Sequence[Any], data_type: pa.DataType) -> pa.Array:
    """An array of whole numbers, bytes, strings, or lists of these; None is null.

    Raises:
        TypeError, ValueError, OverflowError: a value does not have the type.
    """
    is_null: Nulls = None
    if None in values:
        is_null = np.fromiter((value is None for value in values), bool, len(values))
    if pa.types.is_integer(data_type):
        plain = values if is_null is None else [0 if v is None else v for v in values]
        if not all(isinstance(value, int) for value in plain):
            raise TypeError("a value is not a whole number")
        numbers = np.fromiter(plain, data_type.to_pandas_dtype(), len(values))
        return numbers_array(numbers, is_null=is_null)
    if pa.types.is_large_list(data_type):
        inner = [item for value in values if value is not None for item in value]
        items = values_array(inner, data_type.value_type)
        buffers = [_validity(is_null), _offsets(values)]
        return pa.Array.from_buffers(data_type, len(values), buffers, children=[items])
    if pa.types.is_large_string(data_type):
        values = [None if value is None else value.encode() for value in values]
    elif not pa.types.is_large_binary(data_type):
        return pa.array(values, data_type)
    data = b"".join(value for value in values if value is not None)
    buffers = [_validity(is_null), _offsets(values), pa.py_buffer(data)]
    return pa.Array.from_buffers(data_type, len(values), buffers)


def _validity(is_null: Nulls) -> pa.Buffer | None:
    return None if is_null is None else pa.py_buffer(np.packbits(~is_null, bitorder="little"))


def _offsets(values: Sequence[Any]) -> pa.Buffer:
    offsets = np.zeros(len(values) + 1, np.int64)
    lengths = (0 if value is None else len(value) for value in values)
    np.cumsum(np.fromiter(lengths, np.int64, len(values)), out=offsets[1:])
    return pa.py_buffer(offsets)

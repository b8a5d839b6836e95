"""The buffers of Arrow arrays as NumPy arrays, without copies where possible."""

from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from emberlake.base.hashing import U32
from emberlake.types import TypeRoot

I8: TypeAlias = npt.NDArray[np.int8]
U8: TypeAlias = npt.NDArray[np.uint8]
U64: TypeAlias = npt.NDArray[np.uint64]
I64: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]

# Types whose slot in a row begins with the value as Arrow stores it.
RAW_WORDS: Final = {
    TypeRoot.TINYINT: np.uint8,
    TypeRoot.SMALLINT: np.uint16,
    TypeRoot.INT: np.uint32,
    TypeRoot.DATE: np.uint32,
    TypeRoot.TIME: np.uint32,
}
MILLIS_PER_UNIT: Final = {"s": 1000, "ms": 1}
UNITS_PER_MILLI: Final = {"us": 1000, "ns": 1_000_000}


def bytes_of(array: pa.Array) -> tuple[I64, U8]:
    """Offsets relative to the first value, and the bytes of all values followed by eight more."""
    offset_type = np.int64 if pa.types.is_large_binary(array.type) else np.int32
    _, offset_buffer, data_buffer = array.buffers()
    if not len(array):
        return np.zeros(1, dtype=np.int64), np.zeros(8, dtype=np.uint8)
    offsets = np.frombuffer(offset_buffer, dtype=offset_type)
    offsets = offsets[array.offset : array.offset + len(array) + 1].astype(np.int64)
    first, size = offsets[0], offsets[-1] - offsets[0]
    data = np.zeros(size + 8, dtype=np.uint8)
    if size:
        data[:size] = np.frombuffer(data_buffer, dtype=np.uint8)[first : first + size]
    return offsets - first, data


def nulls_of(array: pa.Array) -> Mask | None:
    """A mask of the nulls of an array; None if there are none."""
    if not array.null_count:
        return None
    nulls: Mask = array.is_null().to_numpy(zero_copy_only=False)
    return nulls


def raw_values(array: pa.Array, dtype: npt.DTypeLike, *, per_value: int = 1) -> npt.NDArray[Any]:
    """The values in the array's buffer; those of nulls are arbitrary."""
    values = np.frombuffer(array.buffers()[1], dtype=dtype)
    return values[per_value * array.offset : per_value * (array.offset + len(array))]


def zeroed(values: npt.NDArray[Any], nulls: Mask | None) -> npt.NDArray[Any]:
    """The values with zero in place of nulls."""
    return values if nulls is None else np.where(nulls, values.dtype.type(0), values)


def halves_of(words: U64) -> tuple[U32, U32]:
    """The low and the high 32 bits of words."""
    halves = words.view(np.uint32)
    return halves[0::2], halves[1::2]


def unaligned_words(data: U8) -> U64:
    """Eight bytes from every position of the data, without a copy."""
    return np.ndarray(shape=(len(data) - 7,), dtype="<u8", buffer=data, strides=(1,))

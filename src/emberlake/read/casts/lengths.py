"""Cut and pad text and bytes to the length of their type."""

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from emberlake.read.casts.arrays import as_atomic
from emberlake.read.casts.families import Family, KernelTable
from emberlake.types import DataType, TypeRoot
from emberlake.types.data_types import MAX_LENGTH


def _text_to_text(array: pa.Array, _source: DataType, target: DataType) -> pa.Array:
    return fit_text(array, target)


def _text_to_bytes(array: pa.Array, _source: DataType, target: DataType) -> pa.Array:
    return _fit_bytes(pc.cast(array, pa.binary()), target)


def _bytes_to_text(array: pa.Array, _source: DataType, _target: DataType) -> pa.Array:
    return pc.cast(array, pa.string())


def _bytes_to_bytes(array: pa.Array, _source: DataType, target: DataType) -> pa.Array:
    return _fit_bytes(array, target)


def fit_text(texts: pa.Array, target: DataType) -> pa.Array:
    """Text cut to the length of its type; CHAR is padded to it."""
    t = as_atomic(target)
    if t.length < MAX_LENGTH:
        texts = pc.utf8_slice_codeunits(texts, 0, t.length)
    return pc.utf8_rpad(texts, t.length, " ") if t.root is TypeRoot.CHAR else texts


def _fit_bytes(values: pa.Array, target: DataType) -> pa.Array:
    """Bytes cut to the length of their type; BINARY is padded with zeros to it."""
    t = as_atomic(target)
    if t.root is TypeRoot.BINARY:
        shortest = pc.min(pc.binary_length(values)).as_py()
        missing = max(0, t.length - (t.length if shortest is None else shortest))
        if missing:
            zeros = pa.scalar(bytes(missing), pa.binary())
            values = pc.binary_join_element_wise(values, zeros, pa.scalar(b"", pa.binary()))
    return values if t.length == MAX_LENGTH else pc.binary_slice(values, 0, t.length)


KERNELS: Final[KernelTable] = {
    (Family.BYTES, Family.TEXT): _bytes_to_text,
    (Family.BYTES, Family.BYTES): _bytes_to_bytes,
    (Family.TEXT, Family.TEXT): _text_to_text,
    (Family.TEXT, Family.BYTES): _text_to_bytes,
}

"""Deletion vectors: which rows of a data file are deleted. Spec: "Deletion vectors".

An index file is a version byte and then one blob after another::

    4 bytes   size of magic and bitmap, big-endian
    4 bytes   magic: 32-bit vectors 1581511376 big-endian, 64-bit vectors 1681511377 little-endian
    ...       32-bit: a portable Roaring bitmap
              64-bit: number of bitmaps (8 bytes, little-endian), then the bitmaps, each after the
              high half of its positions (4 bytes, little-endian)
    4 bytes   CRC-32 of magic and bitmap, big-endian

The index manifest gives the position of the size field; its length is that of magic and bitmap
for 32-bit vectors, and of the whole blob for 64-bit ones.
"""

import struct
import zlib
from array import array
from collections.abc import Mapping
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap, BitMap64

from emberlake.errors import InvalidInput
from emberlake.spec.manifest import DeletionVectorRange

DeletionVector: TypeAlias = BitMap | BitMap64

INDEX_FILE_VERSION: Final = b"\x01"
_MAGIC_32: Final = struct.pack(">i", 1_581_511_376)
_MAGIC_64: Final = struct.pack("<i", 1_681_511_377)
_SIZE: Final = struct.Struct(">i")
_CRC: Final = struct.Struct(">I")
_COUNT: Final = struct.Struct("<q")
_KEY: Final = struct.Struct("<i")
_FRAME_BYTES: Final = _SIZE.size + _CRC.size
_MAX_POSITION_32: Final = 2**31 - 1


class CorruptDeletionVector(ValueError):
    """Bytes that are not a deletion vector."""


def deletion_vector_extent(vector: DeletionVectorRange) -> tuple[int, int]:
    """Offset and number of bytes to read for ``decode_deletion_vector``.

    Only the bytes show which kind a vector is, so this covers the longer form. There may be fewer
    bytes at the end of the file, and bytes of other vectors after the shorter form.
    """
    return vector.offset, vector.length + _FRAME_BYTES


def decode_deletion_vector(blob: bytes, length: int | None = None) -> DeletionVector:
    """The vector at the start of the bytes; ``length`` is its length in the index manifest."""
    if len(blob) < _FRAME_BYTES + 4:
        raise CorruptDeletionVector(f"{len(blob)} bytes are not a deletion vector")
    (size,) = _SIZE.unpack_from(blob)
    end = _SIZE.size + size
    if size < 4 or end + _CRC.size > len(blob):
        raise CorruptDeletionVector(f"a vector of {size} bytes does not fit {len(blob)} bytes")
    magic, body = blob[4:8], blob[4:end]
    if magic not in (_MAGIC_32, _MAGIC_64):
        raise CorruptDeletionVector(f"{magic.hex()} is not the magic number of a deletion vector")
    expected = size if magic == _MAGIC_32 else size + _FRAME_BYTES
    if length is not None and length != expected:
        raise CorruptDeletionVector(f"its length is {expected}, the index says {length}")
    if _CRC.unpack_from(blob, end)[0] != zlib.crc32(body):
        raise CorruptDeletionVector("its checksum is wrong")
    bitmap = body[4:]
    return _decode_32(bitmap) if magic == _MAGIC_32 else _decode_64(bitmap)


def encode_deletion_vector(vector: DeletionVector, *, bitmap64: bool) -> bytes:
    """The blob of one vector."""
    body = _encode_64(vector) if bitmap64 else _encode_32(vector)
    return _SIZE.pack(len(body)) + body + _CRC.pack(zlib.crc32(body))


def encode_deletion_vectors(
    vectors: Mapping[str, DeletionVector], *, bitmap64: bool
) -> tuple[bytes, tuple[DeletionVectorRange, ...]]:
    """A whole index file with the vectors of data files, and the range of each vector in it."""
    out = bytearray(INDEX_FILE_VERSION)
    ranges = []
    for name, vector in vectors.items():
        blob = encode_deletion_vector(vector, bitmap64=bitmap64)
        length = len(blob) if bitmap64 else len(blob) - _FRAME_BYTES
        ranges.append(DeletionVectorRange(name, len(out), length, len(vector)))
        out += blob
    return bytes(out), tuple(ranges)


def vector_of(positions: npt.NDArray[np.int64]) -> DeletionVector:
    """The vector of these positions."""
    if len(positions) and int(positions.max()) >= 2**32:
        return BitMap64(positions.tolist())
    return BitMap(array("I", positions.astype(np.uint32).tobytes()))  # read as a whole


def union_of(one: DeletionVector, other: DeletionVector) -> DeletionVector:
    """The rows that either vector marks."""
    if isinstance(one, BitMap) and isinstance(other, BitMap):
        return one | other
    return BitMap64(one) | BitMap64(other)


def shares_rows(one: DeletionVector, other: DeletionVector) -> bool:
    """Whether both vectors mark the same row."""
    if isinstance(one, BitMap) and isinstance(other, BitMap):
        return bool(one.intersect(other))
    return bool(BitMap64(one) & BitMap64(other))


def deleted_positions(vector: DeletionVector, start: int, count: int) -> npt.NDArray[np.int64]:
    """The deleted rows among ``count`` rows from ``start``, counted from ``start``, ascending."""
    if count <= 0 or not vector:
        return np.empty(0, dtype=np.int64)
    stop = start + count
    if vector.min() >= start and vector.max() < stop:
        inside = vector
    elif isinstance(vector, BitMap):
        inside = vector & BitMap(range(start, min(stop, 2**32)))
    else:
        inside = vector & BitMap64(range(start, stop))
    positions = np.array(inside.to_array(), dtype=np.int64)
    positions -= start
    return positions


def _decode_32(raw: bytes) -> BitMap:
    try:
        return BitMap.deserialize(raw)
    except ValueError as error:
        raise CorruptDeletionVector("its bitmap cannot be read") from error


def _decode_64(raw: bytes) -> BitMap64:
    try:
        return BitMap64.deserialize(raw)
    except ValueError as error:
        raise CorruptDeletionVector("its bitmap cannot be read") from error


def _encode_32(vector: DeletionVector) -> bytes:
    if vector and vector.max() > _MAX_POSITION_32:
        raise InvalidInput(
            f"position {vector.max()} does not fit a 32-bit deletion vector. "
            "Set deletion-vectors.bitmap64=true for data files of more than 2147483647 rows"
        )
    return _MAGIC_32 + _serialize(_part_of(vector, 0))


def _encode_64(vector: DeletionVector) -> bytes:
    # Keys run from 0 without gaps, as other engines write them.
    keys = range((vector.max() >> 32) + 1) if vector else range(0)
    out = bytearray(_MAGIC_64 + _COUNT.pack(len(keys)))
    for key in keys:
        out += _KEY.pack(key) + _serialize(_part_of(vector, key))
    return bytes(out)


def _part_of(vector: DeletionVector, key: int) -> BitMap:
    if isinstance(vector, BitMap):
        return vector
    inside = vector & BitMap64(range(key << 32, (key + 1) << 32))
    low = np.array(inside.to_array(), dtype=np.uint64).astype(np.uint32)
    return BitMap(array("I", low.tobytes()))  # an array is read as a whole


def _serialize(bitmap: BitMap) -> bytes:
    optimized = bitmap.copy()  # run_optimize works in place; keep the caller's as it is
    optimized.run_optimize()
    raw: bytes = optimized.serialize()
    return raw

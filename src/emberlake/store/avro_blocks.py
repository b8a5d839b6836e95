"""Avro object containers: blocks of encoded records, and the file around them.

Spec: "Common Avro rules". Layout of a container::

    "Obj" 0x01 | metadata: map of string to bytes | sync marker, 16 bytes
    per block:   record count | size in bytes | records, compressed | sync marker
"""

import hashlib
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import cramjam
import pyarrow as pa

from emberlake.errors import CorruptFile, InvalidInput, Unsupported

_MAGIC: Final = b"Obj\x01"
_SYNC_BYTES: Final = 16
_MAX_VARINT_BYTES: Final = 10


@dataclass(frozen=True, slots=True)
class Block:
    """Some records of a container."""

    count: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Container:
    """What a container file holds: the schema of its records, and the records, uncompressed."""

    schema: str
    blocks: tuple[Block, ...]

    @property
    def count(self) -> int:
        return sum(block.count for block in self.blocks)

    @property
    def size(self) -> int:
        return sum(len(block.data) for block in self.blocks)


class Broken(ValueError):
    """What was read cannot be the next part of a container."""


# What decompressors and parsers raise on bytes that are not theirs.
BROKEN: Final = (
    Broken,
    ValueError,
    KeyError,
    TypeError,
    IndexError,
    zlib.error,
    cramjam.DecompressionError,
)


def parse_container(raw: bytes, path: str) -> Container:
    """The schema and the decompressed blocks of a container file."""
    try:
        return _parse_checked(raw, path)
    except BROKEN as error:
        raise CorruptFile(path, f"it is not a whole Avro container: {error}") from error


def pack_block(count: int, records: bytes, codec: str, level: int) -> Block:
    """A block of records that are encoded already, compressed as ``codec`` says.

    Args:
        count: the number of records.
        records: their bytes, one after the other.
        codec: a value of the option ``manifest.compression``.
        level: for zstd.
    """
    return Block(count, _compressor(codec, level)(records))


def encode_container(schema: str, codec: str, blocks: Sequence[Block]) -> bytes:
    """The container file of packed blocks; ``codec`` must be the one they were packed with.

    The sync marker is a digest of the content: the same records always give the same file.
    """
    digest = hashlib.blake2b(schema.encode(), digest_size=_SYNC_BYTES)
    for block in blocks:
        digest.update(block.data)
    sync = digest.digest()
    parts = [encode_header(schema, _AVRO_CODECS[codec], sync)]
    for block in blocks:
        parts += (encode_long(block.count), encode_long(len(block.data)), block.data, sync)
    return b"".join(parts)


def encode_long(value: int) -> bytes:
    """Avro's ``int`` and ``long``: zigzag, then seven bits a byte, lowest first."""
    rest = (value << 1) ^ (value >> 63)
    if rest < 0x80:
        return _ONE_BYTE[rest]
    out = bytearray()
    while rest >= 0x80:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def encode_bytes(value: bytes) -> bytes:
    """Avro's ``bytes``; also ``string``, given its UTF-8."""
    return encode_long(len(value)) + value


_ONE_BYTE: Final = tuple(bytes((value,)) for value in range(0x80))


def encode_header(schema: str, codec: str, sync: bytes) -> bytes:
    """What stands before the first block."""
    return b"".join((
        _MAGIC,
        encode_long(2),
        encode_bytes(b"avro.schema"),
        encode_bytes(schema.encode()),
        encode_bytes(b"avro.codec"),
        encode_bytes(codec.encode()),
        encode_long(0),
        sync,
    ))  # fmt: skip


def _parse_checked(raw: bytes, path: str) -> Container:
    if not raw.startswith(_MAGIC):
        raise Broken("the magic bytes are missing")
    metadata, at = _parse_metadata(raw, len(_MAGIC))
    sync = raw[at : at + _SYNC_BYTES]
    at += _SYNC_BYTES
    if at > len(raw):
        raise Broken("it ends within its header")
    decompress = _decompressor(metadata.get("avro.codec", b"null").decode(), path)
    blocks: list[Block] = []
    while at < len(raw):
        count, at = _parse_long(raw, at)
        size, at = _parse_long(raw, at)
        end = at + size
        if count < 0 or size < 0 or raw[end : end + _SYNC_BYTES] != sync:
            raise Broken(f"the block at byte {at} does not end with the sync marker")
        if count:
            blocks.append(Block(count, decompress(raw[at:end])))
        at = end + _SYNC_BYTES
    return Container(metadata["avro.schema"].decode(), tuple(blocks))


def _parse_metadata(raw: bytes, at: int) -> tuple[dict[str, bytes], int]:
    metadata: dict[str, bytes] = {}
    while True:
        count, at = _parse_long(raw, at)
        if count == 0:
            return metadata, at
        if count < 0:  # a negative count is followed by the size of the block
            count = -count
            _, at = _parse_long(raw, at)
        for _ in range(count):
            key, at = _parse_bytes(raw, at)
            metadata[key.decode()], at = _parse_bytes(raw, at)


def _parse_bytes(raw: bytes, at: int) -> tuple[bytes, int]:
    size, at = _parse_long(raw, at)
    if size < 0 or at + size > len(raw):
        raise Broken(f"the value at byte {at} is longer than the file")
    return raw[at : at + size], at + size


def _parse_long(raw: bytes, at: int) -> tuple[int, int]:
    value = 0
    for position in range(_MAX_VARINT_BYTES):
        byte = raw[at + position]
        value |= (byte & 0x7F) << (7 * position)
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at + position + 1
    raise Broken(f"the number at byte {at} is too long")


# Codecs ------------------------------------------------------------------------------------------

# The names of the option manifest.compression, and Avro's names for them.
_AVRO_CODECS: Final = {
    "zstd": "zstandard",
    "zstandard": "zstandard",
    "deflate": "deflate",
    "gzip": "deflate",
    "snappy": "snappy",
    "none": "null",
    "null": "null",
    "uncompressed": "null",
}


def _decompressor(codec: str, path: str) -> Callable[[bytes], bytes]:
    match codec:
        case "null":
            return bytes
        case "zstandard":
            return _decompress_zstd
        case "deflate":
            return _decompress_deflate
        case "snappy":
            return _decompress_snappy
        case _:
            raise Unsupported(f"{path} is compressed with {codec}, which emberlake cannot read")


def _compressor(codec: str, level: int) -> Callable[[bytes], bytes]:
    match _AVRO_CODECS.get(codec):
        case "null":
            return bytes
        case "zstandard":
            return partial(_compress_zstd, level=level)
        case "deflate":
            return _compress_deflate
        case "snappy":
            return _compress_snappy
        case _:
            known = ", ".join(sorted(_AVRO_CODECS))
            raise InvalidInput(f"manifests cannot be compressed with {codec!r}; use one of {known}")


def _decompress_zstd(data: bytes) -> bytes:
    return bytes(cramjam.zstd.decompress(data))


def _compress_zstd(data: bytes, *, level: int) -> bytes:
    packed: bytes = pa.Codec("zstd", compression_level=level).compress(data, asbytes=True)
    return packed


def _decompress_deflate(data: bytes) -> bytes:
    return zlib.decompress(data, -zlib.MAX_WBITS)


def _compress_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


# Avro puts the checksum of the plain bytes behind each block of snappy.
def _decompress_snappy(data: bytes) -> bytes:
    plain = bytes(cramjam.snappy.decompress_raw(data[:-4]))
    if zlib.crc32(plain) != int.from_bytes(data[-4:], "big"):
        raise Broken("the checksum of a block does not fit")
    return plain


def _compress_snappy(data: bytes) -> bytes:
    return bytes(cramjam.snappy.compress_raw(data)) + zlib.crc32(data).to_bytes(4, "big")

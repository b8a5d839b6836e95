"""Avro object containers: a header, then blocks of encoded records.

Layout::

    "Obj" 0x01 | metadata: map of text to bytes | sync marker, 16 bytes
    per block:   record count | size in bytes | records, compressed | sync marker

This module knows neither what the records hold nor where the bytes come from. A caller that reads a
file turns ``BAD_BYTES`` into an error that names the file.
"""

import hashlib
import io
import lzma
import sys
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Final

from emberlake.base.avro_codecs import decompressor

SYNC_BYTES: Final = 16
_MAGIC: Final = b"Obj\x01"
_MAX_LONG_BYTES: Final = 10

# Parsing and decompressing raise these on bytes that are not an Avro container or Avro records.
BAD_BYTES: Final = (
    EOFError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    OverflowError,
    MemoryError,
    RecursionError,
    lzma.LZMAError,
    zlib.error,
)


@dataclass(frozen=True, slots=True)
class Header:
    """The header before the blocks."""

    schema: str
    codec: str
    sync: bytes

    def encode(self) -> bytes:
        return b"".join((
            _MAGIC,
            encode_long(2),
            encode_bytes(b"avro.schema"),
            encode_bytes(self.schema.encode()),
            encode_bytes(b"avro.codec"),
            encode_bytes(self.codec.encode()),
            encode_long(0),
            self.sync,
        ))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Block:
    """Records, one after another. The caller knows whether they are compressed."""

    count: int
    data: bytes

    def encode(self, sync: bytes) -> bytes:
        return b"".join((encode_long(self.count), encode_bytes(self.data), sync))


@dataclass(frozen=True, slots=True)
class Container:
    """A whole container: the schema of its records, and the records, uncompressed."""

    schema: str
    blocks: tuple[Block, ...]

    @property
    def count(self) -> int:
        return sum(block.count for block in self.blocks)

    @property
    def size(self) -> int:
        return sum(len(block.data) for block in self.blocks)


# Containers --------------------------------------------------------------------------------------


def encode_container(schema: str, codec: str, blocks: Sequence[Block]) -> bytes:
    """Encode a container of blocks that are already compressed with Avro's ``codec``.

    The sync marker is a digest of the content: the same records always give the same file.
    """
    digest = hashlib.blake2b(schema.encode(), digest_size=SYNC_BYTES)
    for block in blocks:
        digest.update(block.data)
    sync = digest.digest()
    header = Header(schema, codec, sync).encode()
    return b"".join((header, *(block.encode(sync) for block in blocks)))


def parse_container(raw: bytes) -> Container:
    """Parse a whole container.

    Raises:
        UnknownCodec: the blocks cannot be decompressed.
        BAD_BYTES: the bytes are not a whole container.
    """
    stream = io.BytesIO(raw)
    header = _read_repeated_header(raw, stream)
    return Container(header.schema, tuple(iter_blocks(stream, header)))


# The start of the last container that was parsed, up to its sync marker, with its schema and codec.
# All manifests of a writer begin with the same bytes, some 2 kB.
_last_start: tuple[bytes, str, str] | None = None
_MAX_START_BYTES: Final = 64 * 1024


def _read_repeated_header(raw: bytes, stream: BinaryIO) -> Header:
    """Read the header, without parsing it if it starts like the last one."""
    global _last_start  # noqa: PLW0603 - threads may replace it, but never change it
    last = _last_start
    if last is not None and raw.startswith(last[0]):
        start, schema, codec = last
        stream.seek(len(start))
        return Header(schema, codec, _take(stream, SYNC_BYTES))
    header = read_header(stream)
    size = stream.tell() - SYNC_BYTES
    if size <= _MAX_START_BYTES:
        _last_start = raw[:size], header.schema, header.codec
    return header


# Streams -----------------------------------------------------------------------------------------


def read_header(stream: BinaryIO) -> Header:
    """Read the header of a container and leave the stream before the first block."""
    if stream.read(len(_MAGIC)) != _MAGIC:
        raise ValueError("the magic bytes of Avro files are missing")
    metadata: dict[str, bytes] = {}
    while count := _read_long(stream):
        if count < 0:  # a negative count is followed by a size in bytes
            _read_long(stream)
        for _ in range(abs(count)):
            key = _take(stream, _read_long(stream)).decode()
            metadata[key] = _take(stream, _read_long(stream))
    return Header(
        schema=sys.intern(metadata["avro.schema"].decode()),  # many files have the same
        codec=metadata.get("avro.codec", b"null").decode(),
        sync=_take(stream, SYNC_BYTES),
    )


def iter_blocks(stream: BinaryIO, header: Header) -> Iterator[Block]:
    """The remaining blocks, decompressed; blocks without records are left out."""
    decompress = decompressor(header.codec)
    while (head := _read_block_head(stream)) is not None:
        count, size = head
        data = _take(stream, size)
        _check_sync(stream, header)
        if count:
            plain = decompress(data)
            # Every record takes at least one byte. A larger count would only fill up memory.
            if count > len(plain):
                raise ValueError(f"a block cannot have {count} records in {len(plain)} bytes")
            yield Block(count, plain)


def count_records(stream: BinaryIO, header: Header) -> int:
    """Count the records of the remaining blocks without decompressing them."""
    records = 0
    while (head := _read_block_head(stream)) is not None:
        count, size = head
        records += count
        stream.seek(size, io.SEEK_CUR)
        _check_sync(stream, header)
    return records


def _read_block_head(stream: BinaryIO) -> tuple[int, int] | None:
    """The number of records and the number of bytes of the next block; None at the end."""
    count = _read_long_or_end(stream)
    if count is None:
        return None
    size = _read_long(stream)
    if count < 0 or size < 0:
        raise ValueError(f"a block cannot have {count} records in {size} bytes")
    return count, size


def _check_sync(stream: BinaryIO, header: Header) -> None:
    if _take(stream, SYNC_BYTES) != header.sync:
        raise ValueError("a block does not end with the sync marker of the file")


def _take(stream: BinaryIO, size: int) -> bytes:
    if size < 0:
        raise ValueError("a size is negative")
    data = stream.read(size)
    if len(data) != size:
        raise EOFError("the file ends too early")
    return data


# Schemas -----------------------------------------------------------------------------------------


def check_items(schema: object) -> None:
    """Refuse arrays of items that take no bytes: a few bytes could announce any number of them.

    Raises:
        ValueError: the schema has such an array.
    """
    _takes_bytes(schema, {})


def _takes_bytes(schema: object, named: dict[str, bool]) -> bool:
    match schema:
        case "null":
            return False
        case str():
            return named.get(schema, True)
        case list():
            return bool([_takes_bytes(branch, named) for branch in schema])
        case {"type": "record", "name": str(name), "fields": list(fields)}:
            taking = [_takes_bytes(f["type"], named) for f in fields]  # a list: checks every field
            named[name] = any(taking)
            return named[name]
        case {"type": "array", "items": items}:
            if not _takes_bytes(items, named):
                raise ValueError("it has arrays of items that take no bytes")
            return True
        case {"type": "map", "values": values}:
            _takes_bytes(values, named)
            return True
        case {"type": "fixed", "size": int(size)}:
            return size > 0
        case {"type": (dict() | list() | str()) as inner}:
            return _takes_bytes(inner, named)
        case _:
            return True


# Values ------------------------------------------------------------------------------------------


def encode_long(value: int) -> bytes:
    """Avro's ``int`` and ``long``: zigzag, then seven bits per byte, lowest first."""
    rest = (value << 1) ^ (value >> 63)
    if rest < 0x80:
        return _ONE_BYTE[rest]
    out = bytearray()
    while rest >= 0x80:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


_ONE_BYTE: Final = tuple(bytes((value,)) for value in range(0x80))


def encode_bytes(value: bytes) -> bytes:
    """Avro's ``bytes``; also ``string``, given its UTF-8."""
    return encode_long(len(value)) + value


def _read_long(stream: BinaryIO) -> int:
    value = _read_long_or_end(stream)
    if value is None:
        raise EOFError("the file ends too early")
    return value


def _read_long_or_end(stream: BinaryIO) -> int | None:
    value = 0
    for position in range(_MAX_LONG_BYTES):
        byte = stream.read(1)
        if not byte:
            if position:
                raise EOFError("the file ends within a number")
            return None
        value |= (byte[0] & 0x7F) << (7 * position)
        if byte[0] < 0x80:
            return (value >> 1) ^ -(value & 1)
    raise ValueError("a number is too long")

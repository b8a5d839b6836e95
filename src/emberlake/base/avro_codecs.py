"""The codecs for blocks of Avro containers, by Avro's names. They decompress in bounded memory."""

import bz2
import lzma
import zlib
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import pyarrow as pa


class UnknownCodec(ValueError):
    """The blocks are compressed with an unknown codec."""

    def __init__(self, codec: str) -> None:
        super().__init__(f"the codec {codec} is unknown")
        self.codec = codec


# The codecs that can be written: their names in options, and Avro's names.
AVRO_CODECS: Final = {
    "zstd": "zstandard",
    "zstandard": "zstandard",
    "snappy": "snappy",
    "deflate": "deflate",
    "gzip": "deflate",
    "none": "null",
    "uncompressed": "null",
    "null": "null",
}


def compressor(codec: str, level: int) -> Callable[[bytes], bytes]:
    """The function that compresses blocks, by Avro's codec name; only zstd uses the level."""
    match codec:
        case "null":
            return bytes
        case "zstandard":
            zstd = pa.Codec("zstd", compression_level=level)
            return lambda data: zstd.compress(data, asbytes=True)
        case "snappy":
            return _compress_snappy
        case "deflate":
            return _compress_deflate
        case _:
            raise UnknownCodec(codec)


def decompressor(codec: str) -> Callable[[bytes], bytes]:
    """The function that decompresses blocks, by Avro's codec name."""
    match codec:
        case "null":
            return bytes
        case "zstandard":
            return _decompress_zstd
        case "snappy":
            return _decompress_snappy
        case "deflate":
            return _decompress_deflate
        case "bzip2":
            return _decompress_bzip2
        case "xz":
            return _decompress_xz
        case _:
            raise UnknownCodec(codec)


def _compress_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


# A few compressed bytes can expand to any size. No writer makes blocks this large.
_MAX_BLOCK_BYTES: Final = 1 << 30
_MAX_ZSTD_RATIO: Final = 1 << 15  # 128 KiB of one repeated byte take four bytes
_MAX_SNAPPY_RATIO: Final = 64  # a copy of 64 bytes takes three
_ZSTD_MAGIC: Final = (0xFD2FB528).to_bytes(4, "little")
_ZSTD_SHORTEST: Final = 9  # bytes of a frame


def _decompress_zstd(data: bytes) -> bytes:
    if not data:  # a stream would decompress it to nothing
        raise EOFError("a block ends too early")
    try:
        size = _zstd_size(data)
        # An impossible size is not believed: it would be allocated at once.
        if size is not None and size <= min(len(data) * _MAX_ZSTD_RATIO, _MAX_BLOCK_BYTES):
            with suppress(OSError):  # several frames: the size is that of the first
                plain: bytes = pa.Codec("zstd").decompress(data, size, asbytes=True)
                if len(plain) == size:
                    return plain
        with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
            return _bounded(stream.read(_MAX_BLOCK_BYTES + 1))
    except OSError as error:  # it would look like a storage failure
        raise ValueError(str(error)) from error


def _zstd_size(data: bytes) -> int | None:
    """The decompressed size of a frame, if its header states it (RFC 8878, 3.1.1.1)."""
    if len(data) < _ZSTD_SHORTEST or data[:4] != _ZSTD_MAGIC:
        return None
    flags = data[4]
    is_single, dictionary = flags >> 5 & 1, (0, 1, 2, 4)[flags & 3]
    width = (is_single, 2, 4, 8)[flags >> 6]
    start = 5 + (1 - is_single) + dictionary
    if not width:
        return None
    return int.from_bytes(data[start : start + width], "little") + (256 if width == 2 else 0)


def _decompress_deflate(data: bytes) -> bytes:
    unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
    plain = _bounded(unpacker.decompress(data, _MAX_BLOCK_BYTES + 1))
    if not unpacker.eof:
        raise EOFError("a block ends too early")
    return plain


def _decompress_bzip2(data: bytes) -> bytes:
    unpacker = bz2.BZ2Decompressor()
    try:
        plain = _bounded(unpacker.decompress(data, _MAX_BLOCK_BYTES + 1))
    except OSError as error:  # it would look like a storage failure
        raise ValueError(str(error)) from error
    if not unpacker.eof:
        raise EOFError("a block ends too early")
    return plain


def _decompress_xz(data: bytes) -> bytes:
    unpacker = lzma.LZMADecompressor()
    plain = _bounded(unpacker.decompress(data, _MAX_BLOCK_BYTES + 1))
    if not unpacker.eof:
        raise EOFError("a block ends too early")
    return plain


def _bounded(plain: bytes) -> bytes:
    if len(plain) > _MAX_BLOCK_BYTES:
        raise ValueError(f"a block has more than {_MAX_BLOCK_BYTES} bytes when decompressed")
    return plain


# Avro appends the checksum of the plain bytes to each snappy block.
def _compress_snappy(data: bytes) -> bytes:
    packed: bytes = pa.Codec("snappy").compress(data, asbytes=True)
    return packed + zlib.crc32(data).to_bytes(4, "big")


def _decompress_snappy(data: bytes) -> bytes:
    size = _snappy_size(data)
    if size > min(len(data) * _MAX_SNAPPY_RATIO, _MAX_BLOCK_BYTES):
        raise ValueError(f"a block of {len(data)} bytes says that it has {size} when decompressed")
    try:
        plain: bytes = pa.Codec("snappy").decompress(data[:-4], size, asbytes=True)
    except OSError as error:  # it would look like a storage failure
        raise ValueError(str(error)) from error
    if zlib.crc32(plain) != int.from_bytes(data[-4:], "big"):
        raise ValueError("the checksum of a block is wrong")
    return plain


def _snappy_size(data: bytes) -> int:
    """The decompressed size of a block: a number with seven bits per byte, lowest first."""
    size = 0
    for at, byte in enumerate(data[:5]):
        size |= (byte & 0x7F) << 7 * at
        if byte < 0x80:
            return size
    raise ValueError("a block does not say how long it is")

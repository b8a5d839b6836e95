"""Avro containers: numbers, headers, blocks and codecs."""

import bz2
import io
import json
import lzma
from collections.abc import Callable
from contextlib import suppress

import fastavro
import pyarrow as pa
import pytest

from emberlake.base.avro_blocks import (
    BAD_BYTES,
    SYNC_BYTES,
    Block,
    Container,
    Header,
    count_records,
    encode_bytes,
    encode_container,
    encode_long,
    iter_blocks,
    parse_container,
    read_header,
)
from emberlake.base.avro_codecs import AVRO_CODECS, UnknownCodec, compressor, decompressor

SCHEMA = '{"type":"record","name":"r","fields":[{"name":"x","type":"long"}]}'
WRITTEN = sorted(set(AVRO_CODECS.values()))
SYNC = bytes(range(SYNC_BYTES))


def a_container(codec: str = "zstandard", *, blocks: int = 2, records: int = 50) -> bytes:
    data = compressor(codec, 1)(b"".join(map(encode_long, range(records))))
    return encode_container(SCHEMA, codec, [Block(records, data)] * blocks)


def stream_blocks(raw: bytes) -> list[Block]:
    stream = io.BytesIO(raw)
    return list(iter_blocks(stream, read_header(stream)))


def stream_count(raw: bytes) -> int:
    stream = io.BytesIO(raw)
    return count_records(stream, read_header(stream))


READS = pytest.mark.parametrize("read", [parse_container, stream_blocks, stream_count])


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, "00"),
        (-1, "01"),
        (1, "02"),
        (-2, "03"),
        (63, "7e"),
        (-64, "7f"),
        (64, "8001"),
        (300, "d804"),
        (2**63 - 1, "feffffffffffffffff01"),
        (-(2**63), "ffffffffffffffffff01"),
    ],
)
def test_numbers_are_zigzag_varints(value: int, expected: str) -> None:
    assert encode_long(value).hex() == expected


@pytest.mark.parametrize("codec", WRITTEN)
def test_a_container_is_what_avro_libraries_read(codec: str) -> None:
    raw = a_container(codec)

    assert [r["x"] for r in fastavro.reader(io.BytesIO(raw))] == [*range(50), *range(50)]


@pytest.mark.parametrize("codec", WRITTEN)
def test_a_container_is_read_back(codec: str) -> None:
    block = Block(50, b"".join(map(encode_long, range(50))))
    raw = a_container(codec)

    assert parse_container(raw) == Container(SCHEMA, (block, block))
    assert stream_blocks(raw) == [block, block]
    assert stream_count(raw) == 100


@pytest.mark.parametrize("codec", ["null", "deflate", "zstandard", "snappy", "bzip2", "xz"])
def test_containers_of_other_writers_are_read(codec: str) -> None:
    sink = io.BytesIO()
    records = [{"x": x} for x in range(10_000)]
    fastavro.writer(sink, json.loads(SCHEMA), records, codec=codec)

    container = parse_container(sink.getvalue())

    assert len(container.blocks) > 1
    assert container.count == 10_000 == stream_count(sink.getvalue())
    plain = b"".join(map(encode_long, range(10_000)))
    assert b"".join(block.data for block in container.blocks) == plain
    assert container.size == len(plain)


def test_a_container_may_be_empty() -> None:
    raw = encode_container(SCHEMA, "zstandard", [])

    assert list(fastavro.reader(io.BytesIO(raw))) == []
    assert parse_container(raw) == Container(SCHEMA, ())
    assert stream_count(raw) == 0


def test_a_container_that_begins_like_the_last_one_has_its_own_rest() -> None:
    first, second = a_container(), a_container(records=49)
    parsed = parse_container(second)

    parse_container(first)

    assert parse_container(second) == parsed
    header = len(Header(SCHEMA, "zstandard", SYNC).encode())
    with pytest.raises(BAD_BYTES):
        parse_container(first[:header] + second[header:])
    with pytest.raises(BAD_BYTES):
        parse_container(first[: header - 1])


def test_blocks_without_records_are_left_out() -> None:
    raw = encode_container(SCHEMA, "null", [Block(0, b"?"), Block(1, b"\x02")])

    assert parse_container(raw).blocks == (Block(1, b"\x02"),)


def test_the_same_records_give_the_same_file() -> None:
    assert a_container() == a_container()
    assert a_container() != a_container(records=49)


def test_a_header_is_read_back_and_the_stream_stands_behind_it() -> None:
    header = Header(SCHEMA, "snappy", SYNC)
    stream = io.BytesIO(header.encode() + b"rest")

    assert read_header(stream) == header
    assert stream.read() == b"rest"


def test_metadata_may_have_other_keys_come_in_parts_with_sizes_and_lack_a_codec() -> None:
    note = encode_bytes(b"note") + encode_bytes(b"\xff\x00")
    schema = encode_bytes(b"avro.schema") + encode_bytes(SCHEMA.encode())
    sized = encode_long(-1) + encode_bytes(note)
    raw = b"Obj\x01" + sized + encode_long(1) + schema + encode_long(0) + SYNC

    assert read_header(io.BytesIO(raw)) == Header(SCHEMA, "null", SYNC)


def test_a_header_without_a_schema_is_noticed() -> None:
    raw = b"Obj\x01" + encode_long(0) + SYNC

    with pytest.raises(BAD_BYTES, match=r"avro\.schema"):
        read_header(io.BytesIO(raw))


@READS
def test_every_cut_but_those_between_blocks_is_noticed(read: Callable[[bytes], object]) -> None:
    raw = a_container("null", records=5)
    block = len(raw) - len(a_container("null", blocks=1, records=5))
    whole = {len(raw), len(raw) - block, len(raw) - 2 * block}

    for size in set(range(len(raw))) - whole:
        with pytest.raises(BAD_BYTES):
            read(raw[:size])


@READS
def test_other_files_are_noticed(read: Callable[[bytes], object]) -> None:
    with pytest.raises(ValueError, match="magic"):
        read(b'{"id": 1}')


@READS
@pytest.mark.parametrize(("count", "size"), [(-1, 4), (1, -4), (1, -18), (1, 3), (1, 2**62)])
def test_a_block_that_lies_about_itself_is_noticed(
    read: Callable[[bytes], object], count: int, size: int
) -> None:
    # The size -18 leads from behind the block's head back to the sync marker of the header.
    head = encode_long(count) + encode_long(size)
    raw = Header(SCHEMA, "null", SYNC).encode() + head + b"data" + SYNC

    with pytest.raises(BAD_BYTES):
        read(raw)


@READS
def test_a_number_without_an_end_is_noticed(read: Callable[[bytes], object]) -> None:
    with pytest.raises(ValueError, match="too long"):
        read(Header(SCHEMA, "null", SYNC).encode() + b"\xff" * 20)


@pytest.mark.parametrize("codec", ["zstandard", "deflate", "snappy", "bzip2", "xz"])
@pytest.mark.parametrize("data", [b"these bytes are not compressed", b"x"], ids=repr)
def test_a_block_that_cannot_be_decompressed_is_noticed(codec: str, data: bytes) -> None:
    raw = encode_container(SCHEMA, codec, [Block(1, data)])

    with pytest.raises(BAD_BYTES):
        parse_container(raw)


@pytest.mark.parametrize("pack", [bz2.compress, lzma.compress])
def test_a_compressed_block_that_was_cut_is_noticed(pack: Callable[[bytes], bytes]) -> None:
    decompress = decompressor("bzip2" if pack is bz2.compress else "xz")

    assert decompress(pack(b"text" * 100)) == b"text" * 100
    with pytest.raises(BAD_BYTES):
        decompress(pack(b"text" * 100)[:-5])


def test_a_wrong_checksum_is_noticed() -> None:
    packed = compressor("snappy", 1)(b"text")

    assert decompressor("snappy")(packed) == b"text"
    with pytest.raises(ValueError, match="checksum"):
        decompressor("snappy")(packed[:-1] + bytes([packed[-1] ^ 1]))


def test_an_unknown_codec_is_named() -> None:
    raw = a_container("null").replace(b"\x08null", b"\x08what", 1)

    with pytest.raises(UnknownCodec, match="what is unknown"):
        parse_container(raw)
    with pytest.raises(UnknownCodec, match="lzo is unknown"):
        compressor("lzo", 1)


def zstd_stream(data: bytes) -> bytes:
    """A frame whose header does not say how long it is, as streams write it."""
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize("size", [0, 1, 255, 256, 300, 65_791, 65_792, 1 << 20])
def test_zstd_frames_are_read_whether_or_not_they_say_their_size(size: int) -> None:
    plain = bytes(range(256)) * (size // 256) + bytes(size % 256)
    with_size = pa.compress(plain, codec="zstd", asbytes=True)
    decompress = decompressor("zstandard")

    assert decompress(with_size) == plain
    assert decompress(zstd_stream(plain)) == plain
    assert decompress(with_size + with_size) == plain * 2  # several frames in one block
    assert decompress(with_size + zstd_stream(plain)) == plain * 2


@pytest.mark.parametrize("codec", ["zstandard", "snappy"])
def test_a_size_that_cannot_be_is_not_believed(codec: str) -> None:
    packed = bytearray(compressor(codec, 1)(bytes(300)))
    if codec == "snappy":
        packed[:2] = b"\xff\xff\xff\xff\x03"
    else:
        packed[4:7] = b"\xa0" + (1 << 31).to_bytes(4, "little")  # a size of four bytes

    with pytest.raises(BAD_BYTES):
        decompressor(codec)(bytes(packed))


@pytest.mark.parametrize("codec", ["zstandard", "snappy"])
def test_bytes_of_a_block_that_are_wrong_are_bad_bytes(codec: str) -> None:
    packed = compressor(codec, 1)(bytes(range(256)) * 9)

    for at in range(len(packed)):
        wrong = bytearray(packed)
        wrong[at] ^= 0xFF
        with suppress(BAD_BYTES):
            assert len(decompressor(codec)(bytes(wrong))) <= 1 << 30
        with pytest.raises(BAD_BYTES):
            decompressor(codec)(packed[:at])

import zlib

import pytest
from pyroaring import BitMap, BitMap64

from emberlake.errors import InvalidInput
from emberlake.spec.deletion_vector import (
    CorruptDeletionVector,
    decode_deletion_vector,
    deleted_positions,
    deletion_vector_extent,
    encode_deletion_vector,
    encode_deletion_vectors,
)
from emberlake.spec.manifest import DeletionVectorRange

TWO_BITMAPS = (
    "000000003a3000000100000000000000100000000100010000003a3000000100000000000000100000000500"
)
VECTORS = [
    ([1, 3], False, "000000185e43f2d03a30000001000000000001001000000001000300da2d59d3", 24),
    ([0], False, "000000165e43f2d03a3000000100000000000000100000000000e33060d3", 22),
    ([1], False, "000000165e43f2d03a3000000100000000000000100000000100fa2b5192", 22),
    (list(range(10)), False, "000000135e43f2d03b3000000100000900010000000900a34efa89", 19),
    (
        [1, 3],
        True,
        "00000024d1d339640100000000000000000000003a30000001000000000001001000000001000300683497a9",
        44,
    ),
    (
        [1, 2**32 + 5],
        True,
        "00000038d1d339640200000000000000" + TWO_BITMAPS + "bbe896e6",
        64,
    ),
]


@pytest.mark.parametrize(("positions", "bitmap64", "blob", "length"), VECTORS)
def test_a_vector_has_the_bytes_of_the_reference(positions, bitmap64, blob, length) -> None:
    vector = (BitMap64 if bitmap64 else BitMap)(positions)

    file, ranges = encode_deletion_vectors({"data-1.parquet": vector}, bitmap64=bitmap64)

    assert file.hex() == "01" + blob
    assert ranges == (DeletionVectorRange("data-1.parquet", 1, length, len(positions)),)


@pytest.mark.parametrize(("positions", "bitmap64", "blob", "length"), VECTORS)
def test_the_bytes_of_the_reference_give_the_vector(positions, bitmap64, blob, length) -> None:
    vector = decode_deletion_vector(bytes.fromhex(blob), length)

    assert isinstance(vector, BitMap64 if bitmap64 else BitMap)
    assert list(vector) == positions


def test_the_whole_index_file_of_the_reference() -> None:
    file, _ = encode_deletion_vectors({"f": BitMap([1, 3])}, bitmap64=False)

    assert file.hex() == "01000000185e43f2d03a30000001000000000001001000000001000300da2d59d3"


@pytest.mark.parametrize("bitmap64", [False, True])
def test_every_vector_of_a_file_is_found_by_its_extent(bitmap64: bool) -> None:
    vectors = {"a": BitMap([5]), "b": BitMap(), "c": BitMap(range(100_000)), "d": BitMap([7, 9])}

    file, ranges = encode_deletion_vectors(vectors, bitmap64=bitmap64)

    for vector_range in ranges:
        offset, count = deletion_vector_extent(vector_range)
        decoded = decode_deletion_vector(file[offset : offset + count], vector_range.length)
        expected = vectors[vector_range.data_file_name]
        assert list(decoded) == list(expected)
        assert vector_range.cardinality == len(expected)


def test_gaps_between_high_halves_are_filled() -> None:
    vector = BitMap64([2**33 + 1])

    blob = encode_deletion_vector(vector, bitmap64=True)

    assert blob[8:16] == (3).to_bytes(8, "little")
    assert decode_deletion_vector(blob) == vector


def test_encoding_leaves_the_vector_as_it_is() -> None:
    vector = BitMap(range(0, 100, 2))
    before = vector.serialize()

    encode_deletion_vector(vector, bitmap64=False)

    assert vector.serialize() == before


def test_small_vectors_change_their_width_freely() -> None:
    positions = [0, 7, 100_000]

    narrow = encode_deletion_vector(BitMap64(positions), bitmap64=False)
    wide = encode_deletion_vector(BitMap(positions), bitmap64=True)

    assert list(decode_deletion_vector(narrow)) == positions
    assert list(decode_deletion_vector(wide)) == positions


@pytest.mark.parametrize("vector", [BitMap([2**31]), BitMap64([2**40])])
def test_positions_beyond_32_bit_vectors_are_refused(vector) -> None:
    with pytest.raises(InvalidInput, match="bitmap64=true"):
        encode_deletion_vector(vector, bitmap64=False)


GOOD = bytes.fromhex(VECTORS[0][2])


def with_checksum(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")


@pytest.mark.parametrize(
    "blob",
    [
        b"",
        GOOD[:-1],
        GOOD[:4] + b"\x00" + GOOD[5:],
        GOOD[:-1] + b"\x00",
        b"\xff" * len(GOOD),
        with_checksum(bytes.fromhex("5e43f2d0") + b"no bitmap"),
        with_checksum(bytes.fromhex("d1d33964") + b"no bitmap"),
    ],
)
def test_bytes_that_are_no_vector_are_refused(blob: bytes) -> None:
    with pytest.raises(CorruptDeletionVector):
        decode_deletion_vector(blob)


@pytest.mark.parametrize(("blob", "length"), [(VECTORS[0][2], 32), (VECTORS[4][2], 36)])
def test_a_length_other_than_the_index_says_is_refused(blob: str, length: int) -> None:
    with pytest.raises(CorruptDeletionVector, match=f"the index says {length}"):
        decode_deletion_vector(bytes.fromhex(blob), length)


@pytest.mark.parametrize("kind", [BitMap, BitMap64])
def test_deleted_positions_count_from_the_start_of_a_batch(kind) -> None:
    vector = kind([0, 3, 9, 10, 25])

    assert deleted_positions(vector, 0, 10).tolist() == [0, 3, 9]
    assert deleted_positions(vector, 10, 10).tolist() == [0]
    assert deleted_positions(vector, 20, 100).tolist() == [5]
    assert deleted_positions(vector, 0, 100).tolist() == [0, 3, 9, 10, 25]
    assert deleted_positions(vector, 26, 100).tolist() == []
    assert deleted_positions(vector, 3, 0).tolist() == []
    assert deleted_positions(kind(), 0, 10).tolist() == []

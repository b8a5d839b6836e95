import pyarrow as pa
import pytest

from emberlake.errors import InvalidInput, Unsupported
from emberlake.spec.binary_row import CorruptRow, encode_row
from emberlake.spec.row_columns import decode_column, encode_rows, hash_rows
from emberlake.spec.values import to_arrow_array
from emberlake.types import ArrayType, AtomicType
from row_vectors import ROW_VECTORS, RowVector

INT = AtomicType("INT")
STRING = AtomicType("STRING")
VECTORS = [v for v in ROW_VECTORS if v.values[0].types]


def columns_of(vector: RowVector) -> list[pa.Array]:
    # The row stands between others, so that nothing depends on where an array begins or ends.
    pairs = zip(vector.types, vector.values, strict=True)
    return [to_arrow_array(t, [v, v, None]).slice(1, 1) for t, v in pairs]


@pytest.mark.parametrize("vector", VECTORS)
def test_columns_encode_to_the_bytes_of_the_reference(vector: RowVector) -> None:
    rows = encode_rows(vector.types, columns_of(vector))

    assert [row.hex() for row in rows.to_pylist()] == [vector.raw]


@pytest.mark.parametrize("vector", VECTORS)
def test_columns_hash_as_in_the_reference(vector: RowVector) -> None:
    assert hash_rows(vector.types, columns_of(vector)).tolist() == [vector.hash]


@pytest.mark.parametrize("vector", VECTORS)
def test_the_bytes_of_the_reference_give_the_columns(vector: RowVector) -> None:
    rows = pa.array([bytes.fromhex(vector.raw)], pa.binary())

    decoded = [decode_column(vector.types, rows, i) for i in range(len(vector.types))]

    assert decoded == columns_of(vector)


def test_57_columns_hash_as_in_the_reference() -> None:
    columns = [pa.array([0, 0], pa.int32())] * 57

    assert hash_rows([INT] * 57, columns).tolist() == [1861663351] * 2


def test_columns_may_be_chunked_differently() -> None:
    texts = ["a", None, "a text that does not fit a slot", "exactly8"]
    a = pa.chunked_array([pa.array(texts[:1]), pa.array(texts[1:])])
    b = pa.chunked_array([pa.array([1, 2, None], pa.int32()), pa.array([4], pa.int32())])

    rows = encode_rows([STRING, INT], [a, b]).to_pylist()

    values = zip(texts, [1, 2, None, 4], strict=True)
    assert rows == [encode_row([STRING, INT], v) for v in values]


def test_blocks_join_without_seams() -> None:
    count = 70_000
    texts = pa.array(["x" * (i % 29) for i in range(count)])
    numbers = pa.array(range(count), pa.int32())

    rows = encode_rows([STRING, INT], [texts, numbers])
    hashes = hash_rows([STRING, INT], [texts, numbers])

    assert len(rows) == len(hashes) == count
    assert decode_column([STRING, INT], rows, 0) == texts
    assert decode_column([STRING, INT], rows, 1) == numbers
    last = hash_rows([STRING, INT], [texts.slice(count - 1), numbers.slice(count - 1)])
    assert hashes[-1] == last[0]


def test_columns_of_a_kindred_arrow_type_are_taken() -> None:
    plain = hash_rows([STRING], [pa.array(["a", "b", None, "a"])])

    assert hash_rows([STRING], [pa.array(["a", "b", None, "a"]).dictionary_encode()]).tolist() == (
        plain.tolist()
    )
    assert hash_rows([STRING], [pa.array(["a", "b", None, "a"], pa.large_string())]).tolist() == (
        plain.tolist()
    )


def test_no_rows_give_no_rows() -> None:
    assert len(encode_rows([STRING], [pa.array([], pa.string())])) == 0
    assert len(hash_rows([INT], [pa.array([], pa.int32())])) == 0
    assert len(decode_column([STRING], pa.array([], pa.binary()), 0)) == 0


def test_a_missing_row_decodes_to_null() -> None:
    rows = pa.array([None, encode_row([STRING], ["a"]), None, encode_row([STRING], [None])])

    assert decode_column([STRING], rows, 0).to_pylist() == [None, "a", None, None]


def test_nulls_without_reserved_space_are_read_too() -> None:
    types = [AtomicType("TIMESTAMP(6)"), AtomicType("DECIMAL(38, 10)")]
    rows = pa.array([bytes.fromhex("00000002" + "0003000000000000" + "00" * 16)])

    assert decode_column(types, rows, 0).to_pylist() == [None]
    assert decode_column(types, rows, 1).to_pylist() == [None]


def test_a_wide_decimal_that_is_padded_to_eight_bytes_is_read() -> None:
    raw = bytes.fromhex("00000001" + "00" * 8 + "0200000010000000" + "fb2e000000000000")

    decoded = decode_column([AtomicType("DECIMAL(20, 0)")], pa.array([raw]), 0)

    assert [int(v) for v in decoded.to_pylist()] == [-1234]


@pytest.mark.parametrize(
    ("data_type", "raw"),
    [
        (INT, b""),
        (INT, bytes.fromhex("00000002") + bytes(24)),
        (INT, bytes.fromhex("00000001") + bytes(8)),
        (STRING, bytes.fromhex("00000001" + "00" * 8 + "ff000000" + "10000000")),
        (STRING, bytes.fromhex("00000001" + "00" * 8 + "ffff000000000082")),
        (STRING, bytes.fromhex("00000001" + "00" * 8 + "000000000000008f")),
        (AtomicType("TIMESTAMP(6)"), bytes.fromhex("00000001" + "00" * 8 + "00000000ff000000")),
        (AtomicType("TIMESTAMP(9)"), encode_row([AtomicType("TIMESTAMP(9)")], [10**20])),
        (AtomicType("DECIMAL(2, 0)"), encode_row([AtomicType("BIGINT")], [100])),
        (AtomicType("DECIMAL(20, 0)"), bytes.fromhex("00000001" + "00" * 8 + "1100000010000000")),
    ],
)
def test_bytes_that_are_no_such_row_are_refused(data_type: AtomicType, raw: bytes) -> None:
    good = encode_row([data_type], [None])

    with pytest.raises(CorruptRow):
        decode_column([data_type], pa.array([good, raw]), 0)


def test_nested_columns_are_refused() -> None:
    nested = ArrayType(True, INT)

    with pytest.raises(Unsupported, match="ARRAY"):
        encode_rows([nested], [pa.array([[1]], pa.list_(pa.int32()))])
    with pytest.raises(Unsupported, match="ARRAY"):
        decode_column([nested], pa.array([encode_row([nested], [[1]])]), 0)


def test_rows_need_columns() -> None:
    with pytest.raises(InvalidInput, match="0 columns"):
        encode_rows([], [])

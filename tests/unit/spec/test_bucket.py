from decimal import Decimal

import pyarrow as pa
import pytest

from emberlake.errors import InvalidInput
from emberlake.options import BucketFunction
from emberlake.spec.bucket import assign_buckets, bucket_of, check_bucket_key
from emberlake.spec.values import to_arrow_array
from emberlake.types import ArrayType, AtomicType
from row_vectors import ROW_VECTORS, RowVector

MANY = 2**31 - 1  # so many buckets that a hash shows in full
DEFAULT, MOD, HIVE = BucketFunction.DEFAULT, BucketFunction.MOD, BucketFunction.HIVE


@pytest.mark.parametrize("vector", [v for v in ROW_VECTORS if v.values[0].types])
def test_rows_go_to_the_buckets_of_the_reference(vector: RowVector) -> None:
    pairs = list(zip(vector.types, vector.values, strict=True))
    columns = [to_arrow_array(t, [v]) for t, v in pairs]

    for count, expected in zip((2, 4, 10), vector.buckets, strict=True):
        assert bucket_of(DEFAULT, vector.types, vector.values, count) == expected
        assert assign_buckets(DEFAULT, vector.types, columns, count).tolist() == [expected]


@pytest.mark.parametrize("type_text", ["INT", "BIGINT"])
def test_mod_takes_the_remainder_towards_minus_infinity(type_text: str) -> None:
    types = [AtomicType(type_text)]
    values = [17, -3, 5, 0, None, -5]

    buckets = assign_buckets(MOD, types, [to_arrow_array(types[0], values)], 5)

    assert buckets.tolist() == [2, 2, 0, 0, 0, 0]
    assert [bucket_of(MOD, types, [v], 5) for v in values] == buckets.tolist()


def test_mod_is_right_at_the_ends_of_bigint() -> None:
    ends = [-(2**63), 2**63 - 1]

    buckets = assign_buckets(MOD, [AtomicType("BIGINT")], [pa.array(ends)], 7)

    assert buckets.tolist() == [v % 7 for v in ends]


def java_hive_bytes(raw: bytes) -> int:
    result = 0
    for byte in raw:
        result = (31 * result + (byte - 256 if byte > 127 else byte)) & 0xFFFFFFFF
    return result & 0x7FFFFFFF


@pytest.mark.parametrize(
    ("types", "values", "expected"),
    [
        ("INT", (1,), 1),
        ("STRING", ("a",), 97),
        ("INT; STRING", (1, "a"), 128),
        ("STRING", ("hello",), 99162322),
        ("STRING", ("",), 0),
        ("STRING", ("naïve ☃",), java_hive_bytes("naïve ☃".encode())),
        ("BYTES", (b"\xff\x00\x80" * 9,), java_hive_bytes(b"\xff\x00\x80" * 9)),
        ("BOOLEAN", (True,), 1),
        ("TINYINT", (-1,), 0x7FFFFFFF),
        ("BIGINT", (2**32 + 5,), 4),
        ("FLOAT", (-0.0,), 0),
        ("DOUBLE", (-0.0,), 0),
        ("FLOAT", (1.5,), 0x3FC00000),
        ("DOUBLE", (1.5,), 0x3FF80000),
        ("DATE", (19737,), 19737),
        ("INT; INT", (None, 7), 7),
        ("INT; INT", (7, None), 217),
        ("DECIMAL(10,2)", (Decimal("12.50"),), 31 * 125 + 1),
        ("DECIMAL(10,2)", (Decimal("100.00"),), 31 * 100),
        ("DECIMAL(10,2)", (Decimal("0.00"),), 0),
        ("DECIMAL(10,2)", (Decimal("-1.00"),), -31 & 0x7FFFFFFF),
        ("DECIMAL(30,0)", (Decimal(2**64 + 2**33 + 3),), 31 * (31 * 31 + 31 * 2 + 3)),
    ],
)
def test_hive_hashes_each_column(types: str, values: tuple, expected: int) -> None:
    parsed = [AtomicType(t) for t in types.split("; ")]

    assert bucket_of(HIVE, parsed, values, MANY) == expected % MANY


def test_hive_takes_many_rows_at_once() -> None:
    types = [AtomicType("STRING"), AtomicType("DECIMAL(10,2)")]
    texts = ["a", "", None, "hello world", "héllo"] * 3
    numbers = [Decimal("1.50"), None, Decimal("-2.00"), Decimal("0.00"), Decimal("7.07")] * 3
    columns = [pa.chunked_array([texts[:4], texts[4:]]), to_arrow_array(types[1], numbers)]

    buckets = assign_buckets(HIVE, types, columns, 1000)

    rows = zip(texts, numbers, strict=True)
    assert buckets.tolist() == [bucket_of(HIVE, types, row, 1000) for row in rows]


@pytest.mark.parametrize(
    ("function", "types", "problem"),
    [
        (DEFAULT, (), "no columns"),
        (DEFAULT, (ArrayType(True, AtomicType("INT")),), "ARRAY<INT>"),
        (DEFAULT, (AtomicType("VARIANT"),), "VARIANT"),
        (MOD, (AtomicType("STRING"),), "INT or BIGINT"),
        (MOD, (AtomicType("INT"), AtomicType("INT")), "one column"),
        (HIVE, (AtomicType("TIMESTAMP(3)"),), "TIMESTAMP"),
    ],
)
def test_a_bucket_key_that_cannot_work_is_named(function, types, problem) -> None:
    found = check_bucket_key(function, types)

    assert found is not None
    assert problem in found
    with pytest.raises(InvalidInput):
        bucket_of(function, types, [None] * len(types), 2)


def test_usual_bucket_keys_have_no_problem() -> None:
    assert check_bucket_key(DEFAULT, [AtomicType("TIMESTAMP(6)"), AtomicType("STRING")]) is None
    assert check_bucket_key(MOD, [AtomicType("INT")]) is None
    assert check_bucket_key(HIVE, [AtomicType("INT"), AtomicType("STRING")]) is None


def test_there_must_be_a_bucket() -> None:
    with pytest.raises(InvalidInput, match="0 is not a valid number of buckets"):
        bucket_of(DEFAULT, [AtomicType("INT")], [1], 0)

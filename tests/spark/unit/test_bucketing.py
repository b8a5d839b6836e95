"""Buckets that Spark computes are those of the format, whatever the key."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from itertools import product
from typing import Any, Final

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from emberlake.base.hashing import ADD, C1, C2, DEFAULT_SEED, mix_scalar
from emberlake.errors import InvalidInput
from emberlake.options import BucketFunction, TableOptions
from emberlake.spark.bucketing import bucket_column, key_hash_column, partition_hash_column
from emberlake.spark.types import handed_out, spark_schema, to_spark_batch
from emberlake.spec.bucket import assign_buckets, check_bucket_key
from emberlake.spec.schema import TableSchema
from emberlake.types import AtomicType, DataField
from row_vectors import ROW_VECTORS, RowVector
from spark.border import HARD, Source, atomic_types, hard_table, hard_values, in_micros, values

NOT_NATIVE: Final = frozenset(
    text for text in HARD if text.startswith(("FLOAT", "DOUBLE", "TIME(", "DECIMAL(38"))
)
COUNTS: Final = (1, 4, 7, 1000)
LENGTHS: Final = (*range(26), 127, 128, 255, 256, 400, 40_000)
MASK: Final = 0xFFFFFFFF


def table_schema(
    types: Sequence[AtomicType], count: int = 1000, function: str = "default"
) -> TableSchema:
    """A table whose columns are its bucket key."""
    fields = tuple(DataField(index, f"k{index}", t) for index, t in enumerate(types))
    key = ",".join(f.name for f in fields)
    options = {"bucket": str(count), "bucket-key": key, "bucket-function.type": function}
    return TableSchema(0, fields, len(fields), options=TableOptions(options))


def frame(spark: SparkSession, fields: tuple[DataField, ...], rows: pa.Table) -> DataFrame:
    (batch,) = to_spark_batch(rows, handed_out(fields)).combine_chunks().to_batches()
    return spark.range(1).coalesce(1).mapInArrow(Source(batch), spark_schema(fields))


def found_and_expected(
    spark: SparkSession, schema: TableSchema, columns: Sequence[Sequence[Any]]
) -> tuple[list[int], list[int]]:
    """The buckets of rows that are given column by column: by Spark, and by the format."""
    fields = schema.fields
    exact = [
        [in_micros(f.type, v) for v in column] for f, column in zip(fields, columns, strict=True)
    ]
    rows = hard_table(fields, exact)
    function = BucketFunction(schema.options["bucket-function.type"])
    types = [f.type for f in fields]
    expected = assign_buckets(function, types, rows.columns, int(schema.options["bucket"]))
    found = frame(spark, fields, rows).select(bucket_column(schema).alias("bucket")).collect()
    return [row.bucket for row in found], expected.tolist()


def assert_same_buckets(
    spark: SparkSession, schema: TableSchema, columns: Sequence[Sequence[Any]]
) -> None:
    found, expected = found_and_expected(spark, schema, columns)
    assert found == expected


@contextmanager
def ansi(spark: SparkSession, is_on: bool) -> Iterator[None]:
    name = "spark.sql.ansi.enabled"
    before = spark.conf.get(name)
    spark.conf.set(name, str(is_on).lower())
    try:
        yield
    finally:
        spark.conf.set(name, before)


def is_native(schema: TableSchema, df: DataFrame, capsys: pytest.CaptureFixture[str]) -> bool:
    df.select(bucket_column(schema)).explain()
    return "ArrowEvalPython" not in capsys.readouterr().out


# --- the default function -------------------------------------------------------------------------


def reference_vectors() -> Iterator[RowVector]:
    for vector in (param.values[0] for param in ROW_VECTORS):
        pairs = zip(vector.types, vector.values, strict=True)
        if vector.types and all(in_micros(t, v) == v for t, v in pairs):
            yield vector


@pytest.mark.slow
def test_rows_go_to_the_buckets_of_the_reference(spark: SparkSession) -> None:
    vectors = list(reference_vectors())
    fields: list[DataField] = []
    columns: list[list[Any]] = []
    buckets = []
    for number, vector in enumerate(vectors):
        names = [f"v{number}_{index}" for index in range(len(vector.types))]
        mine = tuple(map(DataField, range(len(names)), names, vector.types))
        fields += mine
        columns += [[value] for value in vector.values]
        for count in (2, 4, 10):
            options = TableOptions({"bucket": str(count), "bucket-key": ",".join(names)})
            schema = TableSchema(0, mine, len(names), options=options)
            buckets.append(bucket_column(schema).alias(f"b{len(buckets)}"))

    df = frame(spark, tuple(fields), hard_table(fields, columns))
    (row,) = df.select(*buckets).collect()

    assert len(vectors) > 30
    found = [tuple(row[at : at + 3]) for at in range(0, len(row), 3)]
    assert list(zip(vectors, found, strict=True)) == [(v, v.buckets) for v in vectors]


@pytest.mark.parametrize("is_on", [True, False], ids=["ansi", "not ansi"])
@pytest.mark.parametrize("nullable", [True, False], ids=["nullable", "not null"])
def test_every_type_alone_has_its_buckets(spark: SparkSession, nullable: bool, is_on: bool) -> None:
    fields = tuple(
        DataField(index, f"k{index}", AtomicType(text, nullable)) for index, text in enumerate(HARD)
    )
    columns: list[list[Any]] = []
    for field in fields:
        column = [in_micros(field.type, v) for v in hard_values(field.type)]
        fill = None if nullable else column[0]
        columns.append([*column, *[fill] * 15][:15])
    rows = hard_table(fields, columns)
    schemas = [
        TableSchema(0, (f,), 1, options=TableOptions({"bucket": "1000", "bucket-key": f.name}))
        for f in fields
    ]

    with ansi(spark, is_on):
        buckets = [bucket_column(schema).alias(schema.fields[0].name) for schema in schemas]
        found = frame(spark, fields, rows).select(*buckets).collect()

    expected = [
        assign_buckets(BucketFunction.DEFAULT, [f.type], [rows.column(f.name)], 1000).tolist()
        for f in fields
    ]
    by_type = dict(zip(HARD, map(list, zip(*found, strict=True)), strict=True))
    assert by_type == dict(zip(HARD, expected, strict=True))


@settings(max_examples=12, deadline=None, derandomize=True)
@given(data=st.data())
def test_keys_of_several_columns_have_their_buckets(spark: SparkSession, data: st.DataObject):
    types = data.draw(st.lists(atomic_types(), min_size=1, max_size=5))
    row = st.tuples(*map(values, types))
    rows = data.draw(st.lists(row, min_size=1, max_size=20))
    count, is_on = data.draw(st.sampled_from(COUNTS)), data.draw(st.booleans())

    with ansi(spark, is_on):
        assert_same_buckets(spark, table_schema(types, count), list(zip(*rows, strict=True)))


@pytest.mark.parametrize("nullable", [True, False], ids=["nullable", "not null"])
@pytest.mark.parametrize(
    "key",
    [
        ("INT", "BIGINT"),
        ("BIGINT", "TIMESTAMP(6)", "DATE"),
        ("TIMESTAMP(3)", "TIMESTAMP_LTZ(6)"),
        ("STRING", "INT", "STRING"),
        ("BIGINT", "BYTES", "TIMESTAMP(6)", "BOOLEAN", "STRING"),
        ("TINYINT", "SMALLINT", "INT", "DATE", "BOOLEAN", "DECIMAL(18, 2)", "INT", "INT"),
        ("STRING", "DECIMAL(38, 0)"),
    ],
    ids=", ".join,
)
def test_all_combinations_of_hard_values_have_their_buckets(
    spark: SparkSession, key: tuple[str, ...], nullable: bool
) -> None:
    types = [AtomicType(text, nullable) for text in key]
    # The ends of long lists are as hard as their beginnings; all pairs occur, and nulls in each.
    choices = [[*hard_values(t)[:2], hard_values(t)[-1], *([None] * nullable)] for t in types]
    rows = list(product(*choices))[:: max(1, 4 ** len(types) // 500)]

    assert_same_buckets(spark, table_schema(types), list(zip(*rows, strict=True)))


@pytest.mark.parametrize("text", ["STRING", "BYTES"])
def test_texts_and_bytes_of_every_length_have_their_buckets(spark: SparkSession, text: str) -> None:
    raw = ["x" * length for length in LENGTHS]
    column = [value.encode() for value in raw] if text == "BYTES" else raw
    turned = column[::-1]
    types = [AtomicType(text), AtomicType(text, False), AtomicType("TIMESTAMP(6)")]
    moments = [1000 * number for number in range(len(column))]

    assert_same_buckets(spark, table_schema(types[:1]), [column])
    assert_same_buckets(spark, table_schema(types), [column, turned, moments])


@pytest.mark.parametrize("count", COUNTS)
def test_buckets_are_below_their_number(spark: SparkSession, count: int) -> None:
    numbers = [*range(-500, 500), -(2**63), 2**63 - 1]
    schema = table_schema([AtomicType("BIGINT", False)], count)

    found, expected = found_and_expected(spark, schema, [numbers])

    assert found == expected
    assert set(found) == set(range(count)) or count == 1000


def keys_that_pass_through(bits: int) -> list[int]:
    """INT keys whose hash has these 32 bits at each step that rotates them."""
    seed = mix_scalar(mix_scalar(DEFAULT_SEED, 0), 0)  # the state after the null bits
    size_and_word = 16 ^ 4
    word_before = (bits * C2 ^ DEFAULT_SEED) & MASK
    last = advanced(word_before) ^ size_and_word
    first = (bits * 5 + ADD & MASK) ^ size_and_word
    return [
        bits * inverse(C1) & MASK,
        unscrambled(bits ^ seed),
        *(unscrambled(retreated(state) ^ seed) for state in (bits, *map(retreated, (first, last)))),
    ]


def inverse(factor: int) -> int:
    return pow(factor, -1, 1 << 32)


def advanced(state: int) -> int:
    return (rotated(state, 13) * 5 + ADD) & MASK


def retreated(state: int) -> int:
    return rotated((state - ADD) * inverse(5) & MASK, 32 - 13)


def unscrambled(word: int) -> int:
    return rotated(word * inverse(C2) & MASK, 32 - 15) * inverse(C1) & MASK


def rotated(word: int, bits: int) -> int:
    return (word << bits | word >> (32 - bits)) & MASK


@pytest.mark.parametrize("bits", [0, MASK])
def test_bits_that_are_all_equal_rotate_to_themselves(spark: SparkSession, bits: int) -> None:
    words = keys_that_pass_through(bits)
    keys = [word - (1 << 32) if word >> 31 else word for word in words]

    assert_same_buckets(spark, table_schema([AtomicType("INT", False)], 2**31 - 1), [keys])


# --- where it is computed -------------------------------------------------------------------------


@pytest.mark.parametrize("text", HARD)
def test_python_takes_part_only_where_spark_does_not_show_the_bits(
    spark: SparkSession, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    schema = table_schema([AtomicType(text)])
    df = frame(spark, schema.fields, hard_table(schema.fields, [[None]]))

    assert is_native(schema, df, capsys) == (text not in NOT_NATIVE)


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        (["BIGINT"] * 5, True),
        (["BIGINT"] * 6, False),
        (["TIMESTAMP_LTZ(6)"] * 2, True),
        (["TIMESTAMP_LTZ(6)"] * 3, False),
        (["STRING", "INT", "STRING"], True),
        (["STRING", *["BIGINT"] * 3], False),
        (["STRING", "DOUBLE"], False),
    ],
)
def test_a_long_key_is_left_to_python(
    spark: SparkSession, types: list[str], expected: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    schema = table_schema([AtomicType(text) for text in types])
    rows = [hard_values(t.type)[:2] for t in schema.fields]
    df = frame(spark, schema.fields, hard_table(schema.fields, rows))

    assert is_native(schema, df, capsys) == expected
    assert_same_buckets(spark, schema, rows)


# --- the other functions --------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["INT", "BIGINT"])
@pytest.mark.parametrize("is_on", [True, False], ids=["ansi", "not ansi"])
def test_mod_takes_the_remainder_of_the_number(spark: SparkSession, text: str, is_on: bool) -> None:
    numbers = [None, *hard_values(AtomicType(text)), 17, -3, -5]

    with ansi(spark, is_on):
        for count in (1, 7):
            assert_same_buckets(spark, table_schema([AtomicType(text)], count, "mod"), [numbers])


@pytest.mark.parametrize("text", [t for t in HARD if not t.startswith("TIMESTAMP")])
def test_hive_hashes_every_type(spark: SparkSession, text: str) -> None:
    types = [AtomicType("BIGINT"), AtomicType(text)]
    assert check_bucket_key(BucketFunction.HIVE, types) is None
    column = [None, *hard_values(types[1])]
    numbers = [[None, *hard_values(types[0])][at % 6] for at in range(len(column))]

    assert_same_buckets(spark, table_schema(types, 1000, "hive"), [numbers, column])


# --- DataFrames that fit in another way, and rows that do not -------------------------------------


def test_the_key_is_hashed_as_the_table_has_it(spark: SparkSession) -> None:
    types = [AtomicType(text) for text in ("BIGINT", "DECIMAL(10, 2)", "SMALLINT")]
    schema = table_schema(types)
    df = spark.range(-50, 50).selectExpr(
        "cast(id as tinyint) as k0", "cast(id as decimal(5, 1)) as k1", "id as k2"
    )
    numbers = list(range(-50, 50))

    found = df.select(bucket_column(schema).alias("bucket")).collect()

    rows = hard_table(schema.fields, [numbers, list(map(Decimal, numbers)), numbers])
    expected = assign_buckets(BucketFunction.DEFAULT, types, rows.columns, 1000)
    assert [row.bucket for row in found] == expected.tolist()


@pytest.mark.parametrize("function", ["default", "mod", "hive"])
@pytest.mark.parametrize("nullable", [True, False], ids=["nullable", "not null"])
def test_a_row_that_the_table_refuses_has_some_bucket(
    spark: SparkSession, nullable: bool, function: str
) -> None:
    schema = table_schema([AtomicType("INT", nullable)], 7, function)
    df = spark.createDataFrame([(2**40,), (None,), (1,)], "k0 bigint")

    with ansi(spark, is_on=True):
        found = df.select(bucket_column(schema).alias("bucket")).collect()

    assert all(row.bucket in range(7) for row in found)


def test_names_are_taken_as_they_are(spark: SparkSession) -> None:
    name = "a.b`c"
    field = DataField(0, name, AtomicType("INT", False))
    options = TableOptions({"bucket": "1000"})
    schema = TableSchema(0, (field,), 1, primary_keys=(name,), options=options)
    df = frame(spark, (field,), hard_table((field,), [[1]]))

    row = df.select(bucket_column(schema), key_hash_column(schema)).first()

    assert row is not None
    assert row[0] == 1465514398 % 1000


@pytest.mark.parametrize("count", [-2, -1, 0])
def test_only_a_fixed_number_of_buckets_determines_the_bucket(count: int) -> None:
    with pytest.raises(InvalidInput, match=f"bucket is {count}"):
        bucket_column(table_schema([AtomicType("INT")], count))


def test_a_key_that_the_function_does_not_take_is_refused() -> None:
    with pytest.raises(InvalidInput, match="mod needs one column"):
        bucket_column(table_schema([AtomicType("STRING")], 4, "mod"))


# --- hashes of keys and partitions ----------------------------------------------------------------


def test_rows_of_one_key_or_partition_have_one_number(spark: SparkSession) -> None:
    fields = tuple(
        DataField(index, name, AtomicType(kind, False))
        for index, (name, kind) in enumerate([("day", "DATE"), ("id", "BIGINT"), ("v", "STRING")])
    )
    schema = TableSchema(0, fields, 3, partition_keys=("day",), primary_keys=("day", "id"))
    df = spark.range(1000).selectExpr(
        "date_from_unix_date(int(id % 3)) as day", "id % 100 as id", "string(id) as v"
    )

    numbers = df.select("day", "id", key_hash_column(schema), partition_hash_column(schema))
    seen = {tuple(row) for row in numbers.collect()}

    assert len({(row[1], row[2]) for row in seen}) == len({row[2] for row in seen}) == 100
    assert len({(row[0], row[3]) for row in seen}) == len({row[3] for row in seen}) == 3

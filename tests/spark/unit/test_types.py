"""The type contract, by itself and against what Spark really hands over and takes."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import types as t
from pyspark.sql.pandas.types import to_arrow_schema

from emberlake.errors import DataMismatch, InvalidSchema, Unsupported
from emberlake.formats.nested import map_leaf_types
from emberlake.spark.types import (
    arrow_input_schema,
    handed_out,
    new_table_fields,
    paimon_fields,
    spark_schema,
    to_paimon_type,
    to_spark_batch,
    to_spark_type,
)
from emberlake.spec.values import from_arrow_array
from emberlake.types import (
    ArrayType,
    AtomicType,
    DataField,
    MapType,
    MultisetType,
    RowType,
    VectorType,
)
from emberlake.write.align import align
from spark.border import (
    Source,
    a_field,
    data_types,
    hard_rows,
    hard_table,
    in_micros,
    shown,
    through_spark,
    values,
    wide_fields,
)

INT = AtomicType("INT")
NESTED = [
    ArrayType(True, INT),
    MapType(True, AtomicType("STRING", False), INT),
    MultisetType(True, AtomicType("STRING", False)),
    RowType(True, (DataField(0, "a", INT), DataField(1, "b", AtomicType("STRING")))),
]
BOTH_WAYS = [
    ("BOOLEAN", t.BooleanType()),
    ("TINYINT", t.ByteType()),
    ("SMALLINT", t.ShortType()),
    ("INT", t.IntegerType()),
    ("BIGINT", t.LongType()),
    ("FLOAT", t.FloatType()),
    ("DOUBLE", t.DoubleType()),
    ("DECIMAL(38, 18)", t.DecimalType(38, 18)),
    ("STRING", t.StringType()),
    ("BYTES", t.BinaryType()),
    ("DATE", t.DateType()),
    ("TIME(3)", t.TimeType(3)),
    ("TIMESTAMP(6)", t.TimestampNTZType()),
    ("TIMESTAMP_LTZ(6)", t.TimestampType()),
]


# --- from type to type ----------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "spark_type"), BOTH_WAYS)
def test_a_plain_type_has_its_counterpart(text, spark_type):
    assert to_spark_type(AtomicType(text)) == spark_type
    assert to_paimon_type(spark_type) == AtomicType(text)
    assert to_paimon_type(spark_type, False) == AtomicType(text, False)


@pytest.mark.parametrize(
    ("text", "spark_type"),
    [
        ("CHAR(3)", t.StringType()),
        ("VARCHAR(3)", t.StringType()),
        ("BINARY(3)", t.BinaryType()),
        ("VARBINARY(3)", t.BinaryType()),
        ("TIME(9)", t.TimeType(6)),
        ("TIMESTAMP(0)", t.TimestampNTZType()),
        ("TIMESTAMP(9)", t.TimestampNTZType()),
        ("TIMESTAMP_LTZ(9)", t.TimestampType()),
    ],
)
def test_spark_has_no_lengths_and_one_precision_of_timestamps(text, spark_type):
    assert to_spark_type(AtomicType(text)) == spark_type


def test_nested_types_keep_what_may_be_null():
    row = RowType(True, (DataField(0, "x", AtomicType("INT", False)), DataField(1, "y", INT)))
    nested = MapType(True, AtomicType("STRING", False), ArrayType(False, row))

    spark_type = t.MapType(
        t.StringType(),
        t.ArrayType(
            t.StructType(
                [t.StructField("x", t.IntegerType(), False), t.StructField("y", t.IntegerType())]
            )
        ),
        False,
    )
    assert to_spark_type(nested) == spark_type
    assert to_paimon_type(spark_type) == nested


def test_a_multiset_is_a_map_from_element_to_count():
    assert to_spark_type(MultisetType(True, AtomicType("STRING", False))) == t.MapType(
        t.StringType(), t.IntegerType(), False
    )


@pytest.mark.parametrize(
    "data_type",
    [AtomicType("VARIANT"), AtomicType("BLOB"), VectorType(True, AtomicType("FLOAT"), 3)],
    ids=str,
)
def test_a_type_that_the_engine_does_not_read_is_refused(data_type):
    with pytest.raises(Unsupported, match="cannot be read yet"):
        to_spark_type(ArrayType(True, data_type))


class _Point(t.UserDefinedType):
    @classmethod
    def sqlType(cls):  # noqa: N802
        return t.DoubleType()


@pytest.mark.parametrize(
    ("spark_type", "name"),
    [
        (t.DayTimeIntervalType(), "interval day to second"),
        (t.YearMonthIntervalType(), "interval year to month"),
        (t.CalendarIntervalType(), "interval"),
        (t.NullType(), "void"),
        (_Point(), "_Point"),
        (t.StringType("UTF8_LCASE"), "string collate UTF8_LCASE"),
        (t.DecimalType(5, -2), r"decimal\(5,-2\)"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_a_spark_type_that_no_table_has_is_refused_by_name(spark_type, name):
    with pytest.raises(InvalidSchema, match=name):
        to_paimon_type(t.ArrayType(spark_type))


def test_variant_is_refused_as_not_supported():
    with pytest.raises(Unsupported, match="variant cannot be written yet"):
        to_paimon_type(t.VariantType())


def test_char_and_varchar_keep_their_length():
    assert to_paimon_type(t.CharType(3)) == AtomicType("CHAR(3)")
    assert to_paimon_type(t.VarcharType(3)) == AtomicType("VARCHAR(3)")


def test_the_documented_table_is_the_contract():
    page = Path(__file__).parents[3] / "docs" / "types.md"
    rows = [line.split(" | ") for line in page.read_text().splitlines() if line.startswith("| `")]
    documented = {row[0].strip("| `"): row[1].strip("`") for row in rows}

    types = [*(AtomicType(text) for text in documented if "<" not in text), *NESTED]
    assert {str(kind): to_spark_type(kind).simpleString() for kind in types} == {
        str(AtomicType(text)) if "<" not in text else text: spark_type
        for text, spark_type in documented.items()
    }


# --- from DataFrame to columns --------------------------------------------------------------------


def test_the_columns_of_a_dataframe_get_ids_and_descriptions():
    point = t.StructType([t.StructField("x", t.IntegerType()), t.StructField("y", t.LongType())])
    struct = t.StructType(
        [
            t.StructField("p", point, False, {"comment": "where"}),
            t.StructField("s", t.StringType()),
        ]
    )

    fields = paimon_fields(struct)

    inner = (DataField(1, "x", INT), DataField(2, "y", AtomicType("BIGINT")))
    assert fields == (
        DataField(0, "p", RowType(False, inner), "where"),
        DataField(3, "s", AtomicType("STRING")),
    )
    assert spark_schema(fields) == struct


def test_a_string_that_spark_knows_the_length_of_keeps_it():
    struct = t.StructType(
        [
            t.StructField("c", t.StringType(), True, {"__CHAR_VARCHAR_TYPE_STRING": "char(3)"}),
            t.StructField("v", t.StringType(), True, {"__CHAR_VARCHAR_TYPE_STRING": "varchar(9)"}),
        ]
    )

    assert [str(f.type) for f in paimon_fields(struct)] == ["CHAR(3)", "VARCHAR(9)"]


def test_a_table_made_from_a_dataframe_takes_nulls_everywhere() -> None:
    inner = t.StructType([t.StructField("a", t.IntegerType(), nullable=False)])
    kinds = {"s": inner, "l": t.ArrayType(inner, False), "m": t.MapType(t.LongType(), inner, False)}
    struct = t.StructType([t.StructField(name, kind, False) for name, kind in kinds.items()])

    assert [str(f.type) for f in new_table_fields(struct)] == [
        "ROW<a INT>",
        "ARRAY<ROW<a INT>>",
        "MAP<BIGINT NOT NULL, ROW<a INT>>",
    ]


def test_every_column_without_a_type_is_named_at_once():
    struct = (
        t.StructType().add("v", t.VariantType()).add("n", t.NullType()).add("i", t.IntegerType())
    )

    with pytest.raises(InvalidSchema, match="v: variant cannot be written yet; n: void has no"):
        paimon_fields(struct)
    with pytest.raises(Unsupported, match="v: variant"):
        paimon_fields(t.StructType([struct["v"], struct["i"]]))


# --- Arrow ----------------------------------------------------------------------------------------


@given(st.lists(data_types(), min_size=1, max_size=4))
def test_what_is_handed_out_is_what_spark_expects(types):
    fields = tuple(DataField(i, f"c{i}", data_type) for i, data_type in enumerate(types))

    assert handed_out(fields).equals(to_arrow_schema(spark_schema(fields), timezone="UTC"))


@given(st.data())
def test_values_survive_the_border(data):
    field = DataField(0, "c", data.draw(data_types()))
    column = data.draw(st.lists(values(field.type), max_size=5))
    table = hard_table([field], [column])

    crossed = to_spark_batch(table, handed_out((field,)))
    back = align(crossed, (field,))

    crossed.validate(full=True)
    expected = hard_table([field], [[in_micros(field.type, value) for value in column]])
    assert shown(back, [field]) == shown(expected, [field])


@given(st.data())
def test_a_slice_crosses_like_the_whole(data):
    field = DataField(0, "c", data.draw(data_types()))
    column = data.draw(st.lists(values(field.type), min_size=3, max_size=6))
    batch = hard_table([field], [column]).combine_chunks().to_batches()[0]
    schema = handed_out((field,))

    part = to_spark_batch(batch.slice(1, 2), schema)

    part.validate(full=True)
    whole = to_spark_batch(batch, schema)
    one, other = (pa.Table.from_batches([b]) for b in (part, whole.slice(1, 2)))
    assert shown(align(one, (field,)), [field]) == shown(align(other, (field,)), [field])


def test_rows_that_need_no_change_are_handed_out_as_they_are():
    batch = pa.RecordBatch.from_pydict({"a": [1], "b": ["x"]})

    assert to_spark_batch(batch, batch.schema) is batch


def test_a_time_before_1970_is_cut_to_the_microsecond_before_it():
    field = DataField(0, "c", AtomicType("TIMESTAMP(9)"))
    table = hard_table([field], [[-1, -1000, -1001, 999, None, -(2**63)]])

    micros = to_spark_batch(table, handed_out((field,))).column("c")

    assert micros.cast(pa.int64()).to_pylist() == [-1, -1, -2, 0, None, -9223372036854776]


def test_a_timestamp_that_spark_cannot_count_to_names_its_column():
    field = DataField(0, "late", AtomicType("TIMESTAMP(0)"))
    table = hard_table([field], [[2**62 * 10**9]])

    with pytest.raises(DataMismatch, match="column late holds a timestamp"):
        to_spark_batch(table, handed_out((field,)))


def test_an_input_of_a_type_that_no_table_has_is_refused():
    with pytest.raises(InvalidSchema, match="interval"):
        arrow_input_schema(t.StructType().add("i", t.DayTimeIntervalType()))


# --- against Spark itself -------------------------------------------------------------------------


@contextmanager
def setting(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    before = spark.conf.get(name)
    spark.conf.set(name, value)
    yield
    spark.conf.set(name, before)


@pytest.mark.parametrize("large", ["false", "true"], ids=["small", "large"])
def test_every_hard_value_survives_spark(spark, large):
    fields = wide_fields()
    rows = hard_rows(fields)

    with setting(spark, "spark.sql.execution.arrow.useLargeVarTypes", large):
        seen = through_spark(spark, rows, fields)

    columns = [
        [in_micros(f.type, v) for v in from_arrow_array(f.type, rows[f.name])] for f in fields
    ]
    assert shown(align(seen, fields), fields) == shown(hard_table(fields, columns), fields)
    assert zone_free(seen.schema) == zone_free(expected_input(fields, large))


def expected_input(fields: tuple[DataField, ...], large: str) -> pa.Schema:
    schema = arrow_input_schema(spark_schema(fields))
    return schema if large == "false" else pa.schema([_with_large_texts(f) for f in schema])


def zone_free(schema: pa.Schema) -> str:
    """The schema as text, without what depends on the session's zone."""
    text = schema.to_string(show_field_metadata=False, truncate_metadata=False)
    return text.replace("tz=Asia/Kolkata", "tz=UTC")


def _with_large_texts(field: pa.Field) -> pa.Field:
    large = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}
    return field.with_type(map_leaf_types(field.type, lambda kind: large.get(kind, kind)))


@settings(max_examples=5, phases=(Phase.generate,))  # a job an example: none to shrink it
@given(st.data())
def test_any_value_survives_spark(spark, data):
    types = data.draw(st.lists(data_types(), min_size=20, max_size=20))
    fields = tuple(DataField(i, f"c{i}", kind) for i, kind in enumerate(types))
    columns = [data.draw(st.lists(values(f.type), min_size=5, max_size=5)) for f in fields]

    seen = through_spark(spark, hard_table(fields, columns), fields)

    columns = [[in_micros(f.type, v) for v in c] for f, c in zip(fields, columns, strict=True)]
    assert shown(align(seen, fields), fields) == shown(hard_table(fields, columns), fields)


def test_an_instant_is_the_same_instant_for_sql(spark):
    fields = (a_field("TIMESTAMP_LTZ(3)"), a_field("TIMESTAMP(3)"))
    (batch,) = to_spark_batch(hard_table(fields, [[0], [0]]), handed_out(fields)).to_batches()

    df = spark.range(1).coalesce(1).mapInArrow(Source(batch), spark_schema(fields))

    texts = df.selectExpr(*(f"cast({f.name} as string)" for f in fields)).first()
    assert list(texts) == ["1970-01-01 05:30:00", "1970-01-01 00:00:00"]
    assert df.schema == spark_schema(fields)

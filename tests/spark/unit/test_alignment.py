"""A DataFrame is checked against a table by its schema alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import types as t

from emberlake.errors import DataMismatch, InvalidSchema
from emberlake.options import TableOptions
from emberlake.spark.alignment import check_alignment, may_have_bad_rows
from emberlake.spark.types import arrow_input_schema
from emberlake.spec.schema import TableSchema
from emberlake.types import (
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
)
from emberlake.write.align import align

INT, TEXT = AtomicType("INT"), AtomicType("STRING")
READABLE = "cast it first, or pass on_bad_rows, which reads text"
HINT = "merge_schema=True would add it"
POINT = RowType(True, (DataField(1, "x", AtomicType("INT", False)), DataField(2, "y", INT)))


def a_schema(
    *,
    keys: tuple[str, ...] = (),
    partitions: tuple[str, ...] = (),
    options=None,
    **columns: DataType | str,
) -> TableSchema:
    types = (AtomicType(c) if isinstance(c, str) else c for c in columns.values())
    fields = tuple(DataField(i, n, c) for i, (n, c) in enumerate(zip(columns, types, strict=True)))
    raw = TableOptions(options or {})
    return TableSchema(0, fields, len(fields), partitions, keys, raw)


def a_frame(**columns: t.DataType) -> t.StructType:
    return t.StructType([t.StructField(name, kind) for name, kind in columns.items()])


def problems(df_schema: t.StructType, schema: TableSchema, write_columns=None) -> list[str]:
    """What the error lists, line by line; nothing where the DataFrame fits."""
    try:
        check_alignment(df_schema, schema, write_columns)
    except DataMismatch as error:
        title, *lines = str(error).split("\n  - ")
        assert title == "the DataFrame does not fit the table:"
        assert lines
        return lines
    return []


def test_equal_columns_in_any_order_fit():
    frame = a_frame(b=t.StringType(), a=t.IntegerType())

    assert problems(frame, a_schema(a="INT NOT NULL", b="STRING")) == []


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (t.LongType(), "TINYINT"),
        (t.ByteType(), "BIGINT"),
        (t.IntegerType(), "DECIMAL(3, 0)"),
        (t.IntegerType(), "DOUBLE"),
        (t.FloatType(), "DOUBLE"),
        (t.DecimalType(38, 0), "DECIMAL(3, 0)"),
        (t.StringType(), "CHAR(3)"),
        (t.StringType("UTF8_LCASE"), "STRING"),
        (t.VarcharType(9), "VARCHAR(3)"),
        (t.BinaryType(), "BINARY(3)"),
        (t.TimestampNTZType(), "TIMESTAMP(0)"),
        (t.TimestampType(), "TIMESTAMP_LTZ(9)"),
        (t.TimeType(6), "TIME(3)"),
        (t.NullType(), "INT"),
    ],
    ids=str,
)
def test_values_that_may_fit_are_left_to_the_tasks(given, wanted):
    assert problems(a_frame(a=given), a_schema(a=wanted)) == []


@pytest.mark.parametrize(
    ("given", "wanted", "problem"),
    [
        (
            t.StringType(),
            "INT",
            f"string cannot be written to INT; {READABLE}",
        ),
        (t.DoubleType(), "FLOAT", "double cannot be written to FLOAT; cast it first"),
        (
            t.DoubleType(),
            "DECIMAL(9, 2)",
            "double cannot be written to DECIMAL(9, 2); cast it first",
        ),
        (t.DateType(), "TIMESTAMP(6)", "date cannot be written to TIMESTAMP(6); cast it first"),
        (
            t.TimestampType(),
            "TIMESTAMP(6)",
            (
                "timestamp cannot be written to TIMESTAMP(6): the column has no time zone; cast it "
                "to timestamp_ntz, in the session's time zone"
            ),
        ),
        (
            t.TimestampNTZType(),
            "TIMESTAMP_LTZ(3)",
            (
                "timestamp_ntz cannot be written to TIMESTAMP(3) WITH LOCAL TIME ZONE: the column "
                "has a time zone; cast it to timestamp, in the session's time zone"
            ),
        ),
        (
            t.DayTimeIntervalType(),
            "BIGINT",
            "interval day to second cannot be written to BIGINT; cast it first",
        ),
        (t.VariantType(), "STRING", "variant cannot be written to STRING; cast it first"),
        (t.NullType(), "INT NOT NULL", "is always null, and the column is NOT NULL"),
        (t.StringType(), ArrayType(True, TEXT), "string cannot be written to ARRAY<STRING>"),
        (
            t.ArrayType(t.StringType()),
            "STRING",
            "array<string> cannot be written to STRING; cast it first",
        ),
    ],
    ids=lambda x: "" if isinstance(x, str) else str(x),
)
def test_a_type_that_never_fits_is_refused_with_a_remedy(given, wanted, problem):
    assert problems(a_frame(a=given), a_schema(a=wanted)) == [f"a: {problem}"]


def test_every_difference_is_in_one_error():
    frame = a_frame(Name=t.StringType(), price=t.StringType(), extra=t.IntegerType())
    frame.add("twice", t.StringType()).add("twice", t.StringType())
    schema = a_schema(id="INT NOT NULL", name="STRING", price="DOUBLE", twice="STRING")

    assert problems(frame, schema) == [
        "twice: is given more than once",
        "Name: is not a column of the table (it has name: names must agree in case)",
        f"price: string cannot be written to DOUBLE; {READABLE}",
        f"extra: is not a column of the table (it has id, name, price, twice; {HINT})",
        "id: is missing, and the column is NOT NULL",
    ]


def test_a_new_column_without_a_type_cannot_be_added():
    frame = a_frame(a=t.IntegerType(), n=t.NullType())

    assert problems(frame, a_schema(a="INT")) == [
        "n: is not a column of the table, and NULL has no type; cast it"
    ]


def test_rows_without_columns_are_refused_since_nobody_counts_them():
    assert problems(a_frame(), a_schema(a="INT")) == ["it has no columns"]


def test_a_difference_inside_of_a_column_is_named_by_its_path():
    given = t.StructType([t.StructField("y", t.StringType()), t.StructField("X", t.ByteType())])
    frame = a_frame(p=t.ArrayType(given), m=t.MapType(t.LongType(), t.ArrayType(t.DateType())))
    schema = a_schema(p=ArrayType(True, POINT), m=MapType(True, TEXT, ArrayType(True, INT)))

    assert problems(frame, schema) == [
        f"p.element.X: is not in {POINT} (it has x: names must agree in case)",
        "p.element.x: is missing, and NOT NULL",
        "p.element.y: string cannot be written to INT; cast it first",
        "m.key: bigint cannot be written to STRING; cast it first",
        "m.value.element: date cannot be written to INT; cast it first",
    ]


def test_a_map_to_counts_fits_a_multiset():
    schema = a_schema(s=MultisetType(True, AtomicType("STRING", False)))

    assert problems(a_frame(s=t.MapType(t.StringType(), t.LongType())), schema) == []
    assert problems(a_frame(s=t.MapType(t.StringType(), t.StringType())), schema) == [
        "s.value: string cannot be written to INT NOT NULL; cast it first"
    ]


def test_a_column_with_a_default_may_be_left_out():
    good = DataField(0, "a", AtomicType("INT", False), default_value="1")
    bad = DataField(1, "b", AtomicType("INT", False), default_value="one")
    given = DataField(2, "c", AtomicType("INT"))
    frame = a_frame(c=t.IntegerType())

    assert problems(frame, TableSchema(0, (good, given), 2)) == []
    (problem,) = problems(frame, TableSchema(0, (good, bad, given), 2))
    assert problem.startswith("b: is missing, and its default value cannot be used")


def test_a_declared_subset_is_neither_more_nor_less():
    schema = a_schema(a="INT", b="INT", c="INT")

    assert problems(a_frame(a=t.IntegerType()), schema, ["a"]) == []
    assert problems(a_frame(a=t.IntegerType(), b=t.IntegerType()), schema, ["a", "c"]) == [
        "b: is not among the columns declared by with_write_type",
        "c: is declared by with_write_type but not given",
    ]


# --- columns whose nulls nobody meant -------------------------------------------------------------

REPLACED = {"keys": ("id",), "id": "INT NOT NULL", "a": "INT", "b": "INT"}


def test_rows_that_replace_others_have_all_columns_unless_declared():
    schema = a_schema(**REPLACED)
    frame = a_frame(id=t.IntegerType(), a=t.IntegerType())

    (problem,) = problems(frame, schema)

    assert problem.startswith("b: left out, and would become null: with merge-engine=deduplicate")
    assert problems(frame, schema, ["id", "a"]) == []
    assert problems(frame, a_schema(**REPLACED, options={"merge-engine": "partial-update"})) == []


def test_whether_all_rows_are_deletes_is_seen_by_the_tasks():
    frame = a_frame(id=t.IntegerType(), _row_kind=t.StringType())
    with_kind = a_frame(id=t.IntegerType(), kind=t.StringType())
    telling = a_schema(**REPLACED, kind="STRING", options={"rowkind.field": "kind"})

    assert problems(frame, a_schema(**REPLACED)) == []
    assert problems(with_kind, telling) == []


def test_the_partition_is_only_left_out_of_a_key_table_if_a_delete_finds_it():
    columns = {"id": "INT NOT NULL", "day": "STRING"}
    schema = a_schema(keys=("id",), partitions=("day",), options={"bucket": "2"}, **columns)
    frame = a_frame(id=t.IntegerType(), _row_kind=t.StringType())

    (problem,) = problems(frame, schema)

    assert problem.startswith("day: is missing, and a key is looked for in the partition")
    moving = a_schema(keys=("id",), partitions=("day",), **columns)
    assert problems(frame, moving) == []
    assert problems(a_frame(id=t.IntegerType()), moving) != []


# --- row kinds ------------------------------------------------------------------------------------


def test_a_key_table_takes_row_kinds():
    frame = a_frame(id=t.IntegerType(), _row_kind=t.StringType())

    assert problems(frame, a_schema(keys=("id",), id="INT NOT NULL")) == []


def test_row_kinds_are_texts_for_keys_and_given_once():
    frame = a_frame(id=t.IntegerType(), _row_kind=t.IntegerType())
    frame.add("_row_kind", t.StringType())
    schema = a_schema(id="INT", kind="STRING", options={"rowkind.field": "kind"})

    assert problems(frame, schema) == [
        "_row_kind: is given more than once",
        "_row_kind: tells row kinds, but the table has no primary key: its rows are all inserts",
        (
            "_row_kind: row kinds come from the column kind of the table (rowkind.field): give "
            "them only once"
        ),
        "_row_kind: row kinds are text, not int",
        "kind: is missing, and tells row kinds (rowkind.field)",
    ]


def test_a_column_of_the_table_that_is_called_so_is_one_like_any_other():
    schema = a_schema(id="INT", _row_kind="INT")

    assert problems(a_frame(id=t.IntegerType(), _row_kind=t.IntegerType()), schema) == []


# --- the rules are those of the write -------------------------------------------------------------


SPARK_TYPES = st.recursive(
    st.sampled_from(
        [
            t.IntegerType(),
            t.LongType(),
            t.DoubleType(),
            t.DecimalType(9, 2),
            t.StringType(),
            t.BinaryType(),
            t.DateType(),
            t.TimeType(6),
            t.TimestampType(),
            t.TimestampNTZType(),
            t.BooleanType(),
            t.NullType(),
        ]
    ),
    lambda inner: (
        st.builds(t.ArrayType, inner)
        | st.builds(t.MapType, inner, inner)
        | st.lists(st.tuples(st.sampled_from("xyz"), inner), min_size=1, max_size=3).map(
            lambda pairs: t.StructType([t.StructField(n, k) for n, k in pairs])
        )
    ),
    max_leaves=4,
)
PAIMON_TYPES = st.recursive(
    st.builds(
        AtomicType,
        st.sampled_from(
            [
                "INT",
                "DOUBLE",
                "DECIMAL(5,0)",
                "STRING",
                "CHAR(2)",
                "BYTES",
                "DATE",
                "TIME(3)",
                "TIMESTAMP(3)",
                "TIMESTAMP_LTZ(9)",
                "BOOLEAN",
            ]
        ),
        st.booleans(),
    ),
    lambda inner: (
        st.builds(ArrayType, st.booleans(), inner)
        | st.builds(MapType, st.booleans(), inner, inner)
        | st.builds(MultisetType, st.booleans(), inner)
        | st.lists(inner, min_size=1, max_size=3).map(
            lambda kinds: RowType(
                True,
                tuple(
                    DataField(i, n, k) for i, (n, k) in enumerate(zip("xyz", kinds, strict=False))
                ),
            )
        )
    ),
    max_leaves=4,
)


@given(
    st.lists(st.tuples(st.sampled_from("abcd"), SPARK_TYPES), min_size=1, max_size=4),
    st.lists(PAIMON_TYPES, min_size=1, max_size=3),
    st.none() | st.sets(st.sampled_from("abc")),
)
def test_a_dataframe_is_refused_if_and_only_if_its_rows_would_be(given, wanted, declared):
    frame = t.StructType([t.StructField(name, kind) for name, kind in given])
    fields = tuple(
        DataField(i, name, k) for i, (name, k) in enumerate(zip("abc", wanted, strict=False))
    )
    declared = None if declared is None else sorted(declared & {f.name for f in fields})
    try:
        empty = arrow_input_schema(frame).empty_table()
    except InvalidSchema:  # rows of it do not even reach a worker
        assert problems(frame, TableSchema(0, fields, 9), declared) != []
        return
    # Only rows show that a column is always null.
    always_null = {n for n, k in given if isinstance(k, t.NullType)}
    fields = tuple(
        DataField(f.id, f.name, f.type.with_nullable(f.type.nullable or f.name in always_null))
        for f in fields
    )

    try:
        align(empty, fields, write_columns=declared)
        fits = True
    except DataMismatch:
        fits = False

    assert (problems(frame, TableSchema(0, fields, 9), declared) == []) == fits


@pytest.mark.parametrize(
    ("given", "wanted", "may"),
    [
        (t.LongType(), "BIGINT", False),
        (t.IntegerType(), "BIGINT", False),
        (t.LongType(), "INT", True),
        (t.LongType(), "BIGINT NOT NULL", True),
        (t.StringType(), "STRING", False),
        (t.StringType(), "VARCHAR(3)", True),
        (t.DoubleType(), "DOUBLE", False),
    ],
)
def test_the_schema_says_whether_a_row_may_be_refused(
    given: t.DataType, wanted: str, may: bool
) -> None:
    columns = t.StructType().add("c", given, True)

    assert may_have_bad_rows(columns, a_schema(c=wanted)) is may

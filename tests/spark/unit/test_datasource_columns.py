"""Which columns Spark reads, and that a schema of the user's means what it says."""

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
)

from builders import create_table
from emberlake import ColumnNotFound, InvalidOption
from emberlake.datasource.columns import choose_columns, offered_schema
from emberlake.datasource.options import SourceOptions
from emberlake.errors import DataMismatch, InvalidInput

COLUMNS = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("name", pa.string()),
        ("at", pa.timestamp("ns")),
        ("s", pa.struct([pa.field("x", pa.int32(), nullable=False), ("y", pa.string())])),
        ("list", pa.list_(pa.field("element", pa.int32(), nullable=False))),
    ]
)
SCHEMA = create_table(columns=COLUMNS).table_schema


def options(*columns: str, row_kind: bool = False) -> SourceOptions:
    return SourceOptions(
        identifier="db.t", catalog={}, table={}, columns=columns or None, with_kind=row_kind
    )


def asked(**columns: DataType) -> StructType:
    """A schema of the user's."""
    return StructType([StructField(name, kind) for name, kind in columns.items()])


def test_all_columns_are_offered_and_may_be_null() -> None:
    offered = offered_schema(options(), SCHEMA)

    assert offered.simpleString() == (
        "struct<id:bigint,name:string,at:timestamp_ntz,s:struct<x:int,y:string>,list:array<int>>"
    )
    assert all(field.nullable for field in offered)
    assert offered["list"].dataType.containsNull


def test_columns_reduce_what_is_offered() -> None:
    offered = offered_schema(options("name", "s.x"), SCHEMA)

    assert offered.simpleString() == "struct<name:string,s_x:int>"
    with pytest.raises(ColumnNotFound, match="nam"):
        offered_schema(options("nam"), SCHEMA)


def test_row_kinds_come_first_and_only_on_request() -> None:
    with_kind = offered_schema(options("id", row_kind=True), SCHEMA)

    assert with_kind.names == ["_row_kind", "id"]
    with pytest.raises(ColumnNotFound, match="row-kind=true"):
        choose_columns(options(), SCHEMA, asked(_row_kind=StringType(), id=LongType()))
    with pytest.raises(InvalidOption, match="needs the column _row_kind"):
        choose_columns(options(row_kind=True), SCHEMA, asked(id=LongType()))


def test_a_column_of_that_name_does_not_go_with_row_kinds() -> None:
    own = create_table(columns=pa.schema([("_row_kind", pa.string())])).table_schema

    with pytest.raises(InvalidOption, match="already has a column"):
        offered_schema(options(row_kind=True), own)


def test_a_schema_chooses_columns_in_its_order() -> None:
    columns = choose_columns(options(), SCHEMA, asked(name=StringType(), id=LongType()))
    batch = pa.RecordBatch.from_pydict({"id": [1], "name": ["a"]})

    assert [f.name for f in columns.projection.fields] == ["name", "id"]
    assert columns.to_spark(batch).schema == pa.schema([("name", pa.string()), ("id", pa.int64())])


def test_a_schema_chooses_of_what_columns_leave() -> None:
    columns = choose_columns(options("s.x", "name"), SCHEMA, asked(s_x=IntegerType()))

    assert [output.path for output in columns.projection.outputs] == [("s", "x")]


def test_rows_have_the_types_and_nulls_that_spark_expects() -> None:
    columns = choose_columns(options(), SCHEMA, offered_schema(options(), SCHEMA))
    batch = pa.RecordBatch.from_pydict(
        {"id": [1], "name": ["a"], "at": [1_999], "s": [{"x": 1, "y": "b"}], "list": [[1]]},
        schema=COLUMNS,
    )

    rows = columns.to_spark(batch)

    assert rows.schema.field("at").type == pa.timestamp("us")
    assert rows.schema.field("list").type.value_field.nullable
    assert rows.schema.field("s").type.field("x").nullable
    assert rows.column("at").cast(pa.int64()).to_pylist() == [1]


def test_a_schema_that_does_not_fit_is_refused_with_every_difference() -> None:
    wrong = asked(id=IntegerType(), s=asked(x=IntegerType()), at=TimestampNTZType())
    wrong = wrong.add("name", StringType(), nullable=False)

    with pytest.raises(DataMismatch) as refused:
        choose_columns(options(), SCHEMA, wrong)

    for part in ("id is bigint not null, not int", "name is string", "s is struct<x:int,y:string>"):
        assert part in str(refused.value)
    assert "at is" not in str(refused.value)


def test_a_schema_may_say_not_null_where_the_table_does() -> None:
    columns = choose_columns(options(), SCHEMA, StructType([StructField("id", LongType(), False)]))

    assert not columns.schema.field("id").nullable


def test_a_schema_names_a_column_that_there_is() -> None:
    with pytest.raises(ColumnNotFound, match="no columns nam, x to read; choose from id, name"):
        choose_columns(options(), SCHEMA, asked(nam=StringType(), x=IntegerType()))
    with pytest.raises(InvalidInput, match="needs at least one column"):
        choose_columns(options(row_kind=True), SCHEMA, asked(_row_kind=StringType()))

"""What a new table may be declared by."""

import subprocess
import sys

import polars as pl
import pyarrow as pa
import pytest
from pyspark.sql import types as spark

from emberlake.catalog.declarations import declared_schema
from emberlake.errors import InvalidInput, InvalidSchema
from emberlake.spec.schema import Schema
from emberlake.types import AtomicType, DataField

ARROW = pa.schema([pa.field("id", pa.int64(), nullable=False), ("day", pa.string())])
STRUCT = spark.StructType().add("id", "long", nullable=False).add("day", "string")
FIELDS = (
    DataField(0, "id", AtomicType("BIGINT", nullable=False)),
    DataField(1, "day", AtomicType("STRING")),
)
KEYS = ["day"], ["day", "id"]


def test_a_schema_is_taken_as_it_is() -> None:
    schema = Schema(FIELDS, *KEYS, {"bucket": "1"}, "about")

    assert declared_schema(schema) is schema


@pytest.mark.parametrize("columns", [ARROW, STRUCT], ids=["Arrow", "Spark"])
def test_columns_come_with_keys_and_options(columns: pa.Schema | spark.StructType) -> None:
    schema = declared_schema(columns, *KEYS, {"bucket": "1"}, "about")

    assert schema == Schema(FIELDS, *KEYS, {"bucket": "1"}, "about")


@pytest.mark.parametrize(
    "beside",
    [{"partition_keys": ["day"]}, {"primary_keys": []}, {"options": {}}, {"comment": ""}],
    ids=lambda beside: next(iter(beside)),
)
def test_nothing_stands_beside_a_schema(beside) -> None:
    with pytest.raises(InvalidInput, match=f"a Schema has its own {next(iter(beside))}: pass"):
        declared_schema(Schema(FIELDS), **beside)


@pytest.mark.parametrize("other", [pa.table({"id": [1]}), {"id": "BIGINT"}, None, "id BIGINT"])
def test_what_has_no_columns_is_refused(other) -> None:
    with pytest.raises(InvalidInput, match=rf"not by {type(other).__name__}; .* pass its \.schema"):
        declared_schema(other)


def test_a_column_of_spark_without_a_type_is_refused() -> None:
    with pytest.raises(InvalidSchema, match="wait: "):
        declared_schema(spark.StructType().add("wait", spark.DayTimeIntervalType()))


def test_arrow_columns_load_no_spark() -> None:
    program = (
        "import sys, pyarrow; from emberlake.catalog.declarations import declared_schema; "
        "declared_schema(pyarrow.schema([('id', 'int64')])); sys.exit('pyspark' in sys.modules)"
    )

    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_the_schema_of_a_polars_frame_declares_a_table() -> None:
    frame = pl.DataFrame({"id": [1], "day": ["mon"]})

    schema = declared_schema(frame.schema)

    assert [(f.name, str(f.type)) for f in schema.fields] == [("id", "BIGINT"), ("day", "STRING")]


@pytest.mark.parametrize("keys", ["partition_keys", "primary_keys"])
def test_keys_are_a_list_and_not_one_text(keys: str) -> None:
    with pytest.raises(InvalidSchema, match=rf"{keys} is a list of columns, as in \['day'\]"):
        declared_schema(ARROW, **{keys: "day"})

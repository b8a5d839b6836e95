"""Values of serialized rows as readable text and as JSON."""

import json
import math
from decimal import Decimal

import pyarrow as pa
import pytest

from emberlake.inspect.text import (
    json_objects,
    json_rows,
    json_values,
    partition_name,
    partition_values,
)
from emberlake.spec.binary_row import encode_row
from emberlake.spec.literals import cast_literal
from emberlake.spec.values import to_arrow_array
from emberlake.types import AtomicType, DataField


@pytest.mark.parametrize(
    ("type_text", "value", "text"),
    [
        ("STRING", "a/b=c", "a/b=c"),
        ("STRING", "", ""),
        ("INT", -5, "-5"),
        ("BOOLEAN", True, "true"),
        ("DATE", 20_630, "2026-06-26"),
        ("DECIMAL(10, 2)", Decimal("1.50"), "1.50"),
        ("DECIMAL(30, 2)", Decimal("-1.50"), "-1.50"),
        ("TIME(3)", 1500, "00:00:01.5"),
        ("TIMESTAMP(3)", 1_500_000_000, "1970-01-01 00:00:01.5"),
        ("TIMESTAMP(9)", 1, "1970-01-01 00:00:00.000000001"),
        ("TIMESTAMP(6) WITH LOCAL TIME ZONE", 0, "1970-01-01 00:00:00Z"),
        ("DOUBLE", 1.5, "1.5"),
        ("FLOAT", 1.100000023841858, "1.1"),
        ("BYTES", b"abc", "abc"),
    ],
)
def test_partition_values_are_readable_and_can_be_given_back(type_text, value, text):
    data_type = AtomicType(type_text)
    fields = [DataField(0, "p", data_type)]

    ((found,),) = partition_values(fields, [encode_row([data_type], [value])], "none")

    assert found == text
    assert cast_literal(data_type, found) == value


def test_null_partition_values_have_the_name_that_was_given():
    fields = [DataField(0, "a", AtomicType("INT")), DataField(1, "b", AtomicType("STRING"))]
    types = [field.type for field in fields]
    rows = [encode_row(types, values) for values in ([None, "x"], [1, None], [None, "x"])]

    found = partition_values(fields, rows, "NULL")

    assert found == [("NULL", "x"), ("1", "NULL"), ("NULL", "x")]
    assert partition_name(["a", "b"], found[0]) == "a=NULL/b=x"


def test_without_partition_columns_there_are_no_values_and_no_name():
    assert partition_values([], [bytes(12)], "NULL") == [()]
    assert partition_name([], ()) == ""


@pytest.mark.parametrize(
    ("type_text", "value", "expected"),
    [
        ("BIGINT", 2**63 - 1, 2**63 - 1),
        ("BOOLEAN", False, False),
        ("DOUBLE", 1e300, 1e300),
        ("DOUBLE", math.inf, "inf"),
        ("DOUBLE", math.nan, "nan"),
        ("STRING", 'say "hi"\n\\ ☃', 'say "hi"\n\\ ☃'),
        ("BYTES", b"\xff\x00", "ff00"),
        ("DECIMAL(10, 2)", Decimal("1.50"), "1.50"),
        ("INT", None, None),
        ("STRING", None, None),
    ],
)
def test_every_value_becomes_valid_json(type_text, value, expected):
    data_type = AtomicType(type_text)

    (text,) = json_values(data_type, to_arrow_array(data_type, [value])).to_pylist()

    assert json.loads(text) == expected


def test_rows_become_json_lists():
    types = [AtomicType("INT"), AtomicType("STRING")]
    rows = pa.array(
        [encode_row(types, [1, "a"]), encode_row(types, [None, None])], pa.large_binary()
    )

    assert json_rows(types, rows).to_pylist() == ['[1,"a"]', "[null,null]"]
    assert json_rows([], pa.array([bytes(12)], pa.large_binary())).to_pylist() == ["[]"]


def test_columns_become_json_objects():
    columns = [pa.array(["1", "2"]), pa.array(["null", '"x"'])]

    assert json_objects(['a"', "b"], columns, 2).to_pylist() == [
        '{"a\\"":1,"b":null}',
        '{"a\\"":2,"b":"x"}',
    ]
    assert json_objects([], [], 2).to_pylist() == ["{}", "{}"]

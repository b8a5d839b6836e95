"""Avro files: their schema, plain values, and containers of other writers."""

import io
import json
from decimal import Decimal

import fastavro
import pyarrow as pa
import pytest

from data_files import PATH, fields_of, read_file, reader_of, storage_with, table_of, write_file
from emberlake.errors import CorruptFile, DataMismatch, Unsupported
from emberlake.formats import open_writer
from emberlake.io import MemoryStorage
from emberlake.options import TableOptions
from emberlake.types import ArrayType, AtomicType, DataField, MapType, MultisetType, RowType

_RECORD = "org.apache.paimon.avro.generated.record"


def schema_of(*fields: DataField) -> list:
    raw = write_file("avro", fields).read(PATH)
    schema = json.loads(fastavro.reader(io.BytesIO(raw)).metadata["avro.schema"])
    assert (schema["type"], schema["name"]) == ("record", _RECORD)
    return schema["fields"]


def optional(name: str, kind: object) -> dict:
    return {"name": name, "type": ["null", kind], "default": None}


@pytest.mark.parametrize(
    ("column_type", "expected"),
    [
        ("BOOLEAN", "boolean"),
        ("TINYINT", "int"),
        ("SMALLINT", "int"),
        ("BIGINT", "long"),
        ("CHAR(3)", "string"),
        ("BINARY(3)", "bytes"),
        ("DATE", {"type": "int", "logicalType": "date"}),
        ("TIME(3)", {"type": "int", "logicalType": "time-millis"}),
        ("TIMESTAMP(0)", {"type": "long", "logicalType": "timestamp-millis"}),
        ("TIMESTAMP(6)", {"type": "long", "logicalType": "timestamp-micros"}),
        ("TIMESTAMP_LTZ(3)", {"type": "long", "logicalType": "local-timestamp-millis"}),
        ("TIMESTAMP_LTZ(4)", {"type": "long", "logicalType": "local-timestamp-micros"}),
        (
            "DECIMAL(20, 4)",
            {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 4},
        ),
    ],
)
def test_atomic_types_are_written_as_java_does(column_type: str, expected: object) -> None:
    assert schema_of(*fields_of(c=column_type)) == [optional("c", expected)]


def test_a_not_null_column_is_no_union() -> None:
    assert schema_of(*fields_of(c="INT NOT NULL")) == [{"name": "c", "type": "int"}]


def test_nested_types_are_written_as_java_does() -> None:
    row = RowType(True, (DataField(1, "x", AtomicType("INT")),))
    double = ArrayType(True, AtomicType("DOUBLE"))
    fields = fields_of(
        a=ArrayType(True, row),
        m=MapType(True, AtomicType("STRING"), row),
        n=MapType(True, AtomicType("INT NOT NULL"), double),
        s=MultisetType(True, AtomicType("STRING")),
    )

    def record(name: str) -> dict:
        return {"type": "record", "name": name, "fields": [optional("x", "int")]}

    pair = {
        "type": "record",
        "name": f"{_RECORD}_n",
        "fields": [
            {"name": "key", "type": "int"},
            optional("value", {"type": "array", "items": ["null", "double"]}),
        ],
    }
    assert schema_of(*fields) == [
        optional("a", {"type": "array", "items": ["null", record(f"{_RECORD}_a")]}),
        optional("m", {"type": "map", "values": ["null", record(f"{_RECORD}_m")]}),
        optional("n", {"type": "array", "logicalType": "map", "items": pair}),
        optional("s", {"type": "map", "values": ["null", "int"]}),
    ]


def test_records_never_share_a_name() -> None:
    row = RowType(True, (DataField(1, "x", AtomicType("INT")),))
    fields = fields_of(a=RowType(True, (DataField(2, "b", row),)), a_b=row)
    table = table_of(fields, [((1,),)], [(2,)])

    assert read_file(write_file("avro", fields, table), fields, "avro").equals(table)


@pytest.mark.parametrize("column_type", ["TIMESTAMP(9)", "TIMESTAMP_LTZ(7)", "TIME(6)"])
def test_what_avro_cannot_hold_is_refused_by_name(column_type: str) -> None:
    with pytest.raises(Unsupported, match="fine"):
        open_writer(MemoryStorage(), PATH, fields_of(fine=column_type), TableOptions(), "avro")


def test_names_that_avro_forbids_are_refused() -> None:
    with pytest.raises(Unsupported, match="two words"):
        open_writer(
            MemoryStorage(),
            PATH,
            (DataField(0, "two words", AtomicType("INT")),),
            TableOptions(),
            "avro",
        )


def test_other_readers_see_the_values() -> None:
    fields = fields_of(d="DECIMAL(38, 2)", t="TIMESTAMP(6)", day="DATE")
    numbers = ["0.00", "-0.01", "1.27", "1.28", "-1.28", "-1.29", "999999999999999999999999999.99"]
    table = table_of(fields, map(Decimal, numbers), [0] * 7, range(7))

    raw = write_file("avro", fields, table).read(PATH)

    assert [str(record["d"]) for record in fastavro.reader(io.BytesIO(raw))] == numbers
    assert read_file(storage_with(raw), fields, "avro").equals(table)


def test_many_rows_are_many_blocks() -> None:
    fields = fields_of(s="STRING")
    table = table_of(fields, [f"{i:0100}" for i in range(8000)])
    storage = write_file("avro", fields, table)

    with reader_of(storage, fields, "avro") as reader:
        assert reader.num_rows == 8000
        assert [b.num_rows for _, b in reader.read(fields, batch_rows=3000)] == [3000, 3000, 2000]
        assert reader.read_table(fields).equals(table)


def written_by_fastavro(schema: object, records: list, codec: str = "null"):
    sink = io.BytesIO()
    fastavro.writer(sink, schema, records, codec=codec)
    return storage_with(sink.getvalue())


@pytest.mark.parametrize("codec", ["null", "deflate", "snappy", "bzip2", "xz"])
def test_every_codec_of_avro_is_read(codec: str) -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "long"}]}
    storage = written_by_fastavro(schema, [{"a": i} for i in range(100)], codec)

    assert read_file(storage, fields_of(a="BIGINT"), "avro").column("a").to_pylist() == [
        *range(100)
    ]


def test_rows_in_a_union_and_types_by_name_are_read() -> None:
    point = {"type": "record", "name": "point", "fields": [{"name": "x", "type": "int"}]}
    schema = [
        "null",
        {
            "type": "record",
            "name": "r",
            "namespace": "n",
            "fields": [{"name": "p", "type": point}, {"name": "q", "type": ["null", "point"]}],
        },
    ]
    storage = written_by_fastavro(
        schema, [{"p": {"x": 1}, "q": None}, {"p": {"x": 2}, "q": {"x": 3}}]
    )
    row = RowType(True, (DataField(1, "x", AtomicType("BIGINT")),))

    table = read_file(storage, fields_of(p=row, q=row), "avro")

    assert table.to_pylist() == [{"p": {"x": 1}, "q": None}, {"p": {"x": 2}, "q": {"x": 3}}]


@pytest.mark.parametrize(
    ("kind", "value", "column_type", "expected"),
    [
        ({"type": "long", "logicalType": "timestamp-micros"}, -1, "TIMESTAMP(3)", -1),
        ({"type": "long", "logicalType": "local-timestamp-millis"}, 5, "TIMESTAMP_LTZ(6)", 5000),
        ({"type": "long", "logicalType": "time-micros"}, 5999, "TIME(3)", 5),
        ({"type": "enum", "name": "e", "symbols": ["A", "B"]}, "B", "STRING", "B"),
        ({"type": "fixed", "name": "f", "size": 2}, b"ab", "BYTES", b"ab"),
    ],
)
def test_other_avro_types_become_the_column_type(kind, value, column_type, expected) -> None:
    plain = {k: v for k, v in kind.items() if k != "logicalType"}
    schema = {"type": "record", "name": "r", "fields": [{"name": "c", "type": plain}]}
    raw = written_by_fastavro(schema, [{"c": value}]).read(PATH)
    if plain != kind:  # write the number, then declare what it means
        schema["fields"][0]["type"] = kind
        sink = io.BytesIO()
        fastavro.writer(sink, schema, [{"c": value}])
        raw = sink.getvalue()

    array = read_file(storage_with(raw), fields_of(c=column_type), "avro").column("c").chunk(0)

    if pa.types.is_timestamp(array.type):
        array = array.view(pa.int64())
    elif pa.types.is_time(array.type):
        array = array.view(pa.int32())
    assert array.to_pylist() == [expected]


def test_a_decimal_of_another_scale_is_not_misread() -> None:
    kind = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 1}
    schema = {"type": "record", "name": "r", "fields": [{"name": "c", "type": kind}]}
    storage = written_by_fastavro(schema, [{"c": Decimal("1.5")}])

    with pytest.raises(CorruptFile, match="scale"):
        read_file(storage, fields_of(c="DECIMAL(9, 2)"), "avro")


def test_a_union_of_several_types_is_no_column() -> None:
    schema = {
        "type": "record",
        "name": "r",
        "fields": [{"name": "c", "type": ["null", "int", "string"]}],
    }
    storage = written_by_fastavro(schema, [{"c": 1}])

    with pytest.raises(CorruptFile, match="column c"):
        read_file(storage, fields_of(c="INT"), "avro")


def test_nulls_below_a_not_null_field_are_refused() -> None:
    row = RowType(True, (DataField(1, "x", AtomicType("INT NOT NULL")),))
    fields = fields_of(r=row)
    table = pa.table({"r": pa.array([{"x": None}], pa.struct([("x", pa.int32())]))})
    writer = open_writer(MemoryStorage(), PATH, fields, TableOptions(), "avro")

    with pytest.raises(DataMismatch):
        writer.write(table)
    writer.abort()

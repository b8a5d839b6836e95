"""Records become columns, whatever a writer made of the schema."""

import io
import json
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from emberlake.base.avro_blocks import Block, encode_container
from emberlake.errors import CorruptFile, Unsupported
from emberlake.store.avro_container import Column, decode_container, decode_rows

STATS = {
    "type": "record",
    "name": "stats",
    "fields": [
        {"name": "min", "type": "bytes"},
        {"name": "counts", "type": ["null", {"type": "array", "items": ["null", "long"]}]},
    ],
}
COLUMNS = (
    Column("name", ("name",), pa.large_string(), is_required=True),
    Column("size", ("size",), pa.int64()),
    Column("stats_min", ("stats", "min"), pa.large_binary()),
    Column("stats_counts", ("stats", "counts"), pa.large_list(pa.int64())),
    Column("words", ("words",), pa.large_list(pa.large_string())),
)


def record(*fields: tuple[str, Any]) -> dict[str, Any]:
    return {
        "type": "record",
        "name": "root",
        "fields": [{"name": name, "type": kind} for name, kind in fields],
    }


def encode(schema: Any, records: list[Any]) -> bytes:
    sink = io.BytesIO()
    fastavro.writer(sink, fastavro.parse_schema(schema), records, codec="zstandard")
    return sink.getvalue()


def rows(raw: bytes) -> list[tuple[Any, ...]]:
    table = decode_container(raw, "m", COLUMNS)
    assert [(f.name, f.type) for f in table.schema] == [(c.name, c.type) for c in COLUMNS]
    return [tuple(row.values()) for row in table.to_pylist()]


FULL = record(("name", "string"), ("size", "long"), ("stats", STATS),
              ("words", {"type": "array", "items": "string"}))  # fmt: skip


def test_records_become_columns() -> None:
    raw = encode(FULL, [
        {"name": "a", "size": 1, "stats": {"min": b"x", "counts": [1, None]}, "words": ["p", "q"]},
        {"name": "ü", "size": -5, "stats": {"min": b"", "counts": None}, "words": []},
        {"name": "", "size": 2**62, "stats": {"min": b"\0" * 9, "counts": []}, "words": [""]},
    ])  # fmt: skip

    assert rows(raw) == [
        ("a", 1, b"x", [1, None], ["p", "q"]),
        ("ü", -5, b"", None, []),
        ("", 2**62, b"\0" * 9, [], [""]),
    ]


def test_a_union_at_the_root_and_around_records_is_unwrapped() -> None:
    schema = ["null", record(("name", ["null", "string"]), ("stats", ["null", STATS]))]
    raw = encode(schema, [
        {"name": "a", "stats": {"min": b"x", "counts": [7]}},
        {"name": "b", "stats": None},
    ])  # fmt: skip

    assert rows(raw) == [("a", None, b"x", [7], None), ("b", None, None, None, None)]


def test_fields_in_another_order_and_unknown_ones_do_not_matter() -> None:
    extra = {"type": "map", "values": "int"}
    schema = record(("extra", extra), ("size", "int"), ("name", "string"))
    raw = encode(schema, [{"extra": {"x": 1}, "size": 3, "name": "a"}])

    assert rows(raw) == [("a", 3, None, None, None)]


def test_a_named_type_may_be_used_again_by_its_name() -> None:
    schema = record(("name", "string"), ("other", STATS), ("stats", "stats"))
    value = {"min": b"x", "counts": [1]}
    raw = encode(schema, [{"name": "a", "other": value, "stats": {**value, "min": b"y"}}])

    assert rows(raw) == [("a", None, b"y", [1], None)]


def test_names_follow_their_namespaces() -> None:
    schema = {
        **record(("name", "string"), ("other", STATS), ("stats", ["null", "org.x.stats"])),
        "namespace": "org.x",
    }
    raw = encode(schema, [{"name": "a", "other": {"min": b"", "counts": None}, "stats": None}])

    assert rows(raw) == [("a", None, None, None, None)]


def test_times_stay_numbers() -> None:
    schema = record(
        ("name", "string"), ("size", ["null", {"type": "long", "logicalType": "timestamp-millis"}])
    )
    raw = encode(schema, [{"name": "a", "size": 1_700_000_000_123}, {"name": "b", "size": None}])

    assert [row[1] for row in rows(raw)] == [1_700_000_000_123, None]


@pytest.mark.parametrize("is_nullable", [False, True])
def test_lists_of_records_may_hold_nulls_or_not(is_nullable: bool) -> None:
    items: Any = record(("f0", "string"), ("f1", "int"))
    items = {**items, "name": "item"}
    schema = record(
        ("ranges", ["null", {"type": "array", "items": ["null", items] if is_nullable else items}])
    )
    raw = encode(schema, [{"ranges": [{"f0": "a", "f1": 1}]}, {"ranges": None}, {"ranges": []}])
    kind = pa.struct([("f1", pa.int32()), ("f0", pa.large_string()), ("new", pa.int64())])
    columns = (Column("ranges", ("ranges",), pa.large_list(kind)),)

    table = decode_container(raw, "m", columns)

    assert table.column("ranges").to_pylist() == [[{"f1": 1, "f0": "a", "new": None}], None, []]


def test_records_of_several_blocks_follow_each_other() -> None:
    schema = json.dumps(record(("name", "string")))
    raw = encode_container(schema, "null", [Block(1, b"\x02a"), Block(2, b"\x02b\x02c")])

    assert [row[0] for row in rows(raw)] == ["a", "b", "c"]


def test_a_container_without_records_gives_empty_columns() -> None:
    assert rows(encode(FULL, [])) == []


def test_a_required_field_that_is_absent_is_an_error() -> None:
    raw = encode(record(("size", "long")), [{"size": 1}])

    with pytest.raises(CorruptFile, match="m is corrupt: some of its records lack name"):
        rows(raw)


@pytest.mark.parametrize("size", [0, 3, 30, 100])
def test_what_is_no_whole_container_is_an_error_that_names_the_file(size: int) -> None:
    raw = encode(FULL, [])

    with pytest.raises(CorruptFile, match="some/manifest is corrupt: it is not a whole Avro"):
        decode_container(raw[:size], "some/manifest", COLUMNS)


def test_an_unknown_codec_is_an_error_that_names_the_file() -> None:
    raw = encode_container("{}", "what", [])

    with pytest.raises(Unsupported, match="some/manifest is compressed with what"):
        decode_container(raw, "some/manifest", COLUMNS)


@pytest.mark.parametrize("data", [b"", b"\x10a", b"\x02\xff", b"\xff" * 12], ids=repr)
def test_records_that_do_not_fit_the_schema_are_an_error(data: bytes) -> None:
    schema = json.dumps(record(("name", "string")))
    raw = encode_container(schema, "null", [Block(1, data)])

    with pytest.raises(CorruptFile, match="m is corrupt"):
        rows(raw)


@pytest.mark.parametrize(
    "schema",
    [
        "not json",
        '{"type": "record", "name": "root", "fields": [{"name": "x", "type": "unknown"}]}',
        '{"type": "record", "name": "root", "fields": [{"name": "x", "type": "root"}]}',
        '{"type": "mystery"}',
    ],
)
def test_a_schema_that_makes_no_sense_is_an_error(schema: str) -> None:
    raw = encode_container(schema, "null", [Block(1, b"\x02a")])

    with pytest.raises(CorruptFile, match="its Avro schema cannot be used"):
        rows(raw)


def test_rows_are_the_same_as_columns() -> None:
    value = {"min": b"x", "counts": [1, None]}
    raw = encode(FULL, [{"name": "a", "size": 1, "stats": value, "words": ["p"]}])

    assert decode_rows(raw, "m", COLUMNS) == [
        {
            "name": "a",
            "size": 1,
            "stats_min": b"x",
            "stats_counts": (1, None),
            "words": ("p",),
        }
    ]
    with pytest.raises(CorruptFile, match="lack name"):
        decode_rows(encode(record(("size", "long")), [{"size": 1}]), "m", COLUMNS)


def test_a_value_of_another_type_is_an_error() -> None:
    raw = encode(record(("name", "string"), ("size", "string")), [{"name": "a", "size": "b"}])

    with pytest.raises(CorruptFile, match="m is corrupt"):
        rows(raw)

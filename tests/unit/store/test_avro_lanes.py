"""Records decoded side by side: a guess that is not proven is not used."""

import io
import json
from dataclasses import replace
from typing import Any

import fastavro
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from emberlake.base.avro_blocks import Block, Container, parse_container
from emberlake.errors import CorruptFile
from emberlake.io import MemoryStorage
from emberlake.spec.binary_row import encode_row
from emberlake.spec.layout import TableLayout
from emberlake.spec.manifest import DataFile, FileKind, ManifestEntry, SimpleStats
from emberlake.store import avro_container
from emberlake.store.avro_lanes import Positions, decode_lanes
from emberlake.store.manifest_avro import decode_entries, encode_entry, find_entries
from emberlake.store.manifest_schemas import MANIFEST_COLUMNS, MANIFEST_SCHEMA
from emberlake.store.manifests import ManifestStore
from emberlake.types import AtomicType

LONGS = {"type": "array", "items": ["null", "long"]}
RECORD = {
    "type": "record",
    "name": "r",
    "fields": [
        {"name": "a", "type": "long"},
        {"name": "b", "type": ["null", "string"]},
        {"name": "c", "type": LONGS},
        {"name": "d", "type": {"type": "array", "items": "string"}},
    ],
}
TARGET = pa.struct(
    [
        ("a", pa.int64()),
        ("b", pa.large_string()),
        ("c", pa.large_list(pa.int64())),
        ("d", pa.large_list(pa.large_string())),
        ("later", pa.int32()),
    ]
)


def encode(schema: Any, records: list[Any]) -> tuple[Container, Positions]:
    """Records in two blocks, and where each begins."""
    parsed = fastavro.parse_schema(schema)
    parts = []
    for record in records:
        sink = io.BytesIO()
        fastavro.schemaless_writer(sink, parsed, record)
        parts.append(sink.getvalue())
    starts = np.cumsum([0, *map(len, parts)])[:-1]
    half = len(parts) // 2
    blocks = [Block(len(some), b"".join(some)) for some in (parts[:half], parts[half:]) if some]
    return Container(json.dumps(schema), tuple(blocks)), starts


def decode(container: Container, starts: Positions | None, target: Any = TARGET) -> Any:
    schema = json.loads(container.schema)
    found = decode_lanes(container, schema, target, lambda *_: starts)
    return None if found is None else found.to_pylist()


MANY = list(range(-3, 5))
SHAPES: dict[str, list[dict[str, Any]]] = {
    "one": [{"a": 1, "b": "x", "c": [1], "d": ["p"]}],
    "numbers of all lengths": [
        {"a": sign * 2**bits, "b": None, "c": [], "d": []} for bits in range(63) for sign in (1, -1)
    ],
    "some nulls": [{"a": n, "b": None if n % 3 else "ü" * n, "c": [], "d": []} for n in range(20)],
    "long lists of numbers": [
        {"a": n, "b": "", "c": [n * 10**k for k in range(9)], "d": []} for n in MANY
    ],
    "long lists with nulls": [{"a": n, "b": "", "c": [n, None] * 4, "d": []} for n in MANY],
    "lists of several lengths": [
        {"a": n, "b": "", "c": [7] * n, "d": ["w"] * (9 - n)} for n in range(9)
    ],
    "the same texts everywhere": [{"a": n, "b": "", "c": [], "d": ["x", "", "yz"]} for n in MANY],
    "texts that differ in the end": [{"a": n, "b": "", "c": [], "d": ["x", f"y{n}"]} for n in MANY],
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("root", ["record", "union"])
def test_records_decoded_side_by_side_are_what_they_were(shape: str, root: str) -> None:
    records = SHAPES[shape]
    container, starts = encode(["null", RECORD] if root == "union" else RECORD, records)

    assert decode(container, starts) == [{**record, "later": None} for record in records]


def test_unwanted_fields_are_stepped_over() -> None:
    container, starts = encode(RECORD, SHAPES["lists of several lengths"])

    assert decode(container, starts, pa.struct([("a", pa.int32())])) == [{"a": n} for n in range(9)]


def test_blocks_of_an_array_follow_each_other() -> None:
    # An array may come in several blocks: two items, one item, the end.
    parts = [b"\x02\x00\x04\x02\x02\x02\x04\x02\x02\x06\x00\x00", b"\x04\x00\x00\x00"]
    container = Container(json.dumps(RECORD), (Block(2, b"".join(parts)),))

    assert decode(container, np.array([0, len(parts[0])])) == [
        {"a": 1, "b": None, "c": [1, 2, 3], "d": [], "later": None},
        {"a": 2, "b": None, "c": [], "d": [], "later": None},
    ]


def wrong_starts() -> dict[str, Any]:
    return {
        "none": lambda starts: None,
        "one too few": lambda starts: starts[:-1],
        "one too many": lambda starts: np.append(starts, starts[-1] + 1),
        "shifted": lambda starts: starts + 1,
        "behind the end": lambda starts: starts + 10_000,
        "one off": lambda starts: np.where(np.arange(len(starts)) == 3, starts - 1, starts),
        "twice the same": lambda starts: np.where(np.arange(len(starts)) == 3, starts[2], starts),
    }


@pytest.mark.parametrize("wrong", wrong_starts())
def test_a_wrong_guess_is_found_out(wrong: str) -> None:
    container, starts = encode(RECORD, SHAPES["lists of several lengths"])

    assert decode(container, wrong_starts()[wrong](starts)) is None


def test_counts_of_blocks_must_fit_where_they_end() -> None:
    container, starts = encode(RECORD, SHAPES["some nulls"])
    first, second = container.blocks
    moved = replace(
        container,
        blocks=(replace(first, count=first.count + 1), replace(second, count=second.count - 1)),
    )

    assert decode(moved, starts) is None


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ("double", 1.5),
        ({"type": "map", "values": "long"}, {"x": 1}),
        (["null", "long", "string"], "x"),
    ],
)
def test_what_manifests_do_not_have_is_left_to_others(schema: Any, value: Any) -> None:
    kind = {"type": "record", "name": "r", "fields": [{"name": "x", "type": schema}]}
    container, starts = encode(kind, [{"x": value}])

    assert decode(container, starts, pa.struct([("x", pa.int64())])) is None


def test_a_root_of_several_types_is_left_to_others() -> None:
    container, starts = encode(["null", "long", RECORD], SHAPES["one"])

    assert decode(container, starts) is None


def test_text_that_is_no_text_and_numbers_that_do_not_fit_are_left_to_others() -> None:
    raw = json.dumps({**RECORD, "fields": [{"name": "b", "type": "string"}]})
    container = Container(raw, (Block(1, b"\x02\xff"),))
    assert decode(container, np.array([0]), pa.struct([("b", pa.large_string())])) is None

    container, starts = encode(RECORD, [{"a": 2**40, "b": None, "c": [], "d": []}])
    assert decode(container, starts, pa.struct([("a", pa.int32())])) is None


# --- manifests ------------------------------------------------------------------------------------

TEXT = AtomicType("STRING")


def an_entry(number: int, partition: bytes, *, size: int = 1000, rows: int = 10) -> ManifestEntry:
    file = DataFile(
        file_name=f"data-{number}-0.parquet",
        file_size=size + number,
        row_count=rows,
        value_stats=SimpleStats(b"\x00\x00\x00\x01" + bytes(16), b"", (0, number)),
        min_sequence_number=number,
        max_sequence_number=number,
        schema_id=0,
        creation_time=1_700_000_000_000 + number,
        value_stats_cols=("a", "b"),
    )
    kind = FileKind.DELETE if number % 7 == 0 else FileKind.ADD
    return ManifestEntry(
        kind=kind, partition=partition, bucket=number % 5, total_buckets=5, file=file
    )


MANIFESTS: dict[str, list[ManifestEntry]] = {
    "partitioned": [
        an_entry(n, encode_row([TEXT, TEXT], ["x" * n, None if n % 3 else "y"])) for n in range(300)
    ],
    "unpartitioned": [an_entry(n, encode_row([], [])) for n in range(300)],
    # The end of the size, one row and the empty key look like the beginning of an entry.
    "misleading": [an_entry(n, encode_row([], []), size=256, rows=1) for n in range(100)] * 3,
    "long partitions": [an_entry(n, encode_row([TEXT], ["z" * 9000])) for n in range(160)],
}


def write(entries: list[ManifestEntry]) -> bytes:
    storage = MemoryStorage()
    store = ManifestStore(storage, TableLayout("t"), new_id=lambda: "id")
    (manifest,) = store.write_manifests(entries, ())
    return storage.read(f"t/manifest/{manifest.file_name}")


def starts_of(entries: list[ManifestEntry]) -> npt.NDArray[np.int64]:
    return np.cumsum([0, *(len(encode_entry(entry)) for entry in entries)])[:-1]


@pytest.mark.parametrize("name", MANIFESTS)
def test_the_entries_of_a_manifest_are_found(name: str) -> None:
    entries = MANIFESTS[name]
    container = parse_container(write(entries))
    data = b"".join(block.data for block in container.blocks) + bytes(128)

    found = find_entries(np.frombuffer(data, np.uint8), len(entries), None)

    assert found is not None
    assert found.tolist() == starts_of(entries).tolist()


@pytest.mark.parametrize("name", MANIFESTS)
def test_a_large_manifest_is_decoded_without_going_record_by_record(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("this manifest should have been decoded side by side")

    raw = write(MANIFESTS[name])
    monkeypatch.setattr(avro_container, "_read_records", refuse)

    assert decode_entries(raw, "m").entries() == MANIFESTS[name]


def test_a_manifest_whose_entries_are_not_found_is_decoded_all_the_same() -> None:
    entries = MANIFESTS["misleading"]
    renamed = [
        replace(e, file=replace(e.file, file_name=f"{n}.orc")) for n, e in enumerate(entries)
    ]

    assert decode_entries(write(renamed), "m").entries() == renamed


@pytest.mark.parametrize("at", range(40, 4000, 331))
def test_a_large_manifest_that_is_damaged_is_corrupt_or_another_one(at: int) -> None:
    entries = MANIFESTS["unpartitioned"]
    container = parse_container(write(entries))
    data = bytearray(b"".join(block.data for block in container.blocks))
    data[at] ^= 0xFF
    broken = Container(MANIFEST_SCHEMA, (Block(len(entries), bytes(data)),))

    def decode_both() -> tuple[object, object]:
        columns = avro_container._record_type(MANIFEST_COLUMNS)
        schema = avro_container._plain_schema(broken.schema)
        lanes = decode_lanes(broken, schema, columns, find_entries)
        return lanes, pa.array(avro_container._read_records(broken, "m"), columns)

    try:
        lanes, expected = decode_both()
    except (CorruptFile, pa.ArrowException, UnicodeDecodeError):
        return
    assert lanes is None or lanes == expected

"""Metadata that is deep or announces the enormous: refused in bounded time and memory."""

import json
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa

from builders import append, create_table, open_table, rows_of
from emberlake import AtomicType, DataField
from emberlake.base.avro_blocks import Block, encode_container
from emberlake.base.avro_codecs import compressor
from emberlake.errors import EmberlakeError
from emberlake.formats import open_reader
from emberlake.io import MemoryStorage
from emberlake.store.manifest_avro import decode_entries, decode_manifest_list
from table_reads import read
from torture.core import Step, Steps
from torture.forks import Forks

DEEP = 200_000
BYTES = 3 << 30


def _deep_json(key: str) -> bytes:
    return (f'{{"{key}": ' + "[" * DEEP + "]" * DEEP + "}").encode()


def _deep_type() -> bytes:
    inner = '{"type": "ARRAY", "element": ' * DEEP + '"INT"' + "}" * DEEP
    field = f'{{"id": 0, "name": "id", "type": {inner}}}'
    return f'{{"version": 3, "id": 0, "highestFieldId": 0, "fields": [{field}]}}'.encode()


def _numbers() -> bytes:
    return b'{"version": 3, "id": ' + b"9" * 100_000 + b"}"


def _infinite() -> bytes:
    return b'{"version": 1e999, "id": 1e999, "highestFieldId": 1e999, "fields": []}'


def _deep_avro() -> bytes:
    schema = '{"type": "array", "items": ' * DEEP + '"int"' + "}" * DEEP
    return encode_container(schema, "null", [Block(1, b"\0")])


def _record(items: object) -> str:
    fields = [{"name": "_VERSION", "type": "int"}, {"name": "a", "type": items}]
    return json.dumps({"type": "record", "name": "r", "fields": fields})


def _many_nothings() -> bytes:
    """A few bytes that announce more items than memory can hold."""
    schema = _record({"type": "array", "items": "null"})
    return encode_container(schema, "null", [Block(1, b"\4" + b"\xfe" * 8 + b"\x7f\0")])


def _many_empty_records() -> bytes:
    empty = {"type": "record", "name": "e", "fields": [{"name": "n", "type": "null"}]}
    schema = _record({"type": "array", "items": empty})
    return encode_container(schema, "null", [Block(1, b"\4" + b"\xfe" * 8 + b"\x7f\0")])


def _many_records() -> bytes:
    schema = json.dumps({"type": "record", "name": "r", "fields": [{"name": "n", "type": "null"}]})
    return encode_container(schema, "null", [Block(2**40, b"")])


def _bomb(codec: str, compress: Callable[[bytes], bytes]) -> bytes:
    return encode_container(_record("bytes"), codec, [Block(1, compress(bytes(1 << 26)) * 64)])


def _zstd_bomb() -> bytes:
    return _bomb("zstandard", lambda raw: pa.compress(raw, codec="zstd", asbytes=True))


def _deflate_bomb() -> bytes:
    whole = compressor("deflate", 1)(bytes(5 << 28))
    return encode_container(_record("bytes"), "deflate", [Block(1, whole)])


def _snappy_bomb() -> bytes:
    """Only says that it is enormous."""
    return encode_container(
        _record("bytes"), "snappy", [Block(1, b"\xff\xff\xff\xff\x0f" + bytes(9))]
    )


JSON_PLACES = ("snapshot", "schema", "hint", "tag")
JSON = {
    "deep": lambda: _deep_json("id"),
    "deep version": lambda: _deep_json("version"),
    "deep type": _deep_type,
    "long number": _numbers,
    "infinite": _infinite,
}
AVRO = {
    "deep": _deep_avro,
    "many nothings": _many_nothings,
    "many empty records": _many_empty_records,
    "many records": _many_records,
    "zstd bomb": _zstd_bomb,
    "deflate bomb": _deflate_bomb,
    "snappy bomb": _snappy_bomb,
}


def _cases() -> Iterator[tuple[str, str]]:
    for name in JSON:
        yield from ((place, name) for place in JSON_PLACES)
    for name in AVRO:
        yield from ((place, name) for place in READERS)


def nesting(seed: int) -> Steps:
    """Each of them in a process of its own, which may ask for so much memory and no more."""
    with Forks() as forks, tempfile.TemporaryDirectory() as folder:
        for number, (place, name) in enumerate(_cases()):
            diary = Path(folder) / str(number)
            pid = forks.start("swallow", place=place, name=name, diary=str(diary), most=BYTES)
            status = forks.wait(pid)
            outcome = diary.read_text() if diary.exists() else "nothing"
            problem = (
                None if status == 0 and outcome == "fine" else f"{outcome}; it ended with {status}"
            )
            yield Step(f"{name} {place}", {"deep and huge files": 1}, problem)


def check_swallowed(place: str, name: str) -> str:
    """What a reader makes of such a file: it is fine to refuse it with a typed error."""
    raw = (AVRO if place in READERS else JSON)[name]()
    try:
        (READERS.get(place) or partial(_read_with, place))(raw)
    except EmberlakeError:
        return "fine"
    except Exception as error:  # noqa: BLE001 - whatever it is, it should have been typed
        return f"{type(error).__name__} is not typed: {str(error)[:100]}"
    return "fine" if place == "hint" else "it was taken for what it should be"


def _read_with(place: str, raw: bytes) -> None:
    """Read a table one of whose files has these bytes."""
    storage = MemoryStorage()
    table = create_table(storage)
    append(table, rows_of([1]))
    table.create_tag("t")
    layout = table.store.layout
    path = {
        "snapshot": layout.snapshot(1),
        "schema": layout.schema(0),
        "hint": layout.latest_hint,
        "tag": layout.tag("t"),
    }[place]
    storage.put(path, raw)
    opened = open_table(storage)
    read(opened)
    opened.list_tags()
    read(opened, **{"scan.tag-name": "t"})


def _read_data(raw: bytes) -> None:
    storage = MemoryStorage()
    storage.put("/f.avro", raw)
    fields = (DataField(0, "a", AtomicType("BYTES")),)
    with open_reader(storage, "/f.avro", fields, "avro") as reader:
        reader.read_table(fields)


# Decoders are met alone: tables know the sizes of these files, which would give them away.
READERS: dict[str, Callable[[bytes], object]] = {
    "manifest list": lambda raw: decode_manifest_list(raw, "a manifest list"),
    "manifest": lambda raw: decode_entries(raw, "a manifest"),
    "data file": _read_data,
}

"""Avro records, decoded into Arrow columns.

Manifests are what planning spends its time on, so records never become Python objects where that
can be helped: with Polars, the blocks are decompressed, framed again without a codec (Polars knows
no zstd) and read straight into columns. Without Polars, fastavro reads them. Both give the same
columns. Writers differ in record names, in what they allow to be null and in which fields they
know: fields are found by name, absent ones are null, unknown ones are skipped.
"""

import importlib
import importlib.util
import io
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache, lru_cache
from typing import Any, Final

import fastavro
import pyarrow as pa

from emberlake.base.avro_blocks import (
    BAD_BYTES,
    SYNC_BYTES,
    Container,
    Header,
    UnknownCodec,
    encode_long,
    parse_container,
)
from emberlake.errors import CorruptFile, Unsupported

_SYNC: Final = bytes(SYNC_BYTES)  # between blocks that never leave this process

# Importing Polars takes longer than fastavro needs for this many bytes of records, so Polars is
# only brought in by files that are large, and used for all that are worth its fixed cost after it.
_IMPORT_POLARS_BYTES: Final = 256 * 1024
_USE_POLARS_BYTES: Final = 16 * 1024


class Decoder(Enum):
    """What turns records into columns."""

    POLARS = "polars"
    FASTAVRO = "fastavro"


@dataclass(frozen=True, slots=True)
class Column:
    """A column to take out of records: the names that lead to it, from the root down."""

    name: str
    path: tuple[str, ...]
    type: pa.DataType
    is_required: bool = False


def decode_container(
    raw: bytes, path: str, columns: tuple[Column, ...], *, decoder: Decoder | None = None
) -> pa.Table:
    """The records of a container as a flat table of exactly these columns, in one chunk.

    Args:
        raw: the bytes of the file.
        path: where they are from, for messages.
        columns: what to take; a column that the file lacks is null.
        decoder: None takes the faster one that is installed.

    Raises:
        CorruptFile: the bytes are no whole container, or a required column is null.
        Unsupported: they are compressed with an unknown codec.
    """
    container = _parse(raw, path)
    record_type = _record_type(columns)
    if container.count == 0:
        records = pa.array([], record_type)
    elif (decoder or _best_decoder(container.size)) is Decoder.POLARS:
        records = _decode_with_polars(container, path, record_type)
    else:
        records = _decode_with_fastavro(container, path, record_type)
    return _flatten(records, columns, path)


def _parse(raw: bytes, path: str) -> Container:
    try:
        return parse_container(raw)
    except UnknownCodec as error:
        raise Unsupported(
            f"{path} is compressed with {error.codec}, which emberlake cannot read"
        ) from error
    except BAD_BYTES as error:
        raise CorruptFile(path, f"it is not a whole Avro container: {error}") from error


# Columns -----------------------------------------------------------------------------------------


@cache
def _record_type(columns: tuple[Column, ...]) -> pa.StructType:
    """The nested type whose leaves are the columns."""
    below: dict[str, list[Column]] = {}
    for column in columns:
        below.setdefault(column.path[0], []).append(column)
    return pa.struct([(name, _type_below(inside)) for name, inside in below.items()])


def _type_below(columns: Sequence[Column]) -> pa.DataType:
    if len(columns[0].path) == 1:
        return columns[0].type
    return _record_type(tuple(replace(column, path=column.path[1:]) for column in columns))


def _flatten(records: pa.StructArray, columns: tuple[Column, ...], path: str) -> pa.Table:
    leaves = dict(_iter_leaves(records, (), frozenset(column.path for column in columns)))
    arrays = [leaves[column.path] for column in columns]
    missing = [
        column.path[-1]
        for column, array in zip(columns, arrays, strict=True)
        if column.is_required and array.null_count
    ]
    if missing:
        raise CorruptFile(path, f"some of its records lack {', '.join(missing)}")
    return pa.Table.from_arrays(arrays, names=[column.name for column in columns])


def _iter_leaves(
    records: pa.StructArray, above: tuple[str, ...], wanted: frozenset[tuple[str, ...]]
) -> Iterator[tuple[tuple[str, ...], pa.Array]]:
    # flatten() carries the nulls of a record down into its fields.
    for field, array in zip(records.type, records.flatten(), strict=True):
        here = (*above, field.name)
        if here in wanted:
            yield here, array
        else:
            yield from _iter_leaves(array, here, wanted)


# Schemas -----------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _plain_schema(schema: str) -> Any:
    """The writer's schema in the simplest form that describes the same bytes.

    Every named type stands where it is used, under a name of its own (Polars does not resolve
    names); logical types, which would turn milliseconds into objects, are left out.
    """
    return _SchemaPlainer().plain(json.loads(schema), namespace="")


class _SchemaPlainer:
    def __init__(self) -> None:
        self._named: dict[str, tuple[dict[str, Any], str]] = {}
        self._names_given = 0
        self._open: set[str] = set()

    def plain(self, schema: Any, namespace: str) -> Any:
        match schema:
            case str() if schema in _PRIMITIVES:
                return schema
            case str():
                return self._record(*self._named[_full_name(schema, namespace)])
            case list():
                return [self.plain(branch, namespace) for branch in schema]
            case {"type": "record"}:
                name = _full_name(schema["name"], schema.get("namespace", namespace))
                self._named[name] = (schema, name.rpartition(".")[0])
                return self._record(*self._named[name])
            case {"type": "array", "items": items}:
                return {"type": "array", "items": self.plain(items, namespace)}
            case {"type": "map", "values": values}:
                return {"type": "map", "values": self.plain(values, namespace)}
            case {"type": str(inner)} if inner in _PRIMITIVES:
                return inner
            case {"type": (dict() | list()) as inner}:
                return self.plain(inner, namespace)
            case _:
                raise ValueError(f"{schema} is no type that metadata uses")

    def _record(self, schema: dict[str, Any], namespace: str) -> Any:
        name = _full_name(schema["name"], namespace)
        if name in self._open:
            raise ValueError(f"record {name} contains itself")
        self._open.add(name)
        fields = [
            {"name": field["name"], "type": self.plain(field["type"], namespace)}
            for field in schema["fields"]
        ]
        self._open.remove(name)
        self._names_given += 1
        return {"type": "record", "name": f"r{self._names_given}", "fields": fields}


_PRIMITIVES: Final = frozenset(
    ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
)


def _full_name(name: str, namespace: str) -> str:
    return f"{namespace}.{name}" if namespace and "." not in name else name


# Decoding with Polars ----------------------------------------------------------------------------


@cache
def _has_polars() -> bool:
    return importlib.util.find_spec("polars") is not None


def _best_decoder(size: int) -> Decoder:
    limit = _USE_POLARS_BYTES if "polars" in sys.modules else _IMPORT_POLARS_BYTES
    return Decoder.POLARS if size >= limit and _has_polars() else Decoder.FASTAVRO


# A record of one field has the bytes of the field, so that a container whose root is a union (as
# the Rust writer makes it) can be read as one of records.
_ROOT: Final = "root"


@lru_cache(maxsize=64)
def _polars_header(schema: str) -> bytes:
    wrapped = {
        "type": "record",
        "name": "r0",
        "fields": [{"name": _ROOT, "type": _plain_schema(schema)}],
    }
    return Header(json.dumps(wrapped), "null", _SYNC).encode()


def _decode_with_polars(
    container: Container, path: str, record_type: pa.StructType
) -> pa.StructArray:
    polars = importlib.import_module("polars")
    parts = [_parse_schema(_polars_header, container, path)]
    parts += (block.encode(_SYNC) for block in container.blocks)
    try:
        frame = polars.read_avro(io.BytesIO(b"".join(parts)))
    except (polars.exceptions.PolarsError, polars.exceptions.PanicException, OSError) as error:
        raise CorruptFile(path, f"its records cannot be decoded: {error}") from error
    _check_count(frame.height, container, path)
    column = frame.to_arrow(compat_level=polars.CompatLevel.oldest()).column(_ROOT)
    return _align(column.combine_chunks(), record_type)


def _align(array: pa.Array, target: pa.DataType) -> pa.Array:
    """The array with the target's fields in the target's order, whatever it has itself."""
    if pa.types.is_struct(target):
        return _align_struct(array, target)
    if pa.types.is_large_list(target) and pa.types.is_large_list(array.type):
        values = _align(array.values, target.value_type)
        return pa.LargeListArray.from_arrays(
            array.offsets, values, type=target, mask=array.is_null() if array.null_count else None
        )
    return array if array.type == target else array.cast(target)


def _align_struct(array: pa.StructArray, target: pa.StructType) -> pa.StructArray:
    # flatten() carries the nulls of the struct down into its fields.
    have = dict(zip((field.name for field in array.type), array.flatten(), strict=True))
    children = [
        _align(have[field.name], field.type)
        if field.name in have
        else pa.nulls(len(array), field.type)
        for field in target
    ]
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(children, fields=list(target), mask=mask)


# Decoding with fastavro --------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _fastavro_schema(schema: str) -> Any:
    return fastavro.parse_schema({"type": "array", "items": _plain_schema(schema)})


def _decode_with_fastavro(
    container: Container, path: str, record_type: pa.StructType
) -> pa.StructArray:
    # An array is blocks of a count and that many items, then a zero: the container's blocks are
    # one, and a single call decodes them all.
    parts: list[bytes] = []
    for block in container.blocks:
        parts += (encode_long(block.count), block.data)
    data = b"".join((*parts, encode_long(0)))
    source = io.BytesIO(data)
    schema = _parse_schema(_fastavro_schema, container, path)
    try:
        records = fastavro.schemaless_reader(source, schema, None)
        if source.tell() != len(data):
            raise ValueError("there are bytes behind the last record")
        _check_count(len(records), container, path)
        return pa.array(records, record_type)
    except (*BAD_BYTES, pa.ArrowException) as error:
        raise CorruptFile(path, f"its records cannot be decoded: {error}") from error


def _check_count(found: int, container: Container, path: str) -> None:
    if found != container.count:
        raise CorruptFile(path, f"it holds {found} records where {container.count} are announced")


def _parse_schema(parse: Callable[[str], Any], container: Container, path: str) -> Any:
    try:
        return parse(container.schema)
    except BAD_BYTES as error:
        raise CorruptFile(path, f"its Avro schema cannot be used: {error}") from error

"""Decode Avro records into Arrow columns.

Planning spends its time on manifests, so large numbers of records are decoded without Python
objects: ``avro_lanes`` decodes them side by side. Records that it cannot decode, or that are too
few to be worth it, go through fastavro one by one, with the same result. Writers differ in record
names, in what they allow to be null and in which fields they know: fields are found by name, absent
ones are null, unknown ones are skipped.
"""

import io
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any, Final

import fastavro
import pyarrow as pa

from emberlake.base.arrow_arrays import values_array
from emberlake.base.avro_blocks import (
    BAD_BYTES,
    Container,
    check_items,
    encode_long,
    parse_container,
)
from emberlake.base.avro_codecs import UnknownCodec
from emberlake.errors import CorruptFile, Unsupported
from emberlake.store.avro_lanes import FindRecords, decode_lanes

# From this many records on, decoding them side by side is faster (measured on manifests).
MANY_RECORDS: Final = 80


@dataclass(frozen=True, slots=True)
class Column:
    """A column to take from records; ``path`` is the names that lead to it, from the root down."""

    name: str
    path: tuple[str, ...]
    type: pa.DataType
    is_required: bool = False


def decode_container(
    raw: bytes, path: str, columns: tuple[Column, ...], *, find: FindRecords | None = None
) -> pa.Table:
    """The records of a container as a flat table of exactly these columns, in one chunk.

    Args:
        raw: the bytes of the file.
        path: where they come from, for messages.
        columns: what to take; a column that the file lacks is null.
        find: guesses where records begin, so that many can be decoded side by side.

    Raises:
        CorruptFile: the bytes are not a whole container, or a required column is null.
        Unsupported: they are compressed with an unknown codec.
    """
    return decode_together([parse(raw, path)], path, columns, find=find)


def decode_together(
    containers: Sequence[Container],
    path: str,
    columns: tuple[Column, ...],
    *,
    find: FindRecords | None = None,
) -> pa.Table:
    """The records of some containers as one table, one container after the other.

    If containers have few records, making the columns takes most of the time.
    """
    if find is not None and len({container.schema for container in containers}) == 1:
        joined = Container(containers[0].schema, tuple(b for c in containers for b in c.blocks))
        if joined.count >= MANY_RECORDS:
            schema = _parse_schema(_plain_schema, joined, path)
            records = decode_lanes(joined, schema, _record_type(columns), find)
            if records is not None:
                return _flatten(records, columns, path)
    # One by one: the counts and sizes of each have to fit.
    each = [record for one in containers for record in _read_records(one, path)]
    return _as_table(each, path, columns)


def decode_rows(raw: bytes, path: str, columns: tuple[Column, ...]) -> list[dict[str, Any]]:
    """Like ``decode_container``, but one dictionary per record; lists are tuples."""
    found = _columns_of(_read_records(parse(raw, path), path), path, columns)
    values = [[tuple(v) if isinstance(v, list) else v for v in column] for column in found]
    names = [column.name for column in columns]
    return [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)]


def _as_table(records: list[Any], path: str, columns: tuple[Column, ...]) -> pa.Table:
    found = _columns_of(records, path, columns)
    try:
        arrays = [
            values_array(values, column.type) for values, column in zip(found, columns, strict=True)
        ]
    except (*BAD_BYTES, pa.ArrowException) as error:
        raise CorruptFile(path, f"its records cannot be decoded: {error}") from error
    return pa.Table.from_arrays(arrays, names=[column.name for column in columns])


def parse(raw: bytes, path: str) -> Container:
    """The container in a file, with its records still encoded.

    Raises:
        CorruptFile: the bytes are not a whole container.
        Unsupported: they are compressed with an unknown codec.
    """
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
    lacking = [c for c, array in zip(columns, arrays, strict=True) if array.null_count]
    _check_required(lacking, path)
    return pa.Table.from_arrays(arrays, names=[column.name for column in columns])


def _check_required(lacking: Sequence[Column], path: str) -> None:
    missing = [column.path[-1] for column in lacking if column.is_required]
    if missing:
        raise CorruptFile(path, f"some of its records lack {', '.join(missing)}")


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


# Every writer has three: a parsed one takes 20 kB.
@lru_cache(maxsize=16)
def _plain_schema(schema: str) -> Any:
    """The writer's schema in the simplest form that describes the same bytes.

    Every named type is copied to where it is used, under a unique name; logical types, which would
    turn milliseconds into objects, are left out.
    """
    written = json.loads(schema)
    check_items(written)
    return _SchemaSimplifier().simplify(written, namespace="")


class _SchemaSimplifier:
    def __init__(self) -> None:
        self._named: dict[str, tuple[dict[str, Any], str]] = {}
        self._names_given = 0
        self._open: set[str] = set()

    def simplify(self, schema: Any, namespace: str) -> Any:
        match schema:
            case str() if schema in _PRIMITIVES:
                return schema
            case str():
                return self._record(*self._named[_full_name(schema, namespace)])
            case list():
                return [self.simplify(branch, namespace) for branch in schema]
            case {"type": "record"}:
                name = _full_name(schema["name"], schema.get("namespace", namespace))
                self._named[name] = (schema, name.rpartition(".")[0])
                return self._record(*self._named[name])
            case {"type": "array", "items": items}:
                return {"type": "array", "items": self.simplify(items, namespace)}
            case {"type": "map", "values": values}:
                return {"type": "map", "values": self.simplify(values, namespace)}
            case {"type": str(inner)} if inner in _PRIMITIVES:
                return inner
            case {"type": (dict() | list()) as inner}:
                return self.simplify(inner, namespace)
            case _:
                raise ValueError(f"{schema} is not a type that metadata uses")

    def _record(self, schema: dict[str, Any], namespace: str) -> Any:
        name = _full_name(schema["name"], namespace)
        if name in self._open:
            raise ValueError(f"record {name} contains itself")
        self._open.add(name)
        fields = [
            {"name": field["name"], "type": self.simplify(field["type"], namespace)}
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


# Decoding record by record ------------------------------------------------------------------------


@lru_cache(maxsize=16)
def _fastavro_schema(schema: str) -> Any:
    # In a record, which adds no bytes: fastavro would parse an array's schema again at every call.
    records = {"name": _RECORDS, "type": {"type": "array", "items": _plain_schema(schema)}}
    return fastavro.parse_schema({"type": "record", "name": "container", "fields": [records]})


_RECORDS: Final = "records"


def _columns_of(records: list[Any], path: str, columns: tuple[Column, ...]) -> list[list[Any]]:
    """The values of each column; None where a record lacks it, or the record that it is in."""
    known: dict[tuple[str, ...], list[Any]] = {(): records}
    found = [_values_at(known, column.path) for column in columns]
    lacking = [c for c, values in zip(columns, found, strict=True) if None in values]
    _check_required(lacking, path)
    return found


def _values_at(known: dict[tuple[str, ...], list[Any]], path: tuple[str, ...]) -> list[Any]:
    values = known.get(path)
    if values is None:
        name = path[-1]
        above = _values_at(known, path[:-1])
        values = known[path] = [None if v is None else v.get(name) for v in above]
    return values


def _read_records(container: Container, path: str) -> list[Any]:
    if not container.count:
        return []
    # An Avro array is blocks of a count and that many items, then a zero. So the blocks of the
    # container make one array, which a single call decodes.
    parts: list[bytes] = []
    for block in container.blocks:
        parts += (encode_long(block.count), block.data)
    data = b"".join((*parts, encode_long(0)))
    source = io.BytesIO(data)
    schema = _parse_schema(_fastavro_schema, container, path)
    try:
        found: dict[str, list[Any]] = fastavro.schemaless_reader(source, schema, None)
        if source.tell() != len(data):
            raise ValueError("there are bytes after the last record")
    except BAD_BYTES as error:
        raise CorruptFile(path, f"its records cannot be decoded: {error}") from error
    records = found[_RECORDS]
    _check_count(len(records), container, path)
    return records


def _check_count(found: int, container: Container, path: str) -> None:
    if found != container.count:
        raise CorruptFile(path, f"it holds {found} records, but announces {container.count}")


def _parse_schema(parse: Callable[[str], Any], container: Container, path: str) -> Any:
    try:
        return parse(container.schema)
    except BAD_BYTES as error:
        raise CorruptFile(path, f"its Avro schema cannot be used: {error}") from error

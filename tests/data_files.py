"""Data files in memory, for tests of the formats."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from emberlake.formats import FileReader, open_reader, open_writer
from emberlake.io import MemoryStorage
from emberlake.options import TableOptions
from emberlake.predicates.expressions import Predicate
from emberlake.spec.values import to_arrow_array
from emberlake.types import AtomicType, DataField, DataType, arrow_schema

PATH = "/bucket-0/data-0"


def fields_of(**types: DataType | str) -> tuple[DataField, ...]:
    """Columns with ids from 0."""
    return tuple(
        DataField(i, name, AtomicType(t) if isinstance(t, str) else t)
        for i, (name, t) in enumerate(types.items())
    )


def table_of(fields: tuple[DataField, ...], *columns: Sequence[Any]) -> pa.Table:
    """A table of internal values, column by column."""
    arrays = [to_arrow_array(f.type, list(v)) for f, v in zip(fields, columns, strict=True)]
    return pa.Table.from_arrays(arrays, schema=arrow_schema(fields))


def write_file(
    format_name: str,
    fields: tuple[DataField, ...],
    *parts: pa.Table,
    options: Mapping[str, str] | None = None,
) -> MemoryStorage:
    """A storage that holds one file, written in parts."""
    storage = MemoryStorage()
    writer = open_writer(storage, PATH, fields, TableOptions(options or {}), format_name)
    for part in parts:
        writer.write(part)
    assert writer.close() == storage.size(PATH)
    return storage


def storage_with(raw: bytes) -> MemoryStorage:
    storage = MemoryStorage()
    storage.put(PATH, raw)
    return storage


def reader_of(
    storage: MemoryStorage, fields: tuple[DataField, ...], format_name: str
) -> FileReader:
    return open_reader(storage, PATH, fields, format_name)


def read_file(
    storage: MemoryStorage,
    fields: tuple[DataField, ...],
    format_name: str,
    predicate: Predicate | None = None,
) -> pa.Table:
    with reader_of(storage, fields, format_name) as reader:
        return reader.read_table(fields, predicate)

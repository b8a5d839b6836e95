"""Avro data files. Spec: "Avro data files".

fastavro turns rows into bytes and back. Values cross as numbers and bytes: logical types are
written into the schema for other engines and hidden from fastavro, whose Python dates and decimals
are slow and cannot hold every value. Blocks are read one at a time, so memory is bounded by a batch
and a block.
"""

import io
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, Final, cast

import fastavro
import pyarrow as pa
from fastavro.schema import SchemaParseException, UnknownType

from emberlake.base.avro_blocks import (
    BAD_BYTES,
    SYNC_BYTES,
    Block,
    Header,
    check_items,
    count_records,
    iter_blocks,
    read_header,
)
from emberlake.base.avro_codecs import AVRO_CODECS, compressor
from emberlake.base.closing import Closing
from emberlake.errors import CorruptFile, DataMismatch, InvalidOption, InvalidState
from emberlake.formats.avro_values import (
    Json,
    avro_schema,
    check_scales,
    named_types,
    plain_values,
    stored_type,
    without_logical_types,
)
from emberlake.formats.conform import plan_conformance
from emberlake.formats.file_format import (
    DEFAULT_BATCH_ROWS,
    batch_of_rows,
    check_nulls,
    check_size,
    check_storable,
    new_file,
    read_failure,
    table_of_batches,
)
from emberlake.io.storage import SMALL_BYTES, Storage
from emberlake.options import FILE_COMPRESSION, ZSTD_LEVEL, TableOptions
from emberlake.predicates.expressions import Predicate
from emberlake.types import DataField

_BLOCK_BYTES: Final = 256 * 1024
_BUFFER_BYTES: Final = 1024 * 1024
_UNREADABLE: Final = (*BAD_BYTES, SchemaParseException, UnknownType)


class AvroWriter:
    """Fills one Avro file."""

    def __init__(
        self,
        storage: Storage,
        path: str,
        fields: tuple[DataField, ...],
        options: TableOptions,
    ) -> None:
        check_storable(fields, "avro")
        self._fields = fields
        schema = avro_schema(fields)
        self._schema = fastavro.parse_schema(without_logical_types(schema))
        codec = _codec(options)
        self._compress = compressor(codec, options.value(ZSTD_LEVEL))
        self._sync = os.urandom(SYNC_BYTES)
        self._file = new_file(storage, path, options)
        self._file.write(Header(json.dumps(schema), codec, self._sync).encode())

    @property
    def bytes_written(self) -> int:
        return self._file.position

    def write(self, table: pa.Table) -> None:
        check_nulls(table, self._fields, self._file.path)
        names = [f.name for f in self._fields]
        columns = [
            plain_values(table.column(at), field.type) for at, field in enumerate(self._fields)
        ]
        block, count = io.BytesIO(), 0
        # Avro is a row format: one record at a time is the only way in.
        for values in zip(*columns, strict=True):
            try:
                fastavro.schemaless_writer(
                    block, self._schema, dict(zip(names, values, strict=True))
                )
            except (ValueError, TypeError, AttributeError) as error:
                raise DataMismatch(
                    f"rows cannot be written to {self._file.path}: {error}"
                ) from error
            count += 1
            if block.tell() >= _BLOCK_BYTES:
                self._write_block(count, block)
                block, count = io.BytesIO(), 0
        if count:
            self._write_block(count, block)

    def close(self) -> int:
        return self._file.close()

    def abort(self) -> None:
        self._file.abort()

    def _write_block(self, count: int, rows: io.BytesIO) -> None:
        self._file.write(Block(count, self._compress(rows.getvalue())).encode(self._sync))


class AvroReader(Closing):
    """One open Avro file. It has no statistics, so predicates skip nothing."""

    def __init__(
        self,
        storage: Storage,
        path: str,
        fields: tuple[DataField, ...],
        file_size: int | None = None,
    ) -> None:
        del fields  # the file describes itself
        self._path = path
        self._storage = storage
        self._size = file_size
        self._whole: bytes | None = None
        with storage.open_input(path, file_size) as source:
            check_size(source, path, file_size)
            if storage.traits.is_remote and (file_size or SMALL_BYTES + 1) <= SMALL_BYTES:
                self._whole = cast("BinaryIO", source).read()  # it was fetched with one request
        with self._stream() as stream, self._bytes_of("header"):
            self._header = read_header(stream)
            written: Json = json.loads(self._header.schema)
            check_items(written)
            self._columns = {f["name"]: f["type"] for f in _record_of(written)["fields"]}
            self._named = named_types(written)
            plain = json.dumps(without_logical_types(written))
        # The same container, as fastavro sees it: no logical types, no compression.
        self._plain = Header(plain, "null", self._header.sync)
        self._row_count: int | None = None
        self._reads = 0
        self._is_open = True

    @property
    def num_rows(self) -> int:
        if self._row_count is None:
            with self._stream() as stream, self._bytes_of("blocks"):
                self._row_count = count_records(stream, read_header(stream))
        return self._row_count

    @property
    def row_group_count(self) -> int:
        return 1

    @property
    def row_groups_read(self) -> int:
        return min(self._reads, 1)

    def read(
        self,
        columns: tuple[DataField, ...],
        predicate: Predicate | None = None,
        batch_rows: int = DEFAULT_BATCH_ROWS,
        use_threads: bool = True,  # noqa: FBT001, FBT002
        *,
        rows: tuple[int, int] | None = None,
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        del predicate, use_threads, rows  # records are decoded one after another
        check_storable(columns, "avro")
        self._check_open()
        self._reads += 1
        position = 0
        for records in self._records(batch_rows):
            yield position, self._batch(records, columns)
            position += len(records)

    def read_table(
        self,
        columns: tuple[DataField, ...],
        predicate: Predicate | None = None,
        use_threads: bool = True,  # noqa: FBT001, FBT002
    ) -> pa.Table:
        return table_of_batches(self.read(columns, predicate, use_threads=use_threads), columns)

    def close(self) -> None:
        self._is_open = False

    def _check_open(self) -> None:
        if not self._is_open:
            raise InvalidState(f"{self._path} was closed; open it again to read")

    @contextmanager
    def _stream(self) -> Iterator[BinaryIO]:
        if self._whole is not None:
            yield io.BytesIO(self._whole)
            return
        # Each pass opens the file again, so that passes do not share a position.
        with self._storage.open_input(self._path, self._size) as source:
            yield io.BufferedReader(source, _BUFFER_BYTES)  # type: ignore[type-var]

    @contextmanager
    def _bytes_of(self, part: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise read_failure(self._path, error) from error
        except _UNREADABLE as error:
            raise CorruptFile(
                self._path, f"its Avro {part} cannot be read: {str(error) or type(error).__name__}"
            ) from error

    def _records(self, batch_rows: int) -> Iterator[list[dict[str, Any]]]:
        waiting: list[dict[str, Any]] = []
        with self._stream() as stream:
            blocks = self._blocks(stream)
            while (records := self._next(blocks)) is not None:
                waiting += records
                while len(waiting) >= batch_rows:
                    yield waiting[:batch_rows]
                    waiting = waiting[batch_rows:]
        if waiting:
            yield waiting

    def _next(self, blocks: Iterator[list[dict[str, Any]]]) -> list[dict[str, Any]] | None:
        # Errors are translated around each step, not around the yields of a caller's loop.
        with self._bytes_of("blocks"):
            return next(blocks, None)

    def _blocks(self, stream: BinaryIO) -> Iterator[list[dict[str, Any]]]:
        read_header(stream)
        head = self._plain.encode()
        for block in iter_blocks(stream, self._header):
            container = head + block.encode(self._header.sync)
            records = list(fastavro.reader(io.BytesIO(container)))
            if len(records) != block.count:
                raise ValueError(f"a block has {len(records)} rows but declares {block.count}")
            yield records

    def _batch(
        self, records: list[dict[str, Any]], columns: tuple[DataField, ...]
    ) -> pa.RecordBatch:
        present = [f for f in columns if f.name in self._columns]
        if not present:
            rows = batch_of_rows(len(records))
        else:
            arrays = [self._array(records, f) for f in present]
            rows = pa.RecordBatch.from_arrays(arrays, [f.name for f in present])
        return plan_conformance(self._path, rows.schema, columns).apply(rows)

    def _array(self, records: list[dict[str, Any]], field: DataField) -> pa.Array:
        found = self._columns[field.name]
        try:
            check_scales(found, self._named, field.type)
            kind = stored_type(found, self._named)
            return pa.array([record[field.name] for record in records], kind)
        except (pa.ArrowException, ValueError, TypeError, OverflowError, LookupError) as error:
            raise CorruptFile(
                self._path, f"the column {field.name} does not fit {field.type}: {error}"
            ) from error


Writer: Final = AvroWriter
Reader: Final = AvroReader


def _codec(options: TableOptions) -> str:
    name = options.value(FILE_COMPRESSION)
    if name not in AVRO_CODECS:
        raise InvalidOption(
            f"{FILE_COMPRESSION.key}={name}: for avro files use one of {', '.join(AVRO_CODECS)}"
        )
    return AVRO_CODECS[name]


def _record_of(schema: Json) -> Json:
    # Some writers wrap the type of the rows in a union with null.
    if isinstance(schema, list):
        (schema,) = (branch for branch in schema if branch != "null")
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise ValueError("its rows are not records")
    return schema

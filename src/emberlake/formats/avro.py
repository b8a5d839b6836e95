"""Avro data files. Spec "Avro data files".

fastavro turns rows into bytes and back. Values cross as numbers and bytes: logical types are
written into the schema for other engines and hidden from fastavro, whose Python dates and decimals
are slow and cannot hold every value. The file is a sequence of blocks; batches are made of whole
blocks, so memory is bounded by a batch and a block.
"""

import io
import json
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from types import TracebackType
from typing import Any, BinaryIO, Final, Self

import cramjam
import fastavro
import pyarrow as pa
from fastavro.write import Writer

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
from emberlake.formats.conform import plan_projection
from emberlake.formats.file_format import (
    DEFAULT_BATCH_ROWS,
    OutputFile,
    batch_of_rows,
    check_nulls,
    check_storable,
)
from emberlake.io.storage import Storage
from emberlake.options import FILE_COMPRESSION, ZSTD_LEVEL, TableOptions
from emberlake.predicates.expressions import Predicate
from emberlake.types import DataField, arrow_schema

_MAGIC: Final = b"Obj\x01"
_SYNC_BYTES: Final = 16
_BLOCK_BYTES: Final = 256 * 1024
_BUFFER_BYTES: Final = 1024 * 1024
_CODECS: Final = {
    "zstd": "zstandard",
    "zstandard": "zstandard",
    "snappy": "snappy",
    "deflate": "deflate",
    "gzip": "deflate",
    "none": "null",
    "uncompressed": "null",
    "null": "null",
}
# What fastavro and its codecs raise on bytes that are no Avro.
_BAD_BYTES: Final = (
    EOFError,
    ValueError,
    LookupError,
    TypeError,
    OverflowError,
    MemoryError,
    zlib.error,
    cramjam.DecompressionError,
)


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
        codec = _codec(options)
        self._file = OutputFile(storage, path)
        self._buffer = io.BytesIO()
        self._writer = Writer(
            self._buffer,
            schema,
            codec=codec,
            sync_interval=_BLOCK_BYTES,
            compression_level=options.value(ZSTD_LEVEL) if codec == "zstandard" else None,
        )

    @property
    def bytes_written(self) -> int:
        return self._file.position

    def write(self, table: pa.Table) -> None:
        check_nulls(table, self._fields, self._file.path)
        names = [f.name for f in self._fields]
        columns = [
            plain_values(table.column(at), field.type) for at, field in enumerate(self._fields)
        ]
        try:
            # Avro is a row format: one record at a time is the only way in.
            for values in zip(*columns, strict=True):
                self._writer.write(dict(zip(names, values, strict=True)))
            self._flush()
        except (ValueError, TypeError, AttributeError) as error:
            raise DataMismatch(f"rows cannot be written to {self._file.path}: {error}") from error

    def close(self) -> int:
        self._flush()
        return self._file.close()

    def abort(self) -> None:
        self._file.abort()

    def _flush(self) -> None:
        self._writer.flush()
        self._file.write(self._buffer.getbuffer())
        self._buffer.seek(0)
        self._buffer.truncate()


class AvroReader:
    """One open Avro file. It has no statistics: predicates leave nothing out."""

    def __init__(self, storage: Storage, path: str, fields: tuple[DataField, ...]) -> None:
        del fields  # the file describes itself
        self._path = path
        self._storage = storage
        with ExitStack() as resources:
            stream = self._stream(resources)
            self._header = self._checked_header(stream)
        self._row_count: int | None = None
        self._reads = 0
        self._is_open = True

    @property
    def num_rows(self) -> int:
        if self._row_count is None:
            with ExitStack() as resources:
                self._row_count = self._counted(self._stream(resources))
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
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        del predicate, use_threads
        check_storable(columns, "avro")
        self._check_open()
        self._reads += 1
        position = 0
        for records in self._records(batch_rows):
            batch = self._batch(records, columns)
            yield position, batch
            position += batch.num_rows

    def read_table(
        self,
        columns: tuple[DataField, ...],
        predicate: Predicate | None = None,
        use_threads: bool = True,  # noqa: FBT001, FBT002
    ) -> pa.Table:
        batches = [batch for _, batch in self.read(columns, predicate, use_threads=use_threads)]
        return pa.Table.from_batches(
            batches, arrow_schema(columns) if columns or not batches else None
        )

    def close(self) -> None:
        self._is_open = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _check_open(self) -> None:
        if not self._is_open:
            raise InvalidState(f"{self._path} was closed; open it again to read")

    def _stream(self, resources: ExitStack) -> BinaryIO:
        # Each pass opens the file anew, so that passes do not share a position.
        source: Any = resources.enter_context(self._storage.open_input(self._path))
        return io.BufferedReader(source, _BUFFER_BYTES)

    def _checked_header(self, stream: BinaryIO) -> "_Header":
        try:
            return _read_header(stream)
        except _BAD_BYTES as error:
            raise CorruptFile(self._path, f"it has no Avro header: {error}") from error

    def _counted(self, stream: BinaryIO) -> int:
        rows = 0
        try:
            _read_header(stream)
            while stream.peek(1):  # type: ignore[attr-defined]
                rows += _read_long(stream)
                size = _read_long(stream)
                stream.seek(size, io.SEEK_CUR)
                if _take(stream, _SYNC_BYTES) != self._header.sync:
                    raise ValueError("a block does not end with the mark of the file")
        except _BAD_BYTES as error:
            raise CorruptFile(self._path, str(error)) from error
        return rows

    def _records(self, batch_rows: int) -> Iterator[list[dict[str, Any]]]:
        with ExitStack() as resources:
            stream = self._stream(resources)
            waiting: list[dict[str, Any]] = []
            try:
                _read_header(stream)
                blocks = fastavro.block_reader(_Joined(self._header.plain, stream))
                for block in blocks:
                    records = list(block)
                    if len(records) != block.num_records:
                        raise ValueError("a block has fewer rows than it says")
                    waiting += records
                    while len(waiting) >= batch_rows:
                        yield waiting[:batch_rows]
                        waiting = waiting[batch_rows:]
            except _BAD_BYTES as error:
                raise CorruptFile(self._path, f"its rows cannot be read: {error}") from error
            if waiting:
                yield waiting

    def _batch(
        self, records: list[dict[str, Any]], columns: tuple[DataField, ...]
    ) -> pa.RecordBatch:
        found = {f["name"]: f["type"] for f in self._header.schema["fields"]}
        names = self._header.names
        present = [f for f in columns if f.name in found]
        arrays = []
        for field in present:
            try:
                check_scales(found[field.name], names, field.type)
                kind = stored_type(found[field.name], names)
                arrays.append(pa.array([record[field.name] for record in records], kind))
            except (pa.ArrowException, ValueError, TypeError, OverflowError, KeyError) as error:
                raise CorruptFile(
                    self._path, f"the column {field.name} does not fit {field.type}: {error}"
                ) from error
        rows = (
            pa.RecordBatch.from_arrays(arrays, [f.name for f in present])
            if arrays
            else batch_of_rows(len(records))
        )
        return plan_projection(self._path, rows.schema, columns).apply(rows)


class _Header:
    """What stands before the blocks of an Avro file."""

    def __init__(self, metadata: dict[str, bytes], sync: bytes) -> None:
        self.sync = sync
        written: Json = json.loads(metadata["avro.schema"])
        self.schema = _record_of(written)
        self.names = named_types(written)
        hidden = json.dumps(without_logical_types(written)).encode()
        self.plain = _encode_header({**metadata, "avro.schema": hidden}, sync)


class _Joined:
    """Bytes, and then the rest of a stream: as much of a file as fastavro asks for."""

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        self._head = io.BytesIO(head)
        self._rest = rest
        self._start = rest.tell()

    def read(self, size: int = -1) -> bytes:
        first = self._head.read(size)
        if size < 0:
            return first + self._rest.read()
        return first + self._rest.read(size - len(first)) if len(first) < size else first

    def tell(self) -> int:
        return self._head.tell() + self._rest.tell() - self._start


def _codec(options: TableOptions) -> str:
    name = options.value(FILE_COMPRESSION)
    if name not in _CODECS:
        raise InvalidOption(
            f"{FILE_COMPRESSION.key}={name}: avro files can be {', '.join(_CODECS)}"
        )
    return _CODECS[name]


def _record_of(schema: Json) -> Json:
    # Some writers put the type of the rows into a union with null.
    if isinstance(schema, list):
        (schema,) = (branch for branch in schema if branch != "null")
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise ValueError("the rows are no records")
    return schema


def _read_header(stream: BinaryIO) -> _Header:
    # magic, then a map of metadata in counted blocks (a negative count is followed by the size of
    # the block in bytes), then the mark that ends every block of rows
    if stream.read(len(_MAGIC)) != _MAGIC:
        raise ValueError("it does not start with Obj1")
    metadata: dict[str, bytes] = {}
    while count := _read_long(stream):
        if count < 0:
            _read_long(stream)
        for _ in range(abs(count)):
            key = _take(stream, _read_long(stream)).decode()
            metadata[key] = _take(stream, _read_long(stream))
    return _Header(metadata, _take(stream, _SYNC_BYTES))


def _encode_header(metadata: dict[str, bytes], sync: bytes) -> bytes:
    out = bytearray(_MAGIC)
    out += _encode_long(len(metadata))
    for key, value in metadata.items():
        out += _encode_long(len(key.encode())) + key.encode() + _encode_long(len(value)) + value
    return bytes(out + _encode_long(0) + sync)


def _read_long(stream: BinaryIO) -> int:
    value = shift = 0
    while True:
        (byte,) = _take(stream, 1)
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return (value >> 1) ^ -(value & 1)


def _encode_long(value: int) -> bytes:
    value = value << 1 if value >= 0 else (-value << 1) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _take(stream: BinaryIO, size: int) -> bytes:
    data = stream.read(size)
    if size < 0 or len(data) != size:
        raise EOFError("the file ends too early")
    return data

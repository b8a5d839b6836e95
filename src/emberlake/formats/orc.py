"""ORC data files. Spec "ORC".

Arrow's ORC library writes and reads them; column ids go along as the attribute ``paimon.id``.
TIME is stored as an integer of milliseconds; CHAR and VARCHAR are plain strings, since Arrow has no
other text. TIMESTAMP_LTZ is stored as the instant it is: files of Java writers in another zone than
UTC hold instants shifted by that zone, unless ``orc.timestamp-ltz.legacy.type`` is false.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Final, Self

import pyarrow as pa
import pyarrow.orc as po

from emberlake.errors import EmberlakeError, InvalidOption, InvalidState, Unsupported
from emberlake.formats.conform import plan_projection
from emberlake.formats.field_ids import schema_with_ids
from emberlake.formats.file_format import (
    DEFAULT_BATCH_ROWS,
    OutputFile,
    batch_of_rows,
    check_nulls,
    check_storable,
    read_failure,
)
from emberlake.io.storage import Storage
from emberlake.options import FILE_BLOCK_SIZE, FILE_COMPRESSION, MEBIBYTE, TableOptions
from emberlake.predicates.expressions import Predicate
from emberlake.types import DataField, arrow_schema

_FIELD_ID: Final = b"paimon.id"
_CODECS: Final = {
    "zstd": "zstd",
    "snappy": "snappy",
    "lz4": "lz4",
    "zlib": "zlib",
    "none": "uncompressed",
    "uncompressed": "uncompressed",
}
_STRIPE_BYTES: Final = 64 * MEBIBYTE
_COMPRESSION_BLOCK_BYTES: Final = 256 * 1024
_DICTIONARY_THRESHOLD: Final = 0.8  # a dictionary when at most this share of texts is distinct
_FAILURES: Final = (pa.ArrowInvalid, OSError)


class OrcWriter:
    """Fills one ORC file."""

    def __init__(
        self,
        storage: Storage,
        path: str,
        fields: tuple[DataField, ...],
        options: TableOptions,
    ) -> None:
        check_storable(fields, "orc")
        codec = _codec(options)
        self._fields = fields
        self._schema = _stored_schema(schema_with_ids(fields, _FIELD_ID))
        self._file = OutputFile(storage, path)
        self._writer = po.ORCWriter(
            pa.PythonFile(_Sink(self._file), "w"),
            compression=codec,
            compression_block_size=_COMPRESSION_BLOCK_BYTES,
            stripe_size=options.value(FILE_BLOCK_SIZE) or _STRIPE_BYTES,
            dictionary_key_size_threshold=_DICTIONARY_THRESHOLD,
        )

    @property
    def bytes_written(self) -> int:
        return self._file.position

    def write(self, table: pa.Table) -> None:
        check_nulls(table, self._fields, self._file.path)
        columns = [
            _stored(column, field.type)
            for column, field in zip(table.columns, self._schema, strict=True)
        ]
        self._writer.write(pa.Table.from_arrays(columns, schema=self._schema))

    def close(self) -> int:
        # Arrow opens the file with the first table, so a file without rows needs one too.
        self._writer.write(self._schema.empty_table())
        self._writer.close()
        return self._file.close()

    def abort(self) -> None:
        self._file.abort()
        self._writer.is_open = False  # else it would write its footer when it is collected


class OrcReader:
    """One open ORC file."""

    def __init__(self, storage: Storage, path: str, fields: tuple[DataField, ...]) -> None:
        del fields  # the file describes itself
        self._path = path
        self._resources = ExitStack()
        source: Any = self._resources.enter_context(storage.open_input(path))
        try:
            self._file = po.ORCFile(source)
            self._found = self._file.schema
        except _FAILURES as error:
            self._resources.close()
            raise read_failure(path, error) from error
        self._stripes_read = 0
        self._is_open = True

    @property
    def num_rows(self) -> int:
        return int(self._file.nrows)

    @property
    def row_group_count(self) -> int:
        return int(self._file.nstripes)

    @property
    def row_groups_read(self) -> int:
        return self._stripes_read

    def read(
        self,
        columns: tuple[DataField, ...],
        predicate: Predicate | None = None,
        batch_rows: int = DEFAULT_BATCH_ROWS,
        use_threads: bool = True,  # noqa: FBT001, FBT002
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        del (
            predicate,
            use_threads,
        )  # Arrow shows no statistics of stripes, and decodes in one thread
        check_storable(columns, "orc")
        self._check_open()
        position = 0
        for rows in self._stripes(columns):
            for start in range(0, rows.num_rows, batch_rows):
                batch = rows.slice(start, batch_rows)
                yield position, batch
                position += batch.num_rows

    def read_table(
        self,
        columns: tuple[DataField, ...],
        predicate: Predicate | None = None,
        use_threads: bool = True,  # noqa: FBT001, FBT002
    ) -> pa.Table:
        batches = [
            batch for _, batch in self.read(columns, predicate, max(self.num_rows, 1), use_threads)
        ]
        return pa.Table.from_batches(
            batches, arrow_schema(columns) if columns or not batches else None
        )

    def close(self) -> None:
        self._is_open = False
        self._resources.close()

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

    def _stripes(self, columns: tuple[DataField, ...]) -> Iterator[pa.RecordBatch]:
        names = [f.name for f in columns if f.name in self._found.names]
        if not names:
            yield plan_projection(self._path, pa.schema([]), columns).apply(
                batch_of_rows(self.num_rows)
            )
            return
        for stripe in range(self.row_group_count):
            self._stripes_read += 1
            try:
                batch = self._file.read_stripe(stripe, names)
            except _FAILURES as error:
                raise _stripe_failure(self._path, error) from error
            # Before slicing: children of a slice are converted whole.
            yield plan_projection(self._path, batch.schema, columns).apply(batch)


class _Sink:
    """What Arrow wants of a Python file; closing it leaves the output file open."""

    def __init__(self, file: OutputFile) -> None:
        self._file = file
        self.closed = False

    def write(self, data: object) -> None:
        self._file.write(data)

    def tell(self) -> int:
        return self._file.position

    def flush(self) -> None:
        """Nothing is held back here."""

    def close(self) -> None:
        self.closed = True


def _codec(options: TableOptions) -> str:
    name = options.value(FILE_COMPRESSION)
    if name not in _CODECS:
        raise InvalidOption(f"{FILE_COMPRESSION.key}={name}: orc files can be {', '.join(_CODECS)}")
    return _CODECS[name]


def _stripe_failure(path: str, error: Exception) -> EmberlakeError:
    if "out of range for nanosecond" in str(error):
        return Unsupported(
            f"{path} holds a timestamp outside of the years 1677 to 2262, which Arrow cannot read "
            f"from ORC files: {error}; leave the column out"
        )
    return read_failure(path, error)


def _stored_schema(schema: pa.Schema) -> pa.Schema:
    return pa.schema([_stored_field(f) for f in schema])


def _stored_field(field: pa.Field) -> pa.Field:
    return field.with_type(_stored_type(field.type))


def _stored_type(arrow: pa.DataType) -> pa.DataType:
    """The type with integers in the place of times, at any depth."""
    if pa.types.is_time(arrow):
        return pa.int32()
    if pa.types.is_list(arrow):
        return pa.list_(_stored_field(arrow.value_field))
    if pa.types.is_map(arrow):
        return pa.map_(_stored_field(arrow.key_field), _stored_field(arrow.item_field))
    if pa.types.is_struct(arrow):
        return pa.struct([_stored_field(f) for f in arrow])
    return arrow


def _stored(column: pa.ChunkedArray, stored: pa.DataType) -> pa.ChunkedArray:
    return column if column.type == stored else column.cast(stored)

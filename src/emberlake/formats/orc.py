"""ORC data files. Spec: "ORC".

Arrow's ORC library writes and reads them; column ids are stored in the attribute ``paimon.id``.
TIME is stored as an integer of milliseconds; CHAR and VARCHAR are plain strings, since Arrow has no
other text. TIMESTAMP_LTZ is stored as the true instant. Files of Java writers in a zone other than
UTC hold instants shifted by that zone, unless ``orc.timestamp-ltz.legacy.type`` is false.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc as po

from emberlake.base.closing import Closing
from emberlake.base.option_texts import MEBIBYTE
from emberlake.errors import EmberlakeError, InvalidOption, InvalidState, Unsupported
from emberlake.formats.conform import plan_conformance
from emberlake.formats.field_ids import schema_with_ids
from emberlake.formats.file_format import (
    DEFAULT_BATCH_ROWS,
    READ_FAILURES,
    batch_of_rows,
    check_nulls,
    check_size,
    check_storable,
    new_file,
    read_failure,
    table_of_batches,
)
from emberlake.formats.nested import entries_of, map_leaf_types, relabelled
from emberlake.io.storage import Output, Storage
from emberlake.options import FILE_BLOCK_SIZE, FILE_COMPRESSION, TableOptions
from emberlake.predicates.expressions import Predicate
from emberlake.types import DataField

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
_UNITS_OF_SECOND: Final = {"ms": 10**3, "us": 10**6, "ns": 10**9}
_DICTIONARY_THRESHOLD: Final = 0.8  # use a dictionary if at most this share is distinct


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
        self._schema = pa.schema([_stored_field(f) for f in schema_with_ids(fields, _FIELD_ID)])
        self._file = new_file(storage, path, options)
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
        self._file.check_open()
        check_nulls(table, self._fields, self._file.path)
        self._check_timestamps(table)
        columns = [
            _stored(column, field.type)
            for column, field in zip(table.columns, self._schema, strict=True)
        ]
        self._writer.write(pa.Table.from_arrays(columns, schema=self._schema))

    def close(self) -> int:
        self._file.check_open()
        # Arrow opens the file with the first table, so a file without rows needs one too.
        self._writer.write(self._schema.empty_table())
        self._writer.close()
        return self._file.close()

    def abort(self) -> None:
        self._file.abort()
        self._writer.is_open = False  # or it would write its footer when collected

    def _check_timestamps(self, table: pa.Table) -> None:
        for field, column in zip(self._fields, table.columns, strict=True):
            for chunk in column.chunks:
                if not _is_writable(chunk):
                    raise Unsupported(
                        f"the column {field.name} has timestamps before 1970 with fractions of a "
                        "second, which Arrow writes to ORC in a way that other engines cannot "
                        "read; set file.format to parquet"
                    )


class OrcReader(Closing):
    """One open ORC file."""

    def __init__(
        self,
        storage: Storage,
        path: str,
        fields: tuple[DataField, ...],
        file_size: int | None = None,
    ) -> None:
        del fields  # the file describes itself
        self._path = path
        self._resources = ExitStack()
        source: Any = self._resources.enter_context(storage.open_input(path, file_size))
        try:
            check_size(source, path, file_size)
            self._file = po.ORCFile(source)
            self._found = self._file.schema
        except READ_FAILURES as error:
            self._resources.close()
            raise read_failure(path, error) from error
        except EmberlakeError:
            self._resources.close()
            raise
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
        *,
        rows: tuple[int, int] | None = None,
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        del (
            predicate,
            use_threads,
            rows,
        )  # Arrow exposes neither statistics nor sizes of stripes, and decodes in one thread
        check_storable(columns, "orc")
        self._check_open()
        position = 0
        for stripe in self._stripes(columns):
            for start in range(0, stripe.num_rows, batch_rows):
                batch = stripe.slice(start, batch_rows)
                yield position, batch
                position += batch.num_rows

    def read_table(
        self,
        columns: tuple[DataField, ...],
        predicate: Predicate | None = None,
        use_threads: bool = True,  # noqa: FBT001, FBT002
    ) -> pa.Table:
        found = self.read(columns, predicate, max(self.num_rows, 1), use_threads)
        return table_of_batches(found, columns)

    def close(self) -> None:
        self._is_open = False
        self._resources.close()

    def _check_open(self) -> None:
        if not self._is_open:
            raise InvalidState(f"{self._path} was closed; open it again to read")

    def _stripes(self, columns: tuple[DataField, ...]) -> Iterator[pa.RecordBatch]:
        names = [f.name for f in columns if f.name in self._found.names]
        if not names:
            yield plan_conformance(self._path, pa.schema([]), columns).apply(
                batch_of_rows(self.num_rows)
            )
            return
        for stripe in range(self.row_group_count):
            self._stripes_read += 1
            try:
                batch = self._file.read_stripe(stripe, names)
            except READ_FAILURES as error:
                raise _stripe_failure(self._path, error) from error
            # Convert before slicing: children of a slice are converted as a whole.
            yield plan_conformance(self._path, batch.schema, columns).apply(batch)


Writer: Final = OrcWriter
Reader: Final = OrcReader


class _Sink:
    """What Arrow needs of a Python file; closing it leaves the output file open."""

    def __init__(self, file: Output) -> None:
        self._file = file
        self.closed = False

    def write(self, data: object) -> None:
        self._file.write(data)

    def tell(self) -> int:
        return self._file.position

    def flush(self) -> None:
        """Nothing is buffered here."""

    def close(self) -> None:
        self.closed = True


def _codec(options: TableOptions) -> str:
    name = options.value(FILE_COMPRESSION)
    if name not in _CODECS:
        raise InvalidOption(
            f"{FILE_COMPRESSION.key}={name}: for orc files use one of {', '.join(_CODECS)}"
        )
    return _CODECS[name]


def _stripe_failure(path: str, error: Exception) -> EmberlakeError:
    if "out of range for nanosecond" in str(error):
        return Unsupported(
            f"{path} holds a timestamp outside of the years 1677 to 2262, which Arrow cannot read "
            f"from ORC files: {error}; leave the column out"
        )
    return read_failure(path, error)


def _stored_field(field: pa.Field) -> pa.Field:
    return field.with_type(map_leaf_types(field.type, _stored_type))


def _stored_type(kind: pa.DataType) -> pa.DataType:
    return pa.int32() if pa.types.is_time(kind) else kind


def _is_writable(array: pa.Array) -> bool:
    """Whether no timestamp is both before 1970 and between two seconds, at any depth."""
    kind = array.type
    if pa.types.is_struct(kind):
        return all(_is_writable(child) for child in array.flatten())
    if pa.types.is_map(kind):
        return _is_writable(array.keys) and _is_writable(array.items)
    if pa.types.is_list(kind):
        return _is_writable(array.flatten())
    if not pa.types.is_timestamp(kind) or kind.unit == "s":
        return True
    instants = array.view(pa.int64()).drop_null().to_numpy()
    before = instants[instants < 0]
    return not (before % _UNITS_OF_SECOND[kind.unit]).any()


def _stored(column: pa.ChunkedArray, stored: pa.DataType) -> pa.ChunkedArray:
    if column.type != stored:
        column = column.cast(stored)
    if not pa.types.is_nested(stored):
        return column
    return pa.chunked_array([_dense(chunk) for chunk in column.chunks], type=stored)


def _dense(array: pa.Array) -> pa.Array:
    """The same values without slices and without anything below nulls, at any depth.

    Arrow's ORC writer takes a slice of structs for the whole, and writes values below nulls.
    """
    kind = array.type
    mask = array.is_null() if array.null_count else None
    if pa.types.is_struct(kind):
        children = [_dense(child) for child in array.flatten()]
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=mask)
    if pa.types.is_map(kind):
        pairs = _as_list(array)
        keys, items = _dense(pairs.flatten()).flatten()
        return pa.MapArray.from_arrays(_offsets(pairs), keys, items, type=kind, mask=mask)
    if pa.types.is_list(kind):
        values = _dense(array.flatten())
        return pa.ListArray.from_arrays(_offsets(array), values, type=kind, mask=mask)
    return pa.concat_arrays([array, array.slice(0, 0)]) if array.offset else array


def _as_list(array: pa.Array) -> pa.Array:
    entries = entries_of(array.type, array.keys, array.items)
    return relabelled(array, pa.list_(entries.type), entries)


def _offsets(array: pa.Array) -> pa.Array:
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy()
    return pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())

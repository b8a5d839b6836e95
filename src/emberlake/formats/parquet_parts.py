"""Row groups that are written column by column, and columns that are copied as they are encoded.

An operation that changes a few columns of a file copies the others: their bytes go into the new
file without being decoded.
"""

from collections.abc import Sequence
from typing import Final, Protocol, runtime_checkable

import pyarrow as pa
import pyarrow.parquet as pq

from emberlake.errors import CorruptFile
from emberlake.formats.file_format import READ_FAILURES, read_failure
from emberlake.formats.parquet_footer import (
    TAIL_BYTES,
    Chunk,
    Layout,
    StoredChunks,
    chunk_of,
    chunk_range,
)
from emberlake.io.storage import Storage
from emberlake.types import DataField, arrow_type

_INDEXED_TYPES: Final = (pa.string(), pa.binary())


class RowGroup(Protocol):
    """Rows that are written as one row group; columns are made when the writer asks for them.

    Several columns may be asked for at a time, by several threads, each of them once.
    """

    @property
    def num_rows(self) -> int: ...

    def encoded(self, field: DataField, layout: Layout) -> Sequence[Chunk] | None:
        """The chunks of a column that is stored in this layout already; None: encode ``column``."""

    def column(self, field: DataField) -> pa.ChunkedArray:
        """The values of a column, with the Arrow type of the field or as places in a dictionary."""


@runtime_checkable
class ColumnWriter(Protocol):
    """A writer of files that takes columns one by one."""

    def write_columns(self, rows: RowGroup, *, workers: int) -> None:
        """Write one row group; ``workers`` columns are made at a time."""


class ParquetParts:
    """The row groups of a Parquet file, and the bytes of their columns.

    Args:
        storage: Holds the file.
        path: The file.
        file_size: Its size.

    Raises:
        CorruptFile: it has no Parquet footer.
    """

    def __init__(self, storage: Storage, path: str, file_size: int) -> None:
        self._storage = storage
        self._path = path
        # At once: a cached property would let other threads wait for this read.
        self._found = self._read_footer(file_size)

    @property
    def row_counts(self) -> list[int]:
        """How many rows each row group has."""
        return self._found.row_counts

    def chunks(self, group: int, name: str, layout: Layout) -> list[Chunk] | None:
        """The chunks of a column; None if it is not there, or not stored in this layout."""
        if self._found.layouts.get(name) != layout:
            return None
        columns = self._found.columns(group, name)
        if columns is None:
            return None
        return [chunk_of(self._read(*chunk_range(column)), column) for column in columns]

    def indexed(self, group: int, field: DataField) -> pa.DictionaryArray | None:
        """A column of texts or bytes as places in the dictionary of its distinct values.

        None if the column is not stored so throughout, or not as the type of the field.
        """
        kind = arrow_type(field.type)
        if kind not in _INDEXED_TYPES or not self._found.is_indexed(group, field.name):
            return None
        columns = self._found.columns(group, field.name)
        if columns is None:
            return None
        chunks = [chunk_of(self._read(*chunk_range(column)), column) for column in columns]
        try:
            file = pa.BufferReader(self._found.file_of(group, field.name, chunks))
            with pq.ParquetFile(file, read_dictionary=[field.name]) as found:
                (column,) = found.read(use_threads=False).unify_dictionaries().columns
        except READ_FAILURES as error:
            raise read_failure(self._path, error) from error
        if column.type != pa.dictionary(pa.int32(), kind):
            return None
        return column.combine_chunks()

    def null_count(self, group: int, name: str) -> int | None:
        """How many values of a column that is not nested are null, if that is known."""
        return self._found.null_count(group, name)

    def _read_footer(self, file_size: int) -> StoredChunks:
        tail = self._read(file_size - TAIL_BYTES, TAIL_BYTES)
        size = int.from_bytes(tail.to_pybytes()[:4], "little")
        footer = self._read(file_size - TAIL_BYTES - size, size)
        try:
            return StoredChunks(footer.to_pybytes())
        except (ValueError, LookupError) as error:
            raise CorruptFile(self._path, f"its footer cannot be decoded: {error}") from error

    def _read(self, start: int, size: int) -> pa.Buffer:
        data = self._storage.read_range(self._path, start, size) if start >= 0 else b""
        if len(data) != size:
            raise CorruptFile(self._path, f"it ends before byte {start + size}")
        return pa.py_buffer(data)

"""Data files of one bucket that roll at a target size, and the writer of append tables.

Rows wait in a buffer until they make a row group of decent size; then they are encoded while
another thread collects their statistics.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

import pyarrow as pa

from emberlake.base.option_texts import MEBIBYTE
from emberlake.errors import StorageError
from emberlake.formats import FileWriter, open_writer
from emberlake.formats.parquet_parts import ColumnWriter
from emberlake.options import (
    DATA_FILE_PREFIX,
    FILE_BLOCK_SIZE,
    FILE_COMPRESSION,
    FILE_FORMAT,
    FILE_SUFFIX_COMPRESSION,
    TARGET_FILE_ROWS,
    TARGET_FILE_SIZE,
    TableOptions,
)
from emberlake.spec.external_paths import FilePlaces
from emberlake.spec.manifest import DataFile
from emberlake.store.table_store import TableStore
from emberlake.types import DataField
from emberlake.write.append_record import AppendRecord, EditedRows, Recorded

_ROW_GROUP_ROWS: Final = 1_000_000  # smaller row groups cost time and space
_ROW_GROUP_BYTES: Final = 128 * MEBIBYTE
_APPEND_TARGET_BYTES: Final = 256 * MEBIBYTE
_ENDLESS: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class FileLimits:
    """When a row group is written and when a file ends."""

    row_group_rows: int
    row_group_bytes: int
    file_rows: int
    file_bytes: int

    @staticmethod
    def of(options: TableOptions, *, target_bytes: int = _APPEND_TARGET_BYTES) -> "FileLimits":
        """The limits that a table's options ask for; ``target_bytes`` if they name no size."""
        file_bytes = options.value(TARGET_FILE_SIZE) or target_bytes
        group_bytes = options.value(FILE_BLOCK_SIZE) or _ROW_GROUP_BYTES
        return FileLimits(
            row_group_rows=_ROW_GROUP_ROWS,
            row_group_bytes=max(1, min(group_bytes, file_bytes)),
            file_rows=max(1, options.value(TARGET_FILE_ROWS)),
            file_bytes=max(1, file_bytes),
        )

    def of_one_file(self) -> "FileLimits":
        """The same row groups, but all rows go to one file."""
        return replace(self, file_rows=_ENDLESS, file_bytes=_ENDLESS)


@dataclass(frozen=True, slots=True)
class FileNames:
    """``<prefix><writer>-<number>.<format>``, with the codec before the format when asked for."""

    prefix: str
    writer_id: str
    file_format: str
    codec: str | None = None

    @staticmethod
    def of(
        options: TableOptions,
        writer_id: str,
        *,
        prefix: str | None = None,
        file_format: str | None = None,
    ) -> "FileNames":
        """The names that a table's options ask for."""
        has_codec = options.value(FILE_SUFFIX_COMPRESSION)
        return FileNames(
            options.value(DATA_FILE_PREFIX) if prefix is None else prefix,
            writer_id,
            file_format or options.value(FILE_FORMAT),
            options.value(FILE_COMPRESSION) if has_codec else None,
        )

    def name(self, number: int) -> str:
        suffix = f"{self.codec}.{self.file_format}" if self.codec else self.file_format
        return f"{self.prefix}{self.writer_id}-{number}.{suffix}"


class FileRecord(Protocol):
    """Collects what the manifest says about a data file while its rows are written."""

    def update(self, rows: pa.Table) -> None: ...

    def describe(self, name: str, file_size: int, row_count: int) -> DataFile: ...


class _OpenFile:
    """A data file that is being written."""

    def __init__(
        self, name: str, external_path: str | None, writer: FileWriter, record: FileRecord
    ) -> None:
        self.name = name
        self.external_path = external_path
        self.rows = 0
        self._writer = writer
        self._record = record

    @property
    def bytes_written(self) -> int:
        return self._writer.bytes_written

    def write(self, table: pa.Table, pool: Executor | None) -> None:
        self.rows += table.num_rows
        if pool is None:
            self._record.update(table)
            self._writer.write(table)
            return
        recorded = pool.submit(self._record.update, table)
        try:
            self._writer.write(table)
        finally:
            recorded.result()

    def write_columns(self, rows: EditedRows, *, workers: int) -> None:
        assert isinstance(self._writer, ColumnWriter)
        assert isinstance(self._record, AppendRecord)
        self.rows += rows.num_rows
        self._writer.write_columns(Recorded(rows, self._record), workers=workers)

    def close(self) -> DataFile:
        file = self._record.describe(self.name, self._writer.close(), self.rows)
        return replace(file, external_path=self.external_path) if self.external_path else file

    def abort(self) -> None:
        self._writer.abort()


@dataclass
class RollingFiles:
    """Writes rows to one file after the other, each up to the limits."""

    store: TableStore
    places: FilePlaces
    fields: tuple[DataField, ...]
    limits: FileLimits
    names: FileNames
    new_record: Callable[[], FileRecord]
    _number: int = field(default=0, init=False)
    _open: _OpenFile | None = field(default=None, init=False)
    _closed: list[DataFile] = field(default_factory=list, init=False)

    @property
    def has_open_file(self) -> bool:
        return self._open is not None

    def write(self, table: pa.Table, pool: Executor | None = None) -> None:
        """Write rows; ``pool`` lends a thread for the statistics."""
        for group in self._row_groups(table):
            if self._open is None:
                self._open = self._open_file()
            self._open.write(group, pool)
            is_full = self._open.bytes_written >= self.limits.file_bytes
            if is_full or self._open.rows >= self.limits.file_rows:
                self.close_file()

    def write_columns(self, rows: EditedRows, *, workers: int) -> None:
        """Write one row group, ``workers`` columns at a time; files are Parquet."""
        if self._open is None:
            self._open = self._open_file()
        self._open.write_columns(rows, workers=workers)
        if self._open.bytes_written >= self.limits.file_bytes:
            self.close_file()

    def close_file(self) -> None:
        """End the file that is being written, if any; the next rows start another."""
        if self._open is not None:
            self._closed.append(self._open.close())
            self._open = None

    def take(self) -> tuple[DataFile, ...]:
        """Hand over the files that are finished."""
        files, self._closed = tuple(self._closed), []
        return files

    def abort(self) -> None:
        """Delete every file that was not handed over; can be repeated when that fails."""
        if self._open is not None:
            self._open.abort()
            # A failed close may have left a complete file.
            self._delete(self._open.name, self._open.external_path)
            self._open = None
        while self._closed:
            self._delete(self._closed[-1].file_name, self._closed[-1].external_path)
            self._closed.pop()

    def _open_file(self) -> _OpenFile:
        name = self.names.name(self._number)
        self._number += 1
        outside = self.places.external_path(name)
        path = self.places.path(name, outside)
        writer = open_writer(
            self.store.storage, path, self.fields, self.store.options, self.names.file_format
        )
        return _OpenFile(name, outside, writer, self.new_record())

    def _delete(self, name: str, external_path: str | None) -> None:
        self.store.storage.delete(self.places.path(name, external_path))

    def _row_groups(self, table: pa.Table) -> Iterator[pa.Table]:
        average = max(1, table.nbytes // max(1, table.num_rows))
        most = min(self.limits.row_group_rows, max(1, self.limits.row_group_bytes // average))
        start = 0
        while start < table.num_rows:
            in_file = self._open.rows if self._open else 0
            room = self.limits.file_rows - in_file
            # Groups of equal size rather than a full one and a remainder: readers work on several
            # at once.
            left = table.num_rows - start
            even = math.ceil(left / math.ceil(left / most))
            rows = min(even, room)
            yield table.slice(start, rows)
            start += rows


@dataclass(frozen=True, slots=True)
class Written:
    """The finished files of one bucket."""

    new_files: tuple[DataFile, ...] = ()
    changelog_files: tuple[DataFile, ...] = ()


@dataclass
class AppendWriter:
    """Buffers and writes the rows of one bucket of one partition of an append table.

    Args:
        store: The table.
        partition: The partition of all rows.
        bucket: The bucket of all rows.
        limits: When row groups and files end.
        next_sequence: The number of the first row, where rows are counted.
        fields: The columns of the files; by default all columns of the table. Rows that keep their
            ids bring the hidden columns along.
    """

    store: TableStore
    partition: bytes
    bucket: int
    limits: FileLimits
    next_sequence: int = 0
    fields: tuple[DataField, ...] = ()
    buffered_bytes: int = field(default=0, init=False)
    buffered_rows: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        store = self.store
        self.fields = self.fields or store.schema.fields
        self._buffer: list[pa.Table] = []
        self._files = RollingFiles(
            store,
            store.new_files(self.partition, self.bucket),
            self.fields,
            self.limits,
            FileNames.of(store.options, store.env.new_id()),
            self._new_record,
        )

    @property
    def has_open_file(self) -> bool:
        return self._files.has_open_file

    @property
    def is_due(self) -> bool:
        """Whether the buffer holds enough rows for a row group."""
        limits = self.limits
        return (
            self.buffered_rows >= limits.row_group_rows
            or self.buffered_bytes >= limits.row_group_bytes
        )

    def add(self, table: pa.Table) -> None:
        """Buffer rows, without columns that the files do not have."""
        names = [f.name for f in self.fields]
        if table.column_names != names:
            table = table.select(names)
        self._buffer.append(table)
        self.buffered_rows += table.num_rows
        self.buffered_bytes += table.nbytes

    def flush(self, pool: Executor | None = None) -> None:
        """Write what is buffered; ``pool`` lends a thread for the statistics."""
        if not self._buffer:
            return
        table = pa.concat_tables(self._buffer)
        self._clear()
        self._files.write(table, pool)

    @property
    def takes_columns(self) -> bool:
        """Whether rows can be written column by column."""
        return self._files.names.file_format == "parquet"

    def write_columns(self, rows: EditedRows, *, workers: int) -> None:
        """Write one row group, ``workers`` columns at a time; nothing is buffered."""
        self._files.write_columns(rows, workers=workers)

    def close_file(self) -> None:
        """End the file that is being written, if any; the next rows start another."""
        self._files.close_file()

    def take_written(self) -> Written:
        """Hand over the files that are finished."""
        return Written(self._files.take())

    def abort(self) -> None:
        """Delete every file that was not handed over; can be repeated when that fails."""
        self._clear()
        self._files.abort()

    @contextmanager
    def finished(self) -> Iterator[None]:
        """Finish the files at the end of the block; if anything fails, delete them."""
        try:
            yield
            self.flush()
            self.close_file()
        except BaseException:
            with suppress(StorageError):  # a leftover file is garbage; the failure is what matters
                self.abort()
            raise

    def write_all(self, tables: Iterable[pa.Table]) -> tuple[DataFile, ...]:
        """Write all rows in bounded memory, and hand over the files."""
        with self.finished():
            for rows in tables:
                self.add(rows)
                if self.is_due:
                    self.flush()
        return self.take_written().new_files

    def _clear(self) -> None:
        self._buffer, self.buffered_rows, self.buffered_bytes = [], 0, 0

    def _new_record(self) -> AppendRecord:
        return AppendRecord(self.store, self.fields, self)

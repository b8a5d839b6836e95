"""The rows of one bucket, written to data files that roll at a target size.

Rows wait in a buffer until they make a row group of decent size; then they are encoded while
another thread collects their statistics.
"""

from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from emberlake.formats import FileWriter, open_writer
from emberlake.options import (
    DATA_FILE_PREFIX,
    FILE_BLOCK_SIZE,
    FILE_COMPRESSION,
    FILE_FORMAT,
    FILE_SUFFIX_COMPRESSION,
    MEBIBYTE,
    STATS_DENSE_STORE,
    TARGET_FILE_ROWS,
    TARGET_FILE_SIZE,
    TableOptions,
)
from emberlake.spec.manifest import DataFile
from emberlake.spec.stats import StatsCollector, column_stats_modes
from emberlake.store.table_store import TableStore

_ROW_GROUP_ROWS: Final = 1_000_000  # fewer rows a group cost both time and bytes
_ROW_GROUP_BYTES: Final = 128 * MEBIBYTE
_APPEND_TARGET_BYTES: Final = 256 * MEBIBYTE


@dataclass(frozen=True, slots=True)
class FileLimits:
    """When a row group is written and when a file ends."""

    row_group_rows: int
    row_group_bytes: int
    file_rows: int
    file_bytes: int

    @staticmethod
    def of(options: TableOptions) -> "FileLimits":
        """The limits that a table's options ask for."""
        file_bytes = options.value(TARGET_FILE_SIZE) or _APPEND_TARGET_BYTES
        group_bytes = options.value(FILE_BLOCK_SIZE) or _ROW_GROUP_BYTES
        return FileLimits(
            row_group_rows=_ROW_GROUP_ROWS,
            row_group_bytes=max(1, min(group_bytes, file_bytes)),
            file_rows=max(1, options.value(TARGET_FILE_ROWS)),
            file_bytes=max(1, file_bytes),
        )


def data_file_name(options: TableOptions, writer_id: str, number: int) -> str:
    """``data-<id>-<number>.<format>``, with the codec in between when the table asks for it."""
    file_format = options.value(FILE_FORMAT)
    codec = options.value(FILE_COMPRESSION)
    suffix = f"{codec}.{file_format}" if options.value(FILE_SUFFIX_COMPRESSION) else file_format
    return f"{options.value(DATA_FILE_PREFIX)}{writer_id}-{number}.{suffix}"


class _OpenFile:
    """A data file that is being written."""

    def __init__(self, store: TableStore, folder: str, name: str) -> None:
        schema, options = store.schema, store.options
        self.name = name
        self.path = f"{folder}/{name}"
        self.rows = 0
        self._writer: FileWriter = open_writer(
            store.storage,
            self.path,
            schema.fields,
            options,
            options.value(FILE_FORMAT),
        )
        self._stats = StatsCollector(schema.fields, column_stats_modes(schema.fields, options))
        self._dense = options.value(STATS_DENSE_STORE)

    @property
    def bytes_written(self) -> int:
        return self._writer.bytes_written

    def write(self, table: pa.Table, pool: Executor | None) -> None:
        self.rows += table.num_rows
        if pool is None:
            self._stats.update(table)
            self._writer.write(table)
            return
        stats = pool.submit(self._stats.update, table)
        try:
            self._writer.write(table)
        finally:
            stats.result()

    def close(self, *, first_sequence: int, schema_id: int, creation_time: int) -> DataFile:
        file_size = self._writer.close()
        stats, stats_columns = self._stats.finish(dense=self._dense)
        return DataFile(
            file_name=self.name,
            file_size=file_size,
            row_count=self.rows,
            value_stats=stats,
            value_stats_cols=stats_columns,
            min_sequence_number=first_sequence,
            max_sequence_number=first_sequence + self.rows - 1,
            schema_id=schema_id,
            creation_time=creation_time,
        )

    def abort(self) -> None:
        self._writer.abort()


@dataclass
class BucketWriter:
    """Buffers and writes the rows of one bucket of one partition."""

    store: TableStore
    partition: bytes
    bucket: int
    limits: FileLimits
    next_sequence: int = 0
    buffered_bytes: int = field(default=0, init=False)
    buffered_rows: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._folder = self.store.bucket_folder(self.partition, self.bucket)
        self._writer_id = self.store.env.new_id()
        self._file_number = 0
        self._buffer: list[pa.Table] = []
        self._open: _OpenFile | None = None
        self._closed: list[DataFile] = []

    @property
    def has_open_file(self) -> bool:
        return self._open is not None

    @property
    def is_due(self) -> bool:
        """Whether the buffer holds enough rows for a row group."""
        limits = self.limits
        return (
            self.buffered_rows >= limits.row_group_rows
            or self.buffered_bytes >= limits.row_group_bytes
        )

    def add(self, table: pa.Table) -> None:
        """Buffer rows."""
        self._buffer.append(table)
        self.buffered_rows += table.num_rows
        self.buffered_bytes += table.nbytes

    def flush(self, pool: Executor | None = None) -> None:
        """Write what is buffered; ``pool`` lends a thread for the statistics."""
        if not self._buffer:
            return
        table = pa.concat_tables(self._buffer)
        self._buffer, self.buffered_rows, self.buffered_bytes = [], 0, 0
        for group in self._row_groups(table):
            if self._open is None:
                self._open = self._open_file()
            self._open.write(group, pool)
            is_full = self._open.bytes_written >= self.limits.file_bytes
            if is_full or self._open.rows >= self.limits.file_rows:
                self.close_file()

    def close_file(self) -> None:
        """End the file that is being written, if any; the next rows start another."""
        if self._open is None:
            return
        closed = self._open.close(
            first_sequence=self.next_sequence,
            schema_id=self.store.schema.id,
            creation_time=self.store.env.local_now_ms(),
        )
        self.next_sequence += closed.row_count
        self._closed.append(closed)
        self._open = None

    def take_files(self) -> tuple[DataFile, ...]:
        """Hand over the files that are finished."""
        files, self._closed = tuple(self._closed), []
        return files

    def abort(self) -> None:
        """Delete every file that was not handed over; can be repeated when that fails."""
        self._buffer, self.buffered_rows, self.buffered_bytes = [], 0, 0
        if self._open is not None:
            self._open.abort()
            # A close that failed may have left a whole file.
            self.store.storage.delete(self._open.path)
            self._open = None
        while self._closed:
            self.store.storage.delete(f"{self._folder}/{self._closed[-1].file_name}")
            self._closed.pop()

    def _open_file(self) -> _OpenFile:
        name = data_file_name(self.store.options, self._writer_id, self._file_number)
        self._file_number += 1
        return _OpenFile(self.store, self._folder, name)

    def _row_groups(self, table: pa.Table) -> Iterator[pa.Table]:
        average = max(1, table.nbytes // max(1, table.num_rows))
        by_bytes = max(1, self.limits.row_group_bytes // average)
        start = 0
        while start < table.num_rows:
            in_file = self._open.rows if self._open else 0
            room = self.limits.file_rows - in_file
            rows = min(self.limits.row_group_rows, by_bytes, room, table.num_rows - start)
            yield table.slice(start, rows)
            start += rows

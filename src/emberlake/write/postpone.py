"""The rows of a table whose buckets are decided later: written as they come, for a compaction.

Spec: "Postpone". A compaction reads the files of one writer in order, so every writer has its own
file prefix. Sequence numbers and statistics mean nothing here. Rows are not merged.
"""

from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from emberlake.options import DATA_FILE_PREFIX, FILE_FORMAT, POSTPONE_BUCKET
from emberlake.store.table_store import TableStore
from emberlake.types import AtomicType, TypeRoot, nested_types
from emberlake.write.key_bucket import RecordBuffer
from emberlake.write.key_files import open_key_files, physical_rows
from emberlake.write.rolling import FileLimits, FileNames, Written

_AVRO: Final = "avro"
_MAX_WRITER: Final = 2**31 - 1
_MAX_TIMESTAMP_DIGITS: Final = 6
_MAX_TIME_DIGITS: Final = 3


def postpone_prefix(store: TableStore, commit_user: str) -> str:
    """How the names of all files of one writer begin."""
    writer = int(store.env.chance() * _MAX_WRITER)
    return f"{store.options.value(DATA_FILE_PREFIX)}-u-{commit_user}-s-{writer}-w-"


@dataclass
class PostponeWriter:
    """Writes the rows of one partition that have no bucket yet."""

    store: TableStore
    partition: bytes
    prefix: str
    first_sequence: int = 0

    def __post_init__(self) -> None:
        options = self.store.options
        file_format = _AVRO if _fits_avro(self.store) else options.value(FILE_FORMAT)
        self._buffer = RecordBuffer(self.first_sequence)
        self._limits = FileLimits.of(options)
        self._files = open_key_files(
            self.store,
            self.partition,
            POSTPONE_BUCKET,
            names=FileNames.of(
                options, self.store.env.new_id(), prefix=self.prefix, file_format=file_format
            ),
            has_stats=file_format != _AVRO,
        )

    @property
    def next_sequence(self) -> int:
        """The number after the last record that was flushed."""
        return self._buffer.next_sequence

    @property
    def buffered_bytes(self) -> int:
        return self._buffer.bytes

    @property
    def has_open_file(self) -> bool:
        return self._files.has_open_file

    @property
    def is_due(self) -> bool:
        """Whether the buffer holds enough for a row group."""
        return self._buffer.bytes >= self._limits.row_group_bytes

    def add(self, table: pa.Table) -> None:
        """Buffer records: the columns of the table and ``_VALUE_KIND``."""
        self._buffer.add(table)

    def flush(self, pool: Executor | None = None) -> None:
        """Write what is buffered; ``pool`` lends a thread for the statistics."""
        rows = self._buffer.take()
        if rows is not None:
            self._files.write(physical_rows(self.store.schema, rows), pool)

    def close_file(self) -> None:
        """End the open file, if any; the next rows start another."""
        self._files.close_file()

    def take_written(self) -> Written:
        """Hand over the files that are finished."""
        return Written(self._files.take())

    def abort(self) -> None:
        """Delete every file that was not handed over; if that fails, it can be repeated."""
        self._buffer.clear()
        self._files.abort()


def _fits_avro(store: TableStore) -> bool:
    types = [inner for f in store.schema.fields for inner in nested_types(f.type)]
    return not any(
        isinstance(inner, AtomicType)
        and (
            (inner.root.is_timestamp and inner.precision > _MAX_TIMESTAMP_DIGITS)
            or (inner.root is TypeRoot.TIME and inner.precision > _MAX_TIME_DIGITS)
        )
        for inner in types
    )

"""The rows of one bucket of a primary-key table: buffered, folded, written as level-0 files.

Spec: "What a writer does". Records get their sequence numbers in order of arrival. A flush sorts
them by key, folds the records of each key with the table's merge engine, and keeps deletes. Every
flush ends its files, so no key is in a file twice. Only the keys are sorted at once. The rows are
ordered, folded and written slice by slice, so a flush needs little more memory than the buffer.
"""

from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa

from emberlake.base.option_texts import MEBIBYTE
from emberlake.merge.fold import fold
from emberlake.merge.order import RowOrder, order_rows
from emberlake.merge.plan import MergePlan
from emberlake.merge.rows import take_rows
from emberlake.spec.key_value import SEQUENCE
from emberlake.store.table_store import TableStore
from emberlake.write.key_files import open_changelog_files, open_key_files, physical_rows
from emberlake.write.rolling import RollingFiles, Written

_SLICE_ROWS: Final = 1_000_000
_SLICE_BYTES: Final = 32 * MEBIBYTE
_COPIED_BYTES: Final = 16 * MEBIBYTE
# Arrow can join up to 2 GiB of text in a column.
_MAX_JOINED_BYTES: Final = 1024 * MEBIBYTE


class RecordBuffer:
    """Records in order of arrival; they get their sequence numbers when they are taken out.

    The columns of a batch that came in a stream share its memory, which is released only with the
    last of them. So batches are copied as soon as there are enough, and not all of them at the end.
    """

    def __init__(self, next_sequence: int) -> None:
        self.next_sequence = next_sequence
        self.bytes = 0
        self._tables: list[pa.Table] = []  # whose columns have memory of their own
        self._arrived: list[pa.Table] = []  # after them
        self._arrived_bytes = 0

    def add(self, table: pa.Table) -> None:
        self._arrived.append(table)
        self._arrived_bytes += table.nbytes
        self.bytes += table.nbytes
        if self._arrived_bytes >= _COPIED_BYTES:
            self._tables.append(pa.concat_tables(self._arrived).combine_chunks())
            self._arrived, self._arrived_bytes = [], 0

    def take(self) -> pa.Table | None:
        """All records, numbered; None when there are none."""
        tables = [*self._tables, *self._arrived]
        self.clear()
        if not tables:
            return None
        rows = _joined(tables)
        first, self.next_sequence = self.next_sequence, self.next_sequence + rows.num_rows
        numbers = pa.array(np.arange(first, self.next_sequence))
        return rows.append_column(SEQUENCE, numbers)

    def clear(self) -> None:
        self._tables, self._arrived = [], []
        self.bytes = self._arrived_bytes = 0


def _joined(tables: list[pa.Table]) -> pa.Table:
    """The rows of all tables, with one chunk for each column; empties the list.

    Taking rows from chunked columns would join the chunks again for every slice of a flush. The
    chunks of a column are released before the next column is joined.
    """
    schema, columns = tables[0].schema, []
    byte_count = sum(table.nbytes for table in tables)
    for _ in schema.names:
        chunks = [chunk for table in tables for chunk in table.column(0).chunks]
        columns.append(chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks))
        tables[:] = [table.remove_column(0) for table in tables]
        del chunks
        _give_back(byte_count)
    tables.clear()
    return pa.Table.from_arrays(columns, schema=schema)


def _give_back(byte_count: int) -> None:
    """Make Arrow's allocator return free memory, if a flush is large enough for it to matter.

    Otherwise it keeps as much as another buffer for a while, just when a flush needs room.
    """
    if byte_count >= _SLICE_BYTES:
        pa.default_memory_pool().release_unused()


def _slices(order: RowOrder, rows: pa.Table) -> Iterator[tuple[int, int]]:
    """Slices of sorted records, cut between keys; each becomes a row group."""
    average = max(1, rows.nbytes // rows.num_rows)
    size = max(1, min(_SLICE_ROWS, _SLICE_BYTES // average))
    start = 0
    while start < rows.num_rows:
        after = int(np.searchsorted(order.starts, start + size))
        end = int(order.starts[after]) if after < len(order.starts) else rows.num_rows
        yield start, end
        start = end


@dataclass
class KeyBucketWriter:
    """Writes the records of one bucket of one partition.

    Args:
        store: The table.
        partition: Its serialized partition.
        bucket: Its number.
        plan: How the records of one key are merged, over all columns of the table.
        first_sequence: The number of the first record.
        has_changelog: Whether the records are also written to changelog files, as they came.
    """

    store: TableStore
    partition: bytes
    bucket: int
    plan: MergePlan
    first_sequence: int = 0
    has_changelog: bool = False
    _files: RollingFiles = field(init=False, repr=False)
    _changelog: RollingFiles | None = field(init=False, repr=False)

    has_open_file = False  # every flush ends its files, so none stays open

    def __post_init__(self) -> None:
        where = self.store, self.partition, self.bucket
        self._buffer = RecordBuffer(self.first_sequence)
        self._files = open_key_files(*where)
        self._changelog = open_changelog_files(*where) if self.has_changelog else None

    @property
    def next_sequence(self) -> int:
        """The number after the last record that was flushed."""
        return self._buffer.next_sequence

    @property
    def buffered_bytes(self) -> int:
        return self._buffer.bytes

    @property
    def is_due(self) -> bool:
        """There is no use in flushing early, but Arrow must be able to join the buffer."""
        return self._buffer.bytes >= _MAX_JOINED_BYTES

    def add(self, table: pa.Table) -> None:
        """Buffer records: the columns of the table and ``_VALUE_KIND``."""
        self._buffer.add(table)

    def flush(self, pool: Executor | None = None) -> None:
        """Write what is buffered; ``pool`` lends a thread for the statistics."""
        rows = self._buffer.take()
        if rows is None:
            return
        byte_count = rows.nbytes
        order = order_rows(rows, self.plan.keys, self.plan.sequences)
        for start, end in _slices(order, rows):
            _give_back(byte_count)
            self._write(take_rows(rows, order.rows[start:end]), pool)
        del rows, order
        _give_back(byte_count)  # otherwise the next buffer would need memory in addition to it
        self._files.close_file()
        if self._changelog is not None:
            self._changelog.close_file()

    def _write(self, rows: pa.Table, pool: Executor | None) -> None:
        """Write sorted records, with all records of each of their keys."""
        if self._changelog is not None:
            self._changelog.write(physical_rows(self.store.schema, rows), pool)
        folded = fold(self.plan, rows, is_sorted=True, keep_deletes=True)
        self._files.write(physical_rows(self.store.schema, folded), pool)

    def close_file(self) -> None:
        """Nothing to do: a flush ends its files."""

    def take_written(self) -> Written:
        """Hand over the files that are finished."""
        changelog = self._changelog.take() if self._changelog is not None else ()
        return Written(self._files.take(), changelog)

    def abort(self) -> None:
        """Delete every file that was not handed over; if that fails, it can be repeated."""
        self._buffer.clear()
        self._files.abort()
        if self._changelog is not None:
            self._changelog.abort()

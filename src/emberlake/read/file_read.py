"""Read rows of one data file, or of several that hold their columns side by side.

A read is given all that it uses: where the files are, the plan of their columns, the values that no
file has, and which rows are deleted or not requested. It can also return the positions of its rows.
"""

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa

from emberlake.base.option_texts import MEBIBYTE
from emberlake.errors import CorruptFile
from emberlake.formats import FileReader, format_of, open_reader
from emberlake.formats.file_format import DEFAULT_BATCH_ROWS, batch_of_rows
from emberlake.io.storage import Storage
from emberlake.read.column_plan import ColumnPlan, Constants
from emberlake.spec.column_buffers import I64, Mask
from emberlake.spec.deletion_vector import DeletionVector, deleted_positions
from emberlake.spec.manifest import DeletionVectorRange
from emberlake.store.vector_files import load_vector

# Streamed rows come in batches of about this many stored bytes: a merge holds one batch of every
# run.
_BATCH_BYTES: Final = 4 * MEBIBYTE
_MIN_BATCH_ROWS: Final = 1024


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A data file: its name and path, and the row count and size in its manifest."""

    name: str
    path: str
    row_count: int
    size: int


@dataclass(frozen=True, slots=True)
class VectorLocation:
    """Where the deletion vector of a data file is stored."""

    path: str
    range: DeletionVectorRange

    def load(self, storage: Storage) -> DeletionVector:
        """The deletion vector."""
        return load_vector(storage, self.path, self.range)


@dataclass(frozen=True)
class FileRead:
    """A read of stored rows; opens nothing until rows are requested.

    Args:
        storage: Holds the files.
        files: One for each file of the plan, in its order; all of them have the same rows.
        plan: What to read of the files and how to convert it.
        constants: The values of the columns that the plan takes from no file.
        vector: Says which rows are deleted; None: no row is.
        rows: The first row and the one after the last; None: all rows.
        verifies_pages: Whether to compare the pages of files with their checksums.
        first_row_id: The id of the first row, if the plan makes row ids from positions.
        owner: The file that positions and deletions refer to; by default the first one.
        batch_bytes: Rows come in batches of about this many stored bytes.
    """

    storage: Storage
    files: tuple[StoredFile, ...]
    plan: ColumnPlan
    constants: Constants = field(default_factory=dict)
    vector: VectorLocation | None = None
    rows: tuple[int, int] | None = None
    verifies_pages: bool = False
    first_row_id: int | None = None
    owner: str | None = None
    batch_bytes: int = _BATCH_BYTES

    @property
    def name(self) -> str:
        """The file that positions of rows refer to."""
        return self.owner or self.files[0].name

    @property
    def row_count(self) -> int:
        """The number of stored rows."""
        return self.files[0].row_count

    @property
    def arrow_schema(self) -> pa.Schema:
        """The schema of the rows."""
        return self.plan.arrow_schema

    def batches(self) -> Generator[pa.RecordBatch, None, None]:
        """The rows in batches, in bounded memory; closing the generator releases the files."""
        with closing(self.tables()) as tables:
            for rows in tables:
                yield from rows.to_batches()

    def tables(self) -> Generator[pa.Table, None, None]:
        """The rows in small tables, in bounded memory; closing the generator releases the files."""
        with ExitStack() as resources:
            for _, parts, _ in self._stored(resources):
                yield self.plan.apply(parts, self.constants)

    def located_tables(self) -> Generator[tuple[I64, pa.Table], None, None]:
        """The rows in small tables, each with the positions of its rows in the file.

        Rows that do not match, or are deleted, are left out. Closing the generator releases the
        files.
        """
        with ExitStack() as resources:
            for position, parts, is_live in self._stored(resources):
                found, rows = self.plan.locate(parts, self.constants)
                live = found if is_live is None else np.flatnonzero(is_live)[found]
                yield live + position, rows

    def table(self, *, use_threads: bool) -> pa.Table:
        """The rows at once."""
        plan = self.plan
        # A read of the whole file at once does not return the positions of its rows.
        has_gaps = plan.numbers_rows and plan.skipping is not None
        if self.vector is not None or self.rows is not None or has_gaps:
            tables = list(self.tables())
            return pa.concat_tables(tables) if tables else self.arrow_schema.empty_table()
        with ExitStack() as resources:
            readers = self._open(resources)
            parts = [
                reader.read_table(columns.read, plan.skipping, use_threads=use_threads)
                for reader, columns in zip(readers, plan.files, strict=True)
            ]
            numbers = [self._row_ids(0, self.row_count)] if plan.numbers_rows else []
            return plan.apply([*parts, *numbers], self.constants)

    def _stored(
        self, resources: ExitStack
    ) -> Iterator[tuple[int, list[pa.RecordBatch], Mask | None]]:
        """Chunks of stored rows without the deleted ones, one part for each file.

        Each comes with its position, and a mask of its live rows; None: all of them are live.
        """
        readers = self._open(resources)
        vector = None if self.vector is None else self.vector.load(self.storage)
        for position, parts in self._chunks(readers):
            count = parts[0].num_rows
            if self.plan.numbers_rows:
                parts = [*parts, self._row_ids(position, count)]  # noqa: PLW2901
            is_live = _live_rows(vector, position, count)
            if is_live is not None:
                parts = [_filtered(part, is_live) for part in parts]  # noqa: PLW2901
            yield position, parts, is_live

    def _chunks(self, readers: Sequence[FileReader]) -> Iterator[tuple[int, list[pa.RecordBatch]]]:
        """Chunks of the requested rows as they are stored, each with its position."""
        found = [
            reader.read(columns.read, self.plan.skipping, self._batch_rows, rows=self.rows)
            for reader, columns in zip(readers, self.plan.files, strict=True)
        ]
        if self.rows is not None:
            found = [_cut(batches, *self.rows) for batches in found]
        return _side_by_side(found) if len(found) > 1 else ((at, [b]) for at, b in found[0])

    def _row_ids(self, position: int, count: int) -> pa.RecordBatch:
        """The ids of rows by their positions; null if the files store them."""
        if self.first_row_id is None:
            ids = pa.nulls(count, pa.int64())
        else:
            first = self.first_row_id + position
            ids = pa.array(np.arange(first, first + count))
        return pa.RecordBatch.from_arrays([ids], ["ids"])

    @property
    def _batch_rows(self) -> int:
        size = sum(file.size for file in self.files)
        fitting = self.batch_bytes * self.row_count // max(1, size)
        return max(_MIN_BATCH_ROWS, min(DEFAULT_BATCH_ROWS, fitting))

    def _open(self, resources: ExitStack) -> list[FileReader]:
        readers = []
        for file, columns in zip(self.files, self.plan.files, strict=True):
            reader = resources.enter_context(
                open_reader(
                    self.storage,
                    file.path,
                    columns.fields,
                    format_of(file.name),
                    file.size,
                    verifies_pages=self.verifies_pages,
                )
            )
            # Rows are found, skipped and deleted by position, so the manifest must be right.
            found, expected = reader.num_rows, file.row_count
            if found != expected:
                raise CorruptFile(
                    file.path, f"it has {found} rows, but its manifest says {expected}"
                )
            if expected != self.row_count:
                raise CorruptFile(
                    file.path,
                    f"it has {expected} rows, but {self.files[0].name} has {self.row_count}",
                )
            readers.append(reader)
        return readers


def stream_rows(files: Iterable[FileRead]) -> Generator[pa.Table, None, None]:
    """The rows of files, one after the other; closing the generator closes the open file."""
    for file in files:
        with closing(file.tables()) as tables:
            yield from tables


def _cut(
    batches: Iterable[tuple[int, pa.RecordBatch]], start: int, stop: int
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows from ``start`` up to ``stop``; nothing after them is read."""
    for position, batch in batches:
        if position >= stop:
            return
        first = max(start - position, 0)
        rows = batch.slice(first, stop - position - first)
        if rows.num_rows:
            yield position + first, rows


def _side_by_side(
    files: Sequence[Iterator[tuple[int, pa.RecordBatch]]],
) -> Iterator[tuple[int, list[pa.RecordBatch]]]:
    """The same rows of several files; batches are cut wherever a batch of any file ends."""
    heads = [next(batches, None) for batches in files]
    while None not in heads:
        known = [head for head in heads if head is not None]
        position = known[0][0]
        count = min(batch.num_rows for _, batch in known)
        yield position, [batch.slice(0, count) for _, batch in known]
        heads = [
            next(batches, None)
            if batch.num_rows == count
            else (position + count, batch.slice(count))
            for batches, (_, batch) in zip(files, known, strict=True)
        ]


def _live_rows(vector: DeletionVector | None, position: int, count: int) -> Mask | None:
    """A mask of the rows that are not deleted; None if none is deleted."""
    deleted = () if vector is None else deleted_positions(vector, position, count)
    if not len(deleted):
        return None
    is_live = np.ones(count, bool)
    is_live[deleted] = False
    return is_live


def _filtered(batch: pa.RecordBatch, is_live: Mask) -> pa.RecordBatch:
    if not batch.num_columns:  # Arrow would lose the number of rows
        return batch_of_rows(int(np.count_nonzero(is_live)))
    return batch.filter(pa.array(is_live))

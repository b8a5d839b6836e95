"""Read rows of one data file, or of several that hold their columns side by side.

A read takes what it uses: where the files are, the plan of their columns, the values that no file
has, and which rows are deleted or not asked for. It can tell at which positions its rows stand.
"""

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa

from emberlake.errors import CorruptFile, FileNotFound
from emberlake.formats import FileReader, format_of, open_reader
from emberlake.formats.file_format import DEFAULT_BATCH_ROWS, batch_of_rows
from emberlake.io.storage import Storage
from emberlake.options import MEBIBYTE
from emberlake.read.column_plan import ColumnPlan, Constants
from emberlake.spec.column_buffers import I64, Mask
from emberlake.spec.deletion_vector import (
    CorruptDeletionVector,
    DeletionVector,
    decode_deletion_vector,
    deleted_positions,
    deletion_vector_extent,
)
from emberlake.spec.manifest import DeletionVectorRange

# Rows that are read bit by bit come in batches of about so many bytes, as they are stored: a merge
# holds one of every run.
_BATCH_BYTES: Final = 4 * MEBIBYTE
_MIN_BATCH_ROWS: Final = 1024


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A data file: what it is called, where it is, and what its manifest says of it."""

    name: str
    path: str
    row_count: int
    size: int


@dataclass(frozen=True, slots=True)
class VectorPlace:
    """Where the deletion vector of a data file stands."""

    path: str
    range: DeletionVectorRange

    def load(self, storage: Storage) -> DeletionVector:
        """The deletion vector."""
        offset, length = deletion_vector_extent(self.range)
        try:
            raw = storage.read_range(self.path, offset, length)
            return decode_deletion_vector(raw, self.range.length)
        except FileNotFound as error:
            owner = self.range.data_file_name
            raise FileNotFound(self.path, f"it holds deletions of {owner}") from error
        except CorruptDeletionVector as error:
            raise CorruptFile(self.path, str(error)) from error


@dataclass(frozen=True)
class FileRead:
    """What is to be read of rows that are stored; opens nothing until it is asked to.

    Args:
        storage: Holds the files.
        files: One for each file of the plan, in its order; all of them have the same rows.
        plan: What is read of the files and what becomes of it.
        constants: The values of the columns that the plan takes from no file.
        vector: Tells which rows are deleted; None: no row is.
        rows: The first row and the one behind the last; None: all rows.
    """

    storage: Storage
    files: tuple[StoredFile, ...]
    plan: ColumnPlan
    constants: Constants = field(default_factory=dict)
    vector: VectorPlace | None = None
    rows: tuple[int, int] | None = None

    @property
    def name(self) -> str:
        """The file by which positions of rows are kept."""
        return self.files[0].name

    @property
    def row_count(self) -> int:
        """The rows that are stored."""
        return self.files[0].row_count

    @property
    def arrow_schema(self) -> pa.Schema:
        """The schema of the rows."""
        return self.plan.arrow_schema

    def batches(self) -> Generator[pa.RecordBatch, None, None]:
        """The rows, a batch at a time, in bounded memory; closing it releases the files."""
        with closing(self.tables()) as tables:
            for rows in tables:
                yield from rows.to_batches()

    def tables(self) -> Generator[pa.Table, None, None]:
        """The rows in small tables, in bounded memory; closing it releases the files."""
        with ExitStack() as resources:
            for _, parts, _ in self._stored(resources):
                yield self.plan.apply(parts, self.constants)

    def located_tables(self) -> Generator[tuple[I64, pa.Table], None, None]:
        """The rows in small tables, each with the positions of its rows in the file.

        Rows that do not match, or are deleted, have no position in it. Closing it releases the
        files.
        """
        with ExitStack() as resources:
            for position, parts, is_live in self._stored(resources):
                places, rows = self.plan.locate(parts, self.constants)
                live = places if is_live is None else np.flatnonzero(is_live)[places]
                yield live + position, rows

    def table(self, *, use_threads: bool) -> pa.Table:
        """The rows at once."""
        if self.vector is not None or self.rows is not None:
            tables = list(self.tables())
            return pa.concat_tables(tables) if tables else self.arrow_schema.empty_table()
        with ExitStack() as resources:
            readers = self._open(resources)
            parts = [
                reader.read_table(columns.read, self.plan.skipping, use_threads=use_threads)
                for reader, columns in zip(readers, self.plan.files, strict=True)
            ]
            return self.plan.apply(parts, self.constants)

    def _stored(
        self, resources: ExitStack
    ) -> Iterator[tuple[int, list[pa.RecordBatch], Mask | None]]:
        """Stretches of stored rows without those that are deleted, a part for each file.

        Each comes with its position, and which of its rows are there; None: all of them.
        """
        readers = self._open(resources)
        vector = None if self.vector is None else self.vector.load(self.storage)
        for position, parts in self._stretches(readers):
            is_live = _live_rows(vector, position, parts[0].num_rows)
            if is_live is not None:
                parts = [_filtered(part, is_live) for part in parts]  # noqa: PLW2901
            yield position, parts, is_live

    def _stretches(
        self, readers: Sequence[FileReader]
    ) -> Iterator[tuple[int, list[pa.RecordBatch]]]:
        """What is stored of the rows that are asked for, each stretch with its position."""
        found = [
            reader.read(columns.read, self.plan.skipping, self._batch_rows, rows=self.rows)
            for reader, columns in zip(readers, self.plan.files, strict=True)
        ]
        if self.rows is not None:
            found = [_cut(batches, *self.rows) for batches in found]
        return _side_by_side(found) if len(found) > 1 else ((at, [b]) for at, b in found[0])

    @property
    def _batch_rows(self) -> int:
        size = sum(file.size for file in self.files)
        fitting = _BATCH_BYTES * self.row_count // max(1, size)
        return max(_MIN_BATCH_ROWS, min(DEFAULT_BATCH_ROWS, fitting))

    def _open(self, resources: ExitStack) -> list[FileReader]:
        readers = []
        for file, columns in zip(self.files, self.plan.files, strict=True):
            reader = resources.enter_context(
                open_reader(
                    self.storage, file.path, columns.fields, format_of(file.name), file.size
                )
            )
            # Rows are found, skipped and deleted by what the manifest says of them.
            found, told = reader.num_rows, file.row_count
            if found != told:
                raise CorruptFile(file.path, f"it has {found} rows where its manifest says {told}")
            if told != self.row_count:
                raise CorruptFile(
                    file.path, f"it has {told} rows beside the {self.row_count} of {self.name}"
                )
            readers.append(reader)
        return readers


def _cut(
    batches: Iterable[tuple[int, pa.RecordBatch]], start: int, stop: int
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows from one position on, before another; what comes behind is not read."""
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
    """The same rows of several files: batches, however long, cut where any of them ends."""
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
    """Which of some rows are not deleted; None when none is."""
    deleted = () if vector is None else deleted_positions(vector, position, count)
    if not len(deleted):
        return None
    is_live = np.ones(count, bool)
    is_live[deleted] = False
    return is_live


def _filtered(batch: pa.RecordBatch, is_live: Mask) -> pa.RecordBatch:
    if not batch.num_columns:  # Arrow forgets the number of rows
        return batch_of_rows(int(np.count_nonzero(is_live)))
    return batch.filter(pa.array(is_live))

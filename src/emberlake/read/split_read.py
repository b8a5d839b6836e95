"""Read one data file of a split: deletion vector, schema evolution, exact filter, projection."""

from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa

from emberlake.errors import CorruptFile, FileNotFound
from emberlake.formats import FileReader, format_of, open_reader
from emberlake.formats.file_format import DEFAULT_BATCH_ROWS
from emberlake.merge.fold import without_retracts
from emberlake.options import INDEX_IN_DATA_DIR, MEBIBYTE
from emberlake.predicates import Predicate, filter_rows
from emberlake.read.evolve import Evolution, plan_evolution, translate_predicate
from emberlake.read.projection import Handout
from emberlake.scan.splits import DataSplit, DeletionFile
from emberlake.spec.column_buffers import I64
from emberlake.spec.deletion_vector import (
    CorruptDeletionVector,
    DeletionVector,
    decode_deletion_vector,
    deleted_positions,
    deletion_vector_extent,
)
from emberlake.spec.key_value import KIND, KIND_FIELD, SEQUENCE_FIELD
from emberlake.spec.manifest import DataFile
from emberlake.spec.values import to_arrow_scalar
from emberlake.store.table_store import TableStore
from emberlake.types import DataField, arrow_field, arrow_schema

_SEQUENCE_COLUMN: Final = arrow_field(SEQUENCE_FIELD)
# Rows that are read bit by bit come in batches of about so many bytes, as they are stored: a merge
# holds one of every run.
_BATCH_BYTES: Final = 4 * MEBIBYTE
_MIN_BATCH_ROWS: Final = 1024


@dataclass(frozen=True)
class ReadShape:
    """How the files of one schema version are read: made once, used for every such file."""

    predicate: Predicate | None
    file_fields: tuple[DataField, ...]
    read_fields: tuple[DataField, ...]  # with partition columns
    evolution: Evolution  # without them
    skipping: Predicate | None  # what row groups may be skipped by
    # What comes out; None: all that is read, for a merge.
    handout: Handout | None
    drops_retracts: bool = False  # rows that take a row back are not wanted
    keeps_kind: bool = False  # the kind that is stored is the one that comes out

    @cached_property
    def read_schema(self) -> pa.Schema:
        return arrow_schema(self.read_fields)


def plan_read_shape(
    store: TableStore,
    file_fields: tuple[DataField, ...],
    read_fields: tuple[DataField, ...],
    predicate: Predicate | None,
    handout: Handout | None,
    *,
    drops_retracts: bool = False,
    keeps_kind: bool = False,
) -> ReadShape:
    """How to read columns, and rows that match, out of files with the given columns."""
    if drops_retracts or keeps_kind:
        read_fields = (*read_fields, KIND_FIELD)
    # Partition columns have one value in a file, and the manifest knows it.
    stored = tuple(f for f in read_fields if f.name not in store.schema.partition_keys)
    return ReadShape(
        predicate,
        file_fields,
        read_fields,
        plan_evolution(file_fields, stored),
        None if predicate is None else translate_predicate(predicate, file_fields),
        handout,
        drops_retracts,
        keeps_kind,
    )


@dataclass(frozen=True)
class FileRead:
    """What is to be read of one data file; opens nothing until it is asked to."""

    store: TableStore
    split: DataSplit
    file: DataFile
    shape: ReadShape
    sequence: int | None = None  # stands for the sequence number of every row

    @property
    def row_count(self) -> int:
        """The rows that are stored."""
        return self.file.row_count

    def batches(self) -> Generator[pa.RecordBatch, None, None]:
        """The rows, a batch at a time, in bounded memory; closing it releases the file."""
        with closing(self.tables()) as tables:
            for rows in tables:
                yield from rows.to_batches()

    def tables(self) -> Generator[pa.Table, None, None]:
        """The rows in small tables, in bounded memory; closing it releases the file."""
        with self._open() as reader:
            vector = self._load_vector()
            for position, batch in self._located_batches(reader):
                yield self._finish(_undeleted(batch, position, vector))

    def located_tables(self) -> Generator[tuple[I64, pa.Table], None, None]:
        """The rows in small tables, each with where its rows stand in the file.

        For reads that filter nothing; closing it releases the file.
        """
        assert self.shape.predicate is None
        assert not self.shape.drops_retracts
        with self._open() as reader:
            vector = self._load_vector()
            for position, batch in self._located_batches(reader):
                kept = _undeleted_places(batch.num_rows, position, vector)
                rows = batch if len(kept) == batch.num_rows else batch.take(pa.array(kept))
                yield kept + position, self._finish(rows)

    def table(self, *, use_threads: bool) -> pa.Table:
        """The rows at once."""
        name = self.file.file_name
        if name in self.split.deletion_files or name in self.split.ranges:
            tables = list(self.tables())
            return pa.concat_tables(tables) if tables else self.arrow_schema.empty_table()
        with self._open() as reader:
            columns, skipping = self.shape.evolution.file_columns, self.shape.skipping
            return self._finish(reader.read_table(columns, skipping, use_threads=use_threads))

    def _located_batches(self, reader: FileReader) -> Iterator[tuple[int, pa.RecordBatch]]:
        """What is stored, of the rows that the split is about, each batch with its position."""
        columns, skipping = self.shape.evolution.file_columns, self.shape.skipping
        rows = self.split.ranges.get(self.file.file_name)
        batches = reader.read(columns, skipping, self._batch_rows, rows=rows)
        return batches if rows is None else _cut(batches, *rows)

    @property
    def _batch_rows(self) -> int:
        fitting = _BATCH_BYTES * self.file.row_count // max(1, self.file.file_size)
        return max(_MIN_BATCH_ROWS, min(DEFAULT_BATCH_ROWS, fitting))

    @property
    def path(self) -> str:
        return self.store.data_file_path(self.split.partition, self.split.bucket, self.file)

    @property
    def arrow_schema(self) -> pa.Schema:
        """The schema of the rows."""
        handout = self.shape.handout
        if handout is not None:
            return handout.arrow_schema
        schema = self.shape.read_schema
        return schema if self.sequence is None else schema.append(_SEQUENCE_COLUMN)

    def _open(self) -> FileReader:
        reader = open_reader(
            self.store.storage,
            self.path,
            self.shape.file_fields,
            format_of(self.file.file_name),
            self.file.file_size,
        )
        # Rows are found, skipped and deleted by what the manifest says of them.
        found, told = reader.num_rows, self.file.row_count
        if found != told:
            reader.close()
            raise CorruptFile(self.path, f"it has {found} rows where its manifest says {told}")
        return reader

    def _load_vector(self) -> DeletionVector | None:
        place = self.split.deletion_files.get(self.file.file_name)
        return None if place is None else load_deletion_vector(self.store, self.split, place)

    def _finish(self, rows: pa.RecordBatch | pa.Table) -> pa.Table:
        shape = self.shape
        table = rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows])
        # A table without columns may forget how many rows it has.
        table = with_partition(
            self.store,
            self.split,
            shape.evolution.apply(table),
            shape.read_fields,
            row_count=rows.num_rows,
        )
        if shape.drops_retracts:
            table = without_retracts(table)
        if shape.predicate is not None:
            table = filter_rows(shape.predicate, table)
        if shape.handout is None:
            return table if self.sequence is None else _with_sequence(table, self.sequence)
        kinds = table.column(KIND) if shape.keeps_kind else None
        return shape.handout.apply(table, kinds)


def _with_sequence(rows: pa.Table, sequence: int) -> pa.Table:
    numbers = pa.repeat(pa.scalar(sequence, pa.int64()), rows.num_rows)
    return rows.append_column(_SEQUENCE_COLUMN, numbers)


def with_partition(
    store: TableStore,
    split: DataSplit,
    rows: pa.Table,
    fields: tuple[DataField, ...],
    *,
    row_count: int,
) -> pa.Table:
    """The rows with all the fields, those of the partition added."""
    keys = store.schema.partition_keys
    missing = {f.name for f in fields if f.name in keys and f.name not in rows.column_names}
    if not missing:
        return rows
    values = dict(zip(keys, store.partition_values(split.partition), strict=True))
    columns = [
        pa.repeat(to_arrow_scalar(f.type, values[f.name]), row_count)
        if f.name in missing
        else rows.column(f.name)
        for f in fields
    ]
    return pa.Table.from_arrays(columns, schema=arrow_schema(fields))


def load_deletion_vector(
    store: TableStore, split: DataSplit, place: DeletionFile
) -> DeletionVector:
    """The deletion vector of one data file."""
    path = place.external_path or store.layout.index(place.index_file_name)
    if place.external_path is None and store.options.value(INDEX_IN_DATA_DIR):
        path = f"{store.bucket_folder(split.partition, split.bucket)}/{place.index_file_name}"
    offset, length = deletion_vector_extent(place.range)
    try:
        return decode_deletion_vector(
            store.storage.read_range(path, offset, length), place.range.length
        )
    except FileNotFound as error:
        raise FileNotFound(path, f"it holds deletions of {place.range.data_file_name}") from error
    except CorruptDeletionVector as error:
        raise CorruptFile(path, str(error)) from error


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


def _undeleted(
    batch: pa.RecordBatch, position: int, vector: DeletionVector | None
) -> pa.RecordBatch:
    if vector is None:
        return batch
    deleted = deleted_positions(vector, position, batch.num_rows)
    if not len(deleted):
        return batch
    keep = np.ones(batch.num_rows, bool)
    keep[deleted] = False
    return batch.filter(pa.array(keep))


def _undeleted_places(count: int, position: int, vector: DeletionVector | None) -> I64:
    """Which rows of a batch are not deleted, counted from its first."""
    deleted = () if vector is None else deleted_positions(vector, position, count)
    return np.delete(np.arange(count), deleted) if len(deleted) else np.arange(count)

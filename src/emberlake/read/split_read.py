"""Read one data file of a split: deletion vector, schema evolution, exact filter, projection."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from emberlake.errors import CorruptFile, FileNotFound
from emberlake.formats import FileReader, format_of, open_reader
from emberlake.predicates import Predicate, filter_rows
from emberlake.read.evolve import Evolution, plan_evolution, translate_predicate
from emberlake.read.projection import Projection
from emberlake.scan.splits import DataSplit, DeletionFile
from emberlake.spec.deletion_vector import (
    CorruptDeletionVector,
    DeletionVector,
    decode_deletion_vector,
    deleted_positions,
    deletion_vector_extent,
)
from emberlake.spec.manifest import DataFile
from emberlake.spec.values import to_arrow_scalar
from emberlake.store.table_store import TableStore
from emberlake.types import DataField


@dataclass(frozen=True)
class FileRead:
    """What is to be read of one data file; pickles, opens nothing until it is asked to."""

    store: TableStore
    split: DataSplit
    file: DataFile
    projection: Projection
    predicate: Predicate | None  # None also when every row of the file matches

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, a batch at a time, in bounded memory."""
        with self._open() as reader:
            vector = self._deletion_vector
            for position, batch in reader.read(self._evolution.file_columns, self._skipping):
                rows = self._finish(_undeleted(batch, position, vector))
                yield from rows.to_batches()

    def table(self, *, use_threads: bool) -> pa.Table:
        """The rows at once."""
        if self._deletion_vector is not None:
            return pa.Table.from_batches(list(self.batches()), self.projection.arrow_schema)
        with self._open() as reader:
            read = reader.read_table(
                self._evolution.file_columns, self._skipping, use_threads=use_threads
            )
            return self._finish(read)

    @property
    def path(self) -> str:
        return self.store.data_file_path(self.split.partition, self.split.bucket, self.file)

    def _open(self) -> FileReader:
        file_fields = self.store.schemas.load(self.file.schema_id).fields
        return open_reader(
            self.store.storage,
            self.path,
            file_fields,
            format_of(self.file.file_name),
            self.file.file_size,
        )

    @cached_property
    def _read_fields(self) -> tuple[DataField, ...]:
        return self.projection.read_fields(self.store.schema.fields, self.predicate)

    @cached_property
    def _evolution(self) -> Evolution:
        # Partition columns have one value in a file, and the manifest knows it.
        keys = self.store.schema.partition_keys
        stored = tuple(f for f in self._read_fields if f.name not in keys)
        return plan_evolution(self._file_fields, stored)

    @cached_property
    def _file_fields(self) -> tuple[DataField, ...]:
        return self.store.schemas.load(self.file.schema_id).fields

    @cached_property
    def _skipping(self) -> Predicate | None:
        """What row groups may be skipped by."""
        if self.predicate is None:
            return None
        return translate_predicate(self.predicate, self._file_fields)

    @cached_property
    def _deletion_vector(self) -> DeletionVector | None:
        place = self.split.deletion_files.get(self.file.file_name)
        return None if place is None else load_deletion_vector(self.store, place)

    def _finish(self, rows: pa.RecordBatch | pa.Table) -> pa.Table:
        table = rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows])
        table = self._with_partition(self._evolution.apply(table), rows.num_rows)
        if self.predicate is not None:
            table = filter_rows(self.predicate, table)
        return self.projection.apply(table)

    def _with_partition(self, table: pa.Table, rows: int) -> pa.Table:
        keys = self.store.schema.partition_keys
        if not any(f.name in keys for f in self._read_fields):
            return table
        values = dict(zip(keys, self.store.partition_values(self.split.partition), strict=True))
        columns = [
            pa.chunked_array([pa.repeat(to_arrow_scalar(f.type, values[f.name]), rows)])
            if f.name in values
            else table.column(f.name)
            for f in self._read_fields
        ]
        return pa.table(columns, names=[f.name for f in self._read_fields])


def load_deletion_vector(store: TableStore, place: DeletionFile) -> DeletionVector:
    """The deletion vector of one data file."""
    path = place.external_path or store.layout.index(place.index_file_name)
    offset, length = deletion_vector_extent(place.range)
    try:
        return decode_deletion_vector(
            store.storage.read_range(path, offset, length), place.range.length
        )
    except FileNotFound as error:
        raise FileNotFound(path, f"it holds deletions of {place.range.data_file_name}") from error
    except CorruptDeletionVector as error:
        raise CorruptFile(path, str(error)) from error


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

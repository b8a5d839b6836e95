"""Read one data file of a split: deletion vector, schema evolution, exact filter, projection."""

from collections.abc import Generator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from emberlake.errors import CorruptFile, FileNotFound
from emberlake.formats import FileReader, format_of, open_reader
from emberlake.options import INDEX_IN_DATA_DIR
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
from emberlake.types import DataField, arrow_schema


@dataclass(frozen=True)
class ReadShape:
    """How the files of one schema version are read: made once, used for every such file."""

    projection: Projection
    predicate: Predicate | None
    file_fields: tuple[DataField, ...]
    read_fields: tuple[DataField, ...]  # with partition columns
    evolution: Evolution  # without them
    skipping: Predicate | None  # what row groups may be skipped by

    @cached_property
    def read_schema(self) -> pa.Schema:
        return arrow_schema(self.read_fields)


def plan_read_shape(
    store: TableStore, schema_id: int, projection: Projection, predicate: Predicate | None
) -> ReadShape:
    """How to read the asked columns and rows out of files of a schema version."""
    file_fields = store.schemas.load(schema_id).fields
    read_fields = projection.read_fields(store.schema.fields, predicate)
    # Partition columns have one value in a file, and the manifest knows it.
    stored = tuple(f for f in read_fields if f.name not in store.schema.partition_keys)
    return ReadShape(
        projection,
        predicate,
        file_fields,
        read_fields,
        plan_evolution(file_fields, stored),
        None if predicate is None else translate_predicate(predicate, file_fields),
    )


@dataclass(frozen=True)
class FileRead:
    """What is to be read of one data file; opens nothing until it is asked to."""

    store: TableStore
    split: DataSplit
    file: DataFile
    shape: ReadShape

    def batches(self) -> Generator[pa.RecordBatch, None, None]:
        """The rows, a batch at a time, in bounded memory; closing it releases the file."""
        with self._open() as reader:
            vector = self._deletion_vector
            columns, skipping = self.shape.evolution.file_columns, self.shape.skipping
            for position, batch in reader.read(columns, skipping):
                rows = self._finish(_undeleted(batch, position, vector))
                yield from rows.to_batches()

    def table(self, *, use_threads: bool) -> pa.Table:
        """The rows at once."""
        if self._deletion_vector is not None:
            return pa.Table.from_batches(list(self.batches()), self.shape.projection.arrow_schema)
        with self._open() as reader:
            columns, skipping = self.shape.evolution.file_columns, self.shape.skipping
            return self._finish(reader.read_table(columns, skipping, use_threads=use_threads))

    @property
    def path(self) -> str:
        return self.store.data_file_path(self.split.partition, self.split.bucket, self.file)

    def _open(self) -> FileReader:
        return open_reader(
            self.store.storage,
            self.path,
            self.shape.file_fields,
            format_of(self.file.file_name),
            self.file.file_size,
        )

    @cached_property
    def _deletion_vector(self) -> DeletionVector | None:
        place = self.split.deletion_files.get(self.file.file_name)
        return None if place is None else load_deletion_vector(self.store, self.split, place)

    def _finish(self, rows: pa.RecordBatch | pa.Table) -> pa.Table:
        table = rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows])
        table = self._with_partition(self.shape.evolution.apply(table), rows.num_rows)
        if self.shape.predicate is not None:
            table = filter_rows(self.shape.predicate, table)
        return self.shape.projection.apply(table)

    def _with_partition(self, table: pa.Table, rows: int) -> pa.Table:
        keys = self.store.schema.partition_keys
        fields = self.shape.read_fields
        if not any(f.name in keys for f in fields):
            return table
        values = dict(zip(keys, self.store.partition_values(self.split.partition), strict=True))
        columns = [
            pa.repeat(to_arrow_scalar(f.type, values[f.name]), rows)
            if f.name in values
            else table.column(f.name)
            for f in fields
        ]
        return pa.Table.from_arrays(columns, schema=self.shape.read_schema)


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

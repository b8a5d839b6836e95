"""Hidden columns of a table that queries may name: where a row is."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Final

import pyarrow as pa

from emberlake.errors import Unsupported
from emberlake.expressions.query_auth import authorized_reader, seeing_all
from emberlake.read.projection import project_all
from emberlake.read.table_reader import TableReader
from emberlake.rowops.locate import file_reads
from emberlake.scan.plan import plan_target
from emberlake.scan.splits import attach_folders
from emberlake.scan.travel import Between
from emberlake.spec.schema import TableSchema
from emberlake.spec.snapshot import Snapshot
from emberlake.sql.hidden_columns import BUCKET, FILE_PATH, PARTITION, ROW_INDEX
from emberlake.sql.on_duckdb.pinned import PinnedTable, TellingSource
from emberlake.store.table_store import TableStore
from emberlake.types import arrow_schema

__all__ = ["BUCKET", "FILE_PATH", "PARTITION", "ROW_INDEX", "PlacedSource", "places_of"]

_TYPES: Final = {BUCKET: pa.int32(), FILE_PATH: pa.string(), ROW_INDEX: pa.int64()}


def places_of(schema: TableSchema) -> tuple[str, ...]:
    """The hidden columns that say where rows of a table are."""
    return (PARTITION, BUCKET) if schema.profile.has_keys else (PARTITION, *_TYPES)


class PlacedSource(TellingSource):
    """The rows of a pinned table with their places, for DuckDB."""

    def __init__(self, pinned: PinnedTable, names: Sequence[str]) -> None:
        self._pinned = pinned
        self._names = [name for name in names if name != PARTITION]
        self._schema = arrow_schema(pinned.fields)
        for name in self._names:
            self._schema = self._schema.append(pa.field(name, _TYPES[name]))

    def __arrow_c_schema__(self) -> object:
        return self._schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        by_file = FILE_PATH in self._names or ROW_INDEX in self._names
        with self.opening():
            batches = self._by_file(*self._files()) if by_file else self._by_split(self._reader())
        stream = pa.RecordBatchReader.from_batches(self._schema, batches)
        return stream.__arrow_c_stream__(requested_schema)

    def _reader(self) -> TableReader:
        pinned = self._pinned
        return authorized_reader(TableReader(pinned.store, project_all(pinned.fields)))

    def _files(self) -> tuple[TableStore, Snapshot | None]:
        target = self._pinned.target
        if isinstance(target, Between):
            raise Unsupported(f"changes between two snapshots have no {FILE_PATH}")
        return seeing_all(self._pinned.store, "read by file"), target

    def _by_split(self, reader: TableReader) -> Iterator[pa.RecordBatch]:
        store = reader.store
        splits = plan_target(store, self._pinned.target, None, None).splits
        attach_folders(splits, store.bucket_folder)
        for split in splits:
            for batch in reader.read_batches([split]):
                places = {BUCKET: pa.repeat(pa.scalar(split.bucket, pa.int32()), batch.num_rows)}
                yield self._batch(batch.columns, places)

    def _by_file(self, store: TableStore, target: Snapshot | None) -> Iterator[pa.RecordBatch]:
        names = [f.name for f in self._pinned.fields]
        for placed in file_reads(store, target, None, names):
            place = placed.place
            path = place.file.path_in(store.bucket_folder(place.partition, place.bucket))
            with closing(placed.read.located_tables()) as tables:
                for positions, rows in tables:
                    count = rows.num_rows
                    places = {
                        BUCKET: pa.repeat(pa.scalar(place.bucket, pa.int32()), count),
                        FILE_PATH: pa.repeat(pa.scalar(path), count),
                        ROW_INDEX: pa.array(positions, pa.int64()),
                    }
                    yield self._batch([c.combine_chunks() for c in rows.columns], places)

    def _batch(self, columns: Sequence[pa.Array], places: dict[str, pa.Array]) -> pa.RecordBatch:
        arrays = [*columns, *(places[name] for name in self._names)]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

"""The rows of the table that DELETE, UPDATE and MERGE change, each with its place."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa

from emberlake.predicates import Predicate
from emberlake.read.projection import project_all
from emberlake.read.table_reader import TableReader
from emberlake.rowops.locate import PlacedRead, file_reads
from emberlake.scan.plan import plan_target
from emberlake.scan.splits import attach_folders
from emberlake.spec.snapshot import Snapshot
from emberlake.store.table_store import TableStore
from emberlake.types import DataField, arrow_schema

PLACE: Final = "__place"  # a file and a position in it; in key tables the whole row, too
FILE: Final = "file"
POSITION: Final = "pos"
ROW: Final = "row"


class TargetRows:
    """A stream for DuckDB; every scan reads the same snapshot.

    Args:
        store: The table.
        snapshot: Its state.
        fields: The columns, perhaps with hidden ones.
        predicate: Files that cannot match it are left out.
    """

    def __init__(
        self,
        store: TableStore,
        snapshot: Snapshot | None,
        fields: Sequence[DataField],
        predicate: Predicate | None = None,
    ) -> None:
        self.store = store
        self.snapshot = snapshot
        self.fields = tuple(fields)
        self._predicate = predicate
        self._has_keys = store.schema.profile.has_keys

    @cached_property
    def reads(self) -> list[PlacedRead]:
        """The files of an append table; places refer to them by index."""
        names = [f.name for f in self.fields]
        return list(file_reads(self.store, self.snapshot, self._predicate, names))

    @cached_property
    def schema(self) -> pa.Schema:
        rows = arrow_schema(self.fields)
        parts = [pa.field(FILE, pa.int32()), pa.field(POSITION, pa.int64())]
        if self._has_keys:
            parts.append(pa.field(ROW, pa.struct(rows)))
        return rows.append(pa.field(PLACE, pa.struct(parts)))

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        batches = self._key_batches() if self._has_keys else self._append_batches()
        stream = pa.RecordBatchReader.from_batches(self.schema, batches)
        return stream.__arrow_c_stream__(requested_schema)

    def _append_batches(self) -> Iterator[pa.RecordBatch]:
        for number, placed in enumerate(self.reads):
            with closing(placed.read.located_tables()) as tables:
                for positions, rows in tables:
                    files = pa.repeat(pa.scalar(number, pa.int32()), rows.num_rows)
                    place = _struct(self.schema, [files, pa.array(positions, pa.int64())])
                    columns = [c.combine_chunks() for c in rows.columns]
                    yield pa.RecordBatch.from_arrays([*columns, place], schema=self.schema)

    def _key_batches(self) -> Iterator[pa.RecordBatch]:
        reader = TableReader(self.store, project_all(self.fields), self._predicate)
        splits = plan_target(self.store, self.snapshot, self._predicate, None).splits
        attach_folders(splits, self.store.bucket_folder)
        start = 0
        for batch in reader.read_batches(splits):
            files = pa.repeat(pa.scalar(0, pa.int32()), batch.num_rows)
            positions = pa.array(np.arange(start, start + batch.num_rows), pa.int64())
            start += batch.num_rows
            row = pa.StructArray.from_arrays(batch.columns, fields=list(batch.schema))
            place = _struct(self.schema, [files, positions, row])
            yield pa.RecordBatch.from_arrays([*batch.columns, place], schema=self.schema)


def _struct(schema: pa.Schema, arrays: Sequence[pa.Array]) -> pa.Array:
    return pa.StructArray.from_arrays(arrays, fields=list(schema.field(PLACE).type))

"""Read splits: all at once in parallel, or as a stream of batches in bounded memory."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

import pyarrow as pa

from emberlake.base.parallel import parallel_map
from emberlake.predicates import Predicate
from emberlake.read.projection import Projection
from emberlake.read.split_read import FileRead, ReadShape, plan_read_shape
from emberlake.scan.splits import DataSplit
from emberlake.store.table_store import TableStore


@dataclass(frozen=True)
class TableReader:
    """Reads the asked columns of the matching rows of splits."""

    store: TableStore
    projection: Projection
    predicate: Predicate | None = None
    limit: int | None = None

    def read_table(self, splits: Sequence[DataSplit], *, workers: int | None = None) -> pa.Table:
        """All rows as one table."""
        if self.limit is not None:
            return pa.Table.from_batches(list(self.read_batches(splits)), self._schema)
        reads = list(self._file_reads(splits))
        # One large file is decoded by Arrow's threads, many files by one thread each.
        use_threads = len(reads) < 4
        tables = list(
            parallel_map(lambda read: read.table(use_threads=use_threads), reads, workers=workers)
        )
        return pa.concat_tables(tables) if tables else self._schema.empty_table()

    def read_batches(self, splits: Iterable[DataSplit]) -> Iterator[pa.RecordBatch]:
        """Batches in order; at most one row group is in memory."""
        left = self.limit
        for read in self._file_reads(splits):
            if left == 0:
                return
            with closing(read.batches()) as batches:
                for batch in batches:
                    if left is not None:
                        batch = batch.slice(0, left)  # noqa: PLW2901
                        left -= batch.num_rows
                    if batch.num_rows:
                        yield batch
                    if left == 0:
                        return

    @property
    def _schema(self) -> pa.Schema:
        return self.projection.arrow_schema

    def _file_reads(self, splits: Iterable[DataSplit]) -> Iterator[FileRead]:
        shapes: dict[tuple[int, bool], ReadShape] = {}
        for split in splits:
            # What the plan found out about whole files holds for its own predicate only.
            knows_exact = split.predicate == self.predicate
            for file, is_exact in zip(split.files, split.is_exact, strict=True):
                is_plain = knows_exact and is_exact
                shape = shapes.get((file.schema_id, is_plain))
                if shape is None:
                    predicate = None if is_plain else self.predicate
                    shape = plan_read_shape(self.store, file.schema_id, self.projection, predicate)
                    shapes[file.schema_id, is_plain] = shape
                yield FileRead(self.store, split, file, shape)

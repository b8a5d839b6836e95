"""Read splits: all at once in parallel, or as a stream of batches in bounded memory."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import pyarrow as pa

from emberlake.base.parallel import parallel_map
from emberlake.io.storage import SMALL_BYTES
from emberlake.predicates import Predicate, columns_of
from emberlake.read.append_plans import AppendPlans
from emberlake.read.bucket_reads import BucketReads
from emberlake.read.file_read import FileRead
from emberlake.read.key_read import KeyReader, UnitRead
from emberlake.read.projection import OutputShape, Projection, project_all
from emberlake.read.shown import Shown, ShownRead, with_masked
from emberlake.scan.splits import DataSplit
from emberlake.spec.row_tracking import readable_fields
from emberlake.store.table_store import TableStore

_SMALL_FILES_AT_ONCE: Final = 16


@dataclass(frozen=True)
class TableReader:
    """Reads the requested columns of the matching rows of splits, under the rules of the store."""

    store: TableStore
    projection: Projection
    predicate: Predicate | None = None
    limit: int | None = None
    with_kind: bool = False  # also return the row kind, as the first column
    with_deletes: bool = False  # with kinds: also rows whose last record deletes them

    def read_table(self, splits: Sequence[DataSplit], *, workers: int | None = None) -> pa.Table:
        """All rows as one table, ``workers`` files at a time; 1 means a single thread."""
        if self.limit is not None:
            return pa.Table.from_batches(list(self.read_batches(splits)), self.arrow_schema)
        reads = list(self._units(splits))
        # A few parts are decoded by Arrow's threads; of many parts, each gets one thread.
        use_threads = len(reads) < 4 and workers != 1
        if workers is None and self._waits_for_files(splits):
            workers = _SMALL_FILES_AT_ONCE
        tables = list(
            parallel_map(lambda read: read.table(use_threads=use_threads), reads, workers=workers)
        )
        return pa.concat_tables(tables) if tables else self.arrow_schema.empty_table()

    def _waits_for_files(self, splits: Sequence[DataSplit]) -> bool:
        """Whether a read would mostly wait for answers: each file is fetched by one request."""
        sizes = (file.file_size for split in splits for file in split.files)
        return self.store.storage.traits.is_remote and max(sizes, default=0) <= SMALL_BYTES

    def read_batches(self, splits: Iterable[DataSplit]) -> Iterator[pa.RecordBatch]:
        """Batches in order; memory holds one row group of every file that is being merged."""
        left = self.limit
        for read in self._units(splits):
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
    def arrow_schema(self) -> pa.Schema:
        """The schema of the output."""
        return self._shape.arrow_schema

    @property
    def columns(self) -> frozenset[str]:
        """The columns of the table whose values decide what comes out."""
        tested = frozenset() if self.predicate is None else columns_of(self.predicate)
        return self.projection.columns | tested

    @cached_property
    def _shape(self) -> OutputShape:
        projection = with_masked(self.projection, self.store.rules.masks)
        return OutputShape(projection, self.with_kind, self.with_deletes)

    def _units(self, splits: Iterable[DataSplit]) -> Iterator[UnitRead]:
        rules = self.store.rules
        waiting = rules.on_shown(self.predicate)
        masks = tuple(mask for mask in rules.masks if mask.field.name in self.columns)
        stored = replace(self, predicate=rules.on_stored(self.predicate))
        if waiting is None and not masks:
            return stored._stored_units(splits)  # noqa: SLF001
        needed = self.columns.union(*(mask.value.columns for mask in masks))
        fields = [f for f in readable_fields(self.store.schema) if f.name in needed]
        shown = Shown(masks, waiting, self._shape)
        stored = replace(stored, projection=project_all(fields))
        return (ShownRead(unit, shown) for unit in stored._stored_units(splits))  # noqa: SLF001

    def _stored_units(self, splits: Iterable[DataSplit]) -> Iterator[UnitRead]:
        shape = OutputShape(self.projection, self.with_kind, self.with_deletes)
        if not self.store.schema.profile.has_keys:
            return self._file_reads(splits, shape)
        reader = KeyReader(self.store, shape, self.predicate)
        return (u for split in splits for u in reader.for_plan(split.predicate).units(split))

    def _file_reads(self, splits: Iterable[DataSplit], shape: OutputShape) -> Iterator[FileRead]:
        plain, tested = self._plans(None, shape), self._plans(self.predicate, shape)
        for split in splits:
            reads = BucketReads.of_split(self.store, split)
            # What the plan knows about whole files is true for its own predicate only.
            knows_exact = split.predicate == self.predicate
            if split.is_grouped:
                exact = dict(zip(split.names, split.is_exact, strict=True)) if knows_exact else {}
                for group in split.groups:
                    is_plain = exact.get(group.anchor.file_name, False)
                    yield (plain if is_plain else tested).read_group(reads, group)
                continue
            for file, is_exact in zip(split.files, split.is_exact, strict=True):
                yield (plain if knows_exact and is_exact else tested).read(reads, file)

    def _plans(self, predicate: Predicate | None, shape: OutputShape) -> AppendPlans:
        known = readable_fields(self.store.schema)
        fields = shape.projection.read_fields(known, predicate)
        return AppendPlans(self.store, fields, shape, predicate)

"""A Parquet file after an edit, one row group after the other, each column by itself.

Columns that do not change are copied as they are encoded. Of the others one is decoded, edited and
encoded at a time by each thread, so that memory does not grow with the number of columns.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from emberlake.formats.parquet_footer import Chunk, Layout
from emberlake.formats.parquet_parts import ParquetParts
from emberlake.formats.parquet_writer import MAX_DICTIONARY_BYTES
from emberlake.read.append_plans import columns_of_file
from emberlake.read.bucket_reads import BucketReads
from emberlake.read.file_read import FileRead
from emberlake.rowops.locate import FilePlace
from emberlake.spec.column_buffers import I64, Mask
from emberlake.spec.key_value import SEQUENCE
from emberlake.spec.stats import ColumnStats, decode_stats
from emberlake.spec.values import Value
from emberlake.store.table_store import TableStore
from emberlake.types import AtomicType, DataField, arrow_type

ReadColumn = Callable[[FilePlace, DataField], FileRead]


@dataclass(frozen=True)
class StoredGroup:
    """A row group of a file: its number, its first row, and the one after its last."""

    number: int
    start: int
    stop: int


@dataclass(frozen=True)
class EditedFile:
    """A file whose rows change.

    Args:
        place: The file. No row of it is deleted yet.
        parts: Its row groups.
        read: Gives the read of one column.
        kept: The columns that updates leave as they are.
        keeps_rows: Whether no row leaves the file.
        fields: The columns of the file, as it was written.
        stats: What its metadata says of them.
    """

    place: FilePlace
    parts: ParquetParts
    read: ReadColumn
    kept: frozenset[str]
    keeps_rows: bool
    fields: Mapping[str, DataField]
    stats: Mapping[str, tuple[Value, Value, int | None]]

    @staticmethod
    def of(
        store: TableStore,
        place: FilePlace,
        read: ReadColumn,
        kept: frozenset[str],
        *,
        keeps_rows: bool,
    ) -> "EditedFile":
        """The file at a place."""
        file = place.file
        fields = columns_of_file(store, file)
        by_name = {f.name: f for f in fields}
        names = [f.name for f in fields] if file.value_stats_cols is None else file.value_stats_cols
        path = BucketReads(store, place.partition, place.bucket).path(file)
        return EditedFile(
            place,
            ParquetParts(store.storage, path, file.file_size),
            read,
            kept,
            keeps_rows,
            by_name,
            decode_stats([by_name[name] for name in names], file.value_stats),
        )

    def groups(self) -> Iterator[StoredGroup]:
        """The row groups that have rows."""
        bounds = accumulate(self.parts.row_counts, initial=0)
        for number, (start, stop) in enumerate(pairwise(bounds)):
            if start < stop:
                yield StoredGroup(number, start, stop)

    def column(self, field: DataField, group: StoredGroup) -> pa.ChunkedArray:
        """The values of a column in a row group."""
        read = replace(self.read(self.place, field), rows=(group.start, group.stop))
        with closing(read.tables()) as tables:
            chunks = [chunk for rows in tables for chunk in rows.column(0).chunks]
        return pa.chunked_array(chunks, arrow_type(field.type))

    def indexed(self, field: DataField, group: StoredGroup) -> pa.DictionaryArray | None:
        """The same as places in a dictionary, if the column is stored so."""
        if self.fields.get(field.name) != field:
            return None
        return self.parts.indexed(group.number, field)

    def known(self, field: DataField, group: StoredGroup) -> ColumnStats | None:
        """The statistics of a column that is stored in its current type; None: decode it.

        The bounds are those of the whole file: they hold for its parts too.
        """
        # Numbers of rows are counted where they are written.
        if self.fields.get(field.name) != field or field.name == SEQUENCE:
            return None
        low, high, total = self.stats.get(field.name, (None, None, None))
        if isinstance(field.type, AtomicType):
            null_count = self.parts.null_count(group.number, field.name)
        elif self.keeps_rows and field.name in self.kept:
            # Parquet counts other nulls than those of whole values, and all groups are copied.
            null_count = total if group.start == 0 or total is None else 0
        else:
            null_count = None
        if null_count is None:
            return None
        has_values = null_count < group.stop - group.start
        return ColumnStats(low, high, null_count, has_values)


@dataclass(frozen=True)
class EditedGroup:
    """A row group after an edit.

    Args:
        file: The file.
        group: The row group of the file.
        places: The rows that change or go, counted from the start of the row group, ascending.
        is_update: Which of them change.
        changed: The new values of those, at least in the columns that are set.
    """

    file: EditedFile
    group: StoredGroup
    places: I64
    is_update: Mask
    changed: pa.Table | None = field(repr=False)

    @cached_property
    def num_rows(self) -> int:
        """How many rows are left."""
        gone = len(self.places) - int(self.is_update.sum())
        return self.group.stop - self.group.start - gone

    def known(self, field: DataField) -> ColumnStats | None:
        """The statistics of a column that does not change and can be copied."""
        changes = self.changed is not None and field.name not in self.file.kept
        if changes or self.num_rows < self.group.stop - self.group.start:
            return None
        return self.file.known(field, self.group)

    def encoded(self, field: DataField, layout: Layout) -> Sequence[Chunk] | None:
        """The bytes of a column that does not change."""
        return self.file.parts.chunks(self.group.number, field.name, layout)

    def column(self, field: DataField) -> pa.ChunkedArray:
        """The values of a column after the edit; few distinct ones as places in a dictionary."""
        indexed = self.file.indexed(field, self.group)
        if indexed is not None and (edited := self._edited_places(field, indexed)) is not None:
            return pa.chunked_array([edited])
        values = self.file.column(field, self.group)
        if not len(self.places):
            return values
        if self.changed is None or field.name in self.file.kept:
            return values if self._is_left is None else values.filter(self._is_left)
        if field.name == SEQUENCE:
            new = pa.nulls(self.changed.num_rows, values.type)
        else:
            new = self.changed.column(field.name).combine_chunks()
        chunks: list[pa.Array] = []
        start = 0
        # Chunk by chunk: each is small enough to stay near the processor.
        for old in values.chunks:
            chunks.append(self._overlaid(old, new, start))
            start += len(old)
        return pa.chunked_array(chunks, values.type)

    def _edited_places(
        self, field: DataField, old: pa.DictionaryArray
    ) -> pa.DictionaryArray | None:
        """A column of places in a dictionary after the edit; None: there are too many values."""
        if not len(self.places):
            return old
        if self.changed is None or field.name in self.file.kept:
            return old if self._is_left is None else old.filter(self._is_left)
        new = self.changed.column(field.name).combine_chunks()
        is_new = pc.invert(pc.is_in(new, value_set=old.dictionary))
        added = new.filter(is_new).drop_null().unique()
        dictionary = pa.concat_arrays([old.dictionary, added]) if len(added) else old.dictionary
        if dictionary.nbytes > MAX_DICTIONARY_BYTES:
            return None
        places = pc.index_in(new, value_set=dictionary, skip_nulls=True)
        return pa.DictionaryArray.from_arrays(self._overlaid(old.indices, places, 0), dictionary)

    def _overlaid(self, old: pa.Array, new: pa.Array, start: int) -> pa.Array:
        """Values from a place in the row group on, after the edit."""
        low, high = np.searchsorted(self.places, [start, start + len(old)]).tolist()
        if low == high:
            return old
        places, is_update = self.places[low:high] - start, self.is_update[low:high]
        first, last = self._updates_before[low], self._updates_before[high]
        picked = np.arange(len(old), dtype=np.int32)
        picked[places[is_update]] = len(old) + np.arange(last - first, dtype=np.int32)
        if last - first < high - low:
            picked = np.delete(picked, places[~is_update])
        return pa.concat_arrays([old, new.slice(first, last - first)]).take(pa.array(picked))

    @cached_property
    def _updates_before(self) -> I64:
        """How many of the places before each of them are updated."""
        return np.concatenate([[0], np.cumsum(self.is_update)])

    @cached_property
    def _is_left(self) -> pa.Array | None:
        """Which rows are left; None: all."""
        gone = self.places[~self.is_update]
        if not len(gone):
            return None
        is_left = np.ones(self.group.stop - self.group.start, bool)
        is_left[gone] = False
        return pa.array(is_left)

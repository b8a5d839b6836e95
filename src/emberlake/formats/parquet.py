"""Reads Parquet data files of any writer. Spec: "Parquet".

Row groups are pruned by their statistics and then decoded one after another, batch by batch, so
that memory does not grow with the file. Where only some rows of a group match, the filtered columns
are decoded first. Columns are found by name, and only the requested parts of nested columns are
decoded.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from emberlake.base.closing import Closing
from emberlake.errors import EmberlakeError, InvalidState
from emberlake.formats.conform import Conformance, plan_conformance
from emberlake.formats.file_format import (
    DEFAULT_BATCH_ROWS,
    READ_FAILURES,
    batch_of_rows,
    check_size,
    check_storable,
    read_failure,
    table_of_batches,
)
from emberlake.formats.parquet_footer import TAIL_BYTES, int96_as_bytes
from emberlake.formats.parquet_stats import absent_range, column_range
from emberlake.formats.parquet_writer import ParquetWriter
from emberlake.io.cache import CACHE, file_key
from emberlake.io.storage import Range, Storage, as_parted
from emberlake.predicates.evaluate import evaluate
from emberlake.predicates.expressions import Predicate, columns_of
from emberlake.predicates.prune import ColumnRange, test_ranges
from emberlake.types import (
    ArrayType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
)

# How many rows at the start of a row group show whether matching rows lie together, and how often
# matching and other rows may alternate among them.
_PROBED_ROWS: Final = 16_384
_MAX_CHANGES: Final = 4
_FOOTER_BYTES_PER_BYTE: Final = 4  # that a footer takes in memory
# Of a column on the local disk that are read at a time. Arrow would read whole row groups ahead.
_COLUMN_BUFFER_BYTES: Final = 256 * 1024


class ParquetReader(Closing):
    """One open Parquet file."""

    def __init__(
        self,
        storage: Storage,
        path: str,
        fields: tuple[DataField, ...],
        file_size: int | None = None,
        *,
        verifies_pages: bool = False,
    ) -> None:
        self._path = path
        self._verifies_pages = verifies_pages
        self._fields = {f.name: f for f in fields}
        self._resources = ExitStack()
        self._source: Any = self._resources.enter_context(storage.open_input(path, file_size))
        try:
            self._parted = as_parted(self._source)
            key = (*file_key(storage, path), file_size) if self._parted else ()
            footer = CACHE.find(key) if self._parted else None
            if footer is None:
                check_size(self._source, path, file_size)
            self._file = self._open(footer)
            if self._parted:
                footer = self._file.metadata
                CACHE.keep(key, footer, _FOOTER_BYTES_PER_BYTE * footer.serialized_size)
            self._found = self._file.schema_arrow
        except EmberlakeError:
            self._resources.close()
            raise
        self._metadata = self._file.metadata
        self._groups_read = 0
        self._is_open = True

    @property
    def num_rows(self) -> int:
        return int(self._metadata.num_rows)

    @property
    def row_group_count(self) -> int:
        return int(self._metadata.num_row_groups)

    @property
    def row_groups_read(self) -> int:
        return self._groups_read

    def read(
        self,
        columns: tuple[DataField, ...],
        predicate: Predicate | None = None,
        batch_rows: int = DEFAULT_BATCH_ROWS,
        use_threads: bool = True,  # noqa: FBT001, FBT002
        *,
        rows: tuple[int, int] | None = None,
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        check_storable(columns, "parquet")
        self._check_open()
        groups = self._kept_groups(predicate)
        starts = np.cumsum([0, *self._group_rows()])
        conformance: Conformance | None = None
        wanted = [
            group
            for group in groups
            if rows is None or (starts[group] < rows[1] and rows[0] < starts[group + 1])
        ]
        for group in self._each(wanted, self._leaves(columns)):
            self._groups_read += 1
            needed = None if groups[group] else predicate
            found = self._group_batches(group, columns, needed, batch_rows, use_threads=use_threads)
            for position, batch in found:
                if conformance is None:
                    conformance = plan_conformance(self._path, batch.schema, columns)
                yield int(starts[group]) + position, conformance.apply(batch)

    def read_table(
        self,
        columns: tuple[DataField, ...],
        predicate: Predicate | None = None,
        use_threads: bool = True,  # noqa: FBT001, FBT002
    ) -> pa.Table:
        leaves = self._leaves(columns)
        groups = self._kept_groups(predicate)
        if not leaves or not all(groups.values()):
            most = max(self.num_rows, 1)
            found = self.read(columns, predicate, most, use_threads=use_threads)
            return table_of_batches(found, columns)
        check_storable(columns, "parquet")
        self._check_open()
        self._groups_read += len(groups)
        if self._parted and groups:
            # One after the other, so that what was fetched need not be held to the end.
            table = pa.concat_tables(
                self._read_groups([group], leaves, use_threads=use_threads)
                for group in self._each(list(groups), leaves)
            )
        else:
            table = self._read_groups(list(groups), leaves, use_threads=use_threads)
        return plan_conformance(self._path, table.schema, columns).apply(table)

    def close(self) -> None:
        self._is_open = False
        self._resources.close()

    def _each(self, groups: Sequence[int], leaves: Sequence[int]) -> Iterator[int]:
        """The row groups, one after the other; where it pays, the next ones are fetched ahead."""
        if self._parted is None:
            yield from groups
            return
        parts = [[self._chunk(group, leaf) for leaf in leaves] for group in groups]
        for number in self._parted.each_part(parts):
            yield groups[number]

    def _chunk(self, group: int, leaf: int) -> Range:
        """Where the bytes of a column are in a row group."""
        chunk = self._metadata.row_group(group).column(leaf)
        start = chunk.data_page_offset
        if chunk.has_dictionary_page and 0 < chunk.dictionary_page_offset < start:
            start = chunk.dictionary_page_offset
        return start, start + chunk.total_compressed_size

    def _open(self, footer: pq.FileMetaData | None) -> pq.ParquetFile:
        try:
            file = self._parsed(footer)
            if footer is None and _has_int96(file.schema):
                plain = pq.read_metadata(pa.BufferReader(int96_as_bytes(self._footer())))
                file = self._parsed(plain)
        except (*READ_FAILURES, ValueError, LookupError) as error:
            raise read_failure(self._path, error) from error
        return self._resources.enter_context(file)

    def _parsed(self, footer: pq.FileMetaData | None) -> pq.ParquetFile:
        is_near = self._parted is None
        return pq.ParquetFile(
            self._source,
            metadata=footer,
            page_checksum_verification=self._verifies_pages,
            pre_buffer=not is_near,
            buffer_size=_COLUMN_BUFFER_BYTES if is_near else 0,
        )

    def _footer(self) -> bytes:
        end = self._source.size() - TAIL_BYTES
        size = int.from_bytes(self._source.read_at(4, end), "little")
        footer: bytes = self._source.read_at(size, end - size)
        return footer

    def _check_open(self) -> None:
        if not self._is_open:
            raise InvalidState(f"{self._path} was closed; open it again to read")

    def _group_rows(self) -> list[int]:
        return [self._metadata.row_group(i).num_rows for i in range(self.row_group_count)]

    def _kept_groups(self, predicate: Predicate | None) -> dict[int, bool]:
        """The row groups in which a row may match, and whether all of their rows do."""
        if predicate is None or not self.row_group_count:
            return dict.fromkeys(range(self.row_group_count), True)
        rows = np.array(self._group_rows(), np.int64)
        verdict = test_ranges(predicate, rows, self._range_of)
        return {int(i): bool(verdict.all[i]) for i in np.flatnonzero(verdict.may & (rows > 0))}

    def _range_of(self, column: DataField) -> ColumnRange | None:
        field = self._fields.get(column.name)
        if field is None:
            return None
        at = self._found.get_field_index(column.name)
        if at < 0:
            return absent_range(self._metadata, field)
        leaf = sum(_leaf_count(self._found.field(i).type) for i in range(at))
        return column_range(self._metadata, leaf, self._found.field(at).type, field)

    def _leaves(self, columns: tuple[DataField, ...]) -> list[int]:
        requested = {f.name: f for f in columns}
        chosen: list[int] = []
        start = 0
        for found in self._found:
            if found.name in requested:
                chosen += select_leaves(found.type, requested[found.name].type, start)
            start += _leaf_count(found.type)
        return chosen

    def _group_batches(
        self,
        group: int,
        columns: tuple[DataField, ...],
        predicate: Predicate | None,
        batch_rows: int,
        *,
        use_threads: bool,
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The stored batches of a group, each with its position in the group."""
        tested, others = _split_columns(predicate, columns)
        if predicate is None or not others or self._is_scattered(group, tested, predicate):
            leaves = self._leaves(columns)
            yield from _located(self._batches(group, leaves, batch_rows, use_threads=use_threads))
            return
        # Arrow decodes a column from its start, but need not reach its end. If rows are sorted by
        # the filtered columns, or none match, most of the other columns is never decoded.
        known = self._read_groups([group], self._leaves(tested), use_threads=use_threads)
        matching = np.flatnonzero(self._evaluate(predicate, tested, known))
        start, stop = (int(matching[0]), int(matching[-1]) + 1) if len(matching) else (0, 0)
        batches = self._batches(
            group, self._leaves(others), min(batch_rows, stop), use_threads=use_threads
        )
        for position, batch in _located(batches, stop):
            if position + batch.num_rows > start:
                matched = known.slice(position, batch.num_rows).to_batches()
                for offset, part in _located(iter(matched)):
                    other = batch.slice(offset, part.num_rows)
                    yield position + offset, self._in_file_order(part, other)

    def _in_file_order(self, one: pa.RecordBatch, other: pa.RecordBatch) -> pa.RecordBatch:
        """The columns of both, in the order that a single read gives them."""
        columns = dict(zip(one.schema.names, one.columns, strict=True))
        columns |= zip(other.schema.names, other.columns, strict=True)
        names = [name for name in self._found.names if name in columns]
        return pa.RecordBatch.from_arrays([columns[name] for name in names], names)

    def _is_scattered(
        self, group: int, tested: tuple[DataField, ...], predicate: Predicate
    ) -> bool:
        """Whether matching rows are scattered, judging by the first rows."""
        first = next(self._batches(group, self._leaves(tested), _PROBED_ROWS, use_threads=False))
        matches = self._evaluate(predicate, tested, first)
        return int(np.count_nonzero(np.diff(matches))) > _MAX_CHANGES

    def _evaluate(
        self, predicate: Predicate, tested: tuple[DataField, ...], rows: pa.RecordBatch | pa.Table
    ) -> npt.NDArray[np.bool_]:
        mask = evaluate(predicate, plan_conformance(self._path, rows.schema, tested).apply(rows))
        return np.asarray(mask.fill_null(False), dtype=np.bool_)

    def _read_groups(
        self, groups: Sequence[int], leaves: list[int], *, use_threads: bool
    ) -> pa.Table:
        try:
            return self._file.reader.read_row_groups(
                groups, column_indices=leaves, use_threads=use_threads
            )
        except READ_FAILURES as error:
            raise read_failure(self._path, error) from error

    def _batches(
        self, group: int, leaves: list[int], batch_rows: int, *, use_threads: bool
    ) -> Iterator[pa.RecordBatch]:
        if not leaves:
            yield from _empty_batches(self._group_rows()[group], batch_rows)
            return
        try:
            # A thread for a single column would only be waited for.
            yield from self._file.reader.iter_batches(
                batch_rows,
                row_groups=[group],
                column_indices=leaves,
                use_threads=use_threads and len(leaves) > 1,
            )
        except READ_FAILURES as error:
            raise read_failure(self._path, error) from error


Writer: Final = ParquetWriter
Reader: Final = ParquetReader


def _split_columns(
    predicate: Predicate | None, columns: tuple[DataField, ...]
) -> tuple[tuple[DataField, ...], tuple[DataField, ...]]:
    """The columns that a filter needs, and the others; none if it needs one that is not read."""
    needed = columns_of(predicate) if predicate is not None else frozenset()
    tested = tuple(column for column in columns if column.name in needed)
    others = tuple(column for column in columns if column.name not in needed)
    return (tested, others) if len(tested) == len(needed) > 0 else ((), ())


def select_leaves(found: pa.DataType, asked: DataType, start: int) -> list[int]:
    """The primitive columns to decode for a column whose first primitive one is ``start``."""
    match asked:
        case RowType(fields=fields) if pa.types.is_struct(found):
            wanted = {f.name: f.type for f in fields}
            chosen: list[int] = []
            at = start
            for child in found:
                if child.name in wanted:
                    chosen += select_leaves(child.type, wanted[child.name], at)
                at += _leaf_count(child.type)
            # Any leaf shows which rows are null.
            return chosen or [start]
        case ArrayType(element=element) if pa.types.is_list(found):
            return select_leaves(found.value_type, element, start)
        case MapType(value=value) if pa.types.is_map(found):
            keys = _leaf_count(found.key_type)
            items = select_leaves(found.item_type, value, start + keys)
            return [*range(start, start + keys), *items]
        case MultisetType():
            return list(range(start, start + _leaf_count(found)))
        case _:
            return list(range(start, start + _leaf_count(found)))


def _leaf_count(found: pa.DataType) -> int:
    if pa.types.is_struct(found):
        return sum(_leaf_count(child.type) for child in found)
    if pa.types.is_map(found):
        return _leaf_count(found.key_type) + _leaf_count(found.item_type)
    if pa.types.is_list(found) or pa.types.is_large_list(found):
        return _leaf_count(found.value_type)
    return 1


def _has_int96(schema: pq.ParquetSchema) -> bool:
    return any(schema.column(i).physical_type == "INT96" for i in range(len(schema)))


def _located(
    batches: Iterator[pa.RecordBatch], stop: int | None = None
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Batches up to row ``stop``, each with the number of rows before it."""
    position = 0
    while position != stop and (batch := next(batches, None)) is not None:
        batch = batch if stop is None else batch.slice(0, stop - position)
        yield position, batch
        position += batch.num_rows


def _empty_batches(row_count: int, batch_rows: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, row_count, batch_rows):
        yield batch_of_rows(min(batch_rows, row_count - start))

"""The value statistics of many files, a column at a time and across schema versions.

Files that share a schema, their columns and a set of statistics are handled together: one column
of all their statistics rows is decoded at a time. Spec: "Statistics", "Schema evolution".
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from emberlake.base.names import listed
from emberlake.errors import CorruptFile
from emberlake.predicates import ColumnRange
from emberlake.spec.key_value import SEQUENCE_FIELD
from emberlake.spec.row_columns import decode_column
from emberlake.spec.row_tracking import ROW_ID_FIELD, is_hidden, stored_fields
from emberlake.store.entries import ManifestEntries
from emberlake.store.table_store import TableStore
from emberlake.types import AtomicType, DataField, DataType, TypeRoot, arrow_type

Rows = npt.NDArray[np.int64]
RangeOfPartition = Callable[[str, Rows], ColumnRange | None]


def files_alike(
    store: TableStore, entries: ManifestEntries, partition_range: RangeOfPartition
) -> Iterator["FilesAlike"]:
    """Files that share their columns and a set of statistics, together."""
    for schema_id in np.unique(entries.schema_id).tolist():
        schema = store.schemas.load(schema_id)
        of_schema = np.flatnonzero(entries.schema_id == schema_id)
        for of_columns, columns in _by_names(entries.write_cols, of_schema):
            file_fields = stored_fields(schema, columns)
            _check_known(entries, of_columns, file_fields, columns, f"schema {schema_id}")
            for rows, names in _by_names(entries.value_stats_cols, of_columns):
                stats_fields = _stats_fields(file_fields or (), names)
                _check_known(entries, rows, stats_fields, names, f"its schema {schema_id}")
                yield FilesAlike(
                    entries, rows, file_fields or (), stats_fields or (), partition_range
                )


def _check_known(
    entries: ManifestEntries,
    rows: Rows,
    found: tuple[DataField, ...] | None,
    names: tuple[str, ...] | None,
    where: str,
) -> None:
    if found is None:
        raise CorruptFile(
            entries.file_name[rows[0]].as_py(),
            f"its metadata names the columns {listed(names or ())}, "
            f"but {where} does not have all of these",
        )


@dataclass(frozen=True, slots=True)
class FilesAlike:
    """Files with the same columns and statistics of the same columns."""

    entries: ManifestEntries
    rows: Rows  # their numbers among the entries
    file_fields: tuple[DataField, ...]
    stats_fields: tuple[DataField, ...]
    partition_range: RangeOfPartition

    def has(self, field: DataField) -> bool:
        """Whether the files have a column."""
        return any(f.id == field.id for f in self.file_fields)

    def range_of(self, field: DataField) -> ColumnRange | None:
        """The range of a column in each of the files; None if nothing is known."""
        known = self.partition_range(field.name, self.rows)
        if known is not None:
            return known
        if is_hidden(field):
            return self._hidden(field)
        in_file = next((f for f in self.file_fields if f.id == field.id), None)
        if in_file is None:
            return self._all_null(field.type)
        index = next((i for i, f in enumerate(self.stats_fields) if f.id == field.id), None)
        if index is None or not _is_comparable(in_file.type, field.type):
            return None
        return self._decode(index, arrow_type(field.type))

    def _hidden(self, field: DataField) -> ColumnRange | None:
        """The range of row ids, or of the numbers of changes; None if nothing is known."""
        if self.has(field):
            return self._stored_ids() if field.id == ROW_ID_FIELD.id else None
        if field.id == SEQUENCE_FIELD.id:
            low = high = pa.array(self.entries.max_sequence_number[self.rows])
        else:
            low = self.entries.first_row_id.take(pa.array(self.rows))
            high = pc.add(low, pa.array(self.entries.row_count[self.rows] - 1))
        return ColumnRange(low, high, pa.array(np.zeros(len(self.rows), np.int64)))

    def _stored_ids(self) -> ColumnRange | None:
        """The range of ids that are stored in the files, where all of them are."""
        index = next((i for i, f in enumerate(self.stats_fields) if f.id == ROW_ID_FIELD.id), None)
        found = None if index is None else self._decode(index, pa.int64())
        has_nulls = found is None or pc.any(pc.greater(found.null_count, 0)).as_py()
        return None if has_nulls else found

    def _all_null(self, data_type: DataType) -> ColumnRange:
        # The column was added after these files were written: all of their rows are null.
        nulls = pa.nulls(len(self.rows), arrow_type(data_type))
        return ColumnRange(nulls, nulls, pa.array(self.entries.row_count[self.rows], pa.int64()))

    def _decode(self, index: int, target: pa.DataType) -> ColumnRange | None:
        entries = self.entries
        stats = (
            entries.value_stats_min,
            entries.value_stats_max,
            entries.value_stats_null_counts,
        )
        found = _decode(stats, self.rows, [f.type for f in self.stats_fields], index)
        if found is None:
            return None
        low, high, null_count = found
        return ColumnRange(low.cast(target), high.cast(target), null_count)


def key_range(
    keys: Sequence[DataField], entries: ManifestEntries, field: DataField
) -> ColumnRange | None:
    """The range of a key column in every file; keys have their own statistics."""
    index = next((i for i, key in enumerate(keys) if key.id == field.id), None)
    if index is None:
        return None
    stats = entries.key_stats_min, entries.key_stats_max, entries.key_stats_null_counts
    found = _decode(stats, np.arange(len(entries)), [key.type for key in keys], index)
    return None if found is None else ColumnRange(*found)


def _decode(
    stats: tuple[pa.Array, pa.Array, pa.Array], rows: Rows, types: list[DataType], index: int
) -> tuple[pa.Array, pa.Array, pa.Array] | None:
    """One column of statistics rows: minima, maxima, null counts."""
    arity = len(types).to_bytes(4, "big")
    # Files without statistics hold an empty row, which has fewer fields than the others.
    heads = pc.binary_slice(stats[0].take(pa.array(rows)), 0, 4)
    is_empty = pc.not_equal(heads, pa.scalar(arity, heads.type)).to_numpy(zero_copy_only=False)
    if is_empty.all():
        return None
    picked = pa.array(rows, mask=is_empty)  # a null picks a null, which means unknown
    return (
        decode_column(types, stats[0].take(picked), index),
        decode_column(types, stats[1].take(picked), index),
        _null_counts(stats[2].take(picked), index),
    )


def _null_counts(lists: pa.Array, index: int) -> pa.Array:
    shortest = pc.min(pc.list_value_length(lists)).as_py()
    if shortest is None or shortest <= index:
        return pa.nulls(len(lists), pa.int64())
    return pc.list_element(lists, index)


def _stats_fields(
    file_fields: tuple[DataField, ...], columns: tuple[str, ...] | None
) -> tuple[DataField, ...] | None:
    if columns is None:
        return file_fields
    by_name = {f.name: f for f in file_fields}
    found = tuple(by_name[name] for name in columns if name in by_name)
    return found if len(found) == len(columns) else None


def _is_comparable(file_type: DataType, read_type: DataType) -> bool:
    """Whether statistics of the file's type have the order of values of the type that is read."""
    if not isinstance(file_type, AtomicType) or not isinstance(read_type, AtomicType):
        return False
    if file_type.with_nullable(True) == read_type.with_nullable(True):
        return True
    if file_type.root.is_integer and read_type.root.is_integer:
        return bool(arrow_type(read_type).bit_width >= arrow_type(file_type).bit_width)
    # Texts keep their order in a longer VARCHAR; a longer CHAR pads them.
    is_longer = read_type.root is TypeRoot.VARCHAR and file_type.root.is_text
    return is_longer and read_type.length >= file_type.length


def _by_names(column: pa.Array, rows: Rows) -> Iterator[tuple[Rows, tuple[str, ...] | None]]:
    """Rows that have the same names in a column of lists, together."""
    lists = column.take(pa.array(rows))
    if lists.null_count == len(lists):
        yield rows, None
        return
    first = lists[0].as_py()
    if first is not None and lists.null_count == 0 and _all_equal_first(lists, len(first)):
        yield rows, tuple(first)
        return
    groups: dict[tuple[str, ...] | None, list[int]] = {}
    # Writers of different engines or options are mixed here: rare, so a loop over files will do.
    for row, names in zip(rows.tolist(), lists.to_pylist(), strict=True):
        groups.setdefault(None if names is None else tuple(names), []).append(row)
    for found, members in groups.items():
        yield np.array(members, np.int64), found


def _all_equal_first(lists: pa.Array, width: int) -> bool:
    lengths = pc.list_value_length(lists)
    if not pc.all(pc.equal(lengths, width), min_count=0).as_py():
        return False
    if width == 0:
        return True
    codes = lists.flatten().dictionary_encode().indices.to_numpy().reshape(-1, width)
    return bool((codes == codes[0]).all())

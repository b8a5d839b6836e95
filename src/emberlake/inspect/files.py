"""The columns of ``$files``: one row per live data file, made column by column."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from emberlake.inspect.text import json_objects, json_rows, json_values
from emberlake.inspect.totals import describe_partitions, load_live_files
from emberlake.scan.files import file_paths
from emberlake.spec.manifest import EMPTY_ROW, FileSource
from emberlake.spec.row_columns import decode_column
from emberlake.spec.row_tracking import HIDDEN_FIELDS
from emberlake.spec.schema import TableSchema
from emberlake.spec.snapshot import Snapshot
from emberlake.store.entries import ManifestEntries
from emberlake.store.table_store import TableStore
from emberlake.types import DataField

_SOURCES: Final = [source.name for source in FileSource]
_NO_COLUMNS: Final = "-"  # cannot be a list of names: those end with a separator
_SEPARATOR: Final = "\0"
_ARITY_BYTES: Final = 4  # a serialized row begins with the number of its fields
_HIDDEN: Final = {field.name: field for field in HIDDEN_FIELDS}


def load_file_columns(
    store: TableStore, snapshot: Snapshot | None
) -> dict[str, Callable[[], pa.Array]]:
    """A function for each column of ``$files`` that makes it."""
    files = _Files(store, partial(load_live_files, store, snapshot))
    return {
        "partition": files.partition,
        "bucket": lambda: pa.array(files.entries.bucket, pa.int32()),
        "file_path": lambda: file_paths(store, files.entries),
        "file_format": files.format,
        "schema_id": lambda: pa.array(files.entries.schema_id, pa.int64()),
        "level": lambda: pa.array(files.entries.level, pa.int32()),
        "record_count": lambda: pa.array(files.entries.row_count, pa.int64()),
        "file_size_in_bytes": lambda: pa.array(files.entries.file_size, pa.int64()),
        "min_key": lambda: files.keys(files.entries.min_key),
        "max_key": lambda: files.keys(files.entries.max_key),
        "null_value_counts": files.null_value_counts,
        "min_value_stats": lambda: files.value_stats(files.entries.value_stats_min),
        "max_value_stats": lambda: files.value_stats(files.entries.value_stats_max),
        "min_sequence_number": lambda: pa.array(files.entries.min_sequence_number, pa.int64()),
        "max_sequence_number": lambda: pa.array(files.entries.max_sequence_number, pa.int64()),
        "creation_time": lambda: files.entries.creation_time,
        "deleteRowCount": lambda: files.entries.delete_row_count,
        "file_source": lambda: pa.array(_SOURCES, pa.string()).take(files.entries.file_source),
        "first_row_id": lambda: files.entries.first_row_id,
        "write_cols": lambda: files.entries.write_cols,
    }


def value_ranges(store: TableStore, entries: ManifestEntries) -> tuple[pa.Array, pa.Array]:
    """The smallest and the largest values of files, each a JSON object by column, as text."""
    files = _Files(store, lambda: entries)
    return files.value_stats(entries.value_stats_min), files.value_stats(entries.value_stats_max)


@dataclass(frozen=True)
class _StatsGroup:
    """Files whose statistics have the same shape: the schema, and the columns they cover."""

    rows: npt.NDArray[np.int64]
    schema: TableSchema
    fields: tuple[DataField, ...]


@dataclass(frozen=True, eq=False)
class _Files:
    store: TableStore
    load: Callable[[], ManifestEntries]

    @cached_property
    def entries(self) -> ManifestEntries:
        return self.load()

    def partition(self) -> pa.Array:
        if not self.store.schema.partition_keys:
            return pa.nulls(len(self.entries), pa.string())
        _, names = describe_partitions(self.store, self.entries.partitions)
        return pa.array(names, pa.string()).take(pa.array(self.entries.partition_codes))

    def format(self) -> pa.Array:
        extension = pc.extract_regex(self.entries.file_name, r"\.(?P<extension>[^.]*)$")
        return pc.fill_null(pc.struct_field(extension, "extension"), "")

    def keys(self, rows: pa.Array) -> pa.Array:
        """Serialized keys as JSON lists; files of tables without a key have none."""
        return _scatter(self._keys_by_schema(rows), len(self.entries))

    def _keys_by_schema(self, rows: pa.Array) -> Iterator[tuple[npt.NDArray[np.int64], pa.Array]]:
        has_key = pc.not_equal(rows, pa.scalar(EMPTY_ROW, rows.type)).to_numpy(zero_copy_only=False)
        yield (nothing := np.flatnonzero(~has_key)), pa.nulls(len(nothing), pa.string())
        for schema_id in np.unique(self.entries.schema_id[has_key]).tolist():
            schema = self.store.schemas.load(schema_id)
            chosen = np.flatnonzero(has_key & (self.entries.schema_id == schema_id))
            types = [schema.field_by_name[key].type for key in schema.trimmed_primary_keys]
            yield chosen, json_rows(types, rows.take(pa.array(chosen)))

    def null_value_counts(self) -> pa.Array:
        return self._stats_objects(self._null_counts)

    def value_stats(self, rows: pa.Array) -> pa.Array:
        return self._stats_objects(partial(_values, rows))

    def _null_counts(self, group: _StatsGroup, field: DataField | None) -> pa.Array:
        if field is None:
            # The file is older than the column: all its rows read as null.
            return pa.array(self.entries.row_count[group.rows]).cast(pa.string())
        counts = self.entries.value_stats_null_counts.take(pa.array(group.rows))
        return pc.list_element(counts, group.fields.index(field)).cast(pa.string())

    def _stats_objects(
        self, column_of: Callable[[_StatsGroup, DataField | None], pa.Array]
    ) -> pa.Array:
        """One JSON object per file, with a member for every column that the table has now."""
        names = self.store.schema.field_names
        parts = []
        for group in self._stats_groups:
            in_file = {field.id: field for field in group.schema.fields}
            covered = {field.id for field in group.fields}
            columns = []
            for field in self.store.schema.fields:
                if field.id in in_file and field.id not in covered:
                    columns.append(pa.repeat("null", len(group.rows)))
                else:
                    texts = column_of(group, in_file.get(field.id))
                    columns.append(pc.fill_null(texts, "null"))
            parts.append((group.rows, json_objects(names, columns, len(group.rows))))
        return _scatter(iter(parts), len(self.entries))

    @cached_property
    def _stats_groups(self) -> list[_StatsGroup]:
        entries = self.entries
        arities = pc.binary_slice(entries.value_stats_min, 0, _ARITY_BYTES).dictionary_encode()
        shape = np.stack(
            [
                entries.schema_id,
                _codes(entries.value_stats_cols),
                _codes(entries.write_cols),
                arities.indices.to_numpy(zero_copy_only=False).astype(np.int64),
            ],
            axis=1,
        )
        _, firsts, codes = np.unique(shape, axis=0, return_index=True, return_inverse=True)
        return [
            self._stats_group(np.flatnonzero(codes.reshape(-1) == code), first)
            for code, first in enumerate(firsts.tolist())
        ]

    def _stats_group(self, rows: npt.NDArray[np.int64], example: int) -> _StatsGroup:
        entries = self.entries
        schema = self.store.schemas.load(int(entries.schema_id[example]))
        known = {**_HIDDEN, **schema.field_by_name}
        names = entries.value_stats_cols[example].as_py()
        smallest = entries.value_stats_min[example].as_py()
        if names is None and smallest == EMPTY_ROW:
            names = ()  # a row without fields: nothing was collected
        elif names is None:
            # Without a list the statistics cover every column that was written. Some writers leave
            # the hidden columns of moved rows out.
            written = entries.write_cols[example].as_py() or schema.field_names
            names = [name for name in written if name in known]
            if int.from_bytes(smallest[:_ARITY_BYTES], "big") < len(names):
                names = [name for name in names if name in schema.field_by_name]
        return _StatsGroup(rows, schema, tuple(known[name] for name in names))


def _values(rows: pa.Array, group: _StatsGroup, field: DataField | None) -> pa.Array:
    if field is None or field.type.is_nested:  # nested columns have no minimum and maximum
        return pa.nulls(len(group.rows), pa.string())
    types = [f.type for f in group.fields]
    chosen = rows.take(pa.array(group.rows))
    return json_values(field.type, decode_column(types, chosen, group.fields.index(field)))


def _codes(lists: pa.Array) -> npt.NDArray[np.int64]:
    """Numbers that are equal where the lists of names are equal."""
    joined = pc.binary_join(lists.cast(pa.list_(pa.string())), _SEPARATOR)
    ended = pc.binary_join_element_wise(joined, _SEPARATOR, "")
    indices = pc.fill_null(ended, _NO_COLUMNS).dictionary_encode().indices
    codes: npt.NDArray[np.int64] = indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes


def _scatter(parts: Iterator[tuple[npt.NDArray[np.int64], pa.Array]], length: int) -> pa.Array:
    """Put the values of every part at its rows."""
    found = list(parts)
    if not found:
        return pa.nulls(length, pa.string())
    rows = np.concatenate([rows for rows, _ in found])
    values = pa.concat_arrays([values.cast(pa.string()) for _, values in found])
    return values.take(pa.array(np.argsort(rows, kind="stable")))

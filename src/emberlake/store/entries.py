"""Manifest entries as columns, and the resolution of added against deleted files.

Spec: "Manifest entry", "DataFileMeta", "Resolving ADD/DELETE". Planning looks at few columns of
many entries, so entries stay columnar from the manifest to the plan; only the entries that are left
become ``ManifestEntry`` values.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from itertools import pairwise, repeat
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from emberlake.base.arrow_arrays import array_numbers, numbers_array, values_array
from emberlake.errors import CorruptFile
from emberlake.spec.manifest import DataFile, FileKind, FileSource, ManifestEntry, SimpleStats

_T = TypeVar("_T")

_TEXTS: Final = pa.large_list(pa.large_string())
_NUMBERS: Final = pa.large_list(pa.int64())

# One column for each value of an entry, its file, and the file's two statistics. Offsets have 64
# bits: the statistics of a very large table may pass two gigabytes.
ENTRY_SCHEMA: Final = pa.schema([
    pa.field("kind", pa.int32(), nullable=False),
    pa.field("partition", pa.large_binary(), nullable=False),
    pa.field("bucket", pa.int32(), nullable=False),
    pa.field("total_buckets", pa.int32(), nullable=False),
    pa.field("file_name", pa.large_string(), nullable=False),
    pa.field("file_size", pa.int64(), nullable=False),
    pa.field("row_count", pa.int64(), nullable=False),
    pa.field("min_key", pa.large_binary(), nullable=False),
    pa.field("max_key", pa.large_binary(), nullable=False),
    pa.field("key_stats_min", pa.large_binary(), nullable=False),
    pa.field("key_stats_max", pa.large_binary(), nullable=False),
    pa.field("key_stats_null_counts", _NUMBERS),
    pa.field("value_stats_min", pa.large_binary(), nullable=False),
    pa.field("value_stats_max", pa.large_binary(), nullable=False),
    pa.field("value_stats_null_counts", _NUMBERS),
    pa.field("min_sequence_number", pa.int64(), nullable=False),
    pa.field("max_sequence_number", pa.int64(), nullable=False),
    pa.field("schema_id", pa.int64(), nullable=False),
    pa.field("level", pa.int32(), nullable=False),
    pa.field("extra_files", _TEXTS, nullable=False),
    pa.field("creation_time", pa.int64()),
    pa.field("delete_row_count", pa.int64()),
    pa.field("embedded_file_index", pa.large_binary()),
    pa.field("file_source", pa.int32()),
    pa.field("value_stats_cols", _TEXTS),
    pa.field("external_path", pa.large_string()),
    pa.field("first_row_id", pa.int64()),
    pa.field("write_cols", _TEXTS),
    pa.field("write_cols_sequences", _NUMBERS),
])  # fmt: skip


class _Numbers:
    """A column without nulls, as a NumPy array."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, entries: "ManifestEntries", owner: type) -> npt.NDArray[Any]:
        return array_numbers(entries.column(self._name))


class _Arrow:
    """A column as an Arrow array."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, entries: "ManifestEntries", owner: type) -> pa.Array:
        return entries.column(self._name)


class ManifestEntries:
    """An immutable set of manifest entries, in order, on a table of ``ENTRY_SCHEMA``."""

    kind = _Numbers()
    bucket = _Numbers()
    total_buckets = _Numbers()
    file_size = _Numbers()
    row_count = _Numbers()
    min_sequence_number = _Numbers()
    max_sequence_number = _Numbers()
    schema_id = _Numbers()
    level = _Numbers()

    partition = _Arrow()
    file_name = _Arrow()
    min_key = _Arrow()
    max_key = _Arrow()
    key_stats_min = _Arrow()
    key_stats_max = _Arrow()
    key_stats_null_counts = _Arrow()
    value_stats_min = _Arrow()
    value_stats_max = _Arrow()
    value_stats_null_counts = _Arrow()
    value_stats_cols = _Arrow()
    extra_files = _Arrow()
    creation_time = _Arrow()
    delete_row_count = _Arrow()
    embedded_file_index = _Arrow()
    file_source = _Arrow()
    external_path = _Arrow()
    first_row_id = _Arrow()
    write_cols = _Arrow()
    write_cols_sequences = _Arrow()

    def __init__(self, table: pa.Table) -> None:
        self._count: int = table.num_rows
        self._load: Callable[[str], pa.Array] = partial(_whole_column, table)
        self._columns: dict[str, pa.Array] = {}
        self.__dict__["table"] = table  # fills the cached property

    def _view(self, count: int, load: Callable[[str], pa.Array]) -> "ManifestEntries":
        """Entries made from these; planning looks at few columns, so each is made on demand."""
        view = object.__new__(ManifestEntries)
        view._count, view._load, view._columns = count, load, {}
        return view

    @staticmethod
    def concat(parts: Iterable["ManifestEntries"]) -> "ManifestEntries":
        """All entries, one part after another; their columns are shared, not copied."""
        filled = [part for part in parts if len(part)]
        if len(filled) < 2:
            return filled[0] if filled else EMPTY
        return ManifestEntries(pa.concat_tables(part.table for part in filled))

    @staticmethod
    def from_entries(entries: Sequence[ManifestEntry]) -> "ManifestEntries":
        arrays = [
            values_array([*map(_READERS[field.name], entries)], field.type)
            for field in ENTRY_SCHEMA
        ]
        return ManifestEntries(pa.Table.from_arrays(arrays, schema=ENTRY_SCHEMA))

    @cached_property
    def table(self) -> pa.Table:
        """All columns; those of a view are made now."""
        return pa.Table.from_arrays([*map(self.column, ENTRY_SCHEMA.names)], schema=ENTRY_SCHEMA)

    def column(self, name: str) -> pa.Array:
        """One column as one array."""
        array = self._columns.get(name)
        if array is None:
            array = self._columns[name] = self._load(name)
        return array

    @cached_property
    def partition_codes(self) -> npt.NDArray[np.int32]:
        """For each entry the index of its partition in ``partitions``."""
        return array_numbers(self._partition_dictionary.indices)

    @cached_property
    def partitions(self) -> tuple[bytes, ...]:
        """The distinct partitions, in order of first appearance."""
        return tuple(column_values(self._partition_dictionary.dictionary))

    @cached_property
    def _partition_dictionary(self) -> pa.DictionaryArray:
        return self.partition.dictionary_encode()

    @property
    def has_deletes(self) -> bool:
        return bool((self.kind == FileKind.DELETE).any())

    def take(self, chosen: npt.NDArray[Any]) -> "ManifestEntries":
        """The entries at these indices, or those where this mask is true."""
        if chosen.dtype == np.bool_:
            if chosen.all():
                return self
            chosen = np.flatnonzero(chosen)
        if len(chosen) == 0:
            return EMPTY
        indices = numbers_array(chosen)
        return self._view(len(chosen), lambda name: self.column(name).take(indices))

    def slice(self, start: int, stop: int) -> "ManifestEntries":
        """The entries from ``start`` up to ``stop``; their columns are shared, not copied."""
        count = stop - start
        if count == len(self):
            return self
        return self._view(count, lambda name: self.column(name).slice(start, count))

    def entries(self) -> list[ManifestEntry]:
        """The entries as values."""
        values = {field.name: column_values(self.column(field.name)) for field in ENTRY_SCHEMA}
        return _build(
            ManifestEntry,
            len(self),
            kind=_converted(values["kind"], tuple(FileKind)),
            partition=values["partition"],
            bucket=values["bucket"],
            total_buckets=values["total_buckets"],
            file=_data_files(values, len(self)),
        )

    def files(self) -> list[DataFile]:
        """The files of the entries as values."""
        values = {
            field.name: column_values(self.column(field.name))
            for field in ENTRY_SCHEMA
            if field.name not in ("kind", "partition", "bucket", "total_buckets")
        }
        return _data_files(values, len(self))

    def __len__(self) -> int:
        return self._count

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ManifestEntries) and bool(self.table.equals(other.table))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"ManifestEntries({len(self)} entries)"

    def __reduce__(self) -> tuple[object, ...]:
        sink = pa.BufferOutputStream()
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        with pa.ipc.new_stream(sink, ENTRY_SCHEMA, options=options) as writer:
            writer.write_table(self.table)
        return _from_ipc, (sink.getvalue().to_pybytes(),)


def _whole_column(table: pa.Table, name: str) -> pa.Array:
    chunked = table.column(name)
    return chunked.chunk(0) if chunked.num_chunks == 1 else chunked.combine_chunks()


# Not empty_table(): that would import pandas, where it is installed, with this module.
EMPTY: Final = ManifestEntries(pa.Table.from_batches([], ENTRY_SCHEMA))


def merge_entries(entries: ManifestEntries) -> ManifestEntries:
    """The live files: entries that add a file that no entry deletes, in any order."""
    is_delete = entries.kind == FileKind.DELETE
    if not is_delete.any():
        return entries
    deleted = set(_identities(entries, np.flatnonzero(is_delete)))
    is_live = ~is_delete
    suspects = np.flatnonzero(is_live & _has_name_of(entries, is_delete))
    hits = [identity in deleted for identity in _identities(entries, suspects)]
    is_live[suspects[np.array(hits, np.bool_)]] = False
    return entries.take(is_live)


def compact_entries(entries: ManifestEntries) -> ManifestEntries:
    """What is left when entries are applied in order: pairs of ADD and DELETE cancel out.

    A DELETE whose ADD is not among the entries stays: the ADD is in an older manifest.

    Raises:
        CorruptFile: a file is added twice.
    """
    names = entries.file_name.dictionary_encode()
    codes = array_numbers(names.indices)
    # Only a name that occurs more than once can cancel out or clash.
    suspects = np.flatnonzero(np.bincount(codes, minlength=1)[codes] > 1)
    kinds = entries.kind[suspects].tolist()
    unmatched: dict[_Identity, int] = {}
    # A loop over the few entries that share a name: what each does depends on those before it.
    for index, kind, identity in zip(
        suspects.tolist(), kinds, _identities(entries, suspects), strict=True
    ):
        if kind == FileKind.ADD and identity in unmatched:
            raise CorruptFile(identity[3], "manifests add this file twice")
        if kind == FileKind.DELETE and identity in unmatched:
            del unmatched[identity]
        else:
            unmatched[identity] = index
    is_left = np.ones(len(entries), np.bool_)
    is_left[suspects] = False
    is_left[np.array(list(unmatched.values()), np.int64)] = True
    return entries.take(is_left)


def column_values(array: pa.Array) -> list[Any]:
    """The values of a column as Python objects; lists become tuples.

    Reads the buffers in bulk, which is several times faster than Arrow's conversion by value.
    """
    if array.null_count == len(array):
        return [None] * len(array)
    if pa.types.is_integer(array.type) and not array.null_count:
        numbers: list[Any] = array_numbers(array).tolist()
        return numbers
    if pa.types.is_large_list(array.type):
        start, stop, ranges = _ranges(array)
        values = column_values(array.values.slice(start, stop - start))
        found: list[Any] = [tuple(values[a:b]) for a, b in ranges]
    elif pa.types.is_large_binary(array.type):
        start, stop, ranges = _ranges(array)
        raw = array.buffers()[2].slice(start, stop - start).to_pybytes()
        found = [raw[a:b] for a, b in ranges]
    elif pa.types.is_large_string(array.type):
        start, stop, ranges = _ranges(array)
        raw = array.buffers()[2].slice(start, stop - start).to_pybytes()
        found = [raw[a:b].decode() for a, b in ranges]
    else:
        found = array.to_pylist()
    if array.null_count:
        for index in np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False)).tolist():
            found[index] = None
    return found


_Identity = tuple[bytes, int, int, str, tuple[str, ...], bytes | None, str | None]
_IDENTITY: Final = (
    "partition",
    "bucket",
    "level",
    "file_name",
    "extra_files",
    "embedded_file_index",
    "external_path",
)


def _identities(entries: ManifestEntries, chosen: npt.NDArray[Any]) -> Iterable[_Identity]:
    indices = numbers_array(chosen)
    return zip(
        *(column_values(entries.column(name).take(indices)) for name in _IDENTITY), strict=True
    )


def _has_name_of(entries: ManifestEntries, mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    names = entries.file_name
    found: npt.NDArray[np.bool_] = pc.is_in(names, value_set=names.filter(pa.array(mask))).to_numpy(
        zero_copy_only=False
    )
    return found


def _ranges(array: pa.Array) -> tuple[int, int, Iterable[tuple[int, int]]]:
    """Where the values of an array begin and end, and the range of each, counted from there."""
    offsets = np.frombuffer(array.buffers()[1], np.int64)
    offsets = offsets[array.offset : array.offset + len(array) + 1]
    start, stop = int(offsets[0]), int(offsets[-1])
    return start, stop, pairwise((offsets - start).tolist())


def _data_files(values: dict[str, list[Any]], count: int) -> list[DataFile]:
    return _build(
        DataFile,
        count,
        key_stats=_stats(values, "key_stats", count),
        value_stats=_stats(values, "value_stats", count),
        file_source=_converted(values["file_source"], tuple(FileSource)),
        **{name: values[name] for name in _PLAIN_FILE_COLUMNS},
    )


_PLAIN_FILE_COLUMNS: Final = (
    "file_name",
    "file_size",
    "row_count",
    "min_key",
    "max_key",
    "min_sequence_number",
    "max_sequence_number",
    "schema_id",
    "level",
    "extra_files",
    "creation_time",
    "delete_row_count",
    "embedded_file_index",
    "value_stats_cols",
    "external_path",
    "first_row_id",
    "write_cols",
    "write_cols_sequences",
)


def _stats(values: dict[str, list[Any]], name: str, count: int) -> list[SimpleStats]:
    return _build(
        SimpleStats,
        count,
        min_values=values[f"{name}_min"],
        max_values=values[f"{name}_max"],
        null_counts=values[f"{name}_null_counts"],
    )


def _converted(codes: list[int | None], members: Sequence[Any]) -> list[Any]:
    return [None if code is None else members[code] for code in codes]


def _build(kind: type[_T], count: int, /, **columns: Iterable[Any]) -> list[_T]:
    """Build values of a frozen dataclass with slots, column by column.

    Its constructor would cost more than the rest of decoding. Here each column is stored through
    its slot in one pass that stays out of the interpreter. All fields must be given.
    """
    made: list[_T] = list(map(object.__new__, repeat(kind, count)))
    for name, values in columns.items():
        deque(map(getattr(kind, name).__set__, made, values), maxlen=0)
    return made


def _from_ipc(raw: bytes) -> ManifestEntries:
    return ManifestEntries(pa.ipc.open_stream(raw).read_all())


def _code(member: FileSource | None) -> int | None:
    return None if member is None else int(member)


def _from_file(name: str) -> Callable[[ManifestEntry], Any]:
    return lambda entry: getattr(entry.file, name)


_READERS: Final[dict[str, Callable[[ManifestEntry], Any]]] = {
    "kind": lambda entry: int(entry.kind),
    "partition": lambda entry: entry.partition,
    "bucket": lambda entry: entry.bucket,
    "total_buckets": lambda entry: entry.total_buckets,
    "key_stats_min": lambda entry: entry.file.key_stats.min_values,
    "key_stats_max": lambda entry: entry.file.key_stats.max_values,
    "key_stats_null_counts": lambda entry: entry.file.key_stats.null_counts,
    "value_stats_min": lambda entry: entry.file.value_stats.min_values,
    "value_stats_max": lambda entry: entry.file.value_stats.max_values,
    "value_stats_null_counts": lambda entry: entry.file.value_stats.null_counts,
    "file_source": lambda entry: _code(entry.file.file_source),
    **{name: _from_file(name) for name in _PLAIN_FILE_COLUMNS},
}

"""Writes Parquet data files. Spec: "Parquet".

Every call of ``write`` makes one row group. Its columns are encoded and compressed by several
threads, since compression is most of the work, and then laid out in the order of the schema as any
Parquet writer would do. A column gets a dictionary only if a sample shows that it pays off.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from emberlake.base.arrow_arrays import used_values
from emberlake.base.byte_cache import ByteCache
from emberlake.base.option_texts import MEBIBYTE
from emberlake.base.parallel import default_workers, parallel_map
from emberlake.errors import DataMismatch, InvalidOption
from emberlake.formats.field_ids import schema_with_ids
from emberlake.formats.file_format import check_nulls, check_storable, new_file
from emberlake.formats.int96 import INT96, to_int96
from emberlake.formats.nested import (
    has_required_fields,
    map_leaf_types,
    map_leaves,
    without_hidden_nulls,
)
from emberlake.formats.parquet_footer import MAGIC, Chunk, FooterFrame, chunks_of, encode_row_group
from emberlake.formats.parquet_parts import RowGroup
from emberlake.formats.thrift import Struct
from emberlake.io.storage import Storage
from emberlake.options import FILE_COMPRESSION, ZSTD_LEVEL, TableOptions
from emberlake.types import AtomicType, DataField, TypeRoot, arrow_type

_FIELD_ID: Final = b"PARQUET:field_id"
_CODECS: Final = {
    "zstd": "zstd",
    "snappy": "snappy",
    "gzip": "gzip",
    "brotli": "brotli",
    "lz4": "lz4",
    "lz4_raw": "lz4",
    "none": "none",
    "uncompressed": "none",
}
_LAYOUT: Final[dict[str, Any]] = {
    "version": "2.6",
    "data_page_version": "1.0",
    "store_schema": False,
    "store_decimal_as_integer": True,
    "write_time_adjusted_to_utc": True,
    "use_compliant_nested_type": True,
    "write_page_checksum": True,
}
_MAX_GROUP_ROWS: Final = 16 * 1024 * 1024
_SMALL_BYTES: Final = 1024 * 1024  # below this, threads cost more than they save
_GROUPS_PER_WORKER: Final = 8

_SAMPLE_ROWS: Final = 8192
MAX_DICTIONARY_BYTES: Final = 1024 * 1024  # where Arrow abandons a dictionary
_MAX_DICTIONARY_VALUES: Final = 65_536
_MAX_BOUND_BYTES: Final = 4096  # as in Arrow: longer bounds are left out


class ParquetWriter:
    """Fills one Parquet file."""

    def __init__(
        self,
        storage: Storage,
        path: str,
        fields: tuple[DataField, ...],
        options: TableOptions,
    ) -> None:
        check_storable(fields, "parquet")
        self._fields = fields
        self._settings = _settings(options)
        self._columns = tuple(_ColumnPlan.of(f) for f in fields)
        self._frame = _frame(fields)
        self._row_groups: list[bytes] = []
        self._row_count = 0
        self._sends_early = storage.traits.is_remote
        self._file = new_file(storage, path, options)
        self._file.write(MAGIC)

    @property
    def bytes_written(self) -> int:
        return self._file.position

    def write(self, table: pa.Table) -> None:
        check_nulls(table, self._fields, self._file.path)
        for start in range(0, table.num_rows, _MAX_GROUP_ROWS):
            self._write_row_group(table.slice(start, _MAX_GROUP_ROWS))

    def write_columns(self, rows: RowGroup, *, workers: int) -> None:
        """Write one row group whose columns are made one by one, so that few are in memory."""
        sample = _sample_rows(rows.num_rows)

        def encode(group: Sequence[int]) -> list[list[Chunk]]:
            (at,) = group
            field = self._fields[at]
            chunks = rows.encoded(field, self._frame.layouts[field.name])
            if chunks is not None:
                return [list(chunks)]
            table = pa.table([rows.column(field)], [field.name])
            check_nulls(table, (field,), self._file.path)
            if pa.types.is_dictionary(table.column(0).type):
                return [[self._encode_indexed(table)]]
            return self._encode(table.columns, group, sample)

        groups = [(at,) for at in range(len(self._fields))]
        self._lay_out(groups, encode, rows.num_rows, workers=workers, ahead=workers + 1)

    def close(self) -> int:
        self._file.write(self._frame.encode(self._row_count, self._row_groups))
        return self._file.close()

    def abort(self) -> None:
        self._file.abort()

    def _write_row_group(self, table: pa.Table) -> None:
        sizes = [column.nbytes for column in table.columns]
        workers = min(default_workers(), pa.cpu_count()) if sum(sizes) > _SMALL_BYTES else 1
        groups = plan_column_groups(sizes, workers * _GROUPS_PER_WORKER if workers > 1 else 1)
        # Longest first, so that no thread is left alone with a large column at the end. Where
        # sending takes long it is better to begin early: in the order of the file.
        if self._sends_early:
            groups.sort()
        sample = _sample_rows(table.num_rows)

        def encode(group: Sequence[int]) -> list[list[Chunk]]:
            return self._encode([table.column(at) for at in group], group, sample)

        ahead = len(groups) + 1
        self._lay_out(groups, encode, table.num_rows, workers=workers, ahead=ahead)

    def _lay_out(
        self,
        groups: Sequence[Sequence[int]],
        encode: Callable[[Sequence[int]], list[list[Chunk]]],
        row_count: int,
        *,
        workers: int,
        ahead: int,
    ) -> None:
        """Encode groups of columns in parallel, and write them in the order of the schema."""
        start = self._file.position
        chunks: dict[int, list[Chunk]] = {}
        ordered: list[Struct] = []
        done = 0  # columns that were written
        found = parallel_map(encode, groups, workers=workers, ahead=ahead)
        for group, encoded in zip(groups, found, strict=True):
            chunks.update(zip(group, encoded, strict=True))
            while (following := chunks.pop(done, None)) is not None:
                done += 1
                for chunk in following:
                    ordered.append(chunk.column)
                    self._file.write(chunk.data)
        self._row_groups.append(encode_row_group(ordered, row_count, start, len(self._row_groups)))
        self._row_count += row_count

    def _encode(
        self, values: Sequence[pa.ChunkedArray], group: Sequence[int], sample: np.ndarray
    ) -> list[list[Chunk]]:
        plans = [self._columns[at] for at in group]
        columns = [plan.stored(column) for column, plan in zip(values, plans, strict=True)]
        schema = pa.schema(
            [
                pa.field(plan.name, column.type, nullable=plan.is_nullable)
                for plan, column in zip(plans, columns, strict=True)
            ]
        )
        dictionaries = [
            leaf
            for plan, column in zip(plans, columns, strict=True)
            if dictionary_pays_off(column, sample)
            for leaf, _ in _leaves(plan.name, column.type)
        ]
        table = pa.Table.from_arrays(columns, schema=schema)
        found = iter(self._chunks(table, use_dictionary=dictionaries or False))
        return [
            [
                next(found).as_int96() if kind == INT96 else next(found)
                for _, kind in _leaves(plan.name, column.type)
            ]
            for plan, column in zip(plans, columns, strict=True)
        ]

    def _encode_indexed(self, table: pa.Table) -> Chunk:
        """The chunk of a column whose values are places in a dictionary, which is stored with it.

        Arrow would look at all values for their bounds, though the distinct ones have the same.
        """
        (column,) = table.columns
        (chunk,) = self._chunks(table, use_dictionary=table.column_names, write_statistics=False)
        return chunk.with_statistics(column.null_count, _bounds(column))

    def _chunks(self, table: pa.Table, **settings: object) -> list[Chunk]:
        out = pa.BufferOutputStream()
        try:
            with pq.ParquetWriter(out, table.schema, **settings, **self._settings) as writer:
                writer.write_table(table, _MAX_GROUP_ROWS)
        except pa.ArrowInvalid as error:
            raise DataMismatch(f"rows cannot be written to {self._file.path}: {error}") from error
        return chunks_of(out.getvalue())


def _bounds(column: pa.ChunkedArray) -> tuple[bytes, bytes] | None:
    """The least and the greatest text, unless there is none or they are long."""
    used = pa.chunked_array([used_values(chunk) for chunk in column.chunks], column.type.value_type)
    found = pc.min_max(used.cast(pa.binary()))
    low, high = found["min"].as_py(), found["max"].as_py()
    return None if low is None or max(len(low), len(high)) > _MAX_BOUND_BYTES else (low, high)


def plan_column_groups(sizes: Sequence[int], count: int) -> list[tuple[int, ...]]:
    """Columns in at most ``count`` groups of similar size, the largest group first."""
    groups: list[list[int]] = [[] for _ in range(min(count, len(sizes)))]
    totals = [0] * len(groups)
    for at in sorted(range(len(sizes)), key=lambda i: -sizes[i]):
        smallest = totals.index(min(totals))
        groups[smallest].append(at)
        totals[smallest] += sizes[at] + 1
    order = sorted(range(len(groups)), key=lambda i: -totals[i])
    return [tuple(sorted(groups[i])) for i in order]


def dictionary_pays_off(column: pa.ChunkedArray, sample: np.ndarray) -> bool:
    """Whether a column should be stored with a dictionary of its values.

    With few distinct values, a dictionary makes the file smaller and faster. With many, it is
    built and then abandoned at its limit, which only costs time. Nested columns always try one.
    """
    if pa.types.is_nested(column.type):
        return True
    if pa.types.is_boolean(column.type):
        return False
    rows = len(column)
    taken = column if len(sample) == rows else column.take(pa.array(sample))
    present = len(taken) - taken.null_count
    # Half the time of `count_distinct`, which visits one value at a time.
    distinct = len(taken.unique()) - (present < len(taken))
    if len(sample) == rows:
        estimate = float(distinct)
    else:
        estimate = estimate_distinct(present, distinct) if present else 0.0
    width = column.nbytes / max(rows, 1)
    return (
        estimate <= rows / 2
        and estimate <= _MAX_DICTIONARY_VALUES
        and estimate * width <= MAX_DICTIONARY_BYTES
    )


def estimate_distinct(sampled: int, distinct: int) -> float:
    """Estimate the number of distinct values if ``sampled`` random rows show ``distinct``.

    Solves d = D (1 - exp(-n / D)), the expectation for D equally frequent values.
    """
    if distinct >= sampled:
        return float("inf")
    low, high = float(distinct), float(sampled) ** 2
    for _ in range(60):
        middle = (low + high) / 2
        expected = middle * -np.expm1(-sampled / middle)
        low, high = (middle, high) if expected < distinct else (low, middle)
    return low


@dataclass(frozen=True)
class _ColumnPlan:
    """How one column is passed to the encoder."""

    name: str
    is_nullable: bool
    change: Callable[[pa.Array], pa.Array] | None

    @staticmethod
    def of(field: DataField) -> "_ColumnPlan":
        return _ColumnPlan(field.name, field.type.nullable, _change_of(field))

    def stored(self, column: pa.ChunkedArray) -> pa.ChunkedArray:
        if self.change is None:
            return column
        chunks = column.chunks or [pa.array([], column.type)]
        return pa.chunked_array([self.change(chunk) for chunk in chunks])


def _change_of(field: DataField) -> Callable[[pa.Array], pa.Array] | None:
    # Decimals of up to 18 digits are integers on disk. Passing their low words as integers saves
    # the encoder a conversion digit by digit; the footer names the type.
    integer = _integer_of(field)
    if integer is not None:
        return lambda array: _unscaled(array, integer)
    # Java reads and writes nanoseconds only as INT96, which Arrow writes for all columns or none.
    # So they are encoded as plain bytes, and the footer names the type.
    kind = arrow_type(field.type)
    has_nanoseconds = map_leaf_types(kind, _stored_type) != kind
    may_hide_nulls = has_required_fields(kind)
    if not (has_nanoseconds or may_hide_nulls):
        return None

    def change(array: pa.Array) -> pa.Array:
        shown = without_hidden_nulls(array) if may_hide_nulls else array
        return map_leaves(shown, _stored_leaf) if has_nanoseconds else shown

    return change


def _stored_type(kind: pa.DataType) -> pa.DataType:
    return INT96 if pa.types.is_timestamp(kind) and kind.unit == "ns" else kind


def _stored_leaf(array: pa.Array) -> pa.Array:
    return to_int96(array) if _stored_type(array.type) == INT96 else array


def _integer_of(field: DataField) -> pa.DataType | None:
    match field.type:
        case AtomicType(root=TypeRoot.DECIMAL, precision=precision) if precision <= 9:
            return pa.int32()
        case AtomicType(root=TypeRoot.DECIMAL, precision=precision) if precision <= 18:
            return pa.int64()
        case _:
            return None


def _unscaled(decimals: pa.Array, integer: pa.DataType) -> pa.Array:
    words = np.frombuffer(decimals.buffers()[1], np.int64)
    low = words[2 * decimals.offset : 2 * (decimals.offset + len(decimals)) : 2]
    values = low.astype(np.int32 if integer == pa.int32() else np.int64)
    mask = decimals.is_null().to_numpy(zero_copy_only=False) if decimals.null_count else None
    return pa.array(values, type=integer, mask=mask)


def _frame(fields: tuple[DataField, ...]) -> FooterFrame:
    """The frame of files with these columns, cached: a writer makes many such files."""
    frame: FooterFrame | None = _FRAMES.find((fields,))
    if frame is None:
        frame = _make_frame(fields)
        _FRAMES.keep((fields,), frame, _FRAME_BYTES_PER_BYTE * len(frame.before))
    return frame


def _make_frame(fields: tuple[DataField, ...]) -> FooterFrame:
    empty = pa.BufferOutputStream()
    schema = pa.schema(
        [
            f.with_type(map_leaf_types(f.type, _stored_type))
            for f in schema_with_ids(fields, _FIELD_ID)
        ]
    )
    pq.ParquetWriter(empty, schema, **_LAYOUT).close()
    return FooterFrame.of(empty.getvalue())


_FRAMES: Final = ByteCache(lambda: 4 * MEBIBYTE)
_FRAME_BYTES_PER_BYTE: Final = 20  # the columns in the key take far more than their text


def _settings(options: TableOptions) -> dict[str, Any]:
    name = options.value(FILE_COMPRESSION)
    if name not in _CODECS:
        raise InvalidOption(
            f"{FILE_COMPRESSION.key}={name}: for parquet files use one of {', '.join(_CODECS)}"
        )
    codec = _CODECS[name]
    return {
        "compression": codec,
        "compression_level": options.value(ZSTD_LEVEL) if codec == "zstd" else None,
        **_LAYOUT,
    }


def _sample_rows(row_count: int) -> np.ndarray:
    if row_count <= _SAMPLE_ROWS:
        return np.arange(row_count)
    # A fixed seed: the same rows always make the same file.
    return np.sort(np.random.default_rng(0).integers(0, row_count, _SAMPLE_ROWS))


def _leaves(path: str, kind: pa.DataType) -> list[tuple[str, pa.DataType]]:
    """Path and type of the primitive columns that an Arrow column becomes in Parquet."""
    if pa.types.is_struct(kind):
        return [leaf for f in kind for leaf in _leaves(f"{path}.{f.name}", f.type)]
    if pa.types.is_list(kind):
        return _leaves(f"{path}.list.element", kind.value_type)
    if pa.types.is_map(kind):
        keys = _leaves(f"{path}.key_value.key", kind.key_type)
        return keys + _leaves(f"{path}.key_value.value", kind.item_type)
    return [(path, kind)]

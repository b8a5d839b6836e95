"""Convert what a file holds to what the schema says: Arrow arrays of exactly ``arrow_type``.

Engines store the same column in different ways: timestamps in any unit or as INT96, decimals as
integers or bytes of any width, TIME as a plain integer, lists whose child is ``item``. A conversion
is planned once per column from the two types and then applied to every batch.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa

from emberlake.errors import CorruptFile, Unsupported
from emberlake.formats.file_format import batch_of_rows
from emberlake.formats.int96 import INT96, OutOfRange, from_int96, with_nulls_of
from emberlake.formats.nested import entries_of, relabelled
from emberlake.types import (
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeRoot,
    arrow_field,
    arrow_schema,
    arrow_type,
)

Conversion: TypeAlias = Callable[[pa.Array], pa.Array]
_Rows = TypeVar("_Rows", pa.RecordBatch, pa.Table)

_NANOS: Final = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
_DECIMAL_BYTES: Final = 16


@dataclass(frozen=True)
class Conformance:
    """How rows of a file become the requested columns."""

    path: str
    schema: pa.Schema
    sources: tuple[int | None, ...]  # the position of each column in the file; None: absent
    conversions: tuple[Conversion | None, ...]  # None: the array needs no conversion

    def apply(self, rows: _Rows) -> _Rows:
        """The requested columns of a batch or table of the file."""
        if not self.sources:
            batch = batch_of_rows(rows.num_rows)
            return batch if isinstance(rows, pa.RecordBatch) else pa.Table.from_batches([batch])
        arrays = [self._column(rows, at) for at in range(len(self.sources))]
        return type(rows).from_arrays(arrays, schema=self.schema)

    def _column(self, rows: _Rows, at: int) -> pa.Array | pa.ChunkedArray:
        source, conversion, field = self.sources[at], self.conversions[at], self.schema.field(at)
        if source is None:
            return pa.nulls(rows.num_rows, field.type)
        column = rows.column(source)
        if conversion is None:
            return column
        try:
            if isinstance(column, pa.ChunkedArray):
                chunks = [conversion(chunk) for chunk in column.chunks]
                return pa.chunked_array(chunks, type=field.type)
            return conversion(column)
        except OutOfRange as error:
            raise Unsupported(
                f"{self.path}: the column {field.name} holds a timestamp outside of the range of "
                f"{field.type} ({error}); leave the column out"
            ) from error
        except pa.ArrowInvalid as error:
            raise CorruptFile(
                self.path, f"the column {field.name} is not {field.type}: {error}"
            ) from error


def plan_conformance(path: str, found: pa.Schema, columns: tuple[DataField, ...]) -> Conformance:
    """Match requested columns with those of a file by name; missing columns are null."""
    sources = [_index_of(path, found, field.name) for field in columns]
    conversions = [
        None if at is None else _planned(path, found.field(at).type, field)
        for at, field in zip(sources, columns, strict=True)
    ]
    return Conformance(path, arrow_schema(columns), tuple(sources), tuple(conversions))


def plan_conversion(source: pa.DataType, data_type: DataType) -> Conversion | None:
    """How arrays of an Arrow type become arrays of a column type.

    None means that there is nothing to do; ``ValueError`` that the types have nothing in common.
    """
    if pa.types.is_dictionary(source):
        inner = plan_conversion(source.value_type, data_type)
        return _chained(_decode_dictionary, inner)
    if is_identical(source, arrow_type(data_type)):
        return None
    match data_type:
        case AtomicType():
            return _atomic_conversion(source, data_type)
        case ArrayType(element=element):
            return _list_conversion(source, data_type, element)
        case MapType(key=key, value=value):
            return _map_conversion(source, data_type, key, value)
        case MultisetType(element=element):
            return _map_conversion(source, data_type, element, AtomicType("INT", nullable=False))
        case RowType(fields=fields):
            return _row_conversion(source, fields)
        case _:
            raise _mismatch(source, data_type)


def is_identical(one: pa.DataType, other: pa.DataType) -> bool:
    """Whether two Arrow types are the same, including the names of list and map children."""
    # Arrow's own comparison ignores those names; the text of a type has them.
    return bool(one == other) and str(one) == str(other)


def decimal_from_bytes(array: pa.Array, decimal: pa.DataType) -> pa.Array:
    """Decimals whose unscaled values are big-endian two's complement bytes of any length."""
    binary = array.cast(pa.binary())
    offsets = np.frombuffer(binary.buffers()[1], np.int32)[binary.offset :][: len(binary) + 1]
    sizes = np.diff(offsets)
    valid = binary.is_valid().to_numpy(zero_copy_only=False)
    data = np.frombuffer(binary.buffers()[2] or b"", np.uint8)
    out = np.zeros((len(binary), _DECIMAL_BYTES), np.uint8)
    for size in np.unique(sizes[valid]).tolist():
        rows = np.flatnonzero(valid & (sizes == size))
        if not size:  # the bytes of a null row are arbitrary
            continue
        digits = data[offsets[rows][:, None] + np.arange(size)[None, :]][:, ::-1]
        sign = np.where(digits[:, -1] >= 0x80, 0xFF, 0).astype(np.uint8)
        if size > _DECIMAL_BYTES and (digits[:, _DECIMAL_BYTES:] != sign[:, None]).any():
            raise pa.ArrowInvalid(f"a decimal of {size} bytes")
        kept = min(size, _DECIMAL_BYTES)
        out[rows, :kept] = digits[:, :kept]
        out[rows, kept:] = sign[:, None]
    return with_nulls_of(array, decimal, out)


def _index_of(path: str, found: pa.Schema, name: str) -> int | None:
    positions = found.get_all_field_indices(name)
    if len(positions) > 1:
        raise CorruptFile(path, f"it has {len(positions)} columns named {name}")
    return positions[0] if positions else None


def _planned(path: str, source: pa.DataType, field: DataField) -> Conversion | None:
    try:
        return plan_conversion(source, field.type)
    except ValueError as error:
        raise CorruptFile(path, f"the column {field.name} does not fit: {error}") from error


def _mismatch(source: pa.DataType, data_type: DataType) -> ValueError:
    return ValueError(f"the file holds {source}, but the schema says {data_type}")


def _decode_dictionary(array: pa.Array) -> pa.Array:
    return array.dictionary_decode()


def _chained(first: Conversion, second: Conversion | None) -> Conversion:
    if second is None:
        return first
    return lambda array: second(first(array))


def _atomic_conversion(source: pa.DataType, data_type: AtomicType) -> Conversion:
    target = arrow_type(data_type)
    match data_type.root:
        case TypeRoot.TIMESTAMP | TypeRoot.TIMESTAMP_LTZ if pa.types.is_timestamp(source):
            return _instant_conversion(source, target)
        case TypeRoot.TIMESTAMP | TypeRoot.TIMESTAMP_LTZ if source == INT96:
            return lambda array: from_int96(array, target)
        case TypeRoot.TIME if pa.types.is_time(source):
            return _time_conversion(source)
        case TypeRoot.DECIMAL:
            return _decimal_conversion(source, data_type)
        case TypeRoot.TIME | TypeRoot.DATE if pa.types.is_int32(source):
            return lambda array: array.view(target)
        case root if _is_same_family(source, root):
            return lambda array: array.cast(target)
        case _:
            raise _mismatch(source, data_type)


def _is_same_family(source: pa.DataType, root: TypeRoot) -> bool:
    types = pa.types
    if root.is_integer:
        return bool(types.is_integer(source))
    if root is TypeRoot.DOUBLE:
        return bool(types.is_floating(source))
    if root is TypeRoot.FLOAT:
        return bool(types.is_float16(source))
    if root is TypeRoot.DATE:
        return bool(types.is_date(source))
    if root.is_text or root.is_bytes:
        is_large = types.is_large_string(source) or types.is_large_binary(source)
        is_view = types.is_string_view(source) or types.is_binary_view(source)
        is_plain = types.is_string(source) or types.is_binary(source)
        return bool(is_plain or is_large or is_view or types.is_fixed_size_binary(source))
    return False


def _instant_conversion(source: pa.DataType, target: pa.DataType) -> Conversion:
    factor = _NANOS[target.unit] / _NANOS[source.unit]
    if factor == 1:  # the zone is a label: both count from the same epoch
        return lambda array: array.view(pa.int64()).view(target)
    if factor > 1:
        return lambda array: _floor_divided(array, int(factor), target)
    return lambda array: _finer_instants(array, source, target)


def _finer_instants(array: pa.Array, source: pa.DataType, target: pa.DataType) -> pa.Array:
    plain = array.view(pa.timestamp(source.unit))
    try:
        return plain.cast(pa.timestamp(target.unit)).view(target)
    except pa.ArrowInvalid as error:
        raise OutOfRange(str(error)) from error


def _floor_divided(array: pa.Array, divisor: int, target: pa.DataType) -> pa.Array:
    # Rounds towards the past even before 1970; a cast by Arrow does not.
    numbers = array.view(pa.int64()).fill_null(0).to_numpy()
    return with_nulls_of(array, target, numbers // divisor)


def _time_conversion(source: pa.DataType) -> Conversion:
    target = pa.time32("ms")
    if source.unit == "s":
        return lambda array: array.cast(target)
    divisor = _NANOS["ms"] // _NANOS[source.unit]
    return lambda array: _floor_divided(array, divisor, pa.int64()).cast(pa.int32()).view(target)


def _decimal_conversion(source: pa.DataType, data_type: AtomicType) -> Conversion:
    target = arrow_type(data_type)
    if pa.types.is_decimal(source):
        return lambda array: array.cast(target)
    if pa.types.is_integer(source) and source.bit_width <= 64:
        return lambda array: _unscaled(array, target)
    if _is_same_family(source, TypeRoot.BINARY) and not pa.types.is_string(source):
        return lambda array: decimal_from_bytes(array, target)
    raise _mismatch(source, data_type)


def _unscaled(array: pa.Array, target: pa.DataType) -> pa.Array:
    numbers = array.cast(pa.int64()).fill_null(0).to_numpy()
    words = np.empty((len(numbers), 2), np.int64)
    words[:, 0] = numbers
    words[:, 1] = numbers >> 63
    return with_nulls_of(array, target, words)


def _list_conversion(source: pa.DataType, data_type: DataType, element: DataType) -> Conversion:
    types = pa.types
    if types.is_large_list(source) or types.is_fixed_size_list(source):
        plain = pa.list_(source.value_field)
        return _chained(lambda array: array.cast(plain), plan_conversion(plain, data_type))
    if not types.is_list(source):
        raise _mismatch(source, data_type)
    inner = plan_conversion(source.value_type, element)
    target = arrow_type(data_type)

    def convert(array: pa.Array) -> pa.Array:
        values = inner(array.values) if inner else array.values
        return relabelled(array, target, values)

    return convert


def _map_conversion(
    source: pa.DataType, data_type: DataType, key: DataType, value: DataType
) -> Conversion:
    target = arrow_type(data_type)
    if pa.types.is_list(source) and pa.types.is_struct(source.value_type):
        return _pairs_conversion(source, data_type, key, value)
    if not pa.types.is_map(source):
        raise _mismatch(source, data_type)
    key_inner = plan_conversion(source.key_type, key)
    value_inner = plan_conversion(source.item_type, value)

    def convert(array: pa.Array) -> pa.Array:
        keys = key_inner(array.keys) if key_inner else array.keys
        items = value_inner(array.items) if value_inner else array.items
        return relabelled(array, target, entries_of(target, keys, items))

    return convert


def _pairs_conversion(
    source: pa.DataType, data_type: DataType, key: DataType, value: DataType
) -> Conversion:
    # Avro files store maps whose keys are not text as lists of records.
    pair = source.value_type
    if {pair.field(i).name for i in range(len(pair))} != {"key", "value"}:
        raise _mismatch(source, data_type)
    target = arrow_type(data_type)
    key_inner = plan_conversion(pair.field("key").type, key)
    value_inner = plan_conversion(pair.field("value").type, value)

    def convert(array: pa.Array) -> pa.Array:
        keys, items = array.values.field("key"), array.values.field("value")
        keys = key_inner(keys) if key_inner else keys
        items = value_inner(items) if value_inner else items
        return relabelled(array, target, entries_of(target, keys, items))

    return convert


def _row_conversion(source: pa.DataType, fields: tuple[DataField, ...]) -> Conversion:
    if not pa.types.is_struct(source):
        raise _mismatch(source, RowType(nullable=True, fields=fields))
    positions = [source.get_field_index(f.name) for f in fields]
    inners = [
        plan_conversion(source.field(at).type, f.type) if at >= 0 else None
        for at, f in zip(positions, fields, strict=True)
    ]
    targets = [arrow_field(f) for f in fields]

    def child(array: pa.Array, at: int) -> pa.Array:
        if positions[at] < 0:
            return pa.nulls(len(array), targets[at].type)
        inner = inners[at]
        if inner is None:
            return array.field(positions[at])
        # In rows that are null, fields hold arbitrary bytes; flattened, they are null there.
        has_nulls = array.null_count > 0
        return inner(array.flatten()[positions[at]] if has_nulls else array.field(positions[at]))

    def convert(array: pa.Array) -> pa.Array:
        children = [child(array, at) for at in range(len(fields))]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(children, fields=targets, mask=mask)

    return convert

"""Integers that stand for values, so that NumPy can compare values of every type.

Spec: "Comparison order". Codes only have a meaning within one array.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from emberlake.merge.aggregates.steps import ranges, valid_of
from emberlake.merge.digits import float_codes
from emberlake.spec.column_buffers import I64, raw_values
from emberlake.types.data_types import COMPACT_DECIMAL_PRECISION


def order_codes(array: pa.Array) -> I64:
    """Codes in the order of the values; the codes of nulls mean nothing."""
    data_type = array.type
    if not len(array):
        return np.zeros(0, dtype=np.int64)
    if pa.types.is_boolean(data_type):
        return _booleans(array)
    if pa.types.is_floating(data_type):
        return _float_codes(array)
    if pa.types.is_decimal(data_type):
        is_compact = data_type.precision <= COMPACT_DECIMAL_PRECISION
        return raw_values(array, np.int64, per_value=2)[0::2] if is_compact else _ranks(array)
    if pa.types.is_integer(data_type) or pa.types.is_temporal(data_type):
        return raw_values(array, f"i{data_type.bit_width // 8}").astype(np.int64)
    return _ranks(array)


def tuple_order_codes(columns: Sequence[pa.Array]) -> I64:
    """Codes from 0 in the order of tuples of the columns, column by column, nulls first."""
    return _combined([_dense(_nulls_first(column)) for column in columns])


def equality_codes(array: pa.Array) -> I64:
    """Codes from 0 that are equal where the values are; nulls are equal, and so are NaNs."""
    data_type = array.type
    if pa.types.is_struct(data_type):
        children = [array.field(i) for i in range(data_type.num_fields)]
        return np.where(valid_of(array), tuple_equality_codes(children) + 1, 0)
    if pa.types.is_map(data_type):
        return _list_codes(array, _map_entry_codes(array), is_ordered=False)
    if pa.types.is_list(data_type) or pa.types.is_large_list(data_type):
        return _list_codes(array, equality_codes(array.values), is_ordered=True)
    return _atomic_codes(array)


def tuple_equality_codes(columns: Sequence[pa.Array]) -> I64:
    """Codes from 0 that are equal where the values of all columns are."""
    return _combined([equality_codes(column) for column in columns])


def element_rows(array: pa.Array, rows: I64) -> tuple[I64, I64]:
    """The elements of some lists or maps: their positions in ``array.values``, and the counts."""
    offsets = np.asarray(array.offsets).astype(np.int64)
    lengths = np.diff(offsets)[rows]
    return ranges(offsets[rows], lengths), lengths


# --- parts ----------------------------------------------------------------------------------------


def _booleans(array: pa.Array) -> I64:
    values: npt.NDArray[Any] = array.fill_null(False).to_numpy(zero_copy_only=False)
    return values.astype(np.int64)


def _float_codes(array: pa.Array) -> I64:
    width = array.type.bit_width
    code = np.int32 if width == 32 else np.int64
    return float_codes(raw_values(array, f"f{width // 8}"), code).astype(np.int64)


def _ranks(array: pa.Array) -> I64:
    encoded = array.dictionary_encode()
    order = pc.sort_indices(encoded.dictionary).to_numpy()
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.arange(len(order))
    indices = encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)
    return ranks[indices] if len(ranks) else np.zeros(len(array), dtype=np.int64)


def _nulls_first(column: pa.Array) -> I64:
    codes = order_codes(column)
    if not column.null_count:
        return codes
    return np.where(valid_of(column), _dense(codes) + 1, 0)


def _combined(codes: Sequence[I64]) -> I64:
    """One code for tuples of codes, in the order of the tuples."""
    result = codes[0]
    for right in codes[1:]:
        result = _dense(result * (right.max(initial=0) + 1) + right)
    return result


def _dense(codes: I64) -> I64:
    """The same order in numbers without gaps."""
    if not len(codes):
        return codes
    low, high = int(codes.min()), int(codes.max())
    if high - low <= 4 * len(codes):  # few enough to be combined without sorting
        return codes - low
    return np.unique(codes, return_inverse=True)[1].reshape(-1)


def _atomic_codes(array: pa.Array) -> I64:
    if pa.types.is_floating(array.type):
        array = pa.array(_float_codes(array), mask=~valid_of(array))
    indices = array.dictionary_encode().indices
    codes: I64 = indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    return codes + 1


def _map_entry_codes(array: pa.Array) -> I64:
    return tuple_equality_codes([array.keys, array.items])


def _list_codes(array: pa.Array, codes: I64, *, is_ordered: bool) -> I64:
    offsets = np.asarray(array.offsets)
    seen: dict[bytes | None, int] = {None: 0}
    result = np.zeros(len(array), dtype=np.int64)
    # Lists of different lengths have no columnar form: each becomes the bytes of its codes.
    for row in np.flatnonzero(valid_of(array)).tolist():
        part = codes[offsets[row] : offsets[row + 1]]
        image = (part if is_ordered else np.sort(part)).tobytes()
        result[row] = seen.setdefault(image, len(seen))
    return result

"""Which bucket a row belongs to. Spec: "Buckets".

``default`` hashes the serialized row of the bucket key, ``mod`` takes the remainder of one whole
number, and ``hive`` combines one hash per column as Hive does.
"""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final, TypeAlias, assert_never

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from emberlake.base.hashing import murmur3
from emberlake.errors import InvalidInput
from emberlake.options import BucketFunction
from emberlake.spec.binary_row import EXACT, encode_row_body
from emberlake.spec.column_buffers import bytes_of, nulls_of, raw_values, zeroed
from emberlake.spec.row_columns import ArrowColumn, hash_rows
from emberlake.spec.values import Value, to_arrow_array
from emberlake.types import AtomicType, DataType, TypeRoot, arrow_type

I32: TypeAlias = npt.NDArray[np.int32]

_MOD_ROOTS: Final = frozenset({TypeRoot.INT, TypeRoot.BIGINT})
_HIVE_INTS: Final = {
    TypeRoot.BOOLEAN: np.uint8,
    TypeRoot.TINYINT: np.int8,
    TypeRoot.SMALLINT: np.int16,
    TypeRoot.INT: np.int32,
    # The format stores dates and times as whole numbers, and hashes these.
    TypeRoot.DATE: np.int32,
    TypeRoot.TIME: np.int32,
}
# 31 times this is 1 modulo 2**32: it turns falling powers of 31 into rising ones.
_INVERSE_OF_31: Final = pow(31, -1, 1 << 32)


def check_bucket_key(function: BucketFunction, types: Sequence[DataType]) -> str | None:
    """Why columns of these types cannot be the bucket key, or None when they can."""
    if not types:
        return "the bucket key has no columns"
    nested = [str(t) for t in types if not isinstance(t, AtomicType) or t.root.is_opaque]
    if nested:
        return f"columns of type {', '.join(nested)} cannot be in a bucket key"
    roots = [t.root for t in types if isinstance(t, AtomicType)]
    match function:
        case BucketFunction.DEFAULT:
            return None
        case BucketFunction.MOD:
            if len(roots) != 1 or roots[0] not in _MOD_ROOTS:
                found = ", ".join(str(t) for t in types)
                return f"bucket function mod needs one column of type INT or BIGINT, not {found}"
            return None
        case BucketFunction.HIVE:
            refused = [str(t) for t, root in zip(types, roots, strict=True) if root.is_timestamp]
            if refused:
                return f"bucket function hive does not take columns of type {', '.join(refused)}"
            return None
        case _:
            assert_never(function)


def assign_buckets(
    function: BucketFunction,
    types: Sequence[DataType],
    columns: Sequence[ArrowColumn],
    num_buckets: int,
) -> I32:
    """The bucket of every row, from the columns of the bucket key in their order."""
    _check(function, types, num_buckets)
    match function:
        case BucketFunction.DEFAULT:
            return _absolute_remainder(hash_rows(types, columns), num_buckets)
        case BucketFunction.MOD:
            return _floor_remainder(columns[0], num_buckets)
        case BucketFunction.HIVE:
            return _absolute_remainder(_hive_hashes(types, columns) & 0x7FFFFFFF, num_buckets)
        case _:
            assert_never(function)


def bucket_of(
    function: BucketFunction, types: Sequence[DataType], values: Sequence[Value], num_buckets: int
) -> int:
    """The bucket of one row, from the values of the bucket key in their order."""
    _check(function, types, num_buckets)
    match function:
        case BucketFunction.DEFAULT:
            return abs(murmur3(encode_row_body(types, values))) % num_buckets
        case BucketFunction.MOD:
            assert values[0] is None or isinstance(values[0], int)
            return (values[0] or 0) % num_buckets
        case BucketFunction.HIVE:
            columns = [to_arrow_array(t, [v]) for t, v in zip(types, values, strict=True)]
            return int(assign_buckets(function, types, columns, num_buckets)[0])
        case _:
            assert_never(function)


def _check(function: BucketFunction, types: Sequence[DataType], num_buckets: int) -> None:
    if num_buckets < 1:
        raise InvalidInput(f"{num_buckets} is not a valid number of buckets: it must be 1 or more")
    problem = check_bucket_key(function, types)
    if problem:
        raise InvalidInput(problem)


def _absolute_remainder(hashes: I32, num_buckets: int) -> I32:
    """``abs(hash % n)`` with the remainder of C, which is ``abs(hash) % n``."""
    # The absolute value of the smallest number is itself, which is right once it is unsigned.
    unsigned = np.abs(hashes).view(np.uint32)
    whole = unsigned // np.uint32(num_buckets)
    whole *= np.uint32(num_buckets)
    return (unsigned - whole).view(np.int32)


def _floor_remainder(column: ArrowColumn, num_buckets: int) -> I32:
    # A null counts as the zero in its slot.
    values: npt.NDArray[np.int64] = _one_array(column.fill_null(0)).to_numpy().astype(np.int64)
    return (values - values // num_buckets * num_buckets).astype(np.int32)


def _one_array(column: ArrowColumn) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


# -------------------------------------------------------------------------------------- hive


def _hive_hashes(types: Sequence[DataType], columns: Sequence[ArrowColumn]) -> I32:
    hashes = np.zeros(len(columns[0]), dtype=np.uint32)
    for data_type, column in zip(types, columns, strict=True):
        assert isinstance(data_type, AtomicType)
        declared = arrow_type(data_type)
        array = _one_array(column if column.type == declared else column.cast(declared))
        column_hashes = _hive_column(data_type, array)
        hashes *= np.uint32(31)
        hashes += zeroed(column_hashes, nulls_of(array))
    return hashes.view(np.int32)


def _hive_column(data_type: AtomicType, array: pa.Array) -> npt.NDArray[np.uint32]:
    root = data_type.root
    if root is TypeRoot.BOOLEAN:
        array = array.cast(pa.uint8())
    if root in _HIVE_INTS:
        return raw_values(array, _HIVE_INTS[root]).astype(np.int32).view(np.uint32)
    if root is TypeRoot.BIGINT:
        return _fold(raw_values(array, np.uint64))
    if root is TypeRoot.FLOAT:
        return _float_bits(raw_values(array, np.float32)).view(np.uint32)
    if root is TypeRoot.DOUBLE:
        return _fold(_float_bits(raw_values(array, np.float64)).view(np.uint64))
    if root is TypeRoot.DECIMAL:
        return _hive_decimals(array)
    return _hive_bytes(array)


def _fold(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint32]:
    return (values ^ values >> np.uint64(32)).astype(np.uint32)


def _float_bits(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    zero, nan = values.dtype.type(0), values.dtype.type(np.nan)
    return np.where(values == 0, zero, np.where(np.isnan(values), nan, values))


def _hive_bytes(array: pa.Array) -> npt.NDArray[np.uint32]:
    """``31 * h + byte`` over the signed bytes of each value."""
    # sum(byte[i] * 31**(end-1-i)) is 31**(end-1) times the difference of two running sums of
    # byte[i] * 31**-i: one pass over all bytes, whatever the lengths.
    offsets, data = bytes_of(array)
    signed = data.view(np.int8).astype(np.int32).view(np.uint32)
    sums = np.zeros(len(data) + 1, dtype=np.uint32)
    np.cumsum(signed * _powers(_INVERSE_OF_31, len(data)), dtype=np.uint32, out=sums[1:])
    ends = offsets[1:]
    lasts = _powers(31, len(data))[np.maximum(ends - 1, 0)]
    return (sums[ends] - sums[offsets[:-1]]) * lasts


def _powers(base: int, count: int) -> npt.NDArray[np.uint32]:
    factors = np.full(count, base, dtype=np.uint32)
    factors[0] = 1
    return np.cumprod(factors, dtype=np.uint32)


def _hive_decimals(array: pa.Array) -> npt.NDArray[np.uint32]:
    # This loop is over distinct values only: no kernel removes zeros from 128-bit numbers.
    encoded = array.dictionary_encode()
    hashes = [_hive_decimal(value) for value in encoded.dictionary.to_pylist()]
    codes: npt.NDArray[np.int32] = encoded.indices.fill_null(0).to_numpy()
    return np.array([*hashes, 0], dtype=np.uint32)[codes]


def _hive_decimal(value: Decimal | None) -> int:
    """The hash of the shortest form: 31 * (hash of the digits as a number) + scale."""
    if not value:
        return 0
    exponent = value.normalize(EXACT).as_tuple().exponent
    assert isinstance(exponent, int)
    scale = max(0, -exponent)
    number = int(value.scaleb(scale, EXACT))
    digits = 0
    for shift in range(96, -1, -32):
        digits = digits * 31 + (abs(number) >> shift & 0xFFFFFFFF)
    return (31 * (digits if number > 0 else -digits) + scale) & 0xFFFFFFFF

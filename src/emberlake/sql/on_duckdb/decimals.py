"""Division of decimals as Spark does it: exact, and rounded half up to the digits of the result.

DuckDB divides decimals as floating point numbers. Here whole columns of integers are divided: in
64 bits where everything fits, otherwise as Python's integers.
"""

from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from emberlake.errors import DataMismatch
from emberlake.sql.on_duckdb.typing import Digits

Integers = npt.NDArray[Any]  # of 64 bits, or objects
_SMALL = 1 << 61


def divide(a: Any, b: Any, result: Digits) -> pa.Array:
    """Quotients of two columns of decimals; NULL where one of them is.

    Raises:
        DataMismatch: a divisor is zero, or a quotient has too many digits.
    """
    a, b = _whole(a), _whole(b)
    is_null = (a.is_null().to_numpy(zero_copy_only=False)) | (
        b.is_null().to_numpy(zero_copy_only=False)
    )
    left, right = _unscaled(a), _unscaled(b)
    left[is_null], right[is_null] = 0, 1
    if (right == 0).any():
        raise DataMismatch("[DIVIDE_BY_ZERO] division by zero")
    shift = result.scale + b.type.scale - a.type.scale
    quotients = _rounded(left, right, 10 ** max(shift, 0), 10 ** max(-shift, 0))
    limit = 10**result.precision
    if len(quotients) and max(abs(int(quotients.min())), abs(int(quotients.max()))) >= limit:
        raise DataMismatch(
            f"[NUMERIC_VALUE_OUT_OF_RANGE] a quotient has more than {result.precision} digits"
        )
    return _decimals(quotients, is_null, result)


def _whole(column: Any) -> pa.Array:
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return array.cast(pa.decimal128(array.type.precision, array.type.scale))


def _unscaled(array: pa.Array) -> Integers:
    """The integers of decimals; those of NULL are arbitrary."""
    start, count = array.offset, len(array)
    words = np.frombuffer(array.buffers()[1], np.int64)[2 * start : 2 * (start + count)]
    low, high = words[0::2], words[1::2]
    if (high == low >> 63).all():
        return low.copy()
    wide: Integers = high.astype(object) * (1 << 64) + low.view(np.uint64).astype(object)
    return wide


def _rounded(a: Integers, b: Integers, factor: int, divisor: int) -> Integers:
    """``a * factor / (b * divisor)``, half up, away from zero."""
    largest = max(int(abs(a).max(initial=1)) * factor, int(abs(b).max(initial=1)) * divisor)
    if largest >= _SMALL:
        a, b = a.astype(object), b.astype(object)
    above, below = abs(a) * factor * 2, abs(b) * divisor
    quotients: Integers = (above + below) // (2 * below)
    return np.where((a < 0) ^ (b < 0), -quotients, quotients)


def _decimals(values: Integers, is_null: npt.NDArray[np.bool_], digits: Digits) -> pa.Array:
    kind = pa.decimal128(digits.precision, digits.scale)
    if values.dtype == object:
        texts = [None if n else Decimal(int(v)) for v, n in zip(values, is_null, strict=True)]
        wide = pa.array(texts, pa.decimal128(38, 0))
        return pa.Array.from_buffers(kind, len(wide), wide.buffers())
    words = np.empty((len(values), 2), np.int64)
    words[:, 0], words[:, 1] = values, values >> 63
    mask = None
    if is_null.any():
        mask = pa.py_buffer(np.packbits(~is_null, bitorder="little").tobytes())
    return pa.Array.from_buffers(kind, len(values), [mask, pa.py_buffer(words.tobytes())])

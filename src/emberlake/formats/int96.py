"""Timestamps of 96 bits, in which Java's Parquet files store TIMESTAMP(7..9).

Layout: nanoseconds of the day (8 bytes), Julian day (4 bytes), both little-endian.
"""

from typing import Final

import numpy as np
import pyarrow as pa

INT96: Final = pa.binary(12)

_DTYPE: Final = np.dtype([("nanos", "<i8"), ("day", "<i4")])
_JULIAN_EPOCH_DAY: Final = 2_440_588
_DAY_NANOS: Final = 86_400 * 1_000_000_000
_NANOS: Final = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}


class OutOfRange(Exception):
    """A value that the file can hold but its Arrow type cannot."""


def to_int96(array: pa.Array) -> pa.Array:
    """The 12 bytes of timestamps in nanoseconds."""
    instants = array.view(pa.int64()).fill_null(0).to_numpy()
    days = instants // _DAY_NANOS
    raw = np.empty(len(array), _DTYPE)
    raw["nanos"] = instants - days * _DAY_NANOS
    raw["day"] = days + _JULIAN_EPOCH_DAY
    return with_nulls_of(array, INT96, raw)


def from_int96(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Timestamps of any unit; raises ``OutOfRange`` if one does not fit."""
    data = np.frombuffer(array.buffers()[1] or b"", _DTYPE)
    raw = data[array.offset : array.offset + len(array)]
    nanos, days = raw["nanos"], raw["day"].astype(np.int64)
    if array.null_count:  # the bytes of a null are arbitrary
        valid = array.is_valid().to_numpy(zero_copy_only=False)
        nanos, days = np.where(valid, nanos, 0), np.where(valid, days, _JULIAN_EPOCH_DAY)
    # Before 1970, Java counts back from the next day: the time of day is negative.
    days = days - _JULIAN_EPOCH_DAY + nanos // _DAY_NANOS
    units_of_day = _DAY_NANOS // _NANOS[target.unit]
    limit = 2**63 // units_of_day
    if len(days) and (days.min() <= -limit or days.max() >= limit):
        raise OutOfRange("its 96 bits have a wider range")
    return with_nulls_of(
        array, target, days * units_of_day + nanos % _DAY_NANOS // _NANOS[target.unit]
    )


def with_nulls_of(array: pa.Array, target: pa.DataType, values: np.ndarray) -> pa.Array:
    """An array of fixed-width values with the nulls of another array."""
    validity = None
    if array.null_count:
        is_valid = array.is_valid().to_numpy(zero_copy_only=False)
        validity = pa.py_buffer(np.packbits(is_valid, bitorder="little").tobytes())
    data = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(target, len(array), [validity, data], array.null_count)

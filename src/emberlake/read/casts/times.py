"""Casts between dates, times and timestamps, and between timestamps and seconds."""

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from emberlake.read.casts.arrays import as_atomic, from_numpy, to_numpy
from emberlake.read.casts.families import Family, KernelTable
from emberlake.types import DataType, arrow_type

UNIT_DIGITS: Final = {"s": 0, "ms": 3, "us": 6, "ns": 9}
POWERS_OF_TEN: Final[tuple[int, ...]] = tuple(10**n for n in range(10))
MILLIS_PER_DAY: Final = 86_400_000


def _timestamp_to_timestamp(array: pa.Array, source: DataType, target: DataType) -> pa.Array:
    plain, precision = without_zone(array), as_atomic(target).precision
    if as_atomic(source).precision > precision:
        plain = _truncated(plain, precision)
    return as_timestamp(plain, target)


def _timestamp_to_integer(array: pa.Array, _source: DataType, target: DataType) -> pa.Array:
    digits = min(UNIT_DIGITS[array.type.unit], 3)
    counts = _units(array, digits=digits)
    step = 10**digits
    seconds = (counts - np.fmod(counts, step)) // step  # towards zero
    arrow = arrow_type(target)
    return from_numpy(seconds.astype(arrow.to_pandas_dtype()), array, arrow)


def _integer_to_timestamp(array: pa.Array, _source: DataType, target: DataType) -> pa.Array:
    seconds = pc.cast(pc.cast(array, pa.int64()), pa.timestamp("s"))
    return as_timestamp(seconds, target)


def _timestamp_to_date(array: pa.Array, _source: DataType, _target: DataType) -> pa.Array:
    per_day = 86_400 * 10 ** UNIT_DIGITS[array.type.unit]
    days = _units(array, digits=UNIT_DIGITS[array.type.unit]) // per_day
    return from_numpy(days.astype(np.int32), array, pa.int32()).view(pa.date32())


def _timestamp_to_time(array: pa.Array, _source: DataType, _target: DataType) -> pa.Array:
    digits = UNIT_DIGITS[array.type.unit]
    counts = _units(array, digits=min(digits, 3)) * (1 if digits else 1000)
    millis = counts % MILLIS_PER_DAY
    return from_numpy(millis.astype(np.int32), array, pa.int32()).view(pa.time32("ms"))


def _date_to_timestamp(array: pa.Array, _source: DataType, target: DataType) -> pa.Array:
    return as_timestamp(pc.cast(array, pa.timestamp("s")), target)


def _time_to_timestamp(array: pa.Array, _source: DataType, target: DataType) -> pa.Array:
    precision = as_atomic(target).precision
    millis = pc.cast(pc.cast(array, pa.int32()), pa.int64()).view(pa.timestamp("ms"))
    plain = millis if precision >= 3 else _truncated(millis, precision)
    return as_timestamp(plain, target)


def _same_values(array: pa.Array, _source: DataType, _target: DataType) -> pa.Array:
    return array


def as_timestamp(array: pa.Array, target: DataType) -> pa.Array:
    """Timestamps without a zone, or their texts, in the unit and the zone of a timestamp type."""
    arrow = arrow_type(target)
    return pc.cast(array, pa.timestamp(arrow.unit)).view(arrow)


def without_zone(array: pa.Array) -> pa.Array:
    """The same instants without their zone, which is UTC."""
    return array.view(pa.timestamp(array.type.unit)) if array.type.tz else array


def _units(array: pa.Array, *, digits: int) -> np.ndarray:
    """Counts of a coarser or the same unit, rounded down."""
    counts = pc.cast(without_zone(array), pa.int64())
    return np.asarray(to_numpy(counts) // POWERS_OF_TEN[UNIT_DIGITS[array.type.unit] - digits])


def _truncated(array: pa.Array, precision: int) -> pa.Array:
    """Fewer digits of fraction: rounded down to milliseconds, and from there towards zero."""
    digits = UNIT_DIGITS[array.type.unit]
    if precision < 3:
        millis = _units(array, digits=min(digits, 3))
        step = 10 ** (min(digits, 3) - precision)
        counts = millis - np.fmod(millis, step)
        unit = "ms" if digits >= 3 else "s"
        return from_numpy(counts, array, pa.int64()).view(pa.timestamp(unit))
    counts = _units(array, digits=precision) * 10 ** (digits - precision)
    return from_numpy(counts, array, pa.int64()).view(array.type)


KERNELS: Final[KernelTable] = {
    (Family.INTEGER, Family.TIMESTAMP): _integer_to_timestamp,
    (Family.DATE, Family.TIMESTAMP): _date_to_timestamp,
    (Family.TIME, Family.TIME): _same_values,
    (Family.TIME, Family.TIMESTAMP): _time_to_timestamp,
    (Family.TIMESTAMP, Family.TIMESTAMP): _timestamp_to_timestamp,
    (Family.TIMESTAMP, Family.INTEGER): _timestamp_to_integer,
    (Family.TIMESTAMP, Family.DATE): _timestamp_to_date,
    (Family.TIMESTAMP, Family.TIME): _timestamp_to_time,
}

"""Casts between numbers and booleans."""

import re
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from emberlake.read.casts.arrays import as_atomic, from_numpy, map_distinct, to_numpy
from emberlake.read.casts.families import Family, KernelTable
from emberlake.read.casts.to_text import decimal_text, is_printed_plainly
from emberlake.types import AtomicType, DataType, TypeRoot, arrow_type

_INT_LIMITS: Final = {32: (-(2**31), 2**31 - 1), 64: (-(2**63), 2**63 - 1)}


def _number_to_number(array: pa.Array, _source: DataType, target: DataType) -> pa.Array:
    return pc.cast(array, arrow_type(target), safe=False)


def _float_to_integer(array: pa.Array, _source: DataType, target: DataType) -> pa.Array:
    # Cut the fraction, saturate at 32 bits (64 for BIGINT), NaN is 0; narrower types then wrap.
    low, high = _INT_LIMITS[64 if as_atomic(target).root is TypeRoot.BIGINT else 32]
    values = np.nan_to_num(to_numpy(array).astype(np.float64), posinf=np.inf, neginf=-np.inf)
    inside = (values > low) & (values < high)
    whole = np.where(inside, values, 0).astype(np.int64)
    whole = np.where(values >= high, high, np.where(values <= low, low, whole))
    arrow = arrow_type(target)
    return from_numpy(whole.astype(arrow.to_pandas_dtype()), array, arrow)


def _number_to_boolean(array: pa.Array, _source: DataType, _target: DataType) -> pa.Array:
    return pc.not_equal(array, pa.scalar(0, array.type))


def _boolean_to_number(array: pa.Array, _source: DataType, target: DataType) -> pa.Array:
    return pc.cast(pc.cast(array, pa.int8()), arrow_type(target))


# --- decimals -------------------------------------------------------------------------------------

_WIDE_DIGITS: Final = 76
_EXACT: Final = Context(prec=2000, rounding=ROUND_HALF_UP)
_INTEGER_DIGITS: Final = {"int8": 3, "int16": 5, "int32": 10, "int64": 19}


def _decimal_to_decimal(array: pa.Array, _source: DataType, target: DataType) -> pa.Array:
    return _rescale(array, target)


def _boolean_to_decimal(array: pa.Array, _source: DataType, target: DataType) -> pa.Array:
    return _rescale(pc.cast(pc.cast(array, pa.int8()), pa.decimal128(3, 0)), target)


def _integer_to_decimal(array: pa.Array, _source: DataType, target: DataType) -> pa.Array:
    digits = _INTEGER_DIGITS[str(array.type)]
    return _rescale(pc.cast(array, pa.decimal128(digits, 0)), target)


def _float_to_decimal(array: pa.Array, _source: DataType, target: DataType) -> pa.Array:
    t = as_atomic(target)
    doubles = pc.cast(array, pa.float64())
    is_plain = is_printed_plainly(doubles, 1e-3, 1e15)  # 15 digits, at most 20 decimals
    plain = pc.if_else(is_plain, doubles, pa.scalar(None, pa.float64()))
    decimals = _rescale(pc.cast(pc.cast(plain, pa.string()), pa.decimal128(36, 21)), target)
    is_other = pc.invert(is_plain)
    others = map_distinct(doubles.filter(is_other), lambda v: decimal_of(repr(v), t), arrow_type(t))
    return pc.replace_with_mask(decimals, is_other, others)


def _decimal_to_integer(array: pa.Array, _source: DataType, target: DataType) -> pa.Array:
    # Cut the fraction and keep the lowest bits, as when an integer is narrowed.
    wide = pc.cast(array, pa.decimal256(_WIDE_DIGITS, array.type.scale))
    whole = pc.round(wide, 0, "towards_zero")
    low = _low_words(pc.cast(whole, pa.decimal128(38, 0)))
    arrow = arrow_type(target)
    return from_numpy(low.astype(arrow.to_pandas_dtype()), array, arrow)


def _decimal_to_float(array: pa.Array, source: DataType, target: DataType) -> pa.Array:
    if as_atomic(source).is_compact:
        # One division of two exact doubles; other engines round exactly like this.
        doubles = _low_words(array).astype(np.float64) / np.float64(10**array.type.scale)
        return pc.cast(from_numpy(doubles, array, pa.float64()), arrow_type(target), safe=False)
    doubles = pc.cast(decimal_text(array), pa.float64())
    return pc.cast(doubles, arrow_type(target), safe=False)


_NUMBER: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def decimal_of(text: str, target: AtomicType) -> Decimal | None:
    """Parse a decimal, rounded half up; None if it does not fit."""
    if _NUMBER.fullmatch(text) is None:
        raise ValueError(f"{text!r} is not a number")
    number = Decimal(text)
    if number and number.adjusted() >= target.precision - target.scale:
        return None  # also keeps 1e999999999 from being expanded
    if number.adjusted() < -target.scale - 1:
        return Decimal(0)
    rounded = number.quantize(Decimal(1).scaleb(-target.scale), context=_EXACT)
    fits = rounded.copy_abs() < Decimal(10) ** (target.precision - target.scale)
    return rounded if fits else None


def _rescale(array: pa.Array, target: DataType) -> pa.Array:
    """Decimals with another precision and scale, rounded half up; null where they do not fit."""
    t, arrow = as_atomic(target), arrow_type(target)
    precision, scale = array.type.precision, array.type.scale
    if t.scale >= scale and t.precision - t.scale >= precision - scale:
        return pc.cast(array, arrow)
    wide = pc.cast(array, pa.decimal256(_WIDE_DIGITS, scale))
    if t.scale < scale:
        wide = pc.round(wide, t.scale, "half_towards_infinity")
    wide = pc.cast(wide, pa.decimal256(_WIDE_DIGITS, t.scale))
    limit = Decimal(10) ** (t.precision - t.scale)
    fits = pc.less(pc.abs(wide), pa.scalar(limit, wide.type))
    return pc.cast(pc.if_else(fits, wide, pa.scalar(None, wide.type)), arrow)


def _low_words(array: pa.Array) -> np.ndarray:
    """The lowest 64 bits of the unscaled values, zeros in place of nulls."""
    words = np.frombuffer(array.buffers()[1], np.int64)[::2]
    low = words[array.offset : array.offset + len(array)]
    return np.where(array.is_null().to_numpy(zero_copy_only=False), 0, low)


KERNELS: Final[KernelTable] = {
    (Family.BOOLEAN, Family.INTEGER): _boolean_to_number,
    (Family.BOOLEAN, Family.FLOAT): _boolean_to_number,
    (Family.BOOLEAN, Family.DECIMAL): _boolean_to_decimal,
    (Family.INTEGER, Family.BOOLEAN): _number_to_boolean,
    (Family.INTEGER, Family.INTEGER): _number_to_number,
    (Family.INTEGER, Family.FLOAT): _number_to_number,
    (Family.INTEGER, Family.DECIMAL): _integer_to_decimal,
    (Family.FLOAT, Family.INTEGER): _float_to_integer,
    (Family.FLOAT, Family.FLOAT): _number_to_number,
    (Family.FLOAT, Family.DECIMAL): _float_to_decimal,
    (Family.DECIMAL, Family.INTEGER): _decimal_to_integer,
    (Family.DECIMAL, Family.FLOAT): _decimal_to_float,
    (Family.DECIMAL, Family.DECIMAL): _decimal_to_decimal,
}

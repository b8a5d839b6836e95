"""Sum, product, maximum and minimum. Spec: "Merge engines".

Integers and decimals are exact: a result that does not fit the column is an error. Floats are added
in merge order, so that the result is the same on every machine.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from emberlake.errors import DataMismatch
from emberlake.merge.aggregates.codes import order_codes
from emberlake.merge.aggregates.steps import (
    COMES_IN,
    Step,
    Steps,
    fixed_width_array,
    pick,
    valid_of,
)
from emberlake.spec.column_buffers import I64, Mask, raw_values
from emberlake.types import DataField
from emberlake.types.data_types import COMPACT_DECIMAL_PRECISION

_LIMB_BITS: Final = 32
_LIMB_MASK: Final = np.int64(2**_LIMB_BITS - 1)
_LONG_KEY: Final = 64  # keys with more records than this are added one at a time


def sum_values(field: DataField, column: pa.Array, steps: Steps) -> pa.Array:
    """The sum of what comes in minus what is retracted; null if there is neither."""
    operands = _operands(column, steps, valid_of(column) & (steps.kinds != Step.SKIP))
    if pa.types.is_floating(column.type):
        return operands.result(column.type, _add_floats(column, operands))
    if pa.types.is_decimal(column.type) and column.type.precision > COMPACT_DECIMAL_PRECISION:
        return operands.result(column.type, _add_wide_decimals(field, column, operands))
    totals = _add_words(field, _words(column)[operands.at], operands)
    low, high = _bounds(column.type)
    if len(totals) and not (low <= int(totals.min()) and int(totals.max()) <= high):
        raise _overflow(field, "sum")
    return operands.result(column.type, _in_memory(column.type, totals))


def product_values(field: DataField, column: pa.Array, steps: Steps) -> pa.Array:
    """The product of what comes in, divided by what is retracted, record by record."""
    valid = valid_of(column)
    begun = steps.first(valid & steps.are(*COMES_IN))[steps.keys]
    # There is nothing to divide before the first value comes in.
    is_late = (begun >= 0) & (np.arange(len(valid)) >= begun)
    operands = _operands(column, steps, valid & (steps.kinds != Step.SKIP) & is_late)
    if pa.types.is_floating(column.type):
        values = raw_values(column, f"f{column.type.bit_width // 8}")[operands.at]
        return operands.result(column.type, _multiply_floats(values, operands))
    numbers = _exact_numbers(column, operands.at)
    scale = 10**column.type.scale if pa.types.is_decimal(column.type) else None
    products = _multiply_exactly(field, numbers, operands, _Range(*_bounds(column.type), scale))
    return operands.result(column.type, _in_memory(column.type, products))


def max_value(column: pa.Array, steps: Steps) -> pa.Array:
    """The largest value; NaN is larger than all others."""
    codes, is_operand = order_codes(column), _compared(column, steps)
    best = np.maximum.reduceat(np.where(is_operand, codes, -(2**63)), steps.starts)
    return pick(column, steps.last(is_operand & (codes == best[steps.keys])))


def min_value(column: pa.Array, steps: Steps) -> pa.Array:
    """The smallest value; -0.0 is smaller than 0.0."""
    codes, is_operand = order_codes(column), _compared(column, steps)
    best = np.minimum.reduceat(np.where(is_operand, codes, 2**63 - 1), steps.starts)
    return pick(column, steps.last(is_operand & (codes == best[steps.keys])))


def _compared(column: pa.Array, steps: Steps) -> Mask:
    return valid_of(column) & steps.are(*COMES_IN)


# --- operands -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Operands:
    """The values to combine, and where those of each key begin."""

    at: I64  # positions in the column
    is_retract: Mask
    begins: I64  # for each key that has operands
    lengths: I64
    has_any: Mask  # for each key

    def result(self, data_type: pa.DataType, totals: npt.NDArray[Any]) -> pa.Array:
        """A value for each key; null without operands."""
        values = np.zeros((len(self.has_any), *totals.shape[1:]), dtype=totals.dtype)
        values[self.has_any] = totals
        return fixed_width_array(data_type, values, self.has_any)


def _operands(column: pa.Array, steps: Steps, mask: Mask) -> _Operands:
    assert len(column) == len(mask)
    counts = steps.counts(mask)
    has_any = counts > 0
    lengths = counts[has_any]
    at = np.flatnonzero(mask)
    return _Operands(
        at, steps.kinds[at] == Step.RETRACT, np.cumsum(lengths) - lengths, lengths, has_any
    )


def _words(column: pa.Array) -> I64:
    """Integers, and decimals without their point, that fit 64 bits."""
    if pa.types.is_decimal(column.type):
        return raw_values(column, np.int64, per_value=2)[0::2]
    return raw_values(column, f"i{column.type.bit_width // 8}").astype(np.int64)


def _bounds(data_type: pa.DataType) -> tuple[int, int]:
    if pa.types.is_decimal(data_type):
        return 1 - 10**data_type.precision, 10**data_type.precision - 1
    return -(2 ** (data_type.bit_width - 1)), 2 ** (data_type.bit_width - 1) - 1


def _in_memory(data_type: pa.DataType, numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Exact numbers in the layout of Arrow; a decimal is two words, the low one first."""
    if not pa.types.is_decimal(data_type):
        return numbers.astype(f"i{data_type.bit_width // 8}")
    if numbers.dtype == np.int64:
        return np.stack([numbers, numbers >> 63], axis=1)
    low = (numbers & (2**64 - 1)).astype(np.uint64).view(np.int64)
    return np.stack([low, (numbers >> 64).astype(np.int64)], axis=1)


def _overflow(field: DataField, what: str) -> DataMismatch:
    return DataMismatch(
        f"the {what} of column {field.name} does not fit {field.type}: widen the type of the column"
    )


# --- sums -----------------------------------------------------------------------------------------


def _add_floats(column: pa.Array, operands: _Operands) -> npt.NDArray[Any]:
    values = raw_values(column, f"f{column.type.bit_width // 8}")[operands.at]
    signed = np.where(operands.is_retract, -values, values)
    is_long = operands.lengths > _LONG_KEY
    totals = signed[operands.begins]
    with np.errstate(all="ignore"):  # infinities and NaN are valid results
        short = _Rounds.of(operands, ~is_long)
        for keys, at in short.rounds():
            totals[keys] += signed[at]
        # NumPy adds pairwise, except where every partial sum is wanted.
        for key in np.flatnonzero(is_long).tolist():
            begin = operands.begins[key]
            totals[key] = np.add.accumulate(signed[begin : begin + operands.lengths[key]])[-1]
    return totals


def _add_words(field: DataField, words: I64, operands: _Operands) -> I64:
    if not len(words):
        return words
    greatest = max(abs(int(words.min())), abs(int(words.max())))
    if greatest * int(operands.lengths.max()) < 2**63:
        signed = np.where(operands.is_retract, -words, words)
        return np.add.reduceat(signed, operands.begins)
    limbs = [words & _LIMB_MASK, words >> _LIMB_BITS]
    low, high = _add_limbs(field, limbs, operands)
    return (high << _LIMB_BITS) | low


def _add_wide_decimals(field: DataField, column: pa.Array, operands: _Operands) -> npt.NDArray[Any]:
    raw = raw_values(column, np.uint32, per_value=4).reshape(-1, 4)[operands.at]
    limbs = [raw[:, i].astype(np.int64) for i in range(3)]
    limbs.append(raw[:, 3].view(np.int32).astype(np.int64))
    if not len(operands.at):
        return np.zeros((0, 2), dtype=np.int64)
    sums = _add_limbs(field, limbs, operands)
    low = sums[0].astype(np.uint64) | (sums[1].astype(np.uint64) << np.uint64(_LIMB_BITS))
    high = sums[2] | (sums[3] << _LIMB_BITS)
    _check_wide(field, low, high, column.type.precision)
    return np.stack([low.view(np.int64), high], axis=1)


def _add_limbs(field: DataField, limbs: list[I64], operands: _Operands) -> list[I64]:
    """Sums of numbers that are split into parts of 32 bits, the last of them signed."""
    carry: I64 = np.zeros(len(operands.begins), dtype=np.int64)
    sums: list[I64] = []
    for limb in limbs:
        signed = np.where(operands.is_retract, -limb, limb)
        total = np.add.reduceat(signed, operands.begins) + carry
        carry = total >> _LIMB_BITS
        sums.append(total & _LIMB_MASK)
    top = sums[-1].astype(np.uint32).view(np.int32).astype(np.int64)
    if (carry != top >> _LIMB_BITS).any():  # beyond the sign
        raise _overflow(field, "sum")
    return [*sums[:-1], top]


def _check_wide(field: DataField, low: npt.NDArray[np.uint64], high: I64, precision: int) -> None:
    limit = 10**precision - 1
    for bound, is_above in ((limit, True), (-limit, False)):
        bound_high, bound_low = np.int64(bound >> 64), np.uint64(bound & (2**64 - 1))
        same = high == bound_high
        beyond = (high > bound_high) | (same & (low > bound_low))
        if not is_above:
            beyond = (high < bound_high) | (same & (low < bound_low))
        if beyond.any():
            raise _overflow(field, "sum")


# --- products, and everything else that must be done record by record ----------------------------


@dataclass(frozen=True)
class _Rounds:
    """The second operands of all keys, then the third, and so on: in order, many keys at once."""

    keys: I64  # longest first
    begins: I64
    lengths: I64

    @classmethod
    def of(cls, operands: _Operands, mask: Mask) -> "_Rounds":
        keys = np.flatnonzero(mask)
        keys = keys[np.argsort(-operands.lengths[keys], kind="stable")]
        return cls(keys, operands.begins[keys], operands.lengths[keys])

    def rounds(self) -> list[tuple[I64, I64]]:
        longest = int(self.lengths[0]) if len(self.lengths) else 0
        return [
            (self.keys[:count], self.begins[:count] + turn)
            for turn in range(1, longest)
            if (count := int(np.searchsorted(-self.lengths, -turn, side="left")))
        ]


def _multiply_floats(values: npt.NDArray[Any], operands: _Operands) -> npt.NDArray[Any]:
    products = values[operands.begins]
    every_key = np.ones(len(products), dtype=np.bool_)
    with np.errstate(all="ignore"):  # infinities and NaN are valid results
        for keys, at in _Rounds.of(operands, every_key).rounds():
            left, right = products[keys], values[at]
            products[keys] = np.where(operands.is_retract[at], left / right, left * right)
    return products


@dataclass(frozen=True)
class _Range:
    low: int
    high: int
    scale: int | None  # the unscaled value of 1, for decimals


def _exact_numbers(column: pa.Array, at: I64) -> npt.NDArray[Any]:
    """Numbers whose products are exact: 64-bit integers for up to 32 bits, Python's for more."""
    if pa.types.is_integer(column.type):
        words = _words(column)[at]
        return words if column.type.bit_width < 64 else words.astype(object)
    halves = raw_values(column, np.int64, per_value=2).reshape(-1, 2)[at]
    low, high = halves[:, 0].view(np.uint64).astype(object), halves[:, 1].astype(object)
    return (high << 64) | low if len(at) else low


def _multiply_exactly(
    field: DataField, numbers: npt.NDArray[Any], operands: _Operands, limits: _Range
) -> npt.NDArray[Any]:
    products = numbers[operands.begins]
    every_key = np.ones(len(products), dtype=np.bool_)
    for keys, at in _Rounds.of(operands, every_key).rounds():
        divides = operands.is_retract[at]
        for mask, function in ((~divides, _multiply), (divides, _divide)):
            if mask.any():
                these = keys[mask]
                products[these] = function(field, products[these], numbers[at[mask]], limits.scale)
        changed = products[keys]
        if ((changed < limits.low) | (changed > limits.high)).any():
            raise _overflow(field, "product")
    return products


def _multiply(
    field: DataField, left: npt.NDArray[Any], right: npt.NDArray[Any], scale: int | None
) -> npt.NDArray[Any]:
    del field
    return left * right if scale is None else _round_half_up(left * right, scale)


def _divide(
    field: DataField, left: npt.NDArray[Any], right: npt.NDArray[Any], scale: int | None
) -> npt.NDArray[Any]:
    if (right == 0).any():
        raise DataMismatch(f"column {field.name} is a product: a factor of 0 cannot be retracted")
    if scale is not None:
        return _divide_decimals(field, left * scale, right)
    quotient = left // right
    is_down = (quotient * right != left) & ((left < 0) != (right < 0))
    towards_zero: npt.NDArray[Any] = np.where(is_down, quotient + 1, quotient)
    return towards_zero


def _divide_decimals(
    field: DataField, left: npt.NDArray[Any], right: npt.NDArray[Any]
) -> npt.NDArray[Any]:
    parts = right // np.gcd(left, right)
    for factor in (2, 5):
        while (divisible := parts % factor == 0).any():
            parts = np.where(divisible, parts // factor, parts)
    if (np.abs(parts) != 1).any():
        raise DataMismatch(
            f"column {field.name} is a product, and retracting a factor leaves a quotient with "
            "infinitely many decimals"
        )
    sign = np.where(right < 0, -1, 1)
    return _round_half_up(left * sign, right * sign)


def _round_half_up(numbers: npt.NDArray[Any], unit: Any) -> npt.NDArray[Any]:
    """Rounded to whole units, halves away from zero."""
    sign = np.where(numbers < 0, -1, 1)
    rounded: npt.NDArray[Any] = sign * ((2 * numbers * sign + unit) // (2 * unit))
    return rounded

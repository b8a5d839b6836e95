"""Format values as the text that other engines show."""

from typing import Final, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from emberlake.read.casts.arrays import map_distinct
from emberlake.read.casts.families import Family, KernelTable
from emberlake.read.casts.lengths import fit_text
from emberlake.read.casts.times import UNIT_DIGITS, without_zone
from emberlake.types import ArrayType, AtomicType, DataField, DataType, MapType, RowType, TypeRoot


def _to_text(array: pa.Array, source: DataType, target: DataType) -> pa.Array:
    return fit_text(_text(array, source), target)


def _nested_to_text(array: pa.Array, source: DataType, _target: DataType) -> pa.Array:
    return _text(array, source)


def _text(array: pa.Array, source: DataType) -> pa.Array:
    match source:
        case ArrayType(element=element):
            return _list_text("[", array, _item_text(array.values, element), "]")
        case MapType(key=key, value=value):
            keys, values = _item_text(array.keys, key), _item_text(array.items, value)
            return _list_text("{", array, _concat(keys, " -> ", values), "}")
        case RowType(fields=fields):
            return _row_text(array, fields)
        case AtomicType(root=TypeRoot.FLOAT | TypeRoot.DOUBLE):
            return _float_text(array)
        case AtomicType(root=TypeRoot.DECIMAL):
            return decimal_text(array)
        case AtomicType(root=TypeRoot.TIME, precision=precision):
            return _time_text(array, precision)
        case AtomicType(root=TypeRoot.TIMESTAMP | TypeRoot.TIMESTAMP_LTZ, precision=precision):
            return _timestamp_text(array, precision)
        case AtomicType(root=TypeRoot.CHAR | TypeRoot.VARCHAR):
            return array
        case _:
            return pc.cast(array, pa.string())


# --- nested types ---------------------------------------------------------------------------------


def _item_text(array: pa.Array, data_type: DataType) -> pa.Array:
    return _text(array, data_type).fill_null("null")


def _list_text(opening: str, array: pa.Array, items: pa.Array, closing: str) -> pa.Array:
    mask = array.is_null() if array.null_count else None
    offsets = pa.array(array.offsets.to_numpy(), pa.int32())
    lists = pa.ListArray.from_arrays(offsets, items, mask=mask)
    return _concat(opening, pc.binary_join(lists, ", "), closing)


def _row_text(array: pa.Array, fields: tuple[DataField, ...]) -> pa.Array:
    parts = [_item_text(array.field(i), field.type) for i, field in enumerate(fields)]
    body = pc.binary_join_element_wise(*parts, ", ") if parts else pa.repeat("", len(array))
    return pc.if_else(array.is_valid(), _concat("{", body, "}"), pa.scalar(None, pa.string()))


def _concat(*parts: pa.Array | str) -> pa.Array:
    return pc.binary_join_element_wise(*parts, "")


# --- numbers --------------------------------------------------------------------------------------


def _float_text(array: pa.Array) -> pa.Array:
    """``1.0``, ``0.001``, ``1.0E7``, ``NaN``: shortest digits, always with a point."""
    is_plain = is_printed_plainly(array, 1e-3, 1e7)
    texts = pc.cast(array, pa.string())
    texts = pc.if_else(pc.match_substring(texts, "."), texts, _concat(texts, ".0"))
    is_other = pc.invert(is_plain)
    others = array.filter(is_other)
    return pc.replace_with_mask(texts, is_other, _exponent_texts(others))


def is_printed_plainly(array: pa.Array, low: float, high: float) -> pa.Array:
    """Where a number is null or zero, or in a range that Arrow prints without an exponent."""
    size = pc.abs(array)
    inside = pc.and_(pc.greater_equal(size, low), pc.less(size, high))
    return pc.or_(pc.equal(size, 0), inside).fill_null(True)


def _exponent_texts(array: pa.Array) -> pa.Array:
    number = np.float32 if pa.types.is_float32(array.type) else np.float64
    return map_distinct(array, lambda v: _exponent_text(number(cast("float", v))), pa.string())


def _exponent_text(value: np.floating) -> str:
    if np.isnan(value):
        return "NaN"
    if np.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    text = np.format_float_scientific(value, trim="0", exp_digits=1)
    return text.replace("e+", "E").replace("e", "E")


def decimal_text(array: pa.Array) -> pa.Array:
    """All digits of the scale and never an exponent."""
    scale = array.type.scale
    buffers = array.buffers()
    unscaled = pa.Array.from_buffers(pa.decimal128(38, 0), len(array), buffers, offset=array.offset)
    digits = pc.cast(unscaled, pa.string())
    if scale == 0:
        return digits
    sign = pc.if_else(pc.starts_with(digits, "-"), "-", "")
    digits = pc.utf8_lpad(pc.utf8_ltrim(digits, "-"), scale + 1, "0")
    whole = pc.utf8_slice_codeunits(digits, 0, -scale)
    return _concat(sign, whole, ".", pc.utf8_slice_codeunits(digits, -scale, None))


# --- times ----------------------------------------------------------------------------------------


def _time_text(array: pa.Array, precision: int) -> pa.Array:
    texts = pc.cast(array, pa.string())  # always three digits of fraction
    if precision == 0:
        return pc.utf8_slice_codeunits(texts, 0, 8)
    texts = pc.utf8_slice_codeunits(texts, 0, 9 + min(precision, 3))
    return pc.replace_substring_regex(texts, r"^(.*\.[0-9]+?)0+$", r"\1")


def _timestamp_text(array: pa.Array, precision: int) -> pa.Array:
    texts = pc.cast(without_zone(array), pa.string())  # as many digits as the unit has
    extra = UNIT_DIGITS[array.type.unit] - precision
    return pc.replace_substring_regex(texts, f"0{{1,{extra}}}$", "") if extra else texts


KERNELS: Final[KernelTable] = {
    (Family.BOOLEAN, Family.TEXT): _to_text,
    (Family.INTEGER, Family.TEXT): _to_text,
    (Family.FLOAT, Family.TEXT): _to_text,
    (Family.DECIMAL, Family.TEXT): _to_text,
    (Family.DATE, Family.TEXT): _to_text,
    (Family.TIME, Family.TEXT): _to_text,
    (Family.TIMESTAMP, Family.TEXT): _to_text,
    (Family.ARRAY, Family.TEXT): _nested_to_text,
    (Family.MAP, Family.TEXT): _nested_to_text,
    (Family.ROW, Family.TEXT): _nested_to_text,
}

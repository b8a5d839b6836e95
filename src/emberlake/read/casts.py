"""Values of a column's former type as values of its present type.

The rules are those by which other engines read the same old files: integers wrap when they are
narrowed, fractions are cut off, decimals round half up and become null where they do not fit, text
is cut to its new length and CHAR is padded with spaces. Text that does not spell a value of the new
type is an error. Conversions between timestamps with and without a local time zone take the zone to
be UTC, so that a table reads the same everywhere.

Kernels work on whole arrays. A few have no Arrow kernel to build on (texts of dates, times,
timestamps and decimals; numbers that print with an exponent): those loop over the *distinct*
values, see ``_map_distinct``.
"""

import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from enum import Enum, auto
from typing import Final, TypeAlias, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from emberlake.errors import DataMismatch, Unsupported
from emberlake.types import (
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    RowType,
    TypeRoot,
    arrow_type,
)
from emberlake.types.data_types import MAX_LENGTH

Kernel: TypeAlias = Callable[[pa.Array, DataType, DataType], pa.Array]


class _Family(Enum):
    BOOLEAN = auto()
    INTEGER = auto()
    FLOAT = auto()
    DECIMAL = auto()
    TEXT = auto()
    BYTES = auto()
    DATE = auto()
    TIME = auto()
    TIMESTAMP = auto()
    ARRAY = auto()
    MAP = auto()
    ROW = auto()
    OTHER = auto()


def find_cast(source: DataType, target: DataType) -> Kernel | None:
    """The kernel that turns arrays of one type into the other, or None when there is none."""
    pair = (_family(source), _family(target))
    kernel = _KERNELS.get(pair)
    if kernel is None or not _parts_can_be_cast(source, target):
        return None
    return kernel


def cast_array(array: pa.Array, source: DataType, target: DataType) -> pa.Array:
    """An array of ``arrow_type(source)`` as one of ``arrow_type(target)``.

    Raises:
        Unsupported: there is no such cast.
        DataMismatch: a value cannot be cast.
    """
    kernel = find_cast(source, target)
    if kernel is None:
        raise Unsupported(f"values of type {source} cannot be read as {target}")
    try:
        return kernel(array, source, target)
    except (ValueError, OverflowError) as error:  # pa.ArrowInvalid is a ValueError
        raise DataMismatch(f"a value of type {source} cannot be read as {target}: {error}") from (
            error
        )


# --- which casts there are ------------------------------------------------------------------------

_SECONDS: Final = (TypeRoot.INT, TypeRoot.BIGINT)  # integers that may stand for a time in seconds


def _family(data_type: DataType) -> _Family:
    match data_type:
        case AtomicType(root=root):
            return _FAMILIES.get(root, _Family.OTHER)
        case ArrayType():
            return _Family.ARRAY
        case MapType():
            return _Family.MAP
        case RowType():
            return _Family.ROW
        case _:
            return _Family.OTHER


def _parts_can_be_cast(source: DataType, target: DataType) -> bool:
    match source, target:
        case ArrayType(), _:
            return _has_text(source.element)
        case MapType(), _:
            return _has_text(source.key) and _has_text(source.value)
        case RowType(), _:
            return all(_has_text(field.type) for field in source.fields)
        case AtomicType(root=TypeRoot.TIME), AtomicType(root=TypeRoot.TIME):
            return source.precision <= target.precision
        case AtomicType(), AtomicType() if source.root.is_integer and target.root.is_timestamp:
            return source.root in _SECONDS
        case AtomicType(), AtomicType() if source.root.is_timestamp and target.root.is_integer:
            return target.root in _SECONDS
        case _:
            return True


def _has_text(data_type: DataType) -> bool:
    return find_cast(data_type, _STRING) is not None


_STRING: Final = AtomicType("STRING")

_FAMILIES: Final = {
    TypeRoot.BOOLEAN: _Family.BOOLEAN,
    TypeRoot.TINYINT: _Family.INTEGER,
    TypeRoot.SMALLINT: _Family.INTEGER,
    TypeRoot.INT: _Family.INTEGER,
    TypeRoot.BIGINT: _Family.INTEGER,
    TypeRoot.FLOAT: _Family.FLOAT,
    TypeRoot.DOUBLE: _Family.FLOAT,
    TypeRoot.DECIMAL: _Family.DECIMAL,
    TypeRoot.CHAR: _Family.TEXT,
    TypeRoot.VARCHAR: _Family.TEXT,
    TypeRoot.BINARY: _Family.BYTES,
    TypeRoot.VARBINARY: _Family.BYTES,
    TypeRoot.DATE: _Family.DATE,
    TypeRoot.TIME: _Family.TIME,
    TypeRoot.TIMESTAMP: _Family.TIMESTAMP,
    TypeRoot.TIMESTAMP_LTZ: _Family.TIMESTAMP,
}


# --- tools ----------------------------------------------------------------------------------------


def _atomic(data_type: DataType) -> AtomicType:
    return cast("AtomicType", data_type)


def _to_numpy(array: pa.Array) -> np.ndarray:
    """Values with zeros in place of nulls; ``_from_numpy`` puts the nulls back."""
    filled = array.fill_null(pa.scalar(0, array.type)) if array.null_count else array
    return np.asarray(filled.to_numpy(zero_copy_only=False))


def _from_numpy(values: np.ndarray, like: pa.Array, arrow: pa.DataType) -> pa.Array:
    mask = like.is_null().to_numpy(zero_copy_only=False) if like.null_count else None
    return pa.array(values, arrow, mask=mask)


def _map_distinct(
    array: pa.Array, convert: Callable[[object], object], arrow: pa.DataType
) -> pa.Array:
    """``convert`` of every value: no Arrow kernel does it, so Python loops over distinct ones."""
    encoded = array.dictionary_encode()
    texts = [None if value is None else convert(value) for value in encoded.dictionary.to_pylist()]
    return pa.array(texts, arrow).take(encoded.indices)


def _fit_text(texts: pa.Array, target: DataType) -> pa.Array:
    """Text cut to the length of its type; CHAR is padded to it."""
    t = _atomic(target)
    if t.length < MAX_LENGTH:
        texts = pc.utf8_slice_codeunits(texts, 0, t.length)
    return pc.utf8_rpad(texts, t.length, " ") if t.root is TypeRoot.CHAR else texts


def _fit_bytes(values: pa.Array, target: DataType) -> pa.Array:
    """Bytes cut to the length of their type; BINARY is padded with zeros to it."""
    t = _atomic(target)
    if t.root is TypeRoot.BINARY:
        shortest = pc.min(pc.binary_length(values)).as_py()
        missing = max(0, t.length - (t.length if shortest is None else shortest))
        if missing:
            zeros = pa.scalar(bytes(missing), pa.binary())
            values = pc.binary_join_element_wise(values, zeros, pa.scalar(b"", pa.binary()))
    return values if t.length == MAX_LENGTH else pc.binary_slice(values, 0, t.length)


# --- numbers --------------------------------------------------------------------------------------

_INT_LIMITS: Final = {32: (-(2**31), 2**31 - 1), 64: (-(2**63), 2**63 - 1)}


def _integer_to_integer(array: pa.Array, _source: DataType, target: DataType) -> pa.Array:
    return pc.cast(array, arrow_type(target), safe=False)


def _number_to_float(array: pa.Array, _source: DataType, target: DataType) -> pa.Array:
    return pc.cast(array, arrow_type(target), safe=False)


def _float_to_integer(array: pa.Array, _source: DataType, target: DataType) -> pa.Array:
    # Cut the fraction, saturate at 32 bits (64 for BIGINT), NaN is 0; what is narrower then wraps.
    low, high = _INT_LIMITS[64 if _atomic(target).root is TypeRoot.BIGINT else 32]
    values = np.nan_to_num(_to_numpy(array).astype(np.float64), posinf=np.inf, neginf=-np.inf)
    inside = (values > low) & (values < high)
    whole = np.where(inside, values, 0).astype(np.int64)
    whole = np.where(values >= high, high, np.where(values <= low, low, whole))
    arrow = arrow_type(target)
    return _from_numpy(whole.astype(arrow.to_pandas_dtype()), array, arrow)


def _number_to_boolean(array: pa.Array, _source: DataType, _target: DataType) -> pa.Array:
    return pc.not_equal(array, pa.scalar(0, array.type))


def _boolean_to_number(array: pa.Array, _source: DataType, target: DataType) -> pa.Array:
    return pc.cast(pc.cast(array, pa.int8()), arrow_type(target))


def _boolean_to_decimal(array: pa.Array, _source: DataType, target: DataType) -> pa.Array:
    return _rescale(pc.cast(pc.cast(array, pa.int8()), pa.decimal128(19, 0)), target)


# --- decimals -------------------------------------------------------------------------------------

_WIDE_DIGITS: Final = 76
_EXACT: Final = Context(prec=2000, rounding=ROUND_HALF_UP)


def _decimal_to_decimal(array: pa.Array, _source: DataType, target: DataType) -> pa.Array:
    return _rescale(array, target)


def _integer_to_decimal(array: pa.Array, _source: DataType, target: DataType) -> pa.Array:
    return _rescale(pc.cast(pc.cast(array, pa.int64()), pa.decimal128(19, 0)), target)


def _rescale(array: pa.Array, target: DataType) -> pa.Array:
    """Decimals with another precision and scale, rounded half up; null where they do not fit."""
    t, arrow = _atomic(target), arrow_type(target)
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


def _decimal_to_integer(array: pa.Array, _source: DataType, target: DataType) -> pa.Array:
    # Cut the fraction and keep the lowest bits, as a number that is narrowed does.
    wide = pc.cast(array, pa.decimal256(_WIDE_DIGITS, array.type.scale))
    whole = pc.round(wide, 0, "towards_zero")
    low = _low_words(pc.cast(whole, pa.decimal128(38, 0)))
    arrow = arrow_type(target)
    return _from_numpy(low.astype(arrow.to_pandas_dtype()), array, arrow)


def _decimal_to_float(array: pa.Array, source: DataType, target: DataType) -> pa.Array:
    if _atomic(source).is_compact:
        # One division of two exact doubles; other engines round exactly like this.
        doubles = _low_words(array).astype(np.float64) / np.float64(10**array.type.scale)
        return pc.cast(_from_numpy(doubles, array, pa.float64()), arrow_type(target), safe=False)
    doubles = pc.cast(_decimal_text(array), pa.float64())
    return pc.cast(doubles, arrow_type(target), safe=False)


def _float_to_decimal(array: pa.Array, _source: DataType, target: DataType) -> pa.Array:
    t = _atomic(target)
    doubles = pc.cast(array, pa.float64())
    return _map_distinct(doubles, lambda v: _decimal_of(repr(v), t), arrow_type(t))


def _text_to_decimal(array: pa.Array, _source: DataType, target: DataType) -> pa.Array:
    t = _atomic(target)
    return _map_distinct(array, lambda v: _decimal_of(str(v), t), arrow_type(t))


_NUMBER: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def _decimal_of(text: str, target: AtomicType) -> Decimal | None:
    if _NUMBER.fullmatch(text) is None:
        raise ValueError(f"{text!r} is not a number")
    number = Decimal(text)
    if number and number.adjusted() >= target.precision - target.scale:
        return None  # also keeps 1e999999999 from being written out
    if number.adjusted() < -target.scale - 1:
        return Decimal(0)
    rounded = number.quantize(Decimal(1).scaleb(-target.scale), context=_EXACT)
    return (
        None if rounded.copy_abs() >= Decimal(10) ** (target.precision - target.scale) else rounded
    )


def _low_words(array: pa.Array) -> np.ndarray:
    """The lowest 64 bits of the unscaled values, zeros in place of nulls."""
    words = np.frombuffer(array.buffers()[1], np.int64)[::2]
    low = words[array.offset : array.offset + len(array)]
    return np.where(array.is_null().to_numpy(zero_copy_only=False), 0, low)


# --- to text --------------------------------------------------------------------------------------


def _to_text(array: pa.Array, source: DataType, target: DataType) -> pa.Array:
    return _fit_text(_text(array, source), target)


def _bytes_to_text(array: pa.Array, _source: DataType, _target: DataType) -> pa.Array:
    return pc.cast(array, pa.string())


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
            return _decimal_text(array)
        case AtomicType(root=TypeRoot.TIME, precision=precision):
            return _time_text(array, precision)
        case AtomicType(root=TypeRoot.TIMESTAMP | TypeRoot.TIMESTAMP_LTZ, precision=precision):
            return _timestamp_text(array, precision)
        case AtomicType(root=TypeRoot.CHAR | TypeRoot.VARCHAR):
            return array
        case _:
            return pc.cast(array, pa.string())


def _concat(*parts: pa.Array | str) -> pa.Array:
    return pc.binary_join_element_wise(*parts, "")


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


def _float_text(array: pa.Array) -> pa.Array:
    """``1.0``, ``0.001``, ``1.0E7``, ``NaN``: shortest digits, always with a point."""
    size = pc.abs(array)
    is_plain = pc.or_(
        pc.equal(size, 0), pc.and_(pc.greater_equal(size, 1e-3), pc.less(size, 1e7))
    ).fill_null(True)
    texts = pc.cast(array, pa.string())
    texts = pc.if_else(pc.match_substring(texts, "."), texts, _concat(texts, ".0"))
    is_other = pc.invert(is_plain)
    others = array.filter(is_other)
    return pc.replace_with_mask(texts, is_other, _exponent_texts(others))


def _exponent_texts(array: pa.Array) -> pa.Array:
    number = np.float32 if pa.types.is_float32(array.type) else np.float64
    return _map_distinct(array, lambda v: _exponent_text(number(cast("float", v))), pa.string())


def _exponent_text(value: np.floating) -> str:
    if np.isnan(value):
        return "NaN"
    if np.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    text = np.format_float_scientific(value, trim="0", exp_digits=1)
    return text.replace("e+", "E").replace("e", "E")


def _decimal_text(array: pa.Array) -> pa.Array:
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


def _time_text(array: pa.Array, precision: int) -> pa.Array:
    texts = pc.cast(array, pa.string())  # always three digits of fraction
    if precision == 0:
        return pc.utf8_slice_codeunits(texts, 0, 8)
    texts = pc.utf8_slice_codeunits(texts, 0, 9 + min(precision, 3))
    return pc.replace_substring_regex(texts, r"^(.*\.[0-9]+?)0+$", r"\1")


def _timestamp_text(array: pa.Array, precision: int) -> pa.Array:
    texts = pc.cast(_without_zone(array), pa.string())  # as many digits as the unit has
    extra = _UNIT_DIGITS[array.type.unit] - precision
    return pc.replace_substring_regex(texts, f"0{{1,{extra}}}$", "") if extra else texts


# --- from text ------------------------------------------------------------------------------------


def _text_to_text(array: pa.Array, _source: DataType, target: DataType) -> pa.Array:
    return _fit_text(array, target)


def _text_to_bytes(array: pa.Array, _source: DataType, target: DataType) -> pa.Array:
    return _fit_bytes(pc.cast(array, pa.binary()), target)


def _bytes_to_bytes(array: pa.Array, _source: DataType, target: DataType) -> pa.Array:
    return _fit_bytes(array, target)


_TRUE: Final = pa.array(["t", "true", "y", "yes", "1"])
_FALSE: Final = pa.array(["f", "false", "n", "no", "0"])


def _text_to_boolean(array: pa.Array, _source: DataType, _target: DataType) -> pa.Array:
    lower = pc.utf8_lower(array)
    is_true = pc.is_in(lower, _TRUE)
    _refuse(array, pc.or_(is_true, pc.is_in(lower, _FALSE)), "a boolean")
    return pc.if_else(array.is_valid(), is_true, pa.scalar(None, pa.bool_()))


def _text_to_integer(array: pa.Array, _source: DataType, target: DataType) -> pa.Array:
    # A fraction is allowed and cut off; "." is 0.
    is_number = pc.match_substring_regex(array, r"^[+-]?([0-9]+|[0-9]*\.[0-9]*)$")
    _refuse(array, is_number, "a whole number")
    whole = pc.replace_substring_regex(array, r"\..*$", "")
    whole = pc.replace_substring_regex(whole, r"^\+", "")
    whole = pc.replace_substring_regex(whole, r"^-?$", "0")
    return pc.cast(whole, arrow_type(target))


def _text_to_float(array: pa.Array, _source: DataType, target: DataType) -> pa.Array:
    trimmed = pc.replace_substring_regex(array, r"^[\x00-\x20]+|[\x00-\x20]+$", "")
    is_number = pc.match_substring_regex(
        trimmed, r"^[+-]?(NaN|Infinity|([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[fFdD]?)$"
    )
    _refuse(array, is_number, "a number")
    bare = pc.replace_substring_regex(trimmed, r"^\+", "")
    bare = pc.replace_substring_regex(bare, r"([0-9.])[fFdD]$", r"\1")
    return pc.cast(bare, arrow_type(target))


def _text_to_date(array: pa.Array, _source: DataType, _target: DataType) -> pa.Array:
    if _all_match(array, r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"):
        return pc.cast(array, pa.date32())
    days = _map_distinct(array, lambda v: _parse_date(str(v)), pa.int32())
    return pc.cast(days, pa.date32())


def _text_to_time(array: pa.Array, _source: DataType, _target: DataType) -> pa.Array:
    millis = _map_distinct(array, lambda v: _parse_time(str(v)), pa.int32())
    return pc.cast(millis, pa.time32("ms"))


def _text_to_timestamp(array: pa.Array, _source: DataType, target: DataType) -> pa.Array:
    t, arrow = _atomic(target), arrow_type(target)
    counts = _map_distinct(array, lambda v: _parse_timestamp(str(v), t, arrow.unit), pa.int64())
    return pc.cast(counts, arrow)


def _refuse(array: pa.Array, is_good: pa.Array, expected: str) -> None:
    bad = array.filter(pc.and_(array.is_valid(), pc.invert(is_good.fill_null(True))))
    if len(bad):
        raise ValueError(f"{bad[0].as_py()!r} is not {expected}")


def _all_match(array: pa.Array, pattern: str) -> bool:
    matches = pc.all(pc.match_substring_regex(array, pattern)).as_py()
    return matches is None or bool(matches)


_DATE: Final = re.compile(r"\s*(\d+)\s*(?:-\s*(\d+)\s*(?:-\s*(\d+)\s*)?)?", re.ASCII)
_CLOCK: Final = re.compile(
    r"\s*(?P<h>\d+)\s*(?::\s*(?P<m>\d+)\s*(?::\s*(?P<s>\d+)\s*(?:\.\s*(?P<f>[^+-]*?))?)?)?"
    r"(?:(?P<sign>[+-])\s*(?P<zh>\d+)\s*(?::\s*(?P<zm>\d+)\s*)?)?",
    re.ASCII,
)
_TIMESTAMP: Final = re.compile(
    r"(?P<y>\d{4}|\+\d{5,9})-(?P<mo>\d{1,2})-(?P<d>\d{1,2})"
    r"(?: (?P<h>\d{1,2}):(?P<m>\d{1,2}):(?P<s>\d{1,2})(?:\.(?P<f>\d{0,9}))?"
    r"|T(?P<h2>\d{1,2}):(?P<m2>\d{1,2})(?::(?P<s2>\d{1,2})(?:\.(?P<f2>\d{0,9}))?)?)?",
    re.ASCII,
)
_DIGITS: Final = re.compile(r"-?\d+", re.ASCII)
_MILLIS_PER_DAY: Final = 86_400_000
_NANOS: Final = 1_000_000_000
_POWERS_OF_TEN: Final[tuple[int, ...]] = tuple(10**n for n in range(10))


def _parse_date(text: str) -> int:
    """Days since the epoch of ``y-m-d``, ``y-m`` or such with a time behind; digits are days."""
    if _DIGITS.fullmatch(text):
        return int(text)
    space = text.find(" ")
    match = _DATE.fullmatch(text[:space] if space > 0 else text)
    if match is None:
        raise ValueError(f"{text!r} is not a date")
    year, month, day = int(match[1]), int(match[2] or 1), int(match[3] or 1)
    if not (year <= 9999 and 1 <= month <= 12 and 1 <= day <= _days_of_month(year, month)):
        raise ValueError(f"{text!r} is not a date")
    return _days_of(year, month, day)


def _parse_time(text: str) -> int:
    """Milliseconds of ``h[:m[:s[.f]]][+zh[:zm]]``; digits alone are milliseconds."""
    if _DIGITS.fullmatch(text):
        return int(text)
    match = _CLOCK.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a time")
    sign = 1 if match["sign"] == "+" else -1
    hour = int(match["h"]) + sign * int(match["zh"] or 0)
    minute = int(match["m"] or 0) + sign * int(match["zm"] or 0)
    millis = _parse_millis((match["f"] or "").strip())
    total = hour * 3_600_000 + minute * 60_000 + int(match["s"] or 0) * 1000 + millis
    if not 0 <= total < _MILLIS_PER_DAY:
        raise ValueError(f"{text!r} is not a time of day")
    return total


def _parse_millis(fraction: str) -> int:
    digits = "".join(c if c in "0123456789" else "0" for c in fraction[:4]).ljust(4, "0")
    return int(digits[:3]) + (digits[3] >= "5")


def _parse_timestamp(text: str, target: AtomicType, unit: str) -> int:
    """The count of units since the epoch; digits alone are a count of the type's own unit."""
    is_local = target.root is TypeRoot.TIMESTAMP_LTZ
    if not is_local and _DIGITS.fullmatch(text):
        if target.precision not in (0, 3, 6, 9):
            raise ValueError(f"{text!r}: a count needs a precision of 0, 3, 6 or 9")
        return int(text)
    nanos = _parse_nanos(text)
    nanos -= nanos % _POWERS_OF_TEN[9 - target.precision]
    return nanos // _POWERS_OF_TEN[9 - _UNIT_DIGITS[unit]]


def _parse_nanos(text: str) -> int:
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a timestamp")
    year, month, day = int(match["y"]), int(match["mo"]), int(match["d"])
    hour, minute, second = (int(match[k] or match[f"{k}2"] or 0) for k in "hms")
    fraction = int((match["f"] or match["f2"] or "").ljust(9, "0"))
    is_midnight = hour == 24 and not (minute or second or fraction)
    if not (
        year >= 1
        and 1 <= month <= 12
        and 1 <= day <= 31
        and (hour <= 23 or is_midnight)
        and minute <= 59
        and second <= 59
    ):
        raise ValueError(f"{text!r} is not a timestamp")
    day = min(day, _days_of_month(year, month))  # the 31st of a shorter month is its last day
    seconds = ((_days_of(year, month, day) * 24 + hour) * 60 + minute) * 60 + second
    return seconds * _NANOS + fraction


def _days_of_month(year: int, month: int) -> int:
    if month == 2:
        is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
        return 29 if is_leap else 28
    return 30 if month in (4, 6, 9, 11) else 31


def _days_of(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 in the Gregorian calendar, for years from 0 on."""
    shifted = year - (month <= 2)  # years that begin in March end with the leap day
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return shifted * 365 + shifted // 4 - shifted // 100 + shifted // 400 + day_of_year - 719_468


# --- dates and times ------------------------------------------------------------------------------

_UNIT_DIGITS: Final = {"s": 0, "ms": 3, "us": 6, "ns": 9}


def _without_zone(array: pa.Array) -> pa.Array:
    """The same instants without their zone, which is UTC."""
    return array.view(pa.timestamp(array.type.unit)) if array.type.tz else array


def _units(array: pa.Array, *, digits: int) -> np.ndarray:
    """Counts of a coarser or the same unit, rounded down."""
    counts = pc.cast(_without_zone(array), pa.int64())
    return np.asarray(_to_numpy(counts) // _POWERS_OF_TEN[_UNIT_DIGITS[array.type.unit] - digits])


def _timestamp_to_timestamp(array: pa.Array, source: DataType, target: DataType) -> pa.Array:
    s, t, arrow = _atomic(source), _atomic(target), arrow_type(target)
    plain = _without_zone(array)
    if s.precision > t.precision:
        plain = _truncated(plain, t.precision)
    return pc.cast(plain, pa.timestamp(arrow.unit)).view(arrow)


def _truncated(array: pa.Array, precision: int) -> pa.Array:
    """Fewer digits of fraction: rounded down to milliseconds, and from there towards zero."""
    digits = _UNIT_DIGITS[array.type.unit]
    if precision < 3:
        millis = _units(array, digits=min(digits, 3))
        step = 10 ** (min(digits, 3) - precision)
        counts = millis - np.fmod(millis, step)
        unit = "ms" if digits >= 3 else "s"
        return _from_numpy(counts, array, pa.int64()).view(pa.timestamp(unit))
    counts = _units(array, digits=precision) * 10 ** (digits - precision)
    return _from_numpy(counts, array, pa.int64()).view(array.type)


def _timestamp_to_integer(array: pa.Array, _source: DataType, target: DataType) -> pa.Array:
    digits = min(_UNIT_DIGITS[array.type.unit], 3)
    counts = _units(array, digits=digits)
    step = 10**digits
    seconds = (counts - np.fmod(counts, step)) // step  # towards zero
    arrow = arrow_type(target)
    return _from_numpy(seconds.astype(arrow.to_pandas_dtype()), array, arrow)


def _integer_to_timestamp(array: pa.Array, _source: DataType, target: DataType) -> pa.Array:
    seconds = pc.cast(pc.cast(array, pa.int64()), pa.timestamp("s"))
    arrow = arrow_type(target)
    return pc.cast(seconds, pa.timestamp(arrow.unit)).view(arrow)


def _timestamp_to_date(array: pa.Array, _source: DataType, _target: DataType) -> pa.Array:
    per_day = 86_400 * 10 ** _UNIT_DIGITS[array.type.unit]
    days = _units(array, digits=_UNIT_DIGITS[array.type.unit]) // per_day
    return _from_numpy(days.astype(np.int32), array, pa.int32()).view(pa.date32())


def _timestamp_to_time(array: pa.Array, _source: DataType, _target: DataType) -> pa.Array:
    digits = _UNIT_DIGITS[array.type.unit]
    counts = _units(array, digits=min(digits, 3)) * (1 if digits else 1000)
    millis = counts % _MILLIS_PER_DAY
    return _from_numpy(millis.astype(np.int32), array, pa.int32()).view(pa.time32("ms"))


def _date_to_timestamp(array: pa.Array, _source: DataType, target: DataType) -> pa.Array:
    arrow = arrow_type(target)
    return pc.cast(pc.cast(array, pa.timestamp("s")), pa.timestamp(arrow.unit)).view(arrow)


def _time_to_timestamp(array: pa.Array, _source: DataType, target: DataType) -> pa.Array:
    t = _atomic(target)
    millis = pc.cast(pc.cast(array, pa.int32()), pa.int64()).view(pa.timestamp("ms"))
    plain = millis if t.precision >= 3 else _truncated(millis, t.precision)
    arrow = arrow_type(target)
    return pc.cast(plain, pa.timestamp(arrow.unit)).view(arrow)


def _same_values(array: pa.Array, _source: DataType, _target: DataType) -> pa.Array:
    return array


_KERNELS: Final[dict[tuple[_Family, _Family], Kernel]] = {
    (_Family.BOOLEAN, _Family.INTEGER): _boolean_to_number,
    (_Family.BOOLEAN, _Family.FLOAT): _boolean_to_number,
    (_Family.BOOLEAN, _Family.DECIMAL): _boolean_to_decimal,
    (_Family.INTEGER, _Family.BOOLEAN): _number_to_boolean,
    (_Family.INTEGER, _Family.INTEGER): _integer_to_integer,
    (_Family.INTEGER, _Family.FLOAT): _number_to_float,
    (_Family.INTEGER, _Family.DECIMAL): _integer_to_decimal,
    (_Family.INTEGER, _Family.TIMESTAMP): _integer_to_timestamp,
    (_Family.FLOAT, _Family.INTEGER): _float_to_integer,
    (_Family.FLOAT, _Family.FLOAT): _number_to_float,
    (_Family.FLOAT, _Family.DECIMAL): _float_to_decimal,
    (_Family.DECIMAL, _Family.INTEGER): _decimal_to_integer,
    (_Family.DECIMAL, _Family.FLOAT): _decimal_to_float,
    (_Family.DECIMAL, _Family.DECIMAL): _decimal_to_decimal,
    **{
        (family, _Family.TEXT): _to_text
        for family in (
            _Family.BOOLEAN,
            _Family.INTEGER,
            _Family.FLOAT,
            _Family.DECIMAL,
            _Family.DATE,
            _Family.TIME,
            _Family.TIMESTAMP,
        )
    },
    (_Family.BYTES, _Family.TEXT): _bytes_to_text,
    (_Family.BYTES, _Family.BYTES): _bytes_to_bytes,
    (_Family.ARRAY, _Family.TEXT): _nested_to_text,
    (_Family.MAP, _Family.TEXT): _nested_to_text,
    (_Family.ROW, _Family.TEXT): _nested_to_text,
    (_Family.TEXT, _Family.TEXT): _text_to_text,
    (_Family.TEXT, _Family.BYTES): _text_to_bytes,
    (_Family.TEXT, _Family.BOOLEAN): _text_to_boolean,
    (_Family.TEXT, _Family.INTEGER): _text_to_integer,
    (_Family.TEXT, _Family.FLOAT): _text_to_float,
    (_Family.TEXT, _Family.DECIMAL): _text_to_decimal,
    (_Family.TEXT, _Family.DATE): _text_to_date,
    (_Family.TEXT, _Family.TIME): _text_to_time,
    (_Family.TEXT, _Family.TIMESTAMP): _text_to_timestamp,
    (_Family.DATE, _Family.TIMESTAMP): _date_to_timestamp,
    (_Family.TIME, _Family.TIME): _same_values,
    (_Family.TIME, _Family.TIMESTAMP): _time_to_timestamp,
    (_Family.TIMESTAMP, _Family.TIMESTAMP): _timestamp_to_timestamp,
    (_Family.TIMESTAMP, _Family.INTEGER): _timestamp_to_integer,
    (_Family.TIMESTAMP, _Family.DATE): _timestamp_to_date,
    (_Family.TIMESTAMP, _Family.TIME): _timestamp_to_time,
}

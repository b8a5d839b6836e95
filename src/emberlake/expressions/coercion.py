"""Which types fit together: the rules of Spark's ANSI mode, as pure functions of types."""

from collections.abc import Sequence
from typing import Final

from emberlake.read.casts import find_cast
from emberlake.types import (
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeRoot,
)
from emberlake.types.data_types import INTEGER_BITS, MAX_DECIMAL_PRECISION

STRING: Final = AtomicType("STRING")
BYTES: Final = AtomicType("BYTES")
INT: Final = AtomicType("INT")
BIGINT: Final = AtomicType("BIGINT")
DOUBLE: Final = AtomicType("DOUBLE")

_FLOATS: Final = (TypeRoot.FLOAT, TypeRoot.DOUBLE)
_DIGITS: Final = {  # of the decimal that holds every integer of a type
    TypeRoot.TINYINT: 3,
    TypeRoot.SMALLINT: 5,
    TypeRoot.INT: 10,
    TypeRoot.BIGINT: 20,
}
_MIN_ADJUSTED_SCALE: Final = 6


def root_of(data_type: DataType) -> TypeRoot | None:
    """The root of an atomic type; None for a nested one."""
    return data_type.root if isinstance(data_type, AtomicType) else None


def is_integer(data_type: DataType) -> bool:
    """Whether values are whole numbers of a fixed width."""
    return root_of(data_type) in INTEGER_BITS


def is_float(data_type: DataType) -> bool:
    """Whether values are binary floats."""
    return root_of(data_type) in _FLOATS


def is_decimal(data_type: DataType) -> bool:
    """Whether values are decimals."""
    return root_of(data_type) is TypeRoot.DECIMAL


def is_number(data_type: DataType) -> bool:
    """Whether one can calculate with the values."""
    return is_integer(data_type) or is_float(data_type) or is_decimal(data_type)


def is_text(data_type: DataType) -> bool:
    """Whether values are text."""
    root = root_of(data_type)
    return root is not None and root.is_text


def is_bytes(data_type: DataType) -> bool:
    """Whether values are bytes."""
    root = root_of(data_type)
    return root is not None and root.is_bytes


def is_boolean(data_type: DataType) -> bool:
    """Whether values are true or false."""
    return root_of(data_type) is TypeRoot.BOOLEAN


def decimal(precision: int, scale: int) -> AtomicType:
    """A decimal; beyond 38 digits the fraction is cut first, down to six digits.

    This is how Spark reduces the result of a calculation.
    """
    if precision > MAX_DECIMAL_PRECISION:
        whole = precision - scale
        scale = max(MAX_DECIMAL_PRECISION - whole, min(scale, _MIN_ADJUSTED_SCALE))
        precision = MAX_DECIMAL_PRECISION
    return AtomicType(f"DECIMAL({precision}, {scale})")


def as_decimal(data_type: AtomicType) -> AtomicType:
    """The decimal that holds every value of an integer or decimal type."""
    if data_type.root is TypeRoot.DECIMAL:
        return data_type
    return AtomicType(f"DECIMAL({_DIGITS[data_type.root]}, 0)")


def plain_type(data_type: DataType) -> DataType:
    """The type without what only a schema knows: ids of fields, comments, and what is NOT NULL."""
    match data_type:
        case RowType(fields=fields):
            plain = [DataField(n, f.name, plain_type(f.type)) for n, f in enumerate(fields)]
            return RowType(True, tuple(plain))
        case ArrayType(element=element):
            return ArrayType(True, plain_type(element))
        case MultisetType(element=element):
            return MultisetType(True, plain_type(element))
        case MapType(key=key, value=value):
            return MapType(True, plain_type(key), plain_type(value))
        case _:
            return data_type.with_nullable(True)


def common_type(types: Sequence[DataType]) -> DataType | None:
    """The type to which values of all these types are cast implicitly; None if there is none."""
    found: DataType | None = None
    for data_type in types:
        other = plain_type(data_type)
        found = other if found is None else _common(found, other)
        if found is None:
            return None
    return found


def _common(one: DataType, other: DataType) -> DataType | None:
    if one == other:
        return one
    if not (isinstance(one, AtomicType) and isinstance(other, AtomicType)):
        return None
    if is_number(one) and is_number(other):
        return _common_number(one, other)
    roots = {one.root, other.root}
    if all(root.is_text for root in roots):
        return STRING
    if all(root.is_bytes for root in roots):
        return BYTES
    if all(root is TypeRoot.DATE or root.is_timestamp for root in roots):
        return _common_moment(one, other)
    if roots == {TypeRoot.TIME}:
        return one if one.precision >= other.precision else other
    return None


def _common_number(one: AtomicType, other: AtomicType) -> AtomicType:
    if is_integer(one) and is_integer(other):
        return max(one, other, key=lambda t: INTEGER_BITS[t.root])
    if is_float(one) or is_float(other):
        # A FLOAT would not hold all integers, so ANSI mode goes to DOUBLE at once.
        return one if one.root == other.root else DOUBLE
    left, right = as_decimal(one), as_decimal(other)
    scale = max(left.scale, right.scale)
    whole = max(left.precision - left.scale, right.precision - right.scale)
    return decimal(whole + scale, scale)


def _common_moment(one: AtomicType, other: AtomicType) -> AtomicType:
    precision = max(t.precision for t in (one, other))
    is_local = TypeRoot.TIMESTAMP_LTZ in (one.root, other.root)
    return AtomicType(f"{'TIMESTAMP_LTZ' if is_local else 'TIMESTAMP'}({precision})")


def arithmetic_type(function: str, left: AtomicType, right: AtomicType) -> AtomicType:
    """The type of a calculation with two decimals."""
    p1, s1, p2, s2 = left.precision, left.scale, right.precision, right.scale
    match function:
        case "+" | "-":
            scale = max(s1, s2)
            return decimal(max(p1 - s1, p2 - s2) + scale + 1, scale)
        case "*":
            return decimal(p1 + p2 + 1, s1 + s2)
        case "/":
            scale = max(_MIN_ADJUSTED_SCALE, s1 + p2 + 1)
            return decimal(p1 - s1 + s2 + scale, scale)
        case _:  # %
            scale = max(s1, s2)
            return decimal(min(p1 - s1, p2 - s2) + scale, scale)


def can_cast(source: DataType, target: DataType) -> bool:
    """Whether ``CAST`` takes the types; single values may still fail."""
    if plain_type(source) == plain_type(target):
        return True
    if not (isinstance(source, AtomicType) and isinstance(target, AtomicType)):
        return isinstance(target, AtomicType) and target.root.is_text and _has_text(source)
    is_clock = TypeRoot.TIME in (source.root, target.root)
    if is_clock and not (source.root.is_text or target.root.is_text or source.root == target.root):
        return False
    return find_cast(source, target) is not None


def _has_text(source: DataType) -> bool:
    return find_cast(source, STRING) is not None


def assignment_problem(source: DataType, target: DataType) -> str | None:
    """Why values of a type cannot be put into a column without a CAST; None if they can.

    Numbers go into numbers: what is out of range is an error, a fraction is rounded to the digits
    of the column. Only integers never lose a fraction silently.
    """
    source, target = plain_type(source), plain_type(target)
    if source == target:
        return None
    if not (isinstance(source, AtomicType) and isinstance(target, AtomicType)):
        return None if _fits_by_name(source, target) else f"it is {source}"
    is_whole = is_integer(source) or (is_decimal(source) and source.scale == 0)
    if is_number(source) and is_number(target):
        if is_integer(target) and not is_whole:
            return f"it is {source}, whose fraction would be lost: round it and CAST it"
        return None
    families = (is_text, is_bytes)
    if any(family(source) and family(target) for family in families):
        return None
    moments = (TypeRoot.DATE, TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ)
    if source.root in moments and target.root in moments[1:]:
        return None
    if source.root is target.root is TypeRoot.TIME:
        return None
    return f"it is {source}: CAST it" if can_cast(source, target) else f"it is {source}"


def _fits_by_name(source: DataType, target: DataType) -> bool:
    """Whether a write may fit values with others inside: it knows fields by name, checks values."""
    match source, target:
        case RowType(fields=fields), RowType():
            pairs = ((f.type, target.field(f.name)) for f in fields)
            return all(to is not None and _fits_by_name(given, to.type) for given, to in pairs)
        case ArrayType(), ArrayType():
            return _fits_by_name(source.element, target.element)
        case MapType(), MapType():
            parts = ((source.key, target.key), (source.value, target.value))
            return all(_fits_by_name(*part) for part in parts)
        case MapType(), MultisetType():
            return _fits_by_name(source.key, target.element) and is_integer(source.value)
        case AtomicType(), AtomicType():
            families = (is_integer, is_float, is_text, is_bytes)
            return source.root is target.root or any(f(source) and f(target) for f in families)
        case _:
            return source == target

"""Which types can hold all values of another type."""

from typing import Final

from emberlake.types import AtomicType, DataType, TypeRoot
from emberlake.types.data_types import MAX_LENGTH


def is_widening(old: DataType, new: DataType) -> bool:
    """Whether every value of the old type is a value of the new one, nullability aside."""
    if old.with_nullable(True) == new.with_nullable(True):
        return True
    if not (isinstance(old, AtomicType) and isinstance(new, AtomicType)):
        return False
    if old.root.is_integer:
        return _integer_widens(old, new)
    match old.root, new.root:
        case TypeRoot.FLOAT, TypeRoot.DOUBLE:
            return True
        case TypeRoot.DECIMAL, TypeRoot.DECIMAL:
            digits = old.precision - old.scale
            return new.scale >= old.scale and new.precision - new.scale >= digits
        case (
            (TypeRoot.CHAR, TypeRoot.CHAR | TypeRoot.VARCHAR)
            | (TypeRoot.VARCHAR, TypeRoot.VARCHAR)
            | (TypeRoot.BINARY, TypeRoot.BINARY | TypeRoot.VARBINARY)
            | (TypeRoot.VARBINARY, TypeRoot.VARBINARY)
        ):
            return new.length >= old.length
        case TypeRoot.BOOLEAN | TypeRoot.DATE, TypeRoot.VARCHAR:
            return new.length == MAX_LENGTH
        case (TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP) | (
            TypeRoot.TIMESTAMP_LTZ,
            TypeRoot.TIMESTAMP_LTZ,
        ):
            return new.precision >= old.precision
        case _:
            return False


def can_become(old: DataType, new: DataType) -> bool:
    """Whether a column may be given another type: its values stay what they are.

    Besides wider types these are the conversions that Spark makes without a CAST: a floating point
    number may lose digits of a whole one, a date becomes a midnight, and values become their texts.
    """
    if is_widening(old, new):
        return True
    if not (isinstance(old, AtomicType) and isinstance(new, AtomicType)):
        return False
    if new.root is TypeRoot.VARCHAR and new.length == MAX_LENGTH:
        return old.root.is_number or old.root is TypeRoot.TIME or old.root in _TIMESTAMPS
    if old.root in _INTEGERS:
        return new.root in (TypeRoot.FLOAT, TypeRoot.DOUBLE)
    if old.root is TypeRoot.DECIMAL:
        digits, _ = _INTEGERS.get(new.root, (0, ()))
        return old.scale == 0 and old.precision < digits
    if old.root is TypeRoot.DATE:
        return new.root in _TIMESTAMPS
    return {old.root, new.root} == _TIMESTAMPS and new.precision >= old.precision


def is_number_as_text(old: DataType, new: DataType) -> bool:
    """Whether numbers become texts, which have another order."""
    if not (isinstance(old, AtomicType) and isinstance(new, AtomicType)):
        return False
    return old.root.is_number and new.root.is_text


# Decimal digits of the largest value, and the floating types that hold all values exactly.
_INTEGERS: Final = {
    TypeRoot.TINYINT: (3, (TypeRoot.FLOAT, TypeRoot.DOUBLE)),
    TypeRoot.SMALLINT: (5, (TypeRoot.FLOAT, TypeRoot.DOUBLE)),
    TypeRoot.INT: (10, (TypeRoot.DOUBLE,)),
    TypeRoot.BIGINT: (19, ()),
}


def _integer_widens(old: AtomicType, new: AtomicType) -> bool:
    digits, floats = _INTEGERS[old.root]
    if new.root in _INTEGERS:
        return _INTEGERS[new.root][0] >= digits
    if new.root is TypeRoot.DECIMAL:
        return new.precision - new.scale >= digits
    if new.root is TypeRoot.VARCHAR:  # every number has one text
        return new.length == MAX_LENGTH
    return new.root in floats


_TIMESTAMPS: Final = {TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ}

"""Which casts there are, and the kernels that do them."""

from typing import Final

import pyarrow as pa

from emberlake.errors import DataMismatch, Unsupported
from emberlake.read.casts import from_text, lengths, numbers, times, to_text
from emberlake.read.casts.families import Kernel, KernelTable, family_of
from emberlake.types import ArrayType, AtomicType, DataType, MapType, RowType, TypeRoot


def find_cast(source: DataType, target: DataType) -> Kernel | None:
    """The kernel that turns arrays of one type into the other, or None when there is none."""
    kernel = _KERNELS.get((family_of(source), family_of(target)))
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


_KERNELS: Final[KernelTable] = {
    **numbers.KERNELS,
    **times.KERNELS,
    **lengths.KERNELS,
    **to_text.KERNELS,
    **from_text.KERNELS,
}
_SECONDS: Final = (TypeRoot.INT, TypeRoot.BIGINT)  # integers that can be a time in seconds
_STRING: Final = AtomicType("STRING")


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

"""CAST in ANSI mode: a value that does not fit is an error, never a null or another value.

The kernels are those that read columns whose type has changed. What they cut, wrap or turn to null
is refused here first. The time zone of expressions is UTC.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from emberlake.base.names import with_article
from emberlake.errors import DataMismatch
from emberlake.expressions.coercion import is_decimal, is_float, is_integer, is_number, is_text
from emberlake.read.casts import cast_array
from emberlake.types import AtomicType, DataType, TypeRoot, arrow_type
from emberlake.types.data_types import INTEGER_BITS


def cast_ansi(array: pa.Array, source: DataType, target: DataType) -> pa.Array:
    """An array of ``arrow_type(source)`` as one of ``arrow_type(target)``.

    Raises:
        DataMismatch: a value cannot be cast.
    """
    if source.with_nullable(True) == target.with_nullable(True):
        return array
    if not isinstance(target, AtomicType):
        raise DataMismatch(f"{source} cannot be cast to {target}")
    if is_text(source) and not (is_text(target) or target.root.is_bytes):
        array = pc.utf8_trim_whitespace(array)
        _check_text(array, target)
    if is_number(source) and is_integer(target):
        return _to_integer(array, target)
    done = cast_array(array, source, target)
    if done.null_count != array.null_count:
        lost = array.filter(pc.and_(done.is_null(), array.is_valid()))
        raise DataMismatch(f"{lost[0].as_py()!r} does not fit {target}")
    return done


def _check_text(array: pa.Array, target: AtomicType) -> None:
    if target.root in INTEGER_BITS:
        is_good = pc.match_substring_regex(array, r"^[+-]?[0-9]+$")
    elif target.root is TypeRoot.DATE or target.root.is_timestamp:
        # The kernels also take a plain number, as a count of days or of some unit.
        is_good = pc.match_substring_regex(array, r"[-]")
    else:
        return
    bad = array.filter(pc.invert(is_good).fill_null(False))
    if len(bad):
        raise DataMismatch(f"{bad[0].as_py()!r} is not {with_article(str(target))}")


def _to_integer(array: pa.Array, target: AtomicType) -> pa.Array:
    """Numbers without their fraction; those out of range are refused."""
    limit = 1 << (INTEGER_BITS[target.root] - 1)
    if pa.types.is_floating(array.type):
        whole = pc.trunc(array.cast(pa.float64()))
        values = whole.fill_null(0).to_numpy(zero_copy_only=False)
        is_in = (values >= -float(limit)) & (values < float(limit))
    elif pa.types.is_decimal(array.type):
        whole = pc.round(array.cast(pa.decimal256(76, array.type.scale)), 0, "towards_zero")
        bounds = [pa.scalar(bound, pa.decimal256(76, 0)) for bound in (-limit, limit - 1)]
        whole = whole.cast(pa.decimal256(76, 0))
        inside = pc.and_(pc.greater_equal(whole, bounds[0]), pc.less_equal(whole, bounds[1]))
        is_in = inside.fill_null(True).to_numpy(zero_copy_only=False)
    else:
        whole = array.cast(pa.int64())
        values = whole.fill_null(0).to_numpy(zero_copy_only=False)
        is_in = (values >= -limit) & (values < limit)
    if not is_in.all():
        worst = array[int(np.flatnonzero(~is_in)[0])].as_py()
        raise DataMismatch(f"{worst!r} does not fit {target}")
    return whole.cast(arrow_type(target), safe=False)


def fits_all(source: DataType, target: DataType) -> bool:
    """Whether no value can fail; then a cast need not wait for the rows that really need it."""
    if source.with_nullable(True) == target.with_nullable(True):
        return True
    if not (isinstance(source, AtomicType) and isinstance(target, AtomicType)):
        return True  # to text
    if is_integer(source) and is_integer(target):
        return INTEGER_BITS[source.root] <= INTEGER_BITS[target.root]
    if is_number(source) and is_float(target):
        return True
    if is_decimal(source) and is_decimal(target):
        return target.precision - target.scale > source.precision - source.scale
    return is_text(target)

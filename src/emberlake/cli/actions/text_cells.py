"""Values of CSV and JSON files as columns of a table; null where a value does not fit.

``from_text`` takes texts, ``from_json`` decoded JSON. Both return the column, and the positions of
the values that do not fit, each with its reason.
"""

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from emberlake.base.names import with_article
from emberlake.errors import DataMismatch, Unsupported
from emberlake.read.casts.kernels import cast_array
from emberlake.types import ArrayType, AtomicType, DataType, MapType, RowType, TypeRoot, arrow_type

_TEXT: Final = AtomicType("STRING")
_FLOATS: Final = frozenset({TypeRoot.FLOAT, TypeRoot.DOUBLE})
_WHOLE: Final = r"^\s*[+-]?[0-9]+\s*$"
_SHOWN: Final = 60  # characters of a value in a reason

Misfits = tuple[np.ndarray[Any, np.dtype[np.int64]], pa.Array]


def from_text(texts: pa.Array, target: DataType) -> tuple[pa.Array, Misfits]:
    """Texts as values of a type; null where one does not fit."""
    if not isinstance(target, AtomicType):
        raise Unsupported(f"values of type {target} cannot be read from text; use JSON or Parquet")
    if target.root.is_text:
        return texts, _no_cells()
    is_whole = target.root.is_integer

    def convert(some: pa.Array) -> pa.Array:
        if is_whole and not pc.all(pc.match_substring_regex(some, _WHOLE), min_count=0).as_py():
            raise DataMismatch("it is not a whole number")  # a cast would cut a fraction off
        return cast_array(some, _TEXT, target.with_nullable(True))

    return _sifted(texts, convert, target, str)


def from_json(values: list[Any], target: DataType) -> tuple[pa.Array, Misfits]:
    """Values as a column; null where one does not fit."""
    if not isinstance(target, AtomicType):

        def convert(some: list[Any]) -> pa.Array:
            return pa.array([_nested(value, target) for value in some], arrow_type(target))

        return _sifted(values, convert, target, _json_text)
    if target.root in _FLOATS and not any(isinstance(v, str | bool) for v in values):
        return _sifted(values, lambda some: _floats(some, target), target, _json_text)
    # Arrow would cut the fraction off a number in an INT column, and count days in a DATE column.
    texts = [v if v is None or isinstance(v, str) else _json_text(v) for v in values]
    return from_text(pa.array(texts, pa.string()), target)


def _floats(values: list[Any], target: AtomicType) -> pa.Array:
    numbers = [float(v) if isinstance(v, Decimal) else v for v in values]
    return pa.array(numbers, arrow_type(target))


def _nested(value: Any, target: DataType) -> Any:
    """A value of an ARRAY, MAP or ROW column for Arrow, which would cut off fractions."""
    match target:
        case ArrayType(element=element) if isinstance(value, list):
            return [_nested(item, element) for item in value]
        case MapType(value=inner) if isinstance(value, dict):
            return [(key, _nested(item, inner)) for key, item in value.items()]
        case RowType() if isinstance(value, dict):
            return {f.name: _nested(value.get(f.name), f.type) for f in target.fields}
        case AtomicType(root=root) if isinstance(value, Decimal | float | int):
            return _nested_number(value, root)
    return value


def _nested_number(value: Decimal | float, root: TypeRoot) -> Any:
    match value:
        case bool():
            if root is TypeRoot.BOOLEAN:
                return value
        case _ if root in _FLOATS:
            return float(value)
        case Decimal() | int() if root is TypeRoot.DECIMAL:
            return value
        case int() if root.is_integer:
            return value
    raise DataMismatch(f"{_json_text(value)} is not {with_article(str(root))}")


def _json_text(value: Any) -> str:
    return str(value) if isinstance(value, Decimal) else json.dumps(value, default=float)


def _sifted(
    values: Any, convert: Callable[[Any], pa.Array], target: DataType, shown: Callable[[Any], str]
) -> tuple[pa.Array, Misfits]:
    """Values that can be converted, and the positions of the others, found by halving."""
    parts: list[pa.Array] = []
    positions: list[int] = []
    reasons: list[str] = []

    def sift(some: Any, start: int) -> None:
        if not len(some):
            return
        try:
            parts.append(convert(some))
            return
        except (DataMismatch, pa.ArrowException, TypeError, ValueError, OverflowError):
            pass
        if len(some) > 1:
            middle = len(some) // 2
            sift(some[:middle], start)
            sift(some[middle:], start + middle)
            return
        value = some[0].as_py() if isinstance(some, pa.Array) else some[0]
        parts.append(pa.nulls(1, arrow_type(target)))
        positions.append(start)
        wanted = with_article(str(target.with_nullable(True)))
        reasons.append(f"{shown(value):.{_SHOWN}} is not {wanted}")

    sift(values, 0)
    column = pa.concat_arrays(parts) if parts else pa.nulls(0, arrow_type(target))
    return column, (np.array(positions, np.int64), pa.array(reasons, pa.string()))


def _no_cells() -> Misfits:
    return np.empty(0, np.int64), pa.array([], pa.string())

"""Rows as JSON values and as cells of a grid.

Values that JSON cannot hold become text: decimals (numbers would lose digits), dates and times in
ISO 8601, bytes in base64, NaN and the infinities. Maps with text keys are objects, others lists of
pairs.
"""

import base64
import json
import math
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from emberlake.formats.nested import map_leaves

_Convert: TypeAlias = Callable[[Any], Any]


def iter_json_rows(batch: pa.RecordBatch | pa.Table) -> Iterator[dict[str, Any]]:
    """The rows of a batch as dictionaries that ``json.dumps`` accepts."""
    columns = [_json_values(column) for column in batch.columns]
    names = batch.schema.names
    # Rows are assembled one by one; the expensive part, the values, was converted by column.
    for row in zip(*columns, strict=True):
        yield dict(zip(names, row, strict=True))


def cells_of(batch: pa.RecordBatch | pa.Table) -> list[tuple[str | None, ...]]:
    """The rows of a batch as text for a grid; nested values are JSON."""
    columns = [_cells(column) for column in batch.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * batch.num_rows


def csv_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch, with columns that CSV cannot hold converted to text."""
    columns = [_csv_column(column) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _json_values(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    if isinstance(column, pa.ChunkedArray):
        return [value for chunk in column.chunks for value in _json_values(chunk)]
    convert = _converter(column.type)
    values: list[Any] = map_leaves(column, _plain_leaf).to_pylist()
    return values if convert is None else [convert(value) for value in values]


def _cells(column: pa.Array | pa.ChunkedArray) -> list[str | None]:
    values = _json_values(column)
    if pa.types.is_timestamp(column.type):
        return [None if value is None else _short_time(value) for value in values]
    return [value if value is None or isinstance(value, str) else _cell(value) for value in values]


def _short_time(iso: str) -> str:
    """``2026-06-26 14:03:07.5``: without trailing zeros, and without a fraction of zero."""
    zone = "Z" if iso.endswith("Z") else ""
    whole, point, fraction = iso.removesuffix("Z").replace("T", " ", 1).partition(".")
    shown = fraction.rstrip("0")
    return f"{whole}{point}{shown}{zone}" if shown else f"{whole}{zone}"


def _cell(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _csv_column(column: pa.Array) -> pa.Array:
    kind = column.type
    if pa.types.is_nested(kind):
        values = _json_values(column)
        return pa.array([None if v is None else _cell(v) for v in values], pa.string())
    return _plain_leaf(column)


def _plain_leaf(array: pa.Array) -> pa.Array:
    """Values that Python and JSON cannot hold exactly, as text."""
    kind = array.type
    if pa.types.is_timestamp(kind):
        return _iso_times(array)
    if pa.types.is_interval(kind):
        return pa.array([_interval(v) for v in array.to_pylist()], pa.string())
    if pa.types.is_duration(kind):
        return pa.array([None if v is None else str(v) for v in array.to_pylist()], pa.string())
    if pa.types.is_decimal(kind) or pa.types.is_date(kind) or pa.types.is_time(kind):
        return array.cast(pa.string())
    if pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind):
        texts = [None if v is None else base64.b64encode(v).decode() for v in array.to_pylist()]
        return pa.array(texts, pa.string())
    return array


def _interval(value: Any) -> str | None:
    """``1 months 2 days 3.5 seconds``, without what is zero."""
    if value is None:
        return None
    parts = {"months": value[0], "days": value[1], "seconds": value[2] / 1_000_000_000}
    return " ".join(f"{number:g} {unit}" for unit, number in parts.items() if number) or "0 seconds"


def _iso_times(array: pa.Array) -> pa.Array:
    """``2026-06-26T14:03:07.123``, with a Z if the column is an instant."""
    text = array.cast(pa.timestamp(array.type.unit)).cast(pa.string())
    iso = pc.replace_substring(text, " ", "T", max_replacements=1)
    return pc.binary_join_element_wise(iso, "Z", "") if array.type.tz else iso


def _converter(kind: pa.DataType) -> _Convert | None:
    """Converts the Python values of a column to JSON values; None if they need no conversion."""
    if pa.types.is_floating(kind):
        return lambda value: value if value is None or math.isfinite(value) else str(value)
    if pa.types.is_map(kind):
        return _map_converter(kind)
    if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        inner = _converter(kind.value_type)
        return None if inner is None else lambda value: value and [inner(v) for v in value]
    if pa.types.is_struct(kind):
        inners = {f.name: _converter(f.type) for f in kind}
        if not any(inners.values()):
            return None
        return lambda value: (
            value
            and {
                name: v if (convert := inners[name]) is None else convert(v)
                for name, v in value.items()
            }
        )
    return None


def _map_converter(kind: pa.DataType) -> _Convert:
    to_value = _converter(kind.item_type) or (lambda value: value)
    to_key = _converter(kind.key_type) or (lambda key: key)
    has_text_keys = pa.types.is_string(kind.key_type)

    def convert(pairs: list[tuple[Any, Any]] | None) -> Any:
        if pairs is None:
            return None
        values = [(to_key(key), to_value(value)) for key, value in pairs]
        return dict(values) if has_text_keys else [list(pair) for pair in values]

    return convert

"""Fit incoming Arrow data to the columns of a table: by name, with casts that lose nothing.

Every difference is collected and reported in one ``DataMismatch`` before anything is written.
Besides equal types it accepts: integers of another width when the values fit, integers to
decimals and exact floats, float to double, decimals of another precision when the digits fit,
dictionary to its values, large and view variants, finer or coarser time units when nothing is
cut off, and structs whose fields are in another order or lack nullable ones.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from emberlake.base.arrow_arrays import decoded
from emberlake.base.names import choices
from emberlake.errors import DataMismatch, EmberlakeError, InvalidInput
from emberlake.formats.nested import relabelled
from emberlake.spec.default_values import default_value
from emberlake.spec.values import Value, to_arrow_scalar
from emberlake.types import (
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeRoot,
    arrow_schema,
    arrow_type,
)
from emberlake.types.data_types import MAX_LENGTH

_NOTHING: Final[Mapping[str, str]] = {}


def align(
    data: pa.Table,
    fields: tuple[DataField, ...],
    *,
    write_columns: tuple[str, ...] | None = None,
    lacking: Mapping[str, str] = _NOTHING,
) -> pa.Table:
    """The data as a table with exactly the given columns.

    Args:
        data: What the user gave.
        fields: The columns of the table.
        write_columns: The columns that the data must have, no more and no less; the others
            become null or their default. Without it, missing nullable columns become null.
        lacking: Why columns must not be left out, by their names.

    Raises:
        DataMismatch: lists every column that does not fit.
    """
    is_equal = write_columns is None and data.schema.equals(arrow_schema(fields))
    if is_equal and not any(map(_needs_checks, fields)):
        return data
    problems = {**_name_problems(data.schema, fields, write_columns), **lacking}
    columns: list[pa.ChunkedArray] = []
    given = set(data.schema.names)
    for field in fields:
        try:
            if field.name in given and not problems.get(field.name):
                columns.append(_fit_column(data.column(field.name), field))
            else:
                columns.append(_fill_column(field, data.num_rows))
        except _Mismatch as mismatch:
            problems.setdefault(field.name, str(mismatch))
    if problems:
        lines = "".join(f"\n  - {name}: {problem}" for name, problem in problems.items())
        raise DataMismatch(f"the data does not fit the table:{lines}")
    return pa.Table.from_arrays(columns, schema=arrow_schema(fields))


def misfit(array: pa.Array, data_type: DataType) -> str | None:
    """Why some of the values cannot be written as this type; None if all of them can."""
    try:
        _fit(array, data_type)
    except _Mismatch as mismatch:
        return str(mismatch)
    return None


def unknown_column(name: str, fields: Iterable[DataField]) -> str:
    """What to say about a column that the table lacks: what it has, and what to do."""
    return f"is not a column of the table ({there_is(name, fields)})"


def there_is(name: str, fields: Iterable[DataField]) -> str:
    """What a table or a ROW has instead of a name, and what to do."""
    names = [f.name for f in fields]
    twin = next((known for known in names if known.lower() == name.lower()), None)
    if twin is not None:
        return f"it has {twin}: names must agree in case"
    there_are = choices(name, names, "it has")
    return there_are if there_are.endswith("?") else f"{there_are}; merge_schema=True would add it"


class _Mismatch(EmberlakeError):
    """One column does not fit."""


def _name_problems(
    data: pa.Schema, fields: tuple[DataField, ...], write_columns: tuple[str, ...] | None
) -> dict[str, str]:
    given = data.names
    known = {f.name for f in fields}
    expected = known if write_columns is None else set(write_columns)
    problems: dict[str, str] = {}
    for name, count in Counter(given).items():
        if count > 1:
            problems[name] = "is given more than once"
        elif name not in known:
            problems[name] = (
                "is not a column of the table, and null has no type; cast it, or leave it out"
                if pa.types.is_null(data.field(name).type)
                else unknown_column(name, fields)
            )
        elif name not in expected:
            problems[name] = "is not among the columns declared by with_write_type"
    if write_columns is not None:
        missing = [name for name in write_columns if name not in given]
        problems.update(dict.fromkeys(missing, "is declared by with_write_type but not given"))
    return problems


def _needs_checks(field: DataField) -> bool:
    return not field.type.nullable or _has_inner_rules(field.type)


def _fill_column(field: DataField, rows: int) -> pa.ChunkedArray:
    target = arrow_type(field.type)
    if field.default_value is not None:
        scalar = to_arrow_scalar(field.type, _default(field))
        return pa.chunked_array([pa.repeat(scalar, rows)], type=target)
    if not field.type.nullable:
        raise _Mismatch("is missing, and the column is NOT NULL")
    return pa.chunked_array([pa.nulls(rows, target)], type=target)


def _default(field: DataField) -> Value:
    try:
        return default_value(field.type, field.default_value or "")
    except InvalidInput as error:
        raise _Mismatch(f"its default value cannot be used: {error}") from error


def _fit_column(column: pa.ChunkedArray, field: DataField) -> pa.ChunkedArray:
    target = arrow_type(field.type)
    if column.type == target and not _has_inner_rules(field.type):
        fitted = column
    else:
        chunks = column.chunks or [pa.nulls(0, column.type)]
        fitted = pa.chunked_array([_fit(chunk, field.type) for chunk in chunks], type=target)
    if not field.type.nullable and fitted.null_count:
        nulls = "1 null" if fitted.null_count == 1 else f"{fitted.null_count} nulls"
        raise _Mismatch(f"holds {nulls}, and the column is NOT NULL")
    return fitted


def _has_inner_rules(data_type: DataType) -> bool:
    """Whether values can break a rule that the Arrow type does not express."""
    match data_type:
        case RowType(fields=fields):
            return any(not f.type.nullable or _has_inner_rules(f.type) for f in fields)
        case ArrayType(element=element) | MultisetType(element=element):
            return not element.nullable or _has_inner_rules(element)
        case MapType(key=key, value=value):
            return not value.nullable or _has_inner_rules(key) or _has_inner_rules(value)
        case _:
            return length_limit(data_type) is not None


def length_limit(data_type: DataType) -> int | None:
    """The most characters or bytes that values of the type have; None if there is no bound."""
    if isinstance(data_type, AtomicType) and 0 < data_type.length < MAX_LENGTH:
        return data_type.length
    return None


def _check_length(array: pa.Array, data_type: AtomicType) -> None:
    limit = length_limit(data_type)
    if limit is None:
        return
    lengths = pc.utf8_length(array) if data_type.root.is_text else pc.binary_length(array)
    longest = pc.max(lengths).as_py()
    if longest is not None and longest > limit:
        raise _Mismatch(f"holds a value of length {longest}; {data_type} takes at most {limit}")


def _fit(array: pa.Array, data_type: DataType) -> pa.Array:
    if pa.types.is_dictionary(array.type):
        array = decoded(array)
    elif pa.types.is_run_end_encoded(array.type):
        array = pc.run_end_decode(array)
    target = arrow_type(data_type)
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), target)
    match data_type:
        case RowType():
            return _fit_struct(array, data_type)
        case ArrayType(element=element):
            return _fit_list(array, element, target)
        case MapType() | MultisetType():
            return _fit_map(array, data_type, target)
        case AtomicType():
            return _fit_atomic(array, data_type, target)
        case _:
            raise _Mismatch(f"{array.type} cannot be written to {data_type}")


def _fit_struct(array: pa.Array, row: RowType) -> pa.Array:
    if not pa.types.is_struct(array.type):
        raise _Mismatch(f"{array.type} cannot be written to {row}")
    given = [f.name for f in array.type]
    parents = pc.is_valid(array)
    problems = [f"{name} is not in {row}" for name in given if row.field(name) is None]
    children = []
    for field in row.fields:
        try:
            child = _child(array, given, field)
            _check_required(child, field.type, "its value", within=parents)
            children.append(child)
        except _Mismatch as mismatch:
            problems.append(f"{field.name}: {mismatch}")
    if problems:
        raise _Mismatch(f"its fields do not fit: {'; '.join(problems)}")
    fields = [pa.field(f.name, arrow_type(f.type), nullable=f.type.nullable) for f in row.fields]
    return pa.StructArray.from_arrays(children, fields=fields, mask=pc.invert(parents))


def _child(array: pa.StructArray, given: list[str], field: DataField) -> pa.Array:
    if given.count(field.name) > 1:
        raise _Mismatch("is given more than once")
    if field.name in given:
        # Null wherever the parent is null, whatever the child holds there.
        return _fit(pc.struct_field(array, [given.index(field.name)]), field.type)
    if not field.type.nullable:
        raise _Mismatch("is missing, and NOT NULL")
    return pa.nulls(len(array), arrow_type(field.type))


def _fit_list(array: pa.Array, element: DataType, target: pa.DataType) -> pa.Array:
    if not _is_list(array.type):
        raise _Mismatch(f"{array.type} cannot be written to ARRAY<{element}>")
    values = _fit(array.flatten(), element)
    _check_required(values, element, "an element")
    return pa.ListArray.from_arrays(
        _offsets(pc.list_value_length(array)), values, type=target, mask=pc.is_null(array)
    )


def _fit_map(array: pa.Array, data_type: MapType | MultisetType, target: pa.DataType) -> pa.Array:
    if not pa.types.is_map(array.type):
        raise _Mismatch(f"{array.type} cannot be written to {data_type}")
    key_type = data_type.key if isinstance(data_type, MapType) else data_type.element
    value_type = data_type.value if isinstance(data_type, MapType) else AtomicType("INT", False)
    # A cast would refuse a null struct because its NOT NULL fields are null too.
    entries = relabelled(array, pa.list_(array.values.type), array.values)
    flat = entries.flatten()
    keys = _fit(pc.struct_field(flat, [0]), key_type)
    values = _fit(pc.struct_field(flat, [1]), value_type)
    _check_required(keys, key_type.with_nullable(False), "a key")
    _check_required(values, value_type, "a value")
    return pa.MapArray.from_arrays(
        _offsets(pc.list_value_length(entries)),
        keys,
        values,
        type=target,
        mask=pc.is_null(array),
    )


def _offsets(lengths: pa.Array) -> pa.Array:
    ends = pc.cumulative_sum(pc.fill_null(lengths, 0).cast(pa.int64()))
    try:
        return pa.concat_arrays([pa.array([0], pa.int32()), ends.cast(pa.int32())])
    except pa.ArrowInvalid as error:
        raise _Mismatch("holds too many elements at once: write smaller batches") from error


def _check_required(
    values: pa.Array, data_type: DataType, what: str, *, within: pa.Array | None = None
) -> None:
    if data_type.nullable or not values.null_count:
        return
    nulls = pc.is_null(values)
    if within is not None:
        nulls = pc.and_(nulls, within)
    if pc.any(nulls).as_py():
        raise _Mismatch(f"{what} is null, and its type is {data_type}")


@dataclass(frozen=True, slots=True)
class _Rule:
    """Which Arrow types may become which column types, and by which steps."""

    source: Callable[[pa.DataType], bool]
    roots: frozenset[TypeRoot]
    via: Callable[[pa.DataType, AtomicType], tuple[pa.DataType, ...]] = lambda _source, _target: ()


_INTEGERS: Final = frozenset({TypeRoot.TINYINT, TypeRoot.SMALLINT, TypeRoot.INT, TypeRoot.BIGINT})
_FLOATS: Final = frozenset({TypeRoot.FLOAT, TypeRoot.DOUBLE})
_TEXTS: Final = frozenset({TypeRoot.CHAR, TypeRoot.VARCHAR})
_BYTES: Final = frozenset({TypeRoot.BINARY, TypeRoot.VARBINARY})


def _any_of(*tests: Callable[[pa.DataType], bool]) -> Callable[[pa.DataType], bool]:
    return lambda kind: any(test(kind) for test in tests)


_is_list: Final = _any_of(
    pa.types.is_list,
    pa.types.is_large_list,
    pa.types.is_fixed_size_list,
    pa.types.is_list_view,
    pa.types.is_large_list_view,
)


def _wide_decimal(_source: pa.DataType, target: AtomicType) -> tuple[pa.DataType, ...]:
    # Arrow refuses to cast integers to a decimal that could not hold the widest integer, whatever
    # the values; going through the widest decimal checks the values instead.
    return (pa.decimal128(38, target.scale),)


_RULES: Final = (
    _Rule(pa.types.is_boolean, frozenset({TypeRoot.BOOLEAN})),
    _Rule(pa.types.is_integer, _INTEGERS | _FLOATS),
    _Rule(pa.types.is_integer, frozenset({TypeRoot.DECIMAL}), _wide_decimal),
    _Rule(_any_of(pa.types.is_float16, pa.types.is_float32), _FLOATS),
    _Rule(pa.types.is_float64, frozenset({TypeRoot.DOUBLE})),
    _Rule(pa.types.is_decimal, frozenset({TypeRoot.DECIMAL})),
    _Rule(
        _any_of(pa.types.is_string, pa.types.is_large_string, lambda k: k == pa.string_view()),
        _TEXTS,
    ),
    _Rule(
        _any_of(
            pa.types.is_binary,
            pa.types.is_large_binary,
            pa.types.is_fixed_size_binary,
            lambda k: k == pa.binary_view(),
        ),
        _BYTES,
    ),
    _Rule(pa.types.is_date, frozenset({TypeRoot.DATE})),
    _Rule(pa.types.is_time, frozenset({TypeRoot.TIME})),
    _Rule(
        lambda kind: pa.types.is_timestamp(kind) and kind.tz is None,
        frozenset({TypeRoot.TIMESTAMP}),
    ),
    _Rule(
        lambda kind: pa.types.is_timestamp(kind) and kind.tz is not None,
        frozenset({TypeRoot.TIMESTAMP_LTZ}),
    ),
)


def _fit_atomic(array: pa.Array, data_type: AtomicType, target: pa.DataType) -> pa.Array:
    if array.type == target:
        _check_length(array, data_type)
        return array
    rule = next((r for r in _RULES if r.source(array.type) and data_type.root in r.roots), None)
    if rule is None:
        raise _Mismatch(f"{array.type} cannot be written to {data_type}{_hint(array, data_type)}")
    try:
        for step in (*rule.via(array.type, data_type), target):
            array = array.cast(step, safe=True)
    except pa.ArrowInvalid as error:
        raise _Mismatch(f"{array.type} to {data_type} would lose data: {error}") from error
    _check_length(array, data_type)
    return array


def _hint(array: pa.Array, data_type: AtomicType) -> str:
    if pa.types.is_timestamp(array.type) and data_type.root.is_timestamp:
        zone = "a time zone" if data_type.root is TypeRoot.TIMESTAMP_LTZ else "no time zone"
        return f" (the column wants {zone}: convert it first)"
    return "; cast it first"


def as_tables(data: object) -> Iterable[pa.Table]:
    """The Arrow tables of the user's data: a table, a batch, or any Arrow stream."""
    if isinstance(data, pa.Table):
        yield data
    elif isinstance(data, pa.RecordBatch):
        yield pa.Table.from_batches([data])
    elif isinstance(data, pa.RecordBatchReader):
        # An empty table first: a stream without batches must fit too.
        yield pa.Table.from_batches([], data.schema)
        for batch in data:
            yield pa.Table.from_batches([batch])
    elif hasattr(data, "__arrow_c_stream__"):
        yield from as_tables(pa.RecordBatchReader.from_stream(data))
    else:
        raise InvalidInput(
            f"cannot write {type(data).__name__}: give an Arrow table or stream, or a pandas or "
            f"Polars DataFrame{_way_to_arrow(data)}"
        )


def _way_to_arrow(data: object) -> str:
    match data:
        case dict():
            return "; pa.table(...) makes one of columns: {'id': [1, 2]}"
        case list() | tuple():
            return "; pa.Table.from_pylist(...) makes one of rows: [{'id': 1}, {'id': 2}]"
        case _ if hasattr(data, "collect"):  # a query of Polars that has not run yet
            return ", such as .collect() returns"
        case _:
            return ""

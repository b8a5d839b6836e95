"""How single columns are aggregated: the functions, and the ``fields.<column>.*`` options.

Spec: "Merge engines". Options are checked first, as a list of problems, and read afterwards.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from emberlake.base.option_texts import parse_bool, parse_int, parse_words
from emberlake.options import DEFAULT_AGGREGATE, Choice, TableOptions
from emberlake.spec.aggregate import Aggregate, parse_aggregate
from emberlake.types import (
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    RowType,
    TypeRoot,
)
from emberlake.types.data_types import MAX_LENGTH

MAX_COUNT: Final = 2_147_483_647


class NestedKeyNulls(Choice):
    """What to do with nested rows whose nested key has nulls."""

    MERGE = "merge"
    IGNORE = "ignore"
    ERROR = "error"


@dataclass(frozen=True)
class Aggregator:
    """The function of one column with its settings."""

    function: Aggregate
    ignore_retract: bool = False
    distinct: bool = False  # LISTAGG, COLLECT
    delimiter: str = ","  # LISTAGG
    nested_key: tuple[str, ...] = ()  # NESTED_UPDATE, NESTED_PARTIAL_UPDATE
    nested_key_nulls: NestedKeyNulls = NestedKeyNulls.MERGE
    nested_sequence: tuple[str, ...] = ()  # NESTED_UPDATE
    count_limit: int = MAX_COUNT  # NESTED_UPDATE
    time_field: str | None = None  # MERGE_MAP_WITH_KEYTIME; None is the last field

    @property
    def takes_retracts(self) -> bool:
        """Whether -U and -D records retract their value, or are ignored."""
        return self.ignore_retract or self.function in _RETRACTABLE


# Functions that can retract a value.
_RETRACTABLE: Final = frozenset(
    {
        Aggregate.PRIMARY_KEY,
        Aggregate.SUM,
        Aggregate.PRODUCT,
        Aggregate.LAST_VALUE,
        Aggregate.LAST_NON_NULL_VALUE,
        Aggregate.COLLECT,
        Aggregate.MERGE_MAP,
        Aggregate.NESTED_UPDATE,
    }
)


def aggregate_of(options: TableOptions, column: str) -> Aggregate | None:
    """The function that the options give a column, its own or the default of all columns."""
    name = options.get(_key(column, "aggregate-function"))
    if name is None:
        name = options.value(DEFAULT_AGGREGATE)
    return None if name is None else parse_aggregate(name)


def read_aggregator(options: TableOptions, column: str, function: Aggregate) -> Aggregator:
    """A function with the settings of the column, which were checked before."""
    get = _Settings(options, column)
    delimiter = get.text("list-agg-delimiter")
    return Aggregator(
        function,
        ignore_retract=get.flag("ignore-retract"),
        distinct=get.flag("distinct"),
        delimiter="," if delimiter is None else delimiter,
        nested_key=get.words("nested-key"),
        nested_key_nulls=NestedKeyNulls(get.text("nested-key-null-strategy") or "merge"),
        nested_sequence=get.words("nested-sequence-field"),
        count_limit=int(get.text("count-limit") or MAX_COUNT),
        time_field=get.text("ts-field"),
    )


def check_aggregator(
    options: TableOptions, column: DataField, function: Aggregate
) -> Iterator[str]:
    """What is wrong with a function on a column, or with its settings."""
    key = _key(column.name, "aggregate-function")
    fits = _FITS.get(function)
    if fits is not None and not fits.test(column.type):
        yield f"{key}={function} needs {fits.expected}, not column {column}"
        return
    settings = list(_check_settings(options, column.name))
    yield from settings
    if settings:
        return
    aggregator = read_aggregator(options, column.name, function)
    if function in (Aggregate.NESTED_UPDATE, Aggregate.NESTED_PARTIAL_UPDATE):
        yield from _check_nested_key(options, column, aggregator)
    elif function is Aggregate.MERGE_MAP_WITH_KEYTIME:
        yield from _check_time(column, aggregator)


# --- settings -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Settings:
    options: TableOptions
    column: str

    def text(self, name: str) -> str | None:
        return self.options.get(_key(self.column, name))

    def flag(self, name: str) -> bool:
        return parse_bool(self.text(name) or "false")

    def words(self, name: str) -> tuple[str, ...]:
        return parse_words(self.text(name) or "")


_PARSERS: Final[dict[str, Callable[[str], object]]] = {
    "ignore-retract": parse_bool,
    "distinct": parse_bool,
    "count-limit": parse_int,
    "nested-key-null-strategy": NestedKeyNulls,
}


def _check_settings(options: TableOptions, column: str) -> Iterator[str]:
    for name, parse in _PARSERS.items():
        key = _key(column, name)
        if key in options:
            try:
                parse(options[key])
            except ValueError as error:
                yield f"{key}={options[key]}: {error}"


def _check_nested_key(
    options: TableOptions, column: DataField, aggregator: Aggregator
) -> Iterator[str]:
    null_strategy = "nested-key-null-strategy"
    needs_key = {
        "aggregate-function": aggregator.function is Aggregate.NESTED_PARTIAL_UPDATE,
        null_strategy: _key(column.name, null_strategy) in options,
        "nested-sequence-field": bool(aggregator.nested_sequence),
    }
    for name, is_needed in needs_key.items():
        if is_needed and not aggregator.nested_key:
            yield f"{_key(column.name, name)} needs {_key(column.name, 'nested-key')}"
    for name in aggregator.nested_key:
        if _field_inside(column, name) is None:
            yield _no_field(column, "nested-key", name)
    for name in aggregator.nested_sequence:
        field = _field_inside(column, name)
        if field is None:
            yield _no_field(column, "nested-sequence-field", name)
        elif not is_ordered(field.type):
            yield f"{_key(column.name, 'nested-sequence-field')} names {name}, which has no order"


def _check_time(column: DataField, aggregator: Aggregator) -> Iterator[str]:
    row = _row_inside(column.type)
    assert row is not None
    name = aggregator.time_field or row.fields[-1].name
    field = row.field(name)
    if field is None:
        yield _no_field(column, "ts-field", name)
    elif not (isinstance(field.type, AtomicType) and field.type.root.is_text):
        yield (
            f"{aggregator.function} compares times as texts, but field {name} of column "
            f"{column.name} is {field.type}"
        )


def _field_inside(column: DataField, name: str) -> DataField | None:
    row = _row_inside(column.type)
    return None if row is None else row.field(name)


def _no_field(column: DataField, setting: str, name: str) -> str:
    return f"{_key(column.name, setting)} names {name}, which {column} does not have"


def _key(column: str, setting: str) -> str:
    return f"fields.{column}.{setting}"


# --- which types a function takes -----------------------------------------------------------------


@dataclass(frozen=True)
class _Fit:
    expected: str
    test: Callable[[DataType], bool]


def _has_root(*roots: TypeRoot) -> Callable[[DataType], bool]:
    return lambda data_type: isinstance(data_type, AtomicType) and data_type.root in roots


def is_ordered(data_type: DataType) -> bool:
    """Whether values of a type can be compared."""
    return isinstance(data_type, AtomicType) and not data_type.root.is_opaque


def _is_unbounded_text(data_type: DataType) -> bool:
    return (
        isinstance(data_type, AtomicType)
        and data_type.root is TypeRoot.VARCHAR
        and data_type.length == MAX_LENGTH
    )


def _row_inside(data_type: DataType) -> RowType | None:
    match data_type:
        case ArrayType(element=RowType() as row) | MapType(value=RowType() as row):
            return row
        case _:
            return None


def _is_array_of_rows(data_type: DataType) -> bool:
    return isinstance(data_type, ArrayType) and isinstance(data_type.element, RowType)


def _is_map_of_rows(data_type: DataType) -> bool:
    row = _row_inside(data_type)
    return isinstance(data_type, MapType) and row is not None and len(row.fields) > 1


_NUMBER: Final = _Fit(
    "a number",
    lambda data_type: isinstance(data_type, AtomicType) and data_type.root.is_number,
)
_ORDERED: Final = _Fit("a type with an order", is_ordered)
_BOOLEAN: Final = _Fit("BOOLEAN", _has_root(TypeRoot.BOOLEAN))
_BYTES: Final = _Fit("BYTES", _has_root(TypeRoot.VARBINARY))
_ROWS: Final = _Fit("ARRAY<ROW<...>>", _is_array_of_rows)
_FITS: Final = {
    Aggregate.SUM: _NUMBER,
    Aggregate.PRODUCT: _NUMBER,
    Aggregate.MAX: _ORDERED,
    Aggregate.MIN: _ORDERED,
    Aggregate.LISTAGG: _Fit("STRING", _is_unbounded_text),
    Aggregate.BOOL_AND: _BOOLEAN,
    Aggregate.BOOL_OR: _BOOLEAN,
    Aggregate.COLLECT: _Fit("ARRAY", lambda data_type: isinstance(data_type, ArrayType)),
    Aggregate.MERGE_MAP: _Fit("MAP", lambda data_type: isinstance(data_type, MapType)),
    Aggregate.MERGE_MAP_WITH_KEYTIME: _Fit("MAP of ROW with two fields or more", _is_map_of_rows),
    Aggregate.NESTED_UPDATE: _ROWS,
    Aggregate.NESTED_PARTIAL_UPDATE: _ROWS,
    Aggregate.RBM32: _BYTES,
    Aggregate.RBM64: _BYTES,
    Aggregate.HLL_SKETCH: _BYTES,
    Aggregate.THETA_SKETCH: _BYTES,
}

"""Rules of a server as values of this engine: a filter of rows, and masks of columns.

    {"kind": "LEAF", "transform": <transform>, "function": "EQUAL", "literals": [1]}
    {"kind": "COMPOUND", "function": "AND", "children": [...]}
    {"name": "FIELD_REF", "fieldRef": {"name": "k", ...}}      {"name": "UPPER", "inputs": [...]}

Columns are found by name; indices and types of the answer are not used. Everything that is not
known is refused: a rule that is not understood must not be left out.
"""

import decimal
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from emberlake.base.names import listed
from emberlake.errors import DataMismatch, InvalidInput, ServerError, Unsupported
from emberlake.expressions.binding import Expression
from emberlake.expressions.coercion import STRING, is_text
from emberlake.expressions.evaluate import Frame, evaluate
from emberlake.expressions.functions import apply, cast, explicit_cast
from emberlake.expressions.typed import UNTYPED_NULL, Column, Constant, Typed, parts_of
from emberlake.predicates import (
    ALL_SHOWN,
    And,
    Computed,
    Mask,
    Op,
    Or,
    Predicate,
    RowRules,
    and_all,
    or_all,
)
from emberlake.predicates.builder import Target
from emberlake.predicates.like import escape_like
from emberlake.rest.query_auth import QueryAuth
from emberlake.rest.reading import Fields
from emberlake.spec.literals import cast_literal
from emberlake.spec.row_tracking import readable_fields
from emberlake.spec.schema import TableSchema
from emberlake.spec.values import to_arrow_scalar
from emberlake.store.table_store import TableStore
from emberlake.types import AtomicType, DataField, DataType, TypeRoot, arrow_type
from emberlake.types.json import type_from_json

_ALWAYS: Final = And(())
_NEVER: Final = Or(())
_RULE: Final = "a rule of the server"


def rules_of(answer: QueryAuth, store: TableStore) -> RowRules:
    """The rules of an answer, for the columns that the table has at the time that is read.

    Raises:
        Unsupported: a rule names a function or a transform that is not known, or a column that is
            not the same one at that time.
        ServerError: a rule is not what the protocol says, or does not fit the table.
    """
    if not answer.restricts:
        return ALL_SHOWN
    columns = _Columns.of(store)
    found = [_read(rule, lambda value: _predicate(value, columns)) for rule in answer.filters]
    masks = [
        Mask(field, _mask(field, rule, columns))
        for name, rule in answer.masks.items()
        if (field := columns.find(name)) is not None
    ]
    for mask in masks:
        others = mask.value.columns & answer.masks.keys() - {mask.field.name}
        if others:
            raise Unsupported(
                f"{_RULE} masks {mask.field.name} with values of {listed(sorted(others))}, which "
                "it masks too: what that hides would be shown"
            )
    return RowRules(and_all(found), tuple(masks))


@dataclass(frozen=True)
class _Columns:
    """The columns that rules can name: as they are now, and as they were at the time of a read."""

    now: Mapping[str, DataField]
    then: Mapping[str, DataField]

    @staticmethod
    def of(store: TableStore) -> "_Columns":
        latest = store.schemas.latest() or store.schema
        return _Columns(_by_name(latest), _by_name(store.schema))

    def find(self, name: str) -> DataField | None:
        """The column that a rule means; None if the table did not have it yet.

        Raises:
            Unsupported: the name means another column, or none.
        """
        now, then = self.now.get(name), self.then.get(name)
        if now is None:
            raise Unsupported(
                f"{_RULE} names the column {name}, which the table does not have; the rule may be "
                "older than a change of the table"
            )
        if then is not None and then.id == now.id:
            return then
        same = next((field.name for field in self.then.values() if field.id == now.id), None)
        if then is None and same is None:
            return None
        raise Unsupported(
            f"{_RULE} names the column {name}, which was "
            f"{f'named {same}' if same else 'another column'} at the time that is read: read the "
            "table as it is now"
        )

    def get(self, name: str) -> DataField:
        """The column that a rule needs."""
        field = self.find(name)
        if field is None:
            raise Unsupported(
                f"{_RULE} needs the column {name}, which the table did not have at the time that "
                "is read"
            )
        return field


def _by_name(schema: TableSchema) -> dict[str, DataField]:
    return {field.name: field for field in readable_fields(schema)}


def _read(rule: str, decode: Callable[[Any], Any]) -> Any:
    """What a function makes of the JSON of a rule."""
    try:
        value = json.loads(rule, parse_float=decimal.Decimal)
        return decode(value)
    except Unsupported:
        raise
    except (InvalidInput, ValueError, RecursionError) as error:
        raise ServerError(f"{_RULE} cannot be applied to the table: {error}") from error


# --- filters --------------------------------------------------------------------------------------


def _predicate(value: object, columns: _Columns) -> Predicate:
    fields = Fields(value, "a filter")
    kind = fields.text("kind")
    if kind == "LEAF":
        return _leaf(fields, columns)
    if kind != "COMPOUND":
        raise Unsupported(f"{_RULE} is a filter of the kind {kind}, which is not known")
    function = fields.text("function")
    children = [_predicate(child, columns) for child in fields.objects("children")]
    if function not in ("AND", "OR"):
        raise Unsupported(f"{_RULE} joins filters with {function}, which is not known")
    if not children:
        raise InvalidInput(f"{function} joins no filters")
    return And(tuple(children)) if function == "AND" else Or(tuple(children))


def _leaf(fields: Fields, columns: _Columns) -> Predicate:
    function, literals = fields.text("function"), fields.objects("literals")
    if function in ("TRUE", "FALSE"):
        return _ALWAYS if function == "TRUE" else _NEVER
    if function not in _LITERALS:
        raise Unsupported(f"{_RULE} compares with {function}, which is not known")
    expected = _LITERALS[function]
    if expected is not None and len(literals) != expected:
        raise InvalidInput(f"{function} has {len(literals)} literals, not {expected}")
    typed = _transformed(fields.raw("transform"), columns)
    if typed.type is None:  # NULL is nothing but null
        return _ALWAYS if function == "IS_NULL" else _NEVER
    values = [_literal(typed.type, each) for each in literals]
    if None in values and function != "IN":
        return _NEVER
    if isinstance(typed, Column):
        return _compared(function, Target(typed.field, (), typed.type), values)
    return _computed(function, typed, typed.type, values)


_LITERALS: Final[Mapping[str, int | None]] = {
    **dict.fromkeys(("IS_NULL", "IS_NOT_NULL"), 0),
    **dict.fromkeys(("EQUAL", "NOT_EQUAL", "LESS_THAN", "LESS_OR_EQUAL"), 1),
    **dict.fromkeys(("GREATER_THAN", "GREATER_OR_EQUAL"), 1),
    **dict.fromkeys(("STARTS_WITH", "ENDS_WITH", "CONTAINS", "LIKE"), 1),
    **dict.fromkeys(("BETWEEN", "NOT_BETWEEN"), 2),
    **dict.fromkeys(("IN", "NOT_IN")),
}
_SIGNS: Final = {
    "EQUAL": "=",
    "NOT_EQUAL": "<>",
    "LESS_THAN": "<",
    "LESS_OR_EQUAL": "<=",
    "GREATER_THAN": ">",
    "GREATER_OR_EQUAL": ">=",
}
_PATTERNS: Final[Mapping[str, Callable[[str], str]]] = {
    "LIKE": lambda pattern: pattern,
    "STARTS_WITH": lambda text: f"{escape_like(text)}%",
    "ENDS_WITH": lambda text: f"%{escape_like(text)}",
    "CONTAINS": lambda text: f"%{escape_like(text)}%",
}


def _compared(function: str, target: Target, values: Sequence[object]) -> Predicate:
    """A comparison of a column; files that cannot match it are skipped."""
    match function:
        case "IS_NULL" | "IS_NOT_NULL":
            return target.leaf(Op[function])
        case "IN":
            return target.is_in(values)
        case "NOT_IN":
            return target.is_not_in(values) if values else target.leaf(Op.IS_NOT_NULL)
        case "BETWEEN":
            return target.between(*values)
        case "NOT_BETWEEN":
            return target.not_between(*values)
        case "LIKE":
            return target.like(*values)
        case "STARTS_WITH" | "ENDS_WITH" | "CONTAINS":
            return target.match_text(Op[function], *values)
        case _:
            return target.compare(Op[function], *values)


def _computed(
    function: str, typed: Typed, data_type: DataType, values: Sequence[object]
) -> Predicate:
    """A comparison of something that has to be computed for every row."""

    def test(sign: str, value: object) -> Predicate:
        known = cast_literal(data_type, value)
        return _condition(apply(sign, [typed, _constant(known, data_type)]))

    match function:
        case "IS_NULL":
            return _condition(apply("IS NULL", [typed]))
        case "IS_NOT_NULL":
            return _known(typed)
        case "IN":
            return or_all(test("=", value) for value in values if value is not None) or _NEVER
        case "NOT_IN":
            return and_all(test("<>", value) for value in values) or _known(typed)
        case "BETWEEN":
            return And((test(">=", values[0]), test("<=", values[1])))
        case "NOT_BETWEEN":
            return Or((test("<", values[0]), test(">", values[1])))
        case _ if function in _PATTERNS:
            pattern = _constant(_PATTERNS[function](str(values[0])), STRING)
            return _condition(apply("LIKE", [typed, pattern]))
        case _:
            return test(_SIGNS[function], values[0])


def _condition(typed: Typed) -> Computed:
    return Computed(_columns_in(typed), _RuleCondition(typed))


def _known(typed: Typed) -> Computed:
    return _condition(apply("NOT", [apply("IS NULL", [typed])]))


def _constant(value: Any, data_type: DataType) -> Constant:
    return Constant(to_arrow_scalar(data_type, value), data_type)


def _literal(data_type: DataType, value: object) -> object:
    """A literal of JSON as one of ours: moments are lists of numbers, or seconds since 1970."""
    root = data_type.root if isinstance(data_type, AtomicType) else None
    match value:
        case list() if root is not None and all(type(each) is int for each in value):
            return _moment(root, value)
        case int() | decimal.Decimal() if root is TypeRoot.TIMESTAMP_LTZ:
            return np.datetime64(int(decimal.Decimal(value) * 1_000_000_000), "ns")
        case None | bool() | int() | decimal.Decimal() | str():
            return value
        case _:
            raise InvalidInput(f"{value!r} is not a literal of {data_type}")


def _moment(root: TypeRoot, parts: Sequence[int]) -> str:
    """A date, a time or both, of numbers from the largest to the smallest; the last are nanos."""
    if root is TypeRoot.TIME:
        hour, minute, second, nanos = (*parts, *[0] * (4 - len(parts)))
        return f"{hour:02}:{minute:02}:{second:02}.{nanos:09}"
    year, month, day, *clock = parts
    date = f"{year:04}-{month:02}-{day:02}"
    return f"{date} {_moment(TypeRoot.TIME, clock)}" if root.is_timestamp else date


# --- transforms and masks -------------------------------------------------------------------------


def _mask(field: DataField, rule: str, columns: _Columns) -> "_RuleValue":
    typed = _read(rule, lambda value: _transformed(value, columns))
    target = field.type.with_nullable(True)
    is_fitting = typed.type is None or typed.type.with_nullable(True) == target
    if not is_fitting and not (is_text(typed.type) and is_text(target)):
        raise Unsupported(
            f"{_RULE} masks {field.name} {field.type} with values of the type {typed.type}"
        )
    return _RuleValue(field, cast(typed, target) if typed.type is None else typed)


def _transformed(value: object, columns: _Columns) -> Typed:
    """What a transform makes of the values of a row."""
    fields = Fields(value, "a transform")
    name = fields.text("name")
    match name:
        case "FIELD_REF":
            return _column(fields.raw("fieldRef"), columns)
        case "CAST":
            return explicit_cast(
                _column(fields.raw("fieldRef"), columns), fields.read("type", type_from_json)
            )
        case "UPPER" | "LOWER" | "CONCAT" | "CONCAT_WS":
            return apply(name, [_input(each, columns) for each in fields.objects("inputs")])
        case "NULL":
            return UNTYPED_NULL
        case _:
            raise Unsupported(f"{_RULE} has the transform {name}, which is not known")


def _column(value: object, columns: _Columns) -> Column:
    field = columns.get(Fields(value, "a reference to a column").text("name"))
    return Column(0, field, (), field.type)


def _input(value: object, columns: _Columns) -> Typed:
    match value:
        case None:
            return UNTYPED_NULL
        case str():
            return _constant(value, STRING)
        case _:
            return _column(value, columns)


def _columns_in(typed: Typed) -> tuple[DataField, ...]:
    found = {part.field.name: part.field for part in parts_of(typed) if isinstance(part, Column)}
    return tuple(found.values())


@dataclass(frozen=True)
class _RuleCondition:
    """A filter that has to be computed. If that fails, the error shows no value of the table."""

    typed: Typed

    def matches(self, rows: pa.RecordBatch | pa.Table) -> pa.Array:
        """True, false or null for every row."""
        return _computed_for(self.typed, rows, "a filter")

    def __str__(self) -> str:
        return _RULE


@dataclass(frozen=True)
class _RuleValue:
    """What stands for the values of a column."""

    field: DataField
    typed: Typed

    @property
    def columns(self) -> frozenset[str]:
        """The columns whose stored values it is made of."""
        return frozenset(field.name for field in _columns_in(self.typed))

    def values(self, rows: pa.Table) -> pa.ChunkedArray:
        """A value for every row."""
        made = _computed_for(self.typed, rows, f"the mask of {self.field.name}")
        return pa.chunked_array([made.cast(arrow_type(self.field.type))])


def _computed_for(typed: Typed, rows: pa.RecordBatch | pa.Table, what: str) -> pa.Array:
    try:
        return evaluate(Expression(typed, what), Frame(rows.num_rows, {0: rows}))
    except DataMismatch:
        pass
    raise DataMismatch(  # outside of the handler: the error that it caught names the value
        f"{what} that the server of the catalog sets cannot be computed for every row; whoever "
        "manages the catalog has to change it"
    )

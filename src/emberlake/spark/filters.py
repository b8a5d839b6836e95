"""Translates predicates to Spark expressions that keep exactly the same rows.

An expression is true for exactly the rows for which the predicate is true. For other rows one may
be false where the other is unknown, which does not matter because there is no NOT. Spark differs
from us in floats: in Spark, NaN equals itself and is greater than every number. Its Parquet reader
also skips row groups by itself: statistics of a file know nothing of NaN, and dictionaries
distinguish the two zeros. So conditions that NaN satisfies are written in a form that the reader
cannot use, and zero is written as the range between -0.0 and 0.0.
"""

import functools
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, assert_never

from pyspark.sql import Column
from pyspark.sql import functions as sql

from emberlake.base.names import backquoted
from emberlake.predicates import And, Computed, Leaf, Op, Or, Predicate
from emberlake.predicates.like import LikeToken, Wildcard, escape_like, parse_like
from emberlake.spark.types import is_same_in_spark, to_spark_type
from emberlake.spec.values import NANOS_OF_UNIT, NANOS_PER_DAY, Value, format_value, nanos_per_tick
from emberlake.types import AtomicType, TypeRoot

_MICROS: Final = range(-(1 << 63), 1 << 63)
_YEARS_1_TO_9999: Final = range(-719_162 * NANOS_PER_DAY, 2_932_897 * NANOS_PER_DAY)
# Spark passes a date or an instant to its reader in a calendar of the JVM's zone. Since 1900 that
# is the same day, except for these, which some islands skipped to cross the date line.
_DAYS_SINCE_1900: Final = range(-25_567, 2_932_897)
_SKIPPED_DAYS: Final = frozenset({8_633, 9_130, 9_131, 15_338})
_NANOS_SINCE_1900: Final = range(-25_567 * NANOS_PER_DAY, _YEARS_1_TO_9999.stop)


def to_column(predicate: Predicate) -> Column | None:
    """The condition on a DataFrame that keeps the same rows; None if Spark cannot express it.

    Spark cannot express comparisons of TIME, whose literals a session may refuse, of timestamps
    that are finer than its own, and of TIMESTAMP with literals outside of the years 1 to 9999.
    """
    match predicate:
        case Leaf():
            return _test(predicate)
        case And(children):
            return _join(operator.and_, children, nothing=True)
        case Or(children):
            return _join(operator.or_, children, nothing=False)
        case Computed():  # workers compute it, with our own functions
            return None
        case _:
            assert_never(predicate)


def _join(
    combine: Callable[[Any, Any], Any], children: Sequence[Predicate], *, nothing: bool
) -> Column | None:
    if not children:
        return sql.lit(nothing)
    columns = [column for child in children if (column := to_column(child)) is not None]
    return functools.reduce(combine, columns) if len(columns) == len(children) else None


def _test(leaf: Leaf) -> Column | None:
    column = sql.col(backquoted(leaf.column.name))
    for name in leaf.path:
        column = column.getField(name)
    if leaf.op is Op.IS_NULL:
        return column.isNull()
    if leaf.op is Op.IS_NOT_NULL:
        return column.isNotNull()
    data_type = leaf.type
    if not (isinstance(data_type, AtomicType) and _is_expressible(data_type, leaf.literals)):
        return None
    if leaf.op.is_text_only:
        text = leaf.literals[0]
        return _never() if text is None else _match_text(column, leaf.op, str(text))
    return _compare(*_subject(column, data_type, leaf.literals), leaf.op)


def _is_expressible(data_type: AtomicType, literals: Sequence[Value]) -> bool:
    """Whether Spark can represent the literals, and the values that they are compared with."""
    if not is_same_in_spark(data_type):
        return False
    match data_type.root:
        case TypeRoot.TIMESTAMP:
            return _are_within(_YEARS_1_TO_9999, literals)
        case TypeRoot.TIMESTAMP_LTZ:
            return _are_within(_MICROS, _to_micros(data_type, literals))
        case _:
            return True


def _subject(
    column: Column, data_type: AtomicType, literals: Sequence[Value]
) -> tuple["_Values", Sequence[Value]]:
    """The two sides of a comparison; as numbers if Spark's reader must not use it."""
    match data_type.root:
        case TypeRoot.FLOAT | TypeRoot.DOUBLE:
            return _Floats(column, data_type), literals
        case TypeRoot.DATE if not (
            _are_within(_DAYS_SINCE_1900, literals) and _SKIPPED_DAYS.isdisjoint(literals)
        ):
            return _Values(sql.unix_date(column), AtomicType("INT")), literals
        case TypeRoot.TIMESTAMP_LTZ if not _are_within(_NANOS_SINCE_1900, literals):
            micros = _to_micros(data_type, literals)
            return _Values(sql.unix_micros(column), AtomicType("BIGINT")), micros
        case _:
            return _Values(column, data_type), literals


def _are_within(span: range, literals: Sequence[Value]) -> bool:
    return all(literal in span for literal in literals if literal is not None)


def _compare(values: "_Values", literals: Sequence[Value], op: Op) -> Column:
    known = [literal for literal in literals if literal is not None]
    match op:
        case Op.IN:
            return values.one_of(known) if known else _never()
        case Op.NOT_IN if not literals:
            return sql.lit(True)
        case Op.NOT_BETWEEN:
            # True if a value is outside one bound, even if the other bound is null.
            low, high = literals
            sides = [] if low is None else [values.not_at_least(low)]
            sides += [] if high is None else [values.not_at_most(high)]
            return functools.reduce(operator.or_, sides, _never())
        case _ if len(known) < len(literals):  # compared with null: unknown
            return _never()
        case Op.NOT_IN | Op.NOT_EQUAL:
            return values.none_of(known)
        case Op.BETWEEN:
            return values.at_least(known[0]) & values.at_most(known[1])
        case _:
            return _COMPARISONS[op](values, known[0])


def _never() -> Column:
    return sql.lit(False)


# --- texts ----------------------------------------------------------------------------------------


def _match_text(column: Column, op: Op, text: str) -> Column:
    match op:
        case Op.STARTS_WITH:
            return column.startswith(text)
        case Op.ENDS_WITH:
            return column.endswith(text)
        case Op.CONTAINS:
            return column.contains(text)
        case Op.LIKE:
            return column.like(_spark_pattern(text))
        case _:
            return ~column.like(_spark_pattern(text))


def _spark_pattern(pattern: str) -> str:
    """The same pattern, with escapes only before characters that Spark allows to be escaped."""

    def written(token: LikeToken) -> str:
        return token.value if isinstance(token, Wildcard) else escape_like(token)

    return "".join(written(token) for token in parse_like(pattern))


# --- comparisons ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Values:
    """The values of a column, and the conditions on them."""

    column: Column
    type: AtomicType

    def literal(self, value: Value) -> Column:
        return to_literal(self.type, value)

    def equal(self, value: Value) -> Column:
        return self.column == self.literal(value)

    def below(self, value: Value) -> Column:
        return self.column < self.literal(value)

    def at_most(self, value: Value) -> Column:
        return self.column <= self.literal(value)

    def above(self, value: Value) -> Column:
        return self.column > self.literal(value)

    def at_least(self, value: Value) -> Column:
        return self.column >= self.literal(value)

    def not_at_least(self, value: Value) -> Column:
        return self.below(value)

    def not_at_most(self, value: Value) -> Column:
        return self.above(value)

    def one_of(self, values: Sequence[Value]) -> Column:
        if len(values) == 1:
            return self.column == self.literal(values[0])
        return self.column.isin([self.literal(value) for value in values])

    def none_of(self, values: Sequence[Value]) -> Column:
        return ~self.one_of(values)


@dataclass(frozen=True)
class _Floats(_Values):
    """Floats compare by IEEE: NaN differs from everything, and is neither above nor below."""

    @property
    def is_nan(self) -> Column:
        return sql.isnan(self.column)

    def equal(self, value: Value) -> Column:
        return self.one_of([value])

    def below(self, value: Value) -> Column:
        return _never() if _is_nan(value) else super().below(value)

    def at_most(self, value: Value) -> Column:
        return _never() if _is_nan(value) else super().at_most(value or 0.0)

    def above(self, value: Value) -> Column:
        return _never() if _is_nan(value) else super().above(value) & ~self.is_nan

    def at_least(self, value: Value) -> Column:
        return _never() if _is_nan(value) else super().at_least(value or -0.0) & ~self.is_nan

    def not_at_least(self, value: Value) -> Column:
        return self.column.isNotNull() if _is_nan(value) else self.is_nan | super().below(value)

    def not_at_most(self, value: Value) -> Column:
        return self.column.isNotNull() if _is_nan(value) else self.is_nan | super().above(value)

    def one_of(self, values: Sequence[Value]) -> Column:
        others = [value for value in values if value and not _is_nan(value)]
        found = super().one_of(others) if others else _never()
        has_zero = any(value == 0 for value in values)
        return found | (self.at_least(0.0) & self.at_most(0.0)) if has_zero else found

    def none_of(self, values: Sequence[Value]) -> Column:
        return (self.is_nan | ~self.one_of(values)) & self.column.isNotNull()


def _is_nan(value: Value) -> bool:
    return isinstance(value, float) and math.isnan(value)


_COMPARISONS: Final[dict[Op, Callable[[_Values, Value], Column]]] = {
    Op.EQUAL: lambda values, value: values.equal(value),
    Op.LESS_THAN: lambda values, value: values.below(value),
    Op.LESS_OR_EQUAL: lambda values, value: values.at_most(value),
    Op.GREATER_THAN: lambda values, value: values.above(value),
    Op.GREATER_OR_EQUAL: lambda values, value: values.at_least(value),
}


# --- literals -------------------------------------------------------------------------------------


def to_literal(data_type: AtomicType, value: Value) -> Column:
    """A value as a Spark literal of the type; not for TIME."""
    return _LITERALS[data_type.root](data_type, value)


def _plain(_type: AtomicType, value: Value) -> Column:
    return sql.lit(value)


def _cast(data_type: AtomicType, value: Value) -> Column:
    # In the type of the column; otherwise Spark would cast the column instead.
    return sql.lit(value).cast(to_spark_type(data_type))


def _decimal(data_type: AtomicType, value: Value) -> Column:
    return sql.lit(format_value(data_type, value)).cast(to_spark_type(data_type))


def _date(_type: AtomicType, value: Value) -> Column:
    return sql.date_from_unix_date(sql.lit(value))


def _zoned_timestamp(data_type: AtomicType, value: Value) -> Column:
    return sql.timestamp_micros(sql.lit(_to_micros(data_type, [value])[0]))


def _timestamp(data_type: AtomicType, value: Value) -> Column:
    # Text is the only form that is not affected by a time zone.
    text = format_value(data_type, _whole_ticks(data_type, value))
    return sql.lit(text).cast(to_spark_type(data_type))


def _to_micros(data_type: AtomicType, literals: Sequence[Value]) -> list[Value]:
    return [
        None if value is None else _whole_ticks(data_type, value) // NANOS_OF_UNIT["us"]
        for value in literals
    ]


def _whole_ticks(data_type: AtomicType, nanos: Value) -> int:
    """Nanoseconds, truncated to the unit of the column's Arrow type, as evaluation does."""
    assert isinstance(nanos, int)
    return nanos - nanos % nanos_per_tick(data_type)


_LITERALS: Final[dict[TypeRoot, Callable[[AtomicType, Value], Column]]] = {
    TypeRoot.BOOLEAN: _plain,
    TypeRoot.TINYINT: _cast,
    TypeRoot.SMALLINT: _cast,
    TypeRoot.INT: _plain,
    TypeRoot.BIGINT: _plain,
    TypeRoot.FLOAT: _cast,
    TypeRoot.DOUBLE: _plain,
    TypeRoot.DECIMAL: _decimal,
    TypeRoot.CHAR: _plain,
    TypeRoot.VARCHAR: _plain,
    TypeRoot.BINARY: _plain,
    TypeRoot.VARBINARY: _plain,
    TypeRoot.DATE: _date,
    TypeRoot.TIMESTAMP: _timestamp,
    TypeRoot.TIMESTAMP_LTZ: _zoned_timestamp,
}

"""Translates filters that Spark pushes down to predicates that keep exactly the same rows.

Spark sorts NaN above all numbers and treats it as equal to itself, but our predicates follow IEEE:
Spark's ``x > 1`` is our ``NOT (x <= 1)``. Filters without an exact counterpart stay with Spark: NaN
as a literal, timestamps finer than Spark's, the row kind, nested values, and the complement of text
matches.
"""

import math
from collections.abc import Mapping
from typing import Final

import numpy as np
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

from emberlake.errors import InvalidPredicate
from emberlake.predicates import Predicate, or_all
from emberlake.predicates.builder import Target
from emberlake.predicates.expressions import Op
from emberlake.read.projection import Projection
from emberlake.spark.types import is_same_in_spark
from emberlake.spec.schema import TableSchema
from emberlake.types import AtomicType, DataType, RowType

# Comparisons that are false for NaN in both, and those that are true for NaN only in Spark: each is
# the complement of one of the former.
_FALSE_FOR_NAN: Final[Mapping[type[Filter], Op]] = {
    LessThan: Op.LESS_THAN,
    LessThanOrEqual: Op.LESS_OR_EQUAL,
}
_TRUE_FOR_NAN: Final[Mapping[type[Filter], Op]] = {
    GreaterThan: Op.LESS_OR_EQUAL,
    GreaterThanOrEqual: Op.LESS_THAN,
}
_TEXT_TESTS: Final[Mapping[type[Filter], Op]] = {
    StringStartsWith: Op.STARTS_WITH,
    StringEndsWith: Op.ENDS_WITH,
    StringContains: Op.CONTAINS,
}


def to_predicate(pushed: Filter, schema: TableSchema, projection: Projection) -> Predicate | None:
    """The predicate that matches exactly the rows of a Spark filter; None if there is none."""
    negated = isinstance(pushed, Not)
    inner = pushed.child if isinstance(pushed, Not) else pushed
    target = _target(getattr(inner, "attribute", ()), schema, projection)
    if target is None:
        return None
    try:
        return _negated(inner, target) if negated else _positive(inner, target)
    except InvalidPredicate:  # a literal that our builder does not accept
        return None


def _positive(pushed: Filter, target: Target) -> Predicate | None:
    match pushed:
        case IsNull():
            return target.leaf(Op.IS_NULL)
        case IsNotNull():
            return target.leaf(Op.IS_NOT_NULL)
        case EqualNullSafe(value=None):
            return target.leaf(Op.IS_NULL)
        case EqualTo(value=value) | EqualNullSafe(value=value) if _is_plain(target, value):
            return target.compare(Op.EQUAL, value)
        case In(value=values) if all(v is None or _is_plain(target, v) for v in values):
            return target.is_in(values)
        case StringStartsWith() | StringEndsWith() | StringContains():
            return target.match_text(_TEXT_TESTS[type(pushed)], pushed.value)
        case _:
            return _ordered(pushed, target, negated=False)


def _negated(pushed: Filter, target: Target) -> Predicate | None:
    match pushed:
        case IsNull():
            return target.leaf(Op.IS_NOT_NULL)
        case IsNotNull():
            return target.leaf(Op.IS_NULL)
        case EqualNullSafe(value=None):
            return target.leaf(Op.IS_NOT_NULL)
        case EqualNullSafe(value=value) if _is_plain(target, value):
            return or_all([target.leaf(Op.IS_NULL), target.compare(Op.NOT_EQUAL, value)])
        case EqualTo(value=value) if _is_plain(target, value):
            return target.compare(Op.NOT_EQUAL, value)
        case In(value=values) if all(v is None or _is_plain(target, v) for v in values):
            return target.is_not_in(values)
        case StringStartsWith() | StringEndsWith() | StringContains():
            return None
        case _:
            return _ordered(pushed, target, negated=True)


def _ordered(pushed: Filter, target: Target, *, negated: bool) -> Predicate | None:
    value = getattr(pushed, "value", None)
    if not _is_plain(target, value):
        return None
    if type(pushed) in _FALSE_FOR_NAN:
        op, is_complement = _FALSE_FOR_NAN[type(pushed)], negated
    elif type(pushed) in _TRUE_FOR_NAN:
        op, is_complement = _TRUE_FOR_NAN[type(pushed)], not negated
    else:
        return None
    return target.not_compare(op, value) if is_complement else target.compare(op, value)


def _is_plain(target: Target, value: object) -> bool:
    """Whether comparisons with the value mean the same in Spark and in emberlake."""
    kind = target.type
    if value is None or not is_same_in_spark(kind):
        return False
    if isinstance(value, float) and kind == AtomicType("FLOAT", kind.nullable):
        # A literal between two values of the column would be rounded to the nearer one. NaN, which
        # equals nothing, is refused here too.
        return float(np.float32(value)) == value
    return not (isinstance(value, float) and math.isnan(value))


def _target(
    attribute: tuple[str, ...], schema: TableSchema, projection: Projection
) -> Target | None:
    """The column, or the field of a ROW, that Spark's name refers to; None for the row kind."""
    found = next((o for o in projection.outputs if attribute[:1] == (o.field.name,)), None)
    if found is None:
        return None
    column, path = schema.field_by_name[found.path[0]], (*found.path[1:], *attribute[1:])
    data_type: DataType = column.type
    for name in path:
        inner = data_type.field(name) if isinstance(data_type, RowType) else None
        if inner is None:
            return None
        data_type = inner.type
    return Target(column, path, data_type)

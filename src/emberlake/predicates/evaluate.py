"""Evaluate filters on rows, a column at a time, with SQL's three truth values.

Floats compare as IEEE says: NaN differs from everything, including itself, and is neither less nor
greater than anything. Texts and bytes compare by their bytes. Columns are found by name; those that
do not have the Arrow type of their column are cast to it.
"""

import math
from collections.abc import Callable
from functools import reduce
from typing import Any, Final, TypeVar, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from emberlake.base.names import listed
from emberlake.errors import ColumnNotFound
from emberlake.predicates.expressions import And, Computed, Leaf, Op, Or, Predicate, computed_of
from emberlake.predicates.like import like_regex
from emberlake.spec.values import Value, to_arrow_array, to_arrow_scalar
from emberlake.types import arrow_type

_Rows = TypeVar("_Rows", pa.RecordBatch, pa.Table)


def evaluate(
    predicate: Predicate, batch: pa.RecordBatch | pa.Table
) -> pa.BooleanArray | pa.ChunkedArray:
    """True, false or null (unknown) for every row; chunked for a table.

    With computed conditions, false may stand for unknown: both mean that a row is not kept.
    """
    match predicate:
        case Leaf():
            return match_values(predicate, _column(predicate, batch))
        case Computed(condition=condition):
            return _shaped_like(batch, condition.matches(batch))
        case And() | Or() if computed_of(predicate):
            return _join_guarded(predicate, batch)
        case And(children):
            return _join(pc.and_kleene, children, batch, if_empty=True)
        case Or(children):
            return _join(pc.or_kleene, children, batch, if_empty=False)
        case _:
            assert_never(predicate)


def filter_rows(predicate: Predicate, batch: _Rows) -> _Rows:
    """The rows for which the filter is true; the same object if all rows match."""
    mask = evaluate(predicate, batch)
    if mask.null_count == 0 and pc.all(mask, min_count=0).as_py():
        return batch
    return batch.filter(mask)


def match_values(
    leaf: Leaf, values: pa.Array | pa.ChunkedArray
) -> pa.BooleanArray | pa.ChunkedArray:
    """Whether values satisfy a leaf; null for null, unless the leaf tests for null."""
    if leaf.op is Op.IS_NULL:
        return values.is_null()
    if leaf.op is Op.IS_NOT_NULL:
        return values.is_valid()
    if values.type != arrow_type(leaf.type):
        values = values.cast(arrow_type(leaf.type))
    match leaf.op:
        case Op.IN:
            return _is_in(leaf, values)
        case Op.NOT_IN:
            return pc.invert(_is_in(leaf, values))
        case Op.BETWEEN:
            return _is_between(leaf, values)
        case Op.NOT_BETWEEN:
            return pc.invert(_is_between(leaf, values))
        case _ if leaf.literals[0] is None:
            return _unknown(values)
        case _ if leaf.op.is_text_only:
            return _matches_text(leaf, values)
        case _:
            return _COMPARE[leaf.op](values, to_arrow_scalar(leaf.type, leaf.literals[0]))


_COMPARE: Final = {
    Op.EQUAL: pc.equal,
    Op.NOT_EQUAL: pc.not_equal,
    Op.LESS_THAN: pc.less,
    Op.LESS_OR_EQUAL: pc.less_equal,
    Op.GREATER_THAN: pc.greater,
    Op.GREATER_OR_EQUAL: pc.greater_equal,
}


def _join(
    combine: Callable[[Any, Any], Any],
    children: tuple[Predicate, ...],
    batch: pa.RecordBatch | pa.Table,
    *,
    if_empty: bool,
) -> pa.BooleanArray | pa.ChunkedArray:
    if children:
        return reduce(combine, (evaluate(child, batch) for child in children))
    return _shaped_like(batch, pa.repeat(if_empty, batch.num_rows))


def _join_guarded(
    predicate: And | Or, batch: pa.RecordBatch | pa.Table
) -> pa.BooleanArray | pa.ChunkedArray:
    """Comparisons decide first; a computation, which may fail, sees only rows that are left."""
    is_and = isinstance(predicate, And)
    kept = np.full(batch.num_rows, is_and)
    for child in sorted(predicate.children, key=lambda child: bool(computed_of(child))):
        left = np.flatnonzero(kept == is_and)
        part = batch if len(left) == batch.num_rows else batch.take(pa.array(left))
        matches = pc.fill_null(evaluate(child, part), fill_value=False)
        kept[left] = matches.to_numpy(zero_copy_only=False)
    return _shaped_like(batch, pa.array(kept))


def _shaped_like(
    batch: pa.RecordBatch | pa.Table, mask: pa.BooleanArray
) -> pa.BooleanArray | pa.ChunkedArray:
    return pa.chunked_array([mask]) if isinstance(batch, pa.Table) else mask


def _column(leaf: Leaf, batch: pa.RecordBatch | pa.Table) -> pa.Array | pa.ChunkedArray:
    index = batch.schema.get_field_index(leaf.column.name)
    if index < 0:
        raise ColumnNotFound(
            f"the rows have no column {leaf.column.name!r} to filter on, "
            f"only {listed(batch.schema.names)}"
        )
    column = batch.column(index)
    return pc.struct_field(column, list(leaf.path)) if leaf.path else column


def _unknown(values: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    return pc.if_else(values.is_null(), pa.scalar(None, pa.bool_()), pa.scalar(None, pa.bool_()))


def _is_between(leaf: Leaf, values: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    low, high = (to_arrow_scalar(leaf.type, literal) for literal in leaf.literals)
    return pc.and_kleene(pc.greater_equal(values, low), pc.less_equal(values, high))


def _is_in(leaf: Leaf, values: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    if not leaf.literals:  # an empty list: known to be false even for null
        return pc.and_not(values.is_null(), values.is_null())
    known: list[Value] = [literal for literal in leaf.literals if literal is not None]
    if known and len(known) == len(leaf.literals) <= _FEW_LITERALS:
        scalars = (to_arrow_scalar(leaf.type, literal) for literal in known)
        return reduce(pc.or_, (pc.equal(values, scalar) for scalar in scalars))
    if pa.types.is_floating(values.type):
        # The kernel compares bits: NaN would equal NaN, and the two zeros would differ.
        known = [v + 0.0 for v in known if isinstance(v, float) and not math.isnan(v)]
        values = pc.add(values, pa.scalar(0.0, values.type))
    found = pc.is_in(values, value_set=to_arrow_array(leaf.type, known))
    unknown = values.is_null()
    if None in leaf.literals:
        unknown = pc.or_(unknown, pc.invert(found))
    return pc.if_else(unknown, pa.scalar(None, pa.bool_()), found)


# Up to this many literals, one comparison each is faster than building and probing a hash table.
_FEW_LITERALS: Final = 8


def _matches_text(leaf: Leaf, values: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    text = leaf.literals[0]
    assert isinstance(text, str)
    match leaf.op:
        case Op.STARTS_WITH:
            return pc.starts_with(values, pattern=text)
        case Op.ENDS_WITH:
            return pc.ends_with(values, pattern=text)
        case Op.CONTAINS:
            return pc.match_substring(values, pattern=text)
        case Op.LIKE:
            return pc.match_substring_regex(values, pattern=like_regex(text))
        case _:
            return pc.invert(pc.match_substring_regex(values, pattern=like_regex(text)))

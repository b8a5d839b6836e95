"""Test filters on statistics: which files can have a matching row, and which have only such rows.

One engine for files, manifests, partitions and row groups: each is a *unit* with a row count and,
per column, a range that holds every non-null value, and a count of nulls. Unknown values are never
guessed. Spec: "Pruning pipeline", "Statistics".
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Final, TypeAlias, assert_never

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from emberlake.predicates.evaluate import match_values
from emberlake.predicates.expressions import And, Computed, Leaf, Op, Or, Predicate
from emberlake.predicates.like import is_prefix_pattern, like_prefix
from emberlake.spec.values import Value, from_arrow_array, to_arrow_scalar
from emberlake.types import DataField, arrow_type

Mask: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class ColumnRange:
    """Statistics of one column for all units, one element per unit.

    ``min`` and ``max`` have the column's Arrow type and bound the non-null values; they need not
    occur as values. A null in either, or None, means that nothing is known.
    """

    min: pa.Array | None = None
    max: pa.Array | None = None
    null_count: pa.Array | None = None


@dataclass(frozen=True)
class Verdict:
    """Per unit: whether some row can match, and whether every row does."""

    may: Mask
    all: Mask


def test_ranges(
    predicate: Predicate,
    row_counts: npt.NDArray[np.integer[Any]],
    lookup: Callable[[DataField], ColumnRange | None],
) -> Verdict:
    """Test a filter against the statistics of units.

    Args:
        predicate: The filter.
        row_counts: The number of rows of each unit.
        lookup: Returns the statistics of a top-level column, None if there are none.
    """
    match predicate:
        case Leaf():
            return _test_leaf(predicate, row_counts, lookup)
        case And(children):
            return _join(np.logical_and, children, row_counts, lookup)
        case Or(children):
            return _join(np.logical_or, children, row_counts, lookup)
        case Computed():  # ranges say nothing about it
            return Verdict(
                may=np.ones(len(row_counts), dtype=np.bool_),
                all=np.zeros(len(row_counts), dtype=np.bool_),
            )
        case _:
            assert_never(predicate)


def _join(
    combine: Any,
    children: tuple[Predicate, ...],
    row_counts: npt.NDArray[np.integer[Any]],
    lookup: Callable[[DataField], ColumnRange | None],
) -> Verdict:
    verdicts = [test_ranges(child, row_counts, lookup) for child in children]
    start = np.full(len(row_counts), combine.identity, dtype=np.bool_)
    return Verdict(
        may=reduce(combine, (v.may for v in verdicts), start),
        all=reduce(combine, (v.all for v in verdicts), start),
    )


def _test_leaf(
    leaf: Leaf,
    row_counts: npt.NDArray[np.integer[Any]],
    lookup: Callable[[DataField], ColumnRange | None],
) -> Verdict:
    # Statistics describe top-level columns; nothing is known about the fields of a ROW.
    found = None if leaf.path else lookup(leaf.column)
    nulls, nulls_known = _null_counts(found, len(row_counts))
    some_nulls = ~nulls_known | (nulls > 0)
    some_values = ~nulls_known | (nulls < row_counts)
    match leaf.op:
        case Op.IS_NULL:
            return Verdict(may=some_nulls, all=~some_values)
        case Op.IS_NOT_NULL:
            return Verdict(may=some_values, all=~some_nulls)
        case Op.NOT_IN if not leaf.literals:  # always true, even for null
            return _constant(len(row_counts), value=True)
        case Op.IN if not leaf.literals:
            return _constant(len(row_counts), value=False)
        case _:
            verdict = _test_values(leaf, found, len(row_counts))
            return Verdict(may=verdict.may & some_values, all=verdict.all & ~some_nulls)


def _constant(count: int, *, value: bool) -> Verdict:
    mask = np.full(count, value, dtype=np.bool_)
    return Verdict(may=mask, all=mask)


def _null_counts(found: ColumnRange | None, count: int) -> tuple[npt.NDArray[np.int64], Mask]:
    """Null counts, and where they are known."""
    if found is None or found.null_count is None:
        return np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.bool_)
    # Writers that do not count nulls store null or a negative number.
    counts = pc.fill_null(_one_array(found.null_count).cast(pa.int64()), -1)
    nulls: npt.NDArray[np.int64] = counts.to_numpy(zero_copy_only=False)
    return nulls, nulls >= 0


# --- The values of a unit, nulls aside ---

_COMPLEMENT: Final = {
    Op.NOT_EQUAL: Op.EQUAL,
    Op.NOT_BETWEEN: Op.BETWEEN,
    Op.NOT_IN: Op.IN,
    Op.NOT_LIKE: Op.LIKE,
}


def _test_values(leaf: Leaf, found: ColumnRange | None, count: int) -> Verdict:
    """Whether some or all non-null values match, as if there were at least one."""
    if None in leaf.literals:
        return _test_with_null(leaf, found, count)
    positive = replace(leaf, op=_COMPLEMENT.get(leaf.op, leaf.op))
    bounds = None if found is None else _bounds(leaf, found)
    if bounds is None:
        return Verdict(may=np.ones(count, dtype=np.bool_), all=np.zeros(count, dtype=np.bool_))
    verdict = _test_bounds(positive, bounds)
    every = bounds.known & verdict.all
    if pa.types.is_floating(bounds.low.type):
        every = np.zeros_like(every)  # there may be a NaN: outside every range, it matches nothing
    verdict = Verdict(may=~bounds.known | verdict.may, all=every)
    if positive.op is leaf.op:
        return verdict
    return Verdict(may=~verdict.all, all=~verdict.may)


def _test_with_null(leaf: Leaf, found: ColumnRange | None, count: int) -> Verdict:
    """A comparison with null is unknown; only a list or a half-open range can still match."""
    if leaf.op is Op.IN:
        known = tuple(literal for literal in leaf.literals if literal is not None)
        if known:
            return _test_values(replace(leaf, literals=known), found, count)
    if leaf.op is Op.NOT_BETWEEN:
        return Verdict(may=np.ones(count, dtype=np.bool_), all=np.zeros(count, dtype=np.bool_))
    return _constant(count, value=False)


@dataclass(frozen=True)
class _Bounds:
    """Bounds of every unit; they mean nothing where they are not ``known``."""

    low: pa.Array
    high: pa.Array
    known: Mask


def _bounds(leaf: Leaf, found: ColumnRange) -> _Bounds | None:
    if found.min is None or found.max is None:
        return None
    low, high = (_typed(leaf, bound) for bound in (found.min, found.max))
    known = _mask(pc.and_(low.is_valid(), high.is_valid()))
    if pa.types.is_floating(low.type):
        known &= ~_mask(pc.or_(pc.is_nan(low), pc.is_nan(high)))
    return _Bounds(low, high, known)


def _test_bounds(leaf: Leaf, bounds: _Bounds) -> Verdict:
    low, high = bounds.low, bounds.high
    if leaf.op is Op.IN:
        return _test_list(leaf, bounds)
    if leaf.op.is_text_only:
        return _test_text(leaf, bounds)
    first, *rest = (to_arrow_scalar(leaf.type, literal) for literal in leaf.literals)
    last = rest[0] if rest else first
    match leaf.op:
        case Op.LESS_THAN:
            return Verdict(may=_mask(pc.less(low, first)), all=_mask(pc.less(high, first)))
        case Op.LESS_OR_EQUAL:
            return Verdict(
                may=_mask(pc.less_equal(low, first)), all=_mask(pc.less_equal(high, first))
            )
        case Op.GREATER_THAN:
            return Verdict(may=_mask(pc.greater(high, first)), all=_mask(pc.greater(low, first)))
        case Op.GREATER_OR_EQUAL:
            return Verdict(
                may=_mask(pc.greater_equal(high, first)), all=_mask(pc.greater_equal(low, first))
            )
        case _:  # EQUAL is BETWEEN with one literal for both ends
            return Verdict(
                may=_mask(pc.less_equal(low, last)) & _mask(pc.greater_equal(high, first)),
                all=_mask(pc.greater_equal(low, first)) & _mask(pc.less_equal(high, last)),
            )


def _test_list(leaf: Leaf, bounds: _Bounds) -> Verdict:
    """Count the literals inside each range by binary search in the sorted literals."""
    literals: list[Any] = sorted({v for v in leaf.literals if v == v})  # noqa: PLR0124
    if not literals:  # only NaN, which equals nothing
        return _constant(len(bounds.known), value=False)
    ordered = _objects(literals)
    lows, highs = (
        _objects(
            literals[0] if value is None else value for value in from_arrow_array(leaf.type, b)
        )
        for b in (bounds.low, bounds.high)
    )
    inside = np.searchsorted(ordered, highs, "right") > np.searchsorted(ordered, lows, "left")
    return Verdict(may=inside, all=inside & _mask(pc.equal(bounds.low, bounds.high)))


def _test_text(leaf: Leaf, bounds: _Bounds) -> Verdict:
    """A range of one text is tested exactly; otherwise only prefixes can be compared."""
    text = leaf.literals[0]
    assert isinstance(text, str)
    low, high = bounds.low, bounds.high
    is_single = _mask(pc.equal(low, high))
    single = _mask(match_values(leaf, low))
    may, every = np.ones_like(is_single), np.zeros_like(is_single)
    if leaf.op in (Op.STARTS_WITH, Op.LIKE):
        prefix = text if leaf.op is Op.STARTS_WITH else like_prefix(text)
        low_starts, high_starts = (_mask(pc.starts_with(b, pattern=prefix)) for b in (low, high))
        # Texts with the prefix are one interval that begins at the prefix itself.
        may = _mask(pc.greater_equal(high, prefix)) & (
            _mask(pc.less_equal(low, prefix)) | low_starts
        )
        if leaf.op is Op.STARTS_WITH or is_prefix_pattern(text):
            every = low_starts & high_starts
    return Verdict(may=np.where(is_single, single, may), all=np.where(is_single, single, every))


def _typed(leaf: Leaf, bound: pa.Array | pa.ChunkedArray) -> pa.Array:
    array = _one_array(bound)
    return array if array.type == arrow_type(leaf.type) else array.cast(arrow_type(leaf.type))


def _one_array(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _mask(array: pa.BooleanArray) -> Mask:
    mask: Mask = pc.fill_null(array, fill_value=False).to_numpy(zero_copy_only=False)
    return mask


def _objects(values: Iterable[Value]) -> npt.NDArray[np.object_]:
    return np.array(list(values), dtype=np.object_)

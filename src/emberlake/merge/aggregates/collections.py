"""Arrays of all elements that came in: ``collect``. Spec: "Merge engines".

Elements are moved, never built: positions and codes decide what is kept, and the elements are then
taken from the arrays unchanged.
"""

import numpy as np
import pyarrow as pa

from emberlake.merge.aggregates.codes import element_rows, equality_codes
from emberlake.merge.aggregates.steps import COMES_IN, Step, Steps, valid_of
from emberlake.spec.column_buffers import I64, U8, Mask


def collect(column: pa.Array, steps: Steps, *, distinct: bool, by_age: bool) -> pa.Array:
    """The elements of all arrays, or the distinct ones, minus those that were retracted.

    Older arrays are appended like newer ones, unless ``by_age``.
    """
    valid = valid_of(column)
    rows = np.flatnonzero(valid & (steps.kinds != Step.SKIP))
    if by_age:
        rows = steps.oldest_first(rows)
    at, lengths = element_rows(column, rows)
    keys = np.repeat(steps.keys[rows], lengths)
    kinds = np.repeat(steps.kinds[rows], lengths)
    keep = np.ones(len(at), dtype=np.bool_)
    if distinct or steps.has_retracts:
        codes = equality_codes(column.values.take(pa.array(at)))
        if distinct:
            # A key that only starts is left unchanged.
            merged = steps.counts(steps.are(Step.ADD, Step.ADD_OLDER, Step.RETRACT)) > 0
            keep = ~merged[keys] | _first_occurrences(keys, codes)
        retracted = steps.counts(steps.are(Step.RETRACT)) > 0
        _replay(keep, np.flatnonzero(retracted[keys]), (keys, codes, kinds), distinct=distinct)
    is_null = steps.counts(valid & steps.are(*COMES_IN)) == 0
    counts = np.bincount(keys[keep], minlength=len(is_null))
    return make_lists(column.type, column.values.take(pa.array(at[keep])), counts, is_null)


def make_lists(data_type: pa.DataType, elements: pa.Array, counts: I64, is_null: Mask) -> pa.Array:
    """Lists of ``counts`` elements, one list for each key."""
    offsets = pa.array(np.concatenate(([0], np.cumsum(counts))), pa.int32())
    mask = pa.array(is_null) if is_null.any() else None
    return pa.ListArray.from_arrays(offsets, elements, type=data_type, mask=mask)


def _first_occurrences(keys: I64, codes: I64) -> Mask:
    pairs = keys * (codes.max(initial=0) + 1) + codes
    is_first = np.zeros(len(pairs), dtype=np.bool_)
    is_first[np.unique(pairs, return_index=True)[1]] = True
    return is_first


def _replay(keep: Mask, at: I64, of_elements: tuple[I64, I64, U8], *, distinct: bool) -> None:
    """Decide again about the elements of keys with retractions."""
    keys, codes, kinds = (part[at].tolist() for part in of_elements)
    kept: dict[tuple[int, int], list[int]] = {}
    keep[at] = False
    # A retraction removes the first equal element that is present at that moment: one at a time.
    for position, key, code, kind in zip(at.tolist(), keys, codes, kinds, strict=True):
        same = kept.setdefault((key, code), [])
        if kind == Step.RETRACT:
            if same:
                keep[same.pop(0)] = False
        elif not (distinct and same):
            same.append(position)
            keep[position] = True

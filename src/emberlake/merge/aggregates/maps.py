"""Maps merged key by key: ``merge_map``. Spec: "Merge engines"."""

import numpy as np
import pyarrow as pa

from emberlake.merge.aggregates.codes import element_rows, equality_codes
from emberlake.merge.aggregates.steps import COMES_IN, Step, Steps, valid_of
from emberlake.merge.aggregates.values import last_non_null_at
from emberlake.spec.column_buffers import I64, U8, Mask


def merge_map(column: pa.Array, steps: Steps) -> pa.Array:
    """The union of the maps; the newest entry wins if several have the same key."""
    valid = valid_of(column)
    rows = np.flatnonzero(valid & (steps.kinds != Step.SKIP))
    at, lengths = element_rows(column, rows)
    owners = np.repeat(steps.keys[rows], lengths)
    codes = equality_codes(column.keys.take(pa.array(at)))
    kept = newest_entries(owners, codes, np.repeat(steps.kinds[rows], lengths))
    is_null = steps.counts(valid & steps.are(*COMES_IN)) == 0
    counts = np.bincount(owners[kept], minlength=len(is_null))
    return make_maps(column, at[kept], counts, is_null)


def newest_entries(owners: I64, codes: I64, kinds: U8) -> I64:
    """The entry that is left of those with the same code and owner, for each code and owner.

    Entries are in the order in which their codes first appeared.
    """
    # Entries with the same code and owner are put together, in merge order: a small column each.
    pairs = owners * (codes.max(initial=0) + 1) + codes
    order = np.argsort(pairs, kind="stable")
    starts = np.flatnonzero(np.diff(pairs[order], prepend=-1))
    entries = Steps(kinds[order], starts)
    chosen = last_non_null_at(np.ones(len(pairs), dtype=np.bool_), entries)
    first_seen = order[starts][chosen >= 0]
    return order[chosen[chosen >= 0]][np.argsort(first_seen)]


def make_maps(column: pa.Array, at: I64, counts: I64, is_null: Mask) -> pa.Array:
    """Maps, one for each key, of entries that are taken from a column of maps."""
    offsets = pa.array(np.concatenate(([0], np.cumsum(counts))), pa.int32())
    mask = pa.array(is_null) if is_null.any() else None
    taken = pa.array(at)
    keys, items = column.keys.take(taken), column.items.take(taken)
    return pa.MapArray.from_arrays(offsets, keys, items, type=column.type, mask=mask)

"""Compare two states of a primary-key table key by key. Spec: "Incremental between"."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from emberlake.merge.aggregates.codes import tuple_equality_codes
from emberlake.merge.order import order_rows
from emberlake.merge.plan import MergePlan
from emberlake.merge.rows import take_rows
from emberlake.spec.column_buffers import I64, Mask
from emberlake.spec.key_value import KIND, RowKind


def compare_states(
    plan: MergePlan, before: pa.Table | None, after: pa.Table | None, *, with_deletes: bool
) -> pa.Table:
    """The rows that differ between the two states, by key.

    A new row comes as an insert, and a changed row as an update in its new form. Rows that are gone
    come only with ``with_deletes``, in their old form.
    """
    states = [state for state in (before, after) if state is not None]
    rows = pa.concat_tables(states)
    count = 0 if before is None else before.num_rows
    order = order_rows(rows, plan.keys, ())
    starts = order.starts
    sizes = np.diff(np.append(starts, len(order.rows)))
    kinds = np.full(rows.num_rows, -1, np.int8)
    single = order.rows[starts[sizes == 1]]
    is_old = single < count
    kinds[single[~is_old]] = RowKind.INSERT
    if with_deletes:
        kinds[single[is_old]] = RowKind.DELETE
    pairs = np.stack([order.rows[starts[sizes == 2]], order.rows[starts[sizes == 2] + 1]])
    old, new = pairs.min(axis=0), pairs.max(axis=0)
    names = [f.name for f in plan.read_fields]
    kinds[new[are_different(names, rows, old, new)]] = RowKind.UPDATE_AFTER
    kept = order.rows[kinds[order.rows] >= 0]
    at = rows.schema.get_field_index(KIND)
    rows = rows.set_column(at, rows.schema.field(at), pa.array(kinds))
    return take_rows(rows, kept)


def are_different(names: Sequence[str], rows: pa.Table, old: I64, new: I64) -> Mask:
    """Whether the rows at two positions differ in any of some columns, pair by pair."""
    if not names:
        return np.zeros(len(old), bool)
    pairs = take_rows(rows.select(names), np.concatenate([old, new])).combine_chunks()
    columns = [pairs.column(name).combine_chunks() for name in names]
    codes = tuple_equality_codes([_one_array(column) for column in columns])
    differ: Mask = codes[: len(old)] != codes[len(old) :]
    return differ


def _one_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        return column.chunk(0) if column.num_chunks else pa.array([], column.type)
    return column

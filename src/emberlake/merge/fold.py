"""Merge the records of every key into one row, as the table's merge engine says.

Spec: "Merge engines". A key with a single record is not merged: it is returned as it is, whatever
its kind. Only keys with several records reach an engine.
"""

from typing import Final

import numpy as np
import pyarrow as pa

from emberlake.errors import DataMismatch
from emberlake.merge.aggregation import fold_aggregation
from emberlake.merge.order import RowOrder, group_starts, key_at, order_rows
from emberlake.merge.partial_update import fold_partial_update
from emberlake.merge.plan import MergePlan
from emberlake.merge.rows import retracts_of, take_rows
from emberlake.options import MergeEngine
from emberlake.spec.column_buffers import I64, Mask
from emberlake.spec.key_value import KIND, SEQUENCE

# Engines that build new rows. They get the records of the keys that have several, in order, and
# where each key begins; they return one row per key, in that order, with its kind.
_ENGINES: Final = {
    MergeEngine.PARTIAL_UPDATE: fold_partial_update,
    MergeEngine.AGGREGATION: fold_aggregation,
}


def fold(
    plan: MergePlan, rows: pa.Table, *, is_sorted: bool = False, keep_deletes: bool
) -> pa.Table:
    """One row per key, sorted by key: the columns of the plan, sequence number and kind.

    Args:
        plan: How records are merged.
        rows: Records with the columns of the plan, ``_SEQUENCE_NUMBER`` and ``_VALUE_KIND``.
        is_sorted: The records are already in the order of ``order_rows``.
        keep_deletes: Deleted rows stay, with their kind.

    Raises:
        DataMismatch: the engine does not take a record, or a result does not fit its column.
    """
    rows = rows.select([*(f.name for f in plan.read_fields), SEQUENCE, KIND])
    if is_sorted:
        order = RowOrder(np.arange(rows.num_rows), group_starts(rows, plan.keys))
    else:
        order = order_rows(rows, plan.keys, plan.sequences)
    engine = _ENGINES.get(plan.engine)
    if engine is None or len(order.starts) == rows.num_rows:
        return take_rows(rows, _chosen(plan, rows, order, keep_deletes=keep_deletes))
    folded = _fold_groups(plan, rows, order, keep_deletes=keep_deletes)
    return folded if keep_deletes else without_retracts(folded)


def without_retracts(rows: pa.Table) -> pa.Table:
    """The rows without those whose kind retracts a row."""
    retracts = retracts_of(rows)
    return take_rows(rows, np.flatnonzero(~retracts)) if retracts.any() else rows


# --- engines that choose one of the records -------------------------------------------------------


def _chosen(plan: MergePlan, rows: pa.Table, order: RowOrder, *, keep_deletes: bool) -> I64:
    """The record of every key that is its row."""
    retracts = retracts_of(rows)
    has_retracts = bool(retracts.any())
    if plan.engine is MergeEngine.FIRST_ROW:
        chosen = _first(plan, rows, order, retracts if has_retracts else None)
    elif plan.ignore_delete and has_retracts:
        chosen = _last_add(order, retracts)
    else:
        chosen = order.rows[_ends(order) - 1]
    return chosen if keep_deletes or not has_retracts else chosen[~retracts[chosen]]


def _ends(order: RowOrder) -> I64:
    return np.append(order.starts, len(order.rows))[1:]


def _is_single(order: RowOrder) -> Mask:
    is_single: Mask = _ends(order) - order.starts == 1
    return is_single


def _last_add(order: RowOrder, retracts: Mask) -> I64:
    """The last add of every key with several records; a key with only retracts is gone."""
    if not len(order.rows):
        return order.rows
    counts = ~retracts[order.rows]
    counts[order.starts[_is_single(order)]] = True
    positions = np.where(counts, np.arange(len(order.rows)), -1)
    last = np.maximum.reduceat(positions, order.starts)
    return order.rows[last[last >= 0]]


def _first(plan: MergePlan, rows: pa.Table, order: RowOrder, retracts: Mask | None) -> I64:
    if retracts is None or not len(order.rows):
        return order.rows[order.starts]
    counts = ~retracts[order.rows]
    counts[order.starts[_is_single(order)]] = True
    if not plan.ignore_delete and not counts.all():
        row = int(order.rows[np.flatnonzero(~counts)[0]])
        raise DataMismatch(
            "merge engine first-row does not take deletes, but key "
            f"{key_at(rows, plan.keys, row)} has one: set ignore-delete to true to skip them"
        )
    positions = np.where(counts, np.arange(len(order.rows)), len(order.rows))
    first = np.minimum.reduceat(positions, order.starts)
    return order.rows[first[first < len(order.rows)]]


# --- engines that build a new row -----------------------------------------------------------------


def _fold_groups(
    plan: MergePlan, rows: pa.Table, order: RowOrder, *, keep_deletes: bool
) -> pa.Table:
    """The rows of all keys, in key order; only keys with several records are folded.

    Unless deletes are kept, folded rows that are deleted are left out: they may lack values.
    """
    engine = _ENGINES[plan.engine]
    is_single = _is_single(order)
    sizes = _ends(order) - order.starts
    singles = take_rows(rows, order.rows[order.starts[is_single]])
    several = take_rows(rows, order.rows[np.repeat(~is_single, sizes)])
    starts = np.cumsum(sizes[~is_single]) - sizes[~is_single]
    folded = engine(plan, several, starts).select(rows.column_names)
    is_folded = ~is_single
    if not keep_deletes:
        is_folded[is_folded] = ~retracts_of(folded)
        folded = without_retracts(folded)
    _check_not_null(plan, folded)
    folded = folded.cast(rows.schema)
    if not singles.num_rows:
        return folded
    positions = np.empty(len(sizes), dtype=np.int64)
    positions[is_single] = np.arange(singles.num_rows)
    positions[is_folded] = np.arange(folded.num_rows) + singles.num_rows
    return take_rows(pa.concat_tables([singles, folded]), positions[is_single | is_folded])


def _check_not_null(plan: MergePlan, folded: pa.Table) -> None:
    """Refuse nulls in NOT NULL columns: retracted values, or values without a sequence."""
    for field in plan.read_fields:
        column = folded.column(field.name)
        if field.type.nullable or not column.null_count:
            continue
        row = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
        raise DataMismatch(
            f"column {field.name} is {field.type}, but the records of key "
            f"{key_at(folded, plan.keys, row)} leave it without a value: make the column nullable "
            "with SchemaChange.update_column_nullability"
        )

"""Merge engine ``partial-update``: each column keeps its last value. Spec: "Merge engines".

Columns of a sequence group are ordered by the columns of the group rather than by the order of
records: a record that is older there does not touch them, except through an aggregate function.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from emberlake.errors import DataMismatch
from emberlake.merge.aggregates import Step, Steps, aggregate_column
from emberlake.merge.aggregates.codes import tuple_order_codes
from emberlake.merge.aggregates.records import Records
from emberlake.merge.aggregates.steps import pick, valid_of
from emberlake.merge.aggregates.values import last_non_null_value, last_value
from emberlake.merge.plan import MergePlan, SequenceGroup
from emberlake.spec.aggregate import Aggregate
from emberlake.spec.column_buffers import I64, Mask
from emberlake.types import DataField


def fold_partial_update(plan: MergePlan, rows: pa.Table, starts: I64) -> pa.Table:
    """One row per key of records that are sorted by key and merge order.

    A row is deleted if its last record removed it, or if no record added it.

    Args:
        plan: The sequence groups and functions of the columns that are read.
        rows: Records with the columns of the plan, sequence number and kind.
        starts: The first record of each key.

    Raises:
        DataMismatch: the table does not take a delete, a value is missing, or a result does not fit
            its column.
    """
    records = Records(rows, starts)
    if not len(records):
        empty = {f.name: records.column(f.name) for f in plan.read_fields}
        return records.result(empty, starts, np.zeros(0, dtype=np.bool_))
    effects = _find_effects(plan, records)
    arrays = dict(_fold_columns(plan, effects))
    columns = {f.name: arrays[f.name] for f in plan.read_fields}
    return records.result(columns, effects.latest, effects.is_deleted)


def _fold_columns(plan: MergePlan, effects: "_Effects") -> Iterator[tuple[str, pa.Array]]:
    grouped: set[str] = set()
    for group in effects.groups:
        for field in group.group.ordering:
            yield field.name, last_value(effects.records.column(field.name), group.ordering_steps)
        for field in group.group.members:
            yield field.name, _fold_member(plan, effects, group, field)
        grouped.update(f.name for f in (*group.group.ordering, *group.group.members))
    last = effects.records.ends - 1
    for field in plan.read_fields:
        column = effects.records.column(field.name)
        aggregator = plan.aggregators.get(field.name)
        if aggregator is not None and aggregator.function is Aggregate.PRIMARY_KEY:
            yield field.name, pick(column, last)
        elif field.name not in grouped:
            # Outside of groups only the default function is allowed.
            yield field.name, last_non_null_value(column, effects.free_steps)


def _fold_member(
    plan: MergePlan, effects: "_Effects", group: "_GroupEffects", field: DataField
) -> pa.Array:
    column = effects.records.column(field.name)
    aggregator = plan.aggregators.get(field.name)
    if aggregator is None:
        return last_value(column, group.plain_steps)
    at, steps = group.function_steps
    return aggregate_column(field, aggregator, column if at is None else column.take(at), steps)


# --- what each record does ------------------------------------------------------------------------


@dataclass(frozen=True)
class _GroupEffects:
    """What each record does to the columns of a group."""

    group: SequenceGroup
    ordering_steps: Steps
    plain_steps: Steps
    # For functions. A record that both starts a key and retracts values has two steps; then the
    # array is the record of each step.
    function_steps: tuple[pa.Array | None, Steps]


@dataclass(frozen=True)
class _Effects:
    """What each record does."""

    records: Records
    free_steps: Steps  # for columns outside of groups
    groups: tuple[_GroupEffects, ...]
    latest: I64  # the record of each key whose sequence number the row gets
    is_deleted: Mask  # keys


def _find_effects(plan: MergePlan, records: Records) -> _Effects:
    retracts = records.is_retract & records.is_merged
    if not (plan.ignore_delete or plan.remove_on_delete or plan.has_groups) and retracts.any():
        raise DataMismatch(
            "merge engine partial-update does not take -U and -D records unless the table says "
            "what they do: ignore-delete, partial-update.remove-record-on-delete or sequence groups"
        )
    is_ignored = retracts if plan.ignore_delete else np.zeros(len(records), dtype=np.bool_)
    orders = [_GroupOrder.of(group, records, is_ignored) for group in plan.groups]
    removals = _removals(plan, records, orders)
    # A key whose first record is a retract starts with the values of that record.
    opens = np.zeros(len(records), dtype=np.bool_)
    opens[records.starts] = retracts[records.starts]
    starts = opens | removals | ~records.is_merged
    _check_not_null(plan, records, opens | removals)
    add = np.where(records.is_retract, np.uint8(Step.SKIP), np.uint8(Step.ADD))
    free_steps = Steps(add, records.starts).started_at(starts)
    is_retract = retracts & ~is_ignored & ~removals
    groups = [
        _find_group_effects(records, order, order.accepted(removals), starts, is_retract)
        for order in orders
    ]
    last = records.ends - 1
    steps = Steps(add, records.starts)
    has_add = steps.counts(add == Step.ADD) > 0
    latest = steps.last(~is_ignored)
    return _Effects(
        records,
        free_steps,
        tuple(groups),
        np.where(latest >= 0, latest, last),
        removals[last] | ~has_add,
    )


def _check_not_null(plan: MergePlan, records: Records, starts: Mask) -> None:
    is_checked = starts if plan.has_groups else starts | (~records.is_retract & records.is_merged)
    records.check_not_null(plan.read_fields, is_checked)


# --- sequence groups ------------------------------------------------------------------------------


@dataclass(frozen=True)
class _GroupOrder:
    """The order of records in a group."""

    group: SequenceGroup
    records: Records
    is_present: Mask  # records that name a sequence of the group, and are not ignored
    ranks: I64  # of the sequence; 0 where there is none

    @classmethod
    def of(cls, group: SequenceGroup, records: Records, is_ignored: Mask) -> "_GroupOrder":
        columns = [records.column(f.name) for f in group.ordering]
        has_sequence = np.logical_or.reduce([valid_of(column) for column in columns])
        ranks = np.where(has_sequence, tuple_order_codes(columns) + 1, 0)
        # An ignored record counts only if it is the first of its key.
        is_first = np.zeros(len(records), dtype=np.bool_)
        is_first[records.starts] = True
        ranks[is_ignored & ~is_first] = 0
        return cls(group, records, has_sequence & ~is_ignored, ranks)

    def accepted(self, removals: Mask) -> Mask:
        """Records that are not older than any before them since the key began or was removed."""
        begins = removals.copy()
        begins[self.records.starts] = True
        ranks = self.ranks + np.cumsum(begins) * (self.ranks.max(initial=0) + 1)
        accepted: Mask = self.is_present & (ranks == np.maximum.accumulate(ranks))
        return accepted


def _find_group_effects(
    records: Records, order: _GroupOrder, accepted: Mask, starts: Mask, is_retract: Mask
) -> _GroupEffects:
    is_add = ~records.is_retract
    ordering = np.where(accepted, np.uint8(Step.ADD), np.uint8(Step.SKIP))
    plain = ordering.copy()
    plain[accepted & is_retract] = Step.RETRACT
    ordering_steps = Steps(ordering, records.starts).started_at(starts)
    # Retracting the values that a key starts with leaves nothing.
    plain_steps = Steps(plain, records.starts).started_at(starts & ~(accepted & is_retract))
    functions = np.where(accepted & is_add, np.uint8(Step.ADD), np.uint8(Step.SKIP))
    functions[order.is_present & ~accepted & is_add] = Step.ADD_OLDER
    functions[order.is_present & is_retract] = Step.RETRACT
    function_steps = Steps(functions, records.starts).started_at(starts)
    doubled = order.is_present & is_retract & (function_steps.kinds == Step.START)
    return _GroupEffects(
        order.group, ordering_steps, plain_steps, _with_doubled(function_steps, doubled)
    )


def _with_doubled(steps: Steps, doubled: Mask) -> tuple[pa.Array | None, Steps]:
    """Steps in which some records that start a key retract their values in a second step."""
    again = np.flatnonzero(doubled)
    if not len(again):
        return None, steps
    at = np.repeat(np.arange(len(doubled)), 1 + doubled)
    kinds = steps.kinds[at]
    kinds[again + np.arange(1, len(again) + 1)] = Step.RETRACT
    starts = steps.starts + np.searchsorted(again, steps.starts)
    forgotten = None if steps.forgotten is None else steps.forgotten[at]
    return pa.array(at), Steps(kinds, starts, forgotten)


# --- rows that are removed ------------------------------------------------------------------------


def _removals(plan: MergePlan, records: Records, orders: Sequence[_GroupOrder]) -> Mask:
    """Records that remove the row: later records build on their values."""
    deletes = records.is_delete & records.is_merged
    if plan.remove_on_delete:
        return deletes
    deciding = [order for order in orders if _decides(plan, order.group.ordering)]
    removals = np.zeros(len(records), dtype=np.bool_)
    if not deciding or not deletes.any():
        return removals
    if len(deciding) == 1:
        # A group removes the newest record that it knows, so its own order does not change.
        return deletes & deciding[0].accepted(removals)
    steps = Steps(np.zeros(len(records), dtype=np.uint8), records.starts)
    # A removal by one group resets the order of the others to that of its record. So each pass
    # finds the next removal of every key.
    while True:
        accepted = np.logical_or.reduce([order.accepted(removals) for order in deciding])
        is_later = np.arange(len(records)) > steps.last(removals)[steps.keys]
        found = steps.first(deletes & accepted & is_later)
        if not (found >= 0).any():
            return removals
        removals[found[found >= 0]] = True


def _decides(plan: MergePlan, ordering: Iterable[DataField]) -> bool:
    return any(f.name in plan.remove_on_group for f in ordering)

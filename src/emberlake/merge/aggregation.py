"""Merge engine ``aggregation``: each column has a function. Spec: "Merge engines"."""

import numpy as np
import pyarrow as pa

from emberlake.merge.aggregates import Step, Steps, aggregate_column
from emberlake.merge.aggregates.records import Records
from emberlake.merge.plan import MergePlan
from emberlake.spec.column_buffers import I64, Mask


def fold_aggregation(plan: MergePlan, rows: pa.Table, starts: I64) -> pa.Table:
    """One row per key of records that are sorted by key and merge order.

    Every key has a row, unless the table removes rows on delete and the last record is a delete.

    Args:
        plan: A function for every column that is read.
        rows: Records with the columns of the plan, sequence number and kind.
        starts: The first record of each key.

    Raises:
        DataMismatch: a result does not fit its column, or a value cannot be retracted.
    """
    records = Records(rows, starts)
    is_removal = np.zeros(len(records), dtype=np.bool_)
    if plan.remove_on_delete:
        is_removal = records.is_delete & records.is_merged
        records.check_not_null(plan.read_fields, is_removal)
    columns: dict[str, pa.Array] = {}
    if len(records):
        steps = _steps(records, is_removal)
        columns = {
            f.name: aggregate_column(f, plan.aggregators[f.name], records.column(f.name), steps)
            for f in plan.read_fields
        }
    else:
        columns = {f.name: records.column(f.name) for f in plan.read_fields}
    last = records.ends - 1
    return records.result(columns, last, is_removal[last])


def _steps(records: Records, is_removal: Mask) -> Steps:
    kinds = np.where(records.is_retract, np.uint8(Step.RETRACT), np.uint8(Step.ADD))
    return Steps(kinds, records.starts).started_at(is_removal | ~records.is_merged)

"""Records of primary-key tables for tests, and how a plain-Python model merges them."""

import functools
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from emberlake.merge.plan import MergePlan, plan_merge
from emberlake.options import TableOptions
from emberlake.spec.key_value import KIND, SEQUENCE, RowKind
from emberlake.spec.schema import TableSchema
from emberlake.spec.values import Value, to_arrow_array
from emberlake.types import AtomicType, DataField

Row = dict[str, Any]


def schema_of(
    columns: Mapping[str, str], keys: Sequence[str], options: Mapping[str, str] | None = None
) -> TableSchema:
    fields = tuple(
        DataField(place, name, AtomicType(text))
        for place, (name, text) in enumerate(columns.items())
    )
    given = TableOptions({"bucket": "1", **(options or {})})
    return TableSchema(0, fields, len(fields), (), tuple(keys), given)


def plan_of(
    columns: Mapping[str, str], keys: Sequence[str], options: Mapping[str, str] | None = None
) -> MergePlan:
    schema = schema_of(columns, keys, options)
    return plan_merge(schema, schema.fields)


def records(plan: MergePlan, rows: Sequence[Sequence[Value]], symbols: str = "") -> pa.Table:
    """Records in order of arrival; a row may end with a sequence number of its own."""
    width = len(plan.read_fields)
    columns = {
        f.name: to_arrow_array(f.type, [row[place] for row in rows])
        for place, f in enumerate(plan.read_fields)
    }
    numbers = [row[width] if len(row) > width else place for place, row in enumerate(rows)]
    kinds = [RowKind.parse(symbol) for symbol in symbols.split()] or [RowKind.INSERT] * len(rows)
    columns[SEQUENCE] = pa.array(numbers, pa.int64())
    columns[KIND] = pa.array([int(kind) for kind in kinds], pa.int8())
    return pa.table(columns)


def shown(table: pa.Table) -> list[tuple[Any, ...]]:
    """Rows as tuples: values, sequence number, symbol of the kind."""
    rows = [tuple(row.values()) for row in table.to_pylist()]
    return [(*row[:-1], RowKind(row[-1]).symbol) for row in rows]


# --- the model ------------------------------------------------------------------------------------


def compare_values(left: Value, right: Value) -> int:
    """The order of the format, case by case."""
    if left is None or right is None:
        return (left is not None) - (right is not None)
    if isinstance(left, float):
        if math.isnan(left) or math.isnan(right):
            return math.isnan(left) - math.isnan(right)
        if left == right == 0:
            left, right = math.copysign(1, left), math.copysign(1, right)
    if isinstance(left, str):
        left, right = left.encode(), right.encode()
    assert isinstance(left, bool | int | float | bytes | Decimal)
    return (left > right) - (left < right)


def compare_records(plan: MergePlan, left: Row, right: Row) -> int:
    for field in plan.keys:
        if result := compare_values(left[field.name], right[field.name]):
            return result
    for order in plan.sequences:
        one, other = left[order.column.name], right[order.column.name]
        if result := compare_values(one, other):
            is_turned = order.descending and one is not None and other is not None
            return -result if is_turned else result
    if result := compare_values(left[SEQUENCE], right[SEQUENCE]):
        return result
    return RowKind(right[KIND]).is_retract - RowKind(left[KIND]).is_retract


def have_same_key(plan: MergePlan, left: Row, right: Row) -> bool:
    return not any(compare_values(left[f.name], right[f.name]) for f in plan.keys)


def ordered(plan: MergePlan, rows: Sequence[Row]) -> list[Row]:
    return sorted(rows, key=functools.cmp_to_key(lambda a, b: compare_records(plan, a, b)))


def grouped(plan: MergePlan, rows: Sequence[Row]) -> list[list[Row]]:
    """The records of every key, all in order."""
    groups: list[list[Row]] = []
    for row in ordered(plan, rows):
        if groups and have_same_key(plan, groups[-1][-1], row):
            groups[-1].append(row)
        else:
            groups.append([row])
    return groups

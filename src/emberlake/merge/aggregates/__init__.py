"""Aggregate functions, column at a time: the values of one key become one value.

Spec: "Merge engines".
"""

from typing import assert_never

import pyarrow as pa

from emberlake.errors import DataMismatch, Unsupported
from emberlake.merge.aggregates import (
    bitmaps,
    booleans,
    collections,
    maps,
    nested,
    numbers,
    text,
    values,
)
from emberlake.merge.aggregates.steps import Step, Steps
from emberlake.merge.column_options import Aggregator
from emberlake.spec.aggregate import Aggregate
from emberlake.types import DataField

__all__ = ["Step", "Steps", "aggregate_column"]


def aggregate_column(
    field: DataField, aggregator: Aggregator, column: pa.Array, steps: Steps
) -> pa.Array:
    """One value for each key.

    Raises:
        DataMismatch: the result does not fit the column, or a value cannot be retracted.
    """
    if aggregator.ignore_retract:
        steps = steps.without_retracts()
    if steps.has_retracts and not aggregator.takes_retracts:
        raise DataMismatch(
            f"column {field.name} is aggregated by {aggregator.function}, which cannot retract the "
            f"values of -U and -D records: set fields.{field.name}.ignore-retract to true to "
            "ignore them"
        )
    return _aggregate(field, aggregator, column, steps)


def _aggregate(  # noqa: C901, PLR0912
    field: DataField, aggregator: Aggregator, column: pa.Array, steps: Steps
) -> pa.Array:
    match aggregator.function:
        case Aggregate.PRIMARY_KEY:
            return values.any_value(column, steps)
        case Aggregate.SUM:
            return numbers.sum_values(field, column, steps)
        case Aggregate.PRODUCT:
            return numbers.product_values(field, column, steps)
        case Aggregate.MAX:
            return numbers.max_value(column, steps)
        case Aggregate.MIN:
            return numbers.min_value(column, steps)
        case Aggregate.LAST_VALUE:
            return values.last_value(column, steps)
        case Aggregate.LAST_NON_NULL_VALUE:
            return values.last_non_null_value(column, steps)
        case Aggregate.FIRST_VALUE:
            return values.first_value(column, steps)
        case Aggregate.FIRST_NON_NULL_VALUE:
            return values.first_non_null_value(column, steps)
        case Aggregate.LISTAGG:
            return text.listagg(
                column, steps, delimiter=aggregator.delimiter, distinct=aggregator.distinct
            )
        case Aggregate.BOOL_AND:
            return booleans.bool_and(column, steps)
        case Aggregate.BOOL_OR:
            return booleans.bool_or(column, steps)
        case Aggregate.COLLECT:
            # Without retracts the function orders arrays by age, like the others.
            return collections.collect(
                column, steps, distinct=aggregator.distinct, by_age=aggregator.ignore_retract
            )
        case Aggregate.MERGE_MAP:
            return maps.merge_map(column, steps)
        case Aggregate.MERGE_MAP_WITH_KEYTIME:
            return nested.merge_map_with_keytime(column, steps, time_field=aggregator.time_field)
        case Aggregate.NESTED_UPDATE:
            return nested.nested_update(field, column, steps, aggregator)
        case Aggregate.NESTED_PARTIAL_UPDATE:
            return nested.nested_partial_update(field, column, steps, aggregator)
        case Aggregate.RBM32:
            return bitmaps.union_bitmaps(field, column, steps)
        case Aggregate.RBM64 | Aggregate.HLL_SKETCH | Aggregate.THETA_SKETCH:
            raise Unsupported(
                f"column {field.name} is aggregated by {aggregator.function}, which is not "
                "implemented: only a library of another language can read its bytes"
            )
        case _:
            assert_never(aggregator.function)

"""Aggregate functions on single columns, for tests."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from emberlake.merge.aggregates import Step, Steps, aggregate_column
from emberlake.merge.column_options import Aggregator
from emberlake.spec.aggregate import Aggregate
from emberlake.spec.values import Value, from_arrow_array, to_arrow_array
from emberlake.types import AtomicType, DataField, DataType

STEPS = {
    "+": Step.ADD,
    "<": Step.ADD_OLDER,
    "-": Step.RETRACT,
    "!": Step.START,
    ".": Step.SKIP,
}


def column_of(data_type: DataType | str) -> DataField:
    return DataField(1, "v", AtomicType(data_type) if isinstance(data_type, str) else data_type)


def steps_of(steps: str, starts: Sequence[int] = (0,), forgotten: str | None = None) -> Steps:
    def kinds(symbols: str) -> Any:
        return np.array([STEPS[symbol] for symbol in symbols], dtype=np.uint8)

    before = None if forgotten is None else kinds(forgotten)
    return Steps(kinds(steps), np.array(starts, dtype=np.int64), before)


def aggregate(
    function: str,
    data_type: DataType | str,
    values: Sequence[Value],
    steps: Steps | str = "",
    **settings: Any,
) -> Value:
    """What the values of one key become; by default all of them come in, one after the other."""
    given = steps if isinstance(steps, Steps) else steps_of(steps or "+" * len(values))
    field = column_of(data_type)
    aggregator = Aggregator(Aggregate(function), **settings)
    # Values in the middle of their buffers, as they are in a slice of a batch.
    column = to_arrow_array(field.type, [values[0], *values, None])[1:-1]
    results = from_arrow_array(field.type, aggregate_column(field, aggregator, column, given))
    return results[0] if len(results) == 1 else results

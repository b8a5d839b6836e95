"""Whether all values, or any of them, are true; nulls are ignored. Spec: "Merge engines"."""

import numpy as np
import pyarrow as pa

from emberlake.merge.aggregates.steps import COMES_IN, Steps, valid_of
from emberlake.spec.column_buffers import Mask


def bool_and(column: pa.Array, steps: Steps) -> pa.Array:
    """Whether no value is false."""
    operands = _operands(column, steps)
    values = np.logical_and.reduceat(_truths(column) | ~operands, steps.starts)
    return pa.array(values, mask=steps.counts(operands) == 0)


def bool_or(column: pa.Array, steps: Steps) -> pa.Array:
    """Whether some value is true."""
    operands = _operands(column, steps)
    values = np.logical_or.reduceat(_truths(column) & operands, steps.starts)
    return pa.array(values, mask=steps.counts(operands) == 0)


def _operands(column: pa.Array, steps: Steps) -> Mask:
    return valid_of(column) & steps.are(*COMES_IN)


def _truths(column: pa.Array) -> Mask:
    values: Mask = column.fill_null(False).to_numpy(zero_copy_only=False)
    return values

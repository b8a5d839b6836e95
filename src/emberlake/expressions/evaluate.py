"""Evaluate typed expressions on rows, a column at a time.

A branch of CASE, COALESCE, AND or OR that can fail sees only the rows that need it: a division
that a condition guards does not fail for the rows that the condition rules out.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from emberlake.errors import DataMismatch
from emberlake.expressions.binding import Expression
from emberlake.expressions.casts import cast_ansi, fits_all
from emberlake.expressions.kernels import KERNELS, Value, as_array, never_fails
from emberlake.expressions.typed import Apply, Column, Constant, Test, Typed, parts_of
from emberlake.predicates.evaluate import match_values
from emberlake.types import DataType, arrow_type, from_arrow_type

Rows: TypeAlias = pa.RecordBatch | pa.Table


@dataclass(frozen=True)
class Frame:
    """The rows that an expression sees: columns of each source, all equally long.

    Args:
        count: The number of rows.
        sources: By number, the rows of each source.
        now_ms: The moment that CURRENT_TIMESTAMP gives, in milliseconds since the epoch.
    """

    count: int
    sources: Mapping[int, Rows]
    now_ms: int = 0
    _found: dict[tuple[int, str], pa.Array] = field(default_factory=dict, compare=False)

    def column(self, source: int, name: str, path: tuple[str, ...] = ()) -> pa.Array:
        """A column of a source, or the field of it that a path leads to."""
        key = source, name
        if key not in self._found:
            self._found[key] = self._load(source, name)
        column = self._found[key]
        return pc.struct_field(column, list(path)) if path else column

    def _load(self, source: int, name: str) -> pa.Array:
        return _contiguous(self.sources[source].column(name))

    def take(self, rows: npt.NDArray[np.int64]) -> "Frame":
        """Some of the rows; columns are taken when they are first asked for."""
        return _Part(len(rows), self.sources, self.now_ms, {}, self, pa.array(rows))


@dataclass(frozen=True)
class _Part(Frame):
    whole: Frame | None = None
    rows: pa.Array | None = None

    def _load(self, source: int, name: str) -> pa.Array:
        assert self.whole is not None
        return self.whole.column(source, name).take(self.rows)


def _contiguous(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if isinstance(column, pa.Array):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def evaluate(expression: Expression, frame: Frame) -> pa.Array:
    """The values of an expression.

    Raises:
        DataMismatch: a value cannot be computed; the message says why and of which expression.
    """
    try:
        value = as_array(_evaluate(expression.typed, frame), frame.count)
    except DataMismatch as error:
        raise DataMismatch(f"{expression.text!r} cannot be computed: {error}") from error
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DataMismatch(f"{expression.text!r} cannot be computed: {error}") from error
    return _contiguous(value)


def select(expression: Expression, frame: Frame) -> npt.NDArray[np.bool_]:
    """True for the rows for which a condition is true, not false or null."""
    mask = evaluate(expression, frame).fill_null(False)
    return np.asarray(mask.to_numpy(zero_copy_only=False), bool)


def _evaluate(typed: Typed, frame: Frame) -> Value:
    if not frame.count:  # a calculation with constants would fail for rows that are not there
        return pa.nulls(0, pa.null() if typed.type is None else arrow_type(typed.type))
    match typed:
        case Column(source, found, path):
            return frame.column(source, found.name, path)
        case Constant(scalar):
            return scalar
        case Test(source, leaf):
            return match_values(leaf, frame.column(source, leaf.column.name, leaf.path))
        case Apply("CAST", (arg,), target):
            return _cast(arg, target, frame)
        case Apply("AND" | "OR" as function, args):
            return _logic(function, args, frame)
        case Apply("CASE" | "COALESCE" as function, args, result):
            return (_case if function == "CASE" else _coalesce)(args, result, frame)
        case Apply("CURRENT_DATE" | "CURRENT_TIMESTAMP", (), result):
            moment = pa.scalar(frame.now_ms * 1000, pa.timestamp("us", tz="UTC"))
            return moment.cast(arrow_type(result))
        case Apply(function, args, result):
            values = [_evaluate(arg, frame) for arg in args]
            return KERNELS[function](values, result)


def _cast(arg: Typed, target: DataType, frame: Frame) -> Value:
    value = _evaluate(arg, frame)
    source = arg.type if arg.type is not None else from_arrow_type(value.type)
    if isinstance(value, pa.Array):
        return cast_ansi(value, source, target)
    return cast_ansi(pa.repeat(value, 1), source, target)[0]


def can_fail(typed: Typed) -> bool:
    """Whether a value of some row may be impossible to compute."""
    for part in parts_of(typed):
        if not isinstance(part, Apply):
            continue
        if part.function == "CAST":
            source = part.args[0].type
            if source is not None and not fits_all(source, part.type):
                return True
        elif part.function in KERNELS and not never_fails(
            part.function, [arg.type for arg in part.args]
        ):
            return True
    return False


def _logic(function: str, args: Sequence[Typed], frame: Frame) -> Value:
    """AND and OR with three truth values; evaluation of a row ends once it is decided."""
    combine: Callable[[Value, Value], Value] = pc.and_kleene if function == "AND" else pc.or_kleene
    so_far: Value = pa.scalar(function == "AND")
    for arg in args:
        if not can_fail(arg):
            so_far = combine(so_far, _evaluate(arg, frame))
            continue
        known = as_array(so_far, frame.count)
        is_open = known if function == "AND" else pc.invert(known)
        rows = np.flatnonzero(is_open.fill_null(True).to_numpy(zero_copy_only=False))
        values = as_array(_evaluate(arg, frame.take(rows)), len(rows))
        so_far = combine(known, _scattered([values], [rows], frame.count, pa.bool_()))
    return so_far


def _case(args: Sequence[Typed], result: DataType, frame: Frame) -> pa.Array:
    left = np.arange(frame.count)
    values: list[pa.Array] = []
    places: list[npt.NDArray[np.int64]] = []
    for condition, value in zip(args[:-1:2], args[1::2], strict=True):
        part = frame.take(left)
        mask = as_array(_evaluate(condition, part), len(left)).fill_null(False)
        chosen = np.asarray(mask.to_numpy(zero_copy_only=False), bool)
        values.append(_values(value, frame, left[chosen]))
        places.append(left[chosen])
        left = left[~chosen]
    values.append(_values(args[-1], frame, left))
    places.append(left)
    return _scattered(values, places, frame.count, arrow_type(result))


def _coalesce(args: Sequence[Typed], result: DataType, frame: Frame) -> pa.Array:
    left = np.arange(frame.count)
    values: list[pa.Array] = []
    places: list[npt.NDArray[np.int64]] = []
    for arg in args:
        found = _values(arg, frame, left)
        is_there = found.is_valid().to_numpy(zero_copy_only=False)
        values.append(found.drop_null())
        places.append(left[is_there])
        left = left[~is_there]
    return _scattered(values, places, frame.count, arrow_type(result))


def _values(typed: Typed, frame: Frame, rows: npt.NDArray[np.int64]) -> pa.Array:
    part = frame if len(rows) == frame.count else frame.take(rows)
    return as_array(_evaluate(typed, part), len(rows))


def _scattered(
    values: Sequence[pa.Array],
    places: Sequence[npt.NDArray[np.int64]],
    count: int,
    arrow: pa.DataType,
) -> pa.Array:
    """Values at their places; null where there is none."""
    parts = [_contiguous(value).cast(arrow) for value in values]
    where = np.concatenate(places) if places else np.zeros(0, np.int64)
    order = np.full(count, -1, np.int64)
    order[where] = np.arange(len(where))
    indices = pa.array(order, mask=order < 0)
    return pa.concat_arrays(parts).take(indices) if parts else pa.nulls(count, arrow)

"""Functions on arrays of rows and on maps of rows, which work like small tables inside a value.

Spec: "Merge engines". The fate of a row depends on every row before it, so the records of a key are
replayed one by one, but only as positions and codes. The rows are then taken unchanged.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from emberlake.errors import DataMismatch
from emberlake.merge.aggregates.codes import (
    element_rows,
    equality_codes,
    tuple_equality_codes,
    tuple_order_codes,
)
from emberlake.merge.aggregates.collections import collect, make_lists
from emberlake.merge.aggregates.maps import make_maps, newest_entries
from emberlake.merge.aggregates.steps import Step, Steps, valid_of
from emberlake.merge.column_options import Aggregator, NestedKeyNulls
from emberlake.spec.column_buffers import I64, Mask
from emberlake.types import DataField

# Positions of elements by their identity; a range before anything was merged.
Table: TypeAlias = dict[int, int]
Known: TypeAlias = Table | range


def nested_update(
    field: DataField, column: pa.Array, steps: Steps, aggregator: Aggregator
) -> pa.Array:
    """The rows of all arrays; the last one of those with the same nested key."""
    values = column.values
    has_room = aggregator.count_limit >= len(values) and not values.null_count
    if not aggregator.nested_key:
        if has_room and not steps.has_retracts:
            return collect(column, steps, distinct=False, by_age=True)
        at, counts, is_null = _replay(column, steps, _Keyless(field, values, aggregator))
    elif has_room and steps.has_only_adds and not aggregator.nested_sequence:
        at, counts, is_null = _upserted(column, steps, _NestedKeys(field, values, aggregator))
    else:
        at, counts, is_null = _replay(column, steps, _Keyed(field, values, aggregator))
    return make_lists(column.type, values.take(pa.array(at)), counts, is_null)


def nested_partial_update(
    field: DataField, column: pa.Array, steps: Steps, aggregator: Aggregator
) -> pa.Array:
    """The rows of all arrays; the last non-null values of those with the same nested key."""
    merge = _Overlaid(field, column.values, aggregator)
    at, counts, is_null = _replay(column, steps, merge)
    elements = pa.concat_arrays([column.values, merge.made_rows()])
    return make_lists(column.type, elements.take(pa.array(at)), counts, is_null)


def merge_map_with_keytime(column: pa.Array, steps: Steps, *, time_field: str | None) -> pa.Array:
    """The union of the maps; the row with the latest time wins if several have a map key.

    A null row removes its map key; a row without a time is ignored.
    """
    at, counts, is_null = _replay(column, steps, _Timed(column, time_field))
    return make_maps(column, at, counts, is_null)


# --- replaying ------------------------------------------------------------------------------------


class _Merge(ABC):
    """How elements of one key are merged."""

    @abstractmethod
    def add(self, known: Known | None, elements: Iterable[int]) -> Known:
        """Add newer elements to the known ones, which may be changed in place."""

    def retract(self, known: Known, elements: range) -> Known:
        """Remove elements from the known ones; never called on functions that cannot do this."""
        raise NotImplementedError


def _replay(column: pa.Array, steps: Steps, merge: _Merge) -> tuple[I64, I64, Mask]:
    """The positions of the elements of all keys, how many each has, and which have no value."""
    offsets = np.asarray(column.offsets).tolist()
    is_valid = valid_of(column).tolist()
    kinds = steps.kinds.tolist()
    at: list[int] = []
    counts: list[int] = []
    is_null: list[bool] = []
    for begin, end in zip(steps.starts.tolist(), steps.ends.tolist(), strict=True):
        known: Known | None = None
        for row in range(begin, end):
            elements = range(offsets[row], offsets[row + 1]) if is_valid[row] else None
            known = _next(merge, known, kinds[row], elements)
        at.extend(() if known is None else _positions(known))
        counts.append(0 if known is None else len(known))
        is_null.append(known is None)
    positions = np.array(at, dtype=np.int64)
    return positions, np.array(counts, dtype=np.int64), np.array(is_null, dtype=np.bool_)


def _next(merge: _Merge, known: Known | None, kind: int, elements: range | None) -> Known | None:
    if kind == Step.START:
        return elements
    if kind == Step.ADD_OLDER:
        return elements if known is None else merge.add(elements, _positions(known))
    if elements is None or kind == Step.SKIP:
        return known
    if kind == Step.ADD:
        return merge.add(known, elements)
    return None if known is None else merge.retract(known, elements)


def _upserted(column: pa.Array, steps: Steps, nested_keys: "_NestedKeys") -> tuple[I64, I64, Mask]:
    """The result of replaying if all rows come in and the last one of a nested key stays."""
    is_valid = valid_of(column)
    rows = np.flatnonzero(is_valid)
    at, lengths = element_rows(column, rows)
    owners = np.repeat(steps.keys[rows], lengths)
    is_known = nested_keys.check(at)
    at, owners = at[is_known], owners[is_known]
    kinds = np.full(len(at), Step.ADD, dtype=np.uint8)
    kept = newest_entries(owners, nested_keys.codes[at], kinds)
    counts = np.bincount(owners[kept], minlength=len(steps.starts))
    return at[kept], counts, steps.counts(is_valid) == 0


def _positions(known: Known) -> Iterable[int]:
    return known if isinstance(known, range) else known.values()


# --- arrays of rows -------------------------------------------------------------------------------


class _Keyless(_Merge):
    """Rows are appended, as long as there is room; null rows are dropped."""

    def __init__(self, field: DataField, values: pa.Array, aggregator: Aggregator) -> None:
        del field
        self._is_valid = _truths(values)
        self._values = values
        self._limit = aggregator.count_limit
        self._codes: list[int] | None = None

    def add(self, known: Known | None, elements: Iterable[int]) -> Known:
        if known is not None and len(known) >= self._limit:
            return known
        room = self._limit - (0 if known is None else len(known))
        table = self._table(known)
        new = [at for at in elements if self._is_valid[at]]
        table.update((at, at) for at in new[:room])
        return table

    def retract(self, known: Known, elements: range) -> Known:
        if self._codes is None:
            self._codes = equality_codes(self._values).tolist()
        gone = {self._codes[at] for at in elements if self._is_valid[at]}
        table = self._table(known)
        return {at: at for at in table if self._codes[at] not in gone}

    def _table(self, known: Known | None) -> Table:
        if isinstance(known, dict):
            return known
        return {at: at for at in known or () if self._is_valid[at]}


class _NestedKeys:
    """The identity of rows inside an array; None for rows that are left out."""

    def __init__(self, field: DataField, values: pa.Array, aggregator: Aggregator) -> None:
        columns = [values.field(name) for name in aggregator.nested_key]
        self.codes = tuple_equality_codes(columns)
        has_null = np.logical_or.reduce([~valid_of(column) for column in columns])
        self._is_valid = valid_of(values)
        self._is_lacking = has_null & (aggregator.nested_key_nulls is not NestedKeyNulls.MERGE)
        self._is_error = aggregator.nested_key_nulls is NestedKeyNulls.ERROR
        self._name = field.name
        # As lists, because Python looks them up one by one.
        self._code_list: list[int] = self.codes.tolist()
        self._left_out: list[bool] = (self._is_lacking | ~self._is_valid).tolist()

    def of(self, at: int) -> int | None:
        if self._left_out[at]:
            self.check(np.array([at]))
            return None
        return self._code_list[at]

    def check(self, at: I64) -> Mask:
        """Which of these rows are not left out."""
        if self._is_error and (self._is_lacking & self._is_valid)[at].any():
            raise DataMismatch(
                f"column {self._name} has a row whose nested key is null, which "
                f"fields.{self._name}.nested-key-null-strategy makes an error"
            )
        is_kept: Mask = (self._is_valid & ~self._is_lacking)[at]
        return is_kept


class _Keyed(_Merge):
    """A row replaces the one with its nested key, unless that one has a newer nested sequence."""

    def __init__(self, field: DataField, values: pa.Array, aggregator: Aggregator) -> None:
        self._keys = _NestedKeys(field, values, aggregator)
        self._limit = aggregator.count_limit
        sequence = [values.field(name) for name in aggregator.nested_sequence]
        self._ages = tuple_order_codes(sequence).tolist() if sequence else None

    def add(self, known: Known | None, elements: Iterable[int]) -> Known:
        table = known if isinstance(known, dict) else {}
        if isinstance(known, range):
            self._put(table, known, limit=None)
        self._put(table, elements, limit=self._limit)
        return table

    def retract(self, known: Known, elements: range) -> Known:
        table = known if isinstance(known, dict) else self._last_rows(known)
        for at in elements:
            key = self._keys.of(at)
            if key is not None:
                table.pop(key, None)
        return table

    def _last_rows(self, known: range) -> Table:
        return {key: at for at in known if (key := self._keys.of(at)) is not None}

    def _put(self, table: Table, elements: Iterable[int], *, limit: int | None) -> None:
        for at in elements:
            key = self._keys.of(at)
            if key is None:
                continue
            old = table.get(key)
            if old is None:
                if limit is None or len(table) < limit:
                    table[key] = at
            elif self._ages is None or self._ages[at] >= self._ages[old]:
                table[key] = at


class _Overlaid(_Merge):
    """Rows with the same nested key are merged into one, field by field."""

    def __init__(self, field: DataField, values: pa.Array, aggregator: Aggregator) -> None:
        self._keys = _NestedKeys(field, values, aggregator)
        self._values = values
        self._is_valid = [_truths(child) for child in _children(values)]
        self._made: list[list[int]] = []  # for each merged row the positions of its fields, or -1
        self._key_of_made: list[int] = []

    def add(self, known: Known | None, elements: Iterable[int]) -> Known:
        table = known if isinstance(known, dict) else {}
        for part in (known if isinstance(known, range) else (), elements):
            for at in part:
                self._overlay(table, at)
        return table

    def made_rows(self) -> pa.Array:
        """The merged rows, which come after all others."""
        children = [
            child.take(pa.array(at, mask=at < 0))
            for child, at in zip(
                _children(self._values),
                np.array(self._made, dtype=np.int64).reshape(-1, len(self._is_valid)).T,
                strict=True,
            )
        ]
        return pa.StructArray.from_arrays(children, fields=list(self._values.type))

    def _overlay(self, table: Table, at: int) -> None:
        is_made = at >= len(self._values)
        key = self._key_of_made[at - len(self._values)] if is_made else self._keys.of(at)
        if key is None:
            return
        fields = self._made[at - len(self._values)] if is_made else self._fields_of(at)
        if key not in table:
            table[key] = len(self._values) + len(self._made)
            self._made.append(list(fields))
            self._key_of_made.append(key)
            return
        target = self._made[table[key] - len(self._values)]
        target[:] = [old if new < 0 else new for old, new in zip(target, fields, strict=True)]

    def _fields_of(self, at: int) -> list[int]:
        return [at if is_valid[at] else -1 for is_valid in self._is_valid]


# --- maps of rows ---------------------------------------------------------------------------------


class _Timed(_Merge):
    """The entry with the latest time wins; the first of several with the same time stays."""

    def __init__(self, column: pa.Array, time_field: str | None) -> None:
        items = column.items
        times = items.field(items.type.num_fields - 1 if time_field is None else time_field)
        self._keys = equality_codes(column.keys).tolist()
        self._is_valid = _truths(items)
        self._has_time = _truths(times)
        self._times: list[int] = tuple_order_codes([times]).tolist()

    def add(self, known: Known | None, elements: Iterable[int]) -> Known:
        if known is None:
            return {self._keys[at]: at for at in elements}
        table = known if isinstance(known, dict) else {self._keys[at]: at for at in known}
        for at in elements:
            if not self._is_valid[at]:
                table.pop(self._keys[at], None)
            elif self._has_time[at] and self._is_newer(at, table.get(self._keys[at])):
                table[self._keys[at]] = at
        return table

    def _is_newer(self, at: int, old: int | None) -> bool:
        if old is None or not self._is_valid[old] or not self._has_time[old]:
            return True
        return self._times[at] > self._times[old]


def _truths(array: pa.Array) -> list[bool]:
    truths: list[bool] = valid_of(array).tolist()
    return truths


def _children(values: pa.Array) -> list[pa.Array]:
    return [values.field(i) for i in range(values.type.num_fields)]

"""Merge engines in plain Python: one record at a time, one value at a time.

Written from format.md, "Merge engines". Values are those of ``emberlake.spec.values``.
"""

import math
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from emberlake.merge.column_options import Aggregator, NestedKeyNulls
from emberlake.merge.plan import MergePlan, SequenceGroup
from emberlake.options import MergeEngine
from emberlake.spec.aggregate import Aggregate
from emberlake.spec.key_value import KIND, SEQUENCE, RowKind
from emberlake.types import ArrayType, AtomicType, DataField, MapType, RowType, TypeRoot
from emberlake.types.data_types import INTEGER_BITS
from merge_tables import Row, compare_values

WIDE = Context(prec=200, rounding=ROUND_HALF_UP)
BLANKS = "\t\n\x0b\f\r\x1c\x1d\x1e\x1f \u2003"


class Refused(Exception):
    """The records cannot be merged."""


def fold_model(plan: MergePlan, groups: list[list[Row]]) -> list[Row]:
    """One row for each key, from its records in merge order."""
    is_partial = plan.engine is MergeEngine.PARTIAL_UPDATE
    rows = []
    for records in groups:
        if len(records) == 1:
            rows.append(records[0])
            continue
        merge = PartialUpdate(plan) if is_partial else Aggregation(plan)
        for record in records:
            merge.add(record)
        if merge.is_refused:
            raise Refused
        rows.append(merge.result())
    return rows


# --- engines --------------------------------------------------------------------------------------


class Aggregation:
    def __init__(self, plan: MergePlan) -> None:
        self.plan = plan
        self.functions = {
            f.name: function_of(f, plan.aggregators[f.name]) for f in plan.read_fields
        }
        self.row: Row = dict.fromkeys(self.functions)
        self.is_deleted = False
        self.is_refused = False  # until the row is removed: then it does not matter any more
        self.sequence = 0

    def add(self, record: Row) -> None:
        kind = RowKind(record[KIND])
        self.sequence = record[SEQUENCE]
        self.is_deleted = self.plan.remove_on_delete and kind is RowKind.DELETE
        if self.is_deleted:
            self.row = {name: record[name] for name in self.functions}
            self.is_refused = False
            return
        for name, function in self.functions.items():
            step = function.retract if kind.is_retract else function.add
            self.apply(step, name, record)

    def apply(self, step: Callable[[Any, Any], Any], name: str, record: Row) -> None:
        try:
            self.row[name] = step(self.row[name], record[name])
        except Refused:
            self.is_refused = True

    def result(self) -> Row:
        kind = RowKind.DELETE if self.is_deleted else RowKind.INSERT
        row = {name: f.finish(self.row[name]) for name, f in self.functions.items()}
        return {**row, SEQUENCE: self.sequence, KIND: kind}


class PartialUpdate(Aggregation):
    def __init__(self, plan: MergePlan) -> None:
        self.plan = plan
        self.names = [f.name for f in plan.read_fields]
        self.functions = {
            f.name: function_of(f, plan.aggregators[f.name])
            for f in plan.read_fields
            if f.name in plan.aggregators
        }
        self.row: Row = dict.fromkeys(self.names)
        self.is_new, self.has_add, self.is_deleted = True, False, False
        self.is_refused = False
        self.sequence: int | None = None

    def add(self, record: Row) -> None:
        kind = RowKind(record[KIND])
        self.is_deleted = False
        if kind.is_retract and self.is_new:
            self.take_over(record)
        self.is_new = False
        if kind.is_retract and self.plan.ignore_delete:
            self.sequence_of_ignored = record[SEQUENCE]
            return
        self.sequence = record[SEQUENCE]
        if not kind.is_retract:
            self.update(record)
            self.has_add = True
        elif self.plan.groups:
            self.retract(record, is_delete=kind is RowKind.DELETE)
        elif self.plan.remove_on_delete:
            if kind is RowKind.DELETE:
                self.is_deleted = True
                self.take_over(record)
        else:
            raise Refused

    def take_over(self, record: Row) -> None:
        self.row = {name: record[name] for name in self.names}
        self.is_refused = False

    def update(self, record: Row) -> None:
        grouped = {f.name for g in self.plan.groups for f in (*g.ordering, *g.members)}
        for name in self.names:
            if name not in grouped and record[name] is not None:
                self.row[name] = record[name]
        for group in self.plan.groups:
            if not self.names_sequence(group, record):
                continue
            is_older = self.is_older(group, record)
            for f in group.members:
                function = self.functions.get(f.name)
                if function is None and not is_older:
                    self.row[f.name] = record[f.name]
                elif function is not None:
                    step = function.add_older if is_older else function.add
                    self.apply(step, f.name, record)
            self.advance(group, record, is_older=is_older)

    def retract(self, record: Row, *, is_delete: bool) -> None:
        active = [g for g in self.plan.groups if self.names_sequence(g, record)]
        for group in active:
            removes = any(f.name in self.plan.remove_on_group for f in group.ordering)
            if is_delete and removes and not self.is_older(group, record):
                self.is_deleted = True
                self.take_over(record)
                return
        for group in active:
            is_older = self.is_older(group, record)
            for f in group.members:
                function = self.functions.get(f.name)
                if function is not None:
                    self.apply(function.retract, f.name, record)
                elif not is_older:
                    self.row[f.name] = None
            self.advance(group, record, is_older=is_older)

    def names_sequence(self, group: SequenceGroup, record: Row) -> bool:
        return any(record[f.name] is not None for f in group.ordering)

    def is_older(self, group: SequenceGroup, record: Row) -> bool:
        for f in group.ordering:
            if result := compare_values(record[f.name], self.row[f.name]):
                return result < 0
        return False

    def advance(self, group: SequenceGroup, record: Row, *, is_older: bool) -> None:
        if not is_older:
            self.row.update((f.name, record[f.name]) for f in group.ordering)

    def result(self) -> Row:
        row = {
            name: self.functions[name].finish(value) if name in self.functions else value
            for name, value in self.row.items()
        }
        kind = RowKind.DELETE if self.is_deleted or not self.has_add else RowKind.INSERT
        sequence = self.sequence_of_ignored if self.sequence is None else self.sequence
        return {**row, SEQUENCE: sequence, KIND: kind}


# --- functions ------------------------------------------------------------------------------------


class Function:
    def __init__(self, field: DataField, settings: Aggregator) -> None:
        self.field, self.settings = field, settings

    def add(self, old: Any, new: Any) -> Any:
        raise NotImplementedError

    def add_older(self, old: Any, new: Any) -> Any:
        return self.add(new, old)

    def retract(self, old: Any, gone: Any) -> Any:
        raise Refused

    def finish(self, value: Any) -> Any:
        return value


class IgnoringRetracts(Function):
    def __init__(self, field: DataField, settings: Aggregator) -> None:
        super().__init__(field, settings)
        self.inner = FUNCTIONS[settings.function](field, settings)

    def add(self, old: Any, new: Any) -> Any:
        return self.inner.add(old, new)

    def retract(self, old: Any, gone: Any) -> Any:
        return old

    def finish(self, value: Any) -> Any:
        return self.inner.finish(value)


class Key(Function):
    def add(self, old: Any, new: Any) -> Any:
        return new

    def retract(self, old: Any, gone: Any) -> Any:
        return gone


class Sum(Function):
    def add(self, old: Any, new: Any) -> Any:
        if old is None or new is None:
            return new if old is None else old
        return self.plus(old, new)

    def retract(self, old: Any, gone: Any) -> Any:
        if gone is None:
            return old
        negative = gone.copy_negate() if isinstance(gone, Decimal) else -gone
        return negative if old is None else self.plus(old, negative)

    def plus(self, left: Any, right: Any) -> Any:
        return arithmetic(self.field, left, right, "add")

    def finish(self, value: Any) -> Any:
        return fitting(self.field, value)


class Product(Function):
    def add(self, old: Any, new: Any) -> Any:
        if old is None or new is None:
            return new if old is None else old
        return fitting(self.field, arithmetic(self.field, old, new, "multiply"))

    def retract(self, old: Any, gone: Any) -> Any:
        if old is None or gone is None:
            return old
        if isinstance(old, int):
            if gone == 0:
                raise Refused
            return fitting(self.field, int(Fraction(old, gone)))
        if isinstance(old, Decimal):
            if gone == 0:
                raise Refused
            bottom = (Fraction(old) / Fraction(gone)).denominator
            while bottom % 10 == 0 or bottom % 2 == 0 or bottom % 5 == 0:
                bottom //= 10 if bottom % 10 == 0 else 2 if bottom % 2 == 0 else 5
            if bottom != 1:
                raise Refused
        return fitting(self.field, arithmetic(self.field, old, gone, "divide"))


class Extreme(Function):
    sign = 1

    def add(self, old: Any, new: Any) -> Any:
        if old is None or new is None:
            return new if old is None else old
        return new if compare_values(old, new) * self.sign < 0 else old


class Smallest(Extreme):
    sign = -1


class LastValue(Function):
    def add(self, old: Any, new: Any) -> Any:
        return new

    def retract(self, old: Any, gone: Any) -> Any:
        return None


class LastNonNull(Function):
    def add(self, old: Any, new: Any) -> Any:
        return old if new is None else new

    def retract(self, old: Any, gone: Any) -> Any:
        return old if gone is None else None


class FirstValue(Function):
    is_settled = False

    def add(self, old: Any, new: Any) -> Any:
        if self.is_settled:
            return old
        self.is_settled = True
        return new


class FirstNonNull(Function):
    is_settled = False

    def add(self, old: Any, new: Any) -> Any:
        if self.is_settled or new is None:
            return old
        self.is_settled = True
        return new


class Listagg(Function):
    def add(self, old: Any, new: Any) -> Any:
        if new is None or not new.strip(BLANKS):
            return old
        if old is None or not old.strip(BLANKS):
            return new
        delimiter = self.settings.delimiter
        if not self.settings.distinct:
            return old + delimiter + new
        parts = old.split(delimiter)
        result = old
        for part in new.split(delimiter):
            if part.strip(BLANKS) and part not in parts:
                parts.append(part)
                result += delimiter + part
        return result


class BoolAnd(Function):
    def add(self, old: Any, new: Any) -> Any:
        return (new if old is None else old) if old is None or new is None else old and new


class BoolOr(Function):
    def add(self, old: Any, new: Any) -> Any:
        return (new if old is None else old) if old is None or new is None else old or new


class Collect(Function):
    def add(self, old: Any, new: Any) -> Any:
        if old is None and new is None:
            return None
        both = [*(old or []), *(new or [])]
        if not self.settings.distinct:
            return both
        return [value for place, value in enumerate(both) if not is_in(value, both[:place])]

    def add_older(self, old: Any, new: Any) -> Any:
        return self.add(old, new)

    def retract(self, old: Any, gone: Any) -> Any:
        if old is None or gone is None:
            return old
        left = list(old)
        for value in gone:
            for place, other in enumerate(left):
                if same(value, other):
                    del left[place]
                    break
        return left


class MergeMap(Function):
    def add(self, old: Any, new: Any) -> Any:
        if old is None or new is None:
            return new if old is None else old
        return list({**dict(old), **dict(new)}.items())

    def retract(self, old: Any, gone: Any) -> Any:
        if old is None or gone is None:
            return old
        return [(key, value) for key, value in old if key not in dict(gone)]


class MergeMapWithKeytime(Function):
    def add(self, old: Any, new: Any) -> Any:
        if old is None or new is None:
            return new if old is None else old
        result = dict(old)
        for key, row in new:
            if row is None:
                result.pop(key, None)
            elif row[-1] is not None:
                there = result.get(key)
                if there is None or there[-1] is None or row[-1] > there[-1]:
                    result[key] = row
        return list(result.items())


class NestedUpdate(Function):
    def __init__(self, field: DataField, settings: Aggregator) -> None:
        super().__init__(field, settings)
        assert isinstance(field.type, ArrayType)
        assert isinstance(field.type.element, RowType)
        self.names = [f.name for f in field.type.element.fields]

    def part(self, row: Any, names: tuple[str, ...]) -> tuple[Any, ...]:
        return tuple(row[self.names.index(name)] for name in names)

    def key(self, row: Any) -> tuple[Any, ...] | None:
        key = self.part(row, self.settings.nested_key)
        if None in key and self.settings.nested_key_nulls is NestedKeyNulls.ERROR:
            raise Refused
        ignores = self.settings.nested_key_nulls is NestedKeyNulls.IGNORE
        return None if None in key and ignores else key

    def add(self, old: Any, new: Any) -> Any:
        if new is None:
            return old
        if not self.settings.nested_key:
            if old is not None and len(old) >= self.settings.count_limit:
                return old
            room = self.settings.count_limit - len(old or [])
            new = [row for row in new if row is not None]
            return [row for row in old or [] if row is not None] + new[:room]
        table: dict[Any, Any] = {}
        for rows, limit in ((old or [], math.inf), (new, self.settings.count_limit)):
            for row in rows:
                key = None if row is None else self.key(row)
                if key is None:
                    continue
                if key not in table:
                    if len(table) < limit:
                        table[key] = row
                elif not self.is_older(row, table[key]):
                    table[key] = row
        return list(table.values())

    def is_older(self, row: Any, other: Any) -> bool:
        names = self.settings.nested_sequence
        for left, right in zip(self.part(row, names), self.part(other, names), strict=True):
            if result := compare_values(left, right):
                return result < 0
        return False

    def retract(self, old: Any, gone: Any) -> Any:
        if old is None or gone is None:
            return old
        old = [row for row in old if row is not None]
        gone = [row for row in gone if row is not None]
        if not self.settings.nested_key:
            return [row for row in old if row not in gone]
        keys = [self.key(row) for row in gone]
        table = {self.key(row): row for row in old}
        return [row for key, row in table.items() if key is not None and key not in keys]


class NestedPartialUpdate(NestedUpdate):
    def add(self, old: Any, new: Any) -> Any:
        if new is None:
            return old
        table: dict[Any, list[Any]] = {}
        for row in [*(old or []), *new]:
            key = None if row is None else self.key(row)
            if key is not None:
                there = table.setdefault(key, [None] * len(row))
                table[key] = [a if b is None else b for a, b in zip(there, row, strict=True)]
        return [tuple(row) for row in table.values()]

    def retract(self, old: Any, gone: Any) -> Any:
        raise Refused


FUNCTIONS: dict[Aggregate, type[Function]] = {
    Aggregate.PRIMARY_KEY: Key,
    Aggregate.SUM: Sum,
    Aggregate.PRODUCT: Product,
    Aggregate.MAX: Extreme,
    Aggregate.MIN: Smallest,
    Aggregate.LAST_VALUE: LastValue,
    Aggregate.LAST_NON_NULL_VALUE: LastNonNull,
    Aggregate.FIRST_VALUE: FirstValue,
    Aggregate.FIRST_NON_NULL_VALUE: FirstNonNull,
    Aggregate.LISTAGG: Listagg,
    Aggregate.BOOL_AND: BoolAnd,
    Aggregate.BOOL_OR: BoolOr,
    Aggregate.COLLECT: Collect,
    Aggregate.MERGE_MAP: MergeMap,
    Aggregate.MERGE_MAP_WITH_KEYTIME: MergeMapWithKeytime,
    Aggregate.NESTED_UPDATE: NestedUpdate,
    Aggregate.NESTED_PARTIAL_UPDATE: NestedPartialUpdate,
}


def function_of(field: DataField, settings: Aggregator) -> Function:
    chosen = IgnoringRetracts if settings.ignore_retract else FUNCTIONS[settings.function]
    return chosen(field, settings)


def replay_model(field: DataField, settings: Aggregator, key: list[tuple[str, Any]]) -> Any:
    """What the values of one key become; a step is one of ``+ < - ! .``."""
    function = function_of(field, settings)
    steps = {"+": function.add, "<": function.add_older, "-": function.retract}
    value: Any = None
    is_refused = False
    for symbol, given in key:
        if symbol == "!":
            value, is_refused = given, False
        elif symbol != ".":
            try:
                value = steps[symbol](value, given)
            except Refused:
                is_refused = True
    if is_refused:
        raise Refused
    return function.finish(value)


# --- values ---------------------------------------------------------------------------------------


def arithmetic(field: DataField, left: Any, right: Any, name: str) -> Any:
    if isinstance(left, float):
        assert isinstance(field.type, AtomicType)
        number = np.float32 if field.type.root is TypeRoot.FLOAT else np.float64
        with np.errstate(all="ignore"):
            return float(getattr(np, name)(number(left), number(right)))
    if isinstance(left, Decimal):
        assert isinstance(field.type, AtomicType)
        return getattr(WIDE, name)(left, right).quantize(
            Decimal(1).scaleb(-field.type.scale), context=WIDE
        )
    return left + right if name == "add" else left * right


def fitting(field: DataField, value: Any) -> Any:
    assert isinstance(field.type, AtomicType)
    if isinstance(value, Decimal):
        # Signs are taken off without rounding.
        if value.copy_abs() >= 10 ** (field.type.precision - field.type.scale):
            raise Refused
        return value
    if isinstance(value, int):
        limit = 2 ** (INTEGER_BITS[field.type.root] - 1)
        if not -limit <= value < limit:
            raise Refused
    return value


def same(left: Any, right: Any) -> bool:
    if isinstance(left, tuple) and isinstance(right, tuple):
        return all(same(a, b) for a, b in zip(left, right, strict=True))
    if isinstance(left, float) and isinstance(right, float):
        return compare_values(left, right) == 0
    return bool(left == right)


def is_in(value: Any, values: list[Any]) -> bool:
    return any(same(value, other) for other in values)


def array(element: str) -> ArrayType:
    return ArrayType(True, AtomicType(element))


def rows_of(**fields: str) -> RowType:
    return RowType(
        True, tuple(DataField(i, n, AtomicType(t)) for i, (n, t) in enumerate(fields.items()))
    )


def map_of(key: str, value: RowType | AtomicType) -> MapType:
    return MapType(True, AtomicType(key, nullable=False), value)

"""Engines that build new rows equal a plain-Python model, for any records."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregate_columns import steps_of
from canonical import canonical_rows, canonical_values
from effort import examples
from emberlake.errors import DataMismatch
from emberlake.merge.aggregates import aggregate_column
from emberlake.merge.aggregation import fold_aggregation
from emberlake.merge.column_options import Aggregator, read_aggregator
from emberlake.merge.partial_update import fold_partial_update
from emberlake.merge.plan import MergePlan, plan_merge
from emberlake.options import TableOptions
from emberlake.spec.aggregate import Aggregate
from emberlake.spec.key_value import KIND, SEQUENCE
from emberlake.spec.schema import TableSchema
from emberlake.spec.values import to_arrow_array
from emberlake.types import ArrayType, AtomicType, DataField, DataType
from engine_model import Refused, array, fold_model, map_of, replay_model, rows_of
from merge_tables import Row

_FLOATS = st.sampled_from([float("nan"), -0.0, 0.0, float("inf"), 1.5, -0.1, 1e30])
_SMALL = st.integers(-3, 3)
_NESTED = ArrayType(True, rows_of(id="INT", part="STRING", at="INT"))
_TIMED = map_of("STRING", rows_of(v="INT", at="STRING"))
_TEXTS = st.sampled_from(["", " ", "a", "b", "a,b", "b,,c", "\u2003", "\u00a0", "ab"])
_NAMES = st.none() | st.sampled_from("ab")
_ROWS = st.none() | st.tuples(st.none() | st.integers(0, 2), _NAMES, st.none() | _SMALL)


def _decimals(limit: int, scale: int) -> st.SearchStrategy[Decimal]:
    numbers = st.one_of(st.integers(-30, 30), st.integers(-limit, limit))
    return numbers.map(lambda n: Decimal((n < 0, tuple(map(int, str(abs(n)))), -scale)))


# What a column can be: its type and its values.
_TYPES: dict[str, tuple[DataType, st.SearchStrategy[Any]]] = {
    "tinyint": (AtomicType("TINYINT"), st.one_of(_SMALL, st.integers(-128, 127))),
    "int": (AtomicType("INT"), st.one_of(_SMALL, st.sampled_from([-(2**31), 2**31 - 1]))),
    "bigint": (AtomicType("BIGINT"), st.one_of(_SMALL, st.sampled_from([-(2**63), 2**63 - 1]))),
    "float": (AtomicType("FLOAT"), st.one_of(_FLOATS.map(lambda f: float(np.float32(f))))),
    "double": (AtomicType("DOUBLE"), _FLOATS),
    "decimal": (AtomicType("DECIMAL(9, 2)"), _decimals(10**9 - 1, 2)),
    "decimal38": (AtomicType("DECIMAL(38, 3)"), _decimals(10**38 - 1, 3)),
    "string": (AtomicType("STRING"), _TEXTS),
    "bytes": (AtomicType("BYTES"), st.binary(max_size=2)),
    "boolean": (AtomicType("BOOLEAN"), st.booleans()),
    "timestamp9": (AtomicType("TIMESTAMP(9)"), st.integers(-(2**62), 2**62)),
    "ints": (array("INT"), st.lists(st.none() | _SMALL, max_size=4)),
    "floats": (array("DOUBLE"), st.lists(st.none() | _FLOATS, max_size=4)),
    "tuples": (_NESTED, st.lists(_ROWS, max_size=4)),
    "map": (
        map_of("STRING", AtomicType("INT")),
        st.dictionaries(st.sampled_from("abc"), st.none() | _SMALL).map(lambda d: list(d.items())),
    ),
    "timed": (
        _TIMED,
        st.dictionaries(
            st.sampled_from("ab"), st.none() | st.tuples(st.none() | _SMALL, _NAMES)
        ).map(lambda d: list(d.items())),
    ),
}
_NUMBERS = ["tinyint", "int", "bigint", "float", "double", "decimal", "decimal38"]
_ORDERED = [*_NUMBERS, "string", "bytes", "boolean", "timestamp9"]
_FUNCTIONS = {
    "sum": _NUMBERS,
    "product": _NUMBERS,
    "max": _ORDERED,
    "min": _ORDERED,
    "last_value": list(_TYPES),
    "last_non_null_value": list(_TYPES),
    "first_value": list(_TYPES),
    "first_non_null_value": list(_TYPES),
    "listagg": ["string"],
    "bool_and": ["boolean"],
    "bool_or": ["boolean"],
    "collect": ["ints", "floats", "tuples"],
    "merge_map": ["map"],
    "merge_map_with_keytime": ["timed"],
    "nested_update": ["tuples"],
    "nested_partial_update": ["tuples"],
}
_TRUTH = st.sampled_from(["true", "false"])
_NESTED_KEYS = st.sampled_from([{}, {"nested-key": "id"}, {"nested-key": "id,part"}])


@st.composite
def function_settings(draw: st.DrawFn, function: str) -> dict[str, str]:
    given = {"aggregate-function": function}
    if function in ("listagg", "collect"):
        given["distinct"] = draw(_TRUTH)
    if function == "nested_update":
        given |= draw(_NESTED_KEYS)
        given["count-limit"] = draw(st.sampled_from(["1", "3", "1000"]))
    if function == "nested_partial_update":
        given["nested-key"] = "id"
    if "nested-key" in given:
        given["nested-key-null-strategy"] = draw(st.sampled_from(["merge", "ignore", "error"]))
        if function == "nested_update" and draw(st.booleans()):
            given["nested-sequence-field"] = "at"
    return given


@st.composite
def aggregated(draw: st.DrawFn, name: str) -> tuple[str, dict[str, str]]:
    """The type of a column with a function, and the options of the function."""
    function = draw(st.sampled_from(sorted(_FUNCTIONS)))
    kind = draw(st.sampled_from(_FUNCTIONS[function]))
    given = draw(function_settings(function))
    return kind, {f"fields.{name}.{key}": value for key, value in given.items()}


@st.composite
def aggregations(draw: st.DrawFn) -> MergePlan:
    kinds: dict[str, str] = {}
    options = {"merge-engine": "aggregation"}
    removes = draw(st.booleans())
    options["aggregation.remove-record-on-delete"] = str(removes).lower()
    for place in range(draw(st.integers(1, 3))):
        name = f"v{place}"
        kinds[name], given = draw(aggregated(name))
        options |= given
        if not removes:
            options[f"fields.{name}.ignore-retract"] = draw(_TRUTH)
    return _plan(kinds, options)


@st.composite
def partial_updates(draw: st.DrawFn) -> MergePlan:
    kinds = {"free": draw(st.sampled_from(sorted(_TYPES)))}
    options = {"merge-engine": "partial-update"}
    group_count = draw(st.integers(0, 3))
    removing: list[str] = []
    for place in range(group_count):
        ordering = [f"s{place}{n}" for n in range(draw(st.integers(1, 2)))]
        members = [f"v{place}{n}" for n in range(draw(st.integers(1, 2)))]
        kinds |= {name: draw(st.sampled_from(["tinyint", "string", "float"])) for name in ordering}
        for name in members:
            if draw(st.booleans()):
                kinds[name], given = draw(aggregated(name))
                options |= given | {f"fields.{name}.ignore-retract": draw(_TRUTH)}
            else:
                kinds[name] = draw(st.sampled_from(sorted(_TYPES)))
        options[f"fields.{','.join(ordering)}.sequence-group"] = ",".join(members)
        removing += [name for name in ordering[:1] if draw(st.booleans())]
    if draw(st.booleans()):
        options["ignore-delete"] = "true"
    elif removing:
        options["partial-update.remove-record-on-sequence-group"] = ",".join(removing)
    elif not group_count and draw(st.booleans()):
        options["partial-update.remove-record-on-delete"] = "true"
    return _plan(kinds, options)


def _plan(kinds: Mapping[str, str], options: Mapping[str, str]) -> MergePlan:
    types = {"k": AtomicType("INT", nullable=False)}
    types |= {name: _TYPES[kind][0] for name, kind in kinds.items()}
    fields = tuple(DataField(i, name, t) for i, (name, t) in enumerate(types.items()))
    table_options = TableOptions({"bucket": "1", **options})
    return plan_merge(TableSchema(0, fields, len(fields), (), ("k",), table_options), fields)


@st.composite
def histories(draw: st.DrawFn, plan: MergePlan) -> list[list[Row]]:
    """The records of some keys."""
    by_type = {str(data_type): values for data_type, values in _TYPES.values()}
    values = {f.name: st.none() | by_type[str(f.type)] for f in plan.read_fields[1:]}
    kinds = st.sampled_from(draw(st.sampled_from([[0], [0, 2], [0, 2, 3], [0, 0, 1, 2, 3]])))
    record = st.fixed_dictionaries({**values, KIND: kinds})
    keys = draw(st.lists(st.lists(record, min_size=1, max_size=6), min_size=1, max_size=5))
    return [
        [{"k": key, **row, SEQUENCE: 100 * key + place} for place, row in enumerate(rows)]
        for key, rows in enumerate(keys)
    ]


def _table(plan: MergePlan, rows: list[Row]) -> pa.Table:
    columns = {f.name: to_arrow_array(f.type, [r[f.name] for r in rows]) for f in plan.read_fields}
    columns[SEQUENCE] = pa.array([row[SEQUENCE] for row in rows], pa.int64())
    columns[KIND] = pa.array([int(row[KIND]) for row in rows], pa.int8())
    return pa.table(columns)


def _check(fold: Any, plan: MergePlan, groups: list[list[Row]], cut: int) -> None:
    rows = _table(plan, [row for group in groups for row in group])
    # A table in pieces that begin in the middle of their buffers.
    padded = pa.concat_tables([rows.slice(0, 1), rows]).slice(1)
    rows = pa.concat_tables([padded.slice(0, cut), padded.slice(cut)])
    sizes = [len(group) for group in groups]
    starts = np.cumsum([0, *sizes[:-1]]).astype(np.int64)
    try:
        expected = _table(plan, fold_model(plan, groups))
    except Refused:
        with pytest.raises(DataMismatch):
            fold(plan, rows, starts)
        return

    folded = fold(plan, rows, starts)

    folded.validate(full=True)
    assert folded.schema == rows.schema
    assert canonical_rows(folded) == canonical_rows(expected)


@st.composite
def replays(draw: st.DrawFn) -> tuple[DataField, Aggregator, list[list[tuple[str, Any]]]]:
    """A column with a function, and for some keys the steps and values of their records."""
    kind, given = draw(aggregated("v"))
    data_type, values = _TYPES[kind]
    options = TableOptions(given | {"fields.v.ignore-retract": draw(_TRUTH)})
    function = Aggregate(options["fields.v.aggregate-function"])
    steps = st.sampled_from(draw(st.sampled_from(["+", "+<", "++<.", "++-", "+<-."])))
    records = st.lists(st.tuples(steps, st.none() | values), min_size=1, max_size=6)
    keys = draw(st.lists(records, min_size=1, max_size=4))
    for key in keys:
        if draw(st.booleans()):
            at = draw(st.integers(0, len(key) - 1))
            key[at] = ("!", key[at][1])
    return DataField(1, "v", data_type), read_aggregator(options, "v", function), keys


@examples(200)
@given(replays())
def test_functions_equal_the_model(
    replay: tuple[DataField, Aggregator, list[list[tuple[str, Any]]]],
) -> None:
    field, aggregator, keys = replay
    column = to_arrow_array(field.type, [value for key in keys for _, value in key])
    given_steps = [before_start(key) for key in keys]
    starts = np.cumsum([0, *(len(key) for key in keys[:-1])]).tolist()
    steps, forgotten = ("".join(part) for part in zip(*given_steps, strict=True))
    try:
        expected = [replay_model(field, aggregator, key) for key in keys]
    except Refused:
        with pytest.raises(DataMismatch):
            aggregate_column(field, aggregator, column, steps_of(steps, starts, forgotten))
        return

    result = aggregate_column(field, aggregator, column, steps_of(steps, starts, forgotten))

    result.validate(full=True)
    assert canonical_values(result) == canonical_values(to_arrow_array(field.type, expected))


def before_start(key: list[tuple[str, Any]]) -> tuple[str, str]:
    """Steps as a function sees them, and those that it has forgotten."""
    symbols = "".join(symbol for symbol, _ in key)
    at = max(symbols.find("!"), 0)
    return "." * at + symbols[at:], symbols[:at] + "." * (len(symbols) - at)


@given(st.data(), aggregations(), st.integers(0, 10))
def test_aggregation_equals_the_model(data: st.DataObject, plan: MergePlan, cut: int) -> None:
    _check(fold_aggregation, plan, data.draw(histories(plan)), cut)


@given(st.data(), partial_updates(), st.integers(0, 10))
def test_partial_update_equals_the_model(data: st.DataObject, plan: MergePlan, cut: int) -> None:
    _check(fold_partial_update, plan, data.draw(histories(plan)), cut)

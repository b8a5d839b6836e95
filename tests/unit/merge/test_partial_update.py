"""Merge engine partial-update."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from emberlake.errors import DataMismatch
from emberlake.merge.partial_update import fold_partial_update
from emberlake.merge.plan import MergePlan, plan_merge
from merge_tables import plan_of, records, schema_of, shown

KEY = {"k": "INT NOT NULL"}
PLAIN = {**KEY, "a": "INT", "b": "STRING"}
GROUPED = {**KEY, "s": "INT", "a": "INT", "b": "STRING", "free": "INT"}
GROUP = {"fields.s.sequence-group": "a,b"}
TWO = {**KEY, "s1": "INT", "a": "INT", "s2": "INT", "b": "INT"}
TWO_GROUPS = {"fields.s1.sequence-group": "a", "fields.s2.sequence-group": "b"}
REMOVE = "partial-update.remove-record-on-sequence-group"


def partial(columns: Mapping[str, str], options: Mapping[str, str] | None = None) -> MergePlan:
    return plan_of(columns, ["k"], {"merge-engine": "partial-update", **(options or {})})


def merge(plan: MergePlan, rows: Sequence[Sequence[Any]], symbols: str = "") -> list[Any]:
    """Merged rows without the key, their sequence number and kind at the end."""
    table = records(plan, rows, symbols)
    keys = np.array([row[0] for row in rows])
    starts = np.flatnonzero(np.diff(keys, prepend=keys[0] - 1))
    return [row[1:] for row in shown(fold_partial_update(plan, table, starts))]


def test_the_last_value_that_is_not_null_stays() -> None:
    rows = [(1, 1, "a"), (1, None, None), (1, 2, None), (2, None, None), (2, None, "")]

    assert merge(partial(PLAIN), rows) == [(2, "a", 2, "+I"), (None, "", 4, "+I")]


def test_a_single_record_is_returned_as_it_is() -> None:
    rows = [(1, None, None), (2, 5, "x"), (3, 1, "a"), (3, None, "b")]

    merged = merge(partial(PLAIN), rows, "-D +U +I +U")

    assert merged == [(None, None, 0, "-D"), (5, "x", 1, "+U"), (1, "b", 3, "+I")]


def test_no_records_are_no_rows() -> None:
    plan = partial(GROUPED, GROUP)
    rows = records(plan, [(1, 1, 1, "a", 1)])

    folded = fold_partial_update(plan, rows.slice(0, 0), np.zeros(0, dtype=np.int64))

    assert folded.schema == rows.schema
    assert folded.num_rows == 0


def test_records_in_pieces_are_merged_like_others() -> None:
    plan = partial(PLAIN)
    rows = records(plan, [(1, 1, "a"), (1, None, "b"), (2, 3, None)])
    pieces = pa.concat_tables([rows.slice(0, 1), rows.slice(1)])

    folded = fold_partial_update(plan, pieces, np.array([0, 2]))

    assert shown(folded) == [(1, 1, "b", 1, "+I"), (2, 3, None, 2, "+I")]


# --- deletes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("symbols", ["+I -D", "+I -U", "-D +I"])
def test_deletes_are_refused_unless_the_table_says_what_they_do(symbols: str) -> None:
    with pytest.raises(DataMismatch, match="ignore-delete"):
        merge(partial(PLAIN), [(1, 1, "a"), (1, 2, "b")], symbols)


def test_ignored_deletes_change_nothing() -> None:
    plan = partial(PLAIN, {"ignore-delete": "true"})
    rows = [(1, 1, "a"), (1, 9, "z"), (1, 2, None), (1, 9, "z")]

    assert merge(plan, rows, "+I -D +U -U") == [(2, "a", 2, "+I")]


def test_a_key_that_begins_with_an_ignored_delete_begins_with_its_values() -> None:
    plan = partial(PLAIN, {"ignore-delete": "true"})
    rows = [(1, 9, "z"), (1, 2, None), (2, 1, "a"), (2, 2, "b")]

    assert merge(plan, rows, "-D +I -D -D") == [(2, "z", 1, "+I"), (1, "a", 3, "-D")]


@pytest.mark.parametrize(
    ("symbols", "expected"),
    [
        ("+I +I -D", (3, None, 2, "-D")),
        ("+I -D +I", (3, "b", 2, "+I")),
        ("-D +I +I", (3, "b", 2, "+I")),
        ("+I -U +I", (3, "a", 2, "+I")),
        ("-U -U -U", (1, "a", 2, "-D")),
        ("+I -D -U", (None, "b", 2, "+I")),
    ],
)
def test_a_delete_can_remove_the_record(symbols: str, expected: Any) -> None:
    plan = partial(PLAIN, {"partial-update.remove-record-on-delete": "true"})

    assert merge(plan, [(1, 1, "a"), (1, None, "b"), (1, 3, None)], symbols) == [expected]


def test_a_missing_value_is_refused() -> None:
    plan = partial({**KEY, "a": "INT NOT NULL", "b": "STRING"})
    rows = records(partial(PLAIN), [(1, 1, "a"), (1, None, "b")])

    with pytest.raises(DataMismatch, match="column a is INT NOT NULL"):
        fold_partial_update(plan, rows, np.array([0]))


# --- sequence groups ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        # Newer or the same: everything is replaced, also by null.
        ([(1, 1, 1, "a", 1), (1, 2, None, "b", None)], (2, None, "b", 1)),
        ([(1, 1, 1, "a", 1), (1, 1, 2, None, 2)], (1, 2, None, 2)),
        # Older: only what is in no group.
        ([(1, 2, 1, "a", 1), (1, 1, 9, "z", 2)], (2, 1, "a", 2)),
        # No sequence: not touched.
        ([(1, None, 1, "a", 1), (1, None, 2, "b", 2)], (None, None, None, 2)),
        ([(1, 1, 1, "a", 1), (1, None, 2, "b", 2)], (1, 1, "a", 2)),
    ],
)
def test_a_group_follows_its_own_order(rows: list[Any], expected: Any) -> None:
    assert merge(partial(GROUPED, GROUP), rows) == [(*expected, 1, "+I")]


def test_groups_do_not_know_each_other() -> None:
    rows = [(1, 2, 10, 1, 10), (1, 1, 20, 2, 20), (1, 3, 30, None, 30)]

    assert merge(partial(TWO, TWO_GROUPS), rows) == [(3, 30, 2, 20, 2, "+I")]


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        ((1, "a", 2), (1, "a", 2)),
        ((1, None, 2), (1, "a", 1)),
        ((None, "z", 2), (1, "a", 1)),
        ((2, None, 2), (2, None, 2)),
        ((None, None, 2), (1, "a", 1)),
    ],
)
def test_several_columns_order_a_group_with_nulls_first(second: Any, expected: Any) -> None:
    plan = partial(
        {**KEY, "s1": "INT", "s2": "STRING", "a": "INT"}, {"fields.s1,s2.sequence-group": "a"}
    )

    assert merge(plan, [(1, 1, "a", 1), (1, *second)]) == [(*expected, 1, "+I")]


@pytest.mark.parametrize(
    ("data_type", "newest"),
    [
        ("DOUBLE", [-1.5, -0.0, 0.0, float("inf"), float("nan")]),
        ("STRING", ["", "a", "é", "\U0001f600"]),
        ("BYTES", [b"", b"\x7f", b"\xff"]),
        ("TIMESTAMP(9)", [-(2**62), 0, 1, 2**62]),
        ("BIGINT", [-(2**63), 0, 2**63 - 1]),
        ("BOOLEAN", [False, True]),
    ],
)
def test_every_ordered_type_orders_a_group(data_type: str, newest: list[Any]) -> None:
    plan = partial({**KEY, "s": data_type, "a": "INT"}, {"fields.s.sequence-group": "a"})
    order = list(enumerate(newest))
    rows = [(1, value, place) for place, value in order]
    rows += [(2, value, place) for place, value in reversed(order)]
    table = records(plan, rows)

    folded = fold_partial_update(plan, table, np.array([0, len(order)]))

    assert folded.column("a").to_pylist() == [len(order) - 1] * 2


@pytest.mark.parametrize(
    ("symbols", "expected"),
    [
        ("+I -D", (2, None, None, 1, 1, "+I")),
        ("+I -U", (2, None, None, 1, 1, "+I")),
        ("-D +I", (2, 2, "b", 2, 1, "+I")),
        ("-D -D", (2, None, None, 1, 1, "-D")),
    ],
)
def test_a_retract_empties_the_columns_of_a_group(symbols: str, expected: Any) -> None:
    rows = [(1, 1, 1, "a", 1), (1, 2, 2, "b", 2)]

    assert merge(partial(GROUPED, GROUP), rows, symbols) == [expected]


@pytest.mark.parametrize("sequence", [1, None])
def test_a_retract_that_is_older_or_names_no_sequence_does_nothing(sequence: int | None) -> None:
    rows = [(1, 2, 1, "a", 1), (1, sequence, 9, "z", 9)]

    assert merge(partial(GROUPED, GROUP), rows, "+I -D") == [(2, 1, "a", 1, 1, "+I")]


def test_a_key_that_begins_with_a_retract_without_sequence_begins_with_its_values() -> None:
    rows = [(1, None, 1, "a", 1), (1, None, 2, "b", None)]

    assert merge(partial(GROUPED, GROUP), rows, "-D +I") == [(None, 1, "a", 1, 1, "+I")]


def test_ignored_deletes_do_not_advance_a_group() -> None:
    plan = partial(GROUPED, {**GROUP, "ignore-delete": "true"})
    rows = [(1, 1, 1, "a", 1), (1, 9, 9, "z", 9), (1, 2, 2, "b", 2)]

    assert merge(plan, rows, "+I -D +I") == [(2, 2, "b", 2, 2, "+I")]


def test_an_ignored_delete_at_the_beginning_orders_what_follows() -> None:
    plan = partial(GROUPED, {**GROUP, "ignore-delete": "true"})
    rows = [(1, 9, 9, "z", 9), (1, 2, 2, "b", 2)]

    assert merge(plan, rows, "-D +I") == [(9, 9, "z", 2, 1, "+I")]


# --- functions in groups --------------------------------------------------------------------------


def functions(**given: str) -> MergePlan:
    options = {f"fields.{name}.aggregate-function": text for name, text in given.items()}
    return partial(GROUPED, {**GROUP, **options})


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("sum", "listagg", (3, 111, "c,a,b")),
        ("last_value", "last_non_null_value", (3, 10, "b")),
        ("first_value", "first_non_null_value", (3, 100, "c")),
        ("max", "min", (3, 100, "a")),
    ],
)
def test_records_that_are_older_in_a_group_are_aggregated_too(
    a: str, b: str, expected: Any
) -> None:
    rows = [(1, 2, 1, "a", None), (1, 3, 10, "b", None), (1, 1, 100, "c", None)]

    assert merge(functions(a=a, b=b), rows) == [(*expected, None, 2, "+I")]


def test_records_without_a_sequence_are_not_aggregated() -> None:
    rows = [(1, 2, 1, "a", None), (1, None, 10, "b", None)]

    assert merge(functions(a="sum", b="listagg"), rows) == [(2, 1, "a", None, 1, "+I")]


@pytest.mark.parametrize("sequence", [1, 3])
def test_functions_take_back_what_a_retract_says_however_old(sequence: int) -> None:
    rows = [(1, 2, 10, "a", None), (1, sequence, 4, "b", None)]

    merged = merge(functions(a="sum", b="last_non_null_value"), rows, "+I -U")

    assert merged == [(max(sequence, 2), 6, None, None, 1, "+I")]


def test_a_key_that_begins_with_a_retract_takes_back_its_own_values() -> None:
    rows = [(1, 1, 10, "a", 5), (1, 2, 4, "b", None), (2, 1, 1, "x", 5), (2, 1, 1, "y", None)]

    merged = merge(functions(a="sum", b="last_value"), rows, "-D +I +I +I")

    assert merged == [(2, 4, "b", 5, 1, "+I"), (1, 2, "y", 5, 3, "+I")]


def test_a_function_that_takes_nothing_back_refuses_retracts_unless_it_ignores_them() -> None:
    rows = [(1, 1, 1, "a", None), (1, 2, 2, "b", None)]
    ignoring = {"fields.a.aggregate-function": "max", "fields.a.ignore-retract": "true"}

    with pytest.raises(DataMismatch, match="column a is aggregated by max"):
        merge(functions(a="max"), rows, "+I -D")

    assert merge(partial(GROUPED, {**GROUP, **ignoring}), rows, "+I -D") == [
        (2, 1, None, None, 1, "+I")
    ]


def test_a_default_function_holds_for_columns_of_groups() -> None:
    options = {**GROUP, "fields.default-aggregate-function": "last_non_null_value"}
    rows = [(1, 1, 1, "a", 1), (1, 2, None, "b", None), (1, 1, 9, "z", None)]

    assert merge(partial(GROUPED, options), rows) == [(2, 1, "b", 1, 2, "+I")]


# --- removal by a group ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "symbols", "expected"),
    [
        ([(1, 1, 1, 1, 1), (1, 2, 2, 2, 2)], "+I -D", (2, 2, 2, 2, 1, "-D")),
        ([(1, 1, 1, 1, 1), (1, 2, 2, 2, 2)], "+I -U", (2, None, 2, None, 1, "+I")),
        # Older in the group that decides.
        ([(1, 3, 1, 1, 1), (1, 2, 2, 2, 2)], "+I -D", (3, 1, 2, None, 1, "+I")),
        # No sequence of the group that decides.
        ([(1, 1, 1, 1, 1), (1, None, 2, 2, 2)], "+I -D", (1, 1, 2, None, 1, "+I")),
        # What follows begins with the values of the delete, in all groups.
        (
            [(1, 1, 1, 5, 1), (1, 2, 2, 3, 2), (1, None, None, 4, 4)],
            "+I -D +I",
            (2, 2, 4, 4, 2, "+I"),
        ),
        ([(1, 2, 2, 2, 2), (1, 1, 1, 3, 3)], "-D +I", (2, 2, 3, 3, 1, "+I")),
    ],
)
def test_a_delete_of_one_group_removes_the_row(
    rows: list[Any], symbols: str, expected: Any
) -> None:
    assert merge(partial(TWO, {**TWO_GROUPS, REMOVE: "s1"}), rows, symbols) == [expected]


def test_several_groups_can_remove_the_row() -> None:
    plan = partial(TWO, {**TWO_GROUPS, REMOVE: "s1,s2"})
    rows = [
        (1, 5, 5, 5, 5),
        (1, 6, 6, 1, 1),  # removed by s1, which takes s2 back to 1
        (1, 1, 1, 2, 2),  # removed by s2, which takes s1 back to 1
        (1, 2, 20, None, None),
        (2, 5, 5, 5, 5),
        (2, 4, 4, 4, 4),  # older in both
    ]

    merged = merge(plan, rows, "+I -D -D +I +I -D")

    assert merged == [(2, 20, 2, 2, 3, "+I"), (5, 5, 5, 5, 5, "+I")]


def test_functions_start_over_after_a_removal() -> None:
    options = {**TWO_GROUPS, REMOVE: "s1", "fields.b.aggregate-function": "sum"}
    rows = [(1, 1, 1, 1, 100), (1, 2, 2, 2, 10), (1, 3, 3, 3, 5)]

    assert merge(partial(TWO, options), rows, "+I -D +I") == [(3, 3, 3, 15, 2, "+I")]


# --- projections ----------------------------------------------------------------------------------


@pytest.mark.parametrize("wanted", [["free"], ["k"], ["a"], ["free", "b"]])
def test_columns_are_merged_alike_whichever_are_read(wanted: list[str]) -> None:
    options = {"merge-engine": "partial-update", **GROUP}
    schema = schema_of(GROUPED, ["k"], options)
    whole = plan_merge(schema, schema.fields)
    part = plan_merge(schema, tuple(f for f in schema.fields if f.name in wanted))
    rows = [(1, 2, 1, "a", 1), (1, 3, 2, "b", 2), (1, 1, 3, "c", None), (1, 4, 4, "d", 4)]
    table = records(whole, rows, "+I +I +I -D")

    expected = fold_partial_update(whole, table, np.array([0]))
    names = [f.name for f in part.read_fields]
    folded = fold_partial_update(
        part, table.select([*names, *table.column_names[-2:]]), np.array([0])
    )

    assert folded.select(wanted) == expected.select(wanted)

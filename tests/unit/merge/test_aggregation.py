"""Merge engine aggregation."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from emberlake.errors import DataMismatch
from emberlake.merge.aggregation import fold_aggregation
from emberlake.merge.plan import MergePlan
from merge_tables import plan_of, records, shown

KEY = {"k": "INT NOT NULL"}
SUM = {"fields.n.aggregate-function": "sum"}
REMOVE = {"aggregation.remove-record-on-delete": "true"}


def aggregation(columns: Mapping[str, str], options: Mapping[str, str] | None = None) -> MergePlan:
    return plan_of({**KEY, **columns}, ["k"], {"merge-engine": "aggregation", **(options or {})})


def merge(plan: MergePlan, rows: Sequence[Sequence[Any]], symbols: str = "") -> list[Any]:
    """Merged rows without the key, their sequence number and kind at the end."""
    table = records(plan, rows, symbols)
    keys = np.array([row[0] for row in rows])
    starts = np.flatnonzero(np.diff(keys, prepend=keys[0] - 1))
    return [row[1:] for row in shown(fold_aggregation(plan, table, starts))]


def test_each_column_has_its_function() -> None:
    plan = aggregation({"n": "INT", "last": "STRING"}, SUM)
    rows = [(1, 1, "a"), (1, 2, None), (2, None, "x"), (2, 5, "y"), (2, 7, None)]

    assert merge(plan, rows) == [(3, "a", 1, "+I"), (12, "y", 4, "+I")]


def test_the_default_function_is_an_option() -> None:
    plan = aggregation(
        {"n": "INT", "m": "INT"}, {**SUM, "fields.default-aggregate-function": "max"}
    )

    assert merge(plan, [(1, 1, 9), (1, 2, 3)]) == [(3, 9, 1, "+I")]


def test_columns_that_order_records_keep_the_last_value() -> None:
    options = {"sequence.field": "s", "fields.default-aggregate-function": "sum"}
    plan = aggregation({"s": "INT", "n": "INT"}, options)

    assert merge(plan, [(1, None, 1), (1, 3, 1), (1, 4, 1)]) == [(4, 3, 2, "+I")]


def test_a_single_record_is_returned_as_it_is() -> None:
    plan = aggregation(
        {"n": "INT", "t": "STRING"}, {**SUM, "fields.t.aggregate-function": "listagg"}
    )
    rows = [(1, 5, " "), (2, 1, "a"), (2, 1, "b"), (3, 7, ""), (4, None, None)]

    assert merge(plan, rows, "-D +I +I +U -U") == [
        (5, " ", 0, "-D"),
        (2, "a,b", 2, "+I"),
        (7, "", 3, "+U"),
        (None, None, 4, "-U"),
    ]


def test_no_records_are_no_rows() -> None:
    plan = aggregation({"n": "INT"}, SUM)
    rows = records(plan, [(1, 1)])

    folded = fold_aggregation(plan, rows.slice(0, 0), np.zeros(0, dtype=np.int64))

    assert folded.schema == rows.schema
    assert folded.num_rows == 0


@pytest.mark.parametrize(
    ("symbols", "expected"),
    [
        ("+I -U +U", (1 - 2 + 4, "c")),
        ("+I +U -D", (1 + 2 - 4, None)),
        ("-D -D -D", (-7, None)),
    ],
)
def test_retracts_are_taken_back_and_the_row_stays(symbols: str, expected: Any) -> None:
    plan = aggregation({"n": "INT", "t": "STRING"}, SUM)
    rows = [(1, 1, "a"), (1, 2, "b"), (1, 4, "c")]

    assert merge(plan, rows, symbols) == [(*expected, 2, "+I")]


def test_retracts_can_be_ignored_by_column() -> None:
    options = {**SUM, "fields.n.ignore-retract": "true", "fields.m.aggregate-function": "sum"}

    merged = merge(aggregation({"n": "INT", "m": "INT"}, options), [(1, 1, 1), (1, 2, 2)], "+I -D")

    assert merged == [(1, -1, 1, "+I")]


@pytest.mark.parametrize(
    ("symbols", "expected"),
    [
        ("+I +I -D", (4, "c", "-D")),
        ("+I -D +I", (6, "b", "+I")),
        ("-D +I +I", (7, "a", "+I")),
        ("+I -D -D", (4, "c", "-D")),
    ],
)
def test_a_delete_can_remove_the_record(symbols: str, expected: Any) -> None:
    plan = aggregation(
        {"n": "INT", "t": "STRING"}, {**SUM, **REMOVE, "fields.t.aggregate-function": "min"}
    )
    rows = [(1, 1, "a"), (1, 2, "b"), (1, 4, "c")]

    *values, kind = expected
    assert merge(plan, rows, symbols) == [(*values, 2, kind)]


def test_a_removal_without_a_value_that_must_be_there_is_refused() -> None:
    plan = aggregation({"n": "INT NOT NULL"}, {**SUM, **REMOVE})
    rows = records(aggregation({"n": "INT"}, SUM), [(1, 1), (1, None)], "+I -D")

    with pytest.raises(DataMismatch, match="column n is INT NOT NULL"):
        fold_aggregation(plan, rows, np.array([0]))


def test_a_sum_that_does_not_fit_names_its_column() -> None:
    plan = aggregation({"n": "DECIMAL(4, 2)"}, SUM)

    with pytest.raises(DataMismatch, match=r"sum of column n does not fit DECIMAL\(4, 2\)"):
        merge(plan, [(1, Decimal("99.99")), (1, Decimal("0.01"))])

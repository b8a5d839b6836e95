"""One row per key: engines that choose a record, and what all engines share."""

import pyarrow as pa
import pytest

from emberlake.errors import DataMismatch
from emberlake.merge.fold import fold
from emberlake.merge.rows import take_rows
from emberlake.spec.key_value import KIND, KIND_FIELD, SEQUENCE, SEQUENCE_FIELD
from emberlake.types import arrow_schema
from merge_tables import plan_of, records, shown

COLUMNS = {"k": "INT", "v": "STRING"}


def test_deduplicate_keeps_the_latest_record_of_every_key():
    plan = plan_of(COLUMNS, ["k"])
    table = records(plan, [(2, "a"), (1, "b"), (2, "c"), (1, None)], "+I +I +U +I")
    assert shown(fold(plan, table, keep_deletes=False)) == [(1, None, 3, "+I"), (2, "c", 2, "+U")]


def test_a_sequence_field_decides_before_the_sequence_number():
    options = {"sequence.field": "s,t"}
    plan = plan_of({"k": "INT", "s": "INT", "t": "DOUBLE"}, ["k"], options)
    table = records(plan, [(1, 5, 1.0), (1, 5, 0.5), (1, None, 9.0), (2, 1, 1.0), (2, 1, 1.0)])
    assert shown(fold(plan, table, keep_deletes=False)) == [
        (1, 5, 1.0, 0, "+I"),
        (2, 1, 1.0, 4, "+I"),
    ]


def test_deleted_rows_are_dropped_unless_they_are_kept():
    plan = plan_of(COLUMNS, ["k"])
    table = records(plan, [(1, "a"), (1, "b"), (2, "c"), (3, "d")], "+I -D -U +I")
    assert shown(fold(plan, table, keep_deletes=False)) == [(3, "d", 3, "+I")]
    assert shown(fold(plan, table, keep_deletes=True)) == [
        (1, "b", 1, "-D"),
        (2, "c", 2, "-U"),
        (3, "d", 3, "+I"),
    ]


def test_ignored_deletes_are_skipped_but_a_single_record_stays_as_it_is():
    plan = plan_of(COLUMNS, ["k"], {"ignore-delete": "true"})
    rows = [(1, "a"), (1, "b"), (2, "c"), (3, "d"), (3, "e"), (4, "f")]
    table = records(plan, rows, "+I -D -D -U -D +U")
    assert shown(fold(plan, table, keep_deletes=False)) == [(1, "a", 0, "+I"), (4, "f", 5, "+U")]
    assert shown(fold(plan, table, keep_deletes=True)) == [
        (1, "a", 0, "+I"),
        (2, "c", 2, "-D"),
        (4, "f", 5, "+U"),
    ]


def test_first_row_keeps_the_earliest_record():
    plan = plan_of(COLUMNS, ["k"], {"merge-engine": "first-row"})
    table = records(plan, [(2, "a", 7), (1, "b", 3), (2, "c", 5), (1, "d", 4)])
    assert shown(fold(plan, table, keep_deletes=False)) == [(1, "b", 3, "+I"), (2, "c", 5, "+I")]


def test_first_row_refuses_deletes_of_a_key_with_other_records():
    plan = plan_of(COLUMNS, ["k"], {"merge-engine": "first-row"})
    table = records(plan, [(2, "a"), (1, "b"), (2, "c")], "+I +I -D")
    with pytest.raises(DataMismatch, match=r"key \(2,\) has one: set ignore-delete"):
        fold(plan, table, keep_deletes=False)
    alone = records(plan, [(2, "a"), (1, "b")], "+I -D")
    assert shown(fold(plan, alone, keep_deletes=False)) == [(2, "a", 0, "+I")]


def test_first_row_skips_deletes_where_they_are_ignored():
    options = {"merge-engine": "first-row", "first-row.ignore-delete": "true"}
    plan = plan_of(COLUMNS, ["k"], options)
    table = records(plan, [(1, "a"), (1, "b"), (1, "c"), (2, "d"), (2, "e")], "-D +I +I -D -U")
    assert shown(fold(plan, table, keep_deletes=True)) == [(1, "b", 1, "+I")]


@pytest.mark.parametrize("engine", ["deduplicate", "first-row", "partial-update", "aggregation"])
def test_no_records_give_no_rows_and_single_records_are_not_touched(engine):
    plan = plan_of(COLUMNS, ["k"], {"merge-engine": engine})
    table = records(plan, [(3, "a"), (1, None), (2, "b")], "+U +I -D")
    assert fold(plan, table.slice(0, 0), keep_deletes=True).num_rows == 0
    assert shown(fold(plan, table, keep_deletes=True)) == [
        (1, None, 1, "+I"),
        (2, "b", 2, "-D"),
        (3, "a", 0, "+U"),
    ]


@pytest.mark.parametrize("engine", ["partial-update", "aggregation"])
def test_rows_that_are_made_stand_among_single_records_and_keep_the_schema(engine):
    plan = plan_of({"k": "INT NOT NULL", "v": "STRING"}, ["k"], {"merge-engine": engine})
    table = records(plan, [(1, "a"), (2, "b"), (3, "c"), (2, None)], "+U +I -D +I")
    schema = arrow_schema((*plan.read_fields, SEQUENCE_FIELD, KIND_FIELD))
    folded = fold(plan, table.cast(schema), keep_deletes=True)
    assert shown(folded) == [(1, "a", 0, "+U"), (2, "b", 3, "+I"), (3, "c", 2, "-D")]
    assert folded.schema == schema


def test_sorted_records_are_not_sorted_again():
    plan = plan_of(COLUMNS, ["k"])
    # The numbers of key 1 fall: only rows that are taken as sorted keep the second as the latest.
    table = records(plan, [(1, "a", 9), (1, "b", 1), (2, "c", 5)])
    assert shown(fold(plan, table, is_sorted=True, keep_deletes=False))[0][1] == "b"
    assert shown(fold(plan, table, keep_deletes=False))[0][1] == "a"


def test_columns_come_out_in_the_order_of_the_plan_and_others_are_left_out():
    plan = plan_of(COLUMNS, ["k"])
    table = records(plan, [(1, "a")]).append_column("more", pa.array([1]))
    folded = fold(plan, table.select(["more", KIND, "v", SEQUENCE, "k"]), keep_deletes=False)
    assert folded.column_names == ["k", "v", SEQUENCE, KIND]


def test_rows_that_stand_together_are_cut_out_without_copies():
    table = pa.table({"a": range(20_000)})
    stretches = pa.array([*range(9_000, 15_000), *range(5_000)]).to_numpy()
    taken = take_rows(table, stretches)
    assert taken["a"].to_pylist() == stretches.tolist()
    assert taken["a"].chunk(0).buffers()[1].address == table["a"].chunk(0).buffers()[1].address
    assert take_rows(table, stretches[::-1])["a"].to_pylist() == stretches[::-1].tolist()
    assert take_rows(table, stretches[:0]).num_rows == 0


RETRACTS = {
    "aggregation": {"fields.v.aggregate-function": "last_value"},
    "partial-update": {"fields.s.sequence-group": "v"},
}


@pytest.mark.parametrize("engine", RETRACTS)
def test_a_row_that_is_left_without_a_value_it_needs_is_an_error(engine):
    table, plan = _with_a_needed_value(engine, [(1, 1, "a"), (1, 2, "b"), (2, 1, "c")], "+I -U +I")
    for keep_deletes in (True, False):
        with pytest.raises(DataMismatch, match=r"column v is STRING NOT NULL.*update_column"):
            fold(plan, table, keep_deletes=keep_deletes)


def test_a_deleted_row_needs_no_values_where_it_is_dropped():
    rows = [(1, 1, "a"), (1, 2, "b"), (2, 1, "c"), (3, 1, "d"), (3, 2, "e"), (4, 1, "f")]
    table, plan = _with_a_needed_value("partial-update", rows, "-D -D +I +I +I -D")
    assert shown(fold(plan, table, keep_deletes=False)) == [
        (2, 1, "c", 2, "+I"),
        (3, 2, "e", 4, "+I"),
    ]
    with pytest.raises(DataMismatch, match="column v"):
        fold(plan, table, keep_deletes=True)


def _with_a_needed_value(engine, rows, symbols):
    columns = {"k": "INT NOT NULL", "s": "INT", "v": "STRING NOT NULL"}
    plan = plan_of(columns, ["k"], {"merge-engine": engine, **RETRACTS[engine]})
    schema = arrow_schema((*plan.read_fields, SEQUENCE_FIELD, KIND_FIELD))
    return records(plan, rows, symbols).cast(schema), plan

"""Sorted runs become one, table by table."""

from collections.abc import Iterator

import pyarrow as pa

from emberlake.merge.runs import merge_runs
from emberlake.spec.key_value import KIND, SEQUENCE
from merge_tables import plan_of, records, shown

PLAN = plan_of({"k": "INT", "v": "STRING"}, ["k"])


def run(values: range, text: str, number: int = 0, size: int = 3) -> list[pa.Table]:
    table = records(PLAN, [(key, text, number) for key in values])
    return [table.slice(start, size) for start in range(0, table.num_rows, size)]


def test_overlapping_runs_are_merged_and_no_key_spans_two_tables():
    runs = [run(range(10), "old"), run(range(3, 14, 2), "new", 1, size=2)]
    tables = list(merge_runs(PLAN, runs, keep_deletes=False))
    merged = shown(pa.concat_tables(tables))
    assert [row[0] for row in merged] == [*range(10), 11, 13]
    assert [row[0] for row in merged if row[1] == "new"] == [3, 5, 7, 9, 11, 13]


def test_equal_records_count_by_run_and_the_later_is_newer():
    runs = [run(range(3), "a"), run(range(3), "c"), run(range(3), "b")]
    merged = shown(pa.concat_tables(merge_runs(PLAN, runs, keep_deletes=False)))
    assert {row[1] for row in merged} == {"b"}


def test_runs_that_do_not_overlap_are_handed_on_as_they_are():
    first, second = run(range(6), "a"), run(range(6, 12), "b")
    tables = list(merge_runs(PLAN, [second, first], keep_deletes=False))
    assert [table["k"].to_pylist() for table in tables] == [
        [0, 1, 2],
        [3, 4, 5],
        [6, 7, 8],
        [9, 10, 11],
    ]
    here = tables[0]["k"].chunk(0).buffers()[1].address
    assert here == first[0]["k"].chunk(0).buffers()[1].address


def test_deletes_are_dropped_or_kept():
    old = [records(PLAN, [(1, "a", 0), (2, "b", 0)])]
    new = [records(PLAN, [(1, "x", 1), (3, "y", 1)], "-D -D")]
    assert shown(pa.concat_tables(merge_runs(PLAN, [new, old], keep_deletes=False))) == [
        (2, "b", 0, "+I")
    ]
    kept = shown(pa.concat_tables(merge_runs(PLAN, [new, old], keep_deletes=True)))
    assert kept == [(1, "x", 1, "-D"), (2, "b", 0, "+I"), (3, "y", 1, "-D")]


def test_no_runs_empty_runs_and_empty_tables_give_nothing():
    empty = records(PLAN, [])
    assert list(merge_runs(PLAN, [], keep_deletes=True)) == []
    assert list(merge_runs(PLAN, [[], [empty]], keep_deletes=True)) == []
    runs = [[], [empty, *run(range(2), "a"), empty]]
    assert [t.num_rows for t in merge_runs(PLAN, runs, keep_deletes=True)] == [2]


def test_columns_come_out_in_the_order_of_the_plan_whether_merged_or_not():
    turned = [t.select([KIND, "v", "k", SEQUENCE]) for t in run(range(9), "a")]
    tables = list(merge_runs(PLAN, [turned, run(range(2), "b", 1)], keep_deletes=False))
    assert {tuple(t.column_names) for t in tables} == {("k", "v", SEQUENCE, KIND)}


def test_runs_are_read_no_further_than_needed_and_closed_when_the_caller_stops():
    read: list[int] = []
    closed: list[str] = []

    def stream(name: str, first: int) -> Iterator[pa.Table]:
        try:
            for start in range(first, first + 100, 10):
                read.append(start)
                yield records(PLAN, [(key, name) for key in range(start, start + 10)])
        finally:
            closed.append(name)

    merged = merge_runs(PLAN, [stream("a", 0), stream("b", 1000)], keep_deletes=False)
    next(merged)
    assert sorted(read) == [0, 1000]
    merged.close()
    assert sorted(closed) == ["a", "b"]

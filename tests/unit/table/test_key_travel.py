"""Earlier snapshots of a table whose columns have other names by now."""

from emberlake import SchemaChange
from key_writes import create_key_table, upsert
from table_reads import alter, read_rows

COLUMNS = {"id": "BIGINT", "a": "INT", "b": "INT"}
SUMS = {
    "merge-engine": "aggregation",
    "fields.a.aggregate-function": "sum",
    "fields.b.aggregate-function": "max",
}


def test_functions_follow_their_columns_back_to_old_names() -> None:
    table = create_key_table(COLUMNS, **SUMS)
    upsert(table, [(1, 1, 1)])
    upsert(table, [(1, 2, 0)])

    table = alter(table, SchemaChange.rename_column("a", "total"))

    then = table.copy({"scan.snapshot-id": 2})
    assert read_rows(then) == [{"id": 1, "a": 3, "b": 1}]
    assert read_rows(then.copy({"scan.snapshot-id": None})) == [{"id": 1, "total": 3, "b": 1}]


def test_functions_follow_columns_that_swapped_their_names() -> None:
    table = create_key_table(COLUMNS, **SUMS)
    upsert(table, [(1, 1, 1)])
    upsert(table, [(1, 2, 0)])

    for old, new in (("a", "c"), ("b", "a"), ("c", "b")):
        table = alter(table, SchemaChange.rename_column(old, new))

    assert read_rows(table.copy({"scan.snapshot-id": 2})) == [{"id": 1, "a": 3, "b": 1}]
    assert read_rows(table) == [{"id": 1, "b": 3, "a": 1}]

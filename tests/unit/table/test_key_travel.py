"""Earlier snapshots of a table whose columns, or how they are merged, are others by now."""

from builders import alter, create_key_table, upsert
from emberlake import AtomicType, SchemaChange
from table_reads import read_rows

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


def test_before_a_column_that_orders_records_there_was_another_order() -> None:
    table = create_key_table({"id": "BIGINT", "a": "INT"})
    upsert(table, [(1, 5)])
    upsert(table, [(1, 3)])
    table = alter(table, SchemaChange.add_column("at", AtomicType("INT")))
    table = alter(table, SchemaChange.set_option("sequence.field", "at"))
    upsert(table, [(1, 7, 9)])
    upsert(table, [(1, 8, 2)])

    assert read_rows(table.copy({"scan.snapshot-id": 2})) == [{"id": 1, "a": 3}]
    assert read_rows(table.copy({"scan.snapshot-id": 4})) == [{"id": 1, "a": 7, "at": 9}]


def test_before_a_sequence_group_its_columns_were_updated_one_by_one() -> None:
    table = create_key_table(COLUMNS, **{"merge-engine": "partial-update"})
    upsert(table, [(1, 5, None)])
    upsert(table, [(1, None, 3)])
    table = alter(table, SchemaChange.add_column("g", AtomicType("INT")))
    group = SchemaChange.set_option("fields.g.sequence-group", "a")
    table = alter(table, group, SchemaChange.set_option("fields.a.aggregate-function", "sum"))
    upsert(table, [(1, 7, 1, 9)])

    then = table.copy({"scan.snapshot-id": 2})
    assert read_rows(then) == [{"id": 1, "a": 5, "b": 3}]
    assert read_rows(then.copy({"scan.snapshot-id": None})) == read_rows(table)


def test_before_a_column_came_into_a_sequence_group_the_group_was_smaller() -> None:
    columns = {"id": "BIGINT", "a": "INT", "g": "INT"}
    options = {"merge-engine": "partial-update", "fields.g.sequence-group": "a"}
    table = create_key_table(columns, **options)
    upsert(table, [(1, 5, 2)])
    upsert(table, [(1, 3, 1)])
    table = alter(table, SchemaChange.add_column("b", AtomicType("INT")))
    table = alter(table, SchemaChange.set_option("fields.g.sequence-group", "a,b"))

    assert read_rows(table.copy({"scan.snapshot-id": 2})) == [{"id": 1, "a": 5, "g": 2}]


def test_a_column_that_is_gone_has_its_function_in_the_past() -> None:
    table = create_key_table(COLUMNS, **SUMS)
    upsert(table, [(1, 1, 1)])
    upsert(table, [(1, 2, 0)])
    table = alter(table, SchemaChange.remove_option("fields.a.aggregate-function"))
    table = alter(table, SchemaChange.drop_column("a"))

    assert read_rows(table.copy({"scan.snapshot-id": 2})) == [{"id": 1, "a": 3, "b": 1}]


def test_before_deletion_vectors_new_files_were_seen_at_once() -> None:
    table = create_key_table(COLUMNS, **{"deletion-vectors.modifiable": "true"})
    upsert(table, [(1, 1, 1)])
    table = alter(table, SchemaChange.set_option("deletion-vectors.enabled", "true"))

    assert read_rows(table) == []
    assert read_rows(table.copy({"scan.snapshot-id": 1})) == [{"id": 1, "a": 1, "b": 1}]


def test_options_of_this_program_travel_along_and_back() -> None:
    table = create_key_table(COLUMNS, **SUMS)
    upsert(table, [(1, 1, 1)])
    table = alter(table, SchemaChange.rename_column("a", "total"))
    own = {"source.split.target-size": "1 kb", "fields.b.aggregate-function": None}

    then = table.copy({**own, "scan.snapshot-id": 1})
    now = then.copy({"scan.snapshot-id": None})

    for copied, sums in ((then, "a"), (now, "total")):
        assert copied.options["source.split.target-size"] == "1 kb"
        assert "fields.b.aggregate-function" not in copied.options
        assert copied.options[f"fields.{sums}.aggregate-function"] == "sum"

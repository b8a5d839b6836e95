"""Deleting and updating rows, in every kind of table that allows it."""

import datetime as dt
from collections.abc import Callable, Iterable
from decimal import Decimal

import pyarrow as pa
import pytest

from builders import alter, create_key_table, create_table
from emberlake import SchemaChange, lit
from emberlake.errors import (
    ColumnNotFound,
    DataMismatch,
    InvalidExpression,
    InvalidInput,
    InvalidPredicate,
    InvalidState,
    Unsupported,
)
from emberlake.table import Table
from table_reads import files_under, live_files
from tracked_tables import EVOLVING, TRACKED, VECTORS, with_ids

COLUMNS = pa.schema(
    [("id", pa.int64()), ("city", pa.string()), ("price", pa.int32()), ("day", pa.string())]
)
ROWS = [(n, "paris" if n % 2 else "rome", n * 10, "mon" if n < 4 else "tue") for n in range(1, 9)]

KINDS: dict[str, Callable[[], Table]] = {
    "rewrite": lambda: create_table(columns=COLUMNS),
    "vectors": lambda: create_table(columns=COLUMNS, options=VECTORS),
    "tracked": lambda: create_table(columns=COLUMNS, options=TRACKED),
    "tracked vectors": lambda: create_table(columns=COLUMNS, options={**TRACKED, **VECTORS}),
    "columns": lambda: create_table(columns=COLUMNS, options={**EVOLVING, **VECTORS}),
    "partitioned": lambda: create_table(columns=COLUMNS, partition_keys=["day"]),
    "partitioned vectors": lambda: create_table(
        columns=COLUMNS, partition_keys=["day"], options=VECTORS
    ),
    "buckets": lambda: create_table(
        columns=COLUMNS, options={"bucket": "2", "bucket-key": "id", **VECTORS}
    ),
    "rewritten buckets": lambda: create_table(
        columns=COLUMNS, options={"bucket": "2", "bucket-key": "id"}
    ),
    "keys": lambda: create_key_table(COLUMNS),
    "dynamic keys": lambda: create_key_table(COLUMNS, bucket="-1"),
    "key vectors": lambda: create_key_table(COLUMNS, **VECTORS),
}
GROUPS = {"merge-engine": "partial-update", "fields.price.sequence-group": "city,day"}
every_kind = pytest.mark.parametrize("kind", KINDS)


def as_table(rows: Iterable[tuple]) -> pa.Table:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, COLUMNS, strict=True)]
    return pa.Table.from_arrays(arrays, schema=COLUMNS)


def filled(kind: str) -> Table:
    """Eight rows in two files of each bucket."""
    table = KINDS[kind]()
    table.append(as_table(ROWS[:5]))
    table.append(as_table(ROWS[5:]))
    return table


def rows_of(table: Table) -> list[tuple]:
    return sorted(tuple(row.values()) for row in table.to_arrow().to_pylist())


@every_kind
def test_deletes_the_rows_that_match_and_no_others(kind: str) -> None:
    table = filled(kind)
    result = table.delete("price >= 30 AND city = 'paris'")
    assert rows_of(table) == [r for r in ROWS if not (r[2] >= 30 and r[1] == "paris")]
    assert (result.rows_deleted, result.rows_updated, result.rows_inserted) == (3, 0, 0)
    assert result.snapshot_id == table.store.snapshots.latest().id


@every_kind
def test_deletes_by_an_expression(kind: str) -> None:
    table = filled(kind)
    table.delete("id + price > 70 OR UPPER(city) = 'PARIS' AND id % 3 = 0")
    kept = [r for r in ROWS if not (r[0] + r[2] > 70 or (r[1] == "paris" and r[0] % 3 == 0))]
    assert rows_of(table) == kept


@every_kind
def test_updates_the_rows_that_match_and_no_others(kind: str) -> None:
    table = filled(kind)
    result = table.update({"price": "price * 2 + id", "city": lit("oslo")}, "id BETWEEN 3 AND 6")
    expected = [(r[0], "oslo", r[2] * 2 + r[0], r[3]) if 3 <= r[0] <= 6 else r for r in ROWS]
    assert rows_of(table) == expected
    assert (result.rows_updated, result.rows_deleted, result.rows_inserted) == (4, 0, 0)


@every_kind
def test_updates_all_rows_without_a_condition(kind: str) -> None:
    table = filled(kind)
    assert table.update({"price": 0}).rows_updated == 8
    assert {r[2] for r in rows_of(table)} == {0}


@every_kind
def test_operations_follow_one_another(kind: str) -> None:
    table = filled(kind)
    table.delete("id = 2")
    table.update({"price": "price + 1"}, "city = 'rome'")
    table.append(as_table([(9, "rome", 1, "mon")]))
    table.delete("id IN (4, 9)")
    table.update({"price": "price + 1"}, "id IN (6, 1)")
    table.compact(full=True)
    table.delete("id = 7")
    assert [(r[0], r[2]) for r in rows_of(table)] == [(1, 11), (3, 30), (5, 50), (6, 62), (8, 81)]


@every_kind
def test_no_match_makes_no_snapshot(kind: str) -> None:
    table = filled(kind)
    before = table.store.snapshots.latest().id
    files = set(files_under(table.store.storage, ""))
    assert table.delete("id = 99").snapshot_id is None
    assert table.delete("id + 1 = 99").snapshot_id is None
    assert table.update({"price": 1}, "id = 99").snapshot_id is None
    assert table.delete("FALSE").snapshot_id is None
    assert table.store.snapshots.latest().id == before
    assert set(files_under(table.store.storage, "")) == files


@every_kind
def test_a_table_without_rows_is_left_alone(kind: str) -> None:
    table = KINDS[kind]()
    assert table.delete("TRUE").snapshot_id is None
    assert table.update({"price": 1}).rows_updated == 0


@every_kind
def test_a_condition_that_is_unknown_deletes_nothing(kind: str) -> None:
    table = KINDS[kind]()
    table.append(as_table([(1, None, 5, "mon"), (2, "rome", None, "mon")]))
    assert table.delete("city <> 'rome'").snapshot_id is None
    assert table.delete("NOT (city = 'paris')").rows_deleted == 1
    assert rows_of(table) == [(1, None, 5, "mon")]


@pytest.mark.parametrize("kind", [k for k in KINDS if "key" not in k])
def test_a_condition_that_is_true_for_whole_files_reads_none_of_them(kind: str) -> None:
    table = filled(kind)
    for path in [entry.file.file_name for entry in live_files(table)]:
        (found,) = [p for p in files_under(table.store.storage, "") if p.endswith(path)]
        table.store.storage.delete(found)  # whoever reads a file fails
    result = table.delete("TRUE")
    assert (result.rows_deleted, result.files_removed) == (8, result.files_deleted)
    assert table.count() == 0


def test_a_partition_is_deleted_without_reading_it() -> None:
    table = filled("partitioned")
    result = table.delete("day = 'mon'")
    assert (result.rows_deleted, result.rows_copied, result.files_added) == (3, 0, 0)
    assert {r[3] for r in rows_of(table)} == {"tue"}


def test_only_files_with_matches_are_written_again() -> None:
    table = filled("rewrite")
    result = table.delete("id = 7")
    assert (result.files_removed, result.files_added) == (1, 1)
    assert (result.rows_deleted, result.rows_copied) == (1, 2)
    assert result.strategy == "rewrite"
    result = table.update({"price": 1}, "id = 1")
    assert (result.rows_updated, result.rows_copied, result.files_removed) == (1, 4, 1)


def test_vectors_mark_rows_and_leave_files_alone() -> None:
    table = filled("vectors")
    result = table.delete("id = 7")
    assert (result.files_removed, result.files_added, result.files_marked) == (0, 0, 1)
    assert (result.rows_copied, result.strategy) == (0, "vectors")
    result = table.update({"price": 1}, "id IN (1, 6)")
    assert (result.files_marked, result.files_added, result.rows_updated) == (2, 1, 2)


def test_data_evolution_writes_only_the_columns_that_change() -> None:
    table = filled("columns")
    result = table.update({"price": "price + 1"}, "id = 1")
    assert (result.strategy, result.files_added, result.files_removed) == ("columns", 1, 0)
    assert (result.rows_updated, result.rows_copied) == (1, 4)
    assert {entry.file.write_cols for entry in live_files(table)} == {None, ("price",)}


@pytest.mark.parametrize("kind", ["tracked", "tracked vectors", "columns"])
def test_rows_keep_their_ids(kind: str) -> None:
    table = filled(kind)
    before = {row[0]: row_id for row_id, row in with_ids(table).items()}
    table.update({"price": "price + 1"}, "id > 3")
    table.delete("id = 5")
    after = {row[0]: row_id for row_id, row in with_ids(table).items()}
    assert after == {n: row_id for n, row_id in before.items() if n != 5}


def test_hidden_columns_can_be_named_in_conditions() -> None:
    table = filled("tracked vectors")
    ids = {row[0]: row_id for row_id, row in with_ids(table).items()}
    table.update({"price": "CAST(_ROW_ID AS INT)"}, f"_ROW_ID = {ids[3]}")
    assert rows_of(table)[2][2] == ids[3]


@pytest.mark.parametrize("kind", ["partitioned", "partitioned vectors"])
def test_a_row_moves_to_another_partition(kind: str) -> None:
    table = filled(kind)
    result = table.update({"day": lit("wed")}, "id IN (1, 8)")
    assert result.rows_updated == 2
    assert [r[0] for r in rows_of(table) if r[3] == "wed"] == [1, 8]
    assert table.count("day = 'wed'") == 2
    assert len(rows_of(table)) == 8


@pytest.mark.parametrize("kind", ["buckets", "rewritten buckets"])
def test_a_row_moves_to_the_bucket_of_its_new_key(kind: str) -> None:
    table = filled(kind)
    table.update({"id": "id + 100"}, "id > 5")
    for key in (106, 107, 108):
        assert table.count(f"id = {key}") == 1  # a filter on the key looks into one bucket only
    assert len(rows_of(table)) == 8


def test_a_row_that_moves_keeps_its_id() -> None:
    table = create_table(columns=COLUMNS, partition_keys=["day"], options=TRACKED)
    table.append(as_table(ROWS))
    before = {row[0]: row_id for row_id, row in with_ids(table).items()}
    table.update({"day": lit("wed")}, "id = 1")
    assert {row[0]: row_id for row_id, row in with_ids(table).items()} == before


def test_rows_written_with_an_older_schema_get_the_present_columns() -> None:
    table = filled("rewrite")
    changed = alter(table, SchemaChange.add_column("note", "STRING"))
    table.update({"price": 1}, "id = 1")  # through a table object that does not know the column
    assert changed.to_arrow(filter="id = 1").to_pylist()[0] == {
        "id": 1, "city": "paris", "price": 1, "day": "mon", "note": None,
    }  # fmt: skip
    changed.update({"note": "city || '!'"}, "id = 1")
    assert changed.to_arrow(["note"], "id = 1").to_pylist() == [{"note": "paris!"}]


def test_values_are_rounded_and_checked_like_spark_does() -> None:
    schema = pa.schema([("id", pa.int32()), ("price", pa.decimal128(6, 2)), ("at", pa.date32())])
    table = create_table(columns=schema)
    table.append(pa.table({"id": [1, 2], "price": [Decimal("8.25")] * 2, "at": [None] * 2}, schema))
    table.update({"price": "price * 1.1", "at": dt.date(2026, 1, 2)}, "id = 1")
    first = table.to_arrow(filter="id = 1").to_pylist()[0]
    assert (first["price"], first["at"]) == (Decimal("9.08"), dt.date(2026, 1, 2))
    with pytest.raises(DataMismatch, match="does not fit"):
        table.update({"price": "price * 1000000"})


# --- what is refused, before anything is written --------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda t: t.delete("nope = 1"), ColumnNotFound, "no column 'nope'"),
        (lambda t: t.delete("id + 1"), InvalidExpression, "is BIGINT"),
        (lambda t: t.delete("id ="), InvalidExpression, "expected"),
        (lambda t: t.delete("id = 'x'"), InvalidInput, "is not of type BIGINT"),
        (lambda t: t.delete(None), InvalidInput, "truncate_table"),
        (lambda t: t.delete(5), InvalidPredicate, "a filter is text"),
        (lambda t: t.update({}), InvalidInput, "say what to set"),
        (lambda t: t.update({"nope": 1}), ColumnNotFound, "no column 'nope' to set"),
        (lambda t: t.update({"price": "city"}), InvalidExpression, "does not fit price INT"),
        (lambda t: t.update({"price": 2**40}), InvalidExpression, "does not fit price INT"),
        (lambda t: t.update({"price": "2 * nope"}), ColumnNotFound, "no column 'nope'"),
        (lambda t: t.update({"price": "price / 0"}), InvalidExpression, "fraction would be lost"),
        (lambda t: t.update({"price": "price % 0"}), DataMismatch, "division by zero"),
    ],
)
@pytest.mark.parametrize("kind", ["rewrite", "vectors", "columns", "keys"])
def test_what_does_not_fit_is_one_error_and_changes_nothing(
    kind: str, call: Callable[[Table], object], error: type[Exception], said: str
) -> None:
    table = filled(kind)
    before = set(files_under(table.store.storage, ""))
    with pytest.raises(error, match=said):
        call(table)
    assert set(files_under(table.store.storage, "")) == before


@pytest.mark.parametrize("options", [{}, VECTORS, TRACKED, {**EVOLVING, **VECTORS}])
def test_a_null_in_a_column_that_may_not_be_null_changes_nothing(options: dict) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.int64())])
    table = create_table(columns=schema, options=options)
    table.append(pa.table({"id": [1, 2], "v": [None, 5]}, schema))
    before = set(files_under(table.store.storage, ""))
    with pytest.raises(InvalidExpression, match="NOT NULL"):
        table.update({"id": "NULL"})
    with pytest.raises(DataMismatch, match="null"):
        table.update({"id": "v"})
    assert set(files_under(table.store.storage, "")) == before


def test_a_table_at_an_earlier_snapshot_is_not_changed() -> None:
    table = filled("rewrite").copy({"scan.snapshot-id": "1"})
    with pytest.raises(InvalidState, match="earlier snapshot"):
        table.delete("id = 1")


# --- tables with a primary key --------------------------------------------------------------------


@pytest.mark.parametrize("column", ["id", "day"])
def test_columns_that_identify_rows_are_not_updated(column: str) -> None:
    table = create_key_table(COLUMNS, ("day", "id"), ("day",))
    with pytest.raises(Unsupported, match="tell rows apart"):
        table.update({column: f"{column}"})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"merge-engine": "first-row"}, "cannot be updated"),
        ({"merge-engine": "aggregation"}, "cannot be updated"),
        ({"rowkind.field": "city"}, "what a row does"),
    ],
)
def test_engines_that_do_not_replace_rows_take_no_update(options: dict, said: str) -> None:
    with pytest.raises(Unsupported, match=said):
        create_key_table(COLUMNS, **options).update({"price": 1})


@pytest.mark.parametrize(
    "options",
    [
        {"merge-engine": "first-row"},
        {"merge-engine": "aggregation"},
        {"merge-engine": "partial-update"},
        {"ignore-delete": "true"},
    ],
)
def test_engines_that_keep_rows_take_no_delete(options: dict) -> None:
    with pytest.raises(Unsupported):
        create_key_table(COLUMNS, **options).delete("id = 1")


def test_partial_updates_change_values_but_cannot_set_null() -> None:
    table = create_key_table(COLUMNS, **{"merge-engine": "partial-update"})
    table.append(as_table(ROWS))
    table.update({"price": 1}, "id = 1")
    assert table.to_arrow(filter="id = 1").to_pylist()[0]["price"] == 1
    with pytest.raises(DataMismatch, match="partial-update a null"):
        table.update({"price": None}, "id = 1")


def test_a_partial_update_that_removes_on_delete_deletes() -> None:
    options = {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"}
    table = create_key_table(COLUMNS, **options)
    table.append(as_table(ROWS))
    assert table.delete("id < 8").rows_deleted == 7
    assert rows_of(table) == ROWS[7:]


def test_an_update_that_would_lose_by_its_sequence_field_is_refused() -> None:
    table = create_key_table(COLUMNS, **{"sequence.field": "price"})
    table.append(as_table(ROWS))
    with pytest.raises(DataMismatch, match="would have no effect"):
        table.update({"price": "price - 1"}, "id = 3")
    table.update({"price": "price + 1"}, "id = 3")
    table.update({"city": lit("oslo")}, "id = 3")
    assert rows_of(table)[2] == (3, "oslo", 31, "mon")


@pytest.mark.parametrize(
    ("options", "set_", "said"),
    [
        ({"sequence.field": "price,day"}, {"day": lit("a")}, "price, day"),
        (
            {"sequence.field": "price", "sequence.field.sort-order": "descending"},
            {"price": 99},
            "no effect",
        ),
        (GROUPS, {"city": lit("oslo")}, "city cannot become 'oslo'"),  # the row has no price
        (GROUPS, {"price": 1, "city": lit("oslo")}, "in the row with id = 1"),
        (GROUPS, {"price": None}, "a null leaves"),
        ({**GROUPS, "fields.day.aggregate-function": "listagg"}, {"price": 99}, "'mon,mon'"),
    ],
)
def test_a_record_that_the_table_would_merge_into_another_row_is_refused(
    options: dict, set_: dict, said: str
) -> None:
    table = create_key_table(COLUMNS, **options)
    table.append(as_table([(1, "rome", 10, "mon"), (2, "rome", None, "mon")]))
    before = rows_of(table)
    with pytest.raises(DataMismatch, match=said):
        table.update(set_, "id = 1" if "city" not in set_ or "price" in set_ else None)
    assert rows_of(table) == before


def test_a_sequence_group_takes_newer_values() -> None:
    table = create_key_table(COLUMNS, **GROUPS)
    table.append(as_table([(1, "rome", 10, "mon"), (2, "rome", 20, "mon")]))
    assert table.update({"price": 30, "city": None}, "id = 1").rows_updated == 1
    assert rows_of(table)[0] == (1, None, 30, "mon")


@every_kind
def test_snapshots_say_what_was_done(kind: str) -> None:
    table = filled(kind)
    table.delete("id = 1")
    deleted = table.store.snapshots.latest()
    table.update({"price": 0}, "id = 2")
    updated = table.store.snapshots.latest()
    source = pa.table({"id": [3], "price": pa.array([5], pa.int32())})
    table.merge(source, on=["id"]).when_matched_update({"price": "s.price"}).execute()
    merged = table.store.snapshots.latest()

    assert [s.operation for s in (deleted, updated, merged)] == ["DELETE", "UPDATE", "MERGE"]


@pytest.mark.parametrize(
    ("kind", "where", "operation"),
    [
        ("rewrite", "TRUE", "TRUNCATE"),
        ("partitioned", "day = 'mon'", "TRUNCATE"),
        ("partitioned vectors", "day <> 'mon'", "TRUNCATE"),
        ("partitioned", "day = 'mon' AND id > 0", "DELETE"),
        ("keys", "TRUE", "DELETE"),
    ],
)
def test_a_delete_of_whole_partitions_is_a_truncation(
    kind: str, where: str, operation: str
) -> None:
    table = filled(kind)

    table.delete(where)

    assert table.store.snapshots.latest().operation == operation

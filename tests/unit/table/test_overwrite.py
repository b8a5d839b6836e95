"""Overwrites and truncates: what is replaced, what stays, and what is refused."""

import datetime as dt
from dataclasses import replace
from decimal import Decimal

import pyarrow as pa
import pytest

from builders import append, create_table, open_table, overwrite, prepare, rows_of
from emberlake.commit.change import NOTHING_COMMITTED
from emberlake.errors import CommitConflict, DataMismatch, InvalidInput
from emberlake.spec.snapshot import CommitKind
from table_reads import data_files, latest_snapshot, read, read_ids

STATIC = {"dynamic-partition-overwrite": "false"}


def a_week(options=None):
    table = create_table(partition_keys=["day"], options=options)
    append(table, [*rows_of([1], "mon"), *rows_of([2], "tue"), *rows_of([3], "wed")])
    return table


def test_a_dynamic_overwrite_replaces_the_partitions_that_it_touches():
    table = a_week()

    result = overwrite(table, [*rows_of([8], "mon"), *rows_of([9], "sun")])

    assert read_ids(table) == [2, 3, 8, 9]
    assert (result.rows_added, result.rows_deleted) == (2, 1)
    assert latest_snapshot(table).commit_kind is CommitKind.OVERWRITE


def test_a_dynamic_overwrite_by_nothing_replaces_nothing():
    table = a_week()

    assert overwrite(table, []) == NOTHING_COMMITTED
    assert read_ids(table) == [1, 2, 3]


def test_a_static_overwrite_replaces_what_it_names_also_by_nothing():
    table = a_week(STATIC)

    overwrite(table, rows_of([8], "mon"), {"day": "mon"})
    assert read_ids(table) == [2, 3, 8]
    overwrite(table, [], {"day": "tue"})
    assert read_ids(table) == [3, 8]


def test_an_overwrite_without_a_partition_replaces_everything_when_it_is_not_dynamic():
    table = a_week(STATIC)

    overwrite(table, rows_of([9], "sun"))

    assert read_ids(table) == [9]


def test_an_overwrite_of_a_table_without_partitions_replaces_all_of_it():
    table = create_table()
    append(table, rows_of([1, 2]))

    overwrite(table, rows_of([3]))
    assert read_ids(table) == [3]
    overwrite(table, [])
    assert read_ids(table) == []


def test_an_overwrite_of_an_empty_table_is_a_snapshot_only_if_it_has_rows():
    table = create_table()

    assert overwrite(table, []) == NOTHING_COMMITTED
    assert overwrite(table, rows_of([1])).snapshot_id == 1
    assert latest_snapshot(table).commit_kind is CommitKind.OVERWRITE


@pytest.mark.parametrize("options", [STATIC, {}], ids=["static", "dynamic"])
def test_rows_outside_of_the_partition_are_refused_before_anything_is_written(options):
    table = a_week(options)
    before = data_files(table)
    write = table.new_batch_write_builder().overwrite({"day": "mon"}).new_write()

    with pytest.raises(DataMismatch, match="'day': 'tue'"):
        write.write_arrow(pa.table({"id": [8, 9], "day": ["mon", "tue"]}))

    assert data_files(table) == before
    assert write.prepare_commit() == []


def test_a_commit_can_overwrite():
    table = a_week()
    commit = table.new_batch_write_builder().new_commit()

    result = commit.overwrite(prepare(table, rows_of([8], "mon")), {"day": "mon"})

    assert (result.rows_added, result.rows_deleted) == (1, 1)
    assert read_ids(table) == [2, 3, 8]


def test_messages_outside_of_the_partition_are_refused():
    table = a_week()
    commit = table.new_batch_write_builder().new_commit()

    with pytest.raises(DataMismatch, match="'day': 'tue'"):
        commit.overwrite(prepare(table, rows_of([8], "tue")), {"day": "mon"})
    assert read_ids(table) == [1, 2, 3]


def test_some_of_the_partition_columns_are_enough():
    columns = pa.schema([("id", pa.int64()), ("year", pa.int32()), ("month", pa.int32())])
    table = create_table(columns=columns, partition_keys=["year", "month"], options=STATIC)
    dates = [(2025, 1), (2025, 2), (2026, 1)]
    rows = [{"id": n, "year": y, "month": m} for n, (y, m) in enumerate(dates)]
    append(table, pa.Table.from_pylist(rows, columns))

    overwrite(table, [], {"month": "1"})

    assert read_ids(table) == [1]


def test_columns_that_are_no_partitions_and_values_that_do_not_fit_are_named_together():
    table = create_table(
        columns=pa.schema([("id", pa.int64()), ("n", pa.int32())]), partition_keys=["n"]
    )
    builder = table.new_batch_write_builder()

    with pytest.raises(InvalidInput) as caught:
        builder.overwrite({"id": 1, "n": "many"})
    assert "id is not a partition column (the table has n)" in str(caught.value)
    assert "n: " in str(caught.value)


DAY = dt.date(2026, 6, 26)
NOON = dt.datetime.fromisoformat("2026-06-26T12:00:00.500000")

# Arrow type, value of the partition, value of another partition, ways to write the first one
PARTITIONS = [
    (
        pa.date32(),
        DAY,
        dt.date(2026, 6, 27),
        [DAY, "2026-06-26", NOON.replace(hour=0, microsecond=0)],
    ),
    (pa.int32(), 12, 13, [12, "12"]),
    (pa.int8(), -1, 1, [-1, "-1"]),
    (pa.bool_(), True, False, [True, "true"]),
    (pa.string(), "a/b=c", "a", ["a/b=c"]),
    (pa.decimal128(10, 2), Decimal("1.50"), Decimal("1.51"), [Decimal("1.5"), "1.50", "1.5"]),
    (
        pa.timestamp("us"),
        NOON,
        NOON.replace(microsecond=1),
        [NOON, "2026-06-26 12:00:00.5", "2026-06-26T12:00:00.500000"],
    ),
    (pa.float64(), 0.5, 1.5, [0.5, "0.5"]),
]
LITERALS = [
    pytest.param(arrow, value, other, literal, id=f"{arrow} {literal!r}")
    for arrow, value, other, literals in PARTITIONS
    for literal in [*literals, pa.scalar(value, arrow)]
]


def with_partitions(arrow, *values):
    columns = pa.schema([("id", pa.int64()), ("p", arrow)])
    table = create_table(columns=columns, partition_keys=["p"], options=STATIC)
    ids = list(range(len(values)))
    append(table, pa.table({"id": ids, "p": pa.array(values, arrow)}, schema=columns))
    return table


@pytest.mark.parametrize(("arrow", "value", "other", "literal"), LITERALS)
def test_literals_are_cast_to_the_type_of_the_partition_column(arrow, value, other, literal):
    table = with_partitions(arrow, value, other, None)

    overwrite(table, [], {"p": literal})
    assert read_ids(table) == [1, 2]


@pytest.mark.parametrize(("arrow", "value"), [(p[0], p[1]) for p in PARTITIONS])
@pytest.mark.parametrize("null", [None, "__DEFAULT_PARTITION__"])
def test_null_is_a_partition_that_can_be_named(arrow, value, null):
    table = with_partitions(arrow, value, None)

    table.new_batch_write_builder().new_commit().truncate_partitions([{"p": null}])

    assert read_ids(table) == [0]


def test_another_name_for_null_is_respected():
    table = create_table(partition_keys=["day"], options={"partition.default-name": "nil"})
    append(table, [*rows_of([1], None), *rows_of([2], "__DEFAULT_PARTITION__")])
    commit = table.new_batch_write_builder().new_commit()

    commit.truncate_partitions([{"day": "nil"}])

    assert read_ids(table) == [2]


def test_blank_text_is_not_null():
    table = create_table(partition_keys=["day"])
    append(table, [*rows_of([1], None), *rows_of([2], ""), *rows_of([3], " ")])

    table.new_batch_write_builder().new_commit().truncate_partitions([{"day": ""}])

    assert read_ids(table) == [1, 3]


def test_truncating_a_table_deletes_all_rows_and_keeps_its_past():
    table = a_week()

    result = table.new_batch_write_builder().new_commit().truncate_table()

    assert (result.snapshot_id, result.rows_added, result.rows_deleted) == (2, 0, 3)
    assert read(table) == []
    assert latest_snapshot(table).total_record_count == 0
    assert len(read(table, **{"scan.snapshot-id": 1})) == 3


def test_truncating_an_empty_table_does_nothing():
    table = create_table()
    commit = table.new_batch_write_builder().new_commit()

    assert commit.truncate_table() == NOTHING_COMMITTED
    assert commit.truncate_partitions([]) == NOTHING_COMMITTED


def test_truncating_partitions_is_one_snapshot():
    table = a_week()
    commit = table.new_batch_write_builder().new_commit()

    result = commit.truncate_partitions([{"day": "mon"}, {"day": "wed"}, {"day": "never"}])

    assert (result.snapshot_id, result.rows_deleted) == (2, 2)
    assert read_ids(table) == [2]


@pytest.mark.parametrize("partitions", [[{}], [{"day": "mon"}, {}]])
def test_an_empty_description_does_not_truncate_everything(partitions):
    table = a_week()

    with pytest.raises(InvalidInput, match="truncate_table"):
        table.new_batch_write_builder().new_commit().truncate_partitions(partitions)
    assert read_ids(table) == [1, 2, 3]


def test_an_overwrite_may_change_the_number_of_buckets():
    table = create_table(options={"bucket": "2", "bucket-key": "id"})
    append(table, rows_of(range(10)))
    changed = table.table_schema.with_options({"bucket": "3"})
    table.store.schemas.create(replace(changed, id=1))
    table = open_table(table.store.storage)

    with pytest.raises(CommitConflict, match="has 2 buckets, the table now asks for 3"):
        append(table, rows_of([11]))
    overwrite(table, rows_of(range(20)))
    append(table, rows_of([21]))

    assert read_ids(table) == [*range(20), 21]


def test_with_overwrite_is_another_name_whose_none_goes_back_to_appending():
    def written(**said):
        table = a_week(STATIC)
        builder = table.new_write_builder().with_overwrite(**said)
        builder.new_commit().commit(prepare(table, rows_of([9], "mon"), builder=builder))
        return read_ids(table)

    assert written() == [9]
    assert written(static_partition={"day": "mon"}) == [2, 3, 9]
    assert written(static_partition=None) == [1, 2, 3, 9]


def test_a_partition_is_a_dictionary():
    table = create_table(columns=pa.schema([("id", pa.int64())]))

    with pytest.raises(InvalidInput, match=r"a partition is a dictionary .*, not 'id=1'"):
        table.overwrite(pa.table({"id": [1]}), "id=1")

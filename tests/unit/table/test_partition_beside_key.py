"""Key tables whose key lacks the partition column: a key is unique in each partition.

What random histories of such tables leave behind is in tests/model and tests/interop.
"""

from typing import Any

import pytest

from builders import create_key_table, prepare, upsert
from emberlake import CommitConflict, ConflictReason, Table
from table_reads import check_whole, latest_snapshot, live_files, planned_files, read_rows

COLUMNS = {"id": "BIGINT", "day": "STRING", "n": "INT", "v": "STRING"}
ROWS = [(1, "mon", 1, "a"), (1, "tue", 2, "b"), (2, "mon", 3, None), (1, None, 4, "d")]
DAYS = {"primary_keys": ["id"], "partition_keys": ["day"]}
VECTORS = {"deletion-vectors.enabled": "true"}


def create(**options: str) -> Table:
    return create_key_table(COLUMNS, **DAYS, **{"bucket": "2", **options})


def rows(table: Table, where: str | None = None) -> list[tuple[Any, ...]]:
    found = (tuple(row.values()) for row in read_rows(table, where))
    return sorted(found, key=lambda row: (row[0], row[1] or ""))


@pytest.mark.parametrize(
    "options",
    [{}, VECTORS, {"changelog-producer": "input"}, {"data-file.thin-mode": "true"}],
    ids=str,
)
def test_rows_are_replaced_and_deleted_in_their_partition(options: dict[str, str]) -> None:
    table = create(**options)
    upsert(table, ROWS)
    first = latest_snapshot(table).id

    upsert(table, [(1, "tue", 20, "bb")])
    upsert(table, [(1, "mon", None, None)], "-D")

    expected = [(1, None, 4, "d"), (1, "tue", 20, "bb"), (2, "mon", 3, None)]
    assert rows(table) == expected
    table.compact(full=True)
    assert rows(table) == expected
    then = table.copy({"scan.snapshot-id": first})
    assert rows(then) == [ROWS[3], ROWS[0], ROWS[1], ROWS[2]]
    assert table.check().ok
    check_whole(table)


def test_postponed_rows_get_their_buckets() -> None:
    table = create(bucket="-2", **{"postpone.default-bucket-num": "2"})
    upsert(table, ROWS)
    upsert(table, [(1, "mon", 10, "aa")])

    table.compact()

    assert rows(table, "day = 'mon'") == [(1, "mon", 10, "aa"), (2, "mon", 3, None)]
    assert rows(table, "day IS NULL") == [ROWS[3]]
    assert {entry.bucket for entry in live_files(table)} <= {0, 1}


@pytest.mark.parametrize(
    ("options", "merged"),
    [
        ({"merge-engine": "first-row"}, (1, "mon", 1, "a")),
        ({"merge-engine": "partial-update"}, (1, "mon", 5, "a")),
        (
            {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"},
            (1, "mon", 6, "a"),
        ),
    ],
)
def test_merge_engines_merge_what_is_in_one_partition(
    options: dict[str, str], merged: tuple[Any, ...]
) -> None:
    table = create(**options)
    upsert(table, ROWS)
    upsert(table, [(1, "mon", 5, None)])

    expected = [ROWS[3], merged, ROWS[1], ROWS[2]]
    assert rows(table) == expected
    table.compact(full=True)
    assert rows(table) == expected


def test_a_value_that_is_taken_back_leaves_the_partition_as_it_is() -> None:
    columns = {**COLUMNS, "day": "STRING NOT NULL"}
    options = {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}
    table = create_key_table(columns, **DAYS, **options)
    upsert(table, ROWS[:3])

    upsert(table, [(1, "mon", 1, None)], "-D")
    table.compact(full=True)

    assert rows(table, "id = 1") == [(1, "mon", 0, "a"), (1, "tue", 2, "b")]
    assert table.check().ok


def test_filters_on_the_partition_and_on_the_key_prune_files() -> None:
    table = create(bucket="1")
    for row in ROWS:
        upsert(table, [row])

    assert len(planned_files(table, "day = 'tue'")) == 1
    assert len(planned_files(table, "id = 1")) == 3
    assert len(planned_files(table, "id = 1 AND day = 'mon'")) == 1
    assert rows(table, "id = 1 OR day = 'mon'") == rows(table)
    assert rows(table, "id = 2 AND day = 'tue'") == []


def test_what_is_different_is_found_partition_by_partition() -> None:
    table = create()
    upsert(table, ROWS)
    upsert(table, [(1, "mon", 10, "a"), (1, "wed", 5, "e")])
    options = {"incremental-between": "1,2", "incremental-between-scan-mode": "diff"}

    changes = table.copy(options)

    assert rows(changes) == [(1, "mon", 10, "a"), (1, "wed", 5, "e")]
    assert rows(changes, "day = 'wed'") == [(1, "wed", 5, "e")]
    builder = changes.new_read_builder().with_filter("day = 'wed'")
    assert len(builder.new_scan().plan().splits()) == 1


def test_two_writers_meet_in_a_partition_only() -> None:
    table = create()
    upsert(table, ROWS)
    builders = {day: table.new_batch_write_builder() for day in ("mon", "tue", "mon again")}
    prepared = {
        day: prepare(table, [(1, day[:3], 9, day)], builder=builder)
        for day, builder in builders.items()
    }

    for day in ("mon", "tue"):
        builders[day].new_commit().commit(prepared[day])
    with pytest.raises(CommitConflict) as conflict:
        builders["mon again"].new_commit().commit(prepared["mon again"])

    assert conflict.value.reason is ConflictReason.SEQUENCE_NUMBERS_TAKEN
    assert rows(table, "id = 1 AND n = 9") == [(1, "mon", 9, "mon"), (1, "tue", 9, "tue")]


def test_an_overwrite_replaces_the_partitions_that_it_touches() -> None:
    table = create()
    upsert(table, ROWS)
    builder = table.new_batch_write_builder().overwrite()

    builder.new_commit().commit(prepare(table, [(7, "mon", 7, "g")], builder=builder))

    assert rows(table) == [ROWS[3], ROWS[1], (7, "mon", 7, "g")]

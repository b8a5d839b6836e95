"""Two writers whose writes are compacted before the commit, in one bucket at the same time."""

import random

import pytest

from builders import NUMBERED, create_key_table, prepare, upsert
from emberlake.table import Table
from table_reads import live_files, read_rows


def with_levels(**options: str) -> Table:
    """A table with rows on two levels, on which a small and a large write end differently."""
    table = create_key_table(
        NUMBERED,
        **{
            "deletion-vectors.enabled": "true",
            "sequence.field": "n",
            "num-sorted-run.compaction-trigger": "6",
            **{key.replace("__", ".").replace("_", "-"): value for key, value in options.items()},
        },
    )
    chance = random.Random(7)
    upsert(table, [{"id": i, "v": chance.randbytes(100).hex(), "n": 0} for i in range(1000, 5000)])
    upsert(table, [{"id": i, "v": chance.randbytes(100).hex(), "n": 0} for i in range(5000, 5400)])
    assert sorted(entry.file.level for entry in live_files(table)) == [5, 6]
    return table


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"merge_engine": "partial-update"},
        {"merge_engine": "aggregation", "fields__v__aggregate_function": "max"},
    ],
    ids=["deduplicate", "partial-update", "aggregation"],
)
def test_a_key_of_two_writers_that_compact_to_different_levels_is_there_once(
    options: dict[str, str],
) -> None:
    table = with_levels(**options)
    one, two = (table.new_batch_write_builder() for _ in range(2))
    many = [(i, random.Random(i).randbytes(60).hex(), 1) for i in range(6000, 7000)]

    large = prepare(table, [(1, "a", 5), *many], builder=one)
    small = prepare(table, [(1, "b", 6)], builder=two)
    levels = [{file.level for m in part for file in m.compact_after} for part in (large, small)]
    assert levels == [{5}, {4}]
    one.new_commit().commit(large)
    two.new_commit().commit(small)

    rows = read_rows(table)
    assert len(rows) == len({row["id"] for row in rows})
    assert [row for row in rows if row["id"] == 1] == [{"id": 1, "v": "b", "n": 6}]


def test_two_compactions_of_a_bucket_whose_levels_know_of_each_other_conflict() -> None:
    table = with_levels()
    one, two = (table.new_batch_write_builder() for _ in range(2))
    stale = prepare(table, [(1, "b", 6)], builder=two)
    fresh = prepare(table, [(1, "a", 5)], builder=one)
    one.new_commit().commit(fresh)

    result = two.new_commit().commit(stale)

    # What the stale one had compacted was thrown away and made anew.
    live = {entry.file.file_name for entry in live_files(table)}
    assert not live & {file.file_name for m in stale for file in m.compact_after}
    assert result.snapshot_id == table.latest_snapshot().id


def test_a_first_row_that_gave_way_to_one_that_was_then_truncated_is_there() -> None:
    table = create_key_table(NUMBERED, **{"merge-engine": "first-row"})
    upsert(table, [{"id": 1, "v": "old", "n": 0}])
    builder = table.new_batch_write_builder()
    mine = prepare(table, [(1, "mine", 1), (2, "mine", 1)], builder=builder)
    table.new_batch_write_builder().new_commit().truncate_table()

    builder.new_commit().commit(mine)

    rows = sorted(read_rows(table), key=lambda row: row["id"])
    assert rows == [{"id": 1, "v": "mine", "n": 1}, {"id": 2, "v": "mine", "n": 1}]

"""When manifests are merged, and that merging changes nothing but their number."""

import pytest

from builders import append, create_table, overwrite, rows_of
from emberlake.commit.manifest_merge import (
    Merged,
    is_full_merge_due,
    merge_manifests,
    plan_minor_merge,
)
from emberlake.options import TableOptions
from emberlake.scan.files import live_entries, manifests_of
from emberlake.spec.manifest import EMPTY_STATS, ManifestFile
from emberlake.store.entries import merge_entries
from table_reads import check_whole, latest_snapshot, read

OPTIONS = TableOptions(
    {
        "manifest.target-file-size": "100 b",
        "manifest.full-compaction-threshold-size": "300 b",
        "manifest.merge-min-count": "3",
    }
)


def a_manifest(name, size, deleted=0):
    return ManifestFile(
        file_name=name,
        file_size=size,
        num_added_files=1,
        num_deleted_files=deleted,
        partition_stats=EMPTY_STATS,
        schema_id=0,
    )


def manifests(*sizes):
    return [a_manifest(str(n), size) for n, size in enumerate(sizes)]


@pytest.mark.parametrize(
    ("sizes", "groups"),
    [
        ([], []),
        ([10], []),
        ([10, 10], []),  # too few to merge
        ([10, 10, 10], [["0", "1", "2"]]),
        ([100, 200], []),  # large ones stay alone
        ([60, 60], [["0", "1"]]),  # together they reach the target
        ([60, 60, 10, 10], [["0", "1"]]),
        ([60, 60, 10, 10, 10], [["0", "1"], ["2", "3", "4"]]),
        ([10, 100, 10, 10], [["0", "1"]]),  # neighbours only, in their order
        ([100, 10, 10, 10], [["1", "2", "3"]]),
    ],
)
def test_neighbours_are_merged_when_they_are_large_together_or_many(sizes, groups):
    planned = plan_minor_merge(manifests(*sizes), OPTIONS)

    assert [[m.file_name for m in group] for group in planned] == groups


@pytest.mark.parametrize(
    ("given", "is_due"),
    [
        ([], False),
        (manifests(99, 99, 99), False),
        (manifests(99, 99, 99, 99), True),
        (manifests(100, 100, 100, 100), False),  # large ones without deletes are in order
        ([a_manifest("a", 300, deleted=1)], True),
    ],
)
def test_a_full_merge_is_due_by_the_bytes_of_what_is_small_or_deletes(given, is_due):
    assert is_full_merge_due(given, OPTIONS) is is_due


def test_merged_manifests_stand_where_the_first_of_them_stood():
    a, b, c, d = manifests(1, 1, 1, 1)
    new = a_manifest("new", 2)

    assert Merged((("1", "2"),), ((new,),)).apply([a, b, c, d]) == (a, new, d)
    assert Merged((("0", "3"),), ((new, a),)).apply([a, b, c, d]) == (new, a, b, c)
    assert Merged((("0", "1"),), ((),)).apply([a, b]) == ()
    assert Merged().apply([a, b]) == (a, b)


def test_a_merge_cannot_be_applied_when_somebody_merged_the_same_manifests():
    a, b = manifests(1, 1)

    assert Merged((("0", "gone"),), ((a,),)).apply([a, b]) is None


FULL = {"manifest.full-compaction-threshold-size": "1 b"}
MINOR = {"manifest.merge-min-count": "2"}
NEVER = {"manifest.merge-min-count": "1000000"}


def a_history(options):
    """A table whose files were added and deleted in many manifests that were not merged."""
    table = create_table(partition_keys=["day"], options=NEVER)
    for number in range(6):
        append(table, [*rows_of([number], f"d{number % 3}"), *rows_of([number], "x")])
    overwrite(table, rows_of([10], "d1"))
    overwrite(table, rows_of([11], "x"))
    append(table, rows_of([12], "d2"))
    return table.copy(options)


@pytest.mark.parametrize("options", [MINOR, FULL], ids=["minor", "full"])
def test_a_merge_keeps_the_live_files(options):
    table = a_history(options)
    store, snapshot = table.store, latest_snapshot(table)
    before = manifests_of(store, snapshot)
    live = live_entries(store, snapshot).entries()

    after = merge_manifests(store, before).apply(before)

    merged = merge_entries(store.manifests.read_manifests(after)).entries()
    assert len(after) < len(before)
    assert sorted(merged, key=lambda e: e.file.file_name) == sorted(
        live, key=lambda e: e.file.file_name
    )


def test_a_full_merge_leaves_no_deletes_behind():
    table = a_history(FULL)
    before = manifests_of(table.store, latest_snapshot(table))

    after = merge_manifests(table.store, before).apply(before)

    assert sum(m.num_deleted_files for m in before) > 0
    assert sum(m.num_deleted_files for m in after) == 0


def test_a_minor_merge_keeps_deletes_of_files_in_older_manifests():
    table = create_table(options=NEVER)
    append(table, rows_of([1]))
    overwrite(table, rows_of([2]))
    append(table, rows_of([3]))
    store = table.copy({"manifest.merge-min-count": "2"}).store
    _, *newer = manifests_of(store, latest_snapshot(table))

    (group,) = merge_manifests(store, newer).by

    assert [m.num_deleted_files for m in group] == [1]
    assert [m.num_added_files for m in group] == [2]


@pytest.mark.parametrize("options", [MINOR, FULL, {**MINOR, **FULL}], ids=["minor", "full", "both"])
def test_commits_that_merge_change_no_rows(options):
    table = create_table(partition_keys=["day"], options=options)
    for number in range(8):
        append(table, rows_of([number], f"d{number % 2}"))
        check_whole(table)
    overwrite(table, rows_of([10], "d1"))
    append(table, rows_of([11], "d0"))

    check_whole(table)
    assert [row["id"] for row in read(table)] == [0, 2, 4, 6, 10, 11]
    assert len(manifests_of(table.store, latest_snapshot(table))) <= 3


def test_many_small_commits_keep_the_list_short():
    table = create_table(options={"manifest.merge-min-count": "5"})

    counts = []
    for number in range(20):
        append(table, rows_of([number]))
        counts.append(len(manifests_of(table.store, latest_snapshot(table))))

    assert max(counts) <= 6
    assert len(read(table)) == 20


def test_a_truncated_table_forgets_its_manifests():
    table = create_table(options=FULL)
    for number in range(4):
        append(table, rows_of([number]))
    commit = table.new_batch_write_builder().new_commit()

    commit.truncate_table()
    append(table, rows_of([9]))

    # All that was added and deleted before has cancelled out.
    assert table.store.manifests.read_list(latest_snapshot(table).base_manifest_list) == ()
    assert len(manifests_of(table.store, latest_snapshot(table))) == 1
    assert [row["id"] for row in read(table)] == [9]

"""Rolling a table back to a snapshot or a tag."""

import pytest

from builders import append, create_table, open_table, rows_of
from emberlake.errors import SnapshotNotFound, StorageError, TagNotFound
from table_reads import check_whole, read, read_ids
from watched_storage import FaultyStorage, WatchedStorage


def a_table(storage=None):
    table = create_table(storage)
    for number in range(1, 5):
        append(table, rows_of([number]))
    return table


def test_a_snapshot_becomes_the_latest():
    table = a_table()

    table.rollback_to(2)

    assert read_ids(table) == [1, 2]
    assert table.snapshot_manager().list_ids() == (1, 2)
    assert table.store.storage.read(table.store.layout.latest_hint) == b"2"
    check_whole(table)


def test_writing_goes_on_from_there():
    table = a_table()
    table.rollback_to(2)

    result = append(table, rows_of([9]))

    assert result.snapshot_id == 3
    assert read_ids(table) == [1, 2, 9]


def test_newer_tags_go_and_older_ones_stay():
    table = a_table()
    for number in (1, 2, 3):
        table.create_tag(f"v{number}", snapshot_id=number)

    table.rollback_to("v2")

    assert table.list_tags() == ["v1", "v2"]
    assert read_ids(table) == [1, 2]
    assert read(table, **{"scan.tag-name": "v1"}) == rows_of([1])


def test_a_tag_is_enough_when_its_snapshot_has_expired():
    table = a_table()
    table.create_tag("first", snapshot_id=1)
    for number in (1, 2):
        table.store.snapshots.delete(number)
    table.store.snapshots.write_earliest_hint(3)

    table.rollback_to("first")

    assert read_ids(table) == [1]
    assert table.snapshot_manager().list_ids() == (1,)
    assert table.snapshot_manager().earliest_id() == 1
    assert append(table, rows_of([9])).snapshot_id == 2


def test_rolling_back_to_the_latest_changes_nothing():
    table = a_table()

    table.rollback_to(4)

    assert read_ids(table) == [1, 2, 3, 4]


def test_what_does_not_exist_is_not_found():
    table = a_table()

    with pytest.raises(SnapshotNotFound):
        table.rollback_to(5)
    with pytest.raises(TagNotFound):
        table.rollback_to("nope")
    with pytest.raises(SnapshotNotFound):
        create_table().rollback_to(1)
    assert read_ids(table) == [1, 2, 3, 4]


@pytest.mark.parametrize("after_effect", [False, True])
def test_a_rollback_that_is_cut_off_leaves_a_whole_table_and_can_be_repeated(after_effect):
    counting = WatchedStorage(a_table().store.storage)
    table = open_table(counting)
    counting.calls.clear()
    table.rollback_to(1)

    for fail_at in range(1, len(counting.calls) + 1):
        storage = a_table().store.storage
        faulty = FaultyStorage(storage, 0, after_effect=after_effect)
        broken = open_table(faulty)
        faulty.calls.clear()
        faulty.fail_at = fail_at
        with pytest.raises(StorageError):
            broken.rollback_to(1)

        table = open_table(storage)
        check_whole(table)
        assert read_ids(table) == list(range(1, len(read_ids(table)) + 1))
        table.rollback_to(1)
        assert read_ids(table) == [1]

"""The first plan of a table on an object store begins before the latest snapshot is known."""

import threading
from collections import Counter
from dataclasses import dataclass, field

import pytest

from builders import append, create_table, open_table, rows_of
from emberlake import Table
from emberlake.errors import FileNotFound
from remote_storage import RemoteStorage


@dataclass(frozen=True, eq=False)
class SlowToLook(RemoteStorage):
    """Says whether a file exists only after something has happened."""

    awaited: list[threading.Event] = field(default_factory=list)

    def size(self, path: str) -> int:
        assert all(event.wait(10) for event in self.awaited), "nothing is read meanwhile"
        return super().size(path)


@pytest.fixture
def storage() -> RemoteStorage:
    storage = RemoteStorage()
    table = create_table(storage.storage)
    append(table, rows_of([1]))
    append(table, rows_of([2]))
    return storage


def planned_rows(table: Table) -> int:
    return sum(split.row_count for split in table.new_read_builder().new_scan().plan().splits())


def test_manifests_are_read_while_the_store_is_asked_for_a_newer_snapshot(
    storage: RemoteStorage,
) -> None:
    is_read = threading.Event()
    manifests = [
        info.path
        for info in storage.storage.list_all("")
        if "/manifest-" in info.path and "-list-" not in info.path
    ]
    slow = SlowToLook(
        storage.storage, before_read=lambda path: is_read.set() if path in manifests else None
    )
    table = open_table(slow)
    slow.awaited.append(is_read)

    assert planned_rows(table) == 2


def test_a_snapshot_that_is_committed_before_the_first_plan_is_seen(storage: RemoteStorage) -> None:
    table = open_table(storage)
    append(open_table(storage.storage), rows_of([3]))

    assert planned_rows(table) == 3


def test_only_the_snapshot_is_read_twice(storage: RemoteStorage) -> None:
    table = open_table(storage)

    planned_rows(table)

    reads = Counter(call for call in storage.calls if call.startswith("read"))
    assert [call for call, times in reads.items() if times > 1] == [
        f"read {table.store.layout.snapshot(2)}"
    ]


def test_snapshots_are_not_listed_if_a_hint_names_the_newest(storage: RemoteStorage) -> None:
    planned_rows(open_table(storage))

    assert not [call for call in storage.calls if call.startswith("list") and "/snapshot" in call]


def test_a_hint_may_be_one_snapshot_behind(storage: RemoteStorage) -> None:
    storage.storage.put(open_table(storage).store.layout.latest_hint, b"1")
    storage.calls.clear()

    assert planned_rows(open_table(storage)) == 2
    assert not [call for call in storage.calls if call.startswith("list") and "/snapshot" in call]


@pytest.mark.parametrize("hint", [None, b"", b"1", b"7"], ids=["none", "empty", "behind", "ahead"])
def test_a_wrong_hint_does_not_matter(storage: RemoteStorage, hint: bytes | None) -> None:
    append(open_table(storage.storage), rows_of([3]))
    path = open_table(storage.storage).store.layout.latest_hint
    storage.storage.delete(path)
    if hint is not None:
        storage.storage.put(path, hint)

    assert planned_rows(open_table(storage)) == 3


def test_a_hint_may_name_a_snapshot_that_has_expired(storage: RemoteStorage) -> None:
    append(open_table(storage.storage), rows_of([3]))
    layout = open_table(storage.storage).store.layout
    storage.storage.put(layout.latest_hint, b"1")
    for snapshot_id in (1, 2):
        storage.storage.delete(layout.snapshot(snapshot_id))

    assert planned_rows(open_table(storage)) == 3


def test_a_rollback_that_is_under_way_is_no_problem(storage: RemoteStorage) -> None:
    """It writes the hint first, and then deletes snapshots, from the newest backwards."""
    append(open_table(storage.storage), rows_of([3]))
    layout = open_table(storage.storage).store.layout
    storage.storage.put(layout.latest_hint, b"1")
    table = open_table(storage)

    for snapshot_id, rows in ((3, 2), (2, 1)):
        storage.storage.delete(layout.snapshot(snapshot_id))
        assert planned_rows(open_table(storage)) == rows
    assert planned_rows(table) == 1


def test_a_snapshot_that_is_rolled_back_before_the_first_plan_is_not_read(
    storage: RemoteStorage,
) -> None:
    table = open_table(storage)
    open_table(storage.storage).rollback_to(1)

    assert planned_rows(table) == 1


def test_a_snapshot_that_takes_the_id_of_another_one_is_read(storage: RemoteStorage) -> None:
    table = open_table(storage)
    other = open_table(storage.storage)
    other.rollback_to(1)
    append(other, rows_of([2, 3, 4]))

    assert planned_rows(table) == 4


def test_what_was_the_latest_snapshot_may_be_gone(storage: RemoteStorage) -> None:
    table = open_table(storage)
    opened = table.store.snapshots.last_latest()
    assert opened is not None
    append(open_table(storage.storage), rows_of([3]))
    storage.storage.delete(table.store.layout.manifest(opened.delta_manifest_list))

    assert planned_rows(table) == 3


def test_a_file_of_the_latest_snapshot_that_is_missing_is_reported(storage: RemoteStorage) -> None:
    table = open_table(storage)
    latest = table.store.snapshots.last_latest()
    assert latest is not None
    storage.storage.delete(table.store.layout.manifest(latest.base_manifest_list))

    with pytest.raises(FileNotFound, match=latest.base_manifest_list):
        planned_rows(table)

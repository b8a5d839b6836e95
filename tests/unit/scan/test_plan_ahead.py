"""The first plan of a table on an object store begins before the latest snapshot is known."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from builders import append, create_table, open_table, rows_of
from emberlake import Table
from emberlake.errors import FileNotFound
from emberlake.io import FileInfo
from remote_storage import RemoteStorage


@dataclass(frozen=True, eq=False)
class SlowToList(RemoteStorage):
    """Lists files only after something has happened."""

    awaited: list[threading.Event] = field(default_factory=list)

    def list_all(self, path: str) -> Iterator[FileInfo]:
        assert all(event.wait(10) for event in self.awaited), "nothing is read meanwhile"
        return super().list_all(path)


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
    slow = SlowToList(
        storage.storage, before_read=lambda path: is_read.set() if path in manifests else None
    )
    table = open_table(slow)
    slow.awaited.append(is_read)

    assert planned_rows(table) == 2


def test_a_snapshot_that_is_committed_before_the_first_plan_is_seen(storage: RemoteStorage) -> None:
    table = open_table(storage)
    append(open_table(storage.storage), rows_of([3]))

    assert planned_rows(table) == 3


def test_no_file_is_read_twice(storage: RemoteStorage) -> None:
    table = open_table(storage)

    planned_rows(table)

    reads = [call for call in storage.calls if call.startswith("read")]
    assert len(reads) == len(set(reads))


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

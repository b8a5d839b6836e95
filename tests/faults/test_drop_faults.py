"""A drop that is interrupted at any moment leaves a whole table or none, and can be finished."""

import itertools
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from emberlake.catalog import FileSystemCatalog
from emberlake.errors import InvalidState, StorageError, TableNotFound
from emberlake.io import LocalStorage, MemoryStorage, Storage
from emberlake.spec.layout import DROP_MARK
from watched_storage import Call, WatchedStorage

COLUMNS = pa.schema([("id", pa.int64()), ("day", pa.int32())])
ROWS = pa.table({"id": [1, 2, 3], "day": [1, 1, 2]}, schema=COLUMNS)


class Interrupted(BaseException):
    """As a process that ends."""


def a_table() -> MemoryStorage:
    storage = MemoryStorage()
    catalog = FileSystemCatalog(storage, "/w")
    catalog.create_database("db")
    table = catalog.create_table("db.t", COLUMNS, partition_keys=["day"])
    table.append(ROWS)
    table.append(ROWS)
    table.create_tag("before")
    table.create_branch("b", "before")
    return storage


def interrupt_at(moment: int, *, is_done: bool) -> Callable[[Call], None]:
    def watch(call: Call) -> None:
        if call.number >= moment and call.is_done is is_done:
            raise Interrupted

    return watch


def files_of(storage: MemoryStorage, folder: str) -> list[str]:
    return [info.path for info in storage.list_all(folder)]


@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize("what", ["table", "database"])
def test_an_interrupted_drop_leaves_a_whole_table_or_none(what: str, is_done: bool) -> None:
    ended = set()
    for moment in itertools.count(1):
        storage = a_table()
        watched = WatchedStorage(storage, interrupt_at(moment, is_done=is_done))
        try:
            drop(FileSystemCatalog(watched, "/w"), what)
        except Interrupted:
            pass
        else:
            break

        catalog = FileSystemCatalog(storage, "/w")
        where = str(watched.calls[moment - 1])
        is_there = catalog.list_databases() == ["db"] and catalog.list_tables("db") == ["t"]
        ended.add(is_there)
        if is_there:
            assert catalog.get_table("db.t").count() == 2 * len(ROWS), where
            assert catalog.get_table("db.t$branch_b").count() == 2 * len(ROWS), where
        elif files_of(storage, "/w/db.db/t/schema"):
            for name in ("db.t", "db.t$branch_b"):
                with pytest.raises(TableNotFound):
                    catalog.get_table(name)
            with pytest.raises(InvalidState, match="Only if that was interrupted drop it again"):
                catalog.create_table("db.t", COLUMNS, ignore_if_exists=True)
            catalog.drop_table("db.t")
            assert files_of(storage, "/w") == [], where
            catalog.create_table("db.t", COLUMNS)
    assert ended == {True, False}
    assert files_of(storage, "/w") == []


def drop(catalog: FileSystemCatalog, what: str) -> None:
    if what == "table":
        catalog.drop_table("db.t")
    else:
        catalog.drop_database("db", cascade=True)


def test_a_half_dropped_table_goes_with_its_database() -> None:
    storage = a_table()
    storage.put(f"/w/db.db/t/schema/{DROP_MARK}", b"another")
    catalog = FileSystemCatalog(storage, "/w")

    catalog.drop_database("db", cascade=True)

    assert files_of(storage, "/w") == []


def test_nobody_commits_to_a_table_that_is_being_dropped() -> None:
    storage = a_table()
    catalog = FileSystemCatalog(storage, "/w")
    table = catalog.get_table("db.t")

    def fail(call: Call) -> None:
        if call.method == "delete_folder":
            raise StorageError("no answer")

    with pytest.raises(StorageError, match="no answer"):
        FileSystemCatalog(WatchedStorage(storage, fail), "/w").drop_table("db.t")

    with pytest.raises(TableNotFound, match="was dropped"):
        table.append(ROWS)


@pytest.mark.parametrize("is_local", [False, True])
def test_a_table_that_is_created_as_soon_as_a_drop_allows_it_stays(
    tmp_path: Path, *, is_local: bool
) -> None:
    storage: Storage = LocalStorage() if is_local else MemoryStorage()
    catalog = FileSystemCatalog(storage, str(tmp_path))
    catalog.create_database("db")
    catalog.create_table("db.t", COLUMNS).append(ROWS)

    def create_again(call: Call) -> None:
        if call.path.endswith(DROP_MARK) and call.method == "delete" and call.is_done:
            catalog.create_table("db.t", COLUMNS).append(ROWS[:1])

    FileSystemCatalog(WatchedStorage(storage, create_again), str(tmp_path)).drop_table("db.t")

    assert catalog.get_table("db.t").to_arrow() == ROWS[:1]
    catalog.drop_table("db.t")
    assert not storage.exists(f"{tmp_path}/db.db/t")


@pytest.mark.parametrize("method", ["delete_folder", "list", "list_all"])
def test_the_slower_of_two_drops_ends_before_it_deletes_a_new_table(method: str) -> None:
    storage = a_table()
    catalog = FileSystemCatalog(storage, "/w")

    def overtake(call: Call) -> None:
        if call.method == method and call.path.startswith("/w/db.db/t") and call.is_done:
            watched.watch = lambda _: None
            catalog.drop_table("db.t")
            catalog.create_table("db.t", COLUMNS, partition_keys=["day"]).append(ROWS[:1])

    watched = WatchedStorage(storage)
    watched.watch = lambda call: overtake(call) if is_marked(storage) else None

    with pytest.raises(InvalidState, match="deletes nothing more"):
        FileSystemCatalog(watched, "/w").drop_table("db.t")

    assert catalog.get_table("db.t").to_arrow() == ROWS[:1]


def is_marked(storage: MemoryStorage) -> bool:
    return storage.exists(f"/w/db.db/t/schema/{DROP_MARK}")


def test_a_table_whose_files_may_not_be_deleted_stays() -> None:
    storage = a_table()

    def refuse(call: Call) -> None:
        if call.method in ("delete", "delete_folder", "delete_all"):
            raise StorageError("not allowed", had_no_effect=True)

    with pytest.raises(StorageError, match="not allowed"):
        FileSystemCatalog(WatchedStorage(storage, refuse), "/w").drop_table("db.t")

    catalog = FileSystemCatalog(storage, "/w")
    assert catalog.list_tables("db") == ["t"]
    assert catalog.get_table("db.t").count() == 2 * len(ROWS)
    catalog.drop_table("db.t")
    assert files_of(storage, "/w") == []

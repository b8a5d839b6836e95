"""A storage call of maintenance fails, any of them: what is retained stays readable."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

import pytest

from builders import (
    NAME,
    FakeEnv,
    append,
    copy_of,
    create_table,
    open_catalog,
    open_table,
    overwrite,
    prepare,
    rows_of,
)
from emberlake.errors import BranchAlreadyExists, BranchNotFound, StorageError
from emberlake.io import MemoryStorage, Storage
from emberlake.table import Table
from table_reads import (
    check_whole,
    data_files,
    files_under,
    manifest_files,
    read,
    read_ids,
    referenced_manifests,
)
from watched_storage import FaultyStorage, WatchedStorage

AFTER = pytest.mark.parametrize("after_effect", [False, True], ids=["before", "after"])
SLACK = 6
LATER_MS = 4_000_000_000_000  # all files are older, also where the clock is that of a server
FOR_GOOD = pytest.mark.parametrize(
    "for_good",
    [pytest.param(False, id="once"), pytest.param(True, id="for good", marks=pytest.mark.slow)],
)


@cache
def _template() -> MemoryStorage:
    """Six snapshots, each with files of its own and some of others; a tag and a branch of one."""
    storage = MemoryStorage()
    env = FakeEnv(time_ms=LATER_MS).env()
    options = {"manifest.merge-min-count": "3"}
    table = create_table(storage, partition_keys=["day"], options=options, env=env)
    append(table, rows_of([1], "mon"))
    overwrite(table, [*rows_of([2], "mon"), *rows_of([20], "tue")])
    table.create_tag("v2")
    table.create_branch("b", "v2")
    append(branch_of(table), rows_of([7], "wed"))
    for number in (3, 4, 5, 6):
        overwrite(table, rows_of([number], "mon"))
    prepare(table, rows_of([99], "tue"))
    return storage


def branch_of(table: Table) -> Table:
    found = open_catalog(table.store.storage).get_table(f"{NAME}$branch_b")
    assert isinstance(found, Table)
    return found


@dataclass(frozen=True)
class Operation:
    """Something to do, what must hold whatever happens to it, and when it is done."""

    act: Callable[[Table], object]
    stays: Callable[[Table], None]
    is_done: Callable[[Table], None]


def others_are_whole(table: Table) -> None:
    """The retained snapshots, the tag and the branch."""
    assert read(table, **{"scan.snapshot-id": 5}) == rows_of([5], "mon") + rows_of([20], "tue")
    assert read_ids(table) == [6, 20]
    assert read(table, **{"scan.tag-name": "v2"}) == rows_of([2], "mon") + rows_of([20], "tue")
    assert read_ids(branch_of(table)) == [2, 7, 20]
    check_whole(branch_of(table))


def is_expired(table: Table) -> None:
    assert table.snapshot_manager().list_ids() == (5, 6)
    assert table.snapshot_manager().earliest_id() == 5
    check_whole(table)
    orphan = {path for path in data_files(table) if "day=tue" in path}
    assert len(orphan) == 2  # the one of a write that was not committed is no business of this
    assert len(data_files(table)) == 6
    needed = referenced_manifests(table) | referenced_manifests(branch_of(table))
    assert manifest_files(table) == needed


def has_no_orphans(table: Table) -> None:
    check_whole(table)
    assert table.remove_orphan_files(older_than=table.store.env.now_ms()).paths == ()
    assert len({path for path in data_files(table) if "day=tue" in path}) == 1


def has_new_branch(table: Table) -> None:
    branch = open_catalog(table.store.storage).get_table(f"{NAME}$branch_c")
    assert isinstance(branch, Table)
    assert read_ids(branch) == [2, 20]
    assert branch.list_tags() == ["v2"]


def has_no_half_branch(table: Table) -> None:
    others_are_whole(table)
    if "c" in table.list_branches():
        has_new_branch(table)


def create_branch(table: Table) -> None:
    try:
        table.create_branch("c", "v2", ignore_if_exists=True)
    except BranchAlreadyExists:  # a try that was cut off for good has left it unfinished
        table.delete_branch("c")
        table.create_branch("c", "v2")


def delete_branch(table: Table) -> None:
    with suppress(BranchNotFound):  # the first try may have done it
        table.delete_branch("b")


def is_whole(table: Table) -> None:
    check_whole(table)
    assert read(table, **{"scan.tag-name": "v2"})
    if "b" in table.list_branches():
        assert read_ids(branch_of(table)) == [2, 7, 20]


def has_no_branch(table: Table) -> None:
    assert table.list_branches() == []


def some_state_of_either(table: Table) -> None:
    """Rolled back in part, or forwarded in part: always a state that was committed."""
    check_whole(table)
    mains = [[n, 20] for n in (2, 3, 4, 5, 6)]
    assert read_ids(table) in [*mains, [2, 7, 20]]
    assert read_ids(branch_of(table)) == [2, 7, 20]


def is_forwarded(table: Table) -> None:
    assert table.snapshot_manager().list_ids() == (1, 2, 3)
    assert read_ids(table) == [2, 7, 20]
    assert table.list_tags() == ["v2"]


OPERATIONS = {
    "expire": Operation(
        lambda table: table.expire_snapshots(retain_max=2, retain_min=1),
        others_are_whole,
        is_expired,
    ),
    "orphans": Operation(
        lambda table: table.remove_orphan_files(older_than=table.store.env.now_ms()),
        others_are_whole,
        has_no_orphans,
    ),
    "create a branch": Operation(create_branch, has_no_half_branch, has_new_branch),
    "delete a branch": Operation(delete_branch, is_whole, has_no_branch),
    "fast-forward": Operation(
        lambda table: table.fast_forward("b"), some_state_of_either, is_forwarded
    ),
}
EACH = pytest.mark.parametrize("name", OPERATIONS)


def a_storage() -> Storage:
    """The table with files that were written before the clock of the tests stood still."""
    return copy_of(_template(), FakeEnv(time_ms=1).env())


def opened(storage: Storage) -> Table:
    return open_table(storage, FakeEnv(time_ms=LATER_MS).env())


def contents(storage: Storage) -> dict[str, bytes]:
    paths = sorted(files_under(storage, ""))
    return dict(zip(paths, storage.read_many(paths), strict=True))


@FOR_GOOD
@AFTER
@EACH
def test_a_fault_anywhere_leaves_what_is_retained_and_the_next_try_does_the_rest(
    name, after_effect, for_good
):
    operation = OPERATIONS[name]
    counted = WatchedStorage(a_storage())
    table = opened(counted)
    counted.calls.clear()
    operation.act(table)

    for fail_at in range(1, len(counted.calls) + 1):
        storage = a_storage()
        faulty = FaultyStorage(storage, 0, after_effect=after_effect, for_good=for_good)
        table = opened(faulty)
        faulty.calls.clear()
        faulty.fail_at = fail_at
        with suppress(StorageError):
            operation.act(table)
        table = opened(storage)

        # Threads may read a file twice or once: the last numbers are not always reached.
        assert faulty.failed or fail_at > len(counted.calls) - SLACK
        if contents(storage) == contents(a_storage()):
            continue  # nothing has happened, and so nothing is left to happen
        operation.stays(table)
        operation.act(table)
        operation.stays(table)
        operation.is_done(table)

"""What every publisher of snapshots must do; each parameter is one: files, and a server."""

import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from builders import COLUMNS, append, create_table, overwrite, prepare, rows_of
from emberlake import Table
from emberlake.errors import CommitConflict, InvalidState, SnapshotNotFound
from emberlake.io import MemoryStorage
from publishers import Server, ServerPublisher, published_by
from rest_server import RestServer, serving
from table_reads import check_whole, read_ids
from watched_storage import WatchedStorage

WRITES = ("put", "put_if_absent", "put_hint", "create", "delete", "delete_folder")


@dataclass
class World:
    """A table, who publishes its snapshots, and what the table itself asked of its storage."""

    table: Table
    watched: WatchedStorage
    server: Server | None

    def branch(self, name: str = "b") -> Table:
        return self.table.copy({"branch": name})


def on_files() -> World:
    storage = WatchedStorage(MemoryStorage())
    return World(create_table(storage), storage, None)


def on_a_server() -> World:
    storage = MemoryStorage()
    made = create_table(storage)
    server = Server("http://server", storage, table_uuid="uuid-of-the-table")
    watched = WatchedStorage(storage)
    return World(published_by("http://server", made, watched), watched, server)


@pytest.fixture
def rest(tmp_path: Path) -> Iterator[RestServer]:
    with serving(tmp_path) as server:
        yield server


def on_rest(server: RestServer) -> World:
    catalog = server.open()
    catalog.create_database("db")
    made = catalog.create_table("db.t", COLUMNS)
    return World(made, WatchedStorage(MemoryStorage()), None)


@pytest.fixture(params=[on_files, on_a_server], ids=["files", "server"])
def following(request: pytest.FixtureRequest) -> World:
    """The same, where clients fast-forward tables themselves."""
    make: Callable[[], World] = request.param
    return _filled(make())


@pytest.fixture(params=[on_files, on_a_server, on_rest], ids=["files", "server", "rest"])
def world(request: pytest.FixtureRequest) -> World:
    """A table with three snapshots, of one row each, and the tag v2."""
    if request.param is on_rest:
        return _filled(on_rest(request.getfixturevalue("rest")))
    make: Callable[[], World] = request.param
    return _filled(make())


def _filled(made: World) -> World:
    for number in (1, 2, 3):
        append(made.table, rows_of([number]))
    made.table.create_tag("v2", snapshot_id=2)
    return made


def test_commits_follow_each_other(world: World) -> None:
    assert read_ids(world.table) == [1, 2, 3]
    assert world.table.snapshot_manager().list_ids() == (1, 2, 3)
    assert world.table.latest_snapshot().id == 3
    assert world.table.snapshot_manager().earliest().id == 1
    check_whole(world.table)


def test_a_commit_that_is_overtaken_goes_on_top_of_the_winner(world: World) -> None:
    late = prepare(world.table, rows_of([9]))
    publish = world.table.store.snapshots.publish
    snapshots = world.table.store.snapshots

    def overtaken(*arguments: object, **named: object) -> bool:
        snapshots.publish = publish
        append(world.table, rows_of([4]))
        return publish(*arguments, **named)

    snapshots.publish = overtaken
    result = world.table.new_batch_write_builder().new_commit().commit(late)

    assert (result.snapshot_id, result.retries) == (5, 1)
    assert read_ids(world.table) == [1, 2, 3, 4, 9]
    check_whole(world.table)


def test_a_conflict_is_refused_and_leaves_nothing(world: World) -> None:
    removal = prepare(world.table, rows_of([9]))
    world.table.new_batch_write_builder().new_commit().commit(removal)

    with pytest.raises(CommitConflict):
        world.table.new_batch_write_builder().new_commit().commit(removal)

    assert world.table.latest_snapshot().id == 4


def test_a_snapshot_becomes_the_latest_again(world: World) -> None:
    world.table.create_tag("v3", snapshot_id=3)

    world.table.rollback_to(2)

    assert read_ids(world.table) == [1, 2]
    assert world.table.list_tags() == ["v2"]
    assert append(world.table, rows_of([8])).snapshot_id == 3
    assert read_ids(world.table) == [1, 2, 8]
    with pytest.raises(SnapshotNotFound):
        world.table.rollback_to(9)


def test_a_tag_becomes_the_latest_though_its_snapshot_has_expired(world: World) -> None:
    world.table.expire_snapshots(retain_max=1, retain_min=1)

    world.table.rollback_to("v2")

    assert read_ids(world.table) == [1, 2]
    assert world.table.snapshot_manager().list_ids() == (2,)
    check_whole(world.table)


def test_snapshots_expire_with_their_files(world: World) -> None:
    overwrite(world.table, rows_of([4]))
    calls: list[tuple[int, int]] = []

    result = world.table.expire_snapshots(
        retain_max=1, retain_min=1, progress=lambda *args: calls.append(args)
    )

    assert result.snapshots == (1, 2, 3)
    assert world.table.snapshot_manager().list_ids() == (4,)
    assert world.table.snapshot_manager().earliest_id() == 4
    assert calls == [(n + 1, len(calls)) for n in range(len(calls))]
    assert read_ids(world.table) == [4]
    check_whole(world.table)
    assert append(world.table, rows_of([5])).snapshot_id == 5


def test_a_branch_is_made_written_to_and_taken_over(world: World) -> None:
    world.table.create_branch("b", "v2")
    append(world.branch(), rows_of([7]))
    append(world.branch(), rows_of([8]))
    assert read_ids(world.branch()) == [1, 2, 7, 8]
    assert read_ids(world.table) == [1, 2, 3]

    world.table.fast_forward("b")

    assert read_ids(world.table) == [1, 2, 7, 8]
    assert world.table.snapshot_manager().list_ids() == (1, 2, 3, 4)
    check_whole(world.table)
    assert append(world.table, rows_of([9])).snapshot_id == 5


def test_a_branch_that_began_empty_takes_the_place_of_everything(world: World) -> None:
    world.table.create_branch("b")
    append(world.branch(), rows_of([7]))

    world.table.fast_forward("b")

    assert read_ids(world.table) == [7]
    assert world.table.snapshot_manager().list_ids() == (1,)


def test_a_commit_in_the_middle_of_a_fast_forward_is_reported(following: World) -> None:
    world = following
    world.table.create_branch("b", "v2")
    append(world.branch(), rows_of([7]))
    snapshots = world.table.store.snapshots
    follow = snapshots.follow

    def overtaken(history: object) -> None:
        append(world.table, rows_of([99]))
        follow(history)

    snapshots.follow = overtaken
    with pytest.raises(InvalidState, match="meanwhile"):
        world.table.fast_forward("b")

    snapshots.follow = follow
    world.table.fast_forward("b")
    assert read_ids(world.table) == [1, 2, 7]


def test_a_branch_is_renamed_deleted_and_made_again(world: World) -> None:
    world.table.create_branch("b", "v2")
    append(world.branch(), rows_of([7]))

    world.table.rename_branch("b", "c")

    assert world.table.list_branches() == ["c"]
    assert read_ids(world.branch("c")) == [1, 2, 7]
    world.table.delete_branch("c")
    world.table.create_branch("c", "v2")
    assert world.branch("c").snapshot_manager().list_ids() == (2,)


def test_only_the_server_touches_snapshots_where_there_is_one() -> None:
    world = on_a_server()
    for number in (1, 2, 3):
        append(world.table, rows_of([number]))
    world.table.create_tag("v2", snapshot_id=2)
    world.table.create_branch("b", "v2")
    append(world.branch(), rows_of([7]))
    world.table.rename_branch("b", "c")
    world.table.fast_forward("c")
    world.table.expire_snapshots(retain_max=1, retain_min=1)
    world.table.rollback_to("v2")
    world.table.delete_branch("c")

    # The folder of a branch is deleted when its snapshots are gone.
    touched = [c for c in world.watched.calls if c.method in WRITES and "/snapshot/" in c.path]
    assert [str(call) for call in touched] == []
    assert world.server.rows_added[:3] == [1, 1, 1]


def test_an_answer_of_the_server_that_got_lost_is_found_out() -> None:
    world = on_a_server()
    world.server.fail_after_commit = True

    result = append(world.table, rows_of([1]))

    assert result.snapshot_id == 1
    assert world.table.snapshot_manager().list_ids() == (1,)


def test_a_table_pickles_with_who_it_is_and_who_publishes_for_it() -> None:
    made = create_table(MemoryStorage())
    Server("http://server", made.store.storage, "id-1")
    table = published_by("http://server", made)

    arrived = pickle.loads(pickle.dumps(table))

    assert arrived.store.identity == table.store.identity
    assert arrived.store.identity.uuid == "id-1"
    assert arrived.store.publisher == ServerPublisher("http://server")
    assert arrived.identifier == table.identifier
    append(arrived, rows_of([1]))
    assert read_ids(table.copy({})) == [1]

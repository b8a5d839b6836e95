"""A commit looks again whether its snapshot is still there, where others may overwrite it."""

import json
import warnings
from collections.abc import Callable
from dataclasses import replace

import pytest

from builders import (
    FakeEnv,
    append,
    as_arrow,
    create_key_table,
    create_table,
    open_table,
    prepare,
    rows_of,
    upsert,
)
from emberlake import Table
from emberlake.commit.verify import window_ms
from emberlake.errors import (
    CommitConflict,
    ConflictReason,
    EmberlakeWarning,
    SnapshotOverwritten,
    StorageError,
)
from emberlake.io import MemoryStorage, StorageTraits
from emberlake.io.wrapped import WrappedStorage
from table_reads import data_files, latest_snapshot, read_ids

ALWAYS = {"commit.verify-window": "2 s"}
NEVER = {"commit.verify-window": "0 s"}
VECTORS = {"bucket": "1", "deletion-vectors.enabled": "true"}


class SharedStorage(WrappedStorage):
    """Objects in memory that others overwrite."""

    @property
    def traits(self) -> StorageTraits:
        return replace(self.storage.traits, others_overwrite=True)


class World(FakeEnv):
    """In it something happens while somebody sleeps."""

    meanwhile: Callable[[], None] | None = None

    def _sleep(self, millis: float) -> None:
        super()._sleep(millis)
        act, self.meanwhile = self.meanwhile, None
        if act is not None:
            act()


def shared_table(world: World, **options: str) -> Table:
    return create_table(SharedStorage(MemoryStorage()), options=options, env=world.env())


def overwritten_table() -> Table:
    """A table with one row; while its next commit waits, a peer overwrites its snapshot."""
    world = World()
    table = shared_table(world, **ALWAYS)
    append(table, rows_of([1]))
    theirs = of_a_peer(table, 2, below_id=1)
    world.meanwhile = lambda: overwrite_with(table, theirs, 2)
    return table


def overwrite_with(table: Table, raw: bytes, snapshot_id: int) -> None:
    """What another engine does: a plain write of the snapshot that it has made of the one below."""
    table.store.storage.put(table.store.layout.snapshot(snapshot_id), raw)


def of_a_peer(table: Table, snapshot_id: int, below_id: int) -> bytes:
    """The snapshot of another engine on top of one that it has read."""
    document = json.loads(table.store.storage.read(table.store.layout.snapshot(below_id)))
    document |= {"id": snapshot_id, "commitUser": "a-peer", "deltaRecordCount": 0, "uuid": "theirs"}
    del document["writerVersion"]
    return json.dumps(document).encode()


def test_a_snapshot_that_was_overwritten_is_reported_and_its_files_stay():
    table = overwritten_table()
    messages = prepare(table, rows_of([2]))

    with pytest.raises(SnapshotOverwritten) as caught:
        table.new_batch_write_builder().new_commit().commit(messages)

    assert isinstance(caught.value, CommitConflict)
    assert caught.value.reason is ConflictReason.SNAPSHOT_OVERWRITTEN
    assert "snapshot 2 of " in str(caught.value)
    assert "a-peer" in str(caught.value)
    assert "is not in the table" in str(caught.value)
    (file,) = messages[0].new_files
    assert file.file_name in str(caught.value)
    assert any(path.endswith(file.file_name) for path in data_files(table))
    assert read_ids(table) == [1]


def test_what_was_overwritten_is_committed_again_with_the_same_messages():
    table = overwritten_table()
    messages = prepare(table, rows_of([2]))
    commit = table.new_batch_write_builder().new_commit
    with pytest.raises(SnapshotOverwritten):
        commit().commit(messages)

    assert commit().commit(messages).snapshot_id == 3
    assert read_ids(table) == [1, 2]


def test_the_short_forms_leave_the_files_too():
    table = overwritten_table()

    with pytest.raises(SnapshotOverwritten):
        table.append(as_arrow(rows_of([2])))

    assert len(data_files(table)) == 2


def test_rows_that_others_have_built_on_are_not_lost_so_it_only_warns():
    world = World()
    table = shared_table(world, **ALWAYS)
    append(table, rows_of([1]))
    theirs = of_a_peer(table, 2, below_id=1)
    other = open_table(table.store.storage).copy(NEVER)

    def meanwhile() -> None:
        append(other, rows_of([3]))
        overwrite_with(table, theirs, 2)

    world.meanwhile = meanwhile

    with pytest.warns(EmberlakeWarning, match="in the table all the same: snapshot 3"):
        append(table, rows_of([2]))

    assert read_ids(table) == [1, 2, 3]


def test_a_successor_that_was_built_on_the_other_snapshot_does_not_count():
    world = World()
    table = shared_table(world, **ALWAYS)
    append(table, rows_of([1]))
    theirs = of_a_peer(table, 2, below_id=1)
    other = open_table(table.store.storage).copy(NEVER)

    def meanwhile() -> None:
        overwrite_with(table, theirs, 2)
        append(other, rows_of([3]))

    world.meanwhile = meanwhile

    with pytest.raises(SnapshotOverwritten):
        append(table, rows_of([2]))

    assert read_ids(table) == [1, 3]


def test_deletes_that_were_overwritten_are_reported():
    table = overwritten_table()

    with pytest.raises(SnapshotOverwritten) as caught:
        table.new_batch_write_builder().new_commit().truncate_table()

    assert "data files stay" not in str(caught.value)
    assert read_ids(table) == [1]


def test_a_compaction_that_was_overwritten_is_done_again():
    world = World()
    storage = SharedStorage(MemoryStorage())
    table = create_key_table(storage=storage, env=world.env(), **VECTORS, **ALWAYS)
    upsert(table, [(1, "a")])
    first = latest_snapshot(table).id
    slept = []

    def overwrite_the_compaction() -> None:
        slept.append(latest_snapshot(table).id)
        if slept[-1] < first + 2:
            world.meanwhile = overwrite_the_compaction
            return
        overwrite_with(table, of_a_peer(table, first + 2, below_id=first + 1), first + 2)

    world.meanwhile = overwrite_the_compaction
    upsert(table, [(2, "b")])

    assert slept == [first + 1, first + 2]
    assert latest_snapshot(table).id == first + 3
    assert table.to_arrow().sort_by("id")["id"].to_pylist() == [1, 2]


def test_snapshots_that_are_gone_on_purpose_are_no_matter():
    world = World()
    table = shared_table(world, **ALWAYS)
    append(table, rows_of([1]))
    world.meanwhile = lambda: open_table(table.store.storage).rollback_to(1)

    append(table, rows_of([2]))

    assert read_ids(table) == [1]


def test_a_check_that_fails_is_reported_but_does_not_undo_the_commit():
    world = World()
    table = shared_table(world, **ALWAYS)
    append(table, rows_of([1]))

    class Failing(WrappedStorage):
        def read_marked(self, path: str) -> tuple[bytes, str | None]:
            if world.slept and path.endswith("snapshot-2"):
                raise StorageError("no answer")
            return self.storage.read_marked(path)

    world.slept.clear()
    late = open_table(Failing(table.store.storage), world.env())

    with pytest.warns(EmberlakeWarning, match=r"cannot be found out \(no answer\)"):
        append(late, rows_of([2]))

    assert read_ids(table) == [1, 2]


# --- whether it looks -----------------------------------------------------------------------------


def test_tables_that_only_emberlake_writes_to_do_not_wait():
    world = World()
    table = shared_table(world)

    append(table, rows_of([1]))
    append(table, rows_of([2]))

    assert world.slept == []


def test_tables_that_another_engine_has_just_written_to_are_looked_at():
    world = World()
    table = shared_table(world)
    append(table, rows_of([1]))
    overwrite_with(table, of_a_peer(table, 2, below_id=1), 2)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        append(table, rows_of([2]))

    assert world.slept == [1000]


def test_storages_on_which_nobody_overwrites_are_never_looked_at():
    world = World()
    table = create_table(options=ALWAYS, env=world.env())

    append(table, rows_of([1]))

    assert world.slept == []


@pytest.mark.parametrize(
    ("wanted", "writer", "expected"),
    [
        (None, "emberlake-0.1.0", 0),
        (None, None, 1000),
        (None, "2.1.0", 1000),
        (0, None, 0),
        (5000, "emberlake-0.1.0", 5000),
    ],
)
def test_the_option_decides_and_without_it_who_wrote_last(wanted, writer, expected):
    table = create_table()
    append(table, rows_of([1]))
    below = replace(latest_snapshot(table), writer_version=writer)

    assert window_ms(wanted, below) == expected
    assert window_ms(wanted, None) == (wanted or 0)

"""Two committers, interleaved at every storage call of one of them; nothing depends on luck."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import cache

import pytest

from builders import FakeEnv, append, copy_of, create_table, open_table, overwrite, prepare, rows_of
from emberlake.base.requests import settle
from emberlake.commit.change import CommitResult
from emberlake.errors import AlreadyCommitted, CommitConflict, ConflictReason, SnapshotNotFound
from emberlake.io import MemoryStorage, Storage
from emberlake.table import Table
from table_reads import check_whole, data_files, manifest_files, read, referenced_manifests
from watched_storage import Call, WatchedStorage

Operation = Callable[[Table], CommitResult]

OLD = [*rows_of([1], "mon"), *rows_of([2], "tue")]


@cache
def _template() -> MemoryStorage:
    storage = MemoryStorage()
    table = create_table(storage, partition_keys=["day"], options={"manifest.merge-min-count": "2"})
    append(table, OLD[:1])
    append(table, OLD[1:])
    return storage


class Interrupted:
    """Runs ``other`` on the bare storage when the nth call of ``mine`` begins."""

    def __init__(self, storage: Storage, other: Operation, at: int) -> None:
        self.storage = WatchedStorage(storage, self._watch)
        self.other_result: CommitResult | None = None
        self._bare = storage
        self._at = 0
        self._other = other
        self._table = open_table(self.storage, FakeEnv().env())
        self._at = len(self.storage.calls) + at

    def run(self, mine: Operation) -> CommitResult:
        try:
            return mine(self._table)
        finally:
            settle()  # on object stores the last calls are made later

    def _watch(self, call: Call) -> None:
        if call.number == self._at and not call.is_done:
            self.other_result = self._other(open_table(self._bare))


def count_calls(mine: Operation) -> int:
    storage = WatchedStorage(copy_of(_template()))
    table = open_table(storage)
    storage.calls.clear()
    mine(table)
    settle()
    return len(storage.calls)


def interleave(mine: Operation, other: Operation):
    """Every way in which the whole of ``other`` can come in between."""
    for at in range(1, count_calls(mine) + 1):
        storage = copy_of(_template())
        run = Interrupted(storage, other, at)
        result = run.run(mine)
        table = open_table(storage)
        check_whole(table)
        yield table, result, run.other_result


def ids(table: Table) -> list[int]:
    return [row["id"] for row in read(table)]


@pytest.mark.also_on_s3
def test_two_appends_both_land_once():
    found = set()
    for table, mine, other in interleave(
        lambda table: append(table, rows_of([7], "mon")),
        lambda table: append(table, rows_of([8], "mon")),
    ):
        assert ids(table) == [1, 2, 7, 8]
        assert {mine.snapshot_id, other.snapshot_id} == {3, 4}
        assert mine.rows_added == other.rows_added == 1
        assert manifest_files(table) == referenced_manifests(table)
        found.add(mine.retries)
    assert found == {0, 1}


def test_an_append_stays_unless_an_overwrite_of_its_partition_comes_after_it():
    seen = set()
    for table, mine, other in interleave(
        lambda table: append(table, rows_of([7], "mon")),
        lambda table: overwrite(table, rows_of([8], "mon")),
    ):
        is_last = mine.snapshot_id > other.snapshot_id
        assert ids(table) == ([2, 7, 8] if is_last else [2, 8])
        assert other.rows_deleted == (1 if is_last else 2)
        seen.add(is_last)
    assert seen == {True, False}


def test_an_overwrite_replaces_also_what_was_appended_before_it_won():
    seen = set()
    for table, mine, other in interleave(
        lambda table: overwrite(table, rows_of([7], "mon")),
        lambda table: append(table, rows_of([8], "mon")),
    ):
        is_last = mine.snapshot_id > other.snapshot_id
        assert ids(table) == ([2, 7] if is_last else [2, 7, 8])
        assert mine.rows_deleted == (2 if is_last else 1)
        assert manifest_files(table) == referenced_manifests(table)
        seen.add(is_last)
    assert seen == {True, False}


def test_two_overwrites_of_different_partitions_both_land():
    for table, mine, other in interleave(
        lambda table: overwrite(table, rows_of([7], "mon")),
        lambda table: overwrite(table, rows_of([8], "tue")),
    ):
        assert ids(table) == [7, 8]
        assert mine.rows_deleted == other.rows_deleted == 1


def test_the_later_of_two_overwrites_of_one_partition_stands():
    for table, mine, other in interleave(
        lambda table: overwrite(table, rows_of([7], "mon")),
        lambda table: overwrite(table, rows_of([8], "mon")),
    ):
        assert ids(table) == [2, 7 if mine.snapshot_id > other.snapshot_id else 8]


def truncate(table: Table) -> CommitResult:
    return table.new_batch_write_builder().new_commit().truncate_table()


def test_two_truncates_leave_one_snapshot_and_no_garbage():
    for table, mine, other in interleave(truncate, truncate):
        assert read(table) == []
        assert 3 in {mine.snapshot_id, other.snapshot_id}
        assert manifest_files(table) == referenced_manifests(table)


def test_a_rollback_in_between_never_makes_rows_appear_twice():
    def mine(table: Table) -> CommitResult:
        return append(table, rows_of([7], "mon"))

    for at in range(1, count_calls(mine) + 1):
        storage = copy_of(_template())
        with suppress(SnapshotNotFound):  # the snapshot that it wanted to build on is gone
            Interrupted(storage, lambda table: table.rollback_to(1), at).run(mine)

        assert ids(open_table(storage)) in ([1], [1, 7], [1, 2, 7])
        check_whole(open_table(storage))


def test_the_same_messages_committed_by_two_at_once_land_once():
    storage = copy_of(_template())
    messages = prepare(open_table(storage), rows_of([7], "mon"))

    def commit(table: Table) -> CommitResult:
        return table.new_batch_write_builder().new_commit().commit(messages)

    for at in range(1, 30):
        attempt = copy_of(storage)
        with suppress(AlreadyCommitted):  # whoever is second
            Interrupted(attempt, commit, at).run(commit)
        assert ids(open_table(attempt)) == [1, 2, 7]
        check_whole(open_table(attempt))


def test_a_changed_number_of_buckets_is_refused_whenever_it_comes():
    table = create_table(options={"bucket": "2", "bucket-key": "id"})
    storage = table.store.storage
    append(table, rows_of([1, 2, 3]))
    messages = prepare(table, rows_of([7]))
    changed = table.table_schema.with_options({"bucket": "4"})
    table.store.schemas.create(replace(changed, id=1))
    overwrite(open_table(storage), rows_of([8]))

    with pytest.raises(CommitConflict) as caught:
        open_table(storage).new_batch_write_builder().new_commit().commit(messages)

    assert caught.value.reason is ConflictReason.BUCKET_COUNT_CHANGED
    assert ids(open_table(storage)) == [8]


class Busy(WatchedStorage):
    """Somebody else commits right before each of our first ``rounds`` publishes."""

    def __init__(self, inner: Storage, rounds: int) -> None:
        super().__init__(inner, self._compete)
        self._left = rounds

    def _compete(self, call: Call) -> None:
        if call.method == "put_if_absent" and not call.is_done and self._left:
            self._left -= 1
            append(open_table(self.inner), rows_of([100 + self._left], "mon"))


@pytest.mark.also_on_s3
def test_lost_races_are_counted_and_waited_for_without_sleeping():
    storage = copy_of(_template())
    world = FakeEnv()

    result = append(open_table(Busy(storage, 4), world.env()), rows_of([7], "mon"))

    assert (result.snapshot_id, result.retries) == (7, 4)
    # Doubled each time, with half of the jitter.
    assert world.slept == pytest.approx([11, 22, 44, 88])
    table = open_table(storage)
    assert ids(table) == [1, 2, 7, 100, 101, 102, 103]
    assert manifest_files(table) == referenced_manifests(table)


def test_waits_are_bounded():
    options = {"commit.min-retry-wait": "1 s", "commit.max-retry-wait": "3 s"}
    world = FakeEnv()
    table = open_table(Busy(copy_of(_template()), 4), world.env()).copy(options)

    append(table, rows_of([7], "mon"))

    assert world.slept == pytest.approx([1100, 2200, 3300, 3300])


@pytest.mark.parametrize("retries", [0, 1, 3])
def test_when_others_win_every_race_the_commit_gives_up_and_cleans_up(retries):
    storage = copy_of(_template())
    options = {"commit.max-retries": str(retries)}
    table = open_table(Busy(storage, 1000), FakeEnv().env()).copy(options)
    messages = prepare(table, rows_of([7], "mon"))

    with pytest.raises(CommitConflict, match=f"{retries + 1} attempts") as caught:
        table.new_batch_write_builder().new_commit().commit(messages)

    assert caught.value.reason is ConflictReason.RETRIES_EXHAUSTED
    calm = open_table(storage)
    assert 7 not in ids(calm)
    assert manifest_files(calm) == referenced_manifests(calm)
    # The data files are still there for another try.
    assert calm.new_batch_write_builder().new_commit().commit(messages).rows_added == 1
    assert 7 in ids(calm)


def test_a_commit_gives_up_when_its_time_is_over():
    world = FakeEnv()
    options = {"commit.max-retries": "1000", "commit.timeout": "100 ms"}
    table = open_table(Busy(copy_of(_template()), 1000), world.env()).copy(options)

    with pytest.raises(CommitConflict, match=r"commit\.timeout"):
        append(table, rows_of([7], "mon"))

    assert 100 < sum(world.slept) < 300


def test_aborted_messages_cannot_have_been_committed():
    storage = copy_of(_template())
    table = open_table(storage)
    messages = prepare(table, rows_of([7], "mon"))
    commit = table.new_batch_write_builder().new_commit()

    commit.abort(messages)

    assert data_files(table) == data_files(open_table(_template()))
    assert ids(table) == [1, 2]

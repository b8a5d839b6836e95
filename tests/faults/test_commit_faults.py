"""A storage call fails, any of them, before or after its effect: the table stays whole."""

import itertools
from collections.abc import Callable
from functools import cache

import pytest

from builders import (
    NAME,
    append,
    as_arrow,
    copy_of,
    create_table,
    open_catalog,
    open_table,
    overwrite,
    prepare,
    rows_of,
)
from emberlake import AtomicType, SchemaChange
from emberlake.base.requests import settle
from emberlake.commit.change import CommitResult
from emberlake.errors import (
    AlreadyCommitted,
    CommitUnknown,
    EmberlakeError,
    InvalidInput,
    InvalidState,
    StorageError,
    TableNotFound,
)
from emberlake.io import MemoryStorage, Storage
from emberlake.table import Table
from table_reads import (
    check_whole,
    data_files,
    files_under,
    latest_snapshot,
    manifest_files,
    read,
    referenced_manifests,
)
from watched_storage import FaultyStorage, WatchedStorage

OLD = [*rows_of([1, 2], "mon"), *rows_of([3], "tue")]
NEW = [*rows_of([7], "mon"), *rows_of([8], "wed")]
APPENDED = OLD + NEW
OVERWRITTEN = [*rows_of([3], "tue"), *rows_of([7], "mon"), *rows_of([8], "wed")]
TRUNCATED: list[dict[str, object]] = []

Operation = Callable[[Table], CommitResult]
OPERATIONS: dict[str, tuple[Operation, list[dict[str, object]]]] = {
    "append": (lambda table: append(table, NEW), APPENDED),
    "overwrite": (lambda table: overwrite(table, NEW), OVERWRITTEN),
    "truncate": (
        lambda table: table.new_batch_write_builder().new_commit().truncate_table(),
        TRUNCATED,
    ),
}
AFTER = pytest.mark.parametrize("after_effect", [False, True], ids=["before", "after"])
EACH = pytest.mark.parametrize("name", OPERATIONS)


def an_old_table() -> Storage:
    return copy_of(_template())


@cache
def _template() -> MemoryStorage:
    # Merging manifests at every commit puts that into the sweep as well.
    storage = MemoryStorage()
    table = create_table(storage, partition_keys=["day"], options={"manifest.merge-min-count": "2"})
    append(table, OLD[:1])
    append(table, OLD[1:])
    return storage


def count_calls(operation: Operation) -> int:
    storage = WatchedStorage(an_old_table())
    table = open_table(storage)
    storage.calls.clear()
    operation(table)
    settle()
    return len(storage.calls)


def run_with_fault(
    operation: Operation, fail_at: int, *, after_effect: bool, for_good: bool = False
) -> tuple[Storage, FaultyStorage, CommitResult | None, Exception | None]:
    storage = an_old_table()
    faulty = FaultyStorage(storage, 0, after_effect=after_effect, for_good=for_good)
    table = open_table(faulty)
    faulty.calls.clear()
    faulty.fail_at = fail_at
    try:
        return storage, faulty, operation(table), None
    except (StorageError, CommitUnknown) as error:
        return storage, faulty, None, error


@AFTER
@EACH
def test_a_fault_anywhere_leaves_the_old_rows_or_the_new_ones_and_the_next_try_works(
    name, after_effect
):
    operation, expected = OPERATIONS[name]
    for fail_at in range(1, count_calls(operation) + 1):
        storage, faulty, result, error = run_with_fault(
            operation, fail_at, after_effect=after_effect
        )
        table = open_table(storage)

        check_whole(table)
        assert read(table) == (OLD if error else expected), faulty.failed
        assert result is None or result.snapshot_id == 3
        if error is not None:
            operation(table)
            check_whole(table)
            assert read(table) == expected, faulty.failed


@AFTER
@EACH
def test_a_storage_that_never_comes_back_leaves_a_whole_table(name, after_effect):
    operation, expected = OPERATIONS[name]
    for fail_at in range(1, count_calls(operation) + 1):
        storage, faulty, _, error = run_with_fault(
            operation, fail_at, after_effect=after_effect, for_good=True
        )
        table = open_table(storage)

        check_whole(table)
        # Only when publishing itself has failed may the caller be left without an answer.
        is_in_doubt = isinstance(error, CommitUnknown)
        assert read(table) in ([OLD, expected] if is_in_doubt else [OLD if error else expected])
        assert not is_in_doubt or faulty.failed.method in ("put_if_absent", "read")


def fault_at_publish(*, after_effect: bool, **options: str) -> tuple[Storage, CommitResult]:
    operation, _ = OPERATIONS["append"]
    storage = an_old_table()
    faulty = FaultyStorage(storage, 0, after_effect=after_effect)
    table = open_table(faulty).copy(options)
    faulty.watch = fail_once(faulty, "put_if_absent")
    return storage, operation(table)


def fail_once(faulty: FaultyStorage, method: str):
    def watch(call):
        is_due = call.method == method and call.is_done is faulty.after_effect
        if is_due and faulty.failed is None:
            faulty.failed = call
            raise StorageError(f"injected: {call}")

    return watch


@pytest.mark.also_on_s3
@pytest.mark.parametrize("retries", ["0", "10"])
def test_a_publish_whose_answer_got_lost_is_a_success_once(retries):
    storage, result = fault_at_publish(after_effect=True, **{"commit.max-retries": retries})

    table = open_table(storage)
    assert result.snapshot_id == 3
    assert table.snapshot_manager().list_ids() == (1, 2, 3)
    assert read(table) == APPENDED


@pytest.mark.also_on_s3
def test_a_publish_that_did_not_happen_is_tried_again():
    storage, result = fault_at_publish(after_effect=False)

    table = open_table(storage)
    assert (result.snapshot_id, result.retries) == (3, 1)
    assert read(table) == APPENDED
    assert manifest_files(table) == referenced_manifests(table)


def test_a_storage_that_says_no_to_its_own_repeated_publish_is_seen_through():
    class Repeating(WatchedStorage):
        def put_if_absent(self, path, data, after):
            self.inner.put_if_absent(path, data, after)
            return self.inner.put_if_absent(path, data, after)

    storage = an_old_table()

    result = append(open_table(Repeating(storage)), NEW)

    table = open_table(storage)
    assert (result.snapshot_id, result.retries) == (3, 0)
    assert read(table) == APPENDED
    check_whole(table)


@pytest.mark.also_on_s3
def test_what_may_be_in_the_table_is_not_deleted_and_says_what_to_look_for():
    storage = an_old_table()
    faulty = FaultyStorage(storage, 0, after_effect=True, for_good=True)
    table = open_table(faulty)
    messages = prepare(table, NEW)
    faulty.watch = break_at(faulty, "put_if_absent")

    with pytest.raises(CommitUnknown) as caught:
        table.new_batch_write_builder().new_commit().commit(messages)

    healed = open_table(storage)
    snapshot = latest_snapshot(healed)
    check_whole(healed)
    assert snapshot.id == 3
    assert snapshot.mark in str(caught.value)
    assert snapshot.commit_user in str(caught.value)
    with pytest.raises(AlreadyCommitted):
        healed.new_batch_write_builder().new_commit().commit(messages)
    assert read(healed) == APPENDED


def break_at(faulty: FaultyStorage, method: str):
    def watch(call):
        if faulty.failed is not None or (call.method == method and call.is_done):
            faulty.failed = faulty.failed or call
            raise StorageError(f"injected: {call}")

    return watch


def test_a_commit_that_is_certainly_not_visible_is_not_tried_again():
    class Failing(WatchedStorage):
        def put_if_absent(self, path, data, after):
            raise StorageError("the disk is full", had_no_effect=True)

    storage = an_old_table()

    with pytest.raises(StorageError, match="the disk is full"):
        append(open_table(Failing(storage)), NEW)

    table = open_table(storage)
    assert read(table) == OLD
    assert manifest_files(table) == referenced_manifests(table)


@pytest.mark.memory_only  # object stores look for the table a moment earlier
def test_a_table_that_is_dropped_right_before_a_commit_stays_away():
    storage = an_old_table()
    table = open_table(storage)

    def drop(call):
        if call.method == "put_if_absent" and not call.is_done:
            storage.delete_folder(table.table_path)

    with pytest.raises(TableNotFound):
        append(open_table(WatchedStorage(storage, drop)), NEW)

    assert not storage.exists(table.table_path)


@pytest.mark.memory_only  # what an object store has answered is durable
def test_manifests_that_may_not_be_on_the_disk_are_written_again():
    """A disk tells of a failed flush once: a second one of the same file would succeed."""

    class Failing(WatchedStorage):
        flushed: tuple[str, ...] = ()

        def put_if_absent(self, path, data, after):
            if not self.flushed:
                self.flushed = after
                raise StorageError("input/output error")
            assert not set(after) & set(self.flushed)
            return self.inner.put_if_absent(path, data, after)

    storage = an_old_table()

    result = append(open_table(Failing(storage)), NEW)

    table = open_table(storage)
    assert (result.snapshot_id, result.retries) == (3, 1)
    assert manifest_files(table) == referenced_manifests(table)
    check_whole(table)


@pytest.mark.also_on_s3
def test_a_publish_that_lands_late_is_found_before_another_is_made():
    class Late(WatchedStorage):
        """The first publish fails, and takes effect when the next one is tried."""

        held: tuple[str, bytes] | None = None
        is_first = True

        def put_if_absent(self, path, data, after):
            if self.is_first:
                self.is_first, self.held = False, (path, data)
                raise StorageError("timed out")
            if self.held is not None:
                self.inner.put_if_absent(*self.held)
            return self.inner.put_if_absent(path, data, after)

    storage = an_old_table()

    result = append(open_table(Late(storage)), NEW)

    table = open_table(storage)
    assert (result.snapshot_id, result.retries) == (3, 1)
    assert table.snapshot_manager().list_ids() == (1, 2, 3)
    assert read(table) == APPENDED
    check_whole(table)


def test_a_hint_that_cannot_be_written_does_not_make_a_commit_look_failed():
    storage = an_old_table()
    faulty = FaultyStorage(storage, 0, after_effect=False, for_good=True)
    table = open_table(faulty)
    messages = prepare(table, NEW)
    faulty.watch = lambda call: (
        (_ for _ in ()).throw(StorageError("injected")) if call.method == "put_hint" else None
    )

    result = table.new_batch_write_builder().new_commit().commit(messages)

    settle()
    assert faulty.calls[-1].method == "put_hint"
    assert result.snapshot_id == 3
    assert read(open_table(storage)) == APPENDED
    check_whole(open_table(storage))


@AFTER
def test_a_write_that_fails_cannot_be_committed_without_its_lost_rows(after_effect):
    storage = an_old_table()
    faulty = FaultyStorage(storage, 0, after_effect=after_effect)
    # Every row becomes a file of its own at once, so that writing fails and not preparing.
    table = open_table(faulty).copy({"target-file-row-num": "1", "write-buffer-size": "1 b"})
    write = table.new_batch_write_builder().new_write()
    faulty.watch = fail_once(faulty, "close_output")

    with pytest.raises(StorageError, match="injected"):
        write.write_arrow(as_arrow(NEW))

    with pytest.raises(InvalidState, match="a write failed"):
        write.prepare_commit()
    with pytest.raises(InvalidState, match="a write failed"):
        write.write_arrow(as_arrow(NEW))
    assert data_files(open_table(storage)) == data_files(open_table(_template()))


@AFTER
def test_a_prepare_that_fails_leaves_no_file_and_nothing_to_commit(after_effect):
    storage = an_old_table()
    faulty = FaultyStorage(storage, 0, after_effect=after_effect)
    write = open_table(faulty).new_batch_write_builder().new_write()
    write.write_arrow(as_arrow(NEW))
    faulty.watch = fail_once(faulty, "close_output")

    with pytest.raises(StorageError, match="injected"):
        write.prepare_commit()

    with pytest.raises(InvalidState, match="a write failed"):
        write.prepare_commit()
    assert data_files(open_table(storage)) == data_files(open_table(_template()))


def test_an_abort_that_fails_can_be_repeated():
    storage = an_old_table()
    faulty = FaultyStorage(storage, 0, after_effect=False)
    table = open_table(faulty).copy({"target-file-row-num": "1", "write-buffer-size": "1 b"})
    write = table.new_batch_write_builder().new_write()
    write.write_arrow(as_arrow(NEW))
    faulty.watch = fail_once(faulty, "delete")

    with pytest.raises(StorageError, match="injected"):
        write.abort()
    write.abort()

    assert data_files(open_table(storage)) == data_files(open_table(_template()))


def test_an_alter_whose_answer_got_lost_is_a_success():
    storage = an_old_table()
    faulty = FaultyStorage(storage, 0, after_effect=True)
    faulty.watch = fail_once(faulty, "put_if_absent")

    open_catalog(faulty).alter_table(NAME, [SchemaChange.add_column("n", AtomicType("INT"))])

    assert faulty.failed is not None
    assert open_table(storage).field_names == ["id", "day", "n"]


def test_a_commit_to_a_table_that_was_dropped_meanwhile_leaves_nothing_to_be_found():
    storage = an_old_table()
    table = open_table(storage)
    messages = prepare(table, NEW)
    open_catalog(storage).drop_table(NAME)

    with pytest.raises(TableNotFound, match="dropped"):
        table.new_batch_write_builder().new_commit().commit(messages)

    assert table.snapshot_manager().list_ids() == ()
    assert manifest_files(table) == set()


@pytest.mark.parametrize(("user", "properties"), [("\ud800", {}), ("me", {"a": "\ud800"})])
def test_a_commit_user_that_is_no_text_is_refused_before_anything_is_written(user, properties):
    table = open_table(an_old_table())
    builder = table.new_stream_write_builder(user)
    messages = prepare(table, NEW)
    before = manifest_files(table)

    with pytest.raises(InvalidInput, match="not a character"):
        builder.new_commit().commit(messages, 1, properties)

    assert manifest_files(table) == before


def drop_at(storage, path, moment):
    def watch(call):
        if call.number == moment and not call.is_done:
            storage.delete_folder(path)

    return watch


@pytest.mark.memory_only  # object stores look for the table a moment before the end
def test_a_table_that_is_dropped_at_any_moment_of_a_commit_stays_away():
    for moment in itertools.count(1):
        storage = an_old_table()
        watched = WatchedStorage(storage)
        table = open_table(watched)
        messages = prepare(table, NEW)
        commit = table.new_batch_write_builder().new_commit()
        watched.calls.clear()
        watched.watch = drop_at(storage, table.table_path, moment)

        with pytest.raises(EmberlakeError):
            commit.commit(messages)

        assert files_under(storage, table.table_path) == set(), watched.calls[moment - 1]
        if watched.calls[moment - 1].method == "put_if_absent":
            break

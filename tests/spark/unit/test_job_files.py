"""Tasks create files while their job is open; afterwards, what belongs to nobody is deleted."""

from collections.abc import Iterable
from contextlib import ExitStack, closing, suppress

import pyarrow as pa
import pytest

from builders import append, as_arrow, create_key_table, create_table, data_of, rows_of
from emberlake import IncompleteJob, InvalidState, Table
from emberlake.io import MemoryStorage
from emberlake.spark.job_files import open_job, task_store
from emberlake.spark.sweep import sweep_failed, sweep_repeated
from emberlake.wire import CommitMessage
from emberlake.write.table_writer import TableWriter
from table_reads import check_whole, data_files, files_under, read_ids

JOB = "the-job"


def partitioned() -> Table:
    """A table with a row that no job of these tests wrote."""
    table = create_table(partition_keys=["day"])
    append(table, rows_of([0]))
    return table


def task(
    table: Table, ids: list[int], day: str = "mon", number: int | None = None
) -> list[CommitMessage]:
    """What a task does that has these rows to write."""
    return write(table, as_arrow(rows_of(ids, day)), number)


def write(table: Table, rows: pa.Table, number: int | None = None) -> list[CommitMessage]:
    with closing(TableWriter(task_store(table.store, JOB, number))) as writer:
        writer.write(rows)
        return writer.prepare()


def test_files_of_a_job_have_its_id_in_their_names() -> None:
    table = partitioned()
    before = data_files(table)

    with open_job(table.store, JOB):
        task(table, [1])
        task(table, [2], "tue")

    written = data_files(table) - before
    assert len(written) == 2
    assert all(JOB in path for path in written)


def test_nothing_is_left_of_a_job_that_is_over() -> None:
    table = partitioned()
    before = files_under(table.store.storage, table.table_path)

    with suppress(ZeroDivisionError), open_job(table.store, JOB):
        raise ZeroDivisionError

    assert files_under(table.store.storage, table.table_path) == before


def test_a_task_that_outlives_its_job_creates_no_files() -> None:
    table = partitioned()
    before = files_under(table.store.storage, table.table_path)

    with pytest.raises(InvalidState, match="the job is over"):
        task(table, [1])

    assert files_under(table.store.storage, table.table_path) == before


def test_files_that_were_begun_before_a_job_was_over_and_finished_after_it_are_deleted() -> None:
    table = partitioned()
    storage = task_store(table.store, JOB).storage
    before = files_under(table.store.storage, table.table_path)

    def finish_late() -> None:
        with ExitStack() as job:
            job.enter_context(open_job(table.store, JOB))
            with storage.open_output(f"{table.table_path}/file") as sink:
                sink.write(b"rows")
                job.close()

    with pytest.raises(InvalidState, match="the job is over"):
        finish_late()

    assert files_under(table.store.storage, table.table_path) == before


def test_index_files_are_not_created_either() -> None:
    table = partitioned()

    with pytest.raises(InvalidState, match="the job is over"):
        task_store(table.store, JOB).storage.put_if_absent(f"{table.table_path}/index/i", b"")

    assert not table.store.storage.exists(f"{table.table_path}/index/i")


def test_a_file_that_was_there_before_is_not_deleted_with_those_of_the_job() -> None:
    table = partitioned()
    path = f"{table.table_path}/index/i"
    storage = task_store(table.store, JOB).storage

    with open_job(table.store, JOB):
        assert storage.put_if_absent(path, b"first")
        assert not storage.put_if_absent(path, b"second")

    assert table.store.storage.read(path) == b"first"


def test_all_files_of_a_job_that_failed_are_deleted_and_no_others() -> None:
    table = partitioned()
    before = data_files(table)
    with open_job(table.store, JOB):
        task(table, [1])
        task(table, [2], "tue")
        task(table, [3], "wed")

    assert sweep_failed(table.store, JOB) == 3

    assert data_files(table) == before
    check_whole(table)


@pytest.mark.parametrize("strategy", ["round-robin", "entropy-inject"])
def test_files_of_a_job_outside_of_the_table_are_deleted_too(strategy: str) -> None:
    key = "data-file.external-paths"
    options = {key: "file:///one,file:///two", f"{key}.strategy": strategy}
    table = create_table(partition_keys=["day"], options=options)
    with open_job(table.store, JOB):
        task(table, [1])
        messages = task(table, [1])
    assert len([*table.store.storage.list_all("file:")]) == 2

    assert sweep_repeated(table.store, JOB, messages) == 1
    assert sweep_failed(table.store, JOB) == 1

    assert not [*table.store.storage.list_all("file:")]


def test_files_are_swept_with_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    table = partitioned()
    with open_job(table.store, JOB):
        task(table, [1])
        task(table, [2], "tue")
    calls: list[int] = []
    delete_all = MemoryStorage.delete_all

    def counted(storage: MemoryStorage, paths: Iterable[str]) -> None:
        calls.append(len(found := [*paths]))
        delete_all(storage, found)

    monkeypatch.setattr(MemoryStorage, "delete_all", counted)
    sweep_failed(table.store, JOB)

    assert [count for count in calls if count] == [2]


def test_indexes_of_a_job_that_failed_are_deleted() -> None:
    table = create_key_table(bucket="-1")
    with open_job(table.store, JOB):
        write(table, data_of(table, [(1, "x"), (2, "y")]))
    assert len(files_under(table.store.storage, f"{table.table_path}/index")) == 1

    assert sweep_failed(table.store, JOB) == 2

    assert files_under(table.store.storage, f"{table.table_path}/index") == set()
    assert data_files(table) == set()


def test_what_repeated_attempts_wrote_is_deleted_and_the_rest_can_be_committed() -> None:
    table = partitioned()
    with open_job(table.store, JOB):
        task(table, [1, 2])
        messages = task(table, [1, 2])

    assert sweep_repeated(table.store, JOB, messages) == 1

    table.new_batch_write_builder().new_commit().commit(messages)
    assert read_ids(table) == [0, 1, 2]
    check_whole(table)
    assert len(data_files(table)) == 2


def test_no_file_is_deleted_where_one_is_of_a_task_that_has_not_reported() -> None:
    table = partitioned()
    with open_job(table.store, JOB):
        task(table, [1], number=0)  # an attempt that was repeated
        messages = task(table, [1], number=0)
        lost = task(table, [2], number=1)
    files = data_files(table)

    with pytest.raises(IncompleteJob, match=r"belongs to task 1, but only 1 tasks reported"):
        sweep_repeated(table.store, JOB, messages, tasks=1)

    assert data_files(table) == files
    assert sweep_repeated(table.store, JOB, [*messages, *lost], tasks=2) == 1

"""The reports of a job become messages; files that belong to nobody are deleted, others stay."""

from contextlib import closing

import pytest

from builders import as_arrow, create_table, rows_of
from emberlake import IncompleteJob, InvalidState, Table
from emberlake.session.write_session import WriteSession
from emberlake.spark.job import Job
from emberlake.spark.job_files import task_store
from emberlake.spark.reports import Reports, TaskReport
from emberlake.write.table_writer import TableWriter
from table_reads import data_files, files_under, read_ids

JOB = "the-job"


def task(table: Table, number: int) -> TaskReport:
    """What a task does that has one row to write."""
    with closing(TableWriter(task_store(table.store, JOB, number))) as writer:
        writer.write(as_arrow(rows_of([number])))
        return TaskReport.of(JOB, number, writer.prepare())


def test_the_messages_of_all_tasks_are_committed_and_repeated_attempts_swept() -> None:
    table = create_table()
    job = Job(table.store, JOB)

    def work() -> Reports:
        task(table, 0)  # an attempt that does not count
        return Reports((task(table, 0), task(table, 1)), total=2)

    messages, reports = job.run(work)
    WriteSession(table.store, "driver").commit_or_abort(messages)

    assert reports.total == 2
    assert read_ids(table) == [0, 1]
    assert len(data_files(table)) == 2


def test_files_of_a_job_that_fails_are_deleted() -> None:
    table = create_table()

    def work() -> Reports:
        task(table, 0)
        raise InvalidState("a task failed")

    with pytest.raises(InvalidState, match="a task failed"):
        Job(table.store, JOB).run(work)

    assert data_files(table) == set()
    assert files_under(table.store.storage, table.store.layout.manifest_folder) == set()


def test_files_of_a_job_with_a_missing_report_stay() -> None:
    table = create_table()

    with pytest.raises(IncompleteJob, match="1 of 2 tasks sent no report"):
        Job(table.store, JOB).run(lambda: Reports((task(table, 1),), total=2))

    assert len(data_files(table)) == 1


def test_no_task_writes_once_the_work_is_over() -> None:
    table = create_table()
    Job(table.store, JOB).run(lambda: Reports((task(table, 0),), total=1))

    with pytest.raises(InvalidState, match="too late"):
        task(table, 1)

    assert len(data_files(table)) == 1

"""A job is committed only if all of its tasks have reported."""

from dataclasses import replace

import pytest

from emberlake import IncompleteJob
from emberlake.spark.reports import Reports, TaskReport
from emberlake.wire import CommitMessage, WriteMode

JOB = "the-job"


def report(number: int, *buckets: int) -> TaskReport:
    messages = [
        CommitMessage(
            table="t", mode=WriteMode.APPEND, partition=b"", bucket=bucket, total_buckets=9
        )
        for bucket in buckets
    ]
    return TaskReport.of(JOB, number, messages)


ALL = (report(0, 4, 5), report(1), report(2, 6))


def buckets(reports: Reports) -> list[int]:
    return [message.bucket for message in reports.messages(JOB)]


@pytest.mark.parametrize("received", [ALL, ALL[::-1], (*ALL, ALL[2])], ids=["", "mixed", "twice"])
def test_the_messages_of_all_tasks_come_out_once_in_the_order_of_tasks(
    received: tuple[TaskReport, ...],
) -> None:
    assert buckets(Reports(received, 3)) == [4, 5, 6]


def test_a_job_without_tasks_has_no_messages() -> None:
    assert buckets(Reports((), 0)) == []


@pytest.mark.parametrize(
    ("received", "total", "problem"),
    [
        (ALL[1:], 3, "1 of 3 tasks sent no report: 0"),
        (ALL[:2], 3, "1 of 3 tasks sent no report: 2"),
        ((ALL[0], ALL[2]), 3, "1 of 3 tasks sent no report: 1"),
        ((ALL[0], ALL[1], ALL[1]), 3, "1 of 3 tasks sent no report: 2"),
        ((), 9, "9 of 9 tasks sent no report: 0, 1, 2, 3, 4 and 4 more"),
        ((), None, "the number of its tasks is unknown"),
        (ALL, None, "the number of its tasks is unknown"),
        ((*ALL, report(2, 7)), 3, "two different reports of task 2"),
        (ALL, 2, "it has 2 tasks, but task 2 also reported"),
        ((*ALL[:2], replace(ALL[2], job_id="else")), 3, "reports of another job: else"),
        ((*ALL, replace(ALL[2], job_id="else")), 3, "reports of another job: else"),
    ],
)
def test_what_is_missing_or_contradicts_itself_is_not_committed(
    received: tuple[TaskReport, ...], total: int | None, problem: str
) -> None:
    with pytest.raises(IncompleteJob, match=problem) as refused:
        Reports(received, total).messages(JOB)

    for said in ("The table is unchanged", "left in place", "Run the job again"):
        assert said in str(refused.value)

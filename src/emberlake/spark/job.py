"""One job on the driver: its tasks write files, and their reports become the messages of a session.

The session decides what becomes of messages. The job decides what becomes of files before there are
any: those of a job that failed, or of attempts that do not count, are deleted; not where a task may
not have been heard of.
"""

from collections.abc import Callable
from dataclasses import dataclass

from emberlake.spark.job_files import open_job
from emberlake.spark.reports import Reports
from emberlake.spark.sweep import sweep_repeated, swept_unless_done
from emberlake.store.table_store import TableStore
from emberlake.wire import CommitMessage


@dataclass(frozen=True)
class Job:
    """A job by its id, which is in the name of every file that its tasks write."""

    store: TableStore
    id: str

    def run(self, work: Callable[[], Reports]) -> tuple[list[CommitMessage], Reports]:
        """Let tasks write while ``work`` runs; what all of them wrote.

        Raises:
            IncompleteJob: not every task told what it wrote; the files stay where they are.
        """
        with swept_unless_done(self.store, self.id):
            with open_job(self.store, self.id):
                reports = work()
            return self.messages(reports), reports

    def messages(self, reports: Reports) -> list[CommitMessage]:
        """The messages of all tasks; files of the job that none of them names are deleted.

        Raises:
            IncompleteJob: not every task told what it wrote; nothing is deleted.
        """
        messages = reports.messages(self.id)
        # Attempts that Spark repeated may have left files that no message names.
        sweep_repeated(self.store, self.id, messages, reports.total)
        return messages

"""One job on the driver: its tasks write files, and their reports become the messages of a session.

The session decides what happens to messages. The job decides what happens to files before there are
messages: it deletes those of a failed job and of attempts that do not count, unless a task may not
have reported.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from emberlake.spark.job_files import open_job
from emberlake.spark.reports import Reports
from emberlake.spark.sweep import sweep_repeated, swept_unless_done
from emberlake.store.table_store import TableStore
from emberlake.wire import CommitMessage


@dataclass(frozen=True)
class Job:
    """A job by its id, which is in the name of every file that its tasks write.

    Args:
        store: The table that its tasks write to.
        id: The id.
        beside: Other tables that they write to as well.
    """

    store: TableStore
    id: str
    beside: tuple[TableStore, ...] = ()

    @property
    def _stores(self) -> tuple[TableStore, ...]:
        return (self.store, *self.beside)

    def run(self, work: Callable[[], Reports]) -> tuple[list[CommitMessage], Reports]:
        """Let tasks write while ``work`` runs; returns what all of them wrote.

        Raises:
            IncompleteJob: not every task reported; the files are left in place.
        """
        with ExitStack() as swept:
            for store in self._stores:
                swept.enter_context(swept_unless_done(store, self.id))
            with ExitStack() as opened:
                for store in self._stores:
                    opened.enter_context(open_job(store, self.id))
                reports = work()
            return self.messages(reports), reports

    def messages(self, reports: Reports) -> list[CommitMessage]:
        """The messages of all tasks; deletes files of the job that none of them names.

        Raises:
            IncompleteJob: not every task reported; nothing is deleted.
        """
        messages = reports.messages(self.id)
        # Attempts that Spark repeated may have left files that no message names.
        for store in self._stores:
            sweep_repeated(store, self.id, self._of_table(store, messages), reports.total)
        return messages

    def _of_table(
        self, store: TableStore, messages: Sequence[CommitMessage]
    ) -> Sequence[CommitMessage]:
        if not self.beside:
            return messages
        return [message for message in messages if message.table == store.layout.metadata_root]

"""The files of a job: its tasks can create files only while the job is open.

Spark tells the driver that a job has failed or succeeded while some of its tasks still run: those
of a job that failed in another task, and attempts that were slower than another attempt. They stop
some seconds later, or never notice. A small file marks the open job. The driver deletes it before
it looks for files that belong to nobody, and no task creates files without it.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from emberlake.base.env import SYSTEM_ENV
from emberlake.errors import InvalidState
from emberlake.io.storage import OneByOne, Output
from emberlake.io.wrapped import WrappedOutput, WrappedStorage
from emberlake.store.table_store import TableStore


@contextmanager
def open_job(store: TableStore, job_id: str) -> Iterator[None]:
    """On the driver: tasks of the job can create files inside the context, but not after it."""
    begin_job(store, job_id)
    try:
        yield
    finally:
        end_job(store, job_id)


def begin_job(store: TableStore, job_id: str) -> None:
    """On the driver: from now on tasks of the job can create files."""
    store.storage.put(_marker(store, job_id), b"")


def end_job(store: TableStore, job_id: str) -> None:
    """On the driver: from now on no task of the job can create files; may be called again."""
    store.storage.delete(_marker(store, job_id))


def is_open(store: TableStore, job_id: str) -> bool:
    """On the driver: whether tasks of the job can still create files."""
    return store.storage.exists(_marker(store, job_id))


def hold_job(store: TableStore, job_id: str) -> None:
    """On the driver: nobody may delete files of the job from now on."""
    store.storage.put(_hold(store, job_id), b"")


def is_held(store: TableStore, job_id: str) -> bool:
    """On the driver: whether files of the job must not be deleted."""
    return store.storage.exists(_hold(store, job_id))


def task_store(store: TableStore, job_id: str, number: int | None = None) -> TableStore:
    """In a task: the table, with the job and the task in the names of new files."""
    storage = JobStorage(store.storage, _marker(store, job_id))
    return replace(marked(store, job_id, number), storage=storage)


def marked(store: TableStore, job_id: str, number: int | None = None) -> TableStore:
    """The table, with the job's id in the names of new files, so that the driver finds them."""
    mark = job_id if number is None else f"{job_id}-t{number}"
    return replace(store, env=SYSTEM_ENV.marked(mark))


def author_of(name: str, job_id: str) -> int | None:
    """The number of the task that created a file of the job, if its name shows it."""
    found = re.search(rf"{re.escape(job_id)}-t(\d+)-", name)
    return None if found is None else int(found[1])


def _hold(store: TableStore, job_id: str) -> str:
    return f"{_marker(store, job_id)}-held"


def _marker(store: TableStore, job_id: str) -> str:
    # In a folder that is searched for orphans, in case the driver is lost.
    return f"{store.layout.manifest_folder}/job-{job_id}"


@dataclass(frozen=True)
class JobStorage(WrappedStorage):
    """A storage that creates files only as long as the marker of a job exists."""

    marker: str

    def open_output(self, path: str, target: int | None = None) -> Output:
        self._check()
        return _JobOutput(self.storage.open_output(path, target), self._check)

    def create(self, path: str, data: bytes) -> None:
        self._check()
        self.storage.create(path, data)
        self._check(path)

    def put_if_absent(self, path: str, data: bytes, after: Sequence[str] = ()) -> bool:
        self._check()
        is_ours = self.storage.put_if_absent(path, data, after)
        self._check(path if is_ours else None)
        return is_ours

    create_all = OneByOne.create_all  # each is checked
    put_each_if_absent = OneByOne.put_each_if_absent
    put_or_read = OneByOne.put_or_read

    def put(self, path: str, data: bytes) -> None:
        self._check()
        self.storage.put(path, data)

    def put_hint(self, path: str, data: bytes) -> None:
        self._check()
        self.storage.put_hint(path, data)

    def _check(self, created: str | None = None) -> None:
        """Refuse to continue if the job is over; delete what was created meanwhile."""
        if self.storage.exists(self.marker):
            return
        if created is not None:
            self.storage.delete(created)
        raise InvalidState(f"the job is over, this task came too late: {self.marker} is gone")


class _JobOutput(WrappedOutput):
    def __init__(self, output: Output, check: Callable[[str], None]) -> None:
        super().__init__(output)
        self._check = check

    def _finish(self) -> None:
        super()._finish()
        self._check(self.path)

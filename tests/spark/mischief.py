"""What can go wrong in a task, and where: in the stage before a write, or in its storage.

Workers import this module; a happening happens in the process of a task.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext

from emberlake import Table
from emberlake.io import Output, WrappedStorage
from emberlake.io.wrapped import WrappedOutput
from emberlake.store.table_store import TableStore

PATIENCE_S = 120.0  # machines can be busy; nothing here waits longer than it must
EXECUTOR = b"CoarseGrainedExecutorBackend"
Happening = Callable[[], object]


def wait_until(condition: Callable[[], bool], what: str, patience_s: float = PATIENCE_S) -> None:
    """Return once a condition holds, and fail should it never do."""
    deadline = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {patience_s} s in vain for {what}")
        time.sleep(0.02)


@dataclass(frozen=True)
class Stage:
    """Lets all rows of a DataFrame pass; then something happens in the task of one partition."""

    happening: Happening
    partition: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        task = TaskContext.get()
        assert task is not None
        if task.partitionId() == self.partition:
            self.happening()


@dataclass(frozen=True)
class MischiefStorage(WrappedStorage):
    """A storage on which something happens whenever a task has finished a data file."""

    happening: Happening = lambda: None

    def open_output(self, path: str, target: int | None = None) -> Output:
        return _MischiefOutput(self.storage.open_output(path, target), self.happening)


class _MischiefOutput(WrappedOutput):
    def __init__(self, output: Output, happening: Happening) -> None:
        super().__init__(output)
        self._happening = happening

    def _finish(self) -> None:
        super()._finish()
        if TaskContext.get() is not None and "/bucket-" in self.path:
            self._happening()


def with_mischief(table: Table, happening: Happening) -> TableStore:
    """The table on a storage on which something happens in tasks."""
    return replace(table.store, storage=MischiefStorage(table.store.storage, happening))


@dataclass(frozen=True)
class Once:
    """It happens to the first that comes, whose file tells it to the others."""

    happening: Happening
    path: Path

    def __call__(self) -> None:
        try:
            self.path.touch(exist_ok=False)
        except FileExistsError:
            return
        self.happening()


@dataclass(frozen=True)
class InFirstAttempts:
    """It happens to attempts that are no repetition."""

    happening: Happening

    def __call__(self) -> None:
        task = TaskContext.get()
        assert task is not None
        if task.attemptNumber() == 0:
            self.happening()


@dataclass(frozen=True)
class Steps:
    """One happening after the other."""

    happenings: tuple[Happening, ...]

    def __call__(self) -> None:
        for happening in self.happenings:
            happening()


@dataclass(frozen=True)
class Failed:
    """The task fails."""

    def __call__(self) -> None:
        raise RuntimeError("something went wrong in a task")


@dataclass(frozen=True)
class CrashedWorker:
    """The Python process of the task dies, and cleans nothing up."""

    def __call__(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class KilledExecutor:
    """The process that runs the task is killed, and all other tasks of it with it."""

    def __call__(self) -> None:
        executor = parent_of(parent_of(os.getpid()))
        assert EXECUTOR in Path(f"/proc/{executor}/cmdline").read_bytes()
        os.kill(executor, signal.SIGKILL)
        time.sleep(PATIENCE_S)  # the daemon of workers notices, and stops them


@dataclass(frozen=True)
class KilledDriver:
    """The program that has started the job is killed."""

    process: int

    def __call__(self) -> None:
        os.kill(self.process, signal.SIGKILL)


def parent_of(process: int) -> int:
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    return int(status.partition("\nPPid:")[2].split()[0])


@dataclass(frozen=True)
class Touched:
    """A file tells that it happened."""

    path: Path

    def __call__(self) -> None:
        self.path.touch()


@dataclass(frozen=True)
class WaitFor:
    """The task waits for a file."""

    path: Path

    def __call__(self) -> None:
        wait_until(self.path.exists, self.path.name)

"""The data source with a sink of which processes are killed, by a plan.

The folder `kills` has a file for every kill that is to come, named by `Kill`. Who takes the file
away dies. The variable EMBERLAKE_KILLS of the environment says where that folder is.
"""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StructType

from emberlake.commit.committer import Committer
from emberlake.datasource.options import SourceOptions, Use, parse_options
from emberlake.datasource.source import EmberlakeDataSource
from emberlake.datasource.stream_write import StreamWriter
from emberlake.datasource.written import WrittenFiles

BATCH_ID = "streaming.sql.batchId"
FOLDER = "EMBERLAKE_KILLS"


@dataclass(frozen=True)
class Kill:
    """Who dies, and when."""

    sink: str
    batch: int
    moment: str  # written, before, between or after: see FaultyWriter
    victim: str  # worker: the Python process that does it; driver: all of Spark

    @property
    def name(self) -> str:
        return "-".join(map(str, astuple(self)))


class FaultySource(EmberlakeDataSource):
    """The format `faulty`."""

    @classmethod
    def name(cls) -> str:
        return "faulty"

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:  # noqa: N802
        options = parse_options(self.options, Use.STREAM_WRITE)
        return FaultyWriter(options, schema, overwrite=overwrite)


class FaultyWriter(StreamWriter):
    """Dies when files are written, and before, in and after the commit of a batch."""

    def __init__(self, options: SourceOptions, schema: StructType, *, overwrite: bool) -> None:
        super().__init__(options, schema, overwrite=overwrite)
        self._folder = Path(os.environ[FOLDER])
        self._sink = options.catalog["warehouse"].rpartition("/")[2]

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenFiles:
        written = super().write(iterator)
        task = TaskContext.get()
        assert task is not None
        self._die(int(task.getLocalProperty(BATCH_ID) or ""), "written")
        return written

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        self._die(batchId, "before")
        with after_first_snapshot(lambda: self._die(batchId, "between")):
            super().commit(messages, batchId)
        self._die(batchId, "after")

    def _die(self, batch: int, moment: str) -> None:
        for victim in ("worker", "driver"):
            kill = Kill(self._sink, batch, moment, victim)
            try:
                (self._folder / "kills" / kill.name).unlink()
            except FileNotFoundError:
                continue
            if victim == "driver":
                os.killpg(int((self._folder / "driver").read_text()), signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)


@contextmanager
def after_first_snapshot(happening: Callable[[], None]) -> Iterator[None]:
    """Inside the context something happens once the first of a commit's snapshots is there."""
    original = Committer.commit_all

    def commit_all(self: Committer, *arguments: Any, **named: Any) -> Any:
        result = original(self, *arguments, **named)
        happening()
        return result

    Committer.commit_all = commit_all
    try:
        yield
    finally:
        Committer.commit_all = original

"""Whether Spark's own reader, as its session is set up, reaches the files of an object store.

Spark reads ``s3a://`` by itself where hadoop-aws is on its class path and has keys of its own: ours
are never put into its settings. Spark is asked once per session and place, by looking for one file
and its size, since a bucket at another address may have the same name.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from emberlake.io.routed import RoutedStorage, place_of
from emberlake.io.storage import Storage

_T = TypeVar("_T")
# Starting the client takes seconds. With wrong settings it would try for minutes.
_LIMIT_S: Final = 20.0
S3A: Final = "s3a"


@dataclass(frozen=True, slots=True)
class Answer:
    """Whether Spark reads a place by itself; if not, why."""

    is_yes: bool
    reason: str = ""


_YES: Final = Answer(True)
_Place = tuple[str, Storage]  # the storage has the address and the keys that we use
_answers: WeakKeyDictionary[SparkSession, dict[_Place, Answer]] = WeakKeyDictionary()


@dataclass(frozen=True)
class SessionFiles:
    """The files of a table's storage that a session can read by itself."""

    spark: SparkSession
    storage: Storage
    limit_s: float = _LIMIT_S
    refused: dict[str, str] = field(default_factory=dict)  # place -> why Spark is not to read it

    def opens(self, path: str, spark_path: str, size: int) -> bool:
        """Whether Spark reads the place of a file; the first file of a place answers for all."""
        place = place_of(path)
        storage = self.storage
        if isinstance(storage, RoutedStorage):
            storage = storage.storage_of(path)
        known = _answers.setdefault(self.spark, {})
        if (place, storage) not in known:
            known[place, storage] = self._ask(spark_path, size)
        answer = known[place, storage]
        if not answer.is_yes:
            self.refused[place] = answer.reason
        return answer.is_yes

    def _ask(self, path: str, size: int) -> Answer:
        if type(self.spark) is not SparkSession:
            return Answer(False, "a session of Spark Connect does not say what its server reads")
        try:
            hadoop = self.spark._jvm.org.apache.hadoop.fs  # type: ignore[union-attr] # noqa: SLF001
            settings = self.spark._jsparkSession.sessionState().newHadoopConf()  # noqa: SLF001
            hadoop.FileSystem.getFileSystemClass(S3A, settings)
        except Py4JError:
            return Answer(False, f"the session has no file system for {S3A}:// (hadoop-aws)")
        found = _within(self.limit_s, lambda: _size_of(hadoop, settings, path))
        if found is None:
            return Answer(False, f"the session's {S3A}:// gave no answer in {self.limit_s:g} s")
        if isinstance(found, str):
            return Answer(False, f"the session's {S3A}:// does not find the table's files: {found}")
        if found != size:
            return Answer(False, f"the session's {S3A}:// finds another file of the same name")
        return _YES


def _size_of(hadoop: Any, settings: Any, path: str) -> int | str:
    """The size of a file as Spark sees it, or the class of the error that it gets instead."""
    try:
        file = hadoop.Path(path)
        size: int = file.getFileSystem(settings).getFileStatus(file).getLen()
    except Py4JError as error:
        # Not the error's text, which has everything that the client knows about the request.
        raised = getattr(error, "java_exception", None)
        return type(error).__name__ if raised is None else str(raised.getClass().getSimpleName())
    return size


def _within(seconds: float, work: Callable[[], _T]) -> _T | None:
    """The result of a call; None if it takes longer, and then its result is ignored."""
    answers: SimpleQueue[_T] = SimpleQueue()
    Thread(target=lambda: answers.put(work()), name="emberlake-s3a", daemon=True).start()
    try:
        return answers.get(timeout=seconds)
    except Empty:
        return None

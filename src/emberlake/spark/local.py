"""A Spark session for one command: starts it, watches what it reads, stops it."""

import logging
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from threading import Event, Thread
from typing import IO, Any, Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from emberlake.errors import InvalidState
from emberlake.spark.starting import LOOPBACK, PYTHON_VARIABLES, added_variables

_POLL_SECONDS: Final = 0.2
_DEFAULTS: Final = {
    # No web page.
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


@contextmanager
def local_session(
    master: str, settings: Mapping[str, str] | None = None, *, verbose: bool = False
) -> Iterator[SparkSession]:
    """Start a session and stop it afterwards; an active session is used and left running.

    Args:
        master: ``local[*]``, or the address of a cluster.
        settings: Spark settings, which override those that are made here.
        verbose: Whether Spark's log goes to stderr; otherwise it is not shown.

    Raises:
        InvalidState: Spark does not start; the message has the end of its log.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    loopback = LOOPBACK if master.startswith("local") else {}
    conf = SparkConf().setMaster(master).setAppName("emberlake")
    for key, value in {**loopback, **_DEFAULTS, **(settings or {})}.items():
        conf = conf.set(key, value)
    quiet = nullcontext() if verbose else _quiet()
    # Workers use the Python of this process, which has emberlake, unless set otherwise.
    python = added_variables(dict.fromkeys(PYTHON_VARIABLES, sys.executable))
    with python, quiet, tempfile.TemporaryFile() as log:
        session = _start(conf, None if verbose else log)
        try:
            yield session
        finally:
            session.stop()


def _start(conf: SparkConf, log: IO[bytes] | None) -> SparkSession:
    try:
        if SparkContext._gateway is None:  # noqa: SLF001 - whether a JVM runs has no public name
            streams: dict[str, Any] = {} if log is None else {"stdout": log, "stderr": log}
            gateway = launch_gateway(conf, streams)  # type: ignore[no-untyped-call]
            return SparkSession(SparkContext(conf=conf, gateway=gateway))
        return SparkSession(SparkContext(conf=conf))
    except (PySparkException, OSError) as error:
        raise InvalidState(
            "Spark does not start; it needs Java 17 or later, found by JAVA_HOME or PATH: "
            f"{_complaint(log) or error}"
        ) from error


def _complaint(log: IO[bytes] | None) -> str:
    """The first line of the log that is not a warning."""
    if log is None:
        return ""
    log.seek(0)
    lines = [line.strip() for line in log.read().decode(errors="replace").splitlines()]
    return next((line for line in lines if line and "WARN" not in line), "")


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the logs of PySpark and Py4J; their exceptions are raised anyway."""
    before = logging.root.manager.disable
    # An interrupted call is logged with its traceback, by the root logger.
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


@contextmanager
def watch_tasks(spark: SparkSession, advance: Callable[[int, int], None]) -> Iterator[None]:
    """Report how many tasks of the running stages are done, while the work inside runs."""
    tracker = spark.sparkContext.statusTracker()

    def look() -> None:
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        running = [stage for stage in stages if stage is not None]
        if running:
            advance(
                sum(stage.numCompletedTasks for stage in running),
                sum(stage.numTasks for stage in running),
            )

    with _looking(look):
        yield


@contextmanager
def watch_input(spark: SparkSession, advance: Callable[[int, int], None]) -> Iterator[None]:
    """Report how many bytes and rows were read from files, while the work inside runs."""
    # The numbers of Spark's web page, updated when tasks end, and every few seconds before that.
    store = spark.sparkContext._jsc.sc().statusStore()  # noqa: SLF001 - no public name
    tracker = spark.sparkContext.statusTracker()
    seen: set[int] = set()

    def look() -> None:
        seen.update(tracker.getActiveStageIds())
        read = [store.lastStageAttempt(stage) for stage in seen]
        advance(
            sum(stage.inputBytes() for stage in read), sum(stage.inputRecords() for stage in read)
        )

    with _looking(look):
        yield


@contextmanager
def _looking(look: Callable[[], None]) -> Iterator[None]:
    """Call ``look`` repeatedly, on a thread of its own, while the work inside runs."""
    stop = Event()

    def watch() -> None:
        while not stop.wait(_POLL_SECONDS):
            with suppress(Py4JError):  # a stage that is not listed yet, or a session that ended
                look()

    watcher = Thread(target=watch, name="emberlake-progress", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        stop.set()
        watcher.join()

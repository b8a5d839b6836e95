"""A Spark session for one command: made for it, watched while it works, stopped after it."""

import logging
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from threading import Event, Thread
from typing import IO, Any, Final

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from emberlake.errors import InvalidState

_PYTHON_VARIABLES: Final = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
_POLL_SECONDS: Final = 0.2
_DEFAULTS: Final = {
    # Nothing is served to browsers.
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
# Nothing listens but on this machine. A driver of a cluster must be reached by its executors.
_LOOPBACK: Final = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}


@contextmanager
def local_session(
    master: str, settings: Mapping[str, str] | None = None, *, verbose: bool = False
) -> Iterator[SparkSession]:
    """A session of its own, or the one that is active already, which then stays.

    Args:
        master: ``local[*]``, or the address of a cluster.
        settings: Settings of Spark, which go before those that are made here.
        verbose: Whether what Spark logs goes to stderr; it is kept from the terminal otherwise.

    Raises:
        InvalidState: Spark does not start; the message has the end of its log.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    loopback = _LOOPBACK if master.startswith("local") else {}
    conf = SparkConf().setMaster(master).setAppName("emberlake")
    for key, value in {**loopback, **_DEFAULTS, **(settings or {})}.items():
        conf = conf.set(key, value)
    quiet = nullcontext() if verbose else _quiet()
    with _python_of_workers(), quiet, tempfile.TemporaryFile() as log:
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
    """The first line of the log that is no warning."""
    if log is None:
        return ""
    log.seek(0)
    lines = [line.strip() for line in log.read().decode(errors="replace").splitlines()]
    return next((line for line in lines if line and "WARN" not in line), "")


@contextmanager
def _quiet() -> Iterator[None]:
    """What PySpark and Py4J say besides what they raise stays unsaid."""
    before = logging.root.manager.disable
    # An interrupted call is logged with its traceback, by the root logger.
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


@contextmanager
def _python_of_workers() -> Iterator[None]:
    """Workers run the Python that runs this, which has emberlake, unless told otherwise."""
    added = [name for name in _PYTHON_VARIABLES if name not in os.environ]
    os.environ.update(dict.fromkeys(added, sys.executable))
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


@contextmanager
def watch_tasks(spark: SparkSession, tell: Callable[[int, int], None]) -> Iterator[None]:
    """Tell how many tasks of the running stages are done, while the work inside goes on."""
    tracker = spark.sparkContext.statusTracker()
    stop = Event()

    def look() -> None:
        while not stop.wait(_POLL_SECONDS):
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            running = [stage for stage in stages if stage is not None]
            if running:
                tell(
                    sum(stage.numCompletedTasks for stage in running),
                    sum(stage.numTasks for stage in running),
                )

    watcher = Thread(target=look, name="emberlake-progress", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        stop.set()
        watcher.join()

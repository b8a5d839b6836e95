"""Finds the user's Spark session and prepares it for our jobs."""

import re
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import Lock
from typing import Any, Final
from weakref import WeakSet

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from emberlake._version import __version__
from emberlake.errors import InvalidState

# Spark measures the batch that it fills for a Python worker after every single row, unless there is
# no bound: moving 10,000,000 rows of 8 columns took 17 s of CPU with the bound, 3.3 s without. The
# bound on rows (spark.sql.execution.arrow.maxRecordsPerBatch, 10,000) stays.
_BATCH_BYTES: Final = "spark.sql.execution.arrow.maxBytesPerBatch"
_NO_BOUND: Final = str(2**31 - 1)
# The size of the pieces into which adaptive execution splits a large partition. For several tasks
# to share one, pieces must be much smaller than the default of 64 MiB.
_PIECE_BYTES: Final = "spark.sql.adaptive.advisoryPartitionSizeInBytes"
_SMALL_PIECE: Final = "4MB"
_64_MIB: Final = ("67108864", "67108864b", "64MB", "64m")
# With more paths than this, Spark looks for files in tasks rather than in the driver.
_LISTING: Final = "spark.sql.sources.parallelPartitionDiscovery.threshold"
_DEFAULTS: Final = {_BATCH_BYTES: _64_MIB, _PIECE_BYTES: _64_MIB, _LISTING: ("32",)}
# The error of a worker that lacks a package. Spark itself notices a missing pyarrow.
_MISSING: Final = re.compile(r"No module named|PACKAGE_NOT_INSTALLED|must be installed")

_lock = Lock()
_users: Counter[tuple[int, str]] = Counter()  # our running jobs, by session and setting
_found: dict[tuple[int, str], str | None] = {}  # the setting before the first of them
_checked: WeakSet[SparkSession] = WeakSet()


def find_session(spark: SparkSession | None = None) -> SparkSession:
    """The given session, the active one of this thread, or the default one of the program.

    This never creates a session; ``emberlake.spark.session`` does.

    Raises:
        InvalidState: there is none.
    """
    session = spark or active_session()
    if session is None:
        raise InvalidState(
            "there is no active Spark session; start one (emberlake.spark.session(), or "
            "SparkSession.builder.getOrCreate()), or pass it: spark=..."
        )
    return session


def active_session() -> SparkSession | None:
    """The session that runs; None if there is none."""
    try:
        session = SparkSession.active()
    except PySparkRuntimeError:
        return None
    # Spark returns the default session even if its context was stopped. Sessions on a Connect
    # server are of another class, and Spark checks them itself.
    is_classic = type(session) is SparkSession
    is_stopped = is_classic and session.sparkContext._jsc is None  # noqa: SLF001
    return None if is_stopped else session


def fast_arrow(spark: SparkSession) -> AbstractContextManager[None]:
    """While our job runs, batches of rows for Python workers are not measured."""
    return _borrowed(spark, _BATCH_BYTES, _NO_BOUND)


def small_pieces(spark: SparkSession) -> AbstractContextManager[None]:
    """While our job runs, large partitions of a shuffle are split into smaller pieces."""
    return _borrowed(spark, _PIECE_BYTES, _SMALL_PIECE)


def listed_by_driver(spark: SparkSession) -> AbstractContextManager[None]:
    """While files of this disk are looked up, the driver does it, rather than a task for each."""
    return _borrowed(spark, _LISTING, _NO_BOUND)


@contextmanager
def _borrowed(spark: SparkSession, key: str, value: str) -> Iterator[None]:
    """A setting has our value while our job runs.

    The setting belongs to the session, so jobs in several threads share it, and the last one
    restores the old value. A bound that the user has set stays.
    """
    borrowed = id(spark), key
    with _lock:
        if not _users[borrowed]:
            _found[borrowed] = _lift(spark, key, value)
        _users[borrowed] += 1
    try:
        yield
    finally:
        with _lock:
            _users[borrowed] -= 1
            if not _users[borrowed]:
                del _users[borrowed]
                before = _found.pop(borrowed)
                if before is not None:
                    spark.conf.set(key, before)


def _lift(spark: SparkSession, key: str, value: str) -> str | None:
    """Set the value; returns the value to restore afterwards, or None if nothing was changed."""
    before = spark.conf.get(key, None)
    if before is not None and before not in _DEFAULTS[key]:
        return None
    spark.conf.set(key, value)
    return before or _DEFAULTS[key][0]


def check_workers(spark: SparkSession) -> None:
    """Make sure that the Python of Spark's workers can run our tasks; checked once per session.

    Raises:
        InvalidState: it lacks emberlake or pyarrow, or has another version of emberlake.
    """
    if spark in _checked:
        return
    rows = spark.range(1, numPartitions=1)
    try:
        report = rows.mapInArrow(_probe(), "report string").collect()[0].report
    except Exception as failure:
        if not _MISSING.search(str(failure)):
            raise
        raise _unfit(str(failure).strip().splitlines()[-1]) from failure
    problem = _problem(report)
    if problem:
        raise _unfit(problem)
    _checked.add(spark)


def _problem(report: str) -> str | None:
    python, found, error = report.split("\n", 2)
    if error:
        return f"{error} (in {python})"
    if found != __version__:
        return f"they have emberlake {found}, this program has {__version__} (in {python})"
    return None


def _unfit(problem: str) -> InvalidState:
    return InvalidState(
        f"Spark's Python workers cannot run emberlake: {problem}. Let them use an environment that "
        "has it: set PYSPARK_PYTHON (or spark.pyspark.python) before the session starts, for "
        f"example to {sys.executable}; on a cluster, ship one with spark.archives"
    )


def _probe() -> Any:
    """A function that Spark pickles completely, because a worker may lack its module."""

    def probe(batches: Iterator[Any]) -> Iterator[Any]:
        import importlib  # noqa: PLC0415 - imported in the worker
        import sys  # noqa: PLC0415

        import pyarrow as pa  # noqa: PLC0415

        for _ in batches:
            pass
        version, error = "", ""
        try:
            version = importlib.import_module("emberlake").__version__
        except ImportError as problem:
            error = str(problem)
        yield pa.RecordBatch.from_pydict({"report": [f"{sys.executable}\n{version}\n{error}"]})

    return probe

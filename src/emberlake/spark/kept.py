"""Rows that are computed once, and kept on the executors for as long as an operation needs them."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame


@contextmanager
def kept(rows: DataFrame) -> Iterator[DataFrame]:
    """The rows, computed now and never again; inside the context only."""
    checkpoint = rows.localCheckpoint()
    try:
        yield checkpoint
    finally:
        release(checkpoint)


def release(checkpoint: DataFrame) -> None:
    """Let executors forget the rows of a local checkpoint.

    Spark does it by itself once the JVM has collected the DataFrame, which may be long after the
    operation: rows of many operations pile up until the heap is full.
    """
    if type(checkpoint.sparkSession).__module__.startswith("pyspark.sql.connect"):
        return  # the server forgets them when the client drops the DataFrame
    with suppress(PySparkException, Py4JError, OSError):  # the rows are gone with their session
        plan = checkpoint._jdf.queryExecution().analyzed()  # noqa: SLF001  PySpark has no call for it
        plan.rdd().unpersist(False)

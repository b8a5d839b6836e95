"""Several DataFrames as one."""

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import DataFrame


def union_of(parts: Sequence[DataFrame]) -> DataFrame:
    """The rows of all parts, which all have the same columns.

    Spark cannot plan a SELECT from a union if one of its columns is a correlated subquery: it
    pushes the column into the union before it makes a join of it (``key not found``). The condition
    below is in the way until then. Afterwards Spark removes it, so it costs nothing.
    """
    return parts[0] if len(parts) == 1 else reduce(DataFrame.union, parts).filter("true")

"""Read tables as Spark DataFrames, and write DataFrames to tables; no JAR is needed.

Names are loaded on first use: the table facade imports parts of this package, and the jobs that
this module exports import that facade.
"""

import importlib
from typing import TYPE_CHECKING, Any, Final

from emberlake.base.extras import load_extra

if TYPE_CHECKING:
    from emberlake.jobs import compact, delete, merge, read_paimon, update, write_paimon
    from emberlake.spark.starting import session
    from emberlake.spark.write import SparkWriteResult
    from emberlake.sql.on_spark.lake import Lake, attach, sql

_HOMES: Final = {
    "Lake": "emberlake.sql.on_spark.lake",
    "SparkWriteResult": "emberlake.spark.write",
    "attach": "emberlake.sql.on_spark.lake",
    "compact": "emberlake.jobs",
    "delete": "emberlake.jobs",
    "merge": "emberlake.jobs",
    "read_paimon": "emberlake.jobs",
    "session": "emberlake.spark.starting",
    "sql": "emberlake.sql.on_spark.lake",
    "update": "emberlake.jobs",
    "write_paimon": "emberlake.jobs",
}

__all__ = [
    "Lake",
    "SparkWriteResult",
    "attach",
    "compact",
    "delete",
    "merge",
    "read_paimon",
    "session",
    "sql",
    "update",
    "write_paimon",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    load_extra("pyspark", extra="spark")  # its error says what to install
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

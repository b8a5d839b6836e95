"""Everything that Spark shows of its queries, as texts to look for secrets in."""

import io
from collections.abc import Iterator
from contextlib import redirect_stdout
from typing import Any

from pyspark.sql import DataFrame, SparkSession

EXPLAIN_MODES = ("simple", "extended", "codegen", "cost", "formatted")


def explained(rows: DataFrame) -> str:
    """The plan of a DataFrame, in every form."""
    said = io.StringIO()
    with redirect_stdout(said):
        for mode in EXPLAIN_MODES:
            rows.explain(mode=mode)
    return said.getvalue()


def executions(spark: SparkSession) -> Iterator[str]:
    """What the SQL page of the UI has of each query; it is kept whether or not there is a UI."""
    store: Any = spark._jsparkSession.sharedState().statusStore()
    found = store.executionsList()
    for place in range(found.size()):
        shown = found.apply(place)
        yield f"{shown.description()} {shown.details()} {shown.physicalPlanDescription()}"

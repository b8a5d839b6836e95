"""The rows of a table as the queries of DELETE, UPDATE and MERGE see them."""

from pyspark.sql import DataFrame

from emberlake.spark.located import LocatedRows
from emberlake.sql.on_spark.scans import padded


def shown_rows(located: LocatedRows) -> DataFrame:
    """The rows as queries see them."""
    return padded(located.rows, located.store.schema.fields)

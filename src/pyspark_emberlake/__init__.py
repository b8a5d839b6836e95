"""Where Spark finds the data source ``emberlake``: it looks into modules named ``pyspark_*``."""

from emberlake.datasource.source import EmberlakeDataSource

DefaultSource = EmberlakeDataSource

__all__ = ["DefaultSource"]

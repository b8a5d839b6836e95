"""Spark's data source: batch and stream, read and write, by ``format("emberlake")``."""

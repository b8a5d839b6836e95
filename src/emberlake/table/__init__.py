"""The facade that users hold."""

from emberlake.table.table import Table

__all__ = ["Table"]

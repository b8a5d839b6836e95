"""System tables, which show a table's metadata as tables (``db.t$snapshots``)."""

from emberlake.inspect.system_table import SystemTable
from emberlake.inspect.tables import SYSTEM_TABLES, open_system_table
from emberlake.inspect.totals import PartitionTotals, load_partition_totals

__all__ = [
    "SYSTEM_TABLES",
    "PartitionTotals",
    "SystemTable",
    "load_partition_totals",
    "open_system_table",
]

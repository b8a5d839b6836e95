"""Create a table, write to it twice, read it back with a filter, and look at an older snapshot.

Run it with `python examples/quickstart.py [warehouse folder]`.
"""

import sys
import tempfile
from typing import Any

import pyarrow as pa

from emberlake import CatalogFactory, Table

ORDERS = pa.schema(
    [
        ("order_id", pa.int64()),
        ("city", pa.string()),
        ("price", pa.float64()),
        ("dt", pa.string()),
    ]
)


def main(warehouse: str) -> None:
    """Run the whole example in `warehouse`."""
    catalog = CatalogFactory.create({"warehouse": warehouse})
    catalog.create_database("shop", ignore_if_exists=True)
    table = catalog.create_table("shop.orders", ORDERS, partition_keys=["dt"])

    append(table, order_id=[1, 2, 3], city=["paris", "rome", "paris"], price=[9.5, 20.0, 3.25])
    append(table, order_id=[4], city=["paris"], price=[12.0])

    print("orders from paris above 5:")
    print(table.to_arrow(["order_id", "price"], filter="city = 'paris' AND price > 5").to_pylist())
    print("rows in snapshot 1:", table.to_arrow(snapshot=1).num_rows)


def append(table: Table, **columns: list[Any]) -> None:
    """Append rows of one day in one atomic commit."""
    count = len(columns["order_id"])
    rows = pa.table({**columns, "dt": ["2026-06-26"] * count}, schema=ORDERS)
    result = table.append(rows)
    print(f"snapshot {result.snapshot_id}: {result}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        with tempfile.TemporaryDirectory() as folder:
            main(folder)

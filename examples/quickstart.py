"""Create a table, write to it twice, read it back with a filter, and look at an older snapshot.

Run it with `python examples/quickstart.py [warehouse folder]`.
"""

import sys
import tempfile
from typing import Any

import pyarrow as pa

from emberlake import CatalogFactory, Schema

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
    schema = Schema.from_pyarrow_schema(ORDERS, partition_keys=["dt"])
    catalog.create_table("shop.orders", schema)
    table = catalog.get_table("shop.orders")

    append(table, order_id=[1, 2, 3], city=["paris", "rome", "paris"], price=[9.5, 20.0, 3.25])
    append(table, order_id=[4], city=["paris"], price=[12.0])

    builder = table.new_read_builder()
    builder = builder.with_filter("city = 'paris' AND price > 5").with_projection(
        ["order_id", "price"]
    )
    splits = builder.new_scan().plan().splits()
    print("orders from paris above 5:")
    print(builder.new_read().to_arrow(splits).to_pylist())

    first = table.copy({"scan.snapshot-id": "1"}).new_read_builder()
    splits = first.new_scan().plan().splits()
    print("rows in snapshot 1:", first.new_read().to_arrow(splits).num_rows)


def append(table: Any, **columns: list[Any]) -> None:
    """Append rows of one day in one atomic commit."""
    count = len(columns["order_id"])
    rows = pa.table({**columns, "dt": ["2026-06-26"] * count}, schema=ORDERS)
    builder = table.new_batch_write_builder()
    with builder.new_write() as write, builder.new_commit() as commit:
        write.write_arrow(rows)
        result = commit.commit(write.prepare_commit())
    print(f"snapshot {result.snapshot_id}: {result}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        with tempfile.TemporaryDirectory() as folder:
            main(folder)

"""The tables that the tests of the command line work on."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

from emberlake import Table

ORDERS = pa.schema(
    [
        ("order_id", pa.int64()),
        ("city", pa.string()),
        ("price", pa.decimal128(10, 2)),
        ("dt", pa.string()),
    ]
)
CUSTOMERS = pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.string())])


@dataclass(frozen=True)
class Outcome:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Cli = Callable[..., Outcome]


def orders_of(day: int, count: int) -> pa.Table:
    """Orders of one day: ids from day * 100 on, paris and rome in turn."""
    return pa.table(
        {
            "order_id": list(range(day * 100, day * 100 + count)),
            "city": ["paris" if i % 2 == 0 else "rome" for i in range(count)],
            "price": [Decimal(i) + Decimal("0.50") for i in range(count)],
            "dt": [f"2026-06-0{day}"] * count,
        },
        schema=ORDERS,
    )


def append(table: Any, rows: pa.Table) -> None:
    """Write rows in one commit."""
    assert isinstance(table, Table)
    builder = table.new_batch_write_builder()
    with builder.new_write() as write, builder.new_commit() as commit:
        write.write_arrow(rows)
        commit.commit(write.prepare_commit())


def rows_of(table: Any) -> list[dict[str, Any]]:
    """All rows of a table."""
    builder = table.new_read_builder()
    rows: list[dict[str, Any]] = (
        builder.new_read().to_arrow(builder.new_scan().plan().splits()).to_pylist()
    )
    return rows

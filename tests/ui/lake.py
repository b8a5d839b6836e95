"""The tables that the tests of the pages look at."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from emberlake import Catalog, CatalogFactory, Schema
from emberlake.base.env import Env
from emberlake.catalog import FileSystemCatalog
from emberlake.io import LocalStorage
from emberlake.wire import CommitMessage

HOUR_MS = 3_600_000
ORDERS = pa.schema(
    [
        pa.field("order_id", pa.int64(), nullable=False),
        ("customer", pa.string()),
        ("city", pa.string()),
        ("price", pa.decimal128(10, 2)),
    ]
)
EVENTS = pa.schema(
    [
        ("at", pa.timestamp("ms")),
        ("user_id", pa.int64()),
        ("page", pa.string()),
        ("ms", pa.int32()),
        ("dt", pa.string()),
        ("hour", pa.int32()),
    ]
)
CITIES = ("paris", "rome", "oslo", "lima", "kyoto")
SECRET = "embersecret-in-an-option"


class Clock:
    """A clock that is moved by hand, so that histories look like histories."""

    def __init__(self, start: datetime) -> None:
        self.ms = int(start.timestamp() * 1000)

    def advance(self, hours: float) -> None:
        self.ms += int(hours * HOUR_MS)

    def env(self) -> Env:
        return Env(now_ms=lambda: self.ms)


def fill(folder: Path) -> Catalog:
    """A warehouse with an LSM tree, partitions by day and hour, and a few odd tables."""
    clock = Clock(datetime(2026, 6, 1, 8, tzinfo=UTC))
    catalog = FileSystemCatalog(LocalStorage(), str(folder), env=clock.env())
    for name in ("shop", "logs"):
        catalog.create_database(name)
    make_orders(catalog, clock)
    make_events(catalog, clock)
    catalog.create_table("shop.empty", Schema.from_pyarrow_schema(ORDERS))
    return CatalogFactory.create({"warehouse": str(folder)})


def make_orders(catalog: Catalog, clock: Clock) -> None:
    """Upserts, deletes, compactions, tags and a branch."""
    options = {"bucket": "2", "num-sorted-run.compaction-trigger": "3", "owner.password": SECRET}
    schema = Schema.from_pyarrow_schema(
        ORDERS, primary_keys=["order_id"], options=options, comment="What customers have bought"
    )
    orders = catalog.create_table("shop.orders", schema)
    for number in range(9):
        clock.advance(3 + 5 * (number % 3))
        first = number * 900
        orders.upsert(orders_of(np.arange(first, first + 2400, 1 + number % 3)))
        if number in (3, 6):
            orders.compact(full=number == 6)
        if number in (2, 6):
            orders.create_tag(f"week-{number}")
        if number == 6:
            orders.create_branch("prices", f"week-{number}")
            branch = catalog.get_table("shop.orders$branch_prices")
        if number in (7, 8):
            clock.advance(1)
            branch.upsert(orders_of(np.arange(0, 600)))
    clock.advance(2)
    orders.delete_keys(pa.table({"order_id": np.arange(5000, 5400)}))
    clock.advance(2)
    orders.upsert(orders_of(np.arange(8000, 9500)))


def orders_of(ids: "np.ndarray[Any, Any]") -> pa.Table:
    return pa.table(
        {
            "order_id": ids,
            "customer": [f"customer {i % 97}" for i in ids],
            "city": [CITIES[i % len(CITIES)] for i in ids],
            "price": pa.array((ids % 500).astype(np.int32)).cast(pa.decimal128(12, 2)),
        }
    ).cast(ORDERS)


def make_events(catalog: Catalog, clock: Clock) -> None:
    """Days of hours, busy ones and quiet ones."""
    schema = Schema.from_pyarrow_schema(EVENTS, partition_keys=["dt", "hour"])
    events = catalog.create_table("logs.events", schema)
    chance = np.random.default_rng(7)
    for day in range(1, 11):
        clock.advance(24)
        for part in range(1 + day % 2):
            events.append(events_of(chance, day, part))


def events_of(chance: np.random.Generator, day: int, part: int) -> pa.Table:
    busy = (40 + 25 * day + 400 * np.sin(np.arange(0, 24, 2) / 24 * np.pi) ** 2).astype(int)
    hours = np.repeat(np.arange(0, 24, 2), busy)
    hours = hours[(hours > 6) | (day % 5 != 0)]
    if part:
        hours = hours[hours % 4 == 0]
    count = len(hours)
    start = int(datetime(2026, 6, day, tzinfo=UTC).timestamp() * 1000)
    times = start + hours * HOUR_MS + chance.integers(0, HOUR_MS, count)
    return pa.table(
        {
            "at": pa.array(times).cast(pa.timestamp("ms")),
            "user_id": chance.integers(1, 5000, count),
            "page": chance.choice(["/", "/cart", "/item", "/search"], count),
            "ms": chance.integers(3, 900, count),
            "dt": [f"2026-06-{day:02d}"] * count,
            "hour": hours,
        }
    ).cast(EVENTS)


def make_many_files(catalog: Catalog, files: int) -> None:
    """A table of many files, of which only the metadata is there, over 100 days."""
    days, each = 100, files // 100
    columns = pa.schema([("user_id", pa.int64()), ("dt", pa.string())])
    schema = Schema.from_pyarrow_schema(
        columns, partition_keys=["dt"], options={"commit.check-files": "false"}
    )
    catalog.create_database("huge", ignore_if_exists=True)
    table = catalog.create_table("huge.t", schema)
    names = [str(date(2026, 1, 1) + timedelta(days=day)) for day in range(days)]
    builder = table.new_batch_write_builder()
    with builder.new_write() as write, builder.new_commit() as commit:
        write.write_arrow(pa.table({"user_id": range(days), "dt": names}, schema=columns))
        commit.commit([_multiplied(message, each) for message in write.prepare_commit()])


def _multiplied(message: CommitMessage, times: int) -> CommitMessage:
    (file,) = message.new_files
    copies = (replace(file, file_name=f"{i}-{file.file_name}") for i in range(times - 1))
    return replace(message, new_files=(file, *copies))

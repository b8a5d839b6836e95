"""How many requests operations make on an object store, and how many of them wait for others.

A proxy counts. A trip is a request that begins after the answer to another: the requests of one
trip are under way together. docs/object-stores.md says how many there are.
"""

import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from emberlake import Catalog, CatalogFactory, Schema, Table
from emberlake.base.requests import ask_all
from servers import Proxy, Server, proxy_of

PAGE = Path(__file__).parents[2] / "docs" / "object-stores.md"
SMALL = pa.table({"id": np.arange(10), "v": np.arange(10.0)})
# Far more than it takes to send what belongs to one trip, also on a machine that is busy.
MILLISECONDS = 150
# Nobody waits for the hint, nor for the deletion of what a lost race has made useless.
HINT = r"^PUT .*/snapshot/LATEST$"
HINT_OR_DELETION = rf"{HINT}|^POST .*\?delete$"


def budgets() -> dict[str, tuple[int, int]]:
    """Requests and trips by operation, as the page has them."""
    _, _, section = PAGE.read_text().partition("## Requests")
    rows = [line.split("|")[1:-1] for line in section.splitlines() if line[:2] == "| "]
    return {name.strip(): (int(requests), int(trips)) for name, requests, trips in rows[1:]}


BUDGETS = budgets()
# How the requests of these fall into trips depends on the machine.
VARYING = {"read 100 such files", "expire 100 snapshots", "remove 1,100 orphan files"}
# More requests than are under way at once: if a thread starts late on a busy machine, the last of
# them make one trip more.
MAY_BE_LATE = {"plan a read of 100 manifests"}


@dataclass
class Used:
    requests: int = 0
    trips: int = 0
    most: int = 0
    log: list[str] = field(default_factory=list)

    def check(self, operation: str) -> None:
        """No more requests and trips than the page says, and no fewer where that is certain."""
        requests, trips = BUDGETS[operation]
        shown = "\n".join(self.log)
        if operation in VARYING:
            assert self.requests <= requests, shown
            assert self.trips <= trips, shown
        else:
            assert self.requests == requests, shown
            assert trips <= self.trips <= trips + (operation in MAY_BE_LATE), shown


@dataclass(frozen=True)
class Store:
    """A server, and the same server behind a proxy that counts and delays."""

    server: Server
    proxy: Proxy
    warehouse: str

    def near(self) -> Catalog:
        return self._catalog(self.server)

    def far(self) -> Catalog:
        """A catalog whose requests are counted, and that has nothing in its caches."""
        return self._catalog(replace(self.server, endpoint=self.proxy.endpoint))

    def _catalog(self, server: Server) -> Catalog:
        return CatalogFactory.create({"warehouse": self.warehouse, **server.options})

    @contextmanager
    def counting(self, aside: str = HINT) -> Iterator[Used]:
        used = Used()
        self.proxy.put_aside(aside)
        self.proxy.counted()
        yield used
        for name, value in self.proxy.counted().items():
            setattr(used, name, value)


@pytest.fixture(scope="module")
def proxy(s3: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    with proxy_of(s3, tmp_path_factory.mktemp("proxy")) as proxy:
        yield proxy


@pytest.fixture
def store(s3: Server, proxy: Proxy) -> Store:
    proxy.delay(MILLISECONDS)
    store = Store(s3, proxy, f"{s3.root}/{uuid.uuid4()}/wh")
    store.near().create_database("db")
    # A process asks once whether a store honours conditions.
    store.far().storage.put_if_absent(f"{store.warehouse}/first", b"")
    return store


def made(store: Store, data: pa.Table = SMALL, *, times: int = 1, **options: str) -> Table:
    catalog = store.near()
    schema = Schema.from_pyarrow_schema(
        data.schema, options={"manifest.merge-min-count": "1000", **options}
    )
    catalog.create_table("db.t", schema)
    table = catalog.get_table("db.t")
    for _ in range(times):
        table.append(data)
    return table


def large_rows() -> pa.Table:
    random = np.random.default_rng(7)
    return pa.table({f"c{n}": random.integers(0, 1 << 62, 200_000) for n in range(8)})


def write(table: Table, data: pa.Table = SMALL) -> Callable[[], Any]:
    """Write rows, as far as they can be committed."""
    builder = table.new_batch_write_builder()
    writer = builder.new_write()
    writer.write_arrow(data)
    messages = writer.prepare_commit()
    return lambda: builder.new_commit().commit(messages)


def test_open_plan_and_read_of_a_hundred_manifests(store: Store) -> None:
    made(store, times=100)
    catalog = store.far()

    with store.counting() as opened:
        table = catalog.get_table("db.t")
    with store.counting() as planned:
        plan = table.new_read_builder().new_scan().plan()

    assert sum(len(split.files) for split in plan.splits()) == 100
    opened.check("open a table")
    planned.check("plan a read of 100 manifests")
    assert 48 <= planned.most <= 64
    with store.counting() as read:
        rows = table.new_read_builder().new_read().to_arrow(plan.splits())
    assert len(rows) == 1000
    read.check("read 100 such files")


def test_a_plan_of_what_is_known_asks_whether_it_is_the_latest(store: Store) -> None:
    near = made(store, times=3)
    table = store.far().get_table("db.t")
    table.new_read_builder().new_scan().plan()

    with store.counting() as again:
        table.new_read_builder().new_scan().plan()
    near.append(SMALL)
    with store.counting() as changed:
        plan = table.new_read_builder().new_scan().plan()

    again.check("plan again, with no commit in between")
    changed.check("plan again after somebody else's commit")
    assert sum(len(split.files) for split in plan.splits()) == 4


def test_a_commit_of_one_file(store: Store) -> None:
    made(store)
    builder = store.far().get_table("db.t").new_batch_write_builder()
    writer = builder.new_write()

    with store.counting() as used:
        writer.write_arrow(SMALL)
        builder.new_commit().commit(writer.prepare_commit())

    # The data file; all there is to know; manifest and lists; the snapshot.
    used.check("write and commit one file")
    assert len(store.near().get_table("db.t").to_arrow()) == 20


def test_the_next_commit_knows_what_the_last_one_wrote(store: Store) -> None:
    made(store)
    table = store.far().get_table("db.t")
    table.append(SMALL)

    with store.counting() as used:
        table.append(SMALL)

    # One trip more: a new writer looks for the latest snapshot.
    used.check("write and commit one more, with a new writer")
    assert not [line for line in used.log if "manifest-list" in line and line.startswith("GET")]


def test_a_commit_after_a_lost_race(store: Store) -> None:
    near = made(store)
    commit = write(store.far().get_table("db.t"))
    store.proxy.fail(method="PUT", match="/snapshot/snapshot-2", how="hold", when="before")

    with store.counting(HINT_OR_DELETION) as used, ThreadPoolExecutor(1) as pool:
        lost = pool.submit(commit)
        store.proxy.wait_until_held()
        near.append(SMALL)
        store.proxy.release()
        result = lost.result()

    assert result.retries == 1
    assert result.snapshot_id == 3
    # Three trips; then the winner's snapshot, its lists beside a listing, its manifest; and the two
    # that write once more.
    used.check("commit after a lost race, without the data file")
    assert len(store.near().get_table("db.t").to_arrow()) == 30


def test_a_late_hint_does_not_bring_back_what_was_dropped(store: Store) -> None:
    made(store)
    catalog = store.far()
    table = catalog.get_table("db.t")
    store.proxy.fail(method="PUT", match="/LATEST", how="wait", when="before", seconds=1)

    table.append(SMALL)
    store.proxy.wait_until_held()
    catalog.drop_table("db.t")

    assert not store.near().storage.exists(table.table_path)
    catalog.drop_database("db")


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_a_small_file_is_one_request(store: Store, file_format: str) -> None:
    made(store, **{"file.format": file_format})
    reading = store.far().get_table("db.t").new_read_builder()
    splits = reading.new_scan().plan().splits()

    with store.counting() as used:
        rows = reading.new_read().to_arrow(splits)

    assert rows == SMALL
    used.check("read a file up to 4 MiB")


@pytest.mark.parametrize("filtered", [False, True])
def test_two_columns_of_a_large_file(store: Store, filtered: bool) -> None:
    data = large_rows()
    made(store, data, **{"file.block-size": "2 mb"})
    reading = store.far().get_table("db.t").new_read_builder().with_projection(["c0", "c6"])
    if filtered:
        reading = reading.with_filter(reading.new_predicate_builder().greater_than("c0", 1 << 61))
    splits = reading.new_scan().plan().splits()
    (file,) = splits[0].files
    assert file.file_size > 8 << 20

    with store.counting() as first:
        rows = reading.new_read().to_arrow(splits)
    with store.counting() as second:
        reading.new_read().to_arrow(splits)

    expected = data.select(["c0", "c6"])
    if filtered:
        expected = expected.filter(pa.compute.greater(expected["c0"], 1 << 61))
    assert rows == expected
    first.check("read 2 of 8 columns of a larger Parquet file, 7 row groups")
    second.check("read them again")


def test_expiring_a_hundred_snapshots(store: Store) -> None:
    made(store, times=101, **{"snapshot.expire.limit": "200"})
    table = store.far().get_table("db.t")

    with store.counting() as used:
        result = table.expire_snapshots(retain_max=1, retain_min=1)

    assert len(result.snapshots) == 100
    used.check("expire 100 snapshots")
    assert [s.id for s in store.near().get_table("db.t").snapshot_manager().list_snapshots()] == [
        101
    ]


def test_searching_orphans_among_1100_files(store: Store) -> None:
    root = made(store).table_path
    storage = store.near().storage
    ask_all(
        [
            lambda n=n: storage.put(f"{root}/bucket-0/data-{uuid.UUID(int=n)}-0.parquet", b"")
            for n in range(1_100)
        ],
        64,
    )
    table = store.far().get_table("db.t")

    with store.counting() as used:
        found = table.remove_orphan_files(older_than=datetime.now(UTC))

    assert len(found.paths) == 1_100
    used.check("remove 1,100 orphan files")

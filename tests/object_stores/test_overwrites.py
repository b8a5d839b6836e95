"""Another engine writes over a snapshot of ours: the commit says so, and check finds it."""

import re
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pyarrow as pa
import pytest

from emberlake import CatalogFactory, EmberlakeWarning, Schema, SnapshotOverwritten, Table
from emberlake.maintenance.check import ProblemKind
from emberlake.table.table import table_of
from interop.judges import JavaJudge, Peer, Warehouse, java_on_stores
from servers import REGION, Proxy, Server

pytestmark = pytest.mark.interop

Engine = Peer | JavaJudge
COLUMNS = pa.schema([("id", pa.int64())])


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids)}, schema=COLUMNS)


def ids_of(table: Table) -> list[int]:
    return sorted(table.to_arrow()["id"].to_pylist())


@pytest.fixture(params=["pypaimon", "rust", pytest.param("java", marks=pytest.mark.slow)])
def peer(request: pytest.FixtureRequest) -> Engine:
    if request.param == "java":
        java_on_stores()
    found: Engine = request.getfixturevalue(request.param)
    return found


class HeldPeer:
    """A commit of a peer that stands still at its write of the snapshot."""

    def __init__(self, peer: Engine, proxy: Proxy, warehouse: Warehouse) -> None:
        self._proxy = proxy
        self._failure: list[BaseException] = []
        proxy.fail(method="PUT", match=r"/snapshot/snapshot-\d+$", how="hold", when="before")
        self._thread = threading.Thread(target=self._write, args=(peer, warehouse))
        self._thread.start()
        deadline = time.monotonic() + 60
        while not proxy.held():
            assert self._thread.is_alive(), self._failure
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def _write(self, peer: Engine, warehouse: Warehouse) -> None:
        try:
            peer.write(warehouse, "db.t", rows(9))
        except BaseException as error:  # noqa: BLE001 - it is looked at by who waits
            self._failure.append(error)

    def go_on(self) -> None:
        self._proxy.release()
        self._thread.join(60)
        assert not self._failure


@contextmanager
def held(peer: Engine, proxy: Proxy, warehouse: Warehouse) -> Iterator[HeldPeer]:
    """The peer, which is not left waiting whatever happens."""
    found = HeldPeer(peer, proxy, warehouse)
    try:
        yield found
    finally:
        found.go_on()


def shared_table(s3: Server, proxy: Proxy, peer: Engine) -> tuple[Table, Warehouse]:
    """A table with a snapshot of ours and one of the peer's, and the way that the peer takes."""
    path = f"{s3.root}/{uuid.uuid4()}/wh"
    catalog = CatalogFactory.create({"warehouse": path, **s3.options})
    catalog.create_database("db")
    catalog.create_table("db.t", Schema.from_pyarrow_schema(COLUMNS))
    table = catalog.get_table("db.t")
    table.append(rows(1))
    options = {**s3.options, "s3.endpoint.region": REGION}
    peer.write(Warehouse(path, options), "db.t", rows(2))
    return table, Warehouse(path, {**options, "s3.endpoint": proxy.endpoint})


def during_the_wait(table: Table, act: Callable[[], None]) -> Table:
    """The same table; something happens while its commits wait."""
    env = replace(table.store.env, sleep_ms=lambda _: act())
    return table_of(replace(table.store, env=env))


def test_a_snapshot_that_a_peer_writes_over_is_reported(
    s3: Server, proxy: Proxy, peer: Engine
) -> None:
    table, through_proxy = shared_table(s3, proxy, peer)
    with held(peer, proxy, through_proxy) as other:
        ours = during_the_wait(table, other.go_on)

        with pytest.raises(SnapshotOverwritten) as caught:
            ours.append(rows(3))

    assert ids_of(table) == [1, 2, 9]
    (path,) = re.findall(r"files stay: (s3://\S+?)\. Help", str(caught.value))
    assert table.store.storage.exists(path)
    assert table.append(rows(3)).snapshot_id == 4
    assert ids_of(table) == [1, 2, 3, 9]


def test_a_peer_that_is_later_than_the_wait_is_found_by_a_check(
    s3: Server, proxy: Proxy, peer: Engine
) -> None:
    table, through_proxy = shared_table(s3, proxy, peer)
    table = table.copy({"commit.verify-window": "0 s"})
    with held(peer, proxy, through_proxy):
        table.append(rows(3))
        table.append(rows(4))

    (problem,) = table.check().problems

    assert problem.kind is ProblemKind.OVERWRITTEN
    assert problem.path.endswith("/snapshot/snapshot-3")
    assert ids_of(table) == [1, 2, 3, 4]


def test_rows_that_a_snapshot_was_built_on_are_there_all_the_same(
    s3: Server, proxy: Proxy, rust: Peer
) -> None:
    table, through_proxy = shared_table(s3, proxy, rust)
    with held(rust, proxy, through_proxy) as other:

        def meanwhile() -> None:
            table.copy({"commit.verify-window": "0 s"}).append(rows(4))
            other.go_on()

        with pytest.warns(EmberlakeWarning, match="in the table all the same"):
            during_the_wait(table, meanwhile).append(rows(3))

    assert ids_of(table) == [1, 2, 3, 4]

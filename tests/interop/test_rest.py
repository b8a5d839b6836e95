"""Our client of REST catalogs against the mock servers of others, and next to their clients."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from builders import append, overwrite
from emberlake import CatalogFactory
from interop.judges import (
    JavaJudge,
    Peer,
    Warehouse,
    catalog_options,
    java_rest_mock,
    pypaimon_rest_mock,
)
from interop.rest_usage import COLUMNS, ids_of, rows, use
from rest_faults import Change, Proxied, break_reads, break_writes, faults_at
from server.processes import served as emberlake_served
from servers import Server, proxy_of

pytestmark = pytest.mark.interop
TOKEN = "token-of-the-judge"


SAMPLE = 23  # one of so many faults, at every request another one


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warehouse]:
    with java_rest_mock(tmp_path_factory.mktemp("served"), TOKEN) as warehouse:
        yield warehouse


@pytest.fixture(scope="module")
def served_by_pypaimon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warehouse]:
    with pypaimon_rest_mock(tmp_path_factory.mktemp("pypaimon"), TOKEN) as warehouse:
        yield warehouse


@pytest.fixture(scope="module")
def served_by_us(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warehouse]:
    with emberlake_served(tmp_path_factory.mktemp("ours")) as warehouse:
        yield warehouse


@pytest.fixture(params=["served", "served_by_pypaimon", "served_by_us"])
def breakable(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Proxied]:
    """A table on each of the servers, behind a proxy that breaks requests."""
    with behind_a_proxy(request.getfixturevalue(request.param), tmp_path) as made:
        yield made


@contextmanager
def behind_a_proxy(warehouse: Warehouse, folder: Path) -> Iterator[Proxied]:
    with proxy_of(Server(warehouse.options["uri"].rstrip("/")), folder) as proxy:
        table = Proxied(warehouse, proxy, f"broken.{folder.name.replace('-', '_')}")
        table.create()
        yield table


def test_everything_works_on_a_server_of_java(served: Warehouse) -> None:
    use(catalog_options(served))


def test_everything_works_on_a_server_of_pypaimon(served_by_pypaimon: Warehouse) -> None:
    # It knows no branches, takes every commit without a look, and forgets names that were changed.
    use(
        catalog_options(served_by_pypaimon),
        lacking=("authentication", "rename", "maintenance", "branches", "many"),
    )


def test_a_sample_of_broken_requests_loses_and_doubles_no_commit(breakable: Proxied) -> None:
    written, read = break_writes(breakable, step=SAMPLE), break_reads(breakable, step=SAMPLE)

    assert written.failures > 0
    assert read.failures > 0


@pytest.mark.slow
@pytest.mark.parametrize("change", [append, overwrite])
def test_whichever_request_of_a_write_is_broken_no_commit_is_lost_or_doubled(
    breakable: Proxied, change: Change
) -> None:
    tried = break_writes(breakable, change)

    print(f"{change.__name__}: {tried}")  # noqa: T201 - for the figures of docs/rest.md: pytest -rP
    assert tried.attempts >= 4 * len([*faults_at(0)])  # config, table, latest, commit
    assert tried.failures > 0


@pytest.mark.slow
def test_a_broken_request_of_a_read_is_reported_or_the_rows_are_right(
    breakable: Proxied,
) -> None:
    tried = break_reads(breakable)

    print(f"read: {tried}")  # noqa: T201
    assert tried.failures > 0


def test_a_commit_whose_answer_java_loses_is_made_once(tmp_path: Path) -> None:
    with java_rest_mock(tmp_path, TOKEN, loses_one=True) as warehouse:
        catalog = CatalogFactory.create(catalog_options(warehouse))
        catalog.create_database("db")
        table = catalog.create_table("db.t", COLUMNS)

        table.append(rows(1))
        table.append(rows(2))

        assert ids_of(table) == [1, 2]
        assert table.latest_snapshot().id == 2


def test_clients_in_turn_read_what_the_others_commit(
    served: Warehouse, java: JavaJudge, pypaimon: Peer
) -> None:
    catalog = CatalogFactory.create(catalog_options(served))
    catalog.create_database("turns")
    columns = pa.schema([("id", pa.int64()), ("v", pa.string())])
    table = catalog.create_table("turns.t", columns, options={"bucket": "-1"})

    table.append(pa.table({"id": [1], "v": ["ours"]}, columns))

    assert len(java.rows(served, "turns.t")) == 1
    pypaimon.write(served, "turns.t", pa.table({"id": [2], "v": ["theirs"]}, columns))
    table.append(pa.table({"id": [3], "v": ["ours"]}, columns))
    assert ids_of(table) == [1, 2, 3]
    assert pypaimon.read(served, "turns.t").num_rows == 3
    assert len(java.rows(served, "turns.t")) == 3

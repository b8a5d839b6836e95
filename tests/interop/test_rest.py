"""Our client of REST catalogs against Java Paimon's own mock server, and next to its clients."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from emberlake import CatalogFactory
from interop.judges import JavaJudge, Peer, Warehouse, catalog_options, java_rest_mock
from interop.rest_usage import COLUMNS, ids_of, rows, use

pytestmark = pytest.mark.interop
TOKEN = "token-of-the-judge"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warehouse]:
    with java_rest_mock(tmp_path_factory.mktemp("served"), TOKEN) as warehouse:
        yield warehouse


def test_everything_works_on_a_server_of_java(served: Warehouse) -> None:
    use(catalog_options(served))


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

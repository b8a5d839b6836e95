"""Clients of the server: ours, Java Paimon, pypaimon and pypaimon-rust, side by side."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from emberlake import CatalogFactory
from interop.judges import JavaJudge, Peer, Warehouse, catalog_options, old_java_judge
from interop.rest_usage import ids_of, use
from server.processes import served

COLUMNS = pa.schema([("id", pa.int64()), ("v", pa.string())])


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warehouse]:
    with served(tmp_path_factory.mktemp("served")) as warehouse:
        yield warehouse


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": ids, "v": ["x"] * len(ids)}, COLUMNS)


@pytest.mark.thorough
def test_our_client_can_do_everything(lake: Warehouse) -> None:
    use(catalog_options(lake))


@pytest.mark.thorough
def test_a_table_is_replaced(lake: Warehouse) -> None:
    catalog = CatalogFactory.create(catalog_options(lake))
    catalog.create_database("replaced", ignore_if_exists=True)
    old = catalog.create_table("replaced.t", COLUMNS)
    old.append(rows(1, 2))

    catalog.sql("CREATE OR REPLACE TABLE replaced.t AS SELECT 7 AS seven")

    assert catalog.get_table("replaced.t").to_arrow().to_pydict() == {"seven": [7]}
    assert old.copy({"scan.snapshot-id": "1"}).to_arrow().num_rows == 2


@pytest.mark.interop
@pytest.mark.parametrize("primary_keys", [[], ["id"]], ids=["append", "keys"])
def test_clients_write_in_turn_and_every_row_is_there_once(
    lake: Warehouse, java: JavaJudge, pypaimon: Peer, rust: Peer, primary_keys: list[str]
) -> None:
    catalog = CatalogFactory.create(catalog_options(lake))
    catalog.create_database("turns", ignore_if_exists=True)
    name = f"turns.t{len(primary_keys)}"
    options = {"bucket": "1" if primary_keys else "-1"}
    table = catalog.create_table(name, COLUMNS, options=options, primary_keys=primary_keys)
    expected = []

    for turn in range(2):
        for number, peer in enumerate((None, java, pypaimon, rust)):
            value = 10 * turn + number
            expected.append(value)
            if peer is None:
                table.append(rows(value))
            else:
                peer.write(lake, name, rows(value))

    assert ids_of(catalog.get_table(name)) == expected
    assert sorted(pypaimon.read(lake, name).column("id").to_pylist()) == expected
    assert sorted(rust.read(lake, name).column("id").to_pylist()) == expected
    assert len(java.rows(lake, name)) == len(expected)


@pytest.mark.interop
@pytest.mark.slow  # old releases are fetched for make test-all only
@pytest.mark.parametrize("primary_keys", [[], ["id"]], ids=["append", "keys"])
def test_old_and_new_clients_write_in_turn(
    lake: Warehouse, java: JavaJudge, pypaimon: Peer, rust: Peer, primary_keys: list[str]
) -> None:
    peers = (old_java_judge("1.2.0"), old_java_judge("1.3.1"), java, pypaimon, rust)
    catalog = CatalogFactory.create(catalog_options(lake))
    catalog.create_database("old", ignore_if_exists=True)
    name = f"old.t{len(primary_keys)}"
    options = {"bucket": "1" if primary_keys else "-1"}
    table = catalog.create_table(name, COLUMNS, options=options, primary_keys=primary_keys)

    for value in range(12):
        if value % 6 == 5:
            table.append(rows(value))
        else:
            peers[value % 6].write(lake, name, rows(value))

    assert ids_of(catalog.get_table(name)) == list(range(12))
    assert [len(peer.rows(lake, name)) for peer in peers] == [12] * 5


@pytest.mark.interop
def test_a_table_of_the_server_is_a_table_of_its_folder(
    tmp_path: Path, java: JavaJudge, rust: Peer
) -> None:
    with served(tmp_path) as lake:
        catalog = CatalogFactory.create(catalog_options(lake))
        catalog.create_database("db")
        catalog.create_table("db.t", COLUMNS, options={"bucket": "-1"})
        rust.write(lake, "db.t", rows(1, 2))
        java.write(lake, "db.t", rows(3))

    assert len(java.rows(tmp_path / "lake", "db.t")) == 3
    files = CatalogFactory.create({"warehouse": str(tmp_path / "lake")})
    assert ids_of(files.get_table("db.t")) == [1, 2, 3]
    assert files.get_table("db.t").check().ok

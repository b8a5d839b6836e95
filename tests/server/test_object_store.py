"""The server on an object store: files are the truth there too, and clients get keys from it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pytest

from catalog_server import Client, serving, snapshot
from emberlake import CatalogFactory
from emberlake.errors import StorageError
from emberlake.io import open_storage
from emberlake.io.object.sts import Role
from emberlake.server.access.grants import Access, Grant, Resource, ResourceKind
from emberlake.server.vending import VendingRules
from emberlake.server.warehouses import open_warehouse
from interop.judges import catalog_options, peer
from server.processes import TOKEN, served
from servers import Server

pytestmark = pytest.mark.thorough
T = "/databases/db/tables/t"
ROLE = "arn:aws:iam::000000000000:role/lake"


@pytest.fixture
def client(s3: Server, tmp_path: Path) -> Iterator[Client]:
    lake = open_warehouse("lake", f"{s3.root}/{tmp_path.name}", s3.options)
    with serving(tmp_path, warehouses=(lake,)) as found:
        yield found.database()


def test_commits_are_files_of_the_store(client: Client) -> None:
    client.table()

    client.commits(2)

    (lake,) = client.server.settings.warehouses
    path = f"{lake.location}/db.db/t/snapshot/snapshot-2"
    assert json.loads(lake.storage.read(path)) == snapshot(2)
    assert client.commit(snapshot(2)).json == {"success": True}
    assert client.commit(snapshot(2, user="other")).json == {"success": False}


def test_a_server_that_died_after_the_file_has_committed(client: Client) -> None:
    table_id = client.table()
    client.commits(1)
    (lake,) = client.server.settings.warehouses
    database = client.server.services.database
    database.run("UPDATE branches SET pending_since = 1 WHERE table_id = ?", table_id)
    path = f"{lake.location}/db.db/t/snapshot/snapshot-2"
    lake.storage.put_if_absent(path, json.dumps(snapshot(2)).encode())

    latest = client.get(f"{T}/snapshot").json["snapshot"]["snapshot"]

    assert latest == snapshot(2)
    pending = database.run("SELECT pending_since FROM branches WHERE table_id = ?", table_id)
    assert pending == [(None,)]


def test_a_dropped_table_stays_in_place_until_it_is_restored(client: Client) -> None:
    client.table()
    client.commits(1)
    client.delete(T)

    second = client.table()

    assert client.get(T).json["path"].endswith(f"/t-{second[:8]}")


@pytest.fixture
def vending(minio: Server, tmp_path: Path) -> Iterator[Client]:
    """A server that hands out credentials of MinIO's token service."""
    lake = open_warehouse("lake", f"{minio.root}/{tmp_path.name}", minio.options)
    rules = VendingRules(role=Role(arn=ROLE, endpoint=minio.endpoint))
    with serving(tmp_path, warehouses=(lake,), vending=rules) as found:
        yield found.database()


@pytest.mark.slow  # MinIO takes minutes to build
def test_keys_reach_one_table_and_readers_only_read(vending: Client) -> None:
    client = vending
    client.table()
    client.table("other")
    client.commits(1)
    principals = client.server.services.principals
    principals.create("reader", is_admin=False, by="test")
    token, _ = principals.issue_token("reader", by="test")
    grant = Grant("reader", Resource(ResourceKind.TABLE, "db", "t"), Access.SELECT)
    principals.grant("lake", grant, by="test")
    (lake,) = client.server.settings.warehouses
    root = f"{lake.location}/db.db"

    writer = client.get(f"{T}/token").json
    reader = client.as_(token).get(f"{T}/token").json

    config = client.get("!/v1/config").json
    assert config["overrides"] == {"data-token.enabled": "true"}
    assert writer["expiresAtMillis"] > client.server.services.env.now_ms()
    for given, may_write in ((writer, True), (reader, False)):
        own = given["token"]
        storage, _ = open_storage(root, {key: v for key, v in own.items() if key.startswith("s3.")})
        assert storage.read(f"{root}/t/snapshot/snapshot-1")
        with pytest.raises(StorageError):
            storage.read(f"{root}/other/schema/schema-0")
        if may_write:
            storage.create(f"{root}/t/bucket-0/new", b"x")
        else:
            with pytest.raises(StorageError):
                storage.create(f"{root}/t/bucket-0/more", b"x")
    assert client.get(f"{T}/token").json == writer  # kept for half of its life


@pytest.mark.slow
def test_a_client_without_keys_writes_and_reads(minio: Server, tmp_path: Path) -> None:
    store = minio
    options = [f"--catalog-option={key}={value}" for key, value in store.options.items()]
    vend = ["--vend", f"role={ROLE}", "--vend", f"endpoint={store.endpoint}"]
    where = f"{store.root}/{tmp_path.name}"
    with served(tmp_path, *options, *vend, warehouse=where) as lake:
        catalog = CatalogFactory.create(
            {"warehouse": "lake", "metastore": "rest", "uri": lake.options["uri"], "token": TOKEN}
        )
        catalog.create_database("db")
        columns = pa.schema([("a", pa.int64())])
        table = catalog.create_table("db.t", columns)

        table.append(pa.table({"a": [1, 2]}, columns))

        assert catalog.get_table("db.t").to_arrow().num_rows == 2


@pytest.mark.slow
@pytest.mark.interop
@pytest.mark.parametrize("engine", ["pypaimon", "rust"])
def test_other_clients_need_no_keys_either(
    minio: Server, tmp_path: Path, engine: Literal["pypaimon", "rust"]
) -> None:
    columns = pa.schema([("a", pa.int64())])
    options = [f"--catalog-option={key}={value}" for key, value in minio.options.items()]
    vend = ["--vend", f"role={ROLE}", "--vend", f"endpoint={minio.endpoint}"]
    where = f"{minio.root}/{tmp_path.name}"
    with served(tmp_path, *options, *vend, warehouse=where) as lake:
        catalog = CatalogFactory.create(catalog_options(lake))
        catalog.create_database("db")
        table = catalog.create_table("db.t", columns, options={"bucket": "-1"})
        table.append(pa.table({"a": [1]}, columns))

        assert peer(engine).read(lake, "db.t").num_rows == 1
        peer(engine).write(lake, "db.t", pa.table({"a": [2]}, columns))

        assert sorted(table.to_arrow().column("a").to_pylist()) == [1, 2]

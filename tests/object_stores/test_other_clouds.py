"""Azure and Google Cloud Storage: what differs from S3."""

import base64
import hashlib
import hmac
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import pyarrow as pa
import pytest

from emberlake import CatalogFactory
from emberlake.errors import StorageError
from emberlake.io import Storage, open_storage
from emberlake.io.object.upload import PART_BYTES
from servers import AZURE_ACCOUNT, AZURE_KEY, Proxy, Server, proxy_of

CLOUDS = ["azure", "gcs"]
ASKED: list[str] = []


@pytest.fixture(params=CLOUDS)
def server(request: pytest.FixtureRequest) -> Server:
    started: Server = request.getfixturevalue(request.param)
    return started


@pytest.fixture
def storage(server: Server) -> Storage:
    return open_storage(server.root, server.options)[0]


@pytest.fixture
def root(server: Server) -> str:
    return f"{server.root}/{uuid.uuid4()}"


def test_a_file_of_many_parts_is_there_when_it_is_closed(storage: Storage, root: str) -> None:
    part = bytes(range(256)) * (PART_BYTES // 256)

    with storage.open_output(f"{root}/large") as output:
        output.write(part)
        output.write(part[::-1])
        output.write(b"end")
        assert not storage.exists(f"{root}/large")

    assert storage.read(f"{root}/large") == part + part[::-1] + b"end"


def test_a_file_of_many_parts_that_is_given_up_is_never_there(storage: Storage, root: str) -> None:
    output = storage.open_output(f"{root}/large")
    output.write(bytes(2 * PART_BYTES + 1))

    output.abort()

    assert not storage.exists(f"{root}/large")


@pytest.mark.parametrize("action", ["read", "write"])
def test_a_bucket_that_is_not_there_is_named(server: Server, action: str) -> None:
    root = server.root.replace("lake", "no-lake")
    storage, _ = open_storage(root, server.options)

    calls = {"read": storage.list, "write": lambda path: storage.put_if_absent(path, b"1")}

    with pytest.raises(StorageError, match="there is no bucket no-lake at http://127"):
        calls[action](f"{root}/file")


# --- credentials ----------------------------------------------------------------------------------


def signature(rights: str, lasts: timedelta) -> str:
    """A shared access signature for the container."""
    ends = (datetime.now(UTC) + lasts).strftime("%Y-%m-%dT%H:%M:%SZ")
    version = "2018-11-09"
    lines = [rights, "", ends, f"/blob/{AZURE_ACCOUNT}/lake", "", "", "", version, "c", *[""] * 6]
    key = base64.b64decode(AZURE_KEY)
    signed = hmac.new(key, "\n".join(lines).encode(), hashlib.sha256).digest()
    named = {"sp": rights, "se": ends, "sv": version, "sr": "c"}
    return urlencode({**named, "sig": base64.b64encode(signed).decode()})


def with_signature(server: Server, rights: str, lasts: timedelta) -> dict[str, str]:
    signed = signature(rights, lasts)
    return {"azure.endpoint": server.endpoint, "azure.sas-token": signed}


@pytest.fixture
def table_path(azure: Server) -> str:
    """A warehouse with one table, db.t."""
    warehouse = f"{azure.root}/{uuid.uuid4()}"
    catalog = CatalogFactory.create({"warehouse": warehouse, **azure.options})
    catalog.create_database("db")
    catalog.create_table("db.t", pa.schema([("n", pa.int64())])).append(pa.table({"n": [1, 2]}))
    return warehouse


def test_a_user_who_may_only_read_reads_and_gets_an_error_when_writing(
    azure: Server, table_path: str
) -> None:
    options = with_signature(azure, "rl", timedelta(hours=1))
    table = CatalogFactory.create({"warehouse": table_path, **options}).get_table("db.t")

    with pytest.raises(StorageError, match=r"these credentials may not create abfss://") as raised:
        table.append(pa.table({"n": [3]}))

    assert raised.value.had_no_effect
    assert "sig=" not in str(raised.value)
    assert table.to_arrow()["n"].to_pylist() == [1, 2]


@pytest.mark.parametrize("option", ["azure.sas-token", "azure.account-key"])
def test_credentials_that_azure_refuses_are_reported(azure: Server, option: str) -> None:
    ended, wrong = signature("rl", timedelta(hours=-1)), base64.b64encode(b"nobody").decode()
    secret = ended if option == "azure.sas-token" else wrong
    storage, root = open_storage(azure.root, {"azure.endpoint": azure.endpoint, option: secret})

    with pytest.raises(StorageError, match="these credentials may not list abfss://") as raised:
        storage.list(root)

    assert secret not in str(raised.value)


@dataclass(frozen=True)
class Tokens:
    """Gives a new token or signature at every call."""

    cloud: str

    def __call__(self) -> dict[str, Any]:
        ASKED.append(self.cloud)
        if self.cloud == "azure":
            return {"sas_token": signature("rcwdl", timedelta(hours=1))}
        return {"token": f"token-{len(ASKED)}"}


@pytest.fixture
def proxy(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    with proxy_of(server, tmp_path_factory.mktemp("proxy")) as started:
        yield started
        assert started.clear() == []


def test_a_provider_is_asked_again_when_its_credentials_have_ended(
    server: Server, proxy: Proxy, root: str
) -> None:
    cloud, prefix = ("azure", "azure.") if root.startswith("abfss") else ("gcs", "gs.")
    address = server.endpoint.replace(str(server.port), str(proxy.port))
    given = {f"{prefix}endpoint": address, f"{prefix}credentials-provider": Tokens(cloud)}
    storage, _ = open_storage(root, given)
    storage.put(f"{root}/one", b"1")
    storage.put(f"{root}/two", b"2")
    asked = len(ASKED)
    how = "403-AuthenticationFailed" if cloud == "azure" else "401-AuthenticationRequired"
    proxy.fail(method="GET", match="two", how=how, when="before")

    assert storage.read(f"{root}/two") == b"2"
    assert len(ASKED) == asked + 1


def test_a_snapshot_that_was_read_is_known_by_the_listing(
    azure: Server, table_path: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with proxy_of(azure, tmp_path_factory.mktemp("proxy")) as proxy:
        address = azure.endpoint.replace(str(azure.port), str(proxy.port))
        options = {**azure.options, "azure.endpoint": address, "warehouse": table_path}
        table = CatalogFactory.create(options).get_table("db.t")
        table.new_read_builder().new_scan().plan()
        proxy.counted()

        table.new_read_builder().new_scan().plan()

        assert [entry for entry in proxy.counted()["log"] if "snapshot-1" in entry] == []

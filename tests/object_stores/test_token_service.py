"""Credentials of a token service: they end in the middle of a job, or give few rights."""

import json
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from emberlake import CatalogFactory
from emberlake.errors import StorageError
from emberlake.io import open_storage
from emberlake.io.object.roles import AssumedRole
from emberlake.io.object.upload import PART_BYTES
from servers import SECRET, USER, Server
from token_service import TokenService, token_service

LIFE_S = 3


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TokenService]:
    with token_service(tmp_path_factory.mktemp("tokens")) as started:
        yield started


@pytest.fixture
def warehouse(service: TokenService) -> str:
    """A warehouse with one table, db.t."""
    root = f"{service.server.root}/{uuid.uuid4()}"
    catalog = CatalogFactory.create({"warehouse": root, **service.server.options})
    catalog.create_database("db")
    catalog.create_table("db.t", pa.schema([("n", pa.int64())])).append(pa.table({"n": [0]}))
    return root


@dataclass(frozen=True)
class ShortKeys:
    """Asks the service for keys with a short life, and may not say so."""

    service: TokenService
    name: str  # equal ones share their clients
    tells: bool
    given: list[str] = field(default_factory=list, compare=False)

    def __call__(self) -> dict[str, Any]:
        keys = self.service.credentials(LIFE_S)
        self.given.append(keys["access_key_id"])
        return keys if self.tells else {**keys, "expires_at": None}


def given_to(server: Server, provider: ShortKeys) -> dict[str, Any]:
    return {"s3.endpoint": server.endpoint, "s3.credentials-provider": provider}


@pytest.mark.slow
@pytest.mark.parametrize("tells", [True, False])
def test_a_job_whose_credentials_end_goes_on_with_new_ones(
    service: TokenService, warehouse: str, *, tells: bool
) -> None:
    provider = ShortKeys(service, "job", tells)
    options = {"warehouse": warehouse, **given_to(service.server, provider)}
    table = CatalogFactory.create(options).get_table("db.t")

    end = time.monotonic() + 3 * LIFE_S
    appended = 0
    while time.monotonic() < end:
        appended += 1
        table.append(pa.table({"n": [appended]}))
        time.sleep(0.5)
    table.compact(full=True)

    assert sorted(table.to_arrow()["n"].to_pylist()) == [*range(appended + 1)]
    assert len(set(provider.given)) > 2


@pytest.mark.slow
def test_an_upload_whose_credentials_end_goes_on_with_new_ones(
    service: TokenService, warehouse: str
) -> None:
    provider = ShortKeys(service, "upload", tells=True)
    storage, root = open_storage(warehouse, given_to(service.server, provider))

    with storage.open_output(f"{root}/large") as output:
        for _ in range(6):
            output.write(bytes(PART_BYTES))
            time.sleep(LIFE_S / 3)

    assert storage.size(f"{root}/large") == 6 * PART_BYTES
    assert len(set(provider.given)) > 2


def with_keys(service: TokenService, keys: dict[str, Any]) -> dict[str, str]:
    return {
        "s3.endpoint": service.server.endpoint,
        "s3.access-key": keys["access_key_id"],
        "s3.secret-key": keys["secret_access_key"],
        "s3.session-token": keys["token"],
    }


def with_rights(service: TokenService, resource: str, *actions: str) -> dict[str, str]:
    allowed = [f"s3:{action}" for action in actions]
    policy = {"Effect": "Allow", "Action": allowed, "Resource": [f"arn:aws:s3:::{resource}"]}
    return with_keys(service, service.credentials(900, policy))


def test_a_user_who_may_only_read_reads_and_gets_an_error_when_writing(
    service: TokenService, warehouse: str
) -> None:
    given = with_rights(service, "lake*", "GetObject", "ListBucket")
    table = CatalogFactory.create({"warehouse": warehouse, **given}).get_table("db.t")

    with pytest.raises(StorageError, match=r"may not create s3://.*\(AccessDenied\)") as raised:
        table.append(pa.table({"n": [1]}))

    assert raised.value.had_no_effect
    assert table.to_arrow()["n"].to_pylist() == [0]
    assert table.snapshot_manager().latest_id() == 1


def test_a_bucket_without_any_right_is_reported(service: TokenService, warehouse: str) -> None:
    given = with_rights(service, "pond*", "GetObject", "PutObject", "ListBucket")
    catalog = CatalogFactory.create({"warehouse": warehouse, **given})

    for call in (catalog.list_databases, lambda: catalog.get_table("db.t")):
        with pytest.raises(StorageError, match=r"these credentials may not \w+ s3://lake/"):
            call()


def test_expired_keys_are_reported(service: TokenService, warehouse: str) -> None:
    storage, root = open_storage(warehouse, with_keys(service, service.credentials(1)))
    time.sleep(2.5)

    with pytest.raises(StorageError, match=r"InvalidAccessKeyId\), or they have expired"):
        storage.list(root)


# --- roles ----------------------------------------------------------------------------------------


def test_a_role_is_assumed_with_other_keys(service: TokenService, warehouse: str) -> None:
    given = {**service.server.options, "s3.assumed.role.arn": "arn:aws:iam::1:role/any"}
    table = CatalogFactory.create({"warehouse": warehouse, **given}).get_table("db.t")

    table.append(pa.table({"n": [1]}))

    assert sorted(table.to_arrow()["n"].to_pylist()) == [0, 1]
    assert isinstance(
        table.store.storage.storage_of(warehouse).config.credentials.provider, AssumedRole
    )


def test_a_role_of_a_profile_may_be_given_fewer_rights(
    service: TokenService, warehouse: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = f"aws_access_key_id = {USER}\naws_secret_access_key = {SECRET}"
    role = "role_arn = arn:aws:iam::1:role/any\nsource_profile = base"
    place = f"endpoint_url = {service.server.endpoint}"
    (tmp_path / "config").write_text(f"[profile base]\n{keys}\n[profile lake]\n{role}\n{place}")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    rights = {"Effect": "Allow", "Action": ["s3:GetObject"], "Resource": ["arn:aws:s3:::lake/*"]}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [rights]})
    snapshot = f"{warehouse}/db.db/t/snapshot/snapshot-1"

    storage, _ = open_storage(warehouse, {"s3.profile": "lake"})
    storage.put(f"{warehouse}/file", b"1")
    given = {**service.server.options, "s3.assumed.role.arn": "arn:aws:iam::1:role/any"}
    reader, _ = open_storage(warehouse, {**given, "s3.assumed.role.policy": policy})

    assert reader.read(snapshot) == storage.read(snapshot)
    with pytest.raises(StorageError, match=r"may not write .*\(AccessDenied\)"):
        reader.put(f"{warehouse}/file", b"2")

"""Storage credentials for clients: one table, a time, no more than they may do."""

import json
from pathlib import Path
from typing import Any

import pytest

from catalog_server import Client, serving
from emberlake.base.env import Env
from emberlake.errors import InvalidInput
from emberlake.io.object.sts import Role, TemporaryKeys
from emberlake.server import vending
from emberlake.server.vending import RoleVending, VendingRules, table_policy
from emberlake.server.warehouses import Warehouse, open_warehouse

OPTIONS = {"s3.access-key": "id", "s3.secret-key": "secret", "s3.region": "eu-west-1"}
PATH = "s3://lake/wh/db.db/t"


def test_a_policy_names_one_folder() -> None:
    (objects, listing) = table_policy(PATH, writes=False)["Statement"]

    assert objects["Resource"] == ["arn:aws:s3:::lake/wh/db.db/t/*"]
    assert objects["Action"] == ["s3:GetObject"]
    assert listing["Resource"] == ["arn:aws:s3:::lake"]
    assert listing["Condition"] == {"StringLike": {"s3:prefix": ["wh/db.db/t/*"]}}


def test_writers_may_put_and_delete() -> None:
    (objects, _) = table_policy(PATH, writes=True)["Statement"]

    assert {"s3:PutObject", "s3:DeleteObject"} < set(objects["Action"])


@pytest.mark.parametrize("path", ["s3://lake", "s3://lake/wh/*/t", "s3://lake/wh/${aws:x}/t"])
def test_paths_that_a_policy_would_take_for_more_are_refused(path: str) -> None:
    with pytest.raises(InvalidInput):
        table_policy(path, writes=False)


class Service:
    """A token service that writes down what it is asked."""

    def __init__(self, now: list[int]) -> None:
        self.asked: list[dict[str, Any]] = []
        self._now = now

    def __call__(self, config: object, location: object, role: Role, **more: Any) -> TemporaryKeys:
        self.asked.append(more)
        ends = self._now[0] + more["seconds"] * 1000
        return TemporaryKeys(f"id-{len(self.asked)}", "secret", "token", ends)


@pytest.fixture
def now() -> list[int]:
    return [1_000_000]


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch, now: list[int]) -> Service:
    found = Service(now)
    monkeypatch.setattr(vending, "assume_role", found)
    return found


@pytest.fixture
def lake() -> Warehouse:
    return open_warehouse("lake", "s3://lake/wh", OPTIONS)


def test_keys_are_kept_for_half_of_their_life(
    service: Service, now: list[int], lake: Warehouse
) -> None:
    rules = VendingRules(role=Role(arn="arn"), seconds=3600)
    role = RoleVending(Env(now_ms=lambda: now[0]), rules)

    first, ends = role.credentials(lake, PATH, writes=True, principal="ann")
    now[0] += 1_799_000
    again, _ = role.credentials(lake, PATH, writes=True, principal="ann")
    now[0] += 2_000
    later, _ = role.credentials(lake, PATH, writes=True, principal="ann")

    assert ends == 1_000_000 + 3_600_000
    assert first == again != later
    assert len(service.asked) == 2


def test_readers_and_writers_get_keys_of_their_own(
    service: Service, now: list[int], lake: Warehouse
) -> None:
    role = RoleVending(Env(now_ms=lambda: now[0]), VendingRules(role=Role(arn="arn")))

    for principal, writes in (("ann", True), ("ann", False), ("bob@x/y", False)):
        role.credentials(lake, PATH, writes=writes, principal=principal)

    actions = [json.loads(each["policy"])["Statement"][0]["Action"] for each in service.asked]
    assert ["s3:PutObject" in each for each in actions] == [True, False, False]
    assert service.asked[0]["name"] == "ann"
    assert service.asked[2]["name"].startswith("bob@x_y-")


def test_clients_can_be_given_a_later_expiry(
    service: Service, now: list[int], lake: Warehouse
) -> None:
    rules = VendingRules(role=Role(arn="arn"), seconds=3600, said_longer_ms=55 * 60_000)
    role = RoleVending(Env(now_ms=lambda: now[0]), rules)

    options, ends = role.credentials(lake, PATH, writes=False, principal="ann")

    assert ends == 1_000_000 + 3_600_000 + 3_300_000
    assert options["s3.session.token"] == options["fs.s3.securityToken"] == "token"
    assert options["s3.region"] == "eu-west-1"


def test_files_of_a_disk_need_no_keys(client: Client, tmp_path: Path) -> None:
    client.table()

    token = client.get("/databases/db/tables/t/token").json

    assert token["token"] == {}
    assert token["expiresAtMillis"] == token["expiresAt"] > 0
    assert client.get("!/v1/config").json == {"defaults": {"prefix": "lake"}, "overrides": {}}


def test_a_store_without_a_role_hands_out_nothing(tmp_path: Path, lake: Warehouse) -> None:
    with serving(tmp_path, warehouses=(lake,)) as client:
        services = client.server.services

        with pytest.raises(RuntimeError, match="configure them in the client"):
            services.vend.credentials(lake, PATH, writes=False, principal="ann")

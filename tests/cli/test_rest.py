"""Every command on a REST catalog, which a profile names."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.shop import Cli, append, orders_of
from rest_server import TOKEN, RestServer, serving

PROFILE = """
[prod]
metastore = "rest"
uri = "{uri}"
warehouse = "w h"
token.env = "LAKE_TOKEN"
"""


@pytest.fixture
def server(warehouse: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RestServer]:
    with serving(warehouse.parent / "served") as made:
        config = warehouse.parent / "home" / "emberlake"
        config.mkdir()
        (config / "config.toml").write_text(PROFILE.format(uri=made.uri))
        monkeypatch.setenv("LAKE_TOKEN", TOKEN)
        yield made


COMMANDS = [
    ("db", "list"),
    ("db", "create", "sales"),
    ("table", "list", "shop"),
    ("table", "show", "shop.orders"),
    ("table", "create", "shop.items", "--column", "id BIGINT", "--primary-key", "id"),
    ("table", "alter", "shop.orders", "--add-column", "note STRING"),
    ("table", "rename", "shop.items", "sales.items"),
    ("read", "shop.orders", "--limit", "2"),
    ("plan", "shop.orders"),
    ("snapshots", "shop.orders"),
    ("files", "shop.orders"),
    ("manifests", "shop.orders"),
    ("schemas", "shop.orders"),
    ("partitions", "shop.orders"),
    ("tags", "create", "shop.orders", "first", "--snapshot", "1"),
    ("tags", "shop.orders"),
    ("branches", "create", "shop.orders", "trial", "--tag", "first"),
    ("branches", "shop.orders"),
    ("branches", "delete", "shop.orders", "trial", "--yes"),
    ("partitions", "drop", "shop.orders", "dt=2026-06-02", "--yes"),
    ("compact", "shop.orders", "--full"),
    ("expire", "shop.orders", "--retain-max", "2", "--retain-min", "1", "--yes"),
    ("orphans", "shop.orders", "--yes"),
    ("check", "shop.orders"),
    ("rollback", "shop.orders", "--tag", "first", "--yes"),
    ("table", "drop", "sales.items", "--yes"),
    ("db", "drop", "sales", "--yes"),
    ("db", "drop", "shop", "--cascade", "--yes"),
]


def test_every_command_works_on_a_server(server: RestServer, cli: Cli) -> None:
    assert cli("--profile", "prod", "db", "create", "shop").code == 0
    catalog = server.open()
    table = catalog.create_table("shop.orders", orders_of(1, 1).schema, partition_keys=["dt"])
    for day in (1, 2):
        append(table, orders_of(day, 3))

    for command in COMMANDS:
        outcome = cli("--profile", "prod", *command)

        assert outcome.code == 0, (command, outcome.err)
        assert TOKEN not in outcome.out + outcome.err
    assert catalog.list_databases() == []


def test_a_server_that_refuses_is_told_in_one_line(
    server: RestServer, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKE_TOKEN", "wrong-token")

    outcome = cli("--profile", "prod", "db", "list")

    assert outcome.code == 1
    assert "failed with 401" in outcome.err
    assert "wrong-token" not in outcome.err
    assert outcome.err.count("\n") == 1

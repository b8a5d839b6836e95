"""Every command on the catalog of ``emberlake serve``, which a profile names."""

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urljoin

import pyarrow.parquet as pq
import pytest

from cli.shop import Cli, append, orders_of
from emberlake import Catalog, CatalogFactory
from interop.judges import catalog_options
from server.processes import TOKEN, served
from servers import dying_with_parent

PROFILE = """
[prod]
metastore = "rest"
uri = "{uri}"
warehouse = "lake"
token.env = "LAKE_TOKEN"
"""


@pytest.fixture
def server(warehouse: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Catalog]:
    folder = warehouse.parent / "served"
    folder.mkdir()
    with served(folder) as lake:
        config = warehouse.parent / "home" / "emberlake"
        config.mkdir()
        (config / "config.toml").write_text(PROFILE.format(uri=lake.options["uri"]))
        monkeypatch.setenv("LAKE_TOKEN", TOKEN)
        yield CatalogFactory.create(catalog_options(lake))


COMMANDS = [
    ("db", "list"),
    ("db", "create", "sales"),
    ("table", "list", "shop"),
    ("table", "show", "shop.orders"),
    ("table", "create", "shop.items", "--column", "id BIGINT", "--primary-key", "id"),
    ("update", "shop.orders", "--set", "price=price * 2", "--where", "city = 'paris'"),
    ("delete", "shop.orders", "--where", "order_id = 100", "--yes"),
    ("merge", "shop.orders", "--source", "more.parquet", "--on", "order_id"),
    ("table", "alter", "shop.orders", "--add-column", "note STRING"),
    ("table", "rename", "shop.items", "sales.items"),
    ("read", "shop.orders", "--limit", "2"),
    ("plan", "shop.orders"),
    ("snapshots", "shop.orders"),
    ("files", "shop.orders"),
    ("manifests", "shop.orders"),
    ("schemas", "shop.orders"),
    ("partitions", "shop.orders"),
    ("report", "shop.orders", "--out", "report.html"),
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


def test_every_command_works_on_a_server(server: Catalog, cli: Cli, tmp_path: Path) -> None:
    assert cli("--profile", "prod", "db", "create", "shop").code == 0
    table = server.create_table("shop.orders", orders_of(1, 1).schema, partition_keys=["dt"])
    for day in (1, 2):
        append(table, orders_of(day, 3))
    pq.write_table(orders_of(1, 5), tmp_path / "more.parquet")
    check_pages(tmp_path)

    for command in COMMANDS:
        outcome = cli("--profile", "prod", *command)

        assert outcome.code == 0, (command, outcome.err)
        assert TOKEN not in outcome.out + outcome.err
    assert server.list_databases() == []
    report = (tmp_path / "report.html").read_text()
    assert "rome" in report
    assert TOKEN not in report


def check_pages(home: Path) -> None:
    """The pages of `emberlake ui` show the tables of the server, and no token."""
    command = [sys.executable, "-m", "emberlake", "--profile", "prod", "ui", "--port", "0"]
    with subprocess.Popen(
        dying_with_parent([*command, "--json"]), stdout=subprocess.PIPE, text=True, cwd=home
    ) as process:
        try:
            assert process.stdout is not None
            url = json.loads(process.stdout.readline())["url"]
            # The address has a key, which the first page exchanges for a cookie.
            visitor = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
            visitor.open(url, timeout=30).close()
            with visitor.open(
                f"{urljoin(url, '/')}table/shop.orders/overview", timeout=30
            ) as answer:
                page = answer.read().decode()
        finally:
            process.terminate()
    assert "order_id" in page
    assert TOKEN not in page


def test_a_server_that_refuses_is_reported_in_one_line(
    server: Catalog, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKE_TOKEN", "wrong-token")

    outcome = cli("--profile", "prod", "db", "list")

    assert outcome.code == 1
    assert "failed with 401" in outcome.err
    assert "wrong-token" not in outcome.err
    assert outcome.err.count("\n") == 1

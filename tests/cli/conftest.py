"""A warehouse with tables on disk, and the command line in this process."""

from pathlib import Path

import pyarrow as pa
import pytest

from cli.shop import CUSTOMERS, ORDERS, Cli, Outcome, append, orders_of
from emberlake import Catalog, CatalogFactory, Schema
from emberlake.cli import main


@pytest.fixture
def warehouse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the databases, which commands find by the environment."""
    home = tmp_path / "home"
    home.mkdir()
    for name in ("EMBERLAKE_PROFILE", "EMBERLAKE_CONFIG", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    monkeypatch.setenv("EMBERLAKE_WAREHOUSE", str(tmp_path / "warehouse"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "warehouse"


@pytest.fixture
def catalog(warehouse: Path) -> Catalog:
    """A catalog with an append table of three days and a key table of two upserts."""
    catalog = CatalogFactory.create({"warehouse": str(warehouse)})
    catalog.create_database("shop")
    catalog.create_table(
        "shop.orders", Schema.from_pyarrow_schema(ORDERS, partition_keys=["dt"], comment="orders")
    )
    orders = catalog.get_table("shop.orders")
    for day in (1, 2, 3):
        append(orders, orders_of(day, 10))
    keys = Schema.from_pyarrow_schema(CUSTOMERS, primary_keys=["id"], options={"bucket": "1"})
    catalog.create_table("shop.customers", keys)
    customers = catalog.get_table("shop.customers")
    append(customers, pa.table({"id": [1, 2], "name": ["ada", "bob"]}, schema=CUSTOMERS))
    append(customers, pa.table({"id": [2, 3], "name": ["ben", None]}, schema=CUSTOMERS))
    return catalog


@pytest.fixture
def cli(warehouse: Path, capfd: pytest.CaptureFixture[str]) -> Cli:
    """Runs a command in this process: ``cli("read", "shop.orders")``."""
    del warehouse

    def run(*arguments: str) -> Outcome:
        capfd.readouterr()
        code = main(arguments)
        out, err = capfd.readouterr()
        return Outcome(code, out, err)

    return run

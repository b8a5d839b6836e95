"""``emberlake db``."""

from pathlib import Path

from cli.shop import Cli
from emberlake import Catalog


def test_databases_are_created_and_listed(cli: Cli) -> None:
    assert cli("db", "create", "sales").out == "created database sales\n"

    listed = cli("db", "list", "--json")

    assert listed.json == {"databases": [{"name": "sales", "tables": 0}]}


def test_a_database_that_exists_is_an_error_unless_ignored(cli: Cli, catalog: Catalog) -> None:
    assert cli("db", "create", "shop").code == 1

    again = cli("db", "create", "shop", "--if-not-exists", "--json")

    assert (again.code, again.json) == (0, {"database": "shop", "created": False})


def test_an_empty_warehouse_says_what_to_do(cli: Cli) -> None:
    assert "emberlake db create NAME" in cli("db", "list").err


def test_a_database_with_tables_is_not_dropped_without_cascade(cli: Cli, catalog: Catalog) -> None:
    refused = cli("db", "drop", "shop", "--yes")

    assert refused.code == 1
    assert "drop it with --cascade" in refused.err
    assert catalog.list_tables("shop") == ["customers", "orders"]


def test_a_dry_run_says_what_a_drop_takes_and_takes_nothing(cli: Cli, catalog: Catalog) -> None:
    preview = cli("db", "drop", "shop", "--cascade", "--dry-run", "--json")

    assert preview.code == 0
    assert preview.json["tables"] == ["customers", "orders"]
    assert preview.json["files"] > 0
    assert preview.json["dropped"] is False
    assert catalog.list_databases() == ["shop"]


def test_a_drop_without_anybody_to_ask_needs_yes(cli: Cli, catalog: Catalog) -> None:
    refused = cli("db", "drop", "shop", "--cascade")

    assert refused.code == 2
    assert "use --yes to do it" in refused.err
    assert catalog.list_databases() == ["shop"]


def test_a_database_is_dropped_with_all_its_tables(
    cli: Cli, catalog: Catalog, warehouse: Path
) -> None:
    assert cli("db", "drop", "shop", "--cascade", "--yes").code == 0

    assert catalog.list_databases() == []
    assert list(warehouse.iterdir()) == []


def test_a_database_that_is_not_there_is_an_error_unless_ignored(cli: Cli) -> None:
    missing = cli("db", "drop", "nope", "--yes")

    assert missing.code == 1
    assert "emberlake db list" in missing.err
    assert cli("db", "drop", "nope", "--if-exists", "--yes").code == 0

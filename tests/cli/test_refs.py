"""``emberlake tags|branches|rollback``."""

import pytest

from cli.shop import Cli, append, orders_of, rows_of
from emberlake import Catalog


def test_tags_are_created_listed_renamed_and_deleted(cli: Cli, catalog: Catalog) -> None:
    created = cli("tags", "create", "shop.orders", "first", "--snapshot", "1")
    assert created.out == "created tag first of shop.orders: snapshot 1\n"
    assert cli("tags", "rename", "shop.orders", "first", "start").code == 0
    assert [t["tag_name"] for t in cli("tags", "shop.orders", "--json").json["tags"]] == ["start"]

    assert cli("tags", "delete", "shop.orders", "start").code == 2
    preview = cli("tags", "delete", "shop.orders", "start", "--dry-run")
    assert preview.out == "would delete tag start of shop.orders, which keeps snapshot 1\n"
    assert cli("tags", "delete", "shop.orders", "start", "--yes").code == 0

    assert catalog.get_table("shop.orders").list_tags() == []


def test_a_tag_that_exists_or_does_not_is_an_error_unless_ignored(
    cli: Cli, catalog: Catalog
) -> None:
    cli("tags", "create", "shop.orders", "t")

    assert cli("tags", "create", "shop.orders", "t").code == 1
    again = cli("tags", "create", "shop.orders", "t", "--if-not-exists", "--json")
    assert again.json == {"table": "shop.orders", "tag": "t", "snapshot": 3, "created": False}
    assert cli("tags", "delete", "shop.orders", "no", "--yes").code == 1
    assert cli("tags", "delete", "shop.orders", "no", "--yes", "--if-exists").code == 0


def test_a_branch_is_created_written_and_taken_over(cli: Cli, catalog: Catalog) -> None:
    cli("tags", "create", "shop.orders", "base")
    created = cli("branches", "create", "shop.orders", "trial", "--tag", "base")
    assert "open it as shop.orders$branch_trial" in created.out
    append(catalog.get_table("shop.orders$branch_trial"), orders_of(4, 5))
    assert cli("branches", "shop.orders", "--json").json["branches"][0]["branch_name"] == "trial"

    assert cli("branches", "fast-forward", "shop.orders", "trial").code == 2
    preview = cli("branches", "fast-forward", "shop.orders", "trial", "--dry-run", "--json").json
    assert preview["snapshot"] == 4
    assert len(rows_of(catalog.get_table("shop.orders"))) == 30
    assert cli("branches", "fast-forward", "shop.orders", "trial", "--yes").code == 0

    assert len(rows_of(catalog.get_table("shop.orders"))) == 35


def test_a_branch_is_deleted_only_when_that_is_meant(cli: Cli, catalog: Catalog) -> None:
    cli("branches", "create", "shop.orders", "trial")

    assert cli("branches", "delete", "shop.orders", "trial").code == 2
    assert cli("branches", "delete", "shop.orders", "trial", "--dry-run").code == 0
    assert catalog.get_table("shop.orders").list_branches() == ["trial"]
    assert cli("branches", "delete", "shop.orders", "trial", "--yes").code == 0
    assert catalog.get_table("shop.orders").list_branches() == []


@pytest.mark.parametrize(
    "command",
    [
        ["branches", "delete", "shop.orders", "nope", "--yes"],
        ["branches", "fast-forward", "shop.orders", "nope", "--yes"],
        ["read", "shop.orders$branch_nope"],
    ],
)
def test_a_missing_branch_is_reported_with_where_to_look(
    cli: Cli, catalog: Catalog, command: list[str]
) -> None:
    failed = cli(*command)

    assert (failed.code, failed.err) == (
        1,
        "error: shop.orders has no branch 'nope'; list branches with: emberlake branches <table>\n",
    )


def test_a_rollback_says_what_is_lost_before_it_loses_it(cli: Cli, catalog: Catalog) -> None:
    cli("tags", "create", "shop.orders", "late", "--snapshot", "3")

    preview = cli("rollback", "shop.orders", "--snapshot", "1", "--dry-run", "--json").json

    assert (preview["deleted_snapshots"], preview["deleted_tags"]) == ([2, 3], ["late"])
    assert (preview["rows"], preview["rows_changed"]) == (10, -20)
    assert cli("rollback", "shop.orders", "--snapshot", "1").code == 2
    assert len(rows_of(catalog.get_table("shop.orders"))) == 30


def test_a_table_is_rolled_back_to_a_snapshot_or_a_tag(cli: Cli, catalog: Catalog) -> None:
    cli("tags", "create", "shop.orders", "early", "--snapshot", "1")

    by_id = cli("rollback", "shop.orders", "--snapshot", "2", "--yes")
    assert by_id.out.startswith("rolled back shop.orders to snapshot 2\n  rows     20 (-10)\n")
    assert cli("rollback", "shop.orders", "--tag", "early", "--yes").code == 0

    assert len(rows_of(catalog.get_table("shop.orders"))) == 10


@pytest.mark.parametrize("arguments", [[], ["--snapshot", "1", "--tag", "x"]])
def test_a_rollback_goes_to_one_place(cli: Cli, catalog: Catalog, arguments: list[str]) -> None:
    refused = cli("rollback", "shop.orders", "--yes", *arguments)

    assert refused.code == 2
    assert "give --snapshot ID or --tag NAME" in refused.err

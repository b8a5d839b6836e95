"""``emberlake delete|update|merge``."""

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from cli.shop import CUSTOMERS, ORDERS, Cli, rows_of
from emberlake import Catalog

pytestmark = pytest.mark.usefixtures("catalog")


def snapshots(cli: Cli, table: str) -> int:
    return len(cli("snapshots", table, "--json").json["snapshots"])


def test_rows_are_deleted_by_a_condition(cli: Cli, catalog: Catalog) -> None:
    before = rows_of(catalog.get_table("shop.orders"))

    done = cli("delete", "shop.orders", "--where", "price * 2 > 3", "--yes", "--json").json

    kept = [row for row in before if row["price"] * 2 <= 3]
    assert rows_of(catalog.get_table("shop.orders")) == kept
    assert done["rows_deleted"] == len(before) - len(kept)
    assert (done["strategy"], done["snapshot"]) == ("rewrite", snapshots(cli, "shop.orders"))


def test_a_dry_run_counts_and_changes_nothing(cli: Cli, catalog: Catalog) -> None:
    before, count = rows_of(catalog.get_table("shop.orders")), snapshots(cli, "shop.orders")
    paris = sum(row["city"] == "paris" for row in before)

    preview = cli("delete", "shop.orders", "--where", "city = 'paris'", "--dry-run")
    counted = cli("update", "shop.orders", "--set", "city='x'", "--dry-run", "--json").json

    assert preview.out == f"shop.orders: would have deleted {paris} rows\n"
    assert (counted["rows_updated"], counted["snapshot"]) == (len(before), None)
    assert rows_of(catalog.get_table("shop.orders")) == before
    assert snapshots(cli, "shop.orders") == count


def test_a_delete_asks_first(cli: Cli) -> None:
    asked = cli("delete", "shop.orders", "--where", "TRUE")

    assert asked.code == 2
    assert "This deletes the rows of shop.orders where TRUE" in asked.err


def test_columns_are_set_by_expressions(cli: Cli, catalog: Catalog) -> None:
    done = cli(
        "update", "shop.orders", "--set", "price=price * 2", "--set", "city=UPPER(city)",
        "--where", "order_id = 100",
    )  # fmt: skip

    assert done.out.startswith("shop.orders: updated 1 row\n")
    changed = next(r for r in rows_of(catalog.get_table("shop.orders")) if r["order_id"] == 100)
    assert (changed["price"], changed["city"]) == (Decimal("1.00"), "PARIS")


def test_an_update_of_all_rows_asks_first(cli: Cli) -> None:
    asked = cli("update", "shop.orders", "--set", "price=1")

    assert (asked.code, "This changes all rows of shop.orders" in asked.err) == (2, True)


def test_having_nothing_to_change_is_reported(cli: Cli) -> None:
    done = cli("delete", "shop.orders", "--where", "order_id = -1", "--yes")

    assert (done.code, done.out) == (0, "no row of shop.orders changes\n")


def test_files_are_merged_into_a_table(cli: Cli, catalog: Catalog, tmp_path: Path) -> None:
    before = rows_of(catalog.get_table("shop.customers"))
    known = before[0]["id"]
    pa_csv.write_csv(
        pa.table({"id": [known, 999], "name": ["new", "nine"]}), str(tmp_path / "in.csv")
    )

    done = cli(
        "merge", "shop.customers", "--source", str(tmp_path / "in.csv"), "--on", "id", "--json"
    )

    assert (done.json["rows_updated"], done.json["rows_inserted"]) == (1, 1)
    names = {row["id"]: row["name"] for row in rows_of(catalog.get_table("shop.customers"))}
    assert (names[known], names[999]) == ("new", "nine")


def test_a_merge_takes_a_condition_and_expressions(
    cli: Cli, catalog: Catalog, tmp_path: Path
) -> None:
    rows = {"key": [100, 5], "extra": pa.array([Decimal("0.25")] * 2, pa.decimal128(10, 2))}
    pq.write_table(pa.table(rows), tmp_path / "in.parquet")
    count = len(rows_of(catalog.get_table("shop.orders")))

    done = cli(
        "merge", "shop.orders", "--source", str(tmp_path / "in.parquet"),
        "--on", "t.order_id = s.key",
        "--set", "price=t.price + s.extra", "--when", "t.city = 'paris'", "--no-insert", "--json",
    ).json  # fmt: skip

    assert (done["rows_updated"], done["rows_inserted"]) == (1, 0)
    found = rows_of(catalog.get_table("shop.orders"))
    assert len(found) == count
    assert next(r for r in found if r["order_id"] == 100)["price"] == Decimal("0.75")


def test_a_merge_deletes_what_the_source_lacks(cli: Cli, catalog: Catalog, tmp_path: Path) -> None:
    keep = rows_of(catalog.get_table("shop.orders"))[:2]
    pq.write_table(pa.Table.from_pylist(keep, ORDERS), tmp_path / "in.parquet")
    flags = ["--source", str(tmp_path / "in.parquet"), "--on", "order_id", "--keep-matched"]

    asked = cli("merge", "shop.orders", *flags, "--delete-unmatched")
    assert (asked.code, "that match none" in asked.err) == (2, True)
    done = cli("merge", "shop.orders", *flags, "--delete-unmatched", "--yes", "--json").json

    assert rows_of(catalog.get_table("shop.orders")) == keep
    assert done["rows_deleted"] > 0


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--keep-matched", "--delete-matched"], "contradict each other"),
        (["--keep-matched", "--when", "t.id = 1"], "leaves alone"),
        (["--keep-matched", "--no-insert"], "nothing is left to do"),
    ],
)
def test_flags_that_contradict_each_other_are_refused(
    cli: Cli, tmp_path: Path, flags: list[str], said: str
) -> None:
    pq.write_table(pa.table({"id": [1], "name": ["a"]}, CUSTOMERS), tmp_path / "in.parquet")

    refused = cli(
        "merge", "shop.customers", "--source", str(tmp_path / "in.parquet"), "--on", "id", *flags
    )

    assert (refused.code, said in refused.err) == (2, True)


def test_a_condition_that_does_not_fit_is_an_error_that_helps(cli: Cli) -> None:
    failed = cli("delete", "shop.orders", "--where", "pric > 1", "--dry-run")

    assert failed.code != 0
    assert "did you mean price" in failed.err

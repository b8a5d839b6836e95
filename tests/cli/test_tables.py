"""``emberlake table``."""

import io
import json
from pathlib import Path

import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from cli.shop import ORDERS, Cli, orders_of, rows_of
from emberlake import Catalog
from emberlake.spec.layout import DROP_MARK


def test_tables_are_listed_with_their_kind_rows_and_size(cli: Cli, catalog: Catalog) -> None:
    listed = cli("table", "list", "shop", "--json").json["tables"]

    assert [(t["table"], t["kind"], t["rows"], t["files"], t["snapshot"]) for t in listed] == [
        ("shop.customers", "key (id)", 4, 2, 2),
        ("shop.orders", "append, by dt", 30, 3, 3),
    ]


def test_a_table_that_cannot_be_opened_does_not_hide_the_others(
    cli: Cli, catalog: Catalog, warehouse: Path
) -> None:
    (warehouse / "shop.db" / "orders" / "schema" / "schema-0").write_text("no json")

    listed = cli("table", "list", "--json").json["tables"]

    assert [t["table"] for t in listed] == ["shop.customers", "shop.orders"]
    assert "is corrupt" in listed[1]["problem"]


@pytest.mark.parametrize("damaged", ["manifest/*", "snapshot/snapshot-3"])
@pytest.mark.parametrize("how", ["gone", "garbage"])
def test_a_table_that_is_damaged_does_not_hide_the_others(
    cli: Cli, catalog: Catalog, warehouse: Path, damaged: str, how: str
) -> None:
    files = list((warehouse / "shop.db" / "orders").glob(damaged))
    for file in files:
        file.unlink() if how == "gone" else file.write_bytes(b"rot")
    assert files

    listed = cli("table", "list")

    assert listed.code == 0, listed.err
    assert "shop.customers  key (id)" in listed.out
    assert "shop.orders" in listed.out


def test_damage_is_reported_in_the_list(cli: Cli, catalog: Catalog, warehouse: Path) -> None:
    for file in (warehouse / "shop.db" / "orders" / "manifest").iterdir():
        file.unlink()

    _, orders = cli("table", "list", "--json").json["tables"]

    assert (orders["kind"], orders["snapshot"], orders["rows"]) == ("append, by dt", 3, None)
    assert "does not exist" in orders["problem"]
    assert "cannot be read: " in cli("table", "list").out


def test_show_lists_columns_keys_and_the_latest_snapshot(cli: Cli, catalog: Catalog) -> None:
    shown = cli("table", "show", "shop.orders").out

    assert "partitioned by  dt" in shown
    assert "rows            30" in shown
    assert "price     DECIMAL(10, 2)\n" in shown
    assert "dt        STRING          partition\n" in shown


def test_what_show_prints_creates_the_same_table(
    cli: Cli, catalog: Catalog, tmp_path: Path
) -> None:
    schema = tmp_path / "schema.json"
    schema.write_text(cli("table", "show", "shop.customers", "--json").out, encoding="utf-8")

    created = cli("table", "create", "shop.copy", "--schema", str(schema))

    assert created.code == 0
    old, new = catalog.get_table("shop.customers"), catalog.get_table("shop.copy")
    assert new.fields == old.fields
    assert (new.primary_keys, dict(new.options)) == (old.primary_keys, dict(old.options))


def test_a_schema_comes_from_stdin(
    cli: Cli, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = {
        "fields": [
            {"name": "id", "type": "BIGINT NOT NULL"},
            {"name": "at", "type": {"type": "ROW", "fields": [{"name": "x", "type": "INT"}]}},
        ],
        "primaryKeys": ["id"],
    }
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(schema)))

    created = cli("table", "create", "shop.new", "--schema", "-", "--json")

    assert created.json["columns"] == {"id": "BIGINT NOT NULL", "at": "ROW<x INT>"}


def test_a_key_that_no_schema_has_is_refused_rather_than_ignored(
    cli: Cli, catalog: Catalog, tmp_path: Path
) -> None:
    schema = tmp_path / "schema.json"
    schema.write_text('{"fields": [{"name": "a", "type": "INT"}], "primaryKey": ["a"]}')

    refused = cli("table", "create", "shop.new", "--schema", str(schema))

    assert refused.code == 1
    assert "unknown keys primaryKey" in refused.err
    assert "new" not in catalog.list_tables("shop")


def test_a_table_is_created_from_columns_keys_and_options(cli: Cli, catalog: Catalog) -> None:
    created = cli(
        *("table", "create", "shop.new", "--column", "id BIGINT", "--column", "dt STRING"),
        *("--primary-key", "id,dt", "--partition-by", "dt", "--option", "bucket=2"),
        *("--comment", "new ones"),
    )

    assert created.code == 0
    table = catalog.get_table("shop.new")
    assert [str(f.type) for f in table.fields] == ["BIGINT NOT NULL", "STRING NOT NULL"]
    assert (table.primary_keys, table.partition_keys) == (["id", "dt"], ["dt"])
    assert table.comment == "new ones"


@pytest.mark.parametrize("name", ["orders.parquet", "orders.csv", "orders.json"])
def test_a_table_is_created_like_a_data_file(
    cli: Cli, catalog: Catalog, tmp_path: Path, name: str
) -> None:
    file = tmp_path / name
    rows = orders_of(1, 3)
    if name.endswith("parquet"):
        pq.write_table(rows, file)
    elif name.endswith("csv"):
        pa_csv.write_csv(rows, file)
    else:
        lines = [{**row, "price": float(row["price"])} for row in rows.to_pylist()]
        file.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")

    created = cli("table", "create", "shop.new", "--from", str(file), "--json")

    assert created.code == 0, created.err
    assert list(created.json["columns"]) == ORDERS.names
    assert created.json["columns"]["order_id"] == "BIGINT"
    exact = name.endswith("parquet")
    assert created.json["columns"]["price"] == ("DECIMAL(10, 2)" if exact else "DOUBLE")


def test_a_file_that_is_not_what_its_name_says_is_reported(
    cli: Cli, catalog: Catalog, tmp_path: Path
) -> None:
    file = tmp_path / "orders.parquet"
    file.write_text("not Parquet")

    refused = cli("table", "create", "shop.new", "--from", str(file))

    assert refused.code == 1
    assert "it is not parquet" in refused.err
    assert refused.err.count("\n") == 1


def test_a_column_without_any_value_needs_a_type(
    cli: Cli, catalog: Catalog, tmp_path: Path
) -> None:
    file = tmp_path / "rows.json"
    file.write_text('{"a": 1, "b": null}')

    refused = cli("table", "create", "shop.new", "--from", str(file))

    assert refused.code == 1
    assert "no value shows the type of b" in refused.err


def test_times_of_text_get_room_for_fractions(cli: Cli, catalog: Catalog, tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("at\n2026-06-26 12:00:00\n")

    created = cli("table", "create", "shop.new", "--from", str(file), "--json")

    assert created.json["columns"] == {"at": "TIMESTAMP(6)"}


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--column", "a INT", "--schema", "s.json"],
        ["--column", "justaname"],
        ["--column", "a NOTATYPE"],
        ["--column", "a INT", "--option", "bucket"],
        ["--column", "a INT", "--option", "bucket=1", "--option", "bucket=2"],
        ["--column", "a INT", "--option", "bucket=many"],
        ["--column", "a INT", "--primary-key", "nope"],
        ["--column", "a INT", "--partition-by", "nope"],
        ["--column", "a INT", "--column", "a INT"],
    ],
)
def test_what_cannot_be_a_table_is_a_usage_error(
    cli: Cli, catalog: Catalog, arguments: list[str]
) -> None:
    refused = cli("table", "create", "shop.new", *arguments)

    assert refused.code == 2
    assert refused.err.startswith("error: ")
    assert "new" not in catalog.list_tables("shop")


def test_a_key_that_is_not_a_column_is_reported_with_its_flag(cli: Cli, catalog: Catalog) -> None:
    refused = cli("table", "create", "shop.n", "--column", "a INT", "--primary-key", "b")

    assert refused.err == "error: --primary-key b: there is no such column; columns are a\n"


def test_a_schema_file_that_makes_no_table_is_no_usage_error(
    cli: Cli, catalog: Catalog, tmp_path: Path
) -> None:
    schema = tmp_path / "schema.json"
    schema.write_text('{"fields": [{"name": "a", "type": "INT"}], "primaryKeys": ["b"]}')

    assert cli("table", "create", "shop.n", "--schema", str(schema)).code == 1


def test_a_dry_run_creates_nothing(cli: Cli, catalog: Catalog) -> None:
    preview = cli("table", "create", "shop.n", "--column", "a INT", "--dry-run")

    assert preview.out.startswith("would create table shop.n: 1 column, append")
    assert "n" not in catalog.list_tables("shop")


@pytest.mark.parametrize(
    "arguments",
    [
        ["shop.orders", "--column", "a INT"],
        ["shop.n$branch_b", "--column", "a INT"],
        ["nowhere.n", "--column", "a INT"],
        ["shop.n", "--column", "a INT", "--primary-key", "b"],
        ["shop.n", "--column", "a INT", "--option", "path=/elsewhere"],
        ["shop.n", "--column", "a INT", "--catalog-option", "table-default.bucket=many"],
        [
            *("shop.n", "--column", "a INT", "--column", "b STRING", "--primary-key", "a"),
            *("--option", "merge-engine=aggregation"),
            *("--option", "fields.b.aggregate-function=nope"),
        ],
    ],
)
def test_a_dry_run_refuses_what_would_be_refused(
    cli: Cli, catalog: Catalog, arguments: list[str]
) -> None:
    preview = cli("table", "create", *arguments, "--dry-run")
    done = cli("table", "create", *arguments)

    assert preview.code in (1, 2)
    assert (preview.code, preview.err) == (done.code, done.err)


def test_creating_twice_is_an_error_unless_ignored(cli: Cli, catalog: Catalog) -> None:
    arguments = ("table", "create", "shop.orders", "--column", "a INT")

    assert cli(*arguments).code == 1
    ignored = cli(*arguments, "--if-not-exists", "--json")
    assert (ignored.code, ignored.json["created"]) == (0, False)


def test_everything_is_altered_in_one_step(cli: Cli, catalog: Catalog) -> None:
    altered = cli(
        *("table", "alter", "shop.orders", "--rename-column", "city=town"),
        *("--add-column", "note STRING", "--column-comment", "price=in euro"),
        *("--type", "price DECIMAL(12, 2)", "--set", "snapshot.num-retained.max=5"),
        *("--comment", "all orders", "--json"),
    )

    assert altered.code == 0, altered.err
    table = catalog.get_table("shop.orders")
    assert table.field_names == ["order_id", "town", "price", "dt", "note"]
    assert str(table.fields[2].type) == "DECIMAL(12, 2)"
    assert table.fields[2].description == "in euro"
    assert (table.comment, table.table_schema.id) == ("all orders", 1)
    assert altered.json["changes"][0] == "rename column city to town"


def test_one_change_that_is_refused_refuses_all(cli: Cli, catalog: Catalog) -> None:
    refused = cli("table", "alter", "shop.orders", "--drop-column", "dt", "--set", "bucket=3")

    assert refused.code == 1
    assert catalog.get_table("shop.orders").table_schema.id == 0


def test_a_column_is_dropped_only_when_that_is_meant(cli: Cli, catalog: Catalog) -> None:
    refused = cli("table", "alter", "shop.orders", "--drop-column", "city")

    assert refused.code == 2
    assert "This drops column city with its values of shop.orders" in refused.err
    assert "city" in catalog.get_table("shop.orders").field_names

    assert cli("table", "alter", "shop.orders", "--drop-column", "city", "--yes").code == 0

    assert "city" not in catalog.get_table("shop.orders").field_names


def test_what_is_refused_anyway_is_not_asked_about(cli: Cli, catalog: Catalog) -> None:
    refused = cli("table", "alter", "shop.orders", "--drop-column", "nope")

    assert refused.code == 1
    assert "no terminal to ask" not in refused.err


@pytest.mark.parametrize("how", [[], ["--dry-run"]])
def test_a_change_that_changes_nothing_lists_no_change(
    cli: Cli, catalog: Catalog, how: list[str]
) -> None:
    alter = ("table", "alter", "shop.orders", "--comment", "new", *how)
    cli("table", "alter", "shop.orders", "--comment", "new")

    again = cli(*alter)

    assert again.out == "shop.orders is already like that: schema 1\n"
    assert cli(*alter, "--json").json["changes"] == []


def test_a_dry_run_of_alter_changes_nothing(cli: Cli, catalog: Catalog) -> None:
    preview = cli("table", "alter", "shop.orders", "--drop-column", "city", "--dry-run")

    assert preview.out == "would change shop.orders: schema 0 -> 1\n  drop column city\n"
    assert "city" in catalog.get_table("shop.orders").field_names


def test_alter_without_a_change_is_a_usage_error(cli: Cli, catalog: Catalog) -> None:
    assert cli("table", "alter", "shop.orders").code == 2


def test_a_table_is_renamed(cli: Cli, catalog: Catalog) -> None:
    assert cli("table", "rename", "shop.orders", "shop.sales").code == 0

    assert len(rows_of(catalog.get_table("shop.sales"))) == 30


def test_a_table_is_dropped_only_when_that_is_meant(cli: Cli, catalog: Catalog) -> None:
    assert cli("table", "drop", "shop.orders").code == 2
    preview = cli("table", "drop", "shop.orders", "--dry-run")
    assert preview.out.startswith("would drop table shop.orders with all its data: ")
    assert catalog.list_tables("shop") == ["customers", "orders"]

    assert cli("table", "drop", "shop.orders", "--yes").code == 0

    assert catalog.list_tables("shop") == ["customers"]
    assert cli("table", "drop", "shop.orders", "--yes").code == 1
    assert cli("table", "drop", "shop.orders", "--yes", "--if-exists").code == 0


@pytest.mark.parametrize("name", ["shop.orders$files", "shop.orders$branch_b"])
@pytest.mark.parametrize("how", ["--dry-run", "--yes"])
def test_only_whole_tables_are_dropped(cli: Cli, catalog: Catalog, name: str, how: str) -> None:
    cli("branches", "create", "shop.orders", "b")

    refused = cli("table", "drop", name, how)

    assert refused.code == 2
    assert refused.err == (f"error: {name} cannot be dropped: give a table, without a $ part\n")


def test_a_table_that_cannot_be_opened_can_be_dropped(
    cli: Cli, catalog: Catalog, warehouse: Path
) -> None:
    (warehouse / "shop.db" / "orders" / "schema" / "schema-0").write_text("no json")

    assert cli("table", "drop", "shop.orders", "--yes").code == 0

    assert catalog.list_tables("shop") == ["customers"]


def test_a_drop_that_was_interrupted_is_finished(
    cli: Cli, catalog: Catalog, warehouse: Path
) -> None:
    folder = warehouse / "shop.db" / "orders"
    (folder / "schema" / DROP_MARK).write_text("another")
    assert catalog.list_tables("shop") == ["customers"]

    assert cli("table", "drop", "shop.orders", "--dry-run", "--if-exists").code == 0
    assert folder.exists()
    done = cli("table", "drop", "shop.orders", "--yes")

    assert done.out == "dropped what was left of shop.orders\n"
    assert not folder.exists()


def test_a_wide_schema_is_shown_whole(cli: Cli, catalog: Catalog) -> None:
    columns = [part for i in range(40) for part in ("--column", f"column_{i} STRING")]
    cli("table", "create", "shop.wide", *columns)

    assert cli("table", "show", "shop.wide").out.count("STRING") == 40

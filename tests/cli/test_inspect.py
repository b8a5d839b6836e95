"""``emberlake snapshots|files|manifests|partitions|schemas``."""

import pyarrow as pa
import pytest

from cli.shop import Cli, append, rows_of
from emberlake import Catalog, Schema, Table

HOURS = pa.schema([("id", pa.int64()), ("hour", pa.int32())])


@pytest.fixture
def hours(catalog: Catalog) -> Table:
    """A table with a row in each of the hours 3, 4 and 5, which are numbers."""
    schema = Schema.from_pyarrow_schema(HOURS, partition_keys=["hour"])
    catalog.create_table("shop.hours", schema)
    table = catalog.get_table("shop.hours")
    assert isinstance(table, Table)
    append(table, pa.table({"id": [1, 2, 3], "hour": [3, 4, 5]}, schema=HOURS))
    return table


def test_snapshots_come_newest_first_with_their_tags(cli: Cli, catalog: Catalog) -> None:
    catalog.get_table("shop.orders").create_tag("start", 1)

    found = cli("snapshots", "shop.orders", "--json").json["snapshots"]

    assert [(s["snapshot_id"], s["total_record_count"], s["tags"]) for s in found] == [
        (3, 30, []),
        (2, 20, []),
        (1, 10, ["start"]),
    ]


def test_snapshots_are_filtered_and_limited(cli: Cli, catalog: Catalog) -> None:
    some = cli("snapshots", "shop.orders", "--where", "snapshot_id <= 2", "-n", "1", "--json")

    assert [s["snapshot_id"] for s in some.json["snapshots"]] == [2]


@pytest.mark.parametrize("command", ["snapshots", "files", "partitions"])
def test_a_limit_of_0_lists_all_as_it_reads_all(cli: Cli, catalog: Catalog, command: str) -> None:
    assert len(cli(command, "shop.orders", "-n", "0", "--json").json[command]) == 3


def test_files_of_an_append_table_show_no_bucket_and_no_level(cli: Cli, catalog: Catalog) -> None:
    header = cli("files", "shop.orders").out.splitlines()[0].split()

    assert header == ["partition", "rows", "size", "file", "created", "schema", "from"]


def test_files_are_those_of_the_snapshot_that_is_asked_for(cli: Cli, catalog: Catalog) -> None:
    catalog.get_table("shop.orders").create_tag("two", 2)

    assert len(cli("files", "shop.orders", "--json").json["files"]) == 3
    assert len(cli("files", "shop.orders", "--snapshot", "1", "--json").json["files"]) == 1
    assert len(cli("files", "shop.orders", "--tag", "two", "--json").json["files"]) == 2
    assert len(cli("files", "shop.orders", "-n", "1", "--json").json["files"]) == 1


def test_manifests_are_listed(cli: Cli, catalog: Catalog) -> None:
    found = cli("manifests", "shop.orders", "--json").json["manifests"]

    assert sum(manifest["num_added_files"] for manifest in found) == 3


def test_schemas_are_listed_newest_first_and_parsed(cli: Cli, catalog: Catalog) -> None:
    cli("table", "alter", "shop.orders", "--add-column", "note STRING")

    found = cli("schemas", "shop.orders", "--json").json["schemas"]

    assert [schema["schema_id"] for schema in found] == [1, 0]
    assert [field["name"] for field in found[0]["fields"]][-1] == "note"
    assert found[1]["partition_keys"] == ["dt"]


def test_partitions_are_listed_with_and_without_the_word_list(cli: Cli, catalog: Catalog) -> None:
    short = cli("partitions", "shop.orders", "--json").json
    long = cli("partitions", "list", "shop.orders", "--json").json

    assert short == long
    assert [(p["partition"], p["record_count"]) for p in short["partitions"]] == [
        ("dt=2026-06-01", 10),
        ("dt=2026-06-02", 10),
        ("dt=2026-06-03", 10),
    ]


def test_partitions_are_dropped_after_a_look_at_them(cli: Cli, catalog: Catalog) -> None:
    drop = ("partitions", "drop", "shop.orders", "dt=2026-06-01", "dt=2026-06-03")
    assert cli(*drop).code == 2
    preview = cli(*drop, "--dry-run", "--json").json
    assert (preview["rows"], preview["files"], preview["snapshot"]) == (20, 2, None)

    dropped = cli(*drop, "--yes", "--json").json

    assert dropped["snapshot"] == 4
    assert {row["dt"] for row in rows_of(catalog.get_table("shop.orders"))} == {"2026-06-02"}


def test_what_a_drop_names_is_what_it_deletes(cli: Cli, hours: Table) -> None:
    drop = ("partitions", "drop", "shop.hours", "hour=3", "hour=04", "--json")
    preview = cli(*drop, "--dry-run").json

    done = cli(*drop, "--yes").json

    assert preview["partitions"] == done["partitions"] == [{"hour": "3"}, {"hour": "4"}]
    assert (done["rows"], done["files"]) == (2, 2)
    assert [row["hour"] for row in rows_of(hours)] == [5]


def test_a_partition_is_found_by_its_value_rather_than_its_text(cli: Cli, hours: Table) -> None:
    preview = cli("partitions", "drop", "shop.hours", "hour=05", "--dry-run")

    assert preview.out.startswith("would delete 1 row in 1 partition of shop.hours\n")


def test_a_value_that_its_partition_column_cannot_have_is_a_usage_error(
    cli: Cli, hours: Table
) -> None:
    refused = cli("partitions", "drop", "shop.hours", "hour=noon", "--yes")

    assert refused.code == 2
    assert refused.err.startswith("error: partition hour=noon: hour: ")


def test_a_partition_that_is_not_there_deletes_nothing(cli: Cli, catalog: Catalog) -> None:
    done = cli("partitions", "drop", "shop.orders", "dt=1999-01-01", "--yes")

    assert (done.code, done.out) == (
        0,
        "no partition of shop.orders matches; nothing to delete\n",
    )


@pytest.mark.parametrize("partition", ["2026-06-01", "city=paris", "=x"])
def test_what_is_no_partition_is_a_usage_error(cli: Cli, catalog: Catalog, partition: str) -> None:
    assert cli("partitions", "drop", "shop.orders", partition, "--yes").code == 2


@pytest.mark.parametrize("command", ["snapshots", "files", "manifests", "partitions", "schemas"])
def test_a_missing_table_is_reported_with_where_to_look(
    cli: Cli, catalog: Catalog, command: str
) -> None:
    failed = cli(command, "shop.nope")

    assert failed.code == 1
    assert "emberlake table list" in failed.err


@pytest.mark.parametrize("command", ["snapshots", "files", "tags", "partitions", "schemas"])
def test_names_with_dots_stand_in_backticks(cli: Cli, catalog: Catalog, command: str) -> None:
    catalog.create_database("a.b")
    cli("table", "create", "`a.b`.t", "--column", "a INT")

    assert cli(command, "`a.b`.t").code == 0


def test_the_history_of_a_branch_is_its_own(cli: Cli, catalog: Catalog) -> None:
    table = catalog.get_table("shop.orders")
    table.create_tag("base", 1)
    table.create_branch("b", "base")

    found = cli("snapshots", "shop.orders$branch_b", "--json").json["snapshots"]

    assert [snapshot["snapshot_id"] for snapshot in found] == [1]


@pytest.mark.parametrize("command", ["snapshots", "files", "manifests", "partitions"])
def test_an_empty_table_has_nothing_to_list_and_says_so(
    cli: Cli, catalog: Catalog, command: str
) -> None:
    cli("table", "create", "shop.empty", "--column", "a INT")

    shown = cli(command, "shop.empty")

    assert (shown.code, shown.out) == (0, "")
    assert shown.err.startswith("no ")

"""``emberlake ingest``: files into tables by Spark, on one session for all of these tests."""

import glob
import json
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from cli.shop import CUSTOMERS, Cli, orders_of, rows_of
from emberlake import Catalog
from emberlake.io import LocalStorage
from spark.conftest import spark

__all__ = ["spark"]  # the fixture

pytestmark = [pytest.mark.usefixtures("spark")]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "in [1]"  # Spark would take the name for a pattern
    folder.mkdir()
    return folder


def test_parquet_files_are_appended_in_one_commit(cli: Cli, catalog: Catalog, source: Path) -> None:
    pq.write_table(orders_of(4, 5), source / "a.parquet")
    pq.write_table(orders_of(5, 5).drop_columns("city"), source / "b.parquet")

    pattern = f"{glob.escape(str(source))}/*.parquet"
    done = cli("ingest", pattern, "--into", "shop.orders", "--json")

    assert done.code == 0, done.err
    assert (done.json["snapshot"], done.json["rows_added"], done.json["mode"]) == (4, 10, "append")
    assert done.json["source"]["files"] == 2
    assert list(done.json["seconds"]) == ["start", "read", "check", "write", "commit"]
    rows = {row["order_id"]: row["city"] for row in rows_of(catalog.get_table("shop.orders"))}
    assert (len(rows), rows[400], rows[500]) == (40, "paris", None)


@pytest.mark.slow
def test_rows_of_csv_are_read_with_the_types_of_the_table(
    cli: Cli, catalog: Catalog, source: Path
) -> None:
    cli("table", "create", "shop.zips", "--column", "zip STRING", "--column", "n DECIMAL(5, 2)")
    (source / "a.csv").write_text("n,zip\n1.5,01234\n,99999\n")

    done = cli("ingest", str(source), "--into", "shop.zips")

    assert done.code == 0, done.err
    assert "loaded 2 rows into shop.zips (append)" in done.out
    assert rows_of(catalog.get_table("shop.zips")) == [
        {"zip": "01234", "n": Decimal("1.50")},
        {"zip": "99999", "n": None},
    ]


def test_keys_of_json_are_upserted(cli: Cli, catalog: Catalog, source: Path) -> None:
    lines = [{"id": 1, "name": "eve"}, {"id": 9, "name": "new"}]
    (source / "a.jsonl").write_text("\n".join(map(json.dumps, lines)))

    done = cli("ingest", str(source), "--into", "shop.customers", "--mode", "upsert", "--json")

    assert (done.code, done.json["mode"]) == (0, "upsert"), done.err
    names = {row["id"]: row["name"] for row in rows_of(catalog.get_table("shop.customers"))}
    assert names == {1: "eve", 2: "ben", 3: None, 9: "new"}


@pytest.mark.slow
def test_a_table_is_created_with_the_columns_of_the_source(
    cli: Cli, catalog: Catalog, source: Path
) -> None:
    orc.write_table(orders_of(1, 4), source / "a.orc")

    done = cli(
        *("ingest", str(source), "--into", "shop.new", "--create"),
        *("--primary-key", "order_id", "--option", "bucket=1", "--json"),
    )

    assert done.code == 0, done.err
    table = catalog.get_table("shop.new")
    assert table.primary_keys == ["order_id"]
    assert sorted(row["order_id"] for row in rows_of(table)) == [100, 101, 102, 103]


@pytest.mark.slow
def test_folders_and_flags_give_partitions(cli: Cli, catalog: Catalog, source: Path) -> None:
    cli(
        *("table", "create", "shop.hours", "--column", "id INT", "--column", "hour INT"),
        *("--column", "dt DATE", "--partition-by", "dt,hour"),
    )
    (source / "hour=7").mkdir()
    pq.write_table(pa.table({"id": pa.array([1], pa.int32())}), source / "hour=7" / "a.parquet")

    done = cli("ingest", str(source), "--into", "shop.hours", "--partition", "dt=2026-06-26")

    assert done.code == 0, done.err
    listed = cli("partitions", "shop.hours", "--json").json["partitions"]
    assert [p["partition"] for p in listed] == ["dt=2026-06-26/hour=7"]


def test_overwriting_says_what_it_replaces_and_asks(
    cli: Cli, catalog: Catalog, source: Path
) -> None:
    pq.write_table(orders_of(2, 1), source / "a.parquet")
    overwrite = ("ingest", str(source), "--into", "shop.orders", "--mode", "overwrite")

    refused = cli(*overwrite)
    preview = cli(*overwrite, "--dry-run", "--json").json

    assert refused.code == 2
    assert "the partitions of shop.orders that the source has rows for" in refused.err
    assert preview["replaced_partitions"] == ["dt=2026-06-02"]
    assert len(rows_of(catalog.get_table("shop.orders"))) == 30

    done = cli(*overwrite, "--yes", "--json")

    assert (done.json["rows_added"], done.json["rows_deleted"]) == (1, 10)
    assert len(rows_of(catalog.get_table("shop.orders"))) == 21


@pytest.mark.slow
def test_overwriting_replaces_what_it_says_whatever_the_options_of_the_table_are(
    cli: Cli, catalog: Catalog, source: Path
) -> None:
    cli("table", "alter", "shop.orders", "--set", "dynamic-partition-overwrite=false")
    pq.write_table(orders_of(2, 1), source / "a.parquet")

    done = cli(
        *("ingest", str(source), "--into", "shop.orders", "--mode", "overwrite"),
        *("--yes", "--json"),
    )

    assert done.code == 0, done.err
    assert (done.json["rows_added"], done.json["rows_deleted"]) == (1, 10)
    assert len(rows_of(catalog.get_table("shop.orders"))) == 21


@pytest.mark.slow
def test_a_named_partition_is_replaced_even_by_nothing(
    cli: Cli, catalog: Catalog, source: Path
) -> None:
    pq.write_table(orders_of(1, 0).drop_columns("dt"), source / "a.parquet")

    done = cli(
        *("ingest", str(source), "--into", "shop.orders", "--mode", "overwrite"),
        *("--partition", "dt=2026-06-03", "--yes"),
    )

    assert done.code == 0, done.err
    days = {row["dt"] for row in rows_of(catalog.get_table("shop.orders"))}
    assert days == {"2026-06-01", "2026-06-02"}


@pytest.mark.slow
def test_a_dry_run_shows_how_columns_fit_and_writes_nothing(
    cli: Cli, catalog: Catalog, source: Path
) -> None:
    pq.write_table(orders_of(4, 5), source / "a.parquet")

    preview = cli("ingest", str(source), "--into", "shop.new", "--create", "--dry-run")

    assert preview.code == 0, preview.err
    assert preview.out.startswith("would create and load shop.new (append)\n")
    assert "price     decimal(10,2)  DECIMAL(10, 2)" in preview.out
    assert "new" not in catalog.list_tables("shop")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("a.json", '{"id": 1, "nickname": "x"}', "nickname: is not a column of the table"),
        ("a.csv", "id,name\nseven,x\n", "seven"),
        ("a.csv", "id\n7\n", "name: left out, and would become null"),
        ("a.json", '{"id": 1.5, "name": "x"}', "1.5"),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_is_written(
    cli: Cli, catalog: Catalog, source: Path, name: str, text: str, problem: str
) -> None:
    (source / name).write_text(text)

    refused = cli("ingest", str(source), "--into", "shop.customers")

    assert refused.code == 1
    assert problem in refused.err
    assert refused.err.count("\n") == 1
    assert catalog.get_table("shop.customers").latest_snapshot().id == 2


@pytest.mark.slow
def test_a_table_that_could_not_be_filled_is_not_left_behind(
    cli: Cli, catalog: Catalog, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pq.write_table(orders_of(4, 5), source / "a.parquet")
    put = LocalStorage.put_if_absent

    def interrupt(self: LocalStorage, path: str, data: bytes, after: Sequence[str] = ()) -> bool:
        if "/snapshot/snapshot-" in path:
            raise KeyboardInterrupt
        return put(self, path, data, after)

    monkeypatch.setattr(LocalStorage, "put_if_absent", interrupt)

    assert cli("ingest", str(source), "--into", "shop.new", "--create").code == 130

    assert catalog.list_tables("shop") == ["customers", "orders"]


@pytest.mark.slow
def test_a_source_without_rows_changes_nothing(cli: Cli, catalog: Catalog, source: Path) -> None:
    pq.write_table(CUSTOMERS.empty_table(), source / "a.parquet")

    done = cli("ingest", str(source), "--into", "shop.customers")

    assert (done.code, done.out) == (
        0,
        "the source has no rows; shop.customers is unchanged\n",
    )


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"source": "/no/such/file.csv"}, 1),
        ({"source": "/no/such/*.csv"}, 1),
        ({"into": "shop.nope"}, 1),
        ({"more": ["--mode", "upsert"]}, 2),
        ({"into": "shop.customers", "more": ["--mode", "append"]}, 2),
        ({"more": ["--partition", "city=rome"]}, 2),
        ({"more": ["--create", "--primary-key", "order_id"]}, 2),
        pytest.param({"more": ["--partition", "dt=2026-06-01"]}, 2, marks=pytest.mark.slow),
        pytest.param(
            {"into": "shop.new", "more": ["--create", "--primary-key", "nope"]},
            2,
            marks=pytest.mark.slow,
        ),
    ],
)
def test_mistakes_are_distinguished_from_failures(
    cli: Cli, catalog: Catalog, source: Path, changes: dict[str, Any], code: int
) -> None:
    pq.write_table(orders_of(4, 1), source / "a.parquet")

    given = {"source": str(source), "into": "shop.orders", "more": [], **changes}
    ended = cli("ingest", given["source"], "--into", given["into"], *given["more"])

    assert ended.code == code, ended.err
    assert ended.err.count("\n") == 1


@pytest.mark.slow
def test_spark_compacts_on_request(cli: Cli, catalog: Catalog) -> None:
    done = cli("compact", "shop.customers", "--full", "--master", "local[2]", "--json")

    assert (done.code, done.json["files_deleted"], done.json["files_added"]) == (0, 2, 1), done.err


def test_files_of_several_formats_must_be_distinguished(
    cli: Cli, catalog: Catalog, source: Path
) -> None:
    (source / "a.csv").write_text("id\n1\n")
    (source / "b.json").write_text('{"id": 1}')
    (source / "_SUCCESS").write_text("")

    refused = cli("ingest", str(source), "--into", "shop.customers")

    assert refused.code == 2
    assert "found csv and json" in refused.err


@pytest.mark.slow
def test_new_columns_of_a_source_are_added_on_request(
    cli: Cli, catalog: Catalog, source: Path
) -> None:
    (source / "a.csv").write_text("id,name,age,joined\n7,gus,41,2026-06-01\n")

    refused = cli("ingest", str(source), "--into", "shop.customers")
    done = cli("ingest", str(source), "--into", "shop.customers", "--merge-schema")

    assert refused.code == 1
    assert "age" in refused.err
    assert done.code == 0, done.err
    customers = catalog.get_table("shop.customers")
    assert [str(f.type) for f in customers.fields[2:]] == ["INT", "DATE"]
    (gus,) = customers.to_arrow(filter="id = 7").to_pylist()
    assert (gus["name"], gus["age"], str(gus["joined"])) == ("gus", 41, "2026-06-01")


@pytest.mark.slow
def test_a_value_that_does_not_fit_is_named_with_file_line_and_column(
    cli: Cli, catalog: Catalog, source: Path
) -> None:
    (source / "a.csv").write_text('id,name\n7,"a\nb"\n\neight,x\n')

    shown = cli("ingest", str(source), "--into", "shop.customers")

    assert shown.code == 1
    assert f"{source / 'a.csv'}, line 5: column id: eight is not a BIGINT" in shown.err
    assert catalog.get_table("shop.customers").latest_snapshot().id == 2


@pytest.mark.slow
def test_a_json_array_is_loaded_like_lines(cli: Cli, catalog: Catalog, source: Path) -> None:
    (source / "a.json").write_text(json.dumps([{"id": 7, "name": "gus"}, {"id": 8}], indent=2))

    done = cli("ingest", str(source), "--into", "shop.customers")

    assert done.code == 0, done.err
    assert catalog.get_table("shop.customers").count("id IN (7, 8)") == 2

"""``emberlake read`` and ``emberlake plan``."""

import csv
import io
import json
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cli.shop import Cli, append, orders_of, rows_of
from emberlake import Catalog, Schema
from emberlake.cli import main
from emberlake.io import LocalStorage


def test_rows_beyond_the_limit_are_hinted_at(cli: Cli, catalog: Catalog) -> None:
    shown = cli("read", "shop.orders", "-n", "20")

    assert shown.out.splitlines()[0].split() == ["order_id", "city", "price", "dt"]
    assert len(shown.out.splitlines()) == 2 + 20
    assert shown.err == "the first 20 rows; -n 0 shows all\n"


@pytest.mark.parametrize("limit", [[], ["-n", "0"]])
def test_a_pipe_gets_all_rows(cli: Cli, catalog: Catalog, limit: list[str]) -> None:
    shown = cli("read", "shop.orders", *limit)

    assert len(shown.out.splitlines()) == 2 + 30
    assert shown.err == ""


def test_columns_rows_and_snapshot_are_chosen(cli: Cli, catalog: Catalog) -> None:
    read = cli(
        *("read", "shop.orders", "--columns", "order_id,city", "--where", "city = 'rome'"),
        *("--snapshot", "1", "--limit", "2", "--json"),
    )

    assert read.json == {
        "table": "shop.orders",
        "snapshot": 1,
        "columns": [
            {"name": "order_id", "type": "BIGINT"},
            {"name": "city", "type": "STRING"},
        ],
        "rows": [{"order_id": 101, "city": "rome"}, {"order_id": 103, "city": "rome"}],
    }


def test_the_state_of_a_tag_is_read(cli: Cli, catalog: Catalog) -> None:
    catalog.get_table("shop.orders").create_tag("early", 2)

    assert len(cli("read", "shop.orders", "--tag", "early", "--json").json["rows"]) == 20


def test_one_json_document_has_all_rows(cli: Cli, catalog: Catalog) -> None:
    assert len(cli("read", "shop.orders", "--json").json["rows"]) == 30
    assert cli("read", "shop.orders", "--where", "order_id < 0", "--json").json["rows"] == []


def test_json_lines_have_one_row_each(cli: Cli, catalog: Catalog) -> None:
    lines = cli("read", "shop.customers", "--format", "json").out.splitlines()

    rows = sorted((json.loads(line) for line in lines), key=lambda row: row["id"])
    assert rows == [{"id": 1, "name": "ada"}, {"id": 2, "name": "ben"}, {"id": 3, "name": None}]


def test_csv_has_a_header_even_without_rows(cli: Cli, catalog: Catalog) -> None:
    rows = list(csv.DictReader(io.StringIO(cli("read", "shop.orders", "-f", "csv").out)))
    none = cli("read", "shop.orders", "-f", "csv", "--where", "order_id < 0").out

    assert len(rows) == 30
    assert rows[0] == {"order_id": "100", "city": "paris", "price": "0.50", "dt": "2026-06-01"}
    assert none == '"order_id","city","price","dt"\n'


@pytest.mark.parametrize("name", ["out.csv", "out.jsonl", "out.parquet"])
def test_the_name_of_the_file_shows_its_format(
    cli: Cli, catalog: Catalog, tmp_path: Path, name: str
) -> None:
    wrote = cli("read", "shop.orders", "--out", str(tmp_path / name), "--json")

    assert wrote.code == 0, wrote.err
    assert wrote.json["rows"] == 30
    assert wrote.json["bytes"] == (tmp_path / name).stat().st_size
    if name.endswith("parquet"):
        expected = rows_of(catalog.get_table("shop.orders"))
        assert pq.read_table(tmp_path / name).to_pylist() == expected


def test_an_empty_result_is_a_file_too(cli: Cli, catalog: Catalog, tmp_path: Path) -> None:
    out = tmp_path / "none.parquet"
    cli("read", "shop.orders", "--where", "order_id < 0", "--out", str(out))

    assert pq.read_table(out).num_rows == 0


def test_parquet_can_be_piped(catalog: Catalog, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["read", "shop.orders", "--format", "parquet"]) == 0

    assert pq.read_table(pa.BufferReader(capfdbinary.readouterr().out)).num_rows == 30


def test_a_file_that_exists_is_replaced_only_by_force(
    cli: Cli, catalog: Catalog, tmp_path: Path
) -> None:
    out = tmp_path / "out.csv"
    out.write_text("precious")

    refused = cli("read", "shop.orders", "--out", str(out))

    assert (refused.code, out.read_text()) == (2, "precious")
    assert cli("read", "shop.orders", "--out", str(out), "--force").code == 0
    assert out.read_text() != "precious"


def test_a_folder_that_does_not_exist_is_named(cli: Cli, catalog: Catalog, tmp_path: Path) -> None:
    shown = cli("read", "shop.orders", "--out", str(tmp_path / "no" / "a.csv"))

    assert (shown.code, shown.err) == (
        1,
        f"error: {tmp_path / 'no'} does not exist: create the folder first\n",
    )


@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_what_is_interrupted_leaves_no_file(
    cli: Cli, catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    folder = tmp_path / "out"
    folder.mkdir()

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(LocalStorage, "open_input", interrupt)

    assert cli("read", "shop.orders", "--out", str(folder / name)).code == 130
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["--snapshot", "1", "--tag", "x"],
        ["--out", "rows.txt"],
        ["--json", "--format", "csv"],
        ["--limit", "-1"],
        ["--format", "xml"],
        ["--where", "city ="],
    ],
)
def test_what_makes_no_sense_is_a_usage_error(
    cli: Cli, catalog: Catalog, arguments: list[str]
) -> None:
    refused = cli("read", "shop.orders", *arguments)

    assert refused.code == 2
    assert refused.out == ""
    assert refused.err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [["--columns", "nope"], ["--where", "nope = 1"], ["--snapshot", "99"], ["--tag", "nope"]],
)
def test_missing_things_are_reported_in_one_line(
    cli: Cli, catalog: Catalog, arguments: list[str]
) -> None:
    failed = cli("read", "shop.orders", *arguments)

    assert failed.code == 1
    assert failed.err.startswith("error: ")
    assert failed.err.count("\n") == 1


def test_system_tables_and_branches_are_read_like_tables(cli: Cli, catalog: Catalog) -> None:
    table = catalog.get_table("shop.orders")
    table.create_tag("base", 1)
    table.create_branch("b", "base")

    files = cli("read", "shop.orders$files", "-c", "partition,record_count", "--json").json
    assert [row["record_count"] for row in files["rows"]] == [10, 10, 10]
    assert len(cli("read", "shop.orders$branch_b", "--json").json["rows"]) == 10


def test_every_type_has_a_form_in_json_and_in_csv(cli: Cli, catalog: Catalog) -> None:
    schema = pa.schema(
        [
            ("flag", pa.bool_()),
            ("ratio", pa.float64()),
            ("amount", pa.decimal128(20, 3)),
            ("day", pa.date32()),
            ("clock", pa.time32("ms")),
            ("local", pa.timestamp("ns")),
            ("instant", pa.timestamp("us", tz="UTC")),
            ("raw", pa.binary()),
            ("list", pa.list_(pa.decimal128(5, 1))),
            ("by_name", pa.map_(pa.string(), pa.float64())),
            ("by_number", pa.map_(pa.int32(), pa.string())),
            ("row", pa.struct([("x", pa.float64()), ("at", pa.timestamp("ms"))])),
        ]
    )
    values = {
        "flag": True,
        "ratio": float("nan"),
        "amount": Decimal("12345678901234567.125"),
        "day": date(2026, 6, 26),
        "clock": time(14, 3, 7, 5000),
        "local": datetime(2026, 6, 26, 14, 3, 7, 123456),  # noqa: DTZ001 - it has no zone
        "instant": datetime(2026, 6, 26, 14, 3, 7, tzinfo=UTC),
        "raw": b"\x00\xff",
        "list": [Decimal("1.5"), None],
        "by_name": [("a", 1.5), ("b", float("inf"))],
        "by_number": [(1, "x")],
        "row": {"x": None, "at": datetime(2026, 6, 26)},  # noqa: DTZ001
    }
    catalog.create_table("shop.types", Schema.from_pyarrow_schema(schema))
    rows = [values, dict.fromkeys(values)]
    append(catalog.get_table("shop.types"), pa.Table.from_pylist(rows, schema=schema))

    found, nulls = cli("read", "shop.types", "--json").json["rows"]
    text = next(csv.DictReader(io.StringIO(cli("read", "shop.types", "-f", "csv").out)))

    assert found == {
        "flag": True,
        "ratio": "nan",
        "amount": "12345678901234567.125",
        "day": "2026-06-26",
        "clock": "14:03:07.005",
        "local": "2026-06-26T14:03:07.123456000",
        "instant": "2026-06-26T14:03:07.000000Z",
        "raw": "AP8=",
        "list": ["1.5", None],
        "by_name": {"a": 1.5, "b": "inf"},
        "by_number": [[1, "x"]],
        "row": {"x": None, "at": "2026-06-26T00:00:00.000"},
    }
    assert set(nulls.values()) == {None}
    assert (text["amount"], text["raw"]) == ("12345678901234567.125", "AP8=")
    assert json.loads(text["by_name"]) == {"a": 1.5, "b": "inf"}
    shown = cli("read", "shop.types").out
    assert "2026-06-26 14:03:07.123456 " in shown
    assert "2026-06-26 14:03:07Z" in shown


def test_lines_in_values_do_not_break_the_grid(cli: Cli, catalog: Catalog) -> None:
    rows = orders_of(4, 1).set_column(1, "city", pa.array(["two\nlines\x1b[2J"]))
    append(catalog.get_table("shop.orders"), rows)

    shown = cli("read", "shop.orders", "--where", "dt = '2026-06-04'").out

    assert "two\u240alines\u241b[2J" in shown
    assert len(shown.splitlines()) == 3


def test_a_table_without_rows_says_so(cli: Cli, catalog: Catalog) -> None:
    cli("table", "create", "shop.empty", "--column", "a INT")

    shown = cli("read", "shop.empty")

    assert (shown.code, shown.out, shown.err) == (0, "", "no rows\n")


# --- plan -----------------------------------------------------------------------------------------


def test_plan_says_what_is_skipped_and_why(cli: Cli, catalog: Catalog) -> None:
    where = "dt >= '2026-06-02' AND order_id < 205"
    plan = cli("plan", "shop.orders", "--where", where, "--json").json

    assert [file["reason"] for file in plan["files"]] == ["read", "partition", "statistics"]
    assert (plan["files_read"], plan["rows_read"], plan["snapshot"]) == (1, 10, 3)


def test_plan_is_shown_to_people_with_short_reasons(cli: Cli, catalog: Catalog) -> None:
    shown = cli("plan", "shop.orders", "--where", "dt = '2026-06-02'").out

    assert "files      1 of 3 read: 10 rows" in shown
    assert "skipped: its partition does not match" in shown
    assert shown.count("skip: partition") == 2
    assert "read, all match" in shown


def test_plan_lists_twenty_files_unless_all_are_asked_for(cli: Cli, catalog: Catalog) -> None:
    table = catalog.get_table("shop.orders")
    for _ in range(20):
        append(table, orders_of(4, 1))

    assert cli("plan", "shop.orders").err == "... and 3 more read; --all lists them\n"
    assert cli("plan", "shop.orders", "--all").err == ""


def test_plan_lists_the_files_that_are_read_first(cli: Cli, catalog: Catalog) -> None:
    table = catalog.get_table("shop.orders")
    for _ in range(20):
        append(table, orders_of(4, 1))

    shown = cli("plan", "shop.orders", "--where", "dt = '2026-06-02'")
    some = cli("plan", "shop.orders", "--where", "dt = '2026-06-04'")

    assert shown.out.index("\nread, all match ") < shown.out.index("\nskip: partition ")
    assert shown.out.count("\nskip: partition ") == 20
    assert shown.err == "... and 2 more skipped; --all lists them\n"
    assert (some.out.count("\nread, all match "), some.err) == (20, "")

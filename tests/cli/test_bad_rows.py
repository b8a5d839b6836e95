"""``emberlake ingest --on-bad-rows``: rows that do not fit, with their file and line. No Spark."""

import gzip
import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cli.shop import Cli
from emberlake import Catalog
from emberlake.cli.actions.text_opening import is_json_array

CSV = """id,name
10,ada

x,bob
11,"a
b"
,carl
12,d,e
99999999999999999999,eve
13,
"""


@pytest.fixture
def people(catalog: Catalog) -> Catalog:
    columns = pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.string())])
    catalog.create_table("shop.people", columns, options={"bucket": "-1"})
    return catalog


def kept(catalog: Catalog) -> list[tuple[object, ...]]:
    rows = catalog.get_table("ops.bad").to_arrow().to_pylist()
    assert all(Path(r["source_file"]).is_absolute() for r in rows)
    return [(Path(r["source_file"]).name, r["source_line"], r["reason"], r["row"]) for r in rows]


def test_rows_of_csv_that_do_not_fit_are_kept_with_file_line_and_reason(
    cli: Cli, people: Catalog
) -> None:
    Path("a.csv").write_text(CSV)

    done = cli("ingest", "a.csv", "--into", "shop.people", "--on-bad-rows", "ops.bad", "--json")

    document = json.loads(done.out)
    assert (done.code, document["rows_added"], document["rows_rejected"]) == (0, 3, 4)
    rows = people.get_table("shop.people").to_arrow().to_pylist()
    assert [(r["id"], r["name"]) for r in rows] == [(10, "ada"), (11, "a\nb"), (13, None)]
    assert sorted(kept(people), key=lambda row: row[1]) == [
        ("a.csv", 4, "id: x is not a BIGINT", '{"id": "x", "name": "bob"}'),
        ("a.csv", 7, "id: is null, and is NOT NULL", '{"id": null, "name": "carl"}'),
        ("a.csv", 8, "2 values expected, 3 found", '"12,d,e"'),
        (
            "a.csv",
            9,
            "id: 99999999999999999999 is not a BIGINT",
            '{"id": "99999999999999999999", "name": "eve"}',
        ),
    ]


def test_rows_of_json_lines_that_do_not_fit_are_kept_as_they_are_written(
    cli: Cli, people: Catalog
) -> None:
    lines = ['{"id": 1, "name": "ada"}', '{"id": "no"}', "", "{oops", "[1]", '{"id": 2.5}']
    with gzip.open("a.json.gz", "wt") as file:
        file.write("\n".join(lines))

    done = cli("ingest", "a.json.gz", "--into", "shop.people", "--on-bad-rows", "ops.bad")

    assert (done.code, done.out.splitlines()[0]) == (0, "loaded 1 row into shop.people (append)")
    assert "4 bad rows kept in ops.bad; the first: a.json.gz, line 2: id" in done.err
    found = sorted(kept(people), key=lambda row: row[1])
    assert [(line, row) for _, line, _, row in found] == [
        (2, '{"id": "no"}'),
        (4, '"{oops"'),
        (5, '"[1]"'),
        (6, '{"id": 2.5}'),
    ]
    assert found[0][2] == "id: no is not a BIGINT"


def test_a_json_array_is_recognised(cli: Cli, people: Catalog) -> None:
    Path("a.json").write_text('[\n  {"id": 1, "name": "ada"},\n  {"id": "x"},\n\n  {"id": 3}\n]\n')
    Path("b.json").write_text('{"id": 1}\n{"id": 2}\n')

    refused = cli("ingest", "a.json", "--into", "shop.people")
    done = cli("ingest", "a.json", "--into", "shop.people", "--on-bad-rows", "ops.bad")
    mixed = cli("ingest", "a.json", "b.json", "--into", "shop.people")

    assert refused.code == 1
    assert "a.json, line 3: id: x is not a BIGINT; --on-bad-rows skip or TABLE" in refused.err
    assert (done.code, people.get_table("shop.people").count()) == (0, 2)
    assert [(line, row) for _, line, _, row in kept(people)] == [(3, '{"id": "x"}')]
    assert [is_json_array(Path(name)) for name in ("a.json", "b.json")] == [True, False]
    assert mixed.code == 2
    assert "some of the files are JSON arrays" in mixed.err


def test_bad_rows_can_be_left_out(cli: Cli, people: Catalog) -> None:
    pq.write_table(pa.table({"id": [1, None], "name": ["a", "b"]}), "a.parquet")

    done = cli("ingest", "a.parquet", "--into", "shop.people", "--on-bad-rows", "skip")

    assert (done.code, people.get_table("shop.people").count()) == (0, 1)
    assert "1 bad row left out; the first: a.parquet: id: is null, and is NOT NULL" in done.err


def test_folders_and_flags_give_columns(cli: Cli, catalog: Catalog) -> None:
    folder = Path("in/dt=2026-06-09")
    folder.mkdir(parents=True)
    Path(folder, "a.csv").write_text("order_id;city\n1;rome\nx;oslo\n")
    arguments = ("--into", "shop.orders", "--on-bad-rows", "skip", "--source-option", "delimiter=;")

    done = cli("ingest", "in", *arguments)
    again = cli("ingest", str(folder / "a.csv"), *arguments, "--partition", "dt=2026-06-10")

    assert (done.code, again.code) == (0, 0), done.err + again.err
    orders = catalog.get_table("shop.orders")
    assert orders.count("dt = '2026-06-09'") == orders.count("dt = '2026-06-10'") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--on-bad-rows", "quarantine"), "expected fail, skip, or a table that keeps them"),
        (("--on-bad-rows", "skip", "--merge-schema"), "load in two steps"),
        (("--on-bad-rows", "skip", "--dry-run"), "--dry-run reads no rows"),
        (("--on-bad-rows", "skip", "--source-option", "quote=|"), "delimiter, header and encoding"),
        (("--on-bad-rows", "shop.orders"), "cannot keep bad rows"),
    ],
)
def test_what_cannot_be_done_is_refused(
    cli: Cli, people: Catalog, arguments: tuple[str, ...], message: str
) -> None:
    Path("a.csv").write_text("id,name\n1,a\n")

    shown = cli("ingest", "a.csv", "--into", "shop.people", *arguments)

    assert shown.code != 0
    assert message in shown.err
    assert people.get_table("shop.people").latest_snapshot() is None


def test_a_column_that_the_table_lacks_is_not_the_fault_of_rows(cli: Cli, people: Catalog) -> None:
    Path("a.csv").write_text("id,nom\n1,a\n")

    shown = cli("ingest", "a.csv", "--into", "shop.people", "--on-bad-rows", "skip")

    assert shown.code == 1
    assert "nom" in shown.err
    assert "(it has id, name" in shown.err


@pytest.mark.parametrize(
    ("content", "arguments", "message"),
    [
        ("id,name\n1,café\n".encode("latin1"), (), "line 2 is not UTF-8; if the file has another"),
        (b"id,name\n1,a\n", ("encoding=lattin",), "unknown encoding: lattin"),
        (b"id;name\n1;a\n", (), "if ';' separates columns, give --source-option delimiter=';'"),
        (b'id,name\n1,a\n2,"b\n3,c\n', (), "a quote in the row of line 3 does not end"),
        (b"", (), "it has no header"),
    ],
    ids=["encoding", "unknown encoding", "delimiter", "quote", "empty"],
)
def test_a_file_that_is_not_what_it_seems_is_refused_with_a_remedy(
    cli: Cli, people: Catalog, content: bytes, arguments: tuple[str, ...], message: str
) -> None:
    Path("a.csv").write_bytes(content)
    options = [word for option in arguments for word in ("--source-option", option)]

    shown = cli("ingest", "a.csv", "--into", "shop.people", "--on-bad-rows", "skip", *options)

    assert shown.code != 0
    assert "a.csv" in shown.err or arguments
    assert message in shown.err
    assert people.get_table("shop.people").latest_snapshot() is None


@pytest.mark.parametrize(
    ("name", "content", "option"),
    [
        ("a.csv", "id,name\n1,café\n".encode("utf-8-sig"), "header=true"),  # as Excel writes it
        ("a.csv", "id,name\n1,café\n".encode("latin1"), "encoding=latin1"),
        ("a.csv", "id,name\n1,café\n".encode("utf-16"), "encoding=utf-16"),
        ("a.csv", "id\tname\n1\tcafé\n".encode(), r"delimiter=\t"),
        ("a.json", '{"id": 1, "name": "café"}'.encode("latin1"), "charset=latin1"),
    ],
)
def test_text_is_read_in_the_encoding_that_is_named(
    cli: Cli, people: Catalog, name: str, content: bytes, option: str
) -> None:
    Path(name).write_bytes(content)
    arguments = ("--on-bad-rows", "skip", "--source-option", option)

    done = cli("ingest", name, "--into", "shop.people", *arguments)

    assert done.code == 0, done.err
    assert people.get_table("shop.people").to_arrow().to_pylist() == [{"id": 1, "name": "café"}]


def test_another_delimiter_is_noticed_before_a_table_is_made_of_one_column(
    cli: Cli, catalog: Catalog
) -> None:
    Path("a.csv").write_text("id;name\n1;a\n")

    shown = cli("ingest", "a.csv", "--into", "shop.new", "--create")

    assert shown.code == 2
    assert "give --source-option delimiter=';'" in shown.err
    assert "new" not in catalog.list_tables("shop")


def test_numbers_of_json_become_decimals_with_all_their_digits(cli: Cli, catalog: Catalog) -> None:
    columns = pa.schema([("price", pa.decimal128(30, 4)), ("weight", pa.float64())])
    catalog.create_table("shop.prices", columns)
    Path("a.json").write_text('{"price": 12345678901234567890.1234, "weight": 1.5}\n{"price": 2}')

    done = cli("ingest", "a.json", "--into", "shop.prices", "--on-bad-rows", "ops.bad")

    assert (done.code, done.err) == (0, "")
    rows = catalog.get_table("shop.prices").to_arrow().to_pylist()
    assert rows == [
        {"price": Decimal("12345678901234567890.1234"), "weight": 1.5},
        {"price": Decimal("2.0000"), "weight": None},
    ]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('{"id": 2.5}', "id: 2.5 is not a BIGINT"),
        ('{"id": true}', "id: true is not a BIGINT"),
        ('{"sizes": [2.5]}', "sizes: [2.5] is not an ARRAY<INT>"),
        ('{"place": {"x": 2.5}}', 'place: {"x": 2.5} is not a ROW<x INT>'),
        ('{"counts": {"a": 2.5}}', 'counts: {"a": 2.5} is not a MAP<STRING NOT NULL, INT>'),
    ],
)
def test_no_fraction_of_a_number_in_json_is_cut_off(
    cli: Cli, catalog: Catalog, line: str, told: str
) -> None:
    columns = pa.schema(
        [
            ("id", pa.int64()),
            ("sizes", pa.list_(pa.int32())),
            ("place", pa.struct([("x", pa.int32())])),
            ("counts", pa.map_(pa.string(), pa.int32())),
        ]
    )
    catalog.create_table("shop.things", columns)
    good = '{"id": 1, "sizes": [1, 2], "place": {"x": 3}, "counts": {"a": 4}}'
    Path("a.json").write_text(f"{good}\n{line}")

    done = cli("ingest", "a.json", "--into", "shop.things", "--on-bad-rows", "ops.bad")

    assert done.code == 0
    assert [reason for _, _, reason, _ in kept(catalog)] == [told]
    assert catalog.get_table("shop.things").to_arrow().to_pylist() == [
        {"id": 1, "sizes": [1, 2], "place": {"x": 3}, "counts": [("a", 4)]}
    ]


def test_text_in_parquet_files_is_read_as_values_of_the_columns(cli: Cli, people: Catalog) -> None:
    pq.write_table(pa.table({"id": ["7", "x"], "name": ["ada", "bob"]}), "a.parquet")

    done = cli("ingest", "a.parquet", "--into", "shop.people", "--on-bad-rows", "ops.bad")

    assert done.code == 0
    assert people.get_table("shop.people").to_arrow()["id"].to_pylist() == [7]
    assert [reason for _, _, reason, _ in kept(people)] == ["id: 'x' is not a BIGINT"]

"""``emberlake sql`` with a query, a file or standard input."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest

from cli.shop import Cli
from emberlake import Catalog

CITIES = "SELECT city, count(*) AS n FROM shop.orders GROUP BY city ORDER BY city"


def test_a_query_is_shown_as_a_table(catalog: Catalog, cli: Cli) -> None:
    done = cli("sql", CITIES)

    assert (done.code, done.err) == (0, "")
    assert [line.split() for line in done.out.splitlines()[2:]] == [["paris", "15"], ["rome", "15"]]


def test_a_statement_is_shown_with_its_lines(catalog: Catalog, cli: Cli) -> None:
    done = cli("sql", "SHOW CREATE TABLE shop.orders")

    assert done.out.splitlines()[2:4] == ["CREATE TABLE paimon.shop.orders (", "  order_id BIGINT,"]


def test_json_is_one_document_with_columns_and_rows(catalog: Catalog, cli: Cli) -> None:
    done = cli("sql", "SELECT order_id, price FROM shop.orders WHERE order_id < 102", "--json")

    assert done.json == {
        "columns": [
            {"name": "order_id", "type": "BIGINT"},
            {"name": "price", "type": "DECIMAL(10, 2)"},
        ],
        "rows": [{"order_id": 100, "price": "0.50"}, {"order_id": 101, "price": "1.50"}],
    }


def test_csv_has_a_header_and_all_rows(catalog: Catalog, cli: Cli) -> None:
    done = cli("sql", CITIES, "--csv")

    assert done.out == '"city","n"\n"paris",15\n"rome",15\n'


def test_arrow_writes_the_rows_of_the_last_statement(
    catalog: Catalog, cli: Cli, tmp_path: Path
) -> None:
    out = tmp_path / "cities.arrow"

    done = cli("sql", f"USE shop; {CITIES}", "--arrow", str(out))

    assert done.out.startswith(f"wrote 2 rows to {out}, ")
    with pa.ipc.open_file(str(out)) as file:
        assert file.read_all().to_pydict() == {"city": ["paris", "rome"], "n": [15, 15]}
    assert cli("sql", CITIES, "--arrow", str(out)).code == 2  # it exists
    assert cli("sql", CITIES, "--arrow", str(out), "--force").code == 0
    assert "line 1 has a query before it" in cli("sql", "SELECT 1; SELECT 2", "--arrow", "x").err


def test_a_file_runs_in_order_and_stops_at_the_first_error_with_its_line(
    catalog: Catalog, cli: Cli, tmp_path: Path
) -> None:
    script = tmp_path / "load.sql"
    script.write_text(
        "-- makes a table; and fills it\nUSE shop;\nCREATE TABLE t (a INT);\n\n"
        "INSERT INTO t\n  VALUES (1);\nSELECT b FROM t;\nINSERT INTO t VALUES (2);\n"
    )

    done = cli("sql", "--file", str(script))

    assert done.code == 2
    assert done.err.startswith("error: line 7: ")
    assert catalog.get_table("shop.t").to_arrow().to_pydict() == {"a": [1]}


def test_statements_come_from_standard_input(
    catalog: Catalog, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("SELECT 1 AS a;\nSELECT 2 AS b;\n"))

    done = cli("sql", "--json")

    assert [json.loads(line)["rows"] for line in done.out.splitlines()] == [[{"a": 1}], [{"b": 2}]]


def test_statements_that_say_nothing_are_done(catalog: Catalog, cli: Cli) -> None:
    assert cli("sql", "CREATE DATABASE other").out == "done\n"
    assert cli("sql", "DROP DATABASE other", "--json").json == {"columns": [], "rows": []}
    assert cli("sql", "CREATE DATABASE third", "--csv").out == ""


def test_a_database_can_be_chosen(catalog: Catalog, cli: Cli) -> None:
    assert cli("sql", "SELECT count(*) AS n FROM orders", "-d", "shop", "--csv").out == '"n"\n30\n'


def test_every_column_can_have_its_line(catalog: Catalog, cli: Cli) -> None:
    done = cli("sql", "SELECT id, name FROM shop.customers ORDER BY id LIMIT 1", "-x")

    assert [line.split() for line in done.out.splitlines()] == [
        ["\u2500", "row", "1"],
        ["id", "1"],
        ["name", "ada"],
    ]


def test_rows_that_are_not_shown_are_counted(catalog: Catalog, cli: Cli) -> None:
    assert cli("sql", "SELECT * FROM shop.orders", "-n", "5").err == (
        "5 of 30 rows; -n 0 shows all\n"
    )
    assert "5 of more than 10,000 rows" in cli("sql", "SELECT * FROM range(20000)", "-n", "5").err
    assert cli("sql", "SELECT * FROM range(20000)", "-n", "5", "--csv").out.count("\n") == 6


def test_timing_is_shown_on_stderr(catalog: Catalog, cli: Cli) -> None:
    assert cli("sql", "SELECT 1", "--csv", "--timing").err.startswith("time: ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["SELECT 'a"], "does not end"),
        (["SELECT a FROM"], ""),
        (["SELECT 1", "--csv", "--json"], "choose one of them"),
        (["SELECT 1", "--file", "x.sql"], "not both"),
        (["--file", "nowhere.sql"], "cannot be read"),
        ([" -- nothing"], "no statement"),
    ],
)
def test_wrong_usage_has_its_exit_code(
    catalog: Catalog, cli: Cli, arguments: list[str], message: str
) -> None:
    done = cli("sql", *arguments)

    assert done.code == 2
    assert message in done.err


def test_a_table_that_is_not_there_fails(catalog: Catalog, cli: Cli) -> None:
    done = cli("sql", "SELECT * FROM shop.nothing", "--json")

    assert done.code == 1
    assert json.loads(done.err)["error"]["type"] == "TableNotFound"


def test_what_needs_spark_is_an_error_that_says_so(catalog: Catalog, cli: Cli) -> None:
    done = cli("sql", "SELECT interval 2 day AS i", "--json")

    assert done.code == 1
    assert "needs Spark" in json.loads(done.err)["error"]["message"]


@pytest.mark.thorough
def test_ctrl_c_ends_a_query_at_once_with_its_exit_code(warehouse: Path) -> None:
    query = "SELECT count(*) FROM range(1000000000000) WHERE id % 7 = 3"
    program = (  # a test runner may have been started where Ctrl-C is ignored
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from emberlake.cli import main; sys.exit(main(['sql', sys.argv[1]]))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, query],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    time.sleep(3)  # it has begun, or will see the signal when it begins
    process.send_signal(signal.SIGINT)

    _, err = process.communicate(timeout=20)

    assert (process.returncode, err) == (130, b"interrupted\n")


@pytest.mark.slow
def test_csv_is_streamed_in_bounded_memory(warehouse: Path) -> None:
    program = (
        "import resource, sys; from emberlake.cli import main; "
        "code = main(['sql', sys.argv[1], '--csv']); "
        "sys.stderr.write(str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))"
    )

    def peak(rows: int) -> int:
        query = f"SELECT id, concat('some text ', id) AS t FROM range({rows})"
        done = subprocess.run(
            [sys.executable, "-c", program, query],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            check=True,
        )
        return int(done.stderr) // 1024

    assert peak(20_000_000) < peak(1_000_000) + 200  # megabytes; the text alone has 600

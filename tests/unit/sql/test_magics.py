"""``%emberlake`` and ``%%emberlake`` in a real IPython, without a browser."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from emberlake import CatalogFactory
from emberlake.errors import InvalidInput, InvalidSql
from notebook_shell import notebook_shell


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A notebook that has loaded the extension."""
    with notebook_shell(tmp_path, monkeypatch) as shell:
        yield shell


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    catalog = CatalogFactory.create({"warehouse": str(tmp_path / "lake")})
    catalog.sql("CREATE DATABASE shop")
    catalog.sql("CREATE TABLE shop.orders AS SELECT id, concat('c', id) AS city FROM range(3)")
    return tmp_path / "lake"


def test_a_cell_is_carried_out_on_the_catalog_that_was_named(shell: Any, folder: Path) -> None:
    shell.run_line_magic("emberlake", f"--connect warehouse={folder}")

    result = shell.run_cell(
        "%%emberlake\nUSE shop;\nSELECT city FROM orders\nWHERE id > 0 ORDER BY id;"
    ).result

    assert result.fetchall() == [("c1",), ("c2",)]
    assert ">c1</td>" in result._repr_html_()


def test_a_catalog_can_be_a_variable_and_so_can_rows_and_parameters(
    shell: Any, folder: Path
) -> None:
    shell.user_ns["lake"] = CatalogFactory.create({"warehouse": str(folder)})
    shell.user_ns["extra"] = pa.table({"id": [2, 9]})
    shell.user_ns["least"] = 1
    shell.run_cell("%emberlake --connect lake").raise_error()

    shell.run_cell(
        "rows = %emberlake SELECT city FROM shop.orders o JOIN extra e ON o.id = e.id "
        "WHERE o.id > :least"
    ).raise_error()

    assert shell.user_ns["rows"].fetchall() == [("c2",)]
    assert shell.run_line_magic("emberlake", "CREATE DATABASE other") is None


def test_arrow_tables_are_shown_as_tables(shell: Any, folder: Path) -> None:
    orders = CatalogFactory.create({"warehouse": str(folder)}).get_table("shop.orders")

    shown, _ = shell.display_formatter.format(orders.history())
    many, _ = shell.display_formatter.format(pa.table({"n": list(range(1000))}))

    assert ">commit_kind</th>" in shown["text/html"]
    assert ">APPEND</td>" in shown["text/html"]
    assert "the first 20 rows" in many["text/html"]


def test_no_text_of_a_statement_is_evaluated(shell: Any, folder: Path) -> None:
    shell.user_ns["city"] = "'evil'"
    shell.run_line_magic("emberlake", f"--connect warehouse={folder}")

    found = shell.run_cell("%emberlake SELECT '{1 + 1} $city' AS t").result

    assert found.fetchall() == [("{1 + 1} $city",)]


def test_errors_say_what_to_do(shell: Any, folder: Path) -> None:
    with pytest.raises(InvalidInput, match="name a catalog first: %emberlake --connect"):
        shell.run_line_magic("emberlake", "SELECT 1")
    with pytest.raises(InvalidInput, match="nothing is a NoneType, not a catalog"):
        shell.run_line_magic("emberlake", "--connect nothing")
    shell.run_line_magic("emberlake", f"--connect warehouse={folder}")
    with pytest.raises(InvalidSql) as caught:
        shell.run_cell_magic("emberlake", "", "SELECT 1;\nSELECT nope FROM shop.orders")
    assert caught.value.__notes__ == ["line 3"]  # of the cell, whose first line is the magic


def test_the_extension_is_there_without_loading_the_engine() -> None:
    program = (
        "import sys, emberlake; loaded = set(sys.modules); "
        "assert not loaded & {'pyarrow', 'IPython', 'emberlake.sql'}, loaded; "
        "assert callable(emberlake.load_ipython_extension); "
        "assert not set(sys.modules) & {'IPython', 'pyspark', 'duckdb'}"
    )

    subprocess.run([sys.executable, "-c", program], check=True)

"""``emberlake sql --spark``, and ``%%emberlake`` where a lake is attached to Spark."""

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from emberlake import Catalog, CatalogFactory
from emberlake.cli import main
from emberlake.errors import InvalidInput
from emberlake.spark import Lake, attach
from emberlake.sql.on_spark.results import SparkResult
from notebook_shell import notebook_shell

pytestmark = pytest.mark.on_disk


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = CatalogFactory.create({"warehouse": str(tmp_path / "lake")})
    catalog.sql("CREATE DATABASE shop")
    catalog.sql("CREATE TABLE shop.orders AS SELECT id, concat('c', id) AS city FROM range(3)")
    return catalog


@pytest.fixture
def lake(spark: SparkSession, catalog: Catalog, tmp_path: Path) -> Iterator[Lake]:
    lake = attach(spark, {"warehouse": str(tmp_path / "lake")}, databases=[])
    yield lake
    lake.detach()


# --- emberlake sql --spark ------------------------------------------------------------------------


@pytest.fixture
def warehouse(spark: SparkSession, catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> str:
    """The folder, which commands find by the environment; the session that runs is used."""
    folder = str(catalog.options["warehouse"])
    monkeypatch.setenv("EMBERLAKE_WAREHOUSE", folder)
    monkeypatch.setenv("XDG_CONFIG_HOME", folder)
    return folder


def test_statements_run_on_spark(warehouse: str, capfd: pytest.CaptureFixture[str]) -> None:
    script = (
        "USE shop; INSERT INTO orders VALUES (7, 'seven'); "
        "SELECT id, java_method('java.lang.String', 'valueOf', 1L) AS j FROM orders WHERE id > 1 "
        "ORDER BY id"
    )

    code = main(["sql", "--spark", "--csv", script])

    assert (code, capfd.readouterr().out) == (0, '"id","j"\n2,"1"\n7,"1"\n')


def test_all_forms_of_output(
    warehouse: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    query = "SELECT city, id FROM orders ORDER BY id DESC"
    on_spark = ["sql", "--spark", "-d", "shop"]

    main([*on_spark, query, "-n", "2"])
    done = capfd.readouterr()
    assert [line.split() for line in done.out.splitlines()[2:]] == [["c2", "2"], ["c1", "1"]]
    assert done.err.endswith("2 of 3 rows; -n 0 shows all\n")
    main([*on_spark, query, "--json", "-n", "1"])
    assert capfd.readouterr().out == (
        '{"columns": [{"name": "city", "type": "STRING"}, {"name": "id", "type": "BIGINT"}], '
        '"rows": [{"city": "c2", "id": 2}]}\n'
    )
    main([*on_spark, query, "--arrow", str(tmp_path / "out.arrow")])
    with pa.ipc.open_file(str(tmp_path / "out.arrow")) as file:
        assert file.read_all().to_pydict() == {"city": ["c2", "c1", "c0"], "id": [2, 1, 0]}
    capfd.readouterr()
    main(["sql", "--spark", "DROP TABLE shop.orders"])
    assert capfd.readouterr().out == "done\n"


def test_errors_of_spark_are_one_line(warehouse: str, capfd: pytest.CaptureFixture[str]) -> None:
    code = main(["sql", "--spark", "SELECT nope FROM shop.orders"])

    lines = capfd.readouterr().err.splitlines()
    assert (code, len(lines)) == (2, 1), lines
    assert lines[0].startswith("error: [UNRESOLVED_COLUMN.WITH_SUGGESTION]")
    assert main(["sql", "--master", "sc://there", "SELECT 1"]) == 2
    assert "give both" in capfd.readouterr().err


# --- rows -----------------------------------------------------------------------------------------


def test_a_result_is_a_stream_with_the_values_of_spark(lake: Lake) -> None:
    query = (
        "SELECT id, id AS id, CAST(id AS DECIMAL(9, 2)) AS d, TIMESTAMP_NTZ '2024-01-02 03:04:05' "
        "AS t, named_struct('a', array(id)) AS s, map('k', id) AS m, CAST(NULL AS DATE) AS n, "
        "X'00FF' AS b FROM range(2) ORDER BY id DESC"
    )

    result = SparkResult(lake.sql(query))

    streamed = result.to_batches().read_all()
    assert streamed.schema == result.schema == result.to_arrow().schema
    assert streamed.equals(result.to_arrow())
    assert [column.to_pylist()[0] for column in streamed.columns] == [
        1,
        1,
        Decimal("1.00"),
        dt.datetime(2024, 1, 2, 3, 4, 5),  # noqa: DTZ001 - it has no zone
        {"a": [1]},
        [("k", 1)],
        None,
        b"\x00\xff",
    ]
    assert result.first(1).read_all().num_rows == 1


def test_rows_of_one_task_at_a_time_are_held(lake: Lake) -> None:
    rows = SparkResult(lake.sql("SELECT id FROM range(0, 100000, 1, 4)")).to_batches()

    sizes = [batch.num_rows for batch in rows]

    assert sum(sizes) == 100_000
    assert max(sizes) <= 25_000


# --- notebooks ------------------------------------------------------------------------------------


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with notebook_shell(tmp_path, monkeypatch) as shell:
        yield shell


def test_a_cell_runs_on_spark_when_a_lake_is_attached(
    shell: Any, lake: Lake, spark: SparkSession
) -> None:
    shell.user_ns["frame"] = spark.createDataFrame([(2,), (9,)], "id long")
    shell.user_ns["rows"] = pa.table({"id": [2, 1]})
    shell.user_ns["orders"] = pa.table({"wrong": [0]})  # the table is meant, not this
    shell.user_ns["least"] = 0

    result = shell.run_cell(
        "%%emberlake\nUSE shop;\n"
        "SELECT city FROM orders JOIN frame USING (id) JOIN rows USING (id) WHERE id > :least"
    ).result

    assert isinstance(result, SparkResult)
    assert [tuple(row) for row in result.dataframe.collect()] == [("c2",)]
    assert ">c2</td>" in result._repr_html_()
    assert shell.run_line_magic("emberlake", "DELETE FROM orders WHERE id = 2") is None
    assert lake.sql("SELECT count(*) FROM orders").collect()[0][0] == 2


def test_what_was_named_is_used_and_not_the_lake(shell: Any, lake: Lake, catalog: Catalog) -> None:
    shell.user_ns["here"] = catalog
    shell.user_ns["there"] = lake

    shell.run_cell("%emberlake --connect here").raise_error()
    assert not isinstance(shell.run_line_magic("emberlake", "SELECT 1"), SparkResult)
    shell.run_cell("%emberlake --connect there").raise_error()
    assert isinstance(shell.run_line_magic("emberlake", "SELECT 1"), SparkResult)


def test_a_lake_that_was_detached_is_not_used(shell: Any, lake: Lake) -> None:
    lake.detach()

    with pytest.raises(InvalidInput, match="name a catalog first"):
        shell.run_line_magic("emberlake", "SELECT 1")

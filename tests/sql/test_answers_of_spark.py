"""``catalog.sql`` answers as Spark does: values, types and order, or it refuses."""

import json
from typing import Any

import pytest

from canonical import canonical_values
from emberlake import Catalog, CatalogFactory
from emberlake.errors import Unsupported
from sql.answers import answers, tables, type_text


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    catalog = CatalogFactory.create({"warehouse": str(tmp_path_factory.mktemp("lake"))})
    catalog.sql("CREATE DATABASE q")
    catalog.sql("USE q")
    for name, rows in tables().items():
        catalog.create_table(f"q.{name}", rows.schema).append(rows)
    return catalog


def test_queries_give_the_rows_and_types_that_spark_gave(catalog: Catalog) -> None:
    different = [query for query, wanted in answers().items() if differs(catalog, query, wanted)]

    assert different == []


def differs(catalog: Catalog, query: str, wanted: dict[str, Any]) -> bool:
    """Whether the rows or their types are others; the order counts where the query orders them."""
    table = catalog.sql(query).to_arrow()
    columns = (canonical_values(column) for column in table.columns)
    rows = [json.dumps(row) for row in zip(*columns, strict=True)]
    expected = [json.dumps(row) for row in wanted["rows"]]
    if "ORDER BY" not in query[query.rfind(")") + 1 :]:
        rows, expected = sorted(rows), sorted(expected)
    return [type_text(field.type) for field in table.schema] != wanted["types"] or rows != expected


@pytest.mark.parametrize(
    "text",
    [
        "SELECT soundex(v) FROM t",
        "SELECT to_json(r) FROM x",
        "SELECT d - DATE'2024-01-01' FROM d",
        "SELECT ts - ntz FROM d",
        "SELECT INTERVAL 1 DAY",
        "SELECT CAST(m AS STRING) FROM x",
        "SELECT id FROM x ORDER BY r",
        "SELECT max(a) FROM x",
        "SELECT * FROM c PIVOT (count(name) FOR city IN ('rome'))",
        "SELECT date_format(d, 'Q') FROM d",
        "SELECT split(v, ',', 2) FROM t",
        "SELECT v FROM t UNION ALL SELECT i FROM n",
        "SELECT coalesce(v, 1) FROM t",
        "SELECT v RLIKE '[[:digit:]]' FROM t",
        "SELECT CAST(r AS INT) FROM x",
        "SELECT sum(day - DATE'2024-01-01') FROM o",
    ],
)
def test_what_duckdb_would_answer_in_another_way_is_refused(catalog: Catalog, text: str) -> None:
    with pytest.raises(Unsupported, match="Spark"):
        catalog.sql(text).to_arrow()


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("SELECT count(*), sum(i), I, upper(g) FROM n GROUP BY i, g", "count(1) sum(i) I upper(g)"),
        ("SELECT i + 1, -i, CAST(b AS STRING), 1 FROM n WHERE id = 1", "(i + 1) (- i) b 1"),
        ("SELECT mean(c), isnull(1), isnotnull(1) FROM n", "mean(c) (1 IS NULL) (1 IS NOT NULL)"),
        ("SELECT * FROM o JOIN c USING (cid)", "cid oid amount day q x name city"),
        ("SELECT * FROM c NATURAL JOIN o", "cid name city oid amount day q x"),
    ],
)
def test_columns_are_called_and_placed_as_in_spark(catalog: Catalog, text: str, names: str) -> None:
    found = catalog.sql(text).to_arrow().schema.names

    assert " ".join(found) == names


def test_a_parameter_that_is_a_float_is_a_double(catalog: Catalog) -> None:
    table = catalog.sql("SELECT :x * 2 AS x", {"x": 1.5}).to_arrow()

    assert type_text(table.schema.field("x").type) == "double"


@pytest.mark.parametrize(
    ("value", "kind", "stored"),
    [
        ("2.5D", "STRING", "2.5"),
        ("1.5E300D", "STRING", "1.5E300"),
        ("'2024-1'", "DATE", "2024-01-01"),
        ("' yes '", "BOOLEAN", "true"),
        ("1.005D", "DECIMAL(5, 2)", "1.01"),
    ],
)
def test_values_are_cast_to_the_types_of_columns(
    catalog: Catalog, value: str, kind: str, stored: str
) -> None:
    catalog.sql(f"CREATE OR REPLACE TABLE one (x {kind})")
    catalog.sql(f"INSERT INTO one SELECT {value}")

    assert catalog.sql("SELECT string(x) FROM one").fetchall() == [(stored,)]


@pytest.mark.parametrize("value", ["X'41'", "array(1)", "struct(1)", "DATE'2024-01-01'"])
def test_what_is_no_number_is_never_null(catalog: Catalog, value: str) -> None:
    with pytest.raises(Unsupported, match="without Spark"):
        catalog.sql(f"SELECT CAST({value} AS INT)").to_arrow()

"""No macro repeats an argument that is large or volatile."""

import pyarrow as pa
import pytest

from emberlake.sql.on_duckdb.connection import Database, Prepared
from emberlake.sql.on_duckdb.dialect import parse_query, to_duckdb
from emberlake.sql.on_duckdb.typed_rules import apply_types
from emberlake.types.arrow import from_arrow_schema


def rows(query: str) -> pa.Table:
    """The answer of DuckDB to a query of Spark without tables."""
    return Database().stream(Prepared(to_duckdb(parse_query(query)))).read_all()


@pytest.mark.parametrize(
    "pattern",
    [
        "round(cast(cast({} AS string) AS double), 2)",
        "cast(cast({} AS string) AS int)",
        "ceil({} + 0.5D)",
        "cast(cast({} AS string) AS decimal(12, 2))",
    ],
)
def test_the_text_for_duckdb_names_a_nested_argument_once(pattern: str) -> None:
    nested = "x"
    for _ in range(6):
        nested = pattern.format(nested)

    text = to_duckdb(parse_query(f"SELECT {nested} FROM t"))

    assert text.count('"x"') == 1
    assert "list_transform" in text


def test_nested_casts_have_the_values_that_single_ones_have() -> None:
    nested = "12.345D"
    for _ in range(6):
        nested = f"round(cast(cast({nested} AS string) AS double), 2)"

    assert rows(f"SELECT {nested} AS x").column("x").to_pylist() == [12.35]


def test_a_random_argument_is_one_number_in_all_places() -> None:
    found = rows("SELECT pmod(cast(rand() * 10 AS int) - 5, 3) AS x FROM range(2000)")

    assert set(found.column("x").to_pylist()) == {0, 1, 2}


def test_nested_values_are_grouped() -> None:
    key = "cast(cast(cast(cast(id % 2 AS string) AS double) AS string) AS double)"

    found = rows(f"SELECT {key} AS k, count(*) AS n FROM range(10) AS r(id) GROUP BY {key}")

    assert sorted(zip(*found.to_pydict().values(), strict=True)) == [(0.0, 5), (1.0, 5)]


def test_a_plain_column_is_not_wrapped() -> None:
    text = to_duckdb(parse_query("SELECT substring(s, 1, 2), round(d, 1), year(day) FROM t"))

    assert "list_transform" not in text


def test_a_pattern_without_a_backslash_has_no_escape() -> None:
    text = to_duckdb(
        parse_query(r"SELECT 1 FROM t WHERE s LIKE 'a%' AND s LIKE '\\%' AND s LIKE p")
    )

    assert text.count("ESCAPE") == 2


def test_a_long_sum_of_decimals_has_its_digits_at_once() -> None:
    table = {"t": from_arrow_schema(pa.schema([("x", pa.decimal128(12, 2))]))}
    tree = parse_query(f"SELECT {' + '.join(['x'] * 40)} AS y FROM t")

    text = to_duckdb(apply_types(tree, table, lambda *_: "divided"))

    assert "DECIMAL(38, 2)" in text

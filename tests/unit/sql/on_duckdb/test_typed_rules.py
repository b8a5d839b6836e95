"""Expressions mean without Spark what they mean on Spark, by the types of their columns."""

from decimal import ROUND_HALF_UP, Decimal, localcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from emberlake import Catalog, CatalogFactory
from emberlake.errors import DataMismatch
from emberlake.sql.on_duckdb.decimals import divide
from emberlake.sql.on_duckdb.typing import Digits, divided


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = CatalogFactory.create({"warehouse": str(tmp_path)})
    catalog.sql("CREATE DATABASE db")
    catalog.sql("USE db")
    catalog.sql("CREATE TABLE a (id INT, c CHAR(3), m MAP<INT, STRING>, d DECIMAL(10, 2))")
    catalog.sql("INSERT INTO a VALUES (1, 'x', map(7, 'seven'), 10.5), (2, 'y', map(), 3)")
    catalog.sql("CREATE TABLE b (id INT, c STRING, m MAP<STRING, STRING>, d DOUBLE)")
    catalog.sql("INSERT INTO b VALUES (1, 'x', map('7', 'text'), 4), (2, 'y ', NULL, 2)")
    return catalog


def answer(catalog: Catalog, query: str) -> list[tuple[Any, ...]]:
    return catalog.sql(query).fetchall()


def test_only_columns_that_are_char_are_compared_with_spaces(catalog: Catalog) -> None:
    both = "SELECT {} FROM a JOIN b ON a.id = b.id WHERE {} ORDER BY 1"

    assert answer(catalog, both.format("a.id", "a.c = 'x'")) == [(1,)]
    assert answer(catalog, both.format("a.id", "b.c = 'x'")) == [(1,)]
    assert answer(catalog, both.format("a.id", "b.c = 'y'")) == []
    assert answer(catalog, "SELECT id FROM (SELECT * FROM a) s WHERE s.c IN ('x', 'z')") == [(1,)]
    assert answer(catalog, "SELECT id FROM b WHERE c = 'x'") == [(1,)]


def test_only_maps_whose_keys_are_numbers_are_asked_by_number(catalog: Catalog) -> None:
    query = "SELECT a.m[7], b.m['7'] FROM a JOIN b ON a.id = b.id ORDER BY a.id"

    assert answer(catalog, query) == [("seven", "text"), (None, None)]


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("avg(a.d)", "6.750000"),
        ("sum(a.d) / count(*)", "6.75000000000000000000"),
        ("sum(a.d) / 3", "4.500000"),
        ("max(1 / 3.0)", "0.333333"),
        ("avg(DISTINCT a.d) FILTER (WHERE a.d > 5)", "10.500000"),
        ("max(a.d / CAST(4 AS DECIMAL(3, 1)))", "2.625000"),
    ],
)
def test_decimals_are_divided_as_spark_does_it(
    catalog: Catalog, expression: str, wanted: str
) -> None:
    found = answer(catalog, f"SELECT {expression} AS x FROM a")
    inner = answer(catalog, f"SELECT x FROM (SELECT {expression} AS x FROM a) AS q")

    assert [str(value) for (value,) in found + inner] == [wanted, wanted]


def test_other_numbers_are_divided_as_floating_point(catalog: Catalog) -> None:
    query = "SELECT 7 / 2, max(a.d / b.d), avg(b.d) FROM a JOIN b ON a.id = b.id"

    assert answer(catalog, query) == [(3.5, 2.625, 3.0)]


def test_averages_over_windows(catalog: Catalog) -> None:
    query = "SELECT avg(d) OVER (ORDER BY id) FROM a ORDER BY id"

    assert [str(v) for (v,) in answer(catalog, query)] == ["10.500000", "6.750000"]


def test_division_by_zero_is_an_error(catalog: Catalog) -> None:
    with pytest.raises(DataMismatch, match="DIVIDE_BY_ZERO"):
        answer(catalog, "SELECT d / (d - d) FROM a")


_UNSCALED = st.one_of(st.integers(-1000, 1000), st.integers(-(10**18), 10**18))


@settings(examples(200))
@given(
    rows=st.lists(st.tuples(_UNSCALED | st.none(), _UNSCALED.filter(bool) | st.none()), max_size=9),
    scales=st.tuples(st.integers(0, 6), st.integers(0, 6)),
)
def test_quotients_are_exact_and_rounded_half_up(
    rows: list[tuple[int | None, int | None]], scales: tuple[int, int]
) -> None:
    digits = [Digits(19, scale) for scale in scales]
    result = divided(*digits)
    given_rows = [
        [
            None if v is None else Decimal(v).scaleb(-scale)
            for v, scale in zip(row, scales, strict=True)
        ]
        for row in rows
    ]
    columns = [
        pa.array([row[n] for row in given_rows], pa.decimal128(19, scales[n])) for n in range(2)
    ]

    found = divide(*columns, result)

    with localcontext(prec=100, rounding=ROUND_HALF_UP):
        wanted = [
            None if a is None or b is None else (a / b).quantize(Decimal(1).scaleb(-result.scale))
            for a, b in given_rows
        ]
    assert found.to_pylist() == wanted

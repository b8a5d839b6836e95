"""Words and forms of Spark's SQL that DuckDB does not know, in queries of ``catalog.sql``."""

from pathlib import Path
from typing import Any

import pytest

from emberlake import Catalog, CatalogFactory
from emberlake.errors import TableNotFound


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = CatalogFactory.create({"warehouse": str(tmp_path)})
    catalog.sql("CREATE DATABASE db")
    catalog.sql("USE db")
    catalog.sql("CREATE TABLE t (id INT, tags ARRAY<STRING>, m MAP<STRING, INT>)")
    catalog.sql("INSERT INTO t VALUES (1, array('a', 'b'), map('k', 1)), (2, array(), NULL)")
    return catalog


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("SELECT id, x FROM t LATERAL VIEW explode(tags) v AS x", [(1, "a"), (1, "b")]),
        (
            "SELECT id, x FROM t LATERAL VIEW OUTER explode(tags) v AS x",
            [(1, "a"), (1, "b"), (2, None)],
        ),
        ("SELECT id, k, n FROM t LATERAL VIEW explode(m) v AS k, n", [(1, "k", 1)]),
        ("SELECT v.pos, v.col FROM t, LATERAL posexplode(tags) AS v", [(0, "a"), (1, "b")]),
        (
            "SELECT id, p, x FROM t LATERAL VIEW OUTER posexplode(tags) v AS p, x WHERE id = 1",
            [(1, 0, "a"), (1, 1, "b")],
        ),
        ("SELECT id FROM t FOR SYSTEM_VERSION AS OF 1", [(1,), (2,)]),
        ("SELECT id FROM t FOR VERSION AS OF 1", [(1,), (2,)]),
        ("SELECT x.id FROM t WITH ('scan.snapshot-id' = 1) x, range(1)", [(1,), (2,)]),
        ("SELECT count(*) FROM t TIMESTAMP AS OF current_timestamp()", [(2,)]),
    ],
)
def test_forms_of_spark(catalog: Catalog, text: str, wanted: list[tuple[Any, ...]]) -> None:
    assert sorted(catalog.sql(text).fetchall(), key=str) == wanted


def test_words_of_the_grammar_are_names_where_a_name_must_stand(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE `select` (`from` INT, `where` STRING)")
    catalog.sql("INSERT INTO `select` VALUES (1, 'x')")

    assert catalog.sql("SELECT from FROM db.select").fetchall() == [(1,)]
    assert catalog.sql("SELECT s.from, s.where FROM db.select AS s").fetchall() == [(1, "x")]


def test_hidden_columns_say_where_rows_are(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE p (id INT, g STRING) PARTITIONED BY (g)")
    catalog.sql("INSERT INTO p VALUES (1, 'a'), (2, 'b')")

    found = catalog.sql(
        "SELECT *, __paimon_partition, __paimon_bucket, __paimon_row_index, __paimon_file_path "
        "FROM p ORDER BY id"
    ).fetchall()

    assert [row[:5] for row in found] == [(1, "a", {"g": "a"}, 0, 0), (2, "b", {"g": "b"}, 0, 0)]
    assert all(f"g={row[1]}" in row[5] for row in found)


def test_a_cached_view_keeps_its_rows_until_it_is_uncached(catalog: Catalog) -> None:
    catalog.sql("CACHE TABLE kept AS SELECT id FROM t")
    catalog.sql("INSERT INTO t (id) VALUES (3)")
    assert catalog.sql("SELECT count(*) FROM kept").fetchall() == [(2,)]

    catalog.sql("UNCACHE TABLE kept")

    assert catalog.sql("SELECT count(*) FROM kept").fetchall() == [(3,)]
    with pytest.raises(TableNotFound):
        catalog.sql("UNCACHE TABLE nope")
    catalog.sql("UNCACHE TABLE IF EXISTS nope")
    catalog.sql("CLEAR CACHE")

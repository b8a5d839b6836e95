"""DELETE, UPDATE and MERGE without Spark that only DuckDB can decide."""

from pathlib import Path
from typing import Any

import pytest

from emberlake import Catalog, CatalogFactory
from emberlake.errors import DataMismatch, EmberlakeError

APPEND = ""
KEYS = "TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '2')"
VECTORS = "TBLPROPERTIES ('deletion-vectors.enabled' = 'true')"
TRACKED = "TBLPROPERTIES ('row-tracking.enabled' = 'true')"
LAYOUTS = [APPEND, KEYS, VECTORS, TRACKED]


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = CatalogFactory.create({"warehouse": str(tmp_path)})
    catalog.sql("CREATE DATABASE db")
    catalog.sql("USE db")
    catalog.sql("CREATE TABLE other (k INT, v STRING)")
    catalog.sql("INSERT INTO other VALUES (2, 'two'), (3, 'three'), (9, 'nine')")
    return catalog


def make(catalog: Catalog, layout: str) -> None:
    catalog.sql(f"CREATE TABLE t (id INT NOT NULL, r STRUCT<a: INT, b: STRING>, v STRING) {layout}")
    catalog.sql(
        "INSERT INTO t SELECT id, named_struct('a', id, 'b', 'x'), 'old' FROM range(1, 5) AS s(id)"
    )


def rows(catalog: Catalog, columns: str = "id, v") -> list[tuple[Any, ...]]:
    return sorted(catalog.sql(f"SELECT {columns} FROM t").fetchall())


@pytest.mark.parametrize("layout", LAYOUTS)
def test_subqueries_may_depend_on_the_row(catalog: Catalog, layout: str) -> None:
    make(catalog, layout)

    catalog.sql("DELETE FROM t WHERE EXISTS (SELECT 1 FROM other WHERE k = t.id AND v > 'tr')")
    catalog.sql(
        "UPDATE t SET v = (SELECT max(o.v) FROM other o WHERE o.k = t.id) "
        "WHERE t.id IN (SELECT k FROM other WHERE k = t.id)"
    )
    catalog.sql("WITH w AS (SELECT 1 AS n) UPDATE t SET v = 'cte' WHERE id IN (SELECT n FROM w)")

    assert rows(catalog) == [(1, "cte"), (3, "three"), (4, "old")]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_fields_of_structs_are_set(catalog: Catalog, layout: str) -> None:
    make(catalog, layout)
    catalog.sql("UPDATE t SET r = NULL WHERE id = 4")

    catalog.sql("UPDATE t SET r.b = concat(r.b, id), v = upper(v) WHERE id > 2")

    assert rows(catalog, "id, r.a, r.b, v")[2:] == [(3, 3, "x3", "OLD"), (4, None, None, "OLD")]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_merge_may_join_in_any_way(catalog: Catalog, layout: str) -> None:
    make(catalog, layout)

    catalog.sql(
        "MERGE INTO t USING (SELECT max(k) AS k FROM other) s ON t.id * 3 > s.k + 1 "
        "WHEN MATCHED THEN UPDATE SET v = concat('above ', s.k) "
        "WHEN NOT MATCHED BY SOURCE AND t.id = 1 THEN DELETE"
    )
    catalog.sql(
        "MERGE INTO t USING other s ON false WHEN NOT MATCHED AND s.k > 3 "
        "THEN INSERT (id, v) VALUES (s.k * 10, s.v)"
    )

    assert rows(catalog) == [(2, "old"), (3, "old"), (4, "above 9"), (90, "nine")]


def test_a_row_that_several_rows_match_is_refused_whatever_happens_to_it(catalog: Catalog) -> None:
    make(catalog, APPEND)
    catalog.sql("INSERT INTO other VALUES (2, 'again')")
    before = rows(catalog)

    for clause in ("THEN DELETE", "AND s.v = 'two' THEN UPDATE SET v = s.v"):
        with pytest.raises(DataMismatch, match="several rows"):
            catalog.sql(f"MERGE INTO t USING other s ON t.id = s.k WHEN MATCHED {clause}")

    assert rows(catalog) == before


def test_keys_of_rows_stay(catalog: Catalog) -> None:
    make(catalog, KEYS)

    with pytest.raises(EmberlakeError, match="primary key"):
        catalog.sql("MERGE INTO t USING other s ON t.id = s.k WHEN MATCHED THEN UPDATE SET id = 7")
    catalog.sql("MERGE INTO t USING other s ON t.id = s.k WHEN MATCHED THEN UPDATE SET id = s.k")

    assert [row[0] for row in rows(catalog)] == [1, 2, 3, 4]


def test_columns_that_only_the_source_has_are_added_where_a_setting_says_so(
    catalog: Catalog,
) -> None:
    make(catalog, APPEND)
    catalog.sql("SET `spark.paimon.write.merge-schema` = true")

    catalog.sql("INSERT INTO t BY NAME SELECT 5 AS id, 2.5D AS more")
    catalog.sql(
        "MERGE INTO t USING (SELECT 5 AS id, NULL AS r, 'm' AS v, 1D AS more, true AS yes) s "
        "ON t.id = s.id WHEN MATCHED THEN UPDATE SET *"
    )

    assert rows(catalog, "id, v, more, yes")[-1] == (5, "m", 1.0, True)


def test_deletes_on_tables_that_take_none_write_the_rest_again(catalog: Catalog) -> None:
    make(catalog, KEYS.replace(")", ", 'merge-engine' = 'first-row')"))

    catalog.sql("DELETE FROM t WHERE id IN (SELECT k FROM other)")
    catalog.sql("DELETE FROM t WHERE id = 77")

    assert rows(catalog) == [(1, "old"), (4, "old")]

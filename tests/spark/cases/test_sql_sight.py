"""What a query sees, sentence by sentence of docs/sql.md."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from emberlake import Catalog, CatalogFactory
from emberlake.spark import Lake, attach

pytestmark = pytest.mark.on_disk
IDS = pa.schema([("id", pa.int32())])


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = CatalogFactory.create({"warehouse": str(tmp_path)})
    catalog.create_database("seen")
    for name in ("a", "b"):
        catalog.create_table(f"seen.{name}", IDS)
        add(catalog, name, 1)
    return catalog


@pytest.fixture
def lake(spark: SparkSession, catalog: Catalog, tmp_path: Path) -> Iterator[Lake]:
    lake = attach(spark, {"warehouse": str(tmp_path)})
    yield lake
    lake.detach()


def add(catalog: Catalog, name: str, number: int) -> None:
    catalog.get_table(f"seen.{name}").append(pa.table({"id": [number]}, IDS))


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.collect())


def test_a_dataframe_stays_at_the_snapshots_of_the_start_of_its_statement(
    lake: Lake, catalog: Catalog
) -> None:
    both = lake.sql("SELECT * FROM seen.a UNION ALL SELECT * FROM seen.b")

    add(catalog, "a", 2)
    add(catalog, "b", 2)

    assert rows(both) == [(1,), (1,)]
    assert rows(both.filter("id > 0")) == [(1,), (1,)]
    lake.sql("INSERT INTO seen.a SELECT a.id + 10 FROM seen.a CROSS JOIN seen.a AS again")
    assert rows(lake.sql("SELECT * FROM seen.a")) == [(1,), (2,), (11,), (11,), (12,), (12,)]


def test_spark_sees_a_temporary_view_as_lake_sql_last_used_it(
    spark: SparkSession, lake: Lake, catalog: Catalog
) -> None:
    lake.sql("CREATE TEMPORARY VIEW seen_view AS SELECT id FROM seen.a")
    try:
        add(catalog, "a", 2)
        assert rows(spark.sql("SELECT * FROM seen_view")) == [(1,)]

        assert rows(lake.sql("SELECT * FROM seen_view")) == [(1,), (2,)]
        assert rows(spark.sql("SELECT * FROM seen_view")) == [(1,), (2,)]
    finally:
        lake.sql("DROP VIEW seen_view")


def test_spark_knows_new_columns_after_the_next_statement_of_the_lake(
    spark: SparkSession, lake: Lake, catalog: Catalog
) -> None:
    catalog.sql("ALTER TABLE seen.a ADD COLUMN more STRING")
    catalog.create_table("seen.c", IDS)
    assert not spark.catalog.tableExists("seen.c")

    lake.sql("SELECT 1")

    assert spark.sql("SELECT * FROM seen.a").columns == ["id", "more"]
    assert rows(spark.sql("SELECT * FROM seen.c")) == []
    add(catalog, "b", 2)
    assert rows(spark.sql("SELECT * FROM seen.b")) == [(1,), (2,)]


def test_no_databases_leave_sparks_catalog_empty(
    spark: SparkSession, catalog: Catalog, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    lake = attach(spark, {"warehouse": str(tmp_path)}, databases=[])
    request.addfinalizer(lake.detach)

    assert rows(lake.sql("SELECT * FROM seen.a")) == [(1,)]
    assert not spark.catalog.databaseExists("seen")


def test_a_temporary_view_hides_a_table_of_its_name(
    spark: SparkSession, lake: Lake, catalog: Catalog
) -> None:
    lake.sql("USE seen")
    spark.sql("SELECT 99 AS id").createOrReplaceTempView("b")
    try:
        assert rows(lake.sql("SELECT * FROM b")) == [(99,)]
        assert rows(lake.sql("SELECT * FROM seen.b")) == [(1,)]
    finally:
        spark.catalog.dropTempView("b")

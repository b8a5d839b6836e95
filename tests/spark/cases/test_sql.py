"""SQL on tables of a lake, in a Spark session that has no JAR."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from emberlake import Catalog, CatalogFactory, InvalidInput, TableNotFound
from emberlake.spark import Lake, attach, sql


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Iterator[Lake]:
    catalog = catalog_in(tmp_path)
    catalog.create_database("shop")
    orders = pa.schema([("id", pa.int32()), ("city", pa.string()), ("price", pa.decimal128(9, 2))])
    catalog.create_table("shop.orders", orders, partition_keys=["city"])
    people = pa.schema([pa.field("id", pa.int32(), nullable=False), ("name", pa.string())])
    catalog.create_table("shop.people", people, primary_keys=["id"], options={"bucket": "2"})
    lake = attach(spark, {"warehouse": str(tmp_path)})
    lake.sql("INSERT INTO shop.orders VALUES (1, 'rome', 10), (2, 'oslo', 20.5), (3, 'rome', NULL)")
    lake.sql("INSERT INTO shop.people VALUES (1, 'Ann'), (2, 'Bob')")
    yield lake
    lake.detach()


def catalog_in(folder: Path) -> Catalog:
    return CatalogFactory.create({"warehouse": str(folder)})


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in frame.collect()), key=str)


def test_names_of_a_query_are_tables_of_the_lake(spark: SparkSession, lake: Lake) -> None:
    lake.sql("INSERT INTO shop.people VALUES (2, 'Bo')")
    frame = spark.createDataFrame([(1, "x")], "id int, mark string")

    def found(query: str, args: Any = None, **frames: DataFrame) -> list[Any]:
        return rows(lake.sql(query, args, **frames))

    joined = "SELECT o.id, name FROM shop.orders o JOIN paimon.shop.people p ON o.id = p.id"
    assert found(joined) == [(1, "Ann"), (2, "Bo")]
    assert found(
        "SELECT shop.orders.id FROM shop.orders WHERE shop.orders.price > :p", {"p": 15}
    ) == [(2,)]
    assert found("SELECT *, '{mark} shop.nope' AS m FROM marks -- shop.nope", marks=frame) == [
        (1, "x", "{mark} shop.nope")
    ]
    assert found("WITH people AS (SELECT 7 AS id) SELECT * FROM people") == [(7,)]
    assert found("SELECT name FROM shop.people VERSION AS OF 1") == [("Ann",), ("Bob",)]
    assert found("SELECT count(*) FROM shop.`people$snapshots`") == [(2,)]
    assert found("SELECT *, __paimon_partition.city FROM shop.orders WHERE id = 2") == [
        (2, "oslo", pytest.approx(20.5), "oslo")
    ]
    assert found("SELECT sys.max_pt('shop.orders')") == [("rome",)]
    assert found("SELECT id FROM IDENTIFIER('shop.people') WHERE id = 1") == [(1,)]
    lake.sql("USE shop")
    assert found("SELECT shop.people.id FROM people WHERE id = ?", [2]) == [(2,)]
    options = "WITH ('scan.snapshot-id' = '1')"
    assert found(f"SELECT p.name FROM people {options} p WHERE id = 2") == [("Bob",)]
    with pytest.raises(TableNotFound, match="case-sensitive"):
        lake.sql("SELECT * FROM shop.People")
    with pytest.raises(AnalysisException, match=r"Did you mean .*`price`"):
        lake.sql("SELECT pric FROM shop.orders WHERE id > 1")  # price is not in the scan
    with pytest.raises(InvalidInput, match="not a Spark DataFrame"):
        lake.sql("SELECT * FROM x", x=[1])  # type: ignore[arg-type]


def test_all_tables_of_a_query_are_read_at_one_moment(lake: Lake) -> None:
    before = lake.sql("SELECT count(*) FROM shop.orders")
    view = "CREATE TEMPORARY VIEW dear AS SELECT id FROM shop.orders WHERE price > 15"
    lake.sql(view)

    lake.sql("INSERT INTO shop.orders VALUES (4, 'bern', 99)")

    assert rows(before) == [(3,)]
    assert rows(lake.sql("SELECT count(*) FROM shop.orders")) == [(4,)]
    assert rows(lake.sql("SELECT * FROM dear")) == [(2,), (4,)]
    lake.sql("DROP VIEW dear")


def test_rows_are_inserted_deleted_updated_and_merged(spark: SparkSession, lake: Lake) -> None:
    lake.sql("INSERT OVERWRITE shop.orders PARTITION (city = 'oslo') VALUES ('5', 1.239)")
    lake.sql("DELETE FROM shop.orders AS o WHERE id IN (SELECT id FROM shop.people WHERE id = 1)")
    lake.sql("UPDATE shop.orders SET price = (SELECT max(id) FROM shop.people) WHERE price IS NULL")
    lake.sql(
        """
        MERGE INTO shop.people p USING (SELECT * FROM shop.orders) s ON p.id = s.id
        WHEN MATCHED THEN DELETE
        WHEN NOT MATCHED AND s.id > 3 THEN INSERT (id, name) VALUES (s.id, upper(s.city))
        WHEN NOT MATCHED BY SOURCE AND p.id = 2 THEN UPDATE SET name = concat(name, '!')
        """
    )

    orders = rows(lake.sql("SELECT id, city, CAST(price AS DOUBLE) FROM shop.orders"))
    assert orders == [(3, "rome", 2.0), (5, "oslo", 1.24)]
    people = rows(lake.sql("SELECT * FROM shop.people"))
    assert people == [(1, "Ann"), (2, "Bob!"), (5, "OSLO")]
    lake.sql("DELETE FROM shop.orders WHERE city = 'rome'")
    lake.sql("TRUNCATE TABLE shop.people")
    assert rows(lake.sql("SELECT id FROM shop.orders UNION ALL SELECT id FROM shop.people")) == [
        (5,)
    ]


def test_spark_knows_attached_tables_and_reads_their_current_rows(
    spark: SparkSession, lake: Lake, tmp_path: Path
) -> None:
    catalog = catalog_in(tmp_path)

    spark.sql("INSERT INTO shop.orders VALUES (6, 'bern', 1)")
    assert rows(spark.sql("SELECT id FROM shop.orders WHERE id > 2")) == [(3,), (6,)]
    lake.sql("DELETE FROM shop.orders WHERE id = 6")
    assert rows(spark.sql("SELECT count(*) FROM shop.orders")) == [(3,)]

    odd = pa.schema([("id", pa.int32())])
    catalog.create_table("shop.later", odd)
    catalog.create_table("shop.`a b`", odd)
    assert not spark.catalog.tableExists("shop.later")
    lake.refresh()
    assert rows(spark.sql("SELECT count(*) FROM shop.later")) == [(0,)]
    assert list(lake.left_out) == ["shop.a b"]

    catalog.drop_table("shop.later")
    lake.detach()
    assert not spark.catalog.databaseExists("shop")


def test_names_that_spark_has_are_left_alone(spark: SparkSession, tmp_path: Path) -> None:
    catalog = catalog_in(tmp_path)
    catalog.create_database("default")
    catalog.create_table("default.taken", pa.schema([("id", pa.int32())]))
    spark.sql("CREATE TABLE taken AS SELECT 'mine' AS v")
    try:
        lake = attach(spark, {"warehouse": str(tmp_path)})

        assert rows(spark.sql("SELECT * FROM taken")) == [("mine",)]
        assert lake.left_out == {"default.taken": "Spark has a table or view of that name"}
        assert rows(lake.sql("SELECT * FROM taken")) == []
        lake.sql("CREATE TEMPORARY VIEW seen AS SELECT id AS n FROM taken")
        assert rows(lake.sql("DESCRIBE seen")) == [("n", "int", None)]
        lake.sql(
            "INSERT INTO spark_catalog.default.taken SELECT string(n) FROM seen UNION SELECT 'more'"
        )
        lake.sql("DROP VIEW seen")
        lake.detach()
        assert rows(spark.sql("SELECT * FROM taken")) == [("mine",), ("more",)]
    finally:
        spark.sql("DROP TABLE taken")


def test_one_statement_needs_no_lake(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    options = {"warehouse": str(tmp_path)}

    assert rows(sql("SELECT name FROM shop.people WHERE id = :i", options, spark, {"i": 1})) == [
        ("Ann",)
    ]
    assert rows(sql("SELECT 1 AS one", options, spark)) == [(1,)]

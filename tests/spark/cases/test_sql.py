"""SQL on tables of a lake, in a Spark session that has no JAR."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, NumberFormatException
from pyspark.sql import DataFrame, SparkSession

from emberlake import Catalog, CatalogFactory, InvalidInput, TableNotFound
from emberlake.errors import InvalidSchema, InvalidSql
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


def test_parts_of_values_obey_the_types_of_their_columns(lake: Lake) -> None:
    lake.sql(
        "CREATE TABLE shop.parts (id INT, s STRUCT<a: INT NOT NULL, v: VARCHAR(2)>, "
        "l ARRAY<CHAR(3)>, m MAP<STRING, VARCHAR(2)>)"
    )

    lake.sql(
        "INSERT INTO shop.parts SELECT id, named_struct('a', id, 'v', 'xy '), array('a', NULL), "
        "map('k', 'z') FROM shop.orders WHERE id = 1"
    )

    assert rows(lake.sql("SELECT id, s.a, s.v, l, m['k'] FROM shop.parts")) == [
        (1, 1, "xy", ["a  ", None], "z")
    ]
    for wrong in (
        "named_struct('a', 1, 'v', 'xyz'), NULL, NULL",
        "NULL, array('abcd'), NULL",
        "NULL, NULL, map('k', 'xyz')",
        "named_struct('a', CAST(NULL AS INT), 'v', 'x'), NULL, NULL",
    ):
        with pytest.raises(Exception, match=r"EXCEED_LIMIT_LENGTH|its value is null"):
            lake.sql(f"INSERT INTO shop.parts SELECT 2, {wrong}")


def test_partition_columns_that_insert_names_without_a_value_come_last(lake: Lake) -> None:
    lake.sql("CREATE TABLE shop.first (g STRING, id INT) PARTITIONED BY (g)")

    lake.sql("INSERT INTO shop.first PARTITION (g) SELECT 1, 'a'")
    lake.sql("INSERT INTO shop.first PARTITION (g) SELECT 'b' AS g, 2 AS id")
    lake.sql("INSERT INTO shop.first SELECT 'c', 3")

    assert rows(lake.sql("SELECT g, id FROM shop.first")) == [("a", 1), ("b", 2), ("c", 3)]


def test_a_plain_name_in_a_clause_of_merge_means_the_side_that_has_rows(lake: Lake) -> None:
    lake.sql("CREATE TABLE shop.new_people (id INT, name STRING)")
    lake.sql("INSERT INTO shop.new_people VALUES (1, 'Ada'), (5, 'Eve'), (60, 'Zoe')")

    lake.sql(
        "MERGE INTO shop.people t USING shop.new_people s ON t.id = s.id "
        "WHEN NOT MATCHED AND id < 50 THEN INSERT (id, name) VALUES (id + 1, upper(name)) "
        "WHEN NOT MATCHED BY SOURCE AND id = 2 THEN UPDATE SET name = concat(name, '!')"
    )

    assert rows(lake.sql("SELECT * FROM shop.people")) == [(1, "Ann"), (2, "Bob!"), (6, "EVE")]


def test_merge_evolves_the_schema_by_what_its_clauses_set(spark: SparkSession, lake: Lake) -> None:
    lake.sql("CREATE TABLE shop.wide (id INT, n INT DEFAULT 9, s STRUCT<a: INT>)")
    lake.sql("INSERT INTO shop.wide VALUES (1, 10, struct(7))")
    source = "SELECT 1 AS id, 'x' AS more, 0 AS other"
    stars = "SELECT id, named_struct('b', 'new') AS s FROM VALUES (1), (2) AS v(id)"
    merge = "MERGE INTO shop.wide t USING ({}) q ON t.id = q.id WHEN MATCHED THEN UPDATE SET {}"
    spark.conf.set("spark.paimon.write.merge-schema", "true")
    try:
        lake.sql(merge.format(source, "n = 11"))
        unchanged = lake.sql("SELECT * FROM shop.wide").columns
        lake.sql(merge.format(source, "more = q.more"))
        lake.sql(merge.format(stars, "*") + " WHEN NOT MATCHED THEN INSERT *")
        lake.sql("INSERT INTO shop.wide BY NAME SELECT 3 AS id, named_struct('b', 'only') AS s")
    finally:
        spark.conf.unset("spark.paimon.write.merge-schema")

    assert unchanged == ["id", "n", "s"]
    assert rows(lake.sql("SELECT id, n, s.a, s.b, more FROM shop.wide")) == [
        (1, 11, 7, "new", "x"),
        (2, 9, None, "new", None),
        (3, 9, None, "only", None),
    ]


def test_a_table_is_replaced_by_a_query_of_itself(lake: Lake) -> None:
    lake.sql("CREATE OR REPLACE TABLE shop.people AS SELECT id * 10 AS n, name FROM shop.people")
    assert rows(lake.sql("SELECT * FROM shop.people")) == [(10, "Ann"), (20, "Bob")]

    lake.sql(
        "CREATE OR REPLACE TABLE shop.people PARTITIONED BY (name) AS SELECT * FROM shop.people"
    )
    assert rows(lake.sql("SELECT * FROM shop.people")) == [(10, "Ann"), (20, "Bob")]
    assert rows(lake.sql("SHOW PARTITIONS shop.people")) == [("name=Ann",), ("name=Bob",)]


@pytest.mark.parametrize("partitions", ["", "PARTITIONED BY (n)"])
def test_a_table_is_as_before_if_the_query_that_should_replace_it_fails(
    lake: Lake, partitions: str
) -> None:
    tables = rows(lake.sql("SHOW TABLES IN shop"))

    with pytest.raises(NumberFormatException):
        lake.sql(
            f"CREATE OR REPLACE TABLE shop.people {partitions} AS "
            "SELECT id AS n, CAST(name AS INT) AS m FROM shop.people"
        )

    assert rows(lake.sql("SELECT * FROM shop.people")) == [(1, "Ann"), (2, "Bob")]
    assert rows(lake.sql("SHOW TABLES IN shop")) == tables


def test_several_inserts_see_the_tables_before_the_first_of_them(lake: Lake) -> None:
    lake.sql("CREATE TABLE shop.others (id INT, name STRING)")

    lake.sql(
        "FROM shop.people INSERT OVERWRITE shop.people SELECT id, name WHERE id = 1 "
        "INSERT INTO shop.others SELECT id, name WHERE id > 1"
    )

    assert rows(lake.sql("SELECT * FROM shop.people")) == [(1, "Ann")]
    assert rows(lake.sql("SELECT * FROM shop.others")) == [(2, "Bob")]


def test_clauses_of_merge_do_not_see_the_side_that_has_no_row(lake: Lake) -> None:
    merge = "MERGE INTO shop.people t USING (SELECT 9 AS id, 5 AS x) s ON t.id = s.id WHEN "
    for clause in (
        "NOT MATCHED THEN INSERT (id, name) VALUES (s.id, t.name)",
        "NOT MATCHED AND name IS NULL THEN INSERT (id) VALUES (s.id)",
        "NOT MATCHED BY SOURCE AND s.x IS NULL THEN DELETE",
    ):
        with pytest.raises(AnalysisException, match="UNRESOLVED_COLUMN"):
            lake.sql(merge + clause)
    assert rows(lake.sql("SELECT * FROM shop.people")) == [(1, "Ann"), (2, "Bob")]


def test_a_null_without_a_type_fits_every_column_and_adds_none(
    spark: SparkSession, lake: Lake
) -> None:
    spark.conf.set("spark.paimon.write.merge-schema", "true")
    try:
        lake.sql("INSERT INTO shop.people BY NAME SELECT 3 AS id, NULL AS name, 1 AS more")
        lake.sql(
            "MERGE INTO shop.people t USING (SELECT 1 AS id, NULL AS name, 2 AS more) s "
            "ON t.id = s.id WHEN MATCHED THEN UPDATE SET *"
        )
        with pytest.raises(InvalidSchema, match="void"):
            lake.sql("INSERT INTO shop.people BY NAME SELECT 4 AS id, NULL AS unknown")
    finally:
        spark.conf.unset("spark.paimon.write.merge-schema")

    assert rows(lake.sql("SELECT * FROM shop.people WHERE id <> 2")) == [(1, None, 2), (3, None, 1)]


def test_parameters_are_bound_in_versions_and_commands(lake: Lake) -> None:
    lake.sql("CALL sys.create_tag(:table, :tag)", {"table": "shop.people", "tag": "it's"})
    lake.sql("DELETE FROM shop.people WHERE id = ?", [1])

    old = lake.sql("SELECT * FROM shop.people VERSION AS OF :tag", {"tag": "it's"})
    assert rows(old) == [(1, "Ann"), (2, "Bob")]


def test_changes_up_to_an_automatic_tag_are_a_table(lake: Lake) -> None:
    lake.sql("CALL sys.create_tag('shop.people', '2024-12-01')")
    lake.sql("INSERT INTO shop.people VALUES (2, 'Bo'), (3, 'Cid')")
    lake.sql("CALL sys.create_tag('shop.people', '2024-12-03')")

    changed = "SELECT * FROM paimon_incremental_to_auto_tag('shop.people', :tag)"
    assert rows(lake.sql(changed, {"tag": "2024-12-03"})) == [(2, "Bo"), (3, "Cid")]
    assert rows(lake.sql(changed, {"tag": "2024-12-02"})) == []


def test_views_with_comments_altered_views_and_cached_ones_stay_readable(lake: Lake) -> None:
    try:
        lake.sql(
            "CREATE TEMPORARY VIEW few (no COMMENT 'its number', city) COMMENT 'some' AS "
            "SELECT id, city FROM shop.orders WHERE id < 3"
        )
        assert rows(lake.sql("SELECT no FROM few")) == [(1,), (2,)]
        assert rows(lake.sql("DESCRIBE few"))[1] == ("no", "int", "its number")
        lake.sql("ALTER VIEW few AS SELECT count(*) AS n FROM shop.orders")
        lake.sql("INSERT INTO shop.orders VALUES (4, 'rome', 1)")
        assert rows(lake.sql("SELECT n FROM few")) == [(4,)]
        lake.sql("CACHE LAZY TABLE kept SELECT id FROM shop.people")
        assert rows(lake.sql("SELECT * FROM kept")) == [(1,), (2,)]
        with pytest.raises(TableNotFound, match="no temporary view nope"):
            lake.sql("ALTER VIEW nope AS SELECT 1")
        with pytest.raises(InvalidSql, match="end of the statement"):
            lake.sql("SELECT * FROM paimon_incremental_query('shop.orders$branch_b', 1, 2)")
    finally:
        lake.sql("UNCACHE TABLE IF EXISTS kept")
        for view in ("few", "kept"):
            lake.sql(f"DROP VIEW IF EXISTS {view}")

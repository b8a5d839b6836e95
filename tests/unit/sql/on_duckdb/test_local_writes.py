"""INSERT, DELETE, UPDATE and MERGE of ``catalog.sql``."""

from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from emberlake import Catalog, CatalogFactory, Identifier, Schema, SchemaChange, Table
from emberlake.catalog.filesystem import FileSystemCatalog
from emberlake.errors import (
    ColumnNotFound,
    CommitConflict,
    DataMismatch,
    EmberlakeError,
    InvalidSchema,
    InvalidSql,
    InvalidState,
    StorageError,
)
from remote_storage import RemoteStorage


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = CatalogFactory.create({"warehouse": str(tmp_path)})
    catalog.sql("CREATE DATABASE db")
    catalog.sql("USE db")
    return catalog


def rows(catalog: Catalog, table: str = "t") -> list[tuple[Any, ...]]:
    return sorted(catalog.sql(f"SELECT * FROM {table}").fetchall(), key=str)


def test_values_are_cast_as_spark_casts_them(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE t (i INT, s STRING, d DECIMAL(5, 2), c CHAR(3), b BINARY)")

    catalog.sql("INSERT INTO t VALUES ('8', 8, 1, 'x', 'é')")
    catalog.sql("INSERT INTO t VALUES (8.9, true, '1.5', 'y     ', NULL)")
    catalog.sql("INSERT INTO t (i, s) SELECT TIMESTAMP '1970-01-01 00:01:00', named_struct('a', 1)")

    assert [row[:2] for row in rows(catalog)] == [(60, "{1}"), (8, "8"), (8, "true")]
    assert {row[3] for row in rows(catalog)} == {"x  ", "y  ", None}
    for bad in ("'abc'", "3000000000"):
        with pytest.raises(DataMismatch):
            catalog.sql(f"INSERT INTO t (i) VALUES ({bad})")
    assert len(rows(catalog)) == 3


def test_values_of_partition_columns_come_last_where_partition_names_them(
    catalog: Catalog,
) -> None:
    catalog.sql("CREATE TABLE t (g STRING, id INT, v STRING DEFAULT 'd') PARTITIONED BY (g)")

    catalog.sql("INSERT INTO t PARTITION (g) VALUES (1, DEFAULT, 'a')")
    catalog.sql("INSERT INTO t PARTITION (g) SELECT id + 1, 'v', g FROM t")
    catalog.sql("INSERT INTO t PARTITION (g) SELECT g, id + 2 AS id, v FROM t WHERE id = 1")
    catalog.sql("INSERT INTO t VALUES ('b', 4, 'as in the table')")

    assert rows(catalog) == [
        ("a", 1, "d"),
        ("a", 2, "v"),
        ("a", 3, "d"),
        ("b", 4, "as in the table"),
    ]


def test_a_condition_is_a_boolean(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE t (id INT, b BOOLEAN, g INT) PARTITIONED BY (g)")
    catalog.sql("INSERT INTO t VALUES (1, true, 1), (0, false, 0)")

    for text in (
        "DELETE FROM t WHERE id",
        "DELETE FROM t WHERE g",
        "UPDATE t SET id = 5 WHERE (t.id) AND b",
        "SELECT * FROM t WHERE NOT id",
        "SELECT * FROM t JOIN t u ON t.id",
        "SELECT if(id, 1, 2) FROM t",
        "SELECT b FROM t GROUP BY b HAVING 1",
    ):
        with pytest.raises(InvalidSql, match="is not a boolean"):
            catalog.sql(text)
    assert catalog.sql("SELECT id FROM t WHERE b AND NOT (b IS NULL)").fetchall() == [(1,)]
    assert catalog.sql("SELECT CASE id WHEN 1 THEN 'x' END FROM t WHERE b").fetchall() == [("x",)]


def test_an_alias_is_the_only_name_of_the_table_in_any_case(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE t (id INT, v STRING)")
    catalog.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")

    catalog.sql("UPDATE t AS X SET x.v = concat(x.V, '!') WHERE x.ID = 1")
    catalog.sql("DELETE FROM t Y WHERE y.id = 2")

    assert rows(catalog) == [(1, "a!")]
    for text in ("UPDATE t x SET v = 'z' WHERE t.id = 1", "DELETE FROM t x WHERE t.id = 1"):
        with pytest.raises(InvalidSql, match="no table t"):
            catalog.sql(text)


def test_a_column_of_the_key_may_be_set_to_itself(catalog: Catalog) -> None:
    catalog.sql(
        "CREATE TABLE t (id INT, g INT, v STRING) PARTITIONED BY (g) "
        "TBLPROPERTIES ('primary-key' = 'id,g', 'bucket' = '1')"
    )
    catalog.sql("INSERT INTO t VALUES (1, 1, 'a')")

    catalog.sql("UPDATE t AS x SET id = x.id, x.g = g, v = 'b'")
    catalog.sql("UPDATE t SET id = `t`.id")

    assert rows(catalog) == [(1, 1, "b")]
    with pytest.raises(EmberlakeError, match="cannot be updated"):
        catalog.sql("UPDATE t SET id = g")


def test_changes_of_a_postponed_table_are_visible_at_once(catalog: Catalog) -> None:
    catalog.sql(
        "CREATE TABLE t (id INT, v STRING) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '-2')"
    )
    catalog.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')")

    catalog.sql("UPDATE t SET v = 'u' WHERE id = 1")
    catalog.sql("DELETE FROM t WHERE id = 2")
    catalog.sql(
        "MERGE INTO t USING (SELECT 3 AS id, 'm' AS v UNION ALL SELECT 4, 'n') s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )

    assert rows(catalog) == [(1, "u"), (3, "m"), (4, "n")]


def test_new_rows_replace_the_partitions_of_a_condition(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE t (id INT, day DATE, n INT) PARTITIONED BY (day, n)")
    catalog.sql(
        "INSERT INTO t VALUES (1, DATE '2024-01-01', 1), (2, DATE '2024-01-01', 2), (3, NULL, 1)"
    )

    catalog.sql("INSERT INTO t REPLACE WHERE n = 1 VALUES (4, DATE '2024-02-01', 1)")

    kept, new = (2, date(2024, 1, 1), 2), (4, date(2024, 2, 1), 1)
    assert rows(catalog) == [kept, new]
    with pytest.raises(DataMismatch, match="outside"):
        catalog.sql("INSERT INTO t REPLACE WHERE n = 1 VALUES (5, DATE '2024-02-01', 2)")
    with pytest.raises(EmberlakeError, match="no partition columns: id"):
        catalog.sql("INSERT INTO t REPLACE WHERE id = 1 SELECT * FROM t")
    catalog.sql(
        "INSERT INTO t BY NAME REPLACE WHERE day < '2024-01-15' SELECT * FROM t WHERE n > 2"
    )
    assert rows(catalog) == [new]
    catalog.sql("INSERT INTO t REPLACE WHERE true SELECT 9, NULL, 9")
    assert rows(catalog) == [(9, None, 9)]


def test_a_static_partition_column_is_not_listed_again(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE t (id INT, g INT) PARTITIONED BY (g)")

    with pytest.raises(InvalidSql, match="g is in both lists"):
        catalog.sql("INSERT INTO t PARTITION (g = 1) (id, g) VALUES (1, 2)")

    assert rows(catalog) == []


def test_changes_do_not_go_through_a_view_to_the_table_that_it_hides(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE t (id INT)")
    catalog.sql("INSERT INTO t VALUES (1)")
    catalog.sql("CREATE TEMPORARY VIEW t AS SELECT 2 AS id")

    for text in (
        "DELETE FROM t",
        "UPDATE t SET id = 3",
        "INSERT INTO t VALUES (4)",
        "MERGE INTO t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE",
    ):
        with pytest.raises(InvalidSql, match="EXPECT_TABLE_NOT_VIEW"):
            catalog.sql(text)

    assert rows(catalog, "db.t") == [(1,)]


def test_a_statement_decides_which_snapshot_it_sees_and_writes_see_the_last(
    catalog: Catalog,
) -> None:
    catalog.sql("CREATE TABLE t (id INT)")
    for number in (1, 2, 3):
        catalog.sql(f"INSERT INTO t VALUES ({number})")
    catalog.sql("SET `spark.paimon.scan.snapshot-id` = `1`")

    assert rows(catalog) == [(1,)]
    assert rows(catalog, "t VERSION AS OF 2") == [(1,), (2,)]
    assert len(rows(catalog, "t TIMESTAMP AS OF 9000000000000")) == 3  # seconds: far away
    catalog.sql("UPDATE t SET id = 33 WHERE id = 3")
    catalog.sql("RESET `spark.paimon.scan.snapshot-id`")

    assert rows(catalog) == [(1,), (2,), (33,)]
    with pytest.raises(InvalidSql, match="needs a value"):
        catalog.sql("SELECT * FROM t TIMESTAMP AS OF")


def test_merge_takes_a_struct_without_names_by_place(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE t (id INT, r STRUCT<a: INT, b: STRING>)")
    catalog.sql("INSERT INTO t VALUES (1, NULL), (2, NULL)")

    catalog.sql(
        "MERGE INTO t USING (SELECT 1 AS id, struct('5', 6) AS r UNION ALL "
        "SELECT 3, struct('7', 8)) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    catalog.sql(
        "MERGE INTO t USING (SELECT 2 AS id) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET r = named_struct('b', 'by name', 'a', 9)"
    )

    assert [(row[0], *row[1].values()) for row in rows(catalog)] == [
        (1, 5, "6"),
        (2, 9, "by name"),
        (3, 7, "8"),
    ]


def test_merge_schema_adds_what_clauses_set_and_insert_adds_fields_of_structs(
    catalog: Catalog,
) -> None:
    catalog.sql("CREATE TABLE t (id INT, r STRUCT<a: INT, b: STRING>)")
    catalog.sql("SET `spark.paimon.write.merge-schema` = `true`")

    catalog.sql(
        "MERGE INTO t USING (SELECT 1 AS id, 5 AS used, 6 AS unused) s ON t.id = s.id "
        "WHEN NOT MATCHED THEN INSERT (id, used) VALUES (s.id, s.used)"
    )
    catalog.sql("INSERT INTO t BY NAME SELECT 2 AS id, named_struct('b', 'x', 'c', 1.5D) AS r")

    assert rows(catalog) == [(1, None, 5), (2, {"a": None, "b": "x", "c": 1.5}, None)]


def test_columns_go_by_place_by_list_or_by_name(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE t (id INT, r STRUCT<a: INT, b: STRING>, v STRING DEFAULT 'd')")

    catalog.sql("INSERT INTO t VALUES (1, named_struct('x', 1, 'y', 'by place'), DEFAULT)")
    catalog.sql("INSERT INTO t (V, ID) VALUES ('listed', 2)")
    catalog.sql("INSERT INTO t BY NAME SELECT named_struct('b', 'by name', 'a', 3) AS R, 3 AS id")
    catalog.sql("INSERT INTO t VALUES (4, NULL, NULL)")

    assert rows(catalog) == [
        (1, {"a": 1, "b": "by place"}, "d"),
        (2, None, "listed"),
        (3, {"a": 3, "b": "by name"}, "d"),
        (4, None, "d"),
    ]
    for bad in ("VALUES (1)", "(id, nope) VALUES (1, 2)", "(id, ID) VALUES (1, 2)"):
        with pytest.raises(EmberlakeError):
            catalog.sql(f"INSERT INTO t {bad}")


def test_overwrites_are_static_or_dynamic(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE t (id INT, g STRING, h INT) PARTITIONED BY (g, h)")
    fill = "INSERT OVERWRITE t VALUES (1, 'a', 1), (2, 'a', 2), (3, 'b', 1)"

    catalog.sql(fill)
    catalog.sql("INSERT OVERWRITE t PARTITION (g = 'a') VALUES (9, 1)")
    assert rows(catalog) == [(3, "b", 1), (9, "a", 1)]

    catalog.sql(fill)
    catalog.sql("SET spark.sql.sources.partitionOverwriteMode=dynamic")
    catalog.sql("INSERT OVERWRITE t PARTITION (g = 'a') VALUES (9, 1)")
    catalog.sql("INSERT OVERWRITE t PARTITION (g = 'a', h = 1) SELECT 7 WHERE 1 = 0")
    assert rows(catalog) == [(2, "a", 2), (3, "b", 1), (9, "a", 1)]


def test_one_source_is_inserted_into_several_tables(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE t (id INT, v STRING)")
    catalog.sql("CREATE TABLE u (id INT, v STRING)")

    catalog.sql(
        "WITH s AS (SELECT id FROM range(4)) FROM s "
        "INSERT INTO t SELECT id, 'INSERT INTO x' WHERE id < 2 "
        "INSERT OVERWRITE TABLE u (id) SELECT id * 10 WHERE id > 2;"
    )

    assert rows(catalog) == [(0, "INSERT INTO x"), (1, "INSERT INTO x")]
    assert rows(catalog, "u") == [(30, None)]


def test_a_table_is_made_of_a_query(catalog: Catalog) -> None:
    source = pa.table({"id": [1, 2], "v": ["a", None]})

    catalog.sql(
        "CREATE TABLE t TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1') "
        "AS SELECT * FROM source"
    )
    catalog.sql("CREATE TABLE IF NOT EXISTS t AS SELECT 100 AS id")
    assert rows(catalog) == [(1, "a"), (2, None)]

    catalog.sql("CREATE OR REPLACE TABLE t AS SELECT 7 AS seven")
    assert rows(catalog) == [(7,)]
    del source


def test_rows_are_deleted_and_updated_by_expressions_and_subqueries(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE t (id INT, v STRING, n INT DEFAULT 5)")
    catalog.sql("INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', NULL), (4, 'it''s', 4)")

    catalog.sql("DELETE FROM t AS x WHERE x.ID = 1 OR x.v = :v", {"v": "it's"})
    catalog.sql("UPDATE db.t SET v = concat(t.v, '\"!'), n = '7' WHERE n IN (SELECT id FROM db.t)")
    catalog.sql("UPDATE t SET n = DEFAULT WHERE n IS NULL")

    assert rows(catalog) == [(2, 'b"!', 7), (3, "c", 5)]
    catalog.sql("UPDATE t SET n = (SELECT max(n) FROM t) + 1.9")
    assert rows(catalog) == [(2, 'b"!', 8), (3, "c", 8)]
    with pytest.raises(InvalidSql, match="twice"):
        catalog.sql("UPDATE t SET n = 1, N = 2")
    catalog.sql("DELETE FROM t")
    assert rows(catalog) == []


def test_a_merge_has_all_clauses_and_drops_what_the_table_does_not_have(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE t (id INT, v STRING)")
    catalog.sql("INSERT INTO t VALUES (1, 'old'), (2, 'goes'), (3, 'stays'), (4, 'orphan')")
    changes = pa.table({"v": ["new", "x", "added"], "id": [1, 2, 9], "more": [0, 1, 0]})

    catalog.sql(
        "MERGE INTO db.t USING changes AS s ON db.t.id = s.id "
        "WHEN MATCHED AND s.more = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET * "
        "WHEN NOT MATCHED THEN INSERT * "
        "WHEN NOT MATCHED BY SOURCE AND t.id > 3 THEN UPDATE SET v = upper(t.v)"
    )

    assert rows(catalog) == [(1, "new"), (3, "stays"), (4, "ORPHAN"), (9, "added")]
    del changes


def test_a_statement_that_fails_changes_nothing(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE t (id INT NOT NULL)")
    catalog.sql("INSERT INTO t VALUES (1)")
    before = catalog.get_table("db.t").snapshot_manager().latest_id()

    for bad in (
        "INSERT INTO t VALUES (2), (NULL)",
        "INSERT OVERWRITE t SELECT id / (id - 1) FROM t",
        "UPDATE t SET id = NULL",
        "UPDATE t SET id = 'x'",
    ):
        with pytest.raises(EmberlakeError):
            catalog.sql(bad)

    assert catalog.get_table("db.t").snapshot_manager().latest_id() == before
    assert rows(catalog) == [(1,)]


def test_a_table_is_copied_partition_by_partition(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE t (id INT, g STRING) PARTITIONED BY (g) COMMENT 'c'")
    catalog.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")

    catalog.sql("CALL sys.copy(source_table => 't', target_table => 'new.u', where => \"G = 'a'\")")
    assert rows(catalog, "new.u") == [(1, "a")]
    catalog.sql("INSERT INTO new.u VALUES (9, 'b'), (8, 'z')")
    catalog.sql("CALL sys.copy('db.t', 'new.u')")

    assert rows(catalog, "new.u") == [(1, "a"), (2, "b"), (8, "z")]
    assert catalog.get_table("new.u").table_schema.comment == "c"
    with pytest.raises(EmberlakeError, match="cannot name id"):
        catalog.sql("CALL sys.copy('t', 'new.u', 'id = 1')")


def test_subqueries_without_rows_or_with_several_columns(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE t (id INT, v STRING)")
    catalog.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (NULL, 'c')")

    catalog.sql("UPDATE t SET v = 'x' WHERE id NOT IN (SELECT id FROM t WHERE false)")
    assert {v for _, v in rows(catalog)} == {"x"}
    catalog.sql("DELETE FROM t WHERE (id, v) IN (SELECT 1, 'x')")
    assert rows(catalog) == [(2, "x"), (None, "x")]


def test_the_default_database_is_there_when_it_is_needed(tmp_path: Path) -> None:
    catalog = CatalogFactory.create({"warehouse": str(tmp_path / "new")})

    assert catalog.sql("SHOW TABLES").fetchall() == []
    catalog.sql("USE default")
    catalog.sql("CREATE TABLE t AS SELECT 1 AS id")

    assert catalog.sql("SELECT * FROM default.t").fetchall() == [(1,)]


def test_a_table_is_replaced_by_a_query_of_itself(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE t (id INT, v STRING)")
    catalog.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")

    catalog.sql("CREATE OR REPLACE TABLE t AS SELECT * FROM t")
    assert rows(catalog) == [(1, "a"), (2, "b")]
    catalog.sql("INSERT INTO t VALUES (3, 'c')")
    catalog.sql("CREATE TEMPORARY VIEW seen AS SELECT * FROM t WHERE id > 1")
    catalog.sql("CREATE OR REPLACE TABLE t AS SELECT v, id * 10 AS n FROM seen")
    assert rows(catalog) == [("b", 20), ("c", 30)]
    catalog.sql("CREATE OR REPLACE TABLE t AS SELECT id FROM t VERSION AS OF 1")
    assert rows(catalog) == [(1,), (2,)]


def test_a_table_with_other_partitions_can_be_made_from_itself(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE t (id INT, v STRING)")
    catalog.sql("INSERT INTO t VALUES (1, 'a')")
    catalog.sql("INSERT INTO t VALUES (2, 'b')")
    catalog.sql("CREATE TEMPORARY VIEW seen AS SELECT id, v AS g FROM t WHERE id > 1")

    catalog.sql("CREATE OR REPLACE TABLE t PARTITIONED BY (v) AS SELECT * FROM t")
    assert rows(catalog) == [(1, "a"), (2, "b")]
    catalog.sql("CREATE OR REPLACE TABLE t PARTITIONED BY (g) AS SELECT * FROM seen")
    assert rows(catalog) == [(2, "b")]
    assert catalog.get_table("db.t").partition_keys == ["g"]
    assert catalog.list_tables("db") == ["t"]


_FAILING = "SELECT id, CAST(v AS INT) AS n FROM t"


@pytest.mark.parametrize(
    "query", [_FAILING, f"SELECT id, n AS v FROM ({_FAILING})"], ids=["other columns", "same"]
)
@pytest.mark.parametrize(
    "partitions", ["", "PARTITIONED BY (id)"], ids=["same partitions", "others"]
)
def test_a_table_is_as_before_if_the_query_that_should_replace_it_fails(
    catalog: Catalog, partitions: str, query: str, tmp_path: Path
) -> None:
    catalog.sql("CREATE TABLE t (id INT, v STRING)")
    catalog.sql("INSERT INTO t VALUES (1, '1'), (2, 'b')")
    before = sorted(path for path in tmp_path.rglob("*") if path.is_file())

    with pytest.raises(DataMismatch, match="CAST_INVALID_INPUT"):
        catalog.sql(f"CREATE OR REPLACE TABLE t {partitions} AS {query}")

    assert rows(catalog) == [(1, "1"), (2, "b")]
    assert catalog.list_tables("db") == ["t"]
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == before


def test_a_table_is_as_before_if_it_cannot_be_replaced(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    catalog.sql("CREATE TABLE t (id INT, v STRING)")
    catalog.sql("INSERT INTO t VALUES (1, 'a')")
    before = sorted(path for path in tmp_path.rglob("*") if path.is_file())

    def refuse(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(catalog, "replace_table", refuse)
    with pytest.raises(KeyboardInterrupt):
        catalog.sql("CREATE OR REPLACE TABLE t AS SELECT 1 AS n")

    assert rows(catalog) == [(1, "a")]
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == before


def test_a_table_whose_schema_others_changed_meanwhile_is_not_replaced_by_rows_of_another(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog.sql("CREATE TABLE t (id INT, v STRING)")
    catalog.sql("INSERT INTO t VALUES (1, 'a')")
    replace_table = catalog.replace_table

    def after_others(identifier: Identifier, schema: Schema) -> Table:
        catalog.alter_table(identifier, [SchemaChange.add_column("more", "INT")])
        return replace_table(identifier, schema)

    monkeypatch.setattr(catalog, "replace_table", after_others)
    with pytest.raises(CommitConflict, match="others changed the schema"):
        catalog.sql("CREATE OR REPLACE TABLE t AS SELECT 1 AS n")

    assert catalog.sql("SELECT * FROM t VERSION AS OF 1").fetchall() == [(1, "a")]


def test_a_table_that_is_made_anew_is_dropped_if_its_query_fails(catalog: Catalog) -> None:
    with pytest.raises(DataMismatch):
        catalog.sql("CREATE OR REPLACE TABLE made AS SELECT CAST('x' AS INT) AS n")

    assert catalog.list_tables("db") == []


def test_a_table_gets_other_partitions_where_tables_cannot_be_renamed() -> None:
    catalog = FileSystemCatalog(RemoteStorage(), "warehouse")
    catalog.sql("CREATE TABLE t (id INT, v STRING)")
    catalog.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")

    catalog.sql("CREATE OR REPLACE TABLE t PARTITIONED BY (v) AS SELECT * FROM t")

    assert rows(catalog) == [(1, "a"), (2, "b")]
    assert catalog.get_table("default.t").partition_keys == ["v"]
    assert catalog.list_tables("default") == ["t"]


def test_rows_of_a_table_with_other_partitions_are_somewhere_whatever_fails(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog.sql("CREATE TABLE t (id INT, v STRING)")
    catalog.sql("INSERT INTO t VALUES (1, 'a')")

    def refuse(*_: object) -> None:
        raise StorageError("the disk is gone")

    monkeypatch.setattr(catalog, "rename_table", refuse)
    with pytest.raises(InvalidState, match=r"the disk is gone.* are in `t__\w+`"):
        catalog.sql("CREATE OR REPLACE TABLE t PARTITIONED BY (v) AS SELECT * FROM t")

    (aside,) = catalog.list_tables("db")
    assert rows(catalog, aside) == [(1, "a")]


def test_several_inserts_see_the_tables_before_the_first_of_them(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE t (id INT, v STRING)")
    catalog.sql("CREATE TABLE u (id INT, v STRING)")
    catalog.sql("INSERT INTO t VALUES (1, 'a'), (200, 'b')")

    catalog.sql(
        "FROM t INSERT OVERWRITE t SELECT id, v WHERE id < 100 "
        "INSERT INTO u SELECT id, v WHERE id >= 100"
    )
    assert (rows(catalog), rows(catalog, "u")) == ([(1, "a")], [(200, "b")])

    catalog.sql("FROM t INSERT INTO t SELECT id + 1, v INSERT INTO u SELECT id, v")
    assert rows(catalog, "u") == [(1, "a"), (200, "b")]


def test_nothing_is_inserted_if_one_of_several_inserts_is_wrong(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE t (id INT, v STRING)")

    for wrong in (
        "INSERT INTO nope SELECT 1",
        "INSERT INTO t SELECT 1",
        "INSERT INTO t (x) SELECT 1",
    ):
        with pytest.raises(EmberlakeError):
            catalog.sql(f"FROM (SELECT 1) q INSERT INTO t SELECT 1, 'a' {wrong}")
    assert rows(catalog) == []


def test_a_query_gives_a_column_by_name_once(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE t (id INT, v STRING)")

    with pytest.raises(InvalidSql, match="id is given twice"):
        catalog.sql("INSERT INTO t BY NAME SELECT 1 AS id, 2 AS ID")
    assert rows(catalog) == []


def test_structs_in_maps_go_by_place_or_by_name(catalog: Catalog) -> None:
    catalog.sql(
        "CREATE TABLE t (id INT, m MAP<STRING, STRUCT<a: INT, b: STRING>>, "
        "k MAP<STRUCT<a: INT>, ARRAY<STRUCT<d: DATE>>>)"
    )

    catalog.sql(
        "INSERT INTO t VALUES (1, map('x', struct('7', 8), 'y', NULL), "
        "map(struct('1'), array(struct('2024-01-01'), NULL))), (2, map(), NULL)"
    )
    catalog.sql("INSERT INTO t BY NAME SELECT map('x', named_struct('b', 'c', 'a', 9)) AS m")

    assert catalog.sql("SELECT id, m['x'].a, m['x'].b, size(k) FROM t").fetchall() == [
        (1, 7, "8", 1),
        (2, None, None, None),
        (None, 9, "c", None),
    ]
    assert catalog.sql(
        "SELECT map_values(k)[0][0].d = DATE '2024-01-01' FROM t WHERE id = 1"
    ).fetchall() == [(True,)]


def test_changes_up_to_an_automatic_tag_are_a_table(catalog: Catalog) -> None:
    catalog.sql(
        "CREATE TABLE t (id INT, v STRING) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1')"
    )
    catalog.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    catalog.sql("CALL sys.create_tag('db.t', '2024-12-01')")
    catalog.sql("INSERT INTO t VALUES (1, 'A'), (3, 'c')")
    catalog.sql("CALL sys.create_tag('db.t', '2024-12-03')")

    changed = "SELECT * FROM paimon_incremental_to_auto_tag('t', '2024-12-0{}') ORDER BY id"
    assert catalog.sql(changed.format(3)).fetchall() == [(1, "A"), (3, "c")]
    assert catalog.sql(changed.format(1)).fetchall() == []
    assert catalog.sql(changed.format(2)).fetchall() == []
    with pytest.raises(InvalidSql, match="takes a table and a tag"):
        catalog.sql("SELECT * FROM paimon_incremental_to_auto_tag('t')")


def test_columns_get_wider_types_if_a_setting_asks_for_it(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE t (id INT, n INT, d DECIMAL(5, 2), v VARCHAR(3), w BIGINT)")
    catalog.sql("INSERT INTO t VALUES (1, 1, 1, 'a', 1)")
    wide = "SELECT 2 AS id, 3000000000 AS n, 12345.5 AS d, 'longer' AS v, 7 AS w"

    catalog.sql("SET `spark.paimon.write.merge-schema` = `true`")
    with pytest.raises(DataMismatch):
        catalog.sql(f"INSERT INTO t BY NAME {wide}")
    catalog.sql("SET `spark.paimon.write.merge-schema.type-widening` = `true`")
    catalog.sql("INSERT INTO t BY NAME SELECT 2 AS id, 3000000000 AS n, 'longer' AS v, 7 AS w")
    catalog.sql(
        "MERGE INTO t USING (SELECT 1 AS id, CAST(9 AS BIGINT) AS n, "
        "CAST(12345.5 AS DECIMAL(7, 2)) AS d, 'x' AS v, CAST(8 AS BIGINT) AS w) s "
        "ON t.id = s.id WHEN MATCHED THEN UPDATE SET *"
    )

    assert [(row[0], str(row[1])) for row in catalog.sql("DESCRIBE t").fetchall()] == [
        ("id", "int"),
        ("n", "bigint"),
        ("d", "decimal(7,2)"),
        ("v", "string"),
        ("w", "bigint"),
    ]
    assert catalog.sql("SELECT id, n, v, w FROM t ORDER BY id").fetchall() == [
        (1, 9, "x", 8),
        (2, 3_000_000_000, "longer", 7),
    ]
    with pytest.raises(DataMismatch, match="types only widen"):
        catalog.sql("INSERT INTO t BY NAME SELECT 3 AS id, 'text' AS n")


def test_an_unknown_column_of_a_query_is_named(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE t (id INT)")

    for query in ("SELECT id, nope FROM t", "SELECT *, nope FROM t", "SELECT nope FROM t"):
        with pytest.raises(InvalidSql, match="nope") as caught:
            catalog.sql(query)
        assert "referenced that exists" not in str(caught.value)


def test_a_query_with_two_columns_of_one_name_makes_no_table(catalog: Catalog) -> None:
    with pytest.raises(InvalidSchema, match="COLUMN_ALREADY_EXISTS"):
        catalog.sql("CREATE TABLE t AS SELECT 1 AS a, 2 AS A")
    assert catalog.sql("SHOW TABLES").fetchall() == []


def test_fields_of_the_hidden_partition_can_be_named(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE t (id INT, g STRING, h INT) PARTITIONED BY (g, h)")
    catalog.sql("INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2)")

    found = catalog.sql(
        "SELECT __paimon_partition.g, t.__paimon_partition.h, id FROM t WHERE id = 2"
    )

    assert found.fetchall() == [("b", 2, 2)]


@pytest.mark.parametrize(("option", "seen"), [("true", [(1, "a")]), ("false", [])])
def test_postponed_rows_get_buckets_at_once_unless_the_table_says_otherwise(
    catalog: Catalog, option: str, seen: list[tuple[Any, ...]]
) -> None:
    catalog.sql(
        "CREATE TABLE t (id INT, v STRING) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '-2', "
        f"'postpone.batch-write-fixed-bucket' = '{option}')"
    )

    catalog.sql("INSERT INTO t VALUES (1, 'a')")

    assert rows(catalog) == seen
    catalog.sql("CALL sys.compact('db.t')")
    assert rows(catalog) == [(1, "a")]


def test_an_older_moment_is_refused_in_plain_words(catalog: Catalog) -> None:
    catalog.sql(
        "CREATE TABLE t (id INT, at TIMESTAMP) TBLPROPERTIES "
        "('primary-key' = 'id', 'bucket' = '1', 'sequence.field' = 'at')"
    )
    catalog.sql("INSERT INTO t VALUES (1, TIMESTAMP '2024-01-01 00:00:00')")

    with pytest.raises(DataMismatch, match="at cannot become 2023-01-01 00:00:00"):
        catalog.sql("UPDATE t SET at = TIMESTAMP '2023-01-01 00:00:00'")


def test_new_rows_of_a_merge_have_keys_of_their_own(catalog: Catalog) -> None:
    catalog.sql(
        "CREATE TABLE t (id INT, v STRING) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1')"
    )
    catalog.sql("CREATE TABLE u (id INT, v STRING)")
    merge = (
        "MERGE INTO {} t USING (SELECT * FROM VALUES (3, 'x'), (3, 'y') AS s(id, v)) s "
        "ON t.id = s.id WHEN NOT MATCHED THEN INSERT *"
    )

    with pytest.raises(DataMismatch, match="same primary key: 3"):
        catalog.sql(merge.format("t"))
    catalog.sql(merge.format("u"))

    assert rows(catalog) == []
    assert rows(catalog, "u") == [(3, "x"), (3, "y")]


@pytest.mark.parametrize(
    "clause",
    [
        "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, t.v)",
        "WHEN NOT MATCHED AND v IS NULL THEN INSERT (id) VALUES (s.id)",
        "WHEN NOT MATCHED AND t.id IS NULL THEN INSERT (id) VALUES (s.id)",
        "WHEN NOT MATCHED BY SOURCE AND x IS NULL THEN DELETE",
        "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = s.x",
        "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = (SELECT max(v) FROM t o WHERE o.id = s.x)",
    ],
)
def test_clauses_of_merge_do_not_see_the_side_that_has_no_row(
    catalog: Catalog, clause: str
) -> None:
    catalog.sql("CREATE TABLE t (id INT, v STRING)")
    catalog.sql("INSERT INTO t VALUES (1, 'a')")

    with pytest.raises(InvalidSql):
        catalog.sql(f"MERGE INTO t USING (SELECT 9 AS id, 5 AS x) s ON t.id = s.id {clause}")
    assert rows(catalog) == [(1, "a")]


def test_conditions_of_merge_clauses_stay_as_they_are(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE t (id INT, v STRING)")
    catalog.sql("INSERT INTO t VALUES (1, 'a')")

    with pytest.raises(InvalidSql, match="INVALID_NON_DETERMINISTIC_EXPRESSIONS"):
        catalog.sql(
            "MERGE INTO t USING (SELECT 1 AS id) s ON t.id = s.id "
            "WHEN MATCHED AND rand() < 0.5 THEN UPDATE SET v = 'b'"
        )
    assert rows(catalog) == [(1, "a")]


def test_a_column_may_be_called_like_its_table(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE s (id INT, s STRUCT<a: INT, b: INT>, a INT)")
    catalog.sql("INSERT INTO s VALUES (1, struct(1, 2), 3)")

    catalog.sql("UPDATE s SET s.b = 7, s.s.a = 8")
    assert rows(catalog, "s") == [(1, {"a": 8, "b": 7}, 3)]
    catalog.sql("UPDATE s SET s.a = 9")
    assert rows(catalog, "s") == [(1, {"a": 8, "b": 7}, 9)]
    with pytest.raises(ColumnNotFound, match="s has no field nope"):
        catalog.sql("UPDATE s SET s.nope = 9")


def test_a_null_that_an_update_sets_becomes_the_default(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE t (id INT, v STRING DEFAULT 'x', d DATE DEFAULT '2024-01-01')")
    catalog.sql("INSERT INTO t VALUES (1, 'a', NULL), (2, 'b', NULL), (3, 'c', NULL)")

    catalog.sql("UPDATE t SET v = NULL WHERE id = 1")
    catalog.sql("UPDATE t SET v = NULL, d = NULL WHERE id IN (SELECT 2)")
    catalog.sql("UPDATE t SET v = nullif(v, 'c'), d = DEFAULT WHERE id = 3")

    assert rows(catalog) == [(n, "x", date(2024, 1, 1)) for n in (1, 2, 3)]

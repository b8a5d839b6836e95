"""Statements that move no rows, carried out on a catalog alone."""

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from emberlake.errors import (
    ColumnNotFound,
    DatabaseNotFound,
    EmberlakeWarning,
    InvalidInput,
    InvalidSchema,
    InvalidSql,
    NotFound,
    TableNotFound,
    Unsupported,
)
from unit.sql.commands.sessions import Lake


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


def rows(lake: Lake, table: str, data: dict[str, list[object]]) -> None:
    found = lake.catalog.get_table(table)
    found.append(
        pa.table(
            data, schema=pa.schema([(f, t) for f, t in zip(data, _types(found, data), strict=True)])
        )
    )


def _types(table: object, data: dict[str, list[object]]) -> list[pa.DataType]:
    by_name = {f.name: f for f in table.to_arrow().schema}  # type: ignore[attr-defined]
    return [by_name[name].type for name in data]


def test_names_of_columns_have_no_letter_case_and_those_of_tables_do(lake: Lake) -> None:
    lake.sql("CREATE TABLE t (Id INT, day STRING) PARTITIONED BY (DAY)")
    lake.sql("ALTER TABLE t ALTER COLUMN id TYPE BIGINT")

    assert lake.catalog.get_table("db.t").partition_keys == ["day"]
    assert lake.sql("SHOW COLUMNS IN t") == [("Id",), ("day",)]
    with pytest.raises(InvalidSchema, match="declared twice"):
        lake.sql("CREATE TABLE twins (a INT, A STRING)")
    with pytest.raises(TableNotFound):
        lake.sql("DESCRIBE T")


def test_show_create_table_creates_the_same_table_again(lake: Lake) -> None:
    lake.sql(
        "CREATE TABLE t (id INT NOT NULL COMMENT 'who''s', "
        "`a b` MAP<STRING, STRUCT<`x y`: INT COMMENT 'c'>>, v STRING DEFAULT 'x', "
        "day DATE NOT NULL) PARTITIONED BY (day) COMMENT 'c' "
        "TBLPROPERTIES ('primary-key' = 'id,day', 'bucket' = '2')"
    )
    before = lake.catalog.get_table("db.t").table_schema

    ((text,),) = lake.sql("SHOW CREATE TABLE t")
    text = text.replace(f"LOCATION '{lake.catalog.get_table('db.t').table_path}'\n", "")
    text = "".join(line for line in text.splitlines(True) if "'path' =" not in line)
    lake.sql("DROP TABLE t")
    lake.sql(text)

    after = lake.catalog.get_table("db.t").table_schema
    assert (after.fields, after.primary_keys, after.comment) == (
        before.fields,
        before.primary_keys,
        before.comment,
    )
    assert dict(after.options) == dict(before.options)


def test_nested_columns_are_added_renamed_retyped_and_dropped(lake: Lake) -> None:
    lake.sql("CREATE TABLE t (id INT, r STRUCT<a: INT, b: INT>, x ARRAY<STRUCT<p: INT>>)")

    lake.sql("ALTER TABLE t ADD COLUMNS (R.c STRING AFTER a, x.element.q DATE, first INT FIRST)")
    lake.sql("ALTER TABLE t RENAME COLUMN r.B TO d")
    lake.sql("ALTER TABLE t ALTER COLUMN r.a TYPE BIGINT")
    lake.sql("ALTER TABLE t DROP COLUMN id")

    assert lake.sql("DESCRIBE t") == [
        ("first", "int", None),
        ("r", "struct<a:bigint,c:string,d:int>", None),
        ("x", "array<struct<p:int,q:date>>", None),
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("ALTER TABLE t ADD COLUMN ID STRING", "already"),
        ("ALTER TABLE t RENAME COLUMN v TO ID", "already"),
        ("ALTER TABLE t ADD COLUMN must INT NOT NULL", "NOT NULL"),
        ("ALTER TABLE t ADD COLUMN d INT DEFAULT 5", "SET DEFAULT"),
        ("ALTER TABLE t ALTER COLUMN v TYPE INT", "only widen"),
        ("ALTER TABLE t SET TBLPROPERTIES ('primary-key' = 'id')", "cannot be changed"),
        ("ALTER TABLE t UNSET TBLPROPERTIES ('primary-key')", "cannot be changed"),
    ],
)
def test_changes_that_would_change_rows_are_refused(lake: Lake, text: str, problem: str) -> None:
    lake.sql("CREATE TABLE t (id INT, v STRING)")
    with pytest.raises(InvalidSchema, match=problem):
        lake.sql(text)


def test_names_of_databases_are_shown_in_backticks_if_they_need_them(lake: Lake) -> None:
    lake.sql("CREATE DATABASE `d 2`")
    lake.sql("CREATE TABLE `d 2`.t (id INT);;")
    lake.sql("USE `d 2`")

    assert lake.sql("SHOW TABLES") == [("`d 2`", "t", False)]
    assert lake.sql("SHOW DATABASES LIKE '*2*'") == [("`d 2`",)]
    assert lake.sql("SHOW CURRENT NAMESPACE") == [("paimon", "`d 2`")]
    assert lake.sql("SHOW NAMESPACES IN `d 2`") == []


def test_the_properties_of_a_branch_name_it(lake: Lake) -> None:
    lake.sql("CREATE TABLE t (id INT)")
    lake.sql("CALL sys.create_branch(table => 'db.t', branch => 'b')")

    assert lake.sql("SHOW TBLPROPERTIES `t$branch_b` ('branch')") == [("branch", "b")]


def test_a_property_is_given_once_and_options_count_more(lake: Lake) -> None:
    with pytest.raises(InvalidSql, match="DUPLICATE_KEY"):
        lake.sql("CREATE TABLE t (id INT) TBLPROPERTIES ('a' = 'b', 'a' = 'c')")

    lake.sql("CREATE TABLE t (id INT) OPTIONS ('a' = 'option') TBLPROPERTIES ('a' = 'property')")

    assert lake.sql("SHOW TBLPROPERTIES t ('a')") == [("a", "option")]


def test_tables_of_other_providers_and_places_are_refused(lake: Lake) -> None:
    lake.sql("CREATE TABLE t (a INT) USING PAIMON")
    lake.sql("CREATE TABLE u (a INT) USING emberlake")  # as in format("emberlake")

    with pytest.raises(Unsupported, match="catalog decides"):
        lake.sql("CREATE TABLE u (a INT) LOCATION '/x'")
    for text in ("CREATE TABLE u (a INT) USING csv", "CREATE TABLE u LIKE t USING csv"):
        with pytest.raises(Unsupported, match="USING paimon"):
            lake.sql(text)


def test_unknown_columns_and_databases_are_named(lake: Lake) -> None:
    lake.sql("CREATE TABLE t (id INT)")
    with pytest.raises(ColumnNotFound, match="there are id"):
        lake.sql("ALTER TABLE t DROP COLUMN nope")
    with pytest.raises(DatabaseNotFound):
        lake.sql("USE nope")


def test_comments_and_properties_are_set_and_unset(lake: Lake) -> None:
    lake.sql("CREATE TABLE t (id INT)")

    lake.sql("ALTER TABLE t SET TBLPROPERTIES ('write-buffer-size' = '1 mb', 'comment' = 'c')")
    lake.sql("ALTER TABLE t UNSET TBLPROPERTIES ('write-buffer-size', 'never-set')")
    lake.sql("ALTER TABLE t ALTER COLUMN id COMMENT 'the id'")

    schema = lake.catalog.get_table("db.t").table_schema
    assert (schema.comment, dict(schema.options)) == ("c", {})
    assert lake.sql("DESCRIBE t id")[2] == ("comment", "the id")


def test_partitions_are_shown_and_dropped_by_some_of_their_values(lake: Lake) -> None:
    lake.sql("CREATE TABLE t (id INT, day STRING, hour INT) PARTITIONED BY (day, hour)")
    rows(lake, "db.t", {"id": [1, 2, 3, 4], "day": ["a", "x=y", None, ""], "hour": [1, 2, None, 1]})

    assert lake.sql("SHOW PARTITIONS t") == [
        ("day=/hour=1",),
        ("day=null/hour=null",),
        ("day=a/hour=1",),
        ("day=x%3Dy/hour=2",),
    ]
    assert lake.sql("SHOW PARTITIONS t PARTITION (HOUR = 2)") == [("day=x%3Dy/hour=2",)]
    ((*table, text),) = lake.sql("SHOW TABLE EXTENDED LIKE 't' PARTITION (day = 'a', hour = 1)")
    assert table == ["db", "t", False]
    assert text.startswith("Partition Values: [day=a, hour=1]")
    with pytest.raises(NotFound, match="2 partitions"):
        lake.sql("SHOW TABLE EXTENDED IN db LIKE 't' PARTITION (hour = 1)")
    with pytest.raises(NotFound, match="no partition"):
        lake.sql("ALTER TABLE t DROP PARTITION (day = 'nope', hour = 1)")
    with pytest.raises(NotFound, match="not partitioned by id"):
        lake.sql("ALTER TABLE t DROP PARTITION (id = 1)")
    with pytest.raises(InvalidInput, match="give values for day"):
        lake.sql("ALTER TABLE t DROP PARTITION (hour = 1)")
    lake.sql("ALTER TABLE t DROP PARTITION (day = 'nope'), PARTITION (day = NULL)")
    lake.sql("ALTER TABLE t DROP PARTITION (day = '')")
    assert lake.catalog.get_table("db.t").to_arrow(["id"])["id"].to_pylist() == [1, 2]


def test_a_replaced_table_keeps_its_history(lake: Lake) -> None:
    lake.sql("CREATE TABLE t (id INT)")
    rows(lake, "db.t", {"id": [1, 2]})

    lake.sql("CREATE OR REPLACE TABLE t (name STRING) TBLPROPERTIES ('file.format' = 'orc')")
    rows(lake, "db.t", {"name": ["new"]})

    table = lake.catalog.get_table("db.t")
    assert table.to_arrow().to_pylist() == [{"name": "new"}]
    assert table.to_arrow(snapshot=1).to_pylist() == [{"id": 1}, {"id": 2}]
    with pytest.raises(TableNotFound):
        lake.sql("REPLACE TABLE nope (name STRING)")


def test_a_table_with_other_partitions_starts_over_unless_that_would_be_wrong(lake: Lake) -> None:
    lake.sql("CREATE TABLE t (id INT, day STRING) PARTITIONED BY (day)")
    rows(lake, "db.t", {"id": [1], "day": ["a"]})

    with pytest.raises(InvalidSchema, match="nope"):
        lake.sql("REPLACE TABLE t (id INT) TBLPROPERTIES ('primary-key' = 'nope')")
    assert lake.catalog.get_table("db.t").to_arrow().num_rows == 1
    lake.sql("CREATE OR REPLACE TABLE t (id INT)")

    made = lake.catalog.get_table("db.t")
    assert (made.partition_keys, made.latest_snapshot()) == ([], None)


def test_several_columns_are_altered_at_once(lake: Lake) -> None:
    lake.sql("CREATE TABLE t (a INT, b INT, c INT)")

    lake.sql("ALTER TABLE t ALTER COLUMN a TYPE BIGINT, b COMMENT 'two', c FIRST")

    assert lake.sql("DESCRIBE t") == [
        ("c", "int", None),
        ("a", "bigint", None),
        ("b", "int", "two"),
    ]
    with pytest.raises(InvalidSchema, match="first one already"):
        lake.sql("ALTER TABLE t ALTER COLUMN c FIRST")
    lake.sql("CREATE TABLE s (r STRUCT<x: INT>)")
    with pytest.raises(Unsupported, match="whole columns"):
        lake.sql("DESCRIBE s r.x")


def test_the_catalog_is_set_and_tables_are_refreshed_without_effect(lake: Lake) -> None:
    lake.sql("CREATE TABLE t (a INT)")

    lake.sql("SET CATALOG paimon")
    lake.sql("REFRESH TABLE t")

    with pytest.raises(Unsupported, match="about paimon"):
        lake.sql("SET CATALOG other")
    with pytest.raises(TableNotFound):
        lake.sql("REFRESH TABLE u")


def test_defaults_in_quotes_are_used_by_writers(lake: Lake) -> None:
    lake.sql("CREATE TABLE t (id INT, v STRING DEFAULT 'it''s', d DATE DEFAULT '2024-01-01')")

    rows(lake, "db.t", {"id": [1]})

    (row,) = lake.catalog.get_table("db.t").to_arrow().to_pylist()
    assert (row["v"], str(row["d"])) == ("it's", "2024-01-01")


def test_integers_become_text_and_filters_still_find_them(lake: Lake) -> None:
    lake.sql("CREATE TABLE t (id INT)")
    rows(lake, "db.t", {"id": [9, 10]})
    lake.sql("ALTER TABLE t ALTER COLUMN id TYPE STRING")

    table = lake.catalog.get_table("db.t")
    assert table.to_arrow(filter="id < '2'").to_pylist() == [{"id": "10"}]
    assert table.to_arrow(filter="id = '9'").to_pylist() == [{"id": "9"}]


def test_databases_of_folders_have_no_properties(lake: Lake) -> None:
    with pytest.warns(EmberlakeWarning, match="without comment"):
        lake.sql("CREATE DATABASE other COMMENT 'lost'")

    assert lake.sql("SHOW DATABASES LIKE 'o*'") == [("other",)]
    lake.sql("USE paimon.other")
    assert lake.sql("SHOW CURRENT NAMESPACE") == [("paimon", "other")]
    lake.sql("DROP DATABASE other CASCADE")


def test_tags_are_created_replaced_renamed_and_deleted(lake: Lake) -> None:
    lake.sql("CREATE TABLE t (id INT)")
    rows(lake, "db.t", {"id": [1]})
    rows(lake, "db.t", {"id": [2]})

    lake.sql("ALTER TABLE t CREATE TAG a AS OF VERSION 1 RETAIN 7 DAYS")
    lake.sql("ALTER TABLE t CREATE OR REPLACE TAG a")
    lake.sql("ALTER TABLE t RENAME TAG a TO b")
    lake.sql("ALTER TABLE t DELETE TAG nope")

    assert lake.sql("SHOW TAGS t") == [("b",)]
    assert lake.catalog.get_table("db.t").to_arrow(tag="b").num_rows == 2
    lake.sql("ALTER TABLE t CREATE TAG c")
    lake.sql("ALTER TABLE t DELETE TAG `b, c`")
    assert lake.sql("SHOW TAGS t") == []


def test_settings_are_kept_and_shown(lake: Lake) -> None:
    lake.sql("SET spark.paimon.x = y")
    assert lake.sql("SET spark.paimon.x") == [("spark.paimon.x", "y")]
    lake.sql("RESET spark.paimon.x")
    assert lake.sql("SET spark.paimon.x") == [("spark.paimon.x", "<undefined>")]


def test_one_partition_is_described_by_values_of_all_its_columns(lake: Lake) -> None:
    lake.sql("CREATE TABLE t (id INT, day STRING, hour INT) PARTITIONED BY (day, hour)")
    rows(lake, "db.t", {"id": [1], "day": ["a"], "hour": [1]})

    plain = lake.sql("DESCRIBE t PARTITION (day = 'a', hour = 1)")
    extended = lake.sql("DESCRIBE TABLE EXTENDED t PARTITION (HOUR = 1, day = 'a')")

    assert plain == lake.sql("DESCRIBE t")
    assert extended[: len(plain)] == plain
    assert ("Partition Values", "[day=a, hour=1]", "") in extended
    with pytest.raises(InvalidInput, match="a value for each of day, hour"):
        lake.sql("DESCRIBE t PARTITION (day = 'a')")


def test_truncate_takes_some_of_the_partition_columns(lake: Lake) -> None:
    lake.sql("CREATE TABLE t (id INT, day STRING, hour INT) PARTITIONED BY (day, hour)")
    rows(lake, "db.t", {"id": [1, 2, 3], "day": ["a", "b", "b"], "hour": [1, 1, 2]})

    lake.sql("TRUNCATE TABLE t PARTITION (HOUR = '9')")
    lake.sql("TRUNCATE TABLE t PARTITION (HOUR = '1')")

    table = lake.catalog.get_table("db.t")
    assert table.to_arrow(["id"])["id"].to_pylist() == [3]
    assert table.snapshot_manager().latest_id() == 2


def test_purge_is_refused_and_nothing_is_dropped(lake: Lake) -> None:
    lake.sql("CREATE TABLE t (id INT, g STRING) PARTITIONED BY (g)")

    for statement in ("DROP TABLE t PURGE", "ALTER TABLE t DROP PARTITION (g = 'a') PURGE"):
        with pytest.raises(Unsupported, match="PURGE"):
            lake.sql(statement)

    assert lake.sql("SHOW TABLES") == [("db", "t", False)]


def test_replace_tag_creates_a_tag_that_is_not_there(lake: Lake) -> None:
    lake.sql("CREATE TABLE t (id INT)")
    rows(lake, "db.t", {"id": [1]})

    lake.sql("ALTER TABLE t REPLACE TAG a")

    assert lake.sql("SHOW TAGS t") == [("a",)]


def test_the_default_database_is_shown_before_it_has_a_table(lake: Lake) -> None:
    assert lake.sql("SHOW DATABASES") == [("db",), ("default",)]
    assert lake.sql("DESCRIBE DATABASE default")[1] == ("Namespace Name", "default")


def test_change_column_takes_no_constraint(lake: Lake) -> None:
    lake.sql("CREATE TABLE t (id INT)")

    with pytest.raises(InvalidSql, match="no NOT NULL"):
        lake.sql("ALTER TABLE t CHANGE COLUMN id id BIGINT NOT NULL")


def test_a_moment_is_shown_without_its_zone_as_the_value_of_a_partition(lake: Lake) -> None:
    lake.sql("CREATE TABLE t (id INT, at TIMESTAMP) PARTITIONED BY (at)")
    moment = datetime(2024, 6, 1, 10, 30, 1, tzinfo=UTC)
    rows(lake, "db.t", {"id": [1], "at": [moment]})

    assert lake.sql("SHOW PARTITIONS t") == [("at=2024-06-01 10%3A30%3A01",)]


def test_a_database_of_folders_has_no_place_of_its_own(lake: Lake) -> None:
    with pytest.raises(Unsupported):
        lake.sql("CREATE DATABASE other LOCATION '/elsewhere'")
    assert lake.sql("SHOW DATABASES LIKE 'o*'") == []

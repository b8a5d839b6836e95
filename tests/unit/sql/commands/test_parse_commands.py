"""Statements that move no rows, from text to values."""

import pytest

from emberlake.errors import InvalidSchema, InvalidSql, Unsupported
from emberlake.sql.commands import values as v
from emberlake.sql.names import TableName
from emberlake.sql.parse import parse_statement
from emberlake.sql.statements import CreateTable, CreateTableAs, Foreign
from emberlake.types import AtomicType

T = TableName(("db", "t"))


def test_create_table_keeps_types_comments_defaults_and_properties() -> None:
    text = """CREATE TABLE IF NOT EXISTS db.t (
        id INT NOT NULL COMMENT 'the id', -- who''s id
        `c.d` MAP<STRING, ARRAY<STRUCT<x: BIGINT NOT NULL, y: DECIMAL(9, 2)>>>,
        v STRING DEFAULT concat('a', 'b') COMMENT "it's")
        PARTITIONED BY (id) COMMENT 'who''s' TBLPROPERTIES ('a' = 'b', c.d = 1, e = true);"""

    made = parse_statement(text)

    assert isinstance(made, CreateTable)
    assert [str(f) for f in made.columns] == [
        "id INT NOT NULL",
        "c.d MAP<STRING NOT NULL, ARRAY<ROW<x BIGINT NOT NULL, y DECIMAL(9, 2)>>>",
        "v STRING",
    ]
    assert [f.description for f in made.columns] == ["the id", None, "it's"]
    assert made.columns[2].default_value == "concat('a', 'b')"
    assert (made.partitioned_by, made.comment, made.if_not_exists) == (("id",), "who's", True)
    assert made.properties == {"a": "b", "c.d": "1", "e": "true"}


def test_create_table_as_keeps_the_query_as_it_was_written() -> None:
    made = parse_statement("CREATE OR REPLACE TABLE t PARTITIONED BY (g) AS SELECT 1 AS g;")

    assert isinstance(made, CreateTableAs)
    assert (made.query, made.create.replace) == ("SELECT 1 AS g", True)


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("USE db", v.Use(TableName(("db",)))),
        ("DROP DATABASE IF EXISTS db CASCADE", v.DropDatabase(TableName(("db",)), True, True)),
        ("ALTER TABLE db.t RENAME COLUMN r.f1 TO f2", v.RenameColumn(T, ("r", "f1"), "f2")),
        ("alter table db.t drop columns (a, b)", v.DropColumns(T, (("a",), ("b",)))),
        (
            "ALTER TABLE db.t ALTER COLUMN c TYPE BIGINT",
            v.AlterColumns(T, (v.ColumnChange(("c",), type=AtomicType("BIGINT")),)),
        ),
        (
            "ALTER TABLE db.t ALTER r.f FIRST, c COMMENT 'x'",
            v.AlterColumns(
                T, (v.ColumnChange(("r", "f"), is_first=True), v.ColumnChange(("c",), comment="x"))
            ),
        ),
        (
            "ALTER TABLE db.t CHANGE COLUMN c c INT AFTER d",
            v.AlterColumns(T, (v.ColumnChange(("c",), type=AtomicType("INT"), after="d"),)),
        ),
        (
            "ALTER TABLE db.t ADD PARTITION (a = 1) PARTITION (a = 2)",
            v.AddPartitions(T, ((("a", "1"),), (("a", "2"),))),
        ),
        (
            "ALTER TABLE db.t SET TBLPROPERTIES ('a' 'b', c.d = 5)",
            v.SetTableProperties(T, (("a", "b"), ("c.d", "5"))),
        ),
        (
            "ALTER TABLE db.t DROP IF EXISTS PARTITION (a = 'x', b = 2), PARTITION (a = NULL)",
            v.DropPartitions(T, ((("a", "x"), ("b", "2")), (("a", None),)), if_exists=True),
        ),
        (
            "ALTER TABLE db.t CREATE TAG `a-b` AS OF VERSION 3 RETAIN 7 DAYS",
            v.CreateTag(T, "a-b", 3, "7 d"),
        ),
        ("SHOW TABLES IN db LIKE 'a*|b'", v.ShowTables(TableName(("db",)), "a*|b")),
        ("SHOW COLUMNS FROM t IN db", v.ShowColumns(T)),
        ("SHOW TBLPROPERTIES db.t ('a.b')", v.ShowTableProperties(T, "a.b")),
        ("DESC FORMATTED db.t", v.DescribeTable(T, is_extended=True)),
        (
            "SET `spark.paimon.scan.snapshot-id` = `2`",
            v.SetOption("spark.paimon.scan.snapshot-id", "2"),
        ),
        ("SET spark.sql.x=a b", v.SetOption("spark.sql.x", "a b")),
        ("RESET", v.ResetOption()),
        (
            "CALL sys.create_tag(TABLE => 'db.t', tag => 'x', snapshot => -1L, b => true)",
            v.Call(
                ("sys", "create_tag"),
                (("table", "db.t"), ("tag", "x"), ("snapshot", -1), ("b", True)),
            ),
        ),
        (
            "CALL sys.compact('db.t', NULL, 1.5)",
            v.Call(("sys", "compact"), (), ("db.t", None, 1.5)),
        ),
    ],
)
def test_a_command_is_a_value(text: str, command: v.Command) -> None:
    assert parse_statement(text) == command


@pytest.mark.parametrize(
    "text",
    [
        "CREATE VIEW v AS SELECT 1",
        "SHOW FUNCTIONS",
        "DESCRIBE QUERY SELECT 1",
        "SET TIME ZONE 'UTC'",
        "SET VAR x = 1",
    ],
)
def test_statements_that_are_not_about_tables_are_left_to_the_engine(text: str) -> None:
    assert parse_statement(text) == Foreign(text=text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("CREATE TABLE t ()", "expected a name"),
        ("CREATE TABLE t (a INT) SELECT 1", "those of the query"),
        ("ALTER TABLE t ADD COLUMN", "expected a name"),
        ("ALTER TABLE t ALTER COLUMN c", "expected TYPE"),
        ("ALTER TABLE t ALTER COLUMN c TYPE INT COMMENT 'x'", "end of the statement"),
        ("CALL sys.compact(table => 't', 'x')", "name all arguments"),
        ("CALL sys.compact(table => 't', table => 'u')", "given twice"),
        ("DROP TABLE t u", "end of the statement"),
        ("SHOW COLUMNS IN a.t IN b", "two databases"),
    ],
)
def test_text_that_does_not_go_on_like_a_statement_is_refused(text: str, problem: str) -> None:
    with pytest.raises(InvalidSql, match=problem):
        parse_statement(text)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("CREATE TABLE t (a INT, PRIMARY KEY (a))", "primary-key"),
        ("CREATE TABLE t (a INT) CLUSTERED BY (a) INTO 4 BUCKETS", "'bucket'"),
        ("ALTER TABLE t SET LOCATION '/x'", "SET and UNSET TBLPROPERTIES"),
        ("ALTER DATABASE d SET DBPROPERTIES ('a' = 'b')", "not supported"),
        ("MSCK REPAIR TABLE t", "Hive"),
        ("SHOW PROCEDURES", "CALL"),
    ],
)
def test_what_has_no_counterpart_is_refused_with_what_has(text: str, hint: str) -> None:
    with pytest.raises(Unsupported, match=hint):
        parse_statement(text)


@pytest.mark.parametrize(
    "text", ["CREATE TABLE t (a NOPE)", "CREATE TABLE t (a DATE) PARTITIONED BY (days(a))"]
)
def test_types_and_partitions_that_do_not_exist_are_refused(text: str) -> None:
    with pytest.raises(InvalidSchema):
        parse_statement(text)

"""Statements that move rows, from their text."""

import pytest

from emberlake.errors import InvalidSql, Unsupported
from emberlake.sql.names import TableName
from emberlake.sql.parse import parse_statement
from emberlake.sql.statements import (
    Assignment,
    CreateTemporaryView,
    Delete,
    DeleteRow,
    Foreign,
    Insert,
    InsertRow,
    Merge,
    MergeClause,
    PartitionValue,
    Query,
    Rows,
    Truncate,
    Update,
    UpdateRow,
)

T = TableName(("db", "t"))


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1",
        "  /* x */ select * from t",
        "WITH a AS (SELECT 1) SELECT * FROM a",
        "(SELECT 1) UNION (SELECT 2)",
        "VALUES (1), (2)",
        "TABLE t",
        "FROM t |> WHERE id = 1",
    ],
)
def test_queries_stay_text(text: str) -> None:
    assert parse_statement(text + " ;") == Query(text=text.strip().removeprefix("/* x */ "))


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("INSERT INTO db.t VALUES (1)", Insert(table=T, query="VALUES (1)")),
        ("insert into table db.t (SELECT 1)", Insert(table=T, query="(SELECT 1)")),
        (
            "INSERT INTO db.t (b, `a c`) SELECT 1, 2;",
            Insert(table=T, columns=("b", "a c"), query="SELECT 1, 2"),
        ),
        (
            "INSERT OVERWRITE db.t PARTITION (g = 'a,b', h) SELECT 1",
            Insert(
                table=T,
                overwrite=True,
                partition=(PartitionValue("g", "'a,b'"), PartitionValue("h", None)),
                query="SELECT 1",
            ),
        ),
        (
            "INSERT INTO db.t BY NAME SELECT 1 AS a",
            Insert(table=T, by_name=True, query="SELECT 1 AS a"),
        ),
        (
            "WITH s AS (SELECT 1) INSERT INTO db.t SELECT * FROM s",
            Insert(table=T, query="WITH s AS (SELECT 1) SELECT * FROM s"),
        ),
        ("DELETE FROM db.t", Delete(table=T)),
        (
            "DELETE FROM db.t AS x WHERE x.id = 1",
            Delete(table=T, alias="x", where="x.id = 1"),
        ),
        (
            "UPDATE db.t x SET a = CASE WHEN b THEN 1 ELSE 2 END, s.f = f(1, 2) WHERE c = 'x,y'",
            Update(
                table=T,
                alias="x",
                assignments=(
                    Assignment(("a",), "CASE WHEN b THEN 1 ELSE 2 END"),
                    Assignment(("s", "f"), "f(1, 2)"),
                ),
                where="c = 'x,y'",
            ),
        ),
        ("TRUNCATE TABLE db.t", Truncate(table=T)),
        (
            "TRUNCATE TABLE db.t PARTITION (g = 1)",
            Truncate(table=T, partition=(PartitionValue("g", "1"),)),
        ),
        (
            "CREATE OR REPLACE TEMPORARY VIEW v AS SELECT 1",
            CreateTemporaryView(view="v", query="SELECT 1", replace=True),
        ),
        ("LIST JAR", Foreign(text="LIST JAR")),
    ],
)
def test_a_statement_says_what_was_written(text: str, statement: object) -> None:
    assert parse_statement(text) == statement


def test_merge_has_all_its_clauses() -> None:
    text = """
    MERGE INTO db.t AS t USING (SELECT 1 AS id) AS s ON t.id = s.id
    WHEN MATCHED AND CASE WHEN s.id > 1 THEN true ELSE false END THEN DELETE
    WHEN MATCHED THEN UPDATE SET t.a = s.a, b = CASE WHEN s.x THEN 1 END
    WHEN NOT MATCHED BY TARGET THEN INSERT (id, a) VALUES (s.id, concat('a', 'b'))
    WHEN NOT MATCHED BY SOURCE AND t.id > 5 THEN UPDATE SET a = NULL"""

    assert parse_statement(text) == Merge(
        table=T,
        alias="t",
        source="(SELECT 1 AS id)",
        source_alias="s",
        on="t.id = s.id",
        clauses=(
            MergeClause(Rows.MATCHED, DeleteRow(), "CASE WHEN s.id > 1 THEN true ELSE false END"),
            MergeClause(
                Rows.MATCHED,
                UpdateRow(
                    (Assignment(("t", "a"), "s.a"), Assignment(("b",), "CASE WHEN s.x THEN 1 END"))
                ),
            ),
            MergeClause(
                Rows.NOT_MATCHED,
                InsertRow((("id",), ("a",)), ("s.id", "concat('a', 'b')")),
            ),
            MergeClause(
                Rows.NOT_MATCHED_BY_SOURCE, UpdateRow((Assignment(("a",), "NULL"),)), "t.id > 5"
            ),
        ),
    )


def test_a_source_of_merge_is_a_table_at_a_version_too() -> None:
    text = "MERGE INTO t USING db.s VERSION AS OF 1 x ON t.id = x.id WHEN MATCHED THEN UPDATE SET *"

    statement = parse_statement(text)

    assert isinstance(statement, Merge)
    assert (statement.source, statement.source_alias) == ("db.s VERSION AS OF 1", "x")
    assert statement.clauses == (MergeClause(Rows.MATCHED, UpdateRow(None)),)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1; SELECT 2",
        "DELETE db.t",
        "UPDATE t SET",
        "INSERT INTO t",
        "MERGE INTO t USING s ON t.id = s.id",
        "MERGE INTO t USING (VALUES (1)) s(id) ON true WHEN MATCHED THEN DELETE",
        "MERGE INTO t USING s ON true WHEN NOT MATCHED THEN INSERT (a, b) VALUES (1)",
        "MERGE INTO t USING s ON true WHEN NOT MATCHED THEN INSERT * WHEN MATCHED THEN DELETE",
        "MERGE INTO t USING s ON true WHEN MATCHED THEN DELETE WHEN MATCHED THEN UPDATE SET *",
        "TRUNCATE TABLE t PARTITION (g = 1, G = 2)",
    ],
)
def test_what_is_no_statement_is_refused(text: str) -> None:
    with pytest.raises(InvalidSql):
        parse_statement(text)


def test_what_cannot_be_done_is_refused_with_a_way_out() -> None:
    with pytest.raises(Unsupported, match="look for the partition"):
        parse_statement("INSERT OVERWRITE t PARTITION (g = 1) IF NOT EXISTS SELECT 2")

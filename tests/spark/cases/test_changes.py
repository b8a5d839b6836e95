"""Whatever Spark can express decides what happens to rows; changes become one commit."""

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from emberlake import ColumnNotFound, DataMismatch, InvalidInput, Table, Unsupported
from emberlake.rowops.result import RowChangeResult
from emberlake.rowops.row_actions import ACTION, DELETE, INSERT, UPDATE, RowActions
from emberlake.session.write_session import WriteSession
from emberlake.spark.changes import Decide, change_rows
from emberlake.spark.located import PLACE, LocatedRows
from spark.cases.test_row_operations import quick, twins
from spark.reads import write
from spark.tables import reopened, rows_of, some_rows
from table_reads import left_over

ALL = ("id", "day", "name", "price")


def changed(
    spark: SparkSession, table: Table, decide: Decide, actions: RowActions
) -> RowChangeResult:
    builder = reopened(table).new_batch_write_builder()
    session = WriteSession(builder.store, builder.commit_user)
    return change_rows(session, spark, decide, actions, keys=["id"])


def deleted(condition: str) -> Decide:
    return lambda located: located.rows.filter(condition).select(
        PLACE, sql.lit(DELETE).alias(ACTION)
    )


@pytest.mark.parametrize(
    "kind", [*quick("columns", "row ids", "vectors"), *quick("keys"), *quick("rewrite")]
)
def test_changes_of_a_query_with_subqueries_become_one_snapshot(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    table, _ = twins(tmp_path, kind)

    def decide(located: LocatedRows) -> DataFrame:
        located.rows.createOrReplaceTempView("target")
        return spark.sql(
            f"""
            SELECT {PLACE}, {UPDATE} AS {ACTION}, CAST(NULL AS BIGINT) AS id, '' AS day,
                   reverse(name) AS name, CAST(price AS INT) AS price
            FROM target WHERE id IN (SELECT max(id) FROM target GROUP BY day)
            UNION ALL SELECT {PLACE}, {DELETE}, NULL, NULL, NULL, NULL FROM target WHERE id < 15
            UNION ALL SELECT NULL, {INSERT}, id, '2026-01-02', 'new', 7 FROM range(70, 72)
            """
        )

    actions = RowActions(sets=("name", "price"), deletes=True, inserts=ALL)
    result = changed(spark, table, decide, actions)

    assert (result.rows_updated, result.rows_deleted, result.rows_inserted) == (3, 15, 2)
    assert result.snapshot_id == 4
    last = [(i, d, n[::-1], float(int(p))) for i, d, n, p in some_rows(range(57, 60))]
    new = [(i, "2026-01-02", "new", 7.0) for i in (70, 71)]
    assert rows_of(table) == [*some_rows(range(15, 57)), *last, *new]

    # What is marked or beside other files by now is read as well.
    assert changed(spark, table, deleted("id % 2 = 0"), RowActions(deletes=True)).rows_deleted == 23
    assert [row[0] for row in rows_of(table)] == [*range(15, 60, 2), 71]
    assert left_over(reopened(table)) == set()


def test_what_does_not_fit_is_refused_and_changes_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    table, _ = twins(tmp_path, "vectors")
    before = rows_of(table)

    def twice(located: LocatedRows) -> DataFrame:
        rows = located.rows.filter("id IN (3, 4)").crossJoin(spark.range(2).toDF("n"))
        return rows.filter("id = 4 OR n = 0").select(
            PLACE, sql.lit(UPDATE).alias(ACTION), sql.lit("x").alias("name")
        )

    def setting(name: str, value: sql.Column) -> Decide:
        return lambda located: located.rows.select(
            PLACE, sql.lit(UPDATE).alias(ACTION), value.alias(name)
        )

    refused: list[tuple[type[Exception], str, Decide, RowActions]] = [
        (DataMismatch, r"keys: 4\. Keep", twice, RowActions(sets=("name",))),
        (DataMismatch, "NOT NULL", setting("id", sql.lit(None)), RowActions(sets=("id",))),
        (DataMismatch, "name: .*map", setting("name", sql.create_map()), RowActions(("name",))),
        (ColumnNotFound, "no such columns: nam", deleted("TRUE"), RowActions(sets=("nam",))),
        (InvalidInput, "lack the columns name", deleted("TRUE"), RowActions(sets=("name",))),
    ]
    for kind, text, decide, actions in refused:
        with pytest.raises(kind, match=text):
            changed(spark, table, decide, actions)

    assert rows_of(table) == before
    assert reopened(table).latest_snapshot().id == 3
    assert left_over(reopened(table)) == set()
    keyed, _ = twins(tmp_path / "keyed", "keys")
    with pytest.raises(Unsupported, match="id: columns of the primary key"):
        changed(spark, keyed, setting("id", sql.lit(1)), RowActions(sets=("id",)))


def test_changes_are_decided_again_if_others_changed_the_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    table, _ = twins(tmp_path, "vectors")
    seen: list[int] = []

    def decide(located: LocatedRows) -> DataFrame:
        seen.append(located.snapshot.id if located.snapshot is not None else 0)
        if len(seen) == 1:
            write(reopened(table), range(60, 62))  # does not matter
            reopened(table).update({"name": "upper(name)"}, "id = 5")
        rows = located.rows.filter("id = 5")
        name = sql.concat("name", sql.lit("!")).alias("name")
        return rows.select(PLACE, sql.lit(UPDATE).alias(ACTION), name)

    result = changed(spark, table, decide, RowActions(sets=("name",)))

    assert (seen, result.snapshot_id) == ([3, 5], 6)
    assert [row[2] for row in rows_of(table) if row[0] == 5] == ["FIRST-5!"]
    assert left_over(reopened(table)) == set()

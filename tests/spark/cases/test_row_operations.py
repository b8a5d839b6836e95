"""Rows are deleted, updated and merged on Spark as they are without it."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, ArithmeticException
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from emberlake import ColumnNotFound, DataMismatch, InvalidExpression, Table, lit
from emberlake.rowops.merge_builder import MergeBuilder
from emberlake.rowops.result import RowChangeResult
from emberlake.session.write_session import WriteSession
from emberlake.spark import delete, key_ranges, merge, update
from spark.reads import write
from spark.tables import COLUMNS, frame, new_table, reopened, rows_of, some_rows, warehouse_of
from table_reads import left_over

VECTORS = {"deletion_vectors__enabled": "true"}
KINDS: dict[str, dict[str, Any]] = {
    "rewrite": {"partition_keys": ["day"]},
    "vectors": VECTORS,
    "row ids": {**VECTORS, "row_tracking__enabled": "true"},
    "columns": {**VECTORS, "row_tracking__enabled": "true", "data_evolution__enabled": "true"},
    "keys": {"primary_keys": ["id"], "bucket": "2"},
}
COUNTS = ("rows_inserted", "rows_updated", "rows_deleted", "strategy")


def quick(first: str, *others: str) -> list[Any]:
    """Kinds of tables, of which the first is tried in every run."""
    return [first, *(pytest.param(kind, marks=pytest.mark.slow) for kind in others)]


def twins(folder: Path, kind: str) -> tuple[Table, Table]:
    """Two tables with the same rows, in a few files each."""
    made = []
    for name in ("on-spark", "here"):
        table = new_table(folder / name, **KINDS[kind])
        for number in range(3):
            table = write(table, range(20 * number, 20 * number + 20))
        made.append(table)
    return made[0], made[1]


def options(table: Table) -> dict[str, str]:
    return {"warehouse": warehouse_of(table)}


def counts_of(result: RowChangeResult) -> dict[str, object]:
    return {name: getattr(result, name) for name in COUNTS}


def check_equal(on_spark: Table, here: Table, *results: RowChangeResult) -> None:
    """Both tables have the same rows, after results that count the same."""
    assert rows_of(on_spark) == rows_of(here)
    assert counts_of(results[0]) == counts_of(results[1])
    latest = reopened(on_spark).latest_snapshot()
    assert results[0].snapshot_id == latest.id
    assert left_over(reopened(on_spark)) == set()


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_deleted_and_updated(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    on_spark, here = twins(tmp_path, kind)
    where = "price * 2 > 25 AND id % 3 = 0"
    values = {"name": "upper(name) || '!'", "price": lit(0.5)}

    updated = update("db.t", options(on_spark), values, where, spark=spark)
    check_equal(on_spark, here, updated, here.update(values, where))
    assert updated.rows_updated > 0

    deleted = delete("db.t", options(on_spark), "id < 20 OR name = 'FIRST-30!'", spark=spark)
    check_equal(on_spark, here, deleted, reopened(here).delete("id < 20 OR name = 'FIRST-30!'"))
    assert deleted.rows_deleted == 21


def test_a_change_of_no_rows_makes_no_snapshot(spark: SparkSession, tmp_path: Path) -> None:
    for kind in ("vectors", "keys"):
        table, _ = twins(tmp_path / kind, kind)

        result = delete("db.t", options(table), "price < 0 AND id % 2 = 0", spark=spark)

        assert result.snapshot_id is None
        assert reopened(table).latest_snapshot().id == 3


def test_a_value_that_cannot_be_computed_changes_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    table, _ = twins(tmp_path, "rewrite")
    before = rows_of(table)

    with pytest.raises(DataMismatch, match=r"'1 / \(id - 7\)' cannot be computed"):
        update("db.t", options(table), {"price": "1 / (id - 7)"}, spark=spark)
    with pytest.raises(ArithmeticException, match="DIVIDE_BY_ZERO"):
        update("db.t", options(table), {"price": 1 / (sql.col("id") - 7)}, spark=spark)
    with pytest.raises(AnalysisException, match="UNRESOLVED_COLUMN"):
        delete("db.t", options(table), sql.col("idd") > 3, spark=spark)

    assert rows_of(table) == before
    assert left_over(table) == set()


@pytest.mark.parametrize("kind", quick("vectors", "rewrite", "keys"))
def test_rows_are_deleted_and_updated_by_columns_of_spark(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    on_spark, here = twins(tmp_path, kind)
    values = {"name": sql.concat(sql.upper("name"), sql.lit("!")), "price": lit(0.5)}

    updated = update("db.t", options(on_spark), values, sql.col("id") % 3 == 0, spark=spark)
    expected = here.update({"name": "upper(name) || '!'", "price": 0.5}, "id % 3 = 0")
    check_equal(on_spark, here, updated, expected)

    where = sql.col("name").rlike("^FIRST-[1-3]") | (sql.col("id") < 20)
    deleted = delete("db.t", options(on_spark), where, spark=spark)
    local = reopened(here).delete("id < 20 OR (id % 3 = 0 AND id < 40)")
    check_equal(on_spark, here, deleted, local)


def arrow(rows: list[Any]) -> pa.Table:
    return pa.Table.from_pylist(
        [dict(zip(COLUMNS.names, row, strict=True)) for row in rows], COLUMNS
    )


def every_clause(builder: MergeBuilder) -> MergeBuilder:
    return (
        builder.when_matched_delete("s.id % 5 = 0 AND t.price < 20")
        .when_matched_update({"name": "t.name || s.name", "price": "s.price"}, "s.id % 7 > 0")
        .when_not_matched_insert_all("s.price < 35")
        .when_not_matched_insert({"id": "s.id", "day": "s.day", "name": lit("late")})
        .when_not_matched_by_source_update({"price": "t.price + 100"}, "t.id < 4")
        .when_not_matched_by_source_delete("t.id = 59")
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_merge_does_what_it_does_without_spark(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    check_merges(spark, tmp_path, kind)


@pytest.mark.parametrize("kind", quick("vectors", "rewrite", "columns", "keys"))
def test_spark_joins_the_keys_of_a_source_that_is_too_large_to_be_sent_everywhere(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(key_ranges, "_MOST_SENT", 0)

    check_merges(spark, tmp_path, kind)


def check_merges(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    on_spark, here = twins(tmp_path, kind)
    rows = some_rows(range(50, 80, 2), name="second") + some_rows(range(5, 30, 5), name="third")
    source = frame(spark, rows)

    made = merge(source, "db.t", options(on_spark), ["id"])
    made.when_matched_update_all().when_not_matched_insert_all()
    local = here.merge(arrow(rows), ["id"])
    local.when_matched_update_all().when_not_matched_insert_all()
    check_equal(on_spark, here, made.execute(), local.execute())

    condition = "t.id = s.id AND t.day <> '2026-01-01' AND s.price < 37 AND t.price + s.price > 6"
    made = every_clause(merge(source, "db.t", options(on_spark), condition))
    local = every_clause(reopened(here).merge(arrow(rows), condition))
    check_equal(on_spark, here, made.execute(), local.execute())


@pytest.mark.parametrize("kind", quick("rewrite", "columns", "keys"))
def test_a_merge_takes_columns_of_spark(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    on_spark, here = twins(tmp_path, kind)
    rows = some_rows(range(50, 80, 2), name="second") + some_rows(range(5, 30, 5), name="third")
    t_id, s_id, s_price = sql.col("t.id"), sql.col("s.id"), sql.col("s.price")

    made = (
        merge(frame(spark, rows), "db.t", options(on_spark), (t_id == s_id) & (s_price < 37))
        .when_matched_delete((s_id % 5 == 0) & (sql.col("t.price") < 20))
        .when_matched_update({"name": sql.concat("t.name", "s.name"), "price": "s.price"})
        .when_not_matched_insert_all(s_price < 35)
        .when_not_matched_insert({"id": s_id, "day": "s.day", "name": lit("late")})
        .when_not_matched_by_source_update({"price": sql.col("t.price") + 100}, "t.id < 4")
        .when_not_matched_by_source_delete(t_id == 59)
    )
    local = (
        here.merge(arrow(rows), "t.id = s.id AND s.price < 37")
        .when_matched_delete("s.id % 5 = 0 AND t.price < 20")
        .when_matched_update({"name": "t.name || s.name", "price": "s.price"})
        .when_not_matched_insert_all("s.price < 35")
        .when_not_matched_insert({"id": "s.id", "day": "s.day", "name": lit("late")})
        .when_not_matched_by_source_update({"price": "t.price + 100"}, "t.id < 4")
        .when_not_matched_by_source_delete("t.id = 59")
    )

    assert "when matched delete where" in made.explain()
    counted = made.dry_run()
    result = made.execute()
    assert (counted.rows_updated, counted.rows_deleted) == (
        result.rows_updated, result.rows_deleted,
    )  # fmt: skip
    check_equal(on_spark, here, result, local.execute())


def test_a_merge_names_the_keys_of_rows_that_would_change_the_same_row(
    spark: SparkSession, tmp_path: Path
) -> None:
    for kind in ("vectors", "keys"):
        table, _ = twins(tmp_path / kind, kind)
        before = rows_of(table)
        source = frame(spark, some_rows([3, 4, 4, 99]))

        with pytest.raises(DataMismatch, match=r"match the same row .*; keys: 4\. Keep"):
            merge(source, "db.t", options(table), ["id"]).when_matched_update_all().execute()
        assert rows_of(table) == before

        deleted = merge(source, "db.t", options(table), ["id"]).when_matched_delete().execute()
        assert deleted.rows_deleted == 2
        assert rows_of(table) == [row for row in before if row[0] not in (3, 4)]


def test_a_row_of_the_source_replaces_every_row_that_it_matches(
    spark: SparkSession, tmp_path: Path
) -> None:
    on_spark, here = twins(tmp_path, "vectors")
    on_spark, here = (write(table, [3, 3, 25]) for table in (on_spark, here))
    rows = some_rows([3, 25, 40, 99], name="second")

    made = merge(frame(spark, rows), "db.t", options(on_spark), ["id"])
    local = here.merge(arrow(rows), ["id"])
    results = [
        builder.when_matched_update_all().when_not_matched_insert_all().execute()
        for builder in (made, local)
    ]

    check_equal(on_spark, here, *results)
    assert (results[0].rows_updated, results[0].rows_inserted) == (6, 1)


@pytest.mark.parametrize("kind", quick("columns", "rewrite", "vectors", "row ids", "keys"))
def test_what_others_commit_meanwhile_is_read_again(
    spark: SparkSession, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = write(new_table(tmp_path, **KINDS[kind]), range(4))
    commit = WriteSession.commit_or_abort

    def commit_later(session: WriteSession, *args: Any) -> Any:
        monkeypatch.setattr(WriteSession, "commit_or_abort", commit)
        reopened(table).update({"price": "price + 100"}, "id < 2")
        return commit(session, *args)

    monkeypatch.setattr(WriteSession, "commit_or_abort", commit_later)
    result = update("db.t", options(table), {"price": "price * 2"}, "id <> 3", spark=spark)
    assert result.rows_updated == 3
    assert [row[3] for row in rows_of(table)] == [200.0, 201.0, 2.0, 1.5]


def test_nested_values_are_given_beside_columns_of_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    row = pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))])
    columns = pa.schema([("id", pa.int64()), ("r", row), ("m", pa.map_(pa.string(), pa.int32()))])
    table = new_table(tmp_path, columns=columns)
    table.append(pa.Table.from_pylist([{"id": 1}], columns))
    values = {"r": {"b": ["x", None]}, "m": {"k": 1}}

    update("db.t", options(table), values, sql.col("id") == 1, spark=spark)

    found = reopened(table).to_arrow().to_pylist()
    assert found == [{"id": 1, "r": {"a": None, "b": ["x", None]}, "m": [("k", 1)]}]
    with pytest.raises(InvalidExpression, match="there are no fields c"):
        update("db.t", options(table), {"r": {"c": 1}}, sql.col("id") == 1, spark=spark)


@pytest.mark.parametrize("kind", quick("vectors", "columns", "keys"))
@pytest.mark.parametrize("by_columns", [False, True])
def test_fields_of_a_row_are_set(
    spark: SparkSession, tmp_path: Path, kind: str, by_columns: bool
) -> None:
    def text(expression: str) -> Any:
        return sql.expr(expression) if by_columns else expression

    geo = pa.struct([("lat", pa.float64()), ("lon", pa.float64())])
    row = pa.struct([("city", pa.string()), ("zip", pa.int32()), ("geo", geo)])
    columns = pa.schema([pa.field("id", pa.int64(), nullable=False), ("r", row)])
    table = new_table(tmp_path, columns=columns, **KINDS[kind])
    old = {"city": "a", "zip": 1, "geo": {"lat": 1.0, "lon": 2.0}}
    rows = [{"id": 1, "r": old}, {"id": 2, "r": None}, {"id": 3, "r": old}]
    table.append(pa.Table.from_pylist(rows, columns))

    values = {"r.city": text("'Rome'"), "r.geo.lat": 0.5}
    update("db.t", options(table), values, text("id < 3"), spark=spark)
    source = spark.createDataFrame([(2, 20), (3, 30)], "id bigint, zip int")
    merged = merge(source, "db.t", options(table), ["id"])
    merged.when_matched_update({"r.zip": text("coalesce(t.r.zip, 0) + s.zip")}).execute()

    found = sorted(reopened(table).to_arrow().to_pylist(), key=lambda row: row["id"])
    assert [row["r"] for row in found] == [
        {"city": "Rome", "zip": 1, "geo": {"lat": 0.5, "lon": 2.0}},
        {"city": "Rome", "zip": 20, "geo": {"lat": 0.5, "lon": None}},
        {**old, "zip": 31},
    ]
    with pytest.raises(ColumnNotFound, match=r"no 'r\.cty' to set; r has city, zip, geo"):
        update("db.t", options(table), {"r.cty": text("'x'")}, "id = 1", spark=spark)
    unfit = merge(source, "db.t", options(table), ["id"])
    unfit.when_not_matched_insert({"id": "s.id", "r.zip": text("1")})
    with pytest.raises(InvalidExpression, match="give a value for all of r"):
        unfit.execute()


@pytest.mark.parametrize("kind", quick("vectors", "columns", "keys"))
@pytest.mark.parametrize("by_columns", [False, True])
def test_rows_of_the_source_are_fitted_by_the_names_of_their_fields(
    spark: SparkSession, tmp_path: Path, kind: str, by_columns: bool
) -> None:
    row = pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))])
    columns = pa.schema([pa.field("id", pa.int64(), nullable=False), ("r", row)])
    table = new_table(tmp_path, columns=columns, **KINDS[kind])
    table.append(pa.Table.from_pylist([{"id": 1, "r": {"a": 1}}, {"id": 2}], columns))
    text = "array('x') AS b, CAST(id AS INT) AS a"
    source = spark.range(2, 4).selectExpr(f"struct({text}) AS r", "id")

    merged = merge(
        source, "db.t", options(table), sql.expr("t.id = s.id") if by_columns else ["id"]
    )
    left_out = ["id"] if by_columns else []
    merged.when_matched_update_all(except_columns=left_out).when_not_matched_insert_all().execute()

    found = sorted(reopened(table).to_arrow().to_pylist(), key=lambda row: row["id"])
    assert [row["r"] for row in found] == [
        {"a": 1, "b": None},
        {"a": 2, "b": ["x"]},
        {"a": 3, "b": ["x"]},
    ]


def test_moments_are_not_taken_for_times_without_a_zone(
    spark: SparkSession, tmp_path: Path
) -> None:
    columns = pa.schema([("id", pa.int64()), ("ts", pa.timestamp("us"))])
    table = new_table(tmp_path, columns=columns)
    source = spark.sql("SELECT 1L AS id, TIMESTAMP '2026-01-01 00:00:00' AS ts")

    for on in (["id"], ["ts"]):
        builder = merge(source, "db.t", options(table), on).when_not_matched_insert_all()
        with pytest.raises(DataMismatch, match=r"ts is .*that of the session is Asia/Kolkata"):
            builder.execute()

    source = source.withColumn("ts", sql.col("ts").cast("timestamp_ntz"))
    merge(source, "db.t", options(table), ["ts"]).when_not_matched_insert_all().execute()
    assert [str(ts) for _, ts in rows_of(table)] == ["2026-01-01 00:00:00"]


def test_executors_forget_the_source_of_a_merge(spark: SparkSession, tmp_path: Path) -> None:
    table, _ = twins(tmp_path, "vectors")
    contexts = spark.sparkContext._jsc
    before = set(contexts.getPersistentRDDs())

    builder = merge(frame(spark, some_rows([3, 99])), "db.t", options(table), ["id"])
    builder.when_matched_update({"price": "t.price + 1"}).when_not_matched_insert_all().execute()

    assert set(contexts.getPersistentRDDs()) <= before


def test_a_merge_that_changes_nothing_makes_no_snapshot(
    spark: SparkSession, tmp_path: Path
) -> None:
    table, _ = twins(tmp_path, "rewrite")
    source = frame(spark, some_rows([100, 101]))
    builder = merge(source, "db.t", options(table), ["id"]).when_matched_update_all()

    assert "files that may be touched: 0 of 9" in builder.explain()
    assert builder.execute().snapshot_id is None
    counted = builder.when_not_matched_insert_all().dry_run()

    assert (counted.rows_inserted, counted.snapshot_id) == (2, None)
    assert reopened(table).latest_snapshot().id == 3

"""DataFrames into tables, on whatever session there is."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from emberlake import DataMismatch, InvalidInput, SchemaChange, TableNotFound
from emberlake.spark import compact, read_paimon, write_paimon
from spark.reads import altered
from spark.tables import (
    COLUMNS,
    data_files,
    frame,
    live_files,
    new_table,
    reopened,
    rows_of,
    some_rows,
)

ROWS = some_rows(range(300))


def upserted(ids: range, name: str) -> list[tuple[object, ...]]:
    by_id = {row[0]: row for row in ROWS}
    return sorted({**by_id, **{row[0]: row for row in some_rows(ids, name=name)}}.values())


def test_an_append_is_one_snapshot(spark: SparkSession, tmp_path: Path) -> None:
    table = new_table(tmp_path)

    result = write_paimon(frame(spark, ROWS), "db.t", {"warehouse": str(tmp_path)})

    assert rows_of(table) == ROWS
    assert result.snapshot_id == 1
    assert (result.rows_added, result.files_added) == (300, len(live_files(table)))
    assert result.bytes_added == sum(path.stat().st_size for path in live_files(table))
    assert set(result.seconds) == {"check", "write", "commit"}


def test_a_writer_takes_a_dataframe_and_commits_it(spark: SparkSession, tmp_path: Path) -> None:
    table = new_table(tmp_path)

    with table.new_batch_write_builder().new_write() as write:
        write.write_spark(frame(spark, ROWS), concurrency=3)

    assert rows_of(table) == ROWS
    assert len(live_files(table)) == 3


@pytest.mark.on_disk
def test_files_outside_of_the_table_are_written_read_and_compacted(
    spark: SparkSession, tmp_path: Path
) -> None:
    home, catalog = tmp_path / "home", {"warehouse": str(tmp_path / "home")}
    table = new_table(
        home,
        primary_keys=["id"],
        bucket="2",
        data_file__external_paths=f"file://{tmp_path}/one,file://{tmp_path}/two",
        data_file__external_paths__strategy="round-robin",
    )
    write_paimon(frame(spark, ROWS), "db.t", catalog)
    write_paimon(frame(spark, some_rows(range(9), name="new")), "db.t", catalog)
    expected = upserted(range(9), "new")
    assert sorted(map(tuple, read_paimon("db.t", catalog, spark=spark).collect())) == expected

    compact("db.t", catalog, spark=spark, full=True)  # what Spark reads by itself then

    assert sorted(map(tuple, read_paimon("db.t", catalog, spark=spark).collect())) == expected
    assert not [*home.rglob("*.parquet")]
    assert reopened(table).check().ok


def test_partitions_get_a_file_each_not_one_a_task(spark: SparkSession, tmp_path: Path) -> None:
    table = new_table(tmp_path, partition_keys=["day"])

    write_paimon(frame(spark, ROWS).repartition(6), "db.t", {"warehouse": str(tmp_path)})

    assert rows_of(table) == ROWS
    assert len(live_files(table)) == 3


@pytest.mark.parametrize("concurrency", [None, 1, 3, 9])
def test_a_bucket_is_written_by_one_task(
    spark: SparkSession, tmp_path: Path, concurrency: int | None
) -> None:
    table = new_table(tmp_path, primary_keys=["id"], bucket="4")

    write_paimon(
        frame(spark, ROWS).repartition(5),
        "db.t",
        {"warehouse": str(tmp_path)},
        concurrency=concurrency,
    )

    assert rows_of(table) == ROWS
    assert len(live_files(table)) == 4


def test_buckets_of_partitions_are_written_by_one_task_each(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = new_table(tmp_path, partition_keys=["day"], primary_keys=["id"], bucket="2")

    for concurrency in (None, 2):
        write_paimon(
            frame(spark, ROWS).repartition(5),
            "db.t",
            {"warehouse": str(tmp_path)},
            concurrency=concurrency,
        )

    assert rows_of(table) == ROWS
    assert len(live_files(table)) == 2 * 3 * 2


def test_append_tables_with_a_bucket_key_are_clustered_too(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = new_table(tmp_path, bucket="3", bucket_key="name")

    write_paimon(frame(spark, ROWS).repartition(5), "db.t", {"warehouse": str(tmp_path)})

    assert rows_of(table) == ROWS
    assert len(live_files(table)) == 3


@pytest.mark.parametrize(
    "options",
    [
        {"bucket": "2"},
        {"bucket": "-1"},
        {"bucket": "-1", "dynamic_bucket__target_row_num": "40"},
        {"bucket": "2", "deletion_vectors__enabled": "true"},
        {"bucket": "-1", "deletion_vectors__enabled": "true"},
    ],
    ids=json.dumps,
)
@pytest.mark.parametrize("partition_keys", [(), ("day",)])
def test_upserts_replace_rows_by_key(
    spark: SparkSession,
    tmp_path: Path,
    options: dict[str, str],
    partition_keys: tuple[str, ...],
) -> None:
    table = new_table(tmp_path, partition_keys=partition_keys, primary_keys=["id"], **options)
    warehouse = {"warehouse": str(tmp_path)}
    write_paimon(frame(spark, ROWS), "db.t", warehouse, concurrency=3)

    write_paimon(frame(spark, some_rows(range(200, 400), name="new")), "db.t", warehouse)

    assert rows_of(table) == upserted(range(200, 400), "new")


@pytest.mark.parametrize("options", [{"bucket": "2"}, {"bucket": "-2"}], ids=json.dumps)
def test_a_partition_beside_the_key_has_its_own_keys(
    spark: SparkSession, tmp_path: Path, options: dict[str, str]
) -> None:
    postponed = {"postpone__default_bucket_num": "2"}
    keys = {"partition_keys": ["day"], "primary_keys": ["id"], "partition_in_key": False}
    table = new_table(tmp_path, **keys, **options, **postponed)
    warehouse = {"warehouse": str(tmp_path)}
    elsewhere = [(i, "2026-02-01", name, price) for i, _, name, price in ROWS]
    write_paimon(frame(spark, [*ROWS, *elsewhere]).repartition(4), "db.t", warehouse)
    if options["bucket"] == "2":
        assert len(live_files(table)) == 4 * 2  # a bucket of a partition has one task

    write_paimon(frame(spark, some_rows(range(200, 400), name="new")), "db.t", warehouse)
    gone = frame(spark, ROWS[:50]).selectExpr("id", "day", "'-D' AS _row_kind")
    write_paimon(gone, "db.t", warehouse, concurrency=2)
    compact("db.t", warehouse, spark=spark, full=True)

    expected = sorted([*upserted(range(200, 400), "new")[50:], *elsewhere])
    assert rows_of(table) == expected
    read = read_paimon("db.t", warehouse, spark=spark, filter="day = '2026-02-01'")
    assert sorted(map(tuple, read.collect())) == elsewhere


def test_a_dataframe_that_replaces_rows_has_all_columns_or_says_so(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = new_table(tmp_path, primary_keys=["id"], bucket="2")
    warehouse = {"warehouse": str(tmp_path)}
    write_paimon(frame(spark, ROWS[:2]), "db.t", warehouse)
    names = frame(spark, ROWS[:2]).select("id", "name")

    with pytest.raises(DataMismatch, match="day, price: left out, and would become null"):
        write_paimon(names, "db.t", warehouse)
    kinds = names.selectExpr("*", "CASE id WHEN 0 THEN '-D' ELSE '+U' END AS _row_kind")
    with pytest.raises(DataMismatch, match="day, price: left out, and would become null"):
        write_paimon(kinds, "db.t", warehouse)
    assert rows_of(table) == ROWS[:2]
    with table.new_batch_write_builder().new_write() as write:
        write.with_write_type(["id", "name"]).write_spark(names)

    assert rows_of(table) == [(i, None, f"first-{i}", None) for i in range(2)]


def test_first_rows_stay(spark: SparkSession, tmp_path: Path) -> None:
    table = new_table(tmp_path, primary_keys=["id"], bucket="2", merge_engine="first-row")
    warehouse = {"warehouse": str(tmp_path)}
    write_paimon(frame(spark, ROWS), "db.t", warehouse)

    write_paimon(frame(spark, some_rows(range(400), name="new")), "db.t", warehouse)

    assert rows_of(table) == sorted([*ROWS, *some_rows(range(300, 400), name="new")])


def test_aggregates_of_rows_in_many_tasks_add_up(spark: SparkSession, tmp_path: Path) -> None:
    columns = pa.schema([pa.field("id", pa.int64(), nullable=False), ("total", pa.int64())])
    table = new_table(
        tmp_path,
        primary_keys=["id"],
        columns=columns,
        bucket="2",
        merge_engine="aggregation",
        fields__total__aggregate_function="sum",
    )
    df = spark.range(0, 1000, 1, 4).selectExpr("id % 10 AS id", "id AS total")

    write_paimon(df, "db.t", {"warehouse": str(tmp_path)})

    assert rows_of(table) == [(i, sum(range(i, 1000, 10))) for i in range(10)]


def test_row_kinds_of_a_dataframe_delete_rows(spark: SparkSession, tmp_path: Path) -> None:
    table = new_table(tmp_path, primary_keys=["id"], bucket="2")
    warehouse = {"warehouse": str(tmp_path)}
    write_paimon(frame(spark, ROWS), "db.t", warehouse)

    deletes = spark.range(100).selectExpr("id", "'-D' AS _row_kind")
    write_paimon(deletes, "db.t", warehouse)

    assert rows_of(table) == ROWS[100:]


def test_postponed_rows_wait_for_a_compaction(spark: SparkSession, tmp_path: Path) -> None:
    table = new_table(tmp_path, primary_keys=["id"], bucket="-2")

    result = write_paimon(frame(spark, ROWS), "db.t", {"warehouse": str(tmp_path)}, concurrency=2)

    assert result.rows_added == 300
    assert rows_of(table) == []
    assert {path.parent.name for path in data_files(table)} == {"bucket-postpone"}


def test_an_overwrite_replaces_the_partitions_it_touches(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = new_table(tmp_path, partition_keys=["day"])
    warehouse = {"warehouse": str(tmp_path)}
    write_paimon(frame(spark, ROWS), "db.t", warehouse)
    new = [(7, "2026-01-02", "new", None)]

    write_paimon(frame(spark, new), "db.t", warehouse, overwrite=True)

    kept = [row for row in ROWS if row[1] != "2026-01-02"]
    assert rows_of(table) == sorted([*kept, *new])


def test_an_overwrite_of_a_static_partition_refuses_other_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = new_table(tmp_path, partition_keys=["day"], dynamic_partition_overwrite="false")
    warehouse = {"warehouse": str(tmp_path)}
    write_paimon(frame(spark, ROWS), "db.t", warehouse)
    day = {"day": "2026-01-02"}
    files = data_files(table)

    with pytest.raises(DataMismatch, match="outside the one to overwrite"):
        write_paimon(frame(spark, ROWS), "db.t", warehouse, overwrite=True, static_partition=day)
    assert data_files(table) == files

    empty = frame(spark, [])
    write_paimon(empty, "db.t", warehouse, overwrite=True, static_partition=day)

    assert rows_of(table) == [row for row in ROWS if row[1] != "2026-01-02"]


def test_an_overwrite_that_is_asked_for_twice_replaces_what_the_builder_says(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = new_table(tmp_path, partition_keys=["day"], dynamic_partition_overwrite="false")
    write_paimon(frame(spark, ROWS), "db.t", {"warehouse": str(tmp_path)})
    builder = table.new_batch_write_builder().overwrite({"day": "2026-01-02"})

    with builder.new_write() as write:
        write.write_spark(frame(spark, []), overwrite=True)

    assert rows_of(table) == [row for row in ROWS if row[1] != "2026-01-02"]


def test_an_overwrite_without_partitions_replaces_everything(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = new_table(tmp_path, primary_keys=["id"], bucket="2")
    warehouse = {"warehouse": str(tmp_path)}
    write_paimon(frame(spark, ROWS), "db.t", warehouse)

    with table.new_batch_write_builder().new_write() as write:
        write.write_spark(frame(spark, ROWS[:5]), overwrite=True)

    assert rows_of(table) == ROWS[:5]


def test_an_empty_append_makes_no_snapshot(spark: SparkSession, tmp_path: Path) -> None:
    table = new_table(tmp_path)

    result = write_paimon(frame(spark, []), "db.t", {"warehouse": str(tmp_path)})

    assert result.snapshot_id is None
    assert reopened(table).latest_snapshot() is None


def test_columns_are_aligned_by_name_with_safe_casts(spark: SparkSession, tmp_path: Path) -> None:
    table = new_table(tmp_path)
    df = spark.createDataFrame([("x", 1), ("y", 2)], "name string, id int")

    write_paimon(df, "db.t", {"warehouse": str(tmp_path)})

    assert rows_of(table) == [(1, None, "x", None), (2, None, "y", None)]


@pytest.mark.parametrize("concurrency", [None, 2])
@pytest.mark.parametrize("options", [{}, {"bucket": "2", "bucket_key": "id,name"}])
def test_partition_and_bucket_columns_that_are_left_out_are_null(
    spark: SparkSession, tmp_path: Path, options: dict[str, str], concurrency: int | None
) -> None:
    table = new_table(tmp_path, partition_keys=["day"], **options)
    df = spark.createDataFrame([(1, 0.5), (2, 1.0)], "id bigint, price double")

    write_paimon(df, "db.t", {"warehouse": str(tmp_path)}, concurrency=concurrency)

    assert rows_of(table) == [(1, None, None, 0.5), (2, None, None, 1.0)]


@pytest.mark.parametrize("default", [("name", "somebody"), ("at", "12:34:56")])
def test_bucket_columns_that_are_left_out_have_their_default(
    spark: SparkSession, tmp_path: Path, default: tuple[str, str]
) -> None:
    column, text = default
    columns = COLUMNS.append(pa.field("at", pa.time32("ms")))
    table = new_table(tmp_path, columns=columns, bucket="4", bucket_key=f"id,{column}")
    altered(table, SchemaChange.update_column_default_value(column, text))
    df = frame(spark, ROWS).drop("name").repartition(3)

    write_paimon(df, "db.t", {"warehouse": str(tmp_path)})

    assert len(rows_of(table)) == len(ROWS)
    assert len(live_files(table)) == 4


@pytest.mark.parametrize(
    ("keys", "partitions", "options"),
    [(["a"], [], {"bucket": "2"}), (["a"], [], {}), ([], ["A"], {}), ([], [], {})],
)
def test_names_that_differ_by_case_only_and_names_like_expressions_are_written(
    spark: SparkSession,
    tmp_path: Path,
    keys: list[str],
    partitions: list[str],
    options: dict[str, str],
) -> None:
    names = ["a", "A", "a.A", "x`y z"]
    columns = pa.schema([pa.field(name, pa.int64(), nullable=False) for name in names])
    table = new_table(
        tmp_path, columns=columns, primary_keys=keys, partition_keys=partitions, **options
    )
    fields = [StructField(name, LongType()) for name in reversed(names)]
    df = spark.createDataFrame([(4, 3, 2, 1), (8, 7, 6, 5)], StructType(fields))

    write_paimon(df, "db.t", {"warehouse": str(tmp_path)})

    assert rows_of(table) == [(1, 2, 3, 4), (5, 6, 7, 8)]


def test_a_dataframe_that_does_not_fit_is_refused_with_every_difference(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = new_table(tmp_path)
    df = spark.createDataFrame([("x", True, 1)], "name string, price boolean, other int")

    with pytest.raises(DataMismatch) as refused:
        write_paimon(df, "db.t", {"warehouse": str(tmp_path)})

    for name in ("id", "price", "other"):
        assert name in str(refused.value)
    assert data_files(table) == []


def test_a_null_key_found_in_a_task_is_the_same_error_as_without_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = new_table(tmp_path, primary_keys=["id"], bucket="2")
    df = frame(spark, [*ROWS, (None, "2026-01-01", "nobody", 0.0)])

    with pytest.raises(DataMismatch, match="id") as refused:
        write_paimon(df, "db.t", {"warehouse": str(tmp_path)})

    logged = f"emberlake.errors.DataMismatch: {refused.value}\n(in a task of emberlake)"
    assert logged in str(refused.value.__context__)  # as it stands in Spark's logs
    assert data_files(table) == []
    assert reopened(table).latest_snapshot() is None


def test_a_concurrency_of_zero_and_a_missing_table_are_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    new_table(tmp_path)
    warehouse = {"warehouse": str(tmp_path)}

    for concurrency in (0, True, "3", 2.5):
        with pytest.raises(InvalidInput, match="concurrency"):
            write_paimon(frame(spark, ROWS), "db.t", warehouse, concurrency=concurrency)
    with pytest.raises(TableNotFound):
        write_paimon(frame(spark, ROWS), "db.missing", warehouse)
    with pytest.raises(InvalidInput, match="overwrite=True"):
        write_paimon(frame(spark, ROWS), "db.t", warehouse, static_partition={"day": "x"})


def test_what_is_no_dataframe_or_has_no_end_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    new_table(tmp_path)
    stream = spark.readStream.format("rate").load().selectExpr("value AS id")

    with pytest.raises(InvalidInput, match=r"only a Spark DataFrame .* not a list: make one"):
        write_paimon(ROWS, "db.t", {"warehouse": str(tmp_path)})
    with pytest.raises(InvalidInput, match="writeStream"):
        write_paimon(stream, "db.t", {"warehouse": str(tmp_path)})


def test_the_session_is_left_as_it_was(spark: SparkSession, tmp_path: Path) -> None:
    new_table(tmp_path)
    bound = "spark.sql.execution.arrow.maxBytesPerBatch"
    before = spark.conf.get(bound)

    write_paimon(frame(spark, ROWS), "db.t", {"warehouse": str(tmp_path)})

    assert spark.conf.get(bound) == before

"""Tables created from DataFrames, grown to them, and written in the modes that Spark knows."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from emberlake import (
    CatalogFactory,
    DataMismatch,
    InvalidInput,
    Table,
    TableAlreadyExists,
    TableNotFound,
    Unsupported,
)
from emberlake.spark import read_paimon, write_paimon
from spark.tables import data_files, frame, new_table, rows_of, some_rows


def opened(tmp_path: Path, name: str = "db.t") -> Table:
    return CatalogFactory.create({"warehouse": str(tmp_path)}).get_table(name)


def test_a_table_is_created_from_a_dataframe_and_grows_with_the_next(
    spark: SparkSession, tmp_path: Path
) -> None:
    options = {"warehouse": str(tmp_path)}
    first = spark.range(3).selectExpr("id", "cast(id AS int) AS n", "'2026-01-01' AS day")
    more = spark.range(3, 5).selectExpr(
        "id", "id * 10000000000 AS n", "'2026-01-02' AS day", "'x' AS note"
    )

    created = write_paimon(
        first,
        "db.t",
        options,
        create=True,
        partition_by=["day"],
        table_options={"target-file-size": "64 mb"},
    )
    grown = write_paimon(more, "db.t", options, merge_schema=True)

    table = opened(tmp_path)
    assert (created.snapshot_id, grown.snapshot_id) == (1, 2)
    assert str(table.fields[0].type) == "BIGINT"  # whatever Spark knows about its nulls
    assert [f.name for f in table.fields] == ["id", "n", "day", "note"]
    assert table.partition_keys == ["day"]
    assert table.options["target-file-size"] == "64 mb"
    assert rows_of(table)[-1] == (4, 40_000_000_000, "2026-01-02", "x")
    assert rows_of(table)[0] == (0, 0, "2026-01-01", None)


def test_a_write_that_fails_adds_no_column(spark: SparkSession, tmp_path: Path) -> None:
    options = {"warehouse": str(tmp_path)}
    write_paimon(spark.range(3), "db.t", options, create=True)
    failing = spark.range(1).selectExpr("id", "CAST(raise_error('no note') AS STRING) AS note")

    with pytest.raises(Exception, match="no note"):
        write_paimon(failing, "db.t", options, merge_schema=True)

    assert opened(tmp_path).field_names == ["id"]
    assert opened(tmp_path).store.schemas.list_ids() == (0,)


def test_the_modes_do_what_spark_says_they_do(spark: SparkSession, tmp_path: Path) -> None:
    options = {"warehouse": str(tmp_path)}
    one, two = spark.range(1), spark.range(1, 3)
    key = {"create": True, "primary_keys": ["id"], "table_options": {"bucket": 1}}

    write_paimon(one, "db.t", options, mode="error")
    with pytest.raises(TableAlreadyExists, match="mode='error' creates it"):
        write_paimon(two, "db.t", options, mode="error")
    assert write_paimon(two, "db.t", options, mode="ignore").snapshot_id is None
    assert rows_of(opened(tmp_path)) == [(0,)]
    write_paimon(two, "db.t", options, mode="append")
    assert rows_of(opened(tmp_path)) == [(0,), (1,), (2,)]
    write_paimon(two, "db.t", options, mode="overwrite")
    assert rows_of(opened(tmp_path)) == [(1,), (2,)]
    with pytest.raises(Unsupported, match="no primary key to upsert by"):
        write_paimon(one, "db.t", options, mode="upsert")
    write_paimon(two, "db.k", options, mode="upsert", **key)
    write_paimon(two, "db.k", options, mode="upsert", **key)
    assert sorted(opened(tmp_path, "db.k").to_arrow()["id"].to_pylist()) == [1, 2]


def test_contradictions_are_one_error_and_nothing_is_created(
    spark: SparkSession, tmp_path: Path
) -> None:
    options = {"warehouse": str(tmp_path)}

    with pytest.raises(TableNotFound, match="create=True creates it"):
        write_paimon(spark.range(1), "db.t", options)
    with pytest.raises(InvalidInput, match=r"mode='upsert' contradicts overwrite='all'.*"):
        write_paimon(spark.range(1), "db.t", options, mode="upsert", overwrite="all")
    with pytest.raises(InvalidInput, match="primary_keys describe a new table: add create=True"):
        write_paimon(spark.range(1), "db.t", options, primary_keys=["id"])
    with pytest.raises(InvalidInput, match="mode='replace' is not one of append"):
        write_paimon(spark.range(1), "db.t", options, mode="replace")
    with pytest.raises(InvalidInput, match=r"partition_by is a list of columns, as in \['day'\]"):
        write_paimon(spark.range(1), "db.t", options, create=True, partition_by="day")
    new_table(tmp_path, primary_keys=["id"], bucket="1")
    with pytest.raises(InvalidInput, match=r"primary_keys=\['name'\], but it has \['id'\]"):
        write_paimon(spark.range(1), "db.t", options, create=True, primary_keys=["name"])


def test_a_table_is_dropped_again_if_nothing_could_be_written_to_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    options = {"warehouse": str(tmp_path)}
    broken = spark.range(2).selectExpr("id", "cast(raise_error('broken') AS string) AS x")

    with pytest.raises(Exception, match="broken"):
        write_paimon(broken, "db.t", options, mode="error")

    assert CatalogFactory.create(options).list_tables("db") == []


def test_bad_rows_go_to_quarantine_and_the_others_to_the_table(
    spark: SparkSession, tmp_path: Path
) -> None:
    options = {"warehouse": str(tmp_path)}
    table = new_table(tmp_path, primary_keys=["id"], bucket="2")
    rows = [*some_rows(range(100)), (None, "2026-01-01", "no id", 1.0)]
    text = frame(spark, rows).selectExpr(
        "id", "day", "name", "if(id = 7, 'cheap', cast(price AS string)) AS price"
    )

    result = write_paimon(text, "db.t", options, on_bad_rows="ops.bad", mode="upsert")

    kept = read_paimon("ops.bad", options, spark=spark).collect()
    by_reason = {row.reason: row for row in kept}
    assert (result.rows_added, result.rows_rejected) == (99, 2)
    assert rows_of(table) == [row for row in some_rows(range(100)) if row[0] != 7]
    assert set(by_reason) == {
        "price: 'cheap' is not a DOUBLE",
        "id: is null, and is in the primary key",
    }
    cheap = by_reason["price: 'cheap' is not a DOUBLE"]
    assert json.loads(cheap.row)["price"] == "cheap"
    assert (cheap.column_name, cheap.table_name) == ("price", "db.t")
    assert len({row.job for row in kept}) == 1


def test_bad_rows_are_skipped_or_fail_the_write(spark: SparkSession, tmp_path: Path) -> None:
    options = {"warehouse": str(tmp_path)}
    table = new_table(tmp_path)
    rows = frame(spark, [*some_rows(range(3)), (None, None, None, None)])

    with pytest.raises(DataMismatch, match="holds 1 null"):
        write_paimon(rows, "db.t", options)
    assert data_files(table) == []
    result = write_paimon(rows, "db.t", options, on_bad_rows="skip")

    assert (result.rows_added, result.rows_rejected) == (3, 1)
    assert rows_of(table) == some_rows(range(3))
    with pytest.raises(InvalidInput, match="on_bad_rows='drop'"):
        write_paimon(rows, "db.t", options, on_bad_rows="drop")


def test_the_data_source_creates_grows_and_keeps_bad_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = {"warehouse": str(tmp_path), "create": "true", "partition-by": "day"}
    kept = {**source, "on-bad-rows": "ops.bad", "mergeSchema": "true"}
    first = spark.range(2).selectExpr("cast(id AS int) AS id", "'a' AS day")
    more = spark.createDataFrame([("2", "b", 1), ("x", "b", 2)], "id string, day string, n int")

    first.write.format("emberlake").options(**source).mode("append").save("db.t")
    more.write.format("emberlake").options(**kept).mode("append").save("db.t")

    assert rows_of(opened(tmp_path)) == [(0, "a", None), (1, "a", None), (2, "b", 1)]
    assert opened(tmp_path).partition_keys == ["day"]
    (bad,) = read_paimon("ops.bad", {"warehouse": str(tmp_path)}, spark=spark).collect()
    assert bad.reason == "id: 'x' is not an INT"
    assert json.loads(bad.row) == {"id": "x", "day": "b", "n": 2}


def test_a_stream_goes_on_after_a_bad_row_and_takes_new_columns_after_a_restart(
    spark: SparkSession, tmp_path: Path, local_path: Path
) -> None:
    new_table(tmp_path, primary_keys=["id"], bucket="1")
    folder = local_path / "in"
    folder.mkdir()

    def run(rows: list[dict[str, object]], columns: str, **options: str) -> None:
        name = f"{len(list(folder.iterdir()))}.json"
        (folder / name).write_text("\n".join(map(json.dumps, rows)))
        query = (
            spark.readStream.schema(columns)
            .json(str(folder))
            .writeStream.format("emberlake")
            .options(warehouse=str(tmp_path), checkpointLocation=str(local_path / "c"), **options)
            .trigger(availableNow=True)
            .start("db.t")
        )
        query.awaitTermination()

    columns = "id bigint, day string, name string, price double"
    run([{"id": 1, "name": "a"}, {"name": "no id"}], columns)
    run([{"id": 2, "note": "new"}], f"{columns}, note string", mergeSchema="true")

    assert [row[:1] + row[4:] for row in rows_of(opened(tmp_path))] == [(1, None), (2, "new")]
    (bad,) = opened(tmp_path, "db.t_bad_rows").to_arrow().to_pylist()
    assert json.loads(bad["row"])["name"] == "no id"
    first = opened(tmp_path).store.snapshots.find(1)
    assert first is not None
    assert first.properties["spark.rows-rejected"] == "1"

"""Keys that are unique over all partitions, written by many tasks."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from emberlake import AtomicType, CatalogFactory, DataField, DataMismatch, Schema, Table
from emberlake.spark import attach, key_places, merge, write_paimon
from spark.tables import Row, frame, live_files, new_table, reopened, rows_of

DAYS = ("mon", "tue", "wed")


def table_of(folder: Path, **options: str) -> Table:
    keys = {"primary_keys": ["id"], "partition_keys": ["day"], "partition_in_key": False}
    return new_table(folder, **keys, **options)


@contextmanager
def refused(*texts: str) -> Iterator[None]:
    with pytest.raises(PySparkException) as error:
        yield
    assert all(text in str(error.value) for text in texts)


def some(chance: Random, number: int) -> list[Row]:
    ids = chance.sample(range(12), chance.choice([2, 5, 9]))
    return [(i, chance.choice(DAYS), f"name-{number}", 1.0) for i in ids]


def merged(engine: str, rows: dict[int, Row], new: Sequence[Row]) -> dict[int, Row]:
    rows = dict(rows)
    for row in new:
        old = rows.get(row[0])
        if old is None or engine == "deduplicate":
            rows[row[0]] = row
        elif engine == "partial-update":
            rows[row[0]] = (row[0], old[1], *row[2:])
    return rows


@pytest.mark.parametrize(
    "options",
    [
        {"merge_engine": "deduplicate"},
        {"merge_engine": "deduplicate", "deletion_vectors__enabled": "true"},
        {"merge_engine": "deduplicate", "changelog_producer": "lookup"},
        {"merge_engine": "partial-update"},
        {"merge_engine": "first-row"},
    ],
    ids=lambda options: " ".join(options.values()),
)
def test_a_row_is_in_one_partition_at_a_time(
    spark: SparkSession,
    tmp_path: Path,
    options: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = table_of(tmp_path, dynamic_bucket__target_row_num="2", **options)
    chance, rows = Random(str(options)), dict[int, Row]()
    catalog = {"warehouse": str(tmp_path)}

    for number in range(3):
        # The last write is done as if the table were large.
        monkeypatch.setattr(key_places, "_MOST_READ", 0 if number == 2 else 4_000_000)
        new = some(chance, number)
        result = write_paimon(frame(spark, new).repartition(2), "db.t", catalog, concurrency=2)
        rows = merged(options["merge_engine"], rows, new)
        assert result.snapshot_id is not None
        assert rows_of(table) == sorted(rows.values())

    assert reopened(table).check().ok


def test_an_overwrite_does_not_leave_a_key_behind(spark: SparkSession, tmp_path: Path) -> None:
    table, catalog = table_of(tmp_path), {"warehouse": str(tmp_path)}
    first = [(1, "mon", "a", 1.0), (2, "tue", "b", 1.0), (3, "wed", "c", 1.0)]
    write_paimon(frame(spark, first), "db.t", catalog)
    files = live_files(table)

    def write(rows: list[Row], **how: Any) -> None:
        write_paimon(frame(spark, rows), "db.t", catalog, concurrency=2, **how)

    for how in ({"overwrite": "dynamic"}, {"overwrite": True, "static_partition": {"day": "tue"}}):
        with pytest.raises(DataMismatch, match=r"id = 1 is in partition .*mon.* twice"):
            write([(1, "tue", "x", 2.0), (9, "tue", "y", 2.0)], **how)
    assert live_files(table) == files

    write([(1, "tue", "x", 2.0), (9, "mon", "y", 2.0)], overwrite="dynamic")
    assert rows_of(table) == [(1, "tue", "x", 2.0), (3, "wed", "c", 1.0), (9, "mon", "y", 2.0)]
    write([(3, "mon", "z", 3.0)], overwrite="all")
    assert rows_of(table) == [(3, "mon", "z", 3.0)]


def test_statements_and_merges_move_rows(spark: SparkSession, tmp_path: Path) -> None:
    table, catalog = table_of(tmp_path), {"warehouse": str(tmp_path)}
    first = [(i, "mon", "a", 1.0) for i in range(4)]
    write_paimon(frame(spark, first), "db.t", catalog)
    lake = attach(spark, catalog)

    lake.sql("UPDATE db.t SET day = 'tue', price = price + 1 WHERE id = 1")
    lake.sql("DELETE FROM db.t WHERE id = 3 AND day = 'mon'")
    new = frame(spark, [(0, "wed", "m", 5.0), (1, "mon", "m", 5.0), (7, "tue", "m", 5.0)])
    lake.sql(
        "MERGE INTO db.t t USING new s ON t.id = s.id "
        "WHEN MATCHED AND s.id = 0 THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
        new=new,
    )
    lake.detach()
    zero, seven, two = (0, "wed", "m", 5.0), (7, "tue", "m", 5.0), (2, "mon", "a", 1.0)

    assert rows_of(table) == [zero, (1, "tue", "a", 2.0), two, seven]
    merge(new, "db.t", catalog, ["id"]).when_matched_update_all().execute()
    assert rows_of(table) == [zero, (1, "mon", "m", 5.0), two, seven]
    columns = "_row_kind string, id bigint, day string"
    gone = frame(spark, [("-D", 2, "wed"), ("-D", 7, "mon")], columns)
    write_paimon(gone, "db.t", catalog)
    assert [row[0] for row in rows_of(table)] == [0, 1]
    assert reopened(table).check().ok


def test_keys_of_many_types_find_their_rows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    types = {"d": "DATE", "c": "DECIMAL(20, 2)", "x": "DOUBLE", "b": "BOOLEAN", "s": "STRING"}
    types |= {"l": "TIMESTAMP(3) WITH LOCAL TIME ZONE", "m": "TIMESTAMP(6)", "y": "BYTES"}
    catalog = CatalogFactory.create({"warehouse": str(tmp_path)})
    catalog.create_database("db")
    columns = {**types, "day": "STRING", "n": "INT"}
    fields = [DataField(i, n, AtomicType(text)) for i, (n, text) in enumerate(columns.items())]
    catalog.create_table("db.t", Schema(fields, ["day"], list(types)))
    values = [
        "DATE '2026-01-01' + CAST(id AS INT) AS d",
        "CAST(id / 4 AS DECIMAL(20, 2)) AS c",
        "IF(id = 0, double('NaN'), id * -0.0D) AS x",
        "id % 2 = 0 AS b",
        "'k' || id AS s",
        "timestamp_millis(id * 7) AS l",
        "timestamp_ntz '2026-01-01 00:00:00.123456' AS m",
        "encode('k' || id, 'utf-8') AS y",
    ]

    for most, day in ((4_000_000, "mon"), (4_000_000, "tue"), (0, "wed")):
        monkeypatch.setattr(key_places, "_MOST_READ", most)
        rows = spark.range(6).selectExpr(*values, f"'{day}' AS day", "1 AS n")
        write_paimon(rows, "db.t", {"warehouse": str(tmp_path)}, concurrency=2)

    found = catalog.get_table("db.t").to_arrow()
    assert found.column("day").to_pylist() == ["wed"] * 6


def test_the_data_source_writes_in_one_task(spark: SparkSession, tmp_path: Path) -> None:
    table = table_of(tmp_path)

    def write(rows: DataFrame) -> None:
        source = rows.write.format("emberlake").option("warehouse", str(tmp_path))
        source.mode("append").save("db.t")

    write(frame(spark, [(1, "mon", "a", 1.0), (2, "mon", "a", 1.0)]).coalesce(1))
    with refused("dynamic buckets", "coalesce(1)", "write_paimon"):
        write(frame(spark, [(1, "tue", "b", 1.0), (2, "tue", "b", 1.0)]).repartition(3, "id"))
    write(frame(spark, [(1, "tue", "b", 1.0)]).coalesce(1))

    assert rows_of(table) == [(1, "tue", "b", 1.0), (2, "mon", "a", 1.0)]


def test_a_stream_moves_rows_once(spark: SparkSession, tmp_path: Path, local_path: Path) -> None:
    source = new_table(tmp_path / "source")
    sink = table_of(tmp_path / "sink")
    for day in ("mon", "tue"):
        rows = frame(spark, [(1, day, "a", 1.0), (2, "mon", day, 1.0)])
        write_paimon(rows, "db.t", {"warehouse": str(tmp_path / "source")})

        stream = spark.readStream.format("emberlake").option("warehouse", str(tmp_path / "source"))
        query = (
            stream.load("db.t").coalesce(1)
            .writeStream.format("emberlake")
            .option("warehouse", str(tmp_path / "sink"))
            .option("checkpointLocation", str(local_path / "checkpoint"))
            .trigger(availableNow=True)
            .start("db.t")
        )  # fmt: skip
        query.awaitTermination()

    assert rows_of(sink) == [(1, "tue", "a", 1.0), (2, "mon", "tue", 1.0)]
    assert len(rows_of(source)) == 4

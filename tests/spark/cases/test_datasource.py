"""``format("emberlake")``: batch reads and writes, and SQL, on whatever session there is.

Spark Connect asks the source when an action runs, others when a DataFrame is made.
"""

import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from emberlake import Table
from emberlake.datasource.batch_read import KEEPS_FILTERS_APART
from spark.tables import (
    data_files,
    frame,
    live_files,
    new_table,
    reopened,
    rows_of,
    some_rows,
    warehouse_of,
)

ROWS = some_rows(range(60))
DAYS = sorted({row[1] for row in ROWS})
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


def write(df: DataFrame, table: Table, mode: str = "append", **options: str) -> None:
    df.write.format("emberlake").options(**named(table, options)).mode(mode).save("db.t")


def read(spark: SparkSession, table: Table, **options: str) -> DataFrame:
    return spark.read.format("emberlake").options(**named(table, options)).load("db.t")


def named(table: Table, options: dict[str, str]) -> dict[str, str]:
    """Options are written with `_` for `-` and `__` for `.`."""
    warehouse = warehouse_of(table)
    keys = {key.replace("__", ".").replace("_", "-"): value for key, value in options.items()}
    return {"warehouse": warehouse, **keys}


def collected(df: DataFrame) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in df.collect()), key=repr)


@contextmanager
def setting(spark: SparkSession, key: str, value: str) -> Iterator[None]:
    before = spark.conf.get(key)
    spark.conf.set(key, value)
    try:
        yield
    finally:
        spark.conf.set(key, before)


@contextmanager
def refused(*texts: str) -> Iterator[None]:
    """Spark includes our error in the text of its own."""
    with pytest.raises(PySparkException) as error:
        yield
    for text in texts:
        assert text in str(error.value)


# --- append and overwrite -------------------------------------------------------------------------


def test_rows_come_back_as_they_were_written(spark: SparkSession, tmp_path: Path) -> None:
    table = new_table(tmp_path)

    write(frame(spark, ROWS).repartition(3), table)

    assert rows_of(table) == ROWS
    assert collected(read(spark, table)) == sorted(ROWS, key=repr)
    assert reopened(table).latest_snapshot().id == 1
    assert len(live_files(table)) == 3


def test_every_type_makes_the_round_trip(spark: SparkSession, tmp_path: Path) -> None:
    columns = pa.schema(
        [
            ("b", pa.bool_()),
            ("i", pa.int8()),
            ("d", pa.decimal128(20, 3)),
            ("day", pa.date32()),
            ("ntz", pa.timestamp("us")),
            ("ltz", pa.timestamp("us", tz="UTC")),
            ("raw", pa.binary()),
            ("list", pa.list_(pa.field("element", pa.int32(), nullable=False))),
            ("map", pa.map_(pa.string(), pa.float32())),
            ("s", pa.struct([("x", pa.int16()), ("t", pa.list_(pa.string()))])),
        ]
    )
    table = new_table(tmp_path, columns=columns)
    df = spark.sql(
        """SELECT true b, cast(-7 AS tinyint) i, cast(-1.125 AS decimal(20, 3)) d,
                  DATE'1969-12-31' day, TIMESTAMP_NTZ'2026-01-02 03:04:05.000006' ntz,
                  TIMESTAMP'1969-01-02 03:04:05.000006' ltz, X'00FF' raw, array(1, 2) list,
                  map('a', cast(1.5 AS float)) map,
                  named_struct('x', cast(3 AS smallint), 't', array('u', null)) s
           UNION ALL SELECT null, null, null, null, null, null, null, null, null, null"""
    )

    write(df, table)

    assert collected(read(spark, table)) == collected(df)


def test_an_overwrite_replaces_the_rows_of_a_table(spark: SparkSession, tmp_path: Path) -> None:
    table = new_table(tmp_path)
    write(frame(spark, ROWS), table)

    write(frame(spark, ROWS[:5]), table, "overwrite")

    assert rows_of(table) == ROWS[:5]


def test_an_overwrite_replaces_the_partitions_that_it_touches(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = new_table(tmp_path, partition_keys=["day"])
    write(frame(spark, ROWS), table)
    new = [(1, DAYS[0], "new", 0.5)]

    write(frame(spark, new), table, "overwrite")

    assert rows_of(table) == sorted([*new, *(row for row in ROWS if row[1] != DAYS[0])])


def test_an_option_makes_an_overwrite_replace_everything(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = new_table(tmp_path, partition_keys=["day"])
    write(frame(spark, ROWS), table)

    write(frame(spark, ROWS[:1]), table, "overwrite", dynamic_partition_overwrite="false")

    assert rows_of(table) == ROWS[:1]


def test_an_overwrite_of_a_table_that_hides_new_rows_is_one_snapshot(
    spark: SparkSession, tmp_path: Path
) -> None:
    options = {"bucket": "2", "deletion_vectors__enabled": "true"}
    table = new_table(tmp_path, primary_keys=["id"], **options)
    write(frame(spark, ROWS).coalesce(1), table)
    before = reopened(table).latest_snapshot().id
    new = some_rows(range(30, 50), name="new")

    write(frame(spark, [*new, *new]).repartition(3), table, "overwrite")

    assert rows_of(table) == new
    assert reopened(table).latest_snapshot().id == before + 1
    assert set(live_files(table)) <= set(data_files(table))


# --- what is refused ------------------------------------------------------------------------------


def test_a_dataframe_that_does_not_fit_is_refused_before_any_task(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = new_table(tmp_path)
    df = spark.range(3).selectExpr("id", "true price", "id colour")

    with refused("DataMismatch", "price", "colour"):
        write(df, table)

    assert data_files(table) == []
    assert reopened(table).latest_snapshot() is None


def test_wrong_options_and_names_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    table = new_table(tmp_path)

    with refused("InvalidOption", "unknown option snapshotid", "snapshot-id"):
        read(spark, table, snapshotId="1").collect()
    with refused("InvalidOption", "option columns is for"):
        write(frame(spark, ROWS), table, columns="id")
    with refused("InvalidOption", "max-files-per-trigger is for stream reads"):
        read(spark, table, max_files_per_trigger="1").collect()
    with refused("TableNotFound", "db.u"):
        spark.read.format("emberlake").option("warehouse", str(tmp_path)).load("db.u").collect()
    with refused("InvalidOption", "warehouse"):
        spark.read.format("emberlake").load("db.t").collect()
    with refused("SnapshotNotFound", "snapshot 9"):
        read(spark, table, snapshot_id="9").collect()


def test_a_task_that_fails_leaves_neither_a_snapshot_nor_a_file(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = new_table(tmp_path)
    df = (
        frame(spark, ROWS)
        .repartition(4)
        .selectExpr("if(id = 59, raise_error('it broke'), id) id", "day", "name", "price")
    )

    with refused("it broke"):
        write(df, table)

    assert data_files(table) == []
    assert reopened(table).latest_snapshot() is None


# --- key tables, whose rows Spark does not cluster ------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"deletion_vectors__enabled": "true"},
        {"merge_engine": "first-row"},
    ],
    ids=str,
)
def test_any_task_may_write_any_bucket_of_a_key_table(
    spark: SparkSession, tmp_path: Path, options: dict[str, str]
) -> None:
    table = new_table(tmp_path, primary_keys=["id"], bucket="2", **options)
    later = [(i, None, "second", 1e9) for i in range(0, 60, 2)]

    write(frame(spark, ROWS).repartition(3), table)
    write(frame(spark, later).repartition(3), table)

    keeps_first = options.get("merge_engine") == "first-row"
    expected = {row[0]: row for row in ([*later, *ROWS] if keeps_first else [*ROWS, *later])}
    assert rows_of(table) == sorted(expected.values(), key=lambda row: row[0])
    assert collected(read(spark, table)) == sorted(expected.values(), key=repr)


def test_the_sequence_field_decides_which_row_of_a_key_is_newest(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = new_table(tmp_path, primary_keys=["id"], bucket="1", sequence__field="price")
    versions = [(1, None, f"v{n}", float(n)) for n in range(20)]

    write(frame(spark, versions).repartition(4), table)

    assert rows_of(table) == [versions[-1]]


@pytest.mark.parametrize(
    ("engine", "name"), [("deduplicate", "n-5"), ("first-row", "n-0"), ("partial-update", "n-5")]
)
def test_of_the_rows_of_a_key_those_of_the_last_partition_are_the_newest(
    spark: SparkSession, tmp_path: Path, engine: str, name: str
) -> None:
    table = new_table(tmp_path, primary_keys=["id"], bucket="1", merge_engine=engine)
    versions = spark.range(0, 6, 1, numPartitions=3).selectExpr(
        "1L AS id",
        "CAST(NULL AS STRING) AS day",
        "'n-' || id AS name",
        "CAST(NULL AS DOUBLE) AS price",
    )

    write(versions, table)

    assert rows_of(table) == [(1, None, name, None)]


def test_no_two_tasks_number_their_rows_alike(spark: SparkSession, tmp_path: Path) -> None:
    table = new_table(tmp_path, primary_keys=["id"], bucket="1", write_only="true")
    rows = spark.range(0, 12, 1, numPartitions=4).selectExpr(
        "id % 3 AS id", "'mon' AS day", "'n' AS name", "0.5D AS price"
    )

    write(rows, table)
    write(rows, table)

    splits = reopened(table).new_read_builder().new_scan().plan().splits()
    files = [file for split in splits for file in split.files]
    ranges = sorted((file.min_sequence_number, file.max_sequence_number) for file in files)
    assert len(ranges) == 8
    assert all(one[1] < other[0] for one, other in pairwise(ranges))


def test_row_kinds_delete_rows(spark: SparkSession, tmp_path: Path) -> None:
    table = new_table(tmp_path, primary_keys=["id"], bucket="2")
    write(frame(spark, ROWS[:4]), table)
    kinds = frame(spark, [("-D", 1), ("+U", 2)], "_row_kind string, id bigint")

    with refused("DataMismatch", "day, name, price: left out"):  # row 2 would lose them
        write(kinds, table)
    write(kinds.where("_row_kind = '-D'"), table)

    assert [(row[0], row[2]) for row in rows_of(table)] == [
        (0, "first-0"),
        (2, "first-2"),
        (3, "first-3"),
    ]


def test_dynamic_buckets_are_given_out_by_one_task(spark: SparkSession, tmp_path: Path) -> None:
    table = new_table(tmp_path, primary_keys=["id"])

    with refused("dynamic buckets", "coalesce(1)", "write_paimon"):
        write(frame(spark, ROWS).repartition(3), table)
    assert data_files(table) == []
    write(frame(spark, ROWS).coalesce(1), table)
    write(frame(spark, some_rows(range(0, 80, 2), name="second")).coalesce(1), table)

    assert [row[2] for row in rows_of(table)[:3]] == ["second-0", "first-1", "second-2"]
    assert len(rows_of(table)) == 70


def test_dynamic_buckets_of_a_partition_are_given_out_by_one_task(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = new_table(tmp_path, primary_keys=["id"], partition_keys=["day"])

    with refused("CommitConflict", "one writer write all rows of a partition"):
        write(frame(spark, ROWS).repartition(3, "id"), table)
    assert data_files(table) == []
    write(frame(spark, ROWS).repartition(3, "day"), table)

    assert rows_of(table) == ROWS


# --- columns --------------------------------------------------------------------------------------


def test_columns_and_schemas_reduce_what_is_read(spark: SparkSession, tmp_path: Path) -> None:
    table = new_table(tmp_path)
    write(frame(spark, ROWS), table)
    reader = spark.read.format("emberlake").options(**named(table, {}))

    by_option = read(spark, table, columns="name,id")
    by_schema = reader.schema("price double, id bigint").load("db.t")

    assert by_option.columns == ["name", "id"]
    assert collected(by_option) == sorted(((row[2], row[0]) for row in ROWS), key=repr)
    assert collected(by_schema) == sorted(((row[3], row[0]) for row in ROWS), key=repr)
    with refused("DataMismatch", "id is bigint not null, not int"):
        reader.schema("id int").load("db.t").collect()
    with refused("ColumnNotFound", "colour"):
        read(spark, table, columns="colour").collect()


def test_fields_of_rows_are_columns_too(spark: SparkSession, tmp_path: Path) -> None:
    columns = pa.schema([("id", pa.int64()), ("s", pa.struct([("x", pa.int64())]))])
    table = new_table(tmp_path, columns=columns)
    write(spark.range(3).selectExpr("id", "named_struct('x', id * 10) s"), table)

    fields = read(spark, table, columns="s.x")

    assert fields.columns == ["s_x"]
    assert collected(fields.where("s_x > 5")) == [(10,), (20,)]


# --- snapshots ------------------------------------------------------------------------------------


def test_earlier_snapshots_are_read_by_id_tag_and_time(spark: SparkSession, tmp_path: Path) -> None:
    table = new_table(tmp_path)
    for part in (ROWS[:2], ROWS[2:5], ROWS[5:9]):
        write(frame(spark, part), table)
    table.create_tag("two", 2)
    millis = table.snapshot_manager().load(2).time_millis
    moment = dt.datetime.fromtimestamp(millis / 1000, dt.UTC).isoformat(timespec="milliseconds")

    counts = [
        read(spark, table, **options).count()
        for options in (
            {"snapshot_id": "1"},
            {"tag": "two"},
            {"timestamp": str(millis)},
            {"timestamp": moment},
            {"scan__snapshot_id": "2"},
            {"incremental_between": "1,2"},
            {},
        )
    ]

    assert counts == [2, 5, 5, 5, 5, 3, 9]


def test_changes_between_snapshots_come_with_their_kinds(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = new_table(tmp_path, primary_keys=["id"], bucket="1")
    write(frame(spark, ROWS[:2]), table)
    write(frame(spark, [("-D", 0)], "_row_kind string, id bigint"), table)

    changes = read(spark, table, row_kind="true", incremental_between="1,2", columns="id")

    assert changes.columns == ["_row_kind", "id"]
    assert collected(changes) == [("-D", 0)]


# --- SQL ------------------------------------------------------------------------------------------


def test_a_view_is_queried_by_sql(spark: SparkSession, tmp_path: Path) -> None:
    table = new_table(tmp_path)
    write(frame(spark, ROWS), table)
    spark.sql(
        f"""CREATE OR REPLACE TEMPORARY VIEW items USING emberlake
            OPTIONS (path 'db.t', warehouse '{tmp_path}', columns 'id,day')"""
    )

    found = spark.sql("SELECT day, count(*) n FROM items WHERE id < 30 GROUP BY day")

    assert collected(found) == [(day, 10) for day in DAYS]
    spark.catalog.dropTempView("items")
    with refused("InvalidOption", "unknown option colour"):
        spark.sql("CREATE TEMPORARY VIEW v USING emberlake OPTIONS (path 'db.t', colour 'red')")


# --- filters --------------------------------------------------------------------------------------


@pytest.mark.skipif(
    not KEEPS_FILTERS_APART, reason="this Spark mixes up filters: they stay with it"
)
def test_a_filter_that_is_pushed_down_opens_no_other_files(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = new_table(tmp_path, partition_keys=["day"])
    write(frame(spark, ROWS), table)
    for path in live_files(table):
        if f"day={DAYS[1]}" not in str(path):
            path.unlink()
    condition = f"day = '{DAYS[1]}' AND id % 2 = 0 AND id > 5"

    with setting(spark, PUSHDOWN, "true"):
        wanted = read(spark, table).where(condition)
        found = collected(wanted)
        wanted.explain()

    expected = [row for row in ROWS if row[1] == DAYS[1] and row[0] % 2 == 0 and row[0] > 5]
    assert found == sorted(expected, key=repr)
    plan = capsys.readouterr().out
    assert "% 2" in plan  # Spark's work
    assert "day#" not in plan.split("Filter")[1].split("\n")[0]
    with refused("does not exist"):
        read(spark, table).where(condition).collect()  # without it all files are opened


def test_the_filter_option_needs_no_setting(spark: SparkSession, tmp_path: Path) -> None:
    table = new_table(tmp_path, partition_keys=["day"])
    write(frame(spark, ROWS), table)
    for path in live_files(table):
        if f"day={DAYS[0]}" in str(path):
            path.unlink()

    found = read(spark, table, filter=f"day = '{DAYS[1]}' OR (day = '{DAYS[2]}' AND id < 9)")

    expected = [r for r in ROWS if r[1] == DAYS[1] or (r[1] == DAYS[2] and r[0] < 9)]
    assert collected(found) == sorted(expected, key=repr)

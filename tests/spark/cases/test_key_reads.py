"""Key tables that Spark reads without merging have the rows that merging gives."""

import random
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from canonical import canonical_rows, sorted_rows
from emberlake import Table
from emberlake.spark import attach, read_paimon
from emberlake.spark.division import divide
from spark.reads import local_rows, planned, spark_rows, write_arrow
from spark.store_path import IS_ON_S3
from spark.tables import new_table, reopened, warehouse_of

COLUMNS = pa.schema(
    [
        pa.field("day", pa.string()),
        pa.field("id", pa.int64()),
        pa.field("part", pa.string()),
        pa.field("price", pa.float64()),
        pa.field("name", pa.string()),
    ]
)


def a_table(tmp_path: Path, keys: Sequence[str] = ("id",), **options: Any) -> Table:
    return new_table(
        tmp_path,
        columns=COLUMNS,
        primary_keys=keys,
        **{"bucket": "2", "write_only": "true", **options},
    )


def put(
    table: Table,
    ids: Sequence[int],
    text: str | None,
    kind: str | None = None,
    *,
    day: str | None = None,
) -> Table:
    """The table with one more file in every bucket that gets a row."""
    rows = pa.table(
        {
            "day": [day or f"2026-01-0{i % 2 + 1}" for i in ids],
            "id": ids,
            "part": [f"ß{i % 3}" for i in ids],
            "price": [None if i % 5 == 0 else i / 2 for i in ids],
            "name": [text and f"{text}-{i}" for i in ids],
        },
        table_columns(table),
    )
    return write_arrow(table, rows, kind=kind)


def table_columns(table: Table) -> pa.Schema:
    keys = set(table.primary_keys)
    return pa.schema([f.with_nullable(f.name not in keys) for f in COLUMNS])


def read(table: Table, spark: SparkSession, **arguments: Any) -> DataFrame:
    return read_paimon("db.t", {"warehouse": warehouse_of(table)}, spark=spark, **arguments)


def check(table: Table, spark: SparkSession) -> None:
    """Rows, and what conditions find, are those of a read without Spark."""
    for where in (
        None,
        "id = 7",
        "id < 12",
        "name LIKE 'new%'",
        "name IS NULL",
        "price > 3.0 AND id > 4",
        "part = 'ß1' OR name = 'old-3'",
    ):
        wanted = local_rows(table, where)
        assert spark_rows(read(table, spark, filter=where)) == wanted, where
        if where is not None:
            assert spark_rows(read(table, spark).where(where)) == wanted, where


def is_native(table: Table) -> bool:
    division = divide(*planned(table))
    return bool(division.layered) and not division.rest


needs_disk = pytest.mark.skipif(IS_ON_S3, reason="who reads there is another test's subject")


@pytest.mark.parametrize(
    ("keys", "options"),
    [
        (["id"], {}),
        (["part", "id"], {"bucket": "1"}),
        (["id"], {"partition_keys": ["day"]}),
        (["id"], {"partition_keys": ["day"], "data_file__thin_mode": "true"}),
        (["part", "id"], {"partition_keys": ["part"], "partition_in_key": False}),
    ],
)
def test_updates_and_deletes_replace_older_records(
    spark: SparkSession, tmp_path: Path, keys: list[str], options: dict[str, Any]
) -> None:
    table = put(a_table(tmp_path, keys, **options), range(200), "old")
    table = put(table, [3, 7, 8, 70], "new")
    table = put(table, [7, 9], None)
    table = put(table, [9, 3], "gone", "-D")
    table = put(table, [8], "before", "-U")

    assert IS_ON_S3 or is_native(table)
    check(table, spark)


def test_partitions_that_have_the_same_keys_replace_no_rows_of_each_other(
    spark: SparkSession, tmp_path: Path
) -> None:
    outside = {"partition_keys": ["day"], "partition_in_key": False}
    table = a_table(tmp_path, ["part", "id"], **outside)
    for day, text in (("mon", "old"), ("tue", "old"), ("mon", "new"), ("tue", "newer")):
        ids = range(40) if text == "old" else range(len(text))
        table = put(table, ids, f"{text}-{day}", day=day)

    check(table, spark)


def test_keys_that_are_null_are_replaced(spark: SparkSession, tmp_path: Path) -> None:
    columns = pa.schema([("id", pa.int64()), ("name", pa.string())])
    options = {"bucket": "1", "write_only": "true", "primary_key__nullable": "true"}
    table = new_table(tmp_path, columns=columns, primary_keys=["id"], **options)
    for ids, name in (([None, *range(20)], "old"), ([None, 3], "new")):
        rows = pa.table([pa.array(ids, pa.int64()), [name] * len(ids)], schema=columns)
        table = write_arrow(table, rows)

    rows = read(table, spark)

    assert spark_rows(rows) == local_rows(table)
    assert spark_rows(rows.where("id IS NULL")) == local_rows(table, "id IS NULL")


def test_a_record_that_comes_back_is_a_row(spark: SparkSession, tmp_path: Path) -> None:
    table = put(a_table(tmp_path), range(40), "old")
    table = put(table, [3, 4], "gone", "-D")
    table = put(table, [4, 5], "new")

    assert IS_ON_S3 or is_native(table)
    check(table, spark)


def test_a_row_that_no_longer_matches_a_condition_does_not_return(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = put(put(a_table(tmp_path), range(40), "old"), [3], "new")

    rows = read(table, spark).where("name = 'old-3'")

    assert rows.collect() == []


@needs_disk
def test_a_condition_on_the_key_reaches_the_newer_records(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = put(put(a_table(tmp_path), range(40), "old"), [3, 20], "new")

    rows = read(table, spark).where("id = 3 AND name <> 'x'")
    rows.explain()

    pushed = [line for line in capsys.readouterr().out.splitlines() if "PushedFilters" in line]
    assert [("EqualTo(id,3)" in line, "EqualTo(name,x)" in line) for line in pushed] == [
        (True, True),
        (True, False),
    ]


def test_a_dataframe_and_time_travel_stay_at_their_snapshots(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = put(put(a_table(tmp_path), range(40), "old"), [3, 5], "new")
    before = read(table, spark)
    wanted = local_rows(table)

    later = put(table, [5, 6], "newest")

    assert spark_rows(before) == wanted
    assert spark_rows(read(later, spark, snapshot_id=2)) == wanted
    assert spark_rows(read(later, spark)) == local_rows(later) != wanted


def test_records_of_one_snapshot_replace_none_of_another(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = put(put(a_table(tmp_path, bucket="1"), range(40), "old"), [3], "new")
    reader, before = planned(table)
    table.compact(full=True)
    _, after = planned(put(reopened(table), [3, 4], "newer"))

    rows = reader.read_table([*before, *after])
    df = table.new_read_builder().new_read().to_spark([*before, *after], spark)

    assert spark_rows(df) == sorted_rows(canonical_rows(rows))


def test_a_column_may_be_named_like_a_stored_key(spark: SparkSession, tmp_path: Path) -> None:
    columns = pa.schema([("id", pa.int64()), ("_key_id", pa.string()), ("__newer", pa.string())])
    options = {"bucket": "1", "write_only": "true", "data_file__thin_mode": "true"}
    table = new_table(tmp_path, columns=columns, primary_keys=["id"], **options)
    for ids in (range(20), [3]):
        texts = [f"{len(ids)}-{i}" for i in ids]
        table = write_arrow(table, pa.table([list(ids), texts, texts], schema=columns))

    assert IS_ON_S3 or is_native(table)
    assert spark_rows(read(table, spark)) == local_rows(table)


def test_statements_see_the_same_rows(
    spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    table = put(a_table(tmp_path, ["id"], partition_keys=["day"]), range(60), "old")
    table = put(put(table, [3, 4, 7], "new"), [4], "gone", "-D")
    lake = attach(spark, {"warehouse": warehouse_of(table)}, databases=[])
    request.addfinalizer(lake.detach)

    query = "SELECT name, id FROM db.t WHERE name LIKE 'new%' OR id IN (4, 5) ORDER BY id"
    found = lake.sql(query).collect()
    totals = lake.sql("SELECT count(*), count(DISTINCT id), min(name) FROM db.t").collect()

    assert [tuple(row) for row in found] == [("new-3", 3), ("old-5", 5), ("new-7", 7)]
    assert [tuple(row) for row in totals] == [(59, 59, "new-3")]
    lake.sql("UPDATE db.t SET name = 'set' WHERE name = 'new-3'")
    lake.sql("DELETE FROM db.t WHERE name = 'new-7'")
    changed = lake.sql("SELECT id, name FROM db.t WHERE id IN (3, 7)").collect()
    assert [tuple(row) for row in changed] == [(3, "set")]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.int16(), [-5, 0, 3]),
        (pa.string(), ["", "a", "é"]),
        (pa.decimal128(12, 3), [Decimal("-1.500"), Decimal(0), Decimal("1.5")]),
        (pa.date32(), [-400_000, 0, 20_000]),
        (pa.bool_(), [False, True]),
    ],
)
def test_keys_of_every_type_that_is_compared(
    spark: SparkSession, tmp_path: Path, kind: pa.DataType, values: list[Any]
) -> None:
    columns = pa.schema([pa.field("k", kind), pa.field("n", pa.int32()), ("v", pa.string())])
    table = new_table(tmp_path, columns=columns, primary_keys=["k", "n"], bucket="1")
    pairs = [(value, n) for n in range(12) for value in values]
    for chosen, text in ((pairs, "old"), (pairs[1:3], "new"), (pairs[2:4], "newer")):
        keys = pa.array([k for k, _ in chosen], pa.int32() if kind == pa.date32() else kind)
        rows = [keys.cast(kind), pa.array([n for _, n in chosen], pa.int32())]
        schema = pa.schema([f.with_nullable(f.name == "v") for f in columns])
        table = write_arrow(table, pa.table([*rows, [text] * len(chosen)], schema=schema))

    assert IS_ON_S3 or is_native(table)
    assert spark_rows(read(table, spark)) == local_rows(table)


@pytest.mark.parametrize("seed", range(3))
def test_any_history_gives_the_merged_rows(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    keys = chance.choice([["id"], ["part", "id"]])
    table = put(a_table(tmp_path, keys, bucket=chance.choice(["1", "3"])), range(100), "old")
    for step in range(6):
        ids = sorted(chance.sample(range(130), chance.randint(1, 8)))
        table = put(table, ids, f"new{step}", chance.choice([None, None, "-D", "-U"]))
        if chance.random() < 0.3:
            table.compact(full=chance.random() < 0.5)
            table = reopened(table)
        wanted = sorted_rows(canonical_rows(table.to_arrow()))

        assert spark_rows(read(table, spark)) == wanted
        found = read(table, spark).where("name LIKE 'new%' AND id > 20")
        assert spark_rows(found) == local_rows(table, "name LIKE 'new%' AND id > 20")


@needs_disk
def test_many_newer_records_are_merged(spark: SparkSession, tmp_path: Path) -> None:
    table = put(put(a_table(tmp_path), range(40), "old"), range(20), "new")

    assert divide(*planned(table)).native == ()
    assert spark_rows(read(table, spark)) == local_rows(table)


@needs_disk
def test_more_records_than_every_task_should_get_are_merged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = put(put(a_table(tmp_path), range(40), "old"), range(3), "new")
    assert is_native(table)

    monkeypatch.setattr("emberlake.spark.division._MOST_RECORDS", 2)

    assert divide(*planned(table)).native == ()


@needs_disk
def test_more_bytes_of_keys_than_every_task_should_get_are_merged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = a_table(tmp_path, ["part"], bucket="1")
    for texts in (["a", "b" * 300, "c", "d", "e"], ["b" * 300]):
        rows = [["2026-01-01"], [1], texts, [0.5], ["x"]]
        columns = [part * (len(texts) // len(part)) for part in rows]
        table = write_arrow(table, pa.table(columns, table_columns(table)))
    assert is_native(table)

    monkeypatch.setattr("emberlake.spark.division._MOST_BYTES", 300)

    assert divide(*planned(table)).native == ()


@needs_disk
def test_explain_says_what_spark_joins(spark: SparkSession, tmp_path: Path) -> None:
    table = put(put(a_table(tmp_path, bucket="1"), range(40), "old"), [3], "new")

    said = table.new_read_builder().explain(spark=spark).spark

    assert said == (
        "2 files by Spark's own reader, 0 by Python workers; "
        "replaced records are left out by a join with the keys of 1 of them"
    )


def test_a_correlated_subquery_can_be_a_column(spark: SparkSession, tmp_path: Path) -> None:
    """Spark alone cannot plan it if some rows come from files and others from workers."""
    table = put(put(a_table(tmp_path), [1], "old"), [1, 2, 3, 4], "new")
    division = divide(*planned(table))
    assert division.native
    assert division.rest
    spark.range(10).selectExpr("id % 5 AS of", "id AS n").createOrReplaceTempView("numbers")
    read(table, spark).createOrReplaceTempView("outside")

    query = "SELECT id, (SELECT max(n) FROM numbers WHERE of = o.id) AS top FROM outside o"
    found = spark.sql(query).collect()

    assert sorted(tuple(row) for row in found) == [(1, 6), (2, 7), (3, 8), (4, 9)]

"""Tables as DataFrames: the rows that a read without Spark gives, whoever reads the files."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from canonical import canonical_rows, sorted_rows
from emberlake import (
    AtomicType,
    CatalogFactory,
    ColumnNotFound,
    InvalidInput,
    InvalidOption,
    InvalidPredicate,
    Schema,
    SchemaChange,
    SnapshotNotFound,
    Table,
    TableNotFound,
    TagNotFound,
)
from emberlake.spark import compact, read_paimon, write_paimon
from emberlake.spark.division import divide
from emberlake.spark.read import read_dataframe
from golden.reads import Golden, GoldenRead, reads_of, row_reads
from spark.reads import (
    altered,
    local_rows,
    planned,
    spark_rows,
    warehouse_of,
    write,
    write_arrow,
)
from spark.store_path import IS_ON_S3
from spark.tables import frame, new_table, path_of, reopened, some_rows

GOLDEN = [
    "append_all_types",
    "append_avro",
    "append_dv",
    "append_evolved",
    "append_nested",
    "append_partitioned",
    "bucketed_timestamp9",
    "pk_aggregation",
    "pk_dedup_levels",
    "pk_dv",
    "pk_evolved",
    "types_parquet",
]
# Spark reads them by itself, so that workers must be asked to.
BY_WORKERS = ["append_all_types", "append_nested", "append_partitioned"]
# Spark hands TIME to clients of Connect only where it is switched on.
TIME = "spark.sql.timeType.enabled"

NESTED = pa.table(
    {
        "id": [1, 2, 3, 4],
        "s": pa.array(
            [{"x": 1, "y": {"z": "a"}}, {"x": None, "y": None}, None, {"x": 4, "y": {"z": "d"}}],
            pa.struct([("x", pa.int64()), ("y", pa.struct([("z", pa.string())]))]),
        ),
        "a.b": [10, 20, 30, 40],
    }
)


def read(table: Table, spark: SparkSession, **arguments: Any) -> DataFrame:
    options = {"warehouse": warehouse_of(table)}
    return read_paimon("db.t", options, spark=spark, **arguments)


def splits_of(table: Table, **arguments: Any) -> tuple[int, int]:
    """How many files Spark reads by itself, and how many splits are left to workers."""
    division = divide(*planned(table, **arguments))
    return len(division.paths), len(division.rest)


def check_divided(table: Table, files: int, splits: int, **arguments: Any) -> None:
    """Spark reads so many files by itself, unless its session has no client for their store."""
    assert IS_ON_S3 or splits_of(table, **arguments) == (files, splits)


@pytest.fixture
def keyed(tmp_path: Path) -> Table:
    """A key table of two buckets with two runs in each, to be merged."""
    table = new_table(tmp_path, primary_keys=["id"], bucket="2", write_only="true")
    return write(write(table, range(20)), range(5, 30), name="second")


@pytest.fixture
def plain(tmp_path: Path) -> Table:
    """An append table of two files that Spark reads by itself."""
    return write(write(new_table(tmp_path), range(20)), range(20, 30))


# --- the same rows --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "num_partitions"), [*((name, None) for name in GOLDEN), *((n, 3) for n in BY_WORKERS)]
)
def test_a_golden_table_is_read_row_for_row(
    spark: SparkSession, golden: Golden, name: str, num_partitions: int | None
) -> None:
    (golden_read,) = (r for r in reads_of("append", "bucketed", "pk", "types") if str(r) == name)
    table = CatalogFactory.create({"warehouse": golden.warehouse})
    expected = table.get_table(f"golden.{golden_read.table}").copy(golden_read.options)

    with switched_on(spark, TIME):
        df = read_paimon(
            f"golden.{golden_read.table}",
            {"warehouse": golden.warehouse},
            spark=spark,
            dynamic_options=golden_read.options,
            num_partitions=num_partitions,
        )
        rows = canonical_rows(df.toArrow())

    assert df.columns == list(golden_read.columns)
    assert settled(golden_read, rows) == settled(golden_read, local_rows(expected))


@pytest.mark.parametrize("name", ["de_dv_partitioned", "de_evolved", "de_update", "rt_update"])
def test_rows_that_were_changed_are_read_with_their_ids(
    spark: SparkSession, golden_rows: Golden, name: str
) -> None:
    golden_read = next(r for r in row_reads() if r.table == name and r.is_tracked)
    options = {"warehouse": golden_rows.warehouse}
    table = CatalogFactory.create(options).get_table(f"golden.{name}").copy(golden_read.options)
    columns = list(golden_read.columns)

    df = read_paimon(
        f"golden.{name}",
        options,
        spark=spark,
        projection=columns,
        dynamic_options=golden_read.options,
    )

    assert spark_rows(df) == local_rows(table, columns=columns)
    where = "_ROW_ID >= 2"
    filtered = read_paimon(
        f"golden.{name}", options, spark=spark, projection=columns[:-2], filter=where
    )
    plain = CatalogFactory.create(options).get_table(f"golden.{name}")
    assert spark_rows(filtered) == local_rows(plain, where, columns[:-2])


def test_rows_that_spark_writes_get_ids_and_keep_them(spark: SparkSession, tmp_path: Path) -> None:
    table = new_table(tmp_path, row_tracking__enabled="true")
    options = {"warehouse": warehouse_of(table)}
    columns = ["id", "_ROW_ID"]
    for first in (0, 50):
        rows = frame(spark, some_rows(range(first, first + 50))).repartition(3)
        write_paimon(rows, "db.t", options)
    before = spark_rows(read(table, spark, projection=columns))

    compact("db.t", options, spark=spark, full=True)

    assert sorted(row[-1] for row in before) == list(range(100))
    assert spark_rows(read(table, spark, projection=columns)) == before


def settled(golden_read: GoldenRead, rows: list[Any]) -> list[Any]:
    return sorted_rows(rows, unordered=golden_read.unordered)


def test_both_ways_to_read_a_file_give_the_same_schema(spark: SparkSession, tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table = altered(table, SchemaChange.update_column_comment("name", "what it is called"))
    table = write(table)
    check_divided(table, 1, 0)

    native, worked = read(table, spark), read(table, spark, num_partitions=1)

    assert native.schema == worked.schema
    assert native.schema["name"].metadata == {"comment": "what it is called"}
    assert native.schema["id"].simpleString() == "id:bigint"
    assert [field.nullable for field in native.schema] == [True] * 4


def test_a_table_that_both_read_is_one_dataframe(spark: SparkSession, plain: Table) -> None:
    table = altered(plain, SchemaChange.rename_column("name", "label"))
    table = write_arrow(table, pa.table({"id": [77], "label": ["new"]}))
    check_divided(table, 1, 1)

    df = read(table, spark)

    assert spark_rows(df) == local_rows(table)
    assert df.filter("label = 'new' OR id = 3").orderBy("id").collect() == [
        (3, "2026-01-01", "first-3", 1.5),
        (77, None, "new", None),
    ]


def test_a_column_that_old_files_lack_is_null(spark: SparkSession, plain: Table) -> None:
    table = altered(plain, SchemaChange.add_column("more", AtomicType("INT")))
    table = write_arrow(table, pa.table({"id": [77], "more": pa.array([7], pa.int32())}))
    check_divided(table, 3, 0)

    df = read(table, spark)

    assert spark_rows(df) == local_rows(table)
    assert df.filter("more IS NULL").count() == 30
    assert read(table, spark, filter="more = 7").collect() == [(77, None, None, None, 7)]


@pytest.mark.parametrize(
    "days", [["a b", "x%20y", "q:z/é"], ["[1]", "{2}", "*?"], [None, "", "   ", "a=b", "#'\"\\"]]
)
def test_odd_partition_values_are_read(
    spark: SparkSession, tmp_path: Path, days: list[str | None]
) -> None:
    table = new_table(tmp_path / "odd name", partition_keys=["day"])
    rows = pa.table({"id": range(len(days)), "day": pa.array(days, pa.string())})
    table = write_arrow(table, rows)

    df = read(table, spark)

    assert df.columns == ["id", "day", "name", "price"]
    assert spark_rows(df) == local_rows(table)


def test_partition_folders_add_no_columns_and_change_no_values(
    spark: SparkSession, tmp_path: Path
) -> None:
    columns = pa.schema([("id", pa.int64()), ("dt", pa.date32()), ("n", pa.string())])
    table = new_table(tmp_path, columns=columns, partition_keys=["dt", "n"])
    days = [date(2026, 1, 1), date(2026, 1, 2)]
    rows = pa.table({"id": [1, 2], "dt": days, "n": ["007", "1e3"]})
    table = write_arrow(table, rows)
    check_divided(table, 2, 0)

    df = read(table, spark)

    assert spark_rows(df) == local_rows(table)
    assert read(table, spark, projection=["id"]).columns == ["id"]


def test_a_warehouse_with_a_name_that_looks_like_a_pattern(
    spark: SparkSession, tmp_path: Path
) -> None:
    write(new_table(tmp_path / "a1"), range(3))
    table = write(new_table(tmp_path / "a[12]*"), range(5))

    assert spark_rows(read(table, spark)) == local_rows(table)


def test_files_that_spark_takes_for_hidden_are_read(spark: SparkSession, tmp_path: Path) -> None:
    table = write(new_table(tmp_path, data_file__prefix="_data-"))

    assert spark_rows(read(table, spark)) == local_rows(table)


def test_names_that_differ_by_case_only_are_read(spark: SparkSession, tmp_path: Path) -> None:
    columns = pa.schema([("a", pa.int64()), ("A", pa.int64()), ("b c;", pa.int64())])
    table = new_table(tmp_path, columns=columns)
    table = write_arrow(table, pa.table({"a": [1], "A": [2], "b c;": [3]}))

    assert read(table, spark).collect() == [(1, 2, 3)]
    assert read(table, spark, projection=["A"]).collect() == [(2,)]
    check_divided(table, 1, 0, columns=["b c;"])
    assert read(table, spark, projection=["b c;"]).collect() == [(3,)]


@pytest.mark.parametrize("partition_keys", [[], ["day"]])
def test_a_split_that_is_given_twice_is_read_twice(
    spark: SparkSession, tmp_path: Path, partition_keys: list[str]
) -> None:
    table = write(new_table(tmp_path, partition_keys=partition_keys), range(5))
    _, splits = planned(table)

    df = table.new_read_builder().new_read().to_spark([*splits, *splits], spark)

    assert spark_rows(df) == sorted(local_rows(table) * 2)


def test_a_table_without_a_snapshot_is_an_empty_dataframe(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = new_table(tmp_path)

    df = read(table, spark, projection=["price", "id"])

    assert df.collect() == []
    assert df.schema.simpleString() == "struct<price:double,id:bigint>"


# --- what is asked for ----------------------------------------------------------------------------

FILTERS = [
    "id >= 7 AND id < 23",
    "name LIKE '%-1%' OR price IS NULL",
    "day IN ('2026-01-02', 'never')",
]


@pytest.mark.parametrize("where", FILTERS)
@pytest.mark.parametrize("kind", ["plain", "keyed"])
def test_a_filter_keeps_just_the_matching_rows(
    spark: SparkSession, request: pytest.FixtureRequest, kind: str, where: str
) -> None:
    table: Table = request.getfixturevalue(kind)

    df = read(table, spark, filter=where, projection=["name", "id"])

    assert df.columns == ["name", "id"]
    assert spark_rows(df) == local_rows(table, where, ["name", "id"])


def test_a_filter_may_be_a_predicate_of_the_tables_builder(
    spark: SparkSession, plain: Table
) -> None:
    predicate = plain.new_read_builder().new_predicate_builder().is_in("id", [3, 25])

    df = read(plain, spark, filter=predicate, projection=["id"])

    assert sorted(df.collect()) == [(3,), (25,)]


def test_a_filter_that_spark_cannot_say_is_applied_by_workers(
    spark: SparkSession, tmp_path: Path
) -> None:
    columns = pa.schema([("id", pa.int64()), ("at", pa.timestamp("ns"))])
    table = new_table(tmp_path, columns=columns)
    table = write_arrow(table, pa.table({"id": [1, 2], "at": [1_000, 1_999]}).cast(columns))

    df = read(table, spark, filter="at > TIMESTAMP '1970-01-01 00:00:00.000001500'")

    assert [row.id for row in df.collect()] == [2]


@pytest.mark.parametrize("num_partitions", [None, 2])
def test_fields_of_rows_are_projected_and_filtered(
    spark: SparkSession, tmp_path: Path, num_partitions: int | None
) -> None:
    table = write_arrow(new_table(tmp_path, columns=NESTED.schema), NESTED)
    columns = ["s.y.z", "a.b", "s.x", "s"]

    df = read(table, spark, projection=columns, num_partitions=num_partitions)

    assert df.columns == ["s_y_z", "a.b", "s_x", "s"]
    assert spark_rows(df) == local_rows(table, columns=columns)
    filtered = read(
        table, spark, filter="s.x > 1", projection=["s.y.z"], num_partitions=num_partitions
    )
    assert filtered.collect() == [("d",)]


@pytest.mark.parametrize("kind", ["plain", "keyed"])
@pytest.mark.parametrize("limit", [0, 7])
def test_a_limit_is_kept(
    spark: SparkSession, request: pytest.FixtureRequest, kind: str, limit: int
) -> None:
    table: Table = request.getfixturevalue(kind)

    rows = spark_rows(read(table, spark, limit=limit))

    assert len(rows) == limit
    assert [row for row in rows if row not in local_rows(table)] == []


def test_earlier_states_are_read_by_snapshot_and_tag(spark: SparkSession, keyed: Table) -> None:
    keyed.create_tag("start", 1)
    expected = local_rows(keyed.copy({"scan.snapshot-id": 1}))
    assert expected != local_rows(keyed)

    assert spark_rows(read(keyed, spark, snapshot_id=1)) == expected
    assert spark_rows(read(keyed, spark, tag_name="start")) == expected
    assert spark_rows(read(keyed, spark, dynamic_options={"scan.snapshot-id": 1})) == expected
    assert spark_rows(read(keyed, spark, snapshot_id=2)) == local_rows(keyed)


def test_an_earlier_state_has_the_columns_of_its_time(spark: SparkSession, plain: Table) -> None:
    table = altered(plain, SchemaChange.drop_column("price"))
    table = write_arrow(table, pa.table({"id": [77]}))

    assert read(table, spark, snapshot_id=1).columns == ["id", "day", "name", "price"]
    assert read(table, spark).columns == ["id", "day", "name"]


@pytest.mark.parametrize("mode", ["delta", "diff"])
def test_changes_are_read(spark: SparkSession, keyed: Table, mode: str) -> None:
    options = {"incremental-between": "1,2", "incremental-between-scan-mode": mode}
    assert splits_of(keyed.copy(options)) == (0, 2)

    df = read(keyed, spark, dynamic_options=options)

    assert spark_rows(df) == local_rows(keyed.copy(options))
    assert df.count() == 25


def test_row_kinds_come_out_where_they_are_asked_for(spark: SparkSession, keyed: Table) -> None:
    changed = write(keyed, [3, 4], kind="-D").copy({"incremental-between": "1,3"})
    reader, splits = planned(changed, columns=["id"])
    reader = replace(reader, with_kind=True)

    df = read_dataframe(reader, splits, spark)

    assert df.columns == ["_row_kind", "id"]
    assert spark_rows(df) == sorted_rows(canonical_rows(reader.read_table(splits)))
    assert df.filter("_row_kind = '-D'").count() == 2


def test_a_read_may_be_of_splits_of_several_plans(spark: SparkSession, keyed: Table) -> None:
    reader = keyed.new_read_builder().with_projection(["id"])
    scans = [keyed.new_read_builder().with_filter(w).new_scan() for w in ("id < 3", "id > 27")]
    splits = [split for scan in scans for split in scan.plan().splits()]

    df = reader.new_read().to_spark(splits, spark)

    assert sorted(df.collect()) == [(0,), (1,), (2,), (28,), (29,)]


# --- how it is read -------------------------------------------------------------------------------


def partition_ids(df: DataFrame) -> list[int]:
    """For every row the partition that it came from, in order."""
    return [row[0] for row in df.select(sql.spark_partition_id()).collect()]


def partition_count(df: DataFrame) -> int:
    """All partitions, empty ones too."""

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            pass
        yield pa.RecordBatch.from_pydict({"n": [1]})

    return len(df.mapInArrow(count, "n bigint").collect())


@pytest.mark.parametrize("count", [3, 7])
def test_the_number_of_partitions_can_be_set(
    spark: SparkSession, tmp_path: Path, count: int
) -> None:
    table = write(new_table(tmp_path, primary_keys=["id"], bucket="5"), range(40))

    df = read(table, spark, num_partitions=count)

    assert partition_count(df) == count
    assert len(set(partition_ids(df))) == min(count, 5)
    assert spark_rows(df) == local_rows(table)


def test_splits_are_read_in_parallel_by_default(spark: SparkSession, keyed: Table) -> None:
    assert set(partition_ids(read(keyed, spark))) == {0, 1}


def test_partitions_keep_the_order_of_the_splits(spark: SparkSession, tmp_path: Path) -> None:
    table = new_table(tmp_path, source__split__target_size="1 b")
    for start in (0, 10, 20, 30):
        table = write(table, range(start, start + 10))

    df = read(table, spark, num_partitions=2)

    assert [row.id for row in df.toLocalIterator()] == list(range(40))
    assert partition_ids(df) == [0] * 20 + [1] * 20


@pytest.mark.on_disk
def test_only_what_is_selected_is_read_by_spark(
    spark: SparkSession, plain: Table, capsys: pytest.CaptureFixture[str]
) -> None:
    read(plain, spark, filter="id > 3").agg(sql.sum("price")).explain()

    plan = capsys.readouterr().out
    assert "ReadSchema: struct<id:bigint,price:double>" in plan
    assert "GreaterThan(id,3)" in plan
    assert "MapInArrow" not in plan


PARTITION_TYPES = {
    "text": (pa.string(), ["a b", "x/y", "007"], "text = 'a b'"),
    "day": (
        pa.date32(),
        [date(2026, 1, 1), date(1969, 12, 31), date(1, 1, 1)],
        "day = '2026-01-01'",
    ),
    "n": (pa.int8(), [-1, 0, 127], "n < 0"),
    "big": (pa.int64(), [1 << 40, -(1 << 62), 3], "big = 1099511627776"),
    "yes": (pa.bool_(), [True, False, True], "NOT yes"),
    "price": (pa.decimal128(20, 3), [Decimal("1.500"), Decimal("-2.001"), Decimal(0)], "price > 1"),
    "at": (
        pa.timestamp("us"),
        [1_767_262_272_345_678, -315_619_200_000_000, 1_767_225_600_000_000],
        "at > '2026-01-01 10:00:00'",
    ),
    "now": (
        pa.timestamp("ms", "UTC"),
        [datetime(2026, 1, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC), None],
        "now < timestamp'2026-06-01 00:00:00Z'",
    ),
    "f": (pa.float64(), [1.5, float("nan"), -0.0], "f = 0"),
}


@pytest.mark.on_disk
@pytest.mark.parametrize("legacy", ["true", "false"])
def test_spark_prunes_partitions_of_every_type_and_reads_their_exact_values(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str], legacy: str
) -> None:
    for name, (kind, values, where) in PARTITION_TYPES.items():
        if name == "now" and legacy == "false":
            continue  # tables have no such partitions
        columns = pa.schema([("id", pa.int64()), (name, kind)])
        table = new_table(
            tmp_path / name,
            columns=columns,
            partition_keys=[name],
            partition__legacy_name=legacy,
        )
        ids, parts = range(len(values) + 1), pa.array([*values, None], kind)
        table = write_arrow(table, pa.table([ids, parts], schema=columns))
        files = len({*values, None})

        df = read(table, spark)

        check_divided(table, files, 0)
        assert spark_rows(df) == local_rows(table), name
        assert df.where(f"{name} IS NULL").count() == 1 + values.count(None)
        chosen = df.where(where)
        plain = spark.createDataFrame(df.collect(), df.schema).where(where)
        assert spark_rows(chosen) == spark_rows(plain), name
        chosen.explain()
        is_pruned = "PartitionFilters: []" not in capsys.readouterr().out
        assert is_pruned == (name != "f" and not is_connect(spark)), name


@pytest.mark.on_disk
def test_files_of_pruned_partitions_are_not_opened(spark: SparkSession, tmp_path: Path) -> None:
    table = write(new_table(tmp_path, partition_keys=["day"]))
    for path in path_of(table.table_path).rglob("day=2026-01-01/*/*.parquet"):
        path.write_bytes(b"not a file to read")
    df = read(table, spark)

    chosen = df.where("day = '2026-01-02'")
    if is_connect(spark):  # its sessions take no partition values, so Spark opens every file
        with pytest.raises(Exception, match="not a Parquet file"):
            chosen.count()
    else:
        assert chosen.count() == 3
    with pytest.raises(Exception, match="not a Parquet file"):
        df.select("id").collect()


@pytest.mark.on_disk
def test_a_file_of_a_partition_that_is_gone_fails_loudly(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = write(new_table(tmp_path, partition_keys=["day"]))
    reader, splits = planned(table)
    next(path_of(table.table_path).rglob("day=2026-01-01/*/*.parquet")).unlink()

    with pytest.raises(Exception, match="PATH_NOT_FOUND"):
        read_dataframe(reader, splits, spark).collect()


def is_connect(spark: SparkSession) -> bool:
    return type(spark) is not SparkSession


FLOATS = pa.schema(
    [
        pa.field("f", pa.float32()),
        pa.field("d", pa.float64()),
        pa.field("s", pa.struct([("x", pa.float64()), ("r", pa.struct([("y", pa.float32())]))])),
    ]
)


@pytest.mark.parametrize(
    ("floats", "condition", "count"),
    [
        ([1.5, float("nan")], "> 2", 1),
        ([1.5, float("nan")], "= double('nan')", 1),
        ([1.5, float("nan")], "<> 1.5", 1),
        ([-0.0] * 20, "= 0", 20),
    ],
)
def test_conditions_on_floats_mean_what_they_mean_to_spark(
    spark: SparkSession, tmp_path: Path, floats: list[float], condition: str, count: int
) -> None:
    rows = [{"f": x, "d": x, "s": {"x": x, "r": {"y": x}}} for x in floats]
    table = new_table(tmp_path, columns=FLOATS)
    table = write_arrow(table, pa.Table.from_pylist(rows, FLOATS))
    df = read(table, spark)

    check_divided(table, 1, 0)
    for column in ("f", "d", "s.x", "s.r.y"):
        assert df.where(f"{column} {condition}").count() == count, column


def lost_file(table: Table) -> str:
    paths = sorted(path_of(table.table_path).rglob("data-*.parquet"))
    paths[0].unlink()
    return paths[0].name


@pytest.mark.parametrize("kind", ["plain", "keyed"])
def test_nothing_is_read_before_an_action_and_a_lost_file_fails_loudly(
    spark: SparkSession, request: pytest.FixtureRequest, kind: str
) -> None:
    table: Table = request.getfixturevalue(kind)
    df = read(table, spark).filter("price > 1").select("id")
    name = lost_file(table)

    with (
        switched_on(spark, "spark.sql.files.ignoreMissingFiles"),
        pytest.raises(Exception, match=name),
    ):
        df.collect()


def test_a_damaged_file_fails_loudly(spark: SparkSession, plain: Table) -> None:
    path = next(path_of(plain.table_path).rglob("data-*.parquet"))
    path.write_bytes(b"PAR1" + bytes(path.stat().st_size - 8) + b"PAR1")

    with (
        switched_on(spark, "spark.sql.files.ignoreCorruptFiles"),
        pytest.raises(Exception, match=path.name),
    ):
        read(plain, spark).collect()


class switched_on:  # noqa: N801 - a context manager, named as it reads
    """Settings of the session that are true for a while."""

    def __init__(self, spark: SparkSession, *names: str) -> None:
        self.spark, self.names = spark, names

    def __enter__(self) -> None:
        self.before = {name: self.spark.conf.get(name) for name in self.names}
        for name in self.names:
            self.spark.conf.set(name, "true")

    def __exit__(self, *_: object) -> None:
        for name, value in self.before.items():
            self.spark.conf.set(name, value)


# --- a DataFrame like any other -------------------------------------------------------------------


@pytest.fixture(params=["plain", "keyed"])
def df(spark: SparkSession, request: pytest.FixtureRequest) -> DataFrame:
    return read(request.getfixturevalue(request.param), spark)


def test_rows_are_filtered_mapped_grouped_and_joined(spark: SparkSession, df: DataFrame) -> None:
    days = spark.createDataFrame(
        [("2026-01-01", "thu"), ("2026-01-02", "fri")], "day string, w string"
    )

    found = (
        df.filter(sql.col("id") >= 10)
        .withColumn("double", sql.col("price") * 2)
        .join(days, "day")
        .groupBy("w")
        .agg(sql.count("*"), sql.sum("double"))
        .orderBy("w")
        .collect()
    )

    assert found == [("fri", 7, 133.0), ("thu", 6, 117.0)]


def test_rows_are_sampled_and_mapped_in_python(df: DataFrame) -> None:
    def halved(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch.select(["id"]).filter(pa.compute.less(batch.column("id"), 15))

    assert df.sample(fraction=1.0, seed=1).count() == 30
    assert 0 < df.sample(fraction=0.5, seed=1).count() < 30
    assert df.mapInArrow(halved, "id bigint").count() == 15


@pytest.mark.parametrize(
    "collected",
    [
        lambda df: df.toPandas()["id"].tolist(),
        lambda df: df.toArrow().column("id").to_pylist(),
        lambda df: [row.id for row in df.toLocalIterator()],
        lambda df: [row.id for row in df.collect()],
    ],
    ids=["pandas", "arrow", "iterator", "rows"],
)
def test_rows_are_collected(df: DataFrame, collected: Callable[[DataFrame], list[int]]) -> None:
    assert sorted(collected(df)) == list(range(30))


def test_what_is_read_can_be_written_to_another_table(
    spark: SparkSession, keyed: Table, tmp_path: Path
) -> None:
    options = {"warehouse": str(tmp_path)}
    schema = Schema.from_pyarrow_schema(pa.schema([("id", pa.int64()), ("name", pa.string())]))
    CatalogFactory.create(options).create_table("db.copy", schema)

    write_paimon(read(keyed, spark).filter("id > 3").select("id", "name"), "db.copy", options)

    copy = CatalogFactory.create(options).get_table("db.copy")
    assert local_rows(copy) == local_rows(keyed, "id > 3", ["id", "name"])


def test_a_table_can_be_read_while_it_is_written(spark: SparkSession, keyed: Table) -> None:
    df = read(keyed, spark)
    expected = local_rows(keyed)
    write(keyed, range(40), name="third")

    assert spark_rows(df) == expected
    assert spark_rows(read(keyed, spark)) == local_rows(reopened(keyed)) != expected


def test_a_job_in_another_thread_finds_the_session(spark: SparkSession, plain: Table) -> None:
    assert spark is not None  # nothing is given to the jobs, which must find it
    place = {"warehouse": warehouse_of(plain)}

    with ThreadPoolExecutor(max_workers=1) as pool:
        rows = pool.submit(lambda: read_paimon("db.t", place).count()).result()
        compacted = pool.submit(compact, "db.t", place, full=True).result()

    assert rows == len(local_rows(plain))
    assert compacted.files_added == 1


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"num_partitions": 0}, InvalidInput, "at least one partition"),
        ({"num_partitions": True}, InvalidInput, "num_partitions=True"),
        ({"limit": -1}, InvalidInput, "limit"),
        ({"projection": ["id", "no", "nor"]}, ColumnNotFound, "no, nor"),
        ({"filter": "no = 1"}, ColumnNotFound, "no"),
        ({"filter": "id = = 1"}, InvalidPredicate, "="),
        ({"snapshot_id": 1, "tag_name": "x"}, InvalidInput, "snapshot_id or tag_name, not both"),
        (
            {"snapshot_id": 1, "dynamic_options": {"scan.snapshot-id": "1"}},
            InvalidInput,
            "scan.snapshot-id is given twice",
        ),
        (
            {"tag_name": "x", "dynamic_options": {"incremental-between": "1,2"}},
            InvalidOption,
            "scan.tag-name, incremental-between",
        ),
        ({"snapshot_id": 99}, SnapshotNotFound, "99"),
        ({"tag_name": "never"}, TagNotFound, "never"),
        ({"dynamic_options": {"bucket": "7"}}, InvalidOption, "bucket"),
        (
            {"dynamic_options": {"scan.snapshot_id": "1"}},
            InvalidOption,
            "scan.snapshot_id: did you mean scan.snapshot-id",
        ),
    ],
)
def test_arguments_that_cannot_be_used_are_one_typed_error(
    spark: SparkSession, plain: Table, arguments: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        read(plain, spark, **arguments)


def test_a_table_that_does_not_exist_is_a_typed_error(spark: SparkSession, plain: Table) -> None:
    with pytest.raises(TableNotFound, match=r"db\.other"):
        read_paimon("db.other", {"warehouse": warehouse_of(plain)}, spark=spark)
    with pytest.raises(InvalidInput, match="system table"):
        read_paimon("db.t$snapshots", {"warehouse": warehouse_of(plain)}, spark=spark)

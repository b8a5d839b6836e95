"""Tables of a REST catalog on Spark: tasks write the files, the server publishes the snapshots."""

import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from emberlake import CatalogFactory, InvalidSql, Schema, Unsupported
from emberlake.spark import (
    Lake,
    attach,
    compact,
    delete,
    merge,
    read_paimon,
    update,
    write_paimon,
)
from interop.judges import catalog_options, java_judge
from query_auth import leaf, rules, upper
from rest_recordings import labelled
from rest_server import TOKEN, RestServer, serving
from server.processes import served
from servers import SECRET, proxy_of, s3_server
from spark.conftest import MODE
from spark.short_keys import ACCESS_KEYS
from spark.sight import executions, explained
from spark.tables import COLUMNS, frame, some_rows

QUERY_AUTH = pa.schema([("k", pa.int64()), ("v", pa.string())])


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RestServer]:
    with serving(tmp_path / "served") as made:
        made.catalog.create_database("db")
        yield made


def test_a_table_is_written_read_compacted_and_streamed_and_no_token_is_shown(
    spark: SparkSession, server: RestServer, tmp_path: Path
) -> None:
    options = server.options
    catalog = CatalogFactory.create(options)
    catalog.create_table("db.k", COLUMNS, primary_keys=["id"], options={"bucket": "2"})
    catalog.create_table("db.sink", COLUMNS)

    write_paimon(frame(spark, some_rows(range(20))), "db.k", options)
    write_paimon(frame(spark, some_rows(range(10, 30), name="new")), "db.k", options)
    compact("db.k", options, full=True)
    query = (
        spark.readStream.format("emberlake").options(**options).load("db.k")
        .writeStream.format("emberlake").options(**options)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True).start("db.sink")
    )  # fmt: skip
    query.awaitTermination()
    read = spark.read.format("emberlake").options(**options).load("db.k")

    expected = [*some_rows(range(10)), *some_rows(range(10, 30), name="new")]
    assert sorted(tuple(row) for row in read.collect()) == expected
    by_job = read_paimon("db.sink", options)
    assert sorted(tuple(row) for row in by_job.collect()) == expected
    assert len(server.asked("POST .*/commit$")) == 4  # two writes, a compaction, a micro-batch
    shown = [explained(read), explained(by_job), str(query.recentProgress)]
    if MODE == "classic":
        read.createOrReplaceTempView("of_rest")
        deadline = time.monotonic() + 20
        while not any("token.provider" in text for text in shown):
            assert time.monotonic() < deadline
            shown += executions(spark)
        shown += [f"{key}={value}" for key, value in spark.sparkContext.getConf().getAll()]
    assert [text for text in shown if TOKEN in text] == []


def _tuples(found: DataFrame) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in found.collect())


@pytest.fixture
def lake_with_view(spark: SparkSession, server: RestServer) -> Iterator[Lake]:
    """A lake in whose database db the view v shows the column k of the table t."""
    [view] = labelled("get view")
    lake = attach(spark, server.options)
    lake.sql("CREATE TABLE db.t (k BIGINT, g STRING)")
    lake.sql("INSERT INTO db.t VALUES (1, 'a'), (2, 'b')")
    server.views["db", "v"] = view["answer"]
    yield lake
    lake.detach()


def test_a_view_of_a_server_is_read_by_sql_and_sees_the_names_of_its_database(
    lake_with_view: Lake,
) -> None:
    lake = lake_with_view

    joined = lake.sql("SELECT x.k FROM db.v x JOIN db.t ON x.k = t.k WHERE g = 'b'")
    assert _tuples(joined) == [(2,)]
    assert _tuples(lake.sql("SELECT sum(v.k) FROM paimon.db.v")) == [(3,)]
    assert _tuples(lake.sql("SELECT n FROM db.v AS w(n) WHERE n > 1")) == [(2,)]
    assert _tuples(lake.sql("DESCRIBE db.v")) == [("k", "bigint", None)]
    assert _tuples(lake.sql("SHOW VIEWS IN db")) == [("db", "v", False)]
    lake.sql("USE db")
    assert _tuples(lake.sql("WITH t AS (SELECT 7 AS k) SELECT t.k, v.k FROM t, v")) == [
        (7, 1),
        (7, 2),
    ]


def test_a_view_of_a_server_is_a_source_of_writes(lake_with_view: Lake) -> None:
    lake = lake_with_view

    lake.sql("INSERT INTO db.t SELECT k + 10, 'new' FROM db.v")
    lake.sql(
        "MERGE INTO db.t USING (SELECT * FROM db.v WHERE k > 11) s ON t.k = s.k "
        "WHEN MATCHED THEN UPDATE SET g = 'merged'"
    )

    assert _tuples(lake.sql("SELECT * FROM db.t")) == [
        (1, "a"),
        (2, "b"),
        (11, "new"),
        (12, "merged"),
    ]
    assert _tuples(lake.sql("SELECT * FROM db.v")) == [(1,), (2,), (11,), (12,)]


def test_a_view_of_a_server_does_not_see_temporary_views(lake_with_view: Lake) -> None:
    lake = lake_with_view
    lake.sql("CREATE TEMPORARY VIEW t AS SELECT 99L AS k")

    try:
        assert _tuples(lake.sql("SELECT k FROM db.v")) == [(1,), (2,)]
        assert _tuples(lake.sql("SELECT k FROM t")) == [(99,)]
    finally:
        lake.sql("DROP VIEW t")


def test_what_a_view_of_a_server_cannot_do_is_refused(
    spark: SparkSession, server: RestServer, lake_with_view: Lake
) -> None:
    lake = lake_with_view
    view = server.views["db", "v"]
    itself = {**view["schema"], "dialects": {}, "query": "SELECT k FROM v"}

    with pytest.raises(Unsupported, match=r"db\.v is a view"):
        lake.sql("SELECT * FROM db.v VERSION AS OF 1")
    with pytest.raises(AnalysisException):  # Spark has names of tables alone
        spark.sql("SELECT * FROM db.v")
    server.views["db", "v"] = {**view, "schema": itself}
    with pytest.raises(InvalidSql, match="uses itself"):
        lake.sql("SELECT * FROM db.v")


@pytest.mark.interop
@pytest.mark.slow  # what it does is tested with a folder; that it is done with a server, above
def test_everything_that_spark_does_with_a_folder_it_does_with_a_server(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Through `emberlake serve`; Java Paimon reads the result through it, too."""
    with served(tmp_path) as lake:
        options = catalog_options(lake)
        catalog = CatalogFactory.create(options)
        catalog.create_database("db")
        vectors = {"deletion-vectors.enabled": "true"}
        catalog.create_table("db.rows", COLUMNS, options=vectors)
        catalog.create_table("db.keys", COLUMNS, primary_keys=["id"], options={"bucket": "2"})
        catalog.create_table("db.sink", COLUMNS)
        for name in ("db.rows", "db.keys"):
            write_paimon(frame(spark, some_rows(range(20))), name, options)
            save = frame(spark, some_rows(range(20, 30))).write.format("emberlake")
            save.options(**options).mode("append").save(name)

            update(name, options, {"name": "upper(name)"}, "id % 3 = 0", spark=spark)
            delete(name, options, "id < 5 OR id % 7 = 0", spark=spark)
            source = frame(spark, some_rows(range(25, 40), name="merged"))
            made = merge(source, name, options, ["id"])
            made.when_matched_update_all().when_not_matched_insert_all().execute()
            compact(name, options, full=True)

        copied = (
            spark.readStream.format("emberlake").options(**options).load("db.rows")
            .writeStream.format("emberlake").options(**options)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True).start("db.sink")
        )  # fmt: skip
        copied.awaitTermination()

        merged = {row[0]: row for row in some_rows(range(25, 40), name="merged")}
        kept = [row for row in some_rows(range(5, 25)) if row[0] % 7]
        changed = [(*row[:2], row[2].upper(), row[3]) if row[0] % 3 == 0 else row for row in kept]
        expected = sorted([*changed, *merged.values()])
        by_source = spark.read.format("emberlake").options(**options).load("db.keys")
        assert sorted(tuple(row) for row in by_source.collect()) == expected
        lake_of_it = attach(spark, options)
        for sql in (spark.sql, lake_of_it.sql):
            assert sorted(tuple(row) for row in sql("SELECT * FROM db.keys").collect()) == expected
        lake_of_it.detach()
        for name in ("db.rows", "db.keys", "db.sink"):
            assert sorted(tuple(row) for row in read_paimon(name, options).collect()) == expected
            assert len(java_judge().rows(lake, name)) == len(expected)
            table = catalog.get_table(name)
            assert table.check().ok
            table.expire_snapshots(retain_max=1, retain_min=1)
            assert sorted(tuple(row.values()) for row in table.to_arrow().to_pylist()) == expected


def test_a_job_that_outlives_many_tokens_finishes(
    spark: SparkSession, server: RestServer, tmp_path: Path
) -> None:
    """Every token ends after 20 requests; workers get the next one from the catalog."""
    given = iter(ACCESS_KEYS)
    with s3_server(tmp_path, guests=ACCESS_KEYS) as s3, proxy_of(s3, tmp_path) as proxy:
        place = {**s3.options, "s3.endpoint": proxy.endpoint}
        server.served_from(s3, f"{s3.root}/wh")
        server.config = {"overrides": {"data-token.enabled": "true"}}
        server.token_answer = lambda: {
            "token": {**place, "s3.access-key": next(given)},
            "expiresAtMillis": 4_000_000_000_000,
        }
        proxy.fail(how="403-ExpiredToken", when="before", times=10_000, life=20)
        catalog = CatalogFactory.create(server.options)
        catalog.create_database("db")
        catalog.create_table("db.t", COLUMNS, primary_keys=["id"], options={"bucket": "4"})

        write_paimon(frame(spark, some_rows(range(40))), "db.t", server.options)
        write_paimon(frame(spark, some_rows(range(20, 60), name="second")), "db.t", server.options)
        compact("db.t", server.options, full=True)
        read = read_paimon("db.t", server.options)
        found = sorted(tuple(row) for row in read.collect())

        assert found == [*some_rows(range(20)), *some_rows(range(20, 60), name="second")]
        assert SECRET not in explained(read)
        assert proxy.clear() == []  # some keys did end
    assert len(server.asked("GET .*/token$")) > 3


def test_query_auth_is_obeyed_by_every_read_and_nothing_is_rewritten(
    spark: SparkSession, server: RestServer, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    options = server.options
    catalog = CatalogFactory.create(options)
    guarded = {"query-auth.enabled": "true"}
    table = catalog.create_table("db.q", Schema.from_pyarrow_schema(QUERY_AUTH, options=guarded))
    sink = catalog.create_table("db.seen", QUERY_AUTH)
    table.append(pa.table({"k": [1, 2, 3], "v": ["ann", "bob", None]}, schema=QUERY_AUTH))
    assert _tuples(read_paimon("db.q", options)) == [(1, "ann"), (2, "bob"), (3, None)]
    hidden = rules(leaf("k", "LESS_THAN", 3), masks={"v": upper("v")})
    server.rules = lambda _: hidden
    lake = attach(spark, options, name="guarded")
    request.addfinalizer(lake.detach)
    source = spark.read.format("emberlake").options(**options).load("db.q")

    expected = [(1, "ANN"), (2, "BOB")]
    assert _tuples(read_paimon("db.q", options)) == expected
    assert _tuples(read_paimon("db.q", options, filter="v = 'BOB'")) == [(2, "BOB")]
    assert _tuples(read_paimon("db.q", options, filter="v = 'bob'")) == []
    assert _tuples(lake.sql("SELECT * FROM db.q")) == expected
    assert _tuples(lake.sql("SELECT k FROM db.q WHERE v = 'BOB'")) == [(2,)]
    assert _tuples(lake.sql("SELECT v FROM db.`q$audit_log`")) == [("ANN",), ("BOB",)]
    assert _tuples(lake.sql("SELECT k, __paimon_bucket FROM db.q")) == [(1, 0), (2, 0)]
    assert _tuples(source) == expected
    assert _tuples(source.where("v = 'BOB'")) == [(2, "BOB")]
    query = (
        spark.readStream.format("emberlake").options(**options).load("db.q")
        .writeStream.format("emberlake").options(**options)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True).start("db.seen")
    )  # fmt: skip
    query.awaitTermination()
    assert sorted(zip(*sink.to_arrow().to_pydict().values(), strict=True)) == expected
    for refused in (
        lambda: delete("db.q", options, "k = 1"),
        lambda: update("db.q", options, {"v": "'x'"}, "k = 1"),
        lambda: compact("db.q", options, full=True),
        lambda: lake.sql("DELETE FROM db.q WHERE k = 1"),
        lambda: lake.sql("SELECT __paimon_file_path FROM db.q"),
    ):
        with pytest.raises(Unsupported, match="this needs all rows as they are"):
            refused()

    server.rules = lambda _: rules()
    assert delete("db.q", options, "k = 1").rows_deleted == 1
    assert _tuples(read_paimon("db.q", options)) == [(2, "bob"), (3, None)]

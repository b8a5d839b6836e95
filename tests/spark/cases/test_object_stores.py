"""Tables on an S3 server: Spark's workers reach it by themselves, without a JAR.

The driver uses the store before it starts a task, and workers are used again by later tests: what
must not cross a fork would hang here.
"""

import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from emberlake import Catalog, CatalogFactory, Table
from emberlake.errors import StorageError
from emberlake.spark import compact, read_paimon, write_paimon
from servers import SECRET, Proxy, Server, proxy_of, s3_server
from spark.conftest import MODE
from spark.short_keys import ACCESS_KEYS, TokenService
from spark.sight import executions, explained
from spark.tables import COLUMNS, Row, frame, some_rows

KEYS = ("s3.access-key", "s3.secret-key")


@dataclass(frozen=True)
class Lake:
    """A warehouse on the server, and a session."""

    spark: SparkSession
    options: dict[str, object]

    @property
    def catalog(self) -> Catalog:
        return CatalogFactory.create(self.options)

    def create(self, name: str = "db.t", **declared: object) -> Table:
        catalog = self.catalog
        catalog.create_database("db", ignore_if_exists=True)
        return catalog.create_table(name, COLUMNS, **declared)

    def append(self, ids: range, name: str = "db.t", **options: object) -> None:
        write_paimon(self.rows(ids), name, {**self.options, **options})

    def rows(self, ids: range, label: str = "first") -> DataFrame:
        return frame(self.spark, some_rows(ids, name=label))

    def read(self, name: str = "db.t") -> list[Row]:
        """By Spark, which must see what is seen without it."""
        seen = sorted(tuple(row) for row in read_paimon(name, self.options).collect())
        local = self.catalog.get_table(name).to_arrow().to_pylist()
        assert seen == sorted(tuple(row.values()) for row in local)
        return seen


@pytest.fixture
def lake(spark: SparkSession, s3: Server) -> Lake:
    return Lake(spark, {"warehouse": f"{s3.root}/{uuid.uuid4()}", **s3.options})


@pytest.fixture
def proxy(s3: Server, tmp_path: Path) -> Iterator[Proxy]:
    with proxy_of(s3, tmp_path) as started:
        yield started


def test_rows_are_appended_and_read(lake: Lake) -> None:
    lake.create(partition_keys=["day"])

    lake.append(range(20))
    lake.append(range(20, 30))

    assert lake.read() == some_rows(range(30))
    found = read_paimon("db.t", lake.options, filter="id >= 25", projection=["id"])
    assert sorted(row.id for row in found.collect()) == [25, 26, 27, 28, 29]


def test_an_overwrite_replaces_the_partitions_that_it_touches(lake: Lake) -> None:
    lake.create(partition_keys=["day"])
    lake.append(range(9))

    write_paimon(lake.rows(range(0, 9, 3), "new"), "db.t", lake.options, overwrite=True)

    kept = [row for row in some_rows(range(9)) if row[0] % 3]
    assert lake.read() == sorted([*kept, *some_rows(range(0, 9, 3), name="new")])


def test_a_key_table_is_upserted_and_compacted_by_tasks(lake: Lake) -> None:
    table = lake.create(primary_keys=["id"], options={"bucket": "2"})
    lake.append(range(20))
    write_paimon(lake.rows(range(10, 30), "second"), "db.t", lake.options)
    expected = [*some_rows(range(10)), *some_rows(range(10, 30), name="second")]
    assert lake.read() == expected

    compact("db.t", lake.options, full=True)

    assert lake.read() == expected
    assert table.snapshot_manager().latest_id() == 3


def test_streams_and_batches_of_the_data_source_show_no_secret(lake: Lake, tmp_path: Path) -> None:
    lake.create("db.source")
    lake.create("db.sink")
    options = {key: str(value) for key, value in lake.options.items()}
    lake.rows(range(10)).write.format("emberlake").options(**options).mode("append").save(
        "db.source"
    )

    query = (
        lake.spark.readStream.format("emberlake")
        .options(**options)
        .load("db.source")
        .writeStream.format("emberlake")
        .options(**options)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start("db.sink")
    )
    query.awaitTermination()

    named = {key: value for key, value in options.items() if key not in KEYS}
    named["s3.credentials-provider"] = "spark.short_keys:lasting_keys"
    read = lake.spark.read.format("emberlake").options(**named).load("db.sink")
    assert sorted(tuple(row) for row in read.collect()) == some_rows(range(10))
    by_job = read_paimon("db.sink", lake.options)
    assert_hidden(explained(read), explained(by_job))
    if MODE == "classic":
        lake.spark.read.format("emberlake").options(**options).load("db.sink").createTempView("s3")
        deadline = time.monotonic() + 20
        shown: list[str] = []
        # Options are shown as such, once Spark's listener has heard of the view.
        while not any("s3.access-key" in text for text in shown):
            assert time.monotonic() < deadline
            shown = list(executions(lake.spark))
        assert_hidden(*shown, str(query.recentProgress))


def assert_hidden(*texts: str) -> None:
    assert [text for text in texts if SECRET in text] == []


def test_an_error_of_the_store_in_a_task_is_reported_as_it_is(lake: Lake, proxy: Proxy) -> None:
    lake.create()
    proxy.fail(method="PUT", match="bucket-0", how="403-AccessDenied", when="before", times=99)

    with pytest.raises(StorageError, match=r"may not create .*AccessDenied"):
        lake.append(range(5), **{"s3.endpoint": proxy.endpoint})

    assert lake.catalog.get_table("db.t").to_arrow().num_rows == 0


def test_jobs_go_on_with_new_credentials_when_theirs_end(
    spark: SparkSession, tmp_path: Path
) -> None:
    given_out = tmp_path / "given-out"
    given_out.mkdir()
    with s3_server(tmp_path, guests=ACCESS_KEYS) as server, proxy_of(server, tmp_path) as proxy:
        given = {key: value for key, value in server.options.items() if key not in KEYS}
        given |= {"s3.endpoint": proxy.endpoint, "warehouse": f"{server.root}/wh"}
        lake = Lake(spark, {**given, "s3.credentials-provider": TokenService(given_out)})
        proxy.fail(how="403-ExpiredToken", when="before", times=10_000, life=20)

        lake.create(primary_keys=["id"], options={"bucket": "4"})
        lake.append(range(40))
        write_paimon(lake.rows(range(20, 60), "second"), "db.t", lake.options)
        compact("db.t", lake.options, full=True)

        expected = [*some_rows(range(20)), *some_rows(range(20, 60), name="second")]
        assert lake.read() == expected
        assert proxy.clear() == []  # some keys did end
    assert len(list(given_out.iterdir())) > 5

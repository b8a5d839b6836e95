"""Use a table on S3 in every way, with Spark's UI and event log on; what they show goes to a file.

python -m spark.drivers.watched_lake HOME OPTIONS WRONG

OPTIONS are catalog options as JSON, WRONG has by name what makes them fail. HOME/shown has a line
for each text: where it was, and itself.
"""

import json
import os
import sys
import traceback
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from emberlake import CatalogFactory
from emberlake.errors import EmberlakeError
from emberlake.spark import attach, compact, delete, merge, read_paimon, update, write_paimon
from spark.conftest import SETTINGS
from spark.sight import executions, explained

PAGES = ("jobs/", "stages/", "storage/", "SQL/", "environment/", "executors/", "StreamingQuery/")
API = ("environment", "jobs", "stages", "executors", "sql?length=1000&details=true")
Shown = Iterator[tuple[str, str]]


def watched_session(home: Path) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"  # the UI listens there
    (home / "events").mkdir()
    builder = SparkSession.builder.appName("emberlake-watched").master("local[2]")
    own = {
        "spark.ui.enabled": "true",
        "spark.ui.port": "0",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": f"file:{home}/events",
        "spark.sql.warehouse.dir": str(home / "warehouse"),
    }
    for name, value in {**SETTINGS, **own}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def work(spark: SparkSession, options: dict[str, str], home: Path) -> Shown:
    """Write and read in every way; what is shown of it meanwhile."""
    catalog = CatalogFactory.create(options)
    catalog.create_database("db")
    columns = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])
    for name in ("a", "b", "c"):
        catalog.create_table(f"db.{name}", columns)
    catalog.create_table("db.k", columns, primary_keys=["id"], options={"bucket": "2"})
    rows = spark.range(20).selectExpr("id", "cast(id AS string) v")
    for name in ("db.a", "db.k", "db.k"):
        write_paimon(rows, name, options)
    compact("db.k", options, full=True)
    by_job = read_paimon("db.a", options)
    assert by_job.count() == 20
    for mode in ("append", "overwrite"):
        rows.write.format("emberlake").options(**options).mode(mode).save("db.b")
    by_source = spark.read.format("emberlake").options(**options).load("db.b")
    by_source.createOrReplaceTempView("seen")
    given = ", ".join(f"`{key}` '{value}'" for key, value in options.items())
    spark.sql(
        f"CREATE TEMPORARY VIEW named USING emberlake OPTIONS (path 'db.b', {given})"
    ).collect()
    spark.sql("INSERT INTO named SELECT * FROM seen").collect()
    for name, frame in {
        "read_paimon": by_job,
        "load": by_source,
        "view": spark.table("named"),
    }.items():
        assert frame.count() >= 20
        yield f"explain of {name}", explained(frame)
    query = (
        spark.readStream.format("emberlake")
        .options(**options)
        .load("db.a")
        .writeStream.format("emberlake")
        .options(**options)
        .option("checkpointLocation", str(home / "checkpoint"))
        .queryName("watched")
        .trigger(availableNow=True)
        .start("db.c")
    )
    query.awaitTermination()
    assert read_paimon("db.c", options).count() == 20
    yield "progress", f"{query.recentProgress} {query.status} {query.exception()}"
    for path in (home / "checkpoint").rglob("*"):
        if path.is_file():
            yield f"checkpoint {path.name}", path.read_text(errors="replace")


def by_sql(spark: SparkSession, options: dict[str, str]) -> Shown:
    """The same by SQL, by names in Spark's catalog, and by operations on rows."""
    lake = attach(spark, options)
    lake.sql("CREATE TABLE db.s (id BIGINT, v STRING) TBLPROPERTIES ('bucket' = '-1')")
    lake.sql("INSERT INTO db.s SELECT * FROM db.a")
    spark.sql("INSERT INTO db.s SELECT id + 100, v FROM db.a")
    lake.sql("UPDATE db.s SET v = upper(v) WHERE id IN (SELECT id FROM db.k)")
    lake.sql("DELETE FROM db.s WHERE id = 1")
    lake.sql(
        "MERGE INTO db.k USING db.s ON k.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v "
        "WHEN NOT MATCHED THEN INSERT *"
    )
    update("db.s", options, {"v": "lower(v)"}, "id = 2", spark=spark)
    delete("db.s", options, "id = 3", spark=spark)
    source = spark.range(5).selectExpr("id", "'merged' v")
    merge(source, "db.s", options, ["id"]).when_matched_update_all().execute()
    mixed = spark.sql("SELECT 'no number' AS id, 'x' AS v UNION ALL SELECT '7', 'y'")
    write_paimon(mixed, "db.s", options, on_bad_rows="db.bad")
    assert read_paimon("db.bad", options).count() == 1
    for name, frame in {
        "lake.sql": lake.sql("SELECT s.* FROM db.s JOIN db.k ON s.id = k.id"),
        "spark.sql": spark.sql("SELECT * FROM db.s WHERE id > 5"),
        "a system table": lake.sql("SELECT * FROM db.`s$options`"),
    }.items():
        yield f"explain of {name}", f"{explained(frame)} {frame.collect()}"
    for text in (
        "DESCRIBE EXTENDED db.s",
        "SHOW CREATE TABLE db.s",
        "EXPLAIN EXTENDED SELECT * FROM db.s",
        "SET",
    ):
        for how in (spark.sql, lake.sql):
            yield text, str([row.asDict() for row in how(text).collect()])
    for broken in ("SELECT nope FROM db.s", "SELECT * FROM db.nope", "DELETE FROM db.s WHERE"):
        try:
            lake.sql(broken).collect()
        except (PySparkException, EmberlakeError) as error:
            yield f"error of {broken}", traceback.format_exc() + str(error)
    yield "lake", f"{lake!r} {lake.left_out}"
    lake.detach()


def failures(
    spark: SparkSession, options: dict[str, str], wrong: dict[str, dict[str, str]]
) -> Shown:
    rows = spark.range(1).selectExpr("id", "'x' v")
    for name, change in wrong.items():
        given = {**options, **change}
        for how in ("load", "save"):
            try:
                if how == "load":
                    spark.read.format("emberlake").options(**given).load("db.b").count()
                else:
                    rows.write.format("emberlake").options(**given).mode("append").save("db.b")
            except (PySparkException, EmberlakeError) as error:
                yield f"error of {how} with a wrong {name}", traceback.format_exc() + str(error)
            else:
                raise AssertionError(f"{how} with a wrong {name} did not fail")


def pages(spark: SparkSession) -> Shown:
    address, app = spark.sparkContext.uiWebUrl, spark.sparkContext.applicationId
    paths = [*PAGES, *(f"api/v1/applications/{app}/{name}" for name in API)]
    count = len(list(executions(spark)))
    assert count > 10
    paths += [f"SQL/execution/?id={number}" for number in range(count)]
    for path in paths:
        with urllib.request.urlopen(f"{address}/{path}", timeout=60) as answer:
            yield path, answer.read().decode()


def main(home: str, raw: str, wrong: str) -> None:
    folder, options = Path(home), json.loads(raw)
    spark = watched_session(folder)
    shown = [
        *work(spark, options, folder),
        *by_sql(spark, options),
        *failures(spark, options, json.loads(wrong)),
        *(("status store", text) for text in executions(spark)),
        *pages(spark),
    ]
    spark.stop()
    logs = [path for path in (folder / "events").rglob("events_*") if path.is_file()]
    assert logs
    shown += [("event log", path.read_text()) for path in logs]
    with (folder / "shown").open("w") as lines:
        lines.writelines(json.dumps(found) + "\n" for found in shown)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Read tables on S3 with a session that has a client of its own for s3a://.

python -m spark.drivers.native_lake HOME JARS OPTIONS

OPTIONS are catalog options as JSON.
"""

import json
import os
import sys
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from emberlake import CatalogFactory
from emberlake.spark import read_paimon
from servers import REGION, SECRET, USER
from spark.conftest import SETTINGS
from spark.sight import explained


def native_session(home: Path, jars: str, endpoint: str) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.appName("emberlake-native").master("local[2]")
    own = {
        # Behind those that Spark comes with, which has Netty in another version.
        "spark.jars": ",".join(map(str, Path(jars).glob("*.jar"))),
        "spark.sql.warehouse.dir": str(home / "warehouse"),
        "spark.hadoop.fs.s3a.endpoint": endpoint,
        "spark.hadoop.fs.s3a.endpoint.region": REGION,
        "spark.hadoop.fs.s3a.access.key": USER,
        "spark.hadoop.fs.s3a.secret.key": SECRET,
        "spark.hadoop.fs.s3a.path.style.access": "true",
    }
    for name, value in {**SETTINGS, **own}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def main(home: str, jars: str, raw: str) -> None:
    options = json.loads(raw)
    spark = native_session(Path(home), jars, options["s3.endpoint"])
    catalog = CatalogFactory.create(options)
    catalog.create_database("db")
    columns = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v é", pa.string())])
    appended = catalog.create_table("db.a", columns, partition_keys=["v é"])
    keyed = catalog.create_table("db.k", columns, primary_keys=["id"], options={"bucket": "1"})
    for first in range(0, 30, 10):
        rows = pa.table(
            {"id": range(first, first + 10), "v é": [f"a b%20/{first}"] * 10}, schema=columns
        )
        appended.append(rows)
        keyed.upsert(rows)

    read = read_paimon("db.a", options, filter="id >= 5")
    assert sorted(row.id for row in read.collect()) == list(range(5, 30))
    plan = explained(read)
    assert "s3a://" in plan, plan
    assert "MapInArrow" not in plan, plan
    readers = appended.new_read_builder().explain(spark=spark).spark
    assert readers == "3 files by Spark's own reader, 0 by Python workers", readers

    merged = read_paimon("db.k", options)
    assert merged.count() == 30
    assert "MapInArrow" in explained(merged)

    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])

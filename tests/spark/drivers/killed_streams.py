"""Run a query from the table in `source` to each of the sinks, until all rows are read.

    python -m spark.drivers.killed_streams FOLDER SINK...

A query that fails is started again, in the same session.
"""

import os
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from spark.drivers.faulty_sink import FaultySource
from spark.drivers.session import own_session

MAX_RESTARTS = 60
COLUMNS = {
    "append": ["id"],
    "sums": ["id % 40 AS id", "1L AS total"],
    "vectors": ["id % 40 AS id", "id AS total"],
}


def start(spark: SparkSession, folder: Path, sink: str) -> StreamingQuery:
    rows = (
        spark.readStream.format("emberlake")
        .option("warehouse", str(folder / "source"))
        .option("snapshot-id", "1")
        .option("max-files-per-trigger", "1")
        .load("db.t")
    )
    return (
        rows.selectExpr(*COLUMNS[sink])
        .repartition(2)
        .writeStream.format("faulty")
        .option("warehouse", str(folder / sink))
        .option("checkpointLocation", str(folder / f"checkpoint-{sink}"))
        .trigger(availableNow=True)
        .start("db.t")
    )


def run_to_the_end(spark: SparkSession, folder: Path, sinks: list[str]) -> None:
    # One thread starts them all: Spark looks registered sources up in the thread's session.
    queries = {sink: start(spark, folder, sink) for sink in sinks}
    restarts = dict.fromkeys(sinks, 0)
    while queries:
        time.sleep(0.05)
        for sink, query in list(queries.items()):
            if query.isActive:
                continue
            failure = query.exception()
            if failure is None:
                del queries[sink]
                continue
            # Whoever kills a process says nothing; what emberlake says would be a bug.
            if "emberlake.errors" in str(failure) or restarts[sink] == MAX_RESTARTS:
                raise failure
            restarts[sink] += 1
            queries[sink] = start(spark, folder, sink)


def main(folder: Path, sinks: list[str]) -> None:
    (folder / "driver").write_text(str(os.getpgrp()))
    spark = own_session(folder)
    spark.dataSource.register(FaultySource)
    run_to_the_end(spark, folder, sinks)
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])

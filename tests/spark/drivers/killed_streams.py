"""Run a query from the table in `source` to each of the sinks, until all rows are read.

    python -m spark.drivers.killed_streams FOLDER WAREHOUSES END SINK...

A query that fails is started again, in the same session. The file `starts` in the folder has a line
for every start. `source` and the sinks are warehouses below the second argument. At the end, in
seconds since the epoch, the queries are stopped.
"""

import os
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from spark.drivers.faulty_sink import FOLDER, FaultySource
from spark.drivers.session import own_session

MAX_RESTARTS = 1000
COLUMNS = {
    "append": ["id"],
    "sums": ["id % 40 AS id", "1L AS total"],
    "vectors": ["id % 40 AS id", "id AS total"],
}


def start(spark: SparkSession, folder: Path, warehouses: str, sink: str) -> StreamingQuery:
    with (folder / "starts").open("a") as starts:
        starts.write(f"{sink}\n")
    rows = (
        spark.readStream.format("emberlake")
        .option("warehouse", f"{warehouses}/source")
        .option("snapshot-id", "1")
        .option("max-files-per-trigger", "1")
        .load("db.t")
    )
    return (
        rows.selectExpr(*COLUMNS[sink])
        .repartition(2)
        .writeStream.format("faulty")
        .option("warehouse", f"{warehouses}/{sink}")
        .option("checkpointLocation", str(folder / f"checkpoint-{sink}"))
        .trigger(availableNow=True)
        .start("db.t")
    )


def run_to_the_end(
    spark: SparkSession, folder: Path, warehouses: str, end: float, sinks: list[str]
) -> None:
    # One thread starts them all: Spark looks registered sources up in the thread's session.
    queries = {sink: start(spark, folder, warehouses, sink) for sink in sinks}
    restarts = dict.fromkeys(sinks, 0)
    while queries:
        time.sleep(0.05)
        if time.time() > end:
            for query in queries.values():
                query.stop()
            return
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
            queries[sink] = start(spark, folder, warehouses, sink)


def main(home: str, warehouses: str, end: str, *sinks: str) -> None:
    folder = Path(home)
    (folder / "driver").write_text(str(os.getpgrp()))
    os.environ[FOLDER] = home
    spark = own_session(folder)
    spark.dataSource.register(FaultySource)
    run_to_the_end(spark, folder, warehouses, float(end), [*sinks])
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])

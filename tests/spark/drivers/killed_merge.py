"""Merge rows into the table `db.t`, and be killed at some moment.

python -m spark.drivers.killed_merge WAREHOUSE tasks|before|after
"""

import os
import sys
from pathlib import Path

from emberlake import CatalogFactory
from emberlake.session.write_session import WriteSession
from emberlake.spark.merge_job import merge_on_spark
from spark.drivers.killed_write import kill_at_commit
from spark.drivers.session import own_session
from spark.mischief import KilledDriver, with_mischief
from spark.tables import frame, some_rows


def main(warehouse: str, moment: str) -> None:
    spark = own_session(Path(warehouse))
    table = CatalogFactory.create({"warehouse": warehouse}).get_table("db.t")
    store = table.store
    if moment == "tasks":
        store = with_mischief(table, KilledDriver(os.getpid()))
    else:
        kill_at_commit(is_done=moment == "after")
    source = frame(spark, some_rows(range(5, 200), name="merged"))
    merge = merge_on_spark(WriteSession(store, "killed"), source, ["id"])
    merge.when_matched_update_all().when_not_matched_insert_all().execute()


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Write ids to the table `db.t`, and be killed at some moment.

python -m spark.drivers.killed_write WAREHOUSE tasks|before|after
"""

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from emberlake import CatalogFactory
from emberlake.commit.committer import Committer
from spark.drivers.session import kill_me, own_session
from spark.mischief import KilledDriver, with_mischief
from spark.tables import frame, some_rows


def kill_at_commit(*, is_done: bool) -> None:
    """Die when the commit is to be made, or once it is."""
    original = Committer.commit_all

    def commit_all(self: Committer, *arguments: Any, **named: Any) -> None:
        if is_done:
            original(self, *arguments, **named)
        kill_me()

    Committer.commit_all = commit_all


def main(warehouse: str, moment: str) -> None:
    spark = own_session(Path(warehouse))
    table = CatalogFactory.create({"warehouse": warehouse}).get_table("db.t")
    builder = table.new_batch_write_builder()
    if moment == "tasks":
        builder = replace(builder, store=with_mischief(table, KilledDriver(os.getpid())))
    else:
        kill_at_commit(is_done=moment == "after")
    with builder.new_write() as write:
        write.write_spark(frame(spark, some_rows(range(200))), concurrency=3)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""A first hour with a table on Spark, for somebody who knows Delta Lake.

Creates a table from a DataFrame, appends a new column, upserts, asks questions, goes back in time,
keeps bad rows apart, compacts, and looks at the page of the table.

    python examples/first_hour.py [warehouse]
"""

import subprocess
import sys
import tempfile
from datetime import date

from emberlake.spark import attach, compact, read_paimon, session, write_paimon


def main(warehouse: str) -> None:
    """Do it all."""
    spark = session("local[2]", spark_sql_shuffle_partitions=4)
    options = {"warehouse": warehouse}

    # df.write.format("delta").saveAsTable("shop.orders")
    orders = spark.range(1, 1001).selectExpr(
        "id", "date'2026-06-22' + cast(id % 3 AS int) AS day", "id * 0.5D AS price"
    )
    created = write_paimon(
        orders,
        "shop.orders",
        options,
        create=True,
        primary_keys=["day", "id"],
        partition_by=["day"],
        table_options={"bucket": 1},
    )
    print(f"created with {created.rows_added} rows in snapshot {created.snapshot_id}")

    # .option("mergeSchema", "true").mode("append")
    gifts = orders.where("id <= 3").selectExpr("id", "day", "price", "'wrapped' AS note")
    write_paimon(gifts, "shop.orders", options, merge_schema=True)

    # DeltaTable.merge(...).whenMatchedUpdateAll().whenNotMatchedInsertAll()
    news = spark.createDataFrame(
        [(4, date(2026, 6, 23), 99.0, "corrected"), (2000, date(2026, 6, 24), 1.0, "new")],
        "id bigint, day date, price double, note string",
    )
    write_paimon(news, "shop.orders", options, mode="upsert")

    # spark.sql("SELECT ...")
    lake = attach(spark, options)
    lake.sql("SELECT * FROM shop.orders WHERE note IS NOT NULL ORDER BY id").show()
    one_day = read_paimon("shop.orders", options).where("day = '2026-06-23'")
    print("on 2026-06-23:", one_day.groupBy().sum("price").first())

    # .option("versionAsOf", 1)
    first = read_paimon("shop.orders", options, snapshot_id=1)
    now = lake.sql("SELECT id FROM shop.orders")
    print(f"now {now.count()} rows, in snapshot 1 {first.count()} with {first.columns}")
    lake.sql("SELECT max(price) FROM shop.orders VERSION AS OF 1").show()

    # what expectations and _rescued_data are for
    raw = spark.createDataFrame(
        [
            ("5", "2026-06-24", "7.5", None),
            ("6", "2026-06-22", "cheap", None),
            (None, "2026-06-22", "1", "whose?"),
        ],
        "id string, day string, price string, note string",
    )
    kept = write_paimon(raw, "shop.orders", options, mode="upsert", on_bad_rows="shop.bad_orders")
    print(f"written {kept.rows_added}, rejected {kept.rows_rejected}")
    read_paimon("shop.bad_orders", options).select("row", "reason").show(truncate=80)

    # OPTIMIZE
    done = compact("shop.orders", options, full=True)
    print(f"compacted {done.files_deleted} files into {done.files_added}")

    # DESCRIBE HISTORY, DESCRIBE DETAIL: the table on one page; "emberlake ui" serves it live
    look = [sys.executable, "-m", "emberlake", "--warehouse", warehouse, "report", "shop.orders"]
    subprocess.run([*look, "--out", f"{warehouse}/orders.html"], check=True)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())

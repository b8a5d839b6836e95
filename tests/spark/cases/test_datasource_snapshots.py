"""``format("emberlake")``: which snapshot a DataFrame, a view and a statement see.

On Spark Connect it is the server that keeps the source of a DataFrame, as long as it remembers it.
"""

from pathlib import Path

from pyspark.sql import SparkSession

from spark.cases.test_datasource import (
    PUSHDOWN,
    ROWS,
    collected,
    frame,
    read,
    refused,
    setting,
    write,
)
from spark.tables import new_table, reopened, rows_of

FIRST, LATER = ROWS[:10], ROWS[10:15]
GONE = ("SnapshotNotFound", "snapshot 1 of", "has expired", "read_paimon(...)")


def test_a_dataframe_stays_at_its_snapshot_however_it_is_used(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = new_table(tmp_path)
    write(frame(spark, FIRST).coalesce(1), table)
    df = read(spark, table)
    asked = spark.read.schema("id bigint").format("emberlake").option("warehouse", str(tmp_path))
    ids = asked.load("db.t")
    before = [df.count(), ids.count()]

    write(frame(spark, LATER).coalesce(1), table)
    after = [df.count(), df.where("id < 3").count()]
    with setting(spark, PUSHDOWN, "true"):  # Spark plans anew for every filter
        low, high = df.where("id < 3"), df.where("id >= 3")
        filtered = [low.count(), df.count(), low.union(high).count(), ids.where("id >= 0").count()]

    assert (before, after, filtered) == ([10, 10], [10, 3], [3, 10, 10, 10])
    assert read(spark, table).count() == 15


def test_a_view_stays_at_its_snapshot_and_writes_to_the_table(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = new_table(tmp_path)
    write(frame(spark, FIRST), table)
    made = f"""CREATE OR REPLACE TEMPORARY VIEW items USING emberlake
               OPTIONS (path 'db.t', warehouse '{tmp_path}')"""
    count = "SELECT count(*) FROM items"

    with setting(spark, PUSHDOWN, "true"):
        spark.sql(made)
        spark.sql("INSERT INTO items VALUES (99, 'a', 'b', 1.0)")
        low = spark.sql("SELECT id FROM items WHERE id < 3").count()
        old = spark.sql(count).first()[0]
        spark.sql(made)
        new = spark.sql(count).first()[0]
        spark.sql("INSERT OVERWRITE items SELECT * FROM items WHERE id > 1")

        assert (low, old, new) == (3, 10, 11)
        assert [row[0] for row in rows_of(table)] == [*range(2, 10), 99]
        assert spark.sql(count).first()[0] == 11
    spark.catalog.dropTempView("items")


def test_a_dataframe_and_a_view_whose_files_are_gone_fail_with_the_reason(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = new_table(tmp_path)
    write(frame(spark, FIRST).coalesce(1), table)
    df, used = read(spark, table), read(spark, table)
    spark.sql(
        f"""CREATE OR REPLACE TEMPORARY VIEW items USING emberlake
            OPTIONS (path 'db.t', warehouse '{tmp_path}')"""
    )
    assert (df.columns[0], used.count()) == ("id", 10)
    write(frame(spark, LATER), table)

    reopened(table).compact(full=True)
    assert (df.count(), used.count()) == (10, 10)
    reopened(table).expire_snapshots(retain_max=1, retain_min=1)

    for action in (used.count, df.count, spark.sql("SELECT * FROM items").collect):
        with refused(*GONE):
            action()
    assert read(spark, table).count() == 15
    spark.catalog.dropTempView("items")


# --- tables of Spark's catalog --------------------------------------------------------------------


def test_a_table_of_sparks_catalog_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    new_table(tmp_path)
    options = f"USING emberlake OPTIONS (path 'db.t', warehouse '{tmp_path}')"
    remedy = ("does not pass the options", "CREATE TEMPORARY VIEW", "read_paimon and write_paimon")

    with refused("Unsupported", *remedy):
        spark.sql(f"CREATE TABLE refused {options}")
    with refused("CREATE TABLE ... AS gives", "emberlake.spark.attach", "write_paimon"):
        spark.sql(f"CREATE TABLE refused {options} AS SELECT 1L AS id")
    with refused('.option("create", "true").mode("append").save("db.t")', str(tmp_path)):
        frame(spark, ROWS).write.format("emberlake").option("warehouse", str(tmp_path)).saveAsTable(
            "refused"
        )

    assert not spark.catalog.tableExists("refused")


def test_a_table_without_options_is_where_a_statement_says(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = new_table(tmp_path)
    write(frame(spark, FIRST), table)
    spark.sql(
        "CREATE TABLE declared (id BIGINT, day STRING, name STRING, price DOUBLE) USING emberlake"
    )
    place = f"path = 'db.t', warehouse = '{tmp_path}'"
    count = "SELECT count(*) FROM declared WITH"
    try:
        spark.sql(f"INSERT INTO declared WITH ({place}) VALUES (99, 'a', 'b', 1.0)")
        table.create_tag("all", 2)

        now = spark.sql(f"{count} ({place})").first()[0]
        spark.sql(
            f"INSERT OVERWRITE declared WITH ({place}) SELECT * FROM declared WITH ({place}, "
            "filter = 'id > 3')"
        )
        then = [
            spark.sql(f"{count} ({place}, {option})").first()[0]
            for option in ("'snapshot-id' = 1", "tag = 'all'", "'scan.tag-name' = 'all'")
        ]

        assert (now, then) == (11, [10, 11, 11])
        assert collected(spark.sql(f"SELECT id FROM declared WITH ({place})"))[0] == (4,)
        with refused("the table is missing", "CREATE TEMPORARY VIEW"):
            spark.sql("SELECT * FROM declared").collect()
    finally:
        spark.sql("DROP TABLE declared")

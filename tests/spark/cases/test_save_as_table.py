"""``saveAsTable`` while a lake is attached: what a user of Delta Lake would write."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, DataFrameWriter, SparkSession
from pyspark.sql.functions import col, lit

from emberlake import Catalog, CatalogFactory, EmberlakeWarning
from emberlake.errors import (
    DataMismatch,
    EmberlakeError,
    InvalidInput,
    InvalidOption,
    TableAlreadyExists,
    Unsupported,
)
from emberlake.spark import Lake, attach
from spark.conftest import MODE

of_classic_sessions = pytest.mark.skipif(
    MODE == "connect", reason="a client of Connect knows only its own session"
)


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return CatalogFactory.create({"warehouse": str(tmp_path)})


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path, catalog: Catalog) -> Iterator[Lake]:
    catalog.create_database("saved")
    lake = attach(spark, {"warehouse": str(tmp_path)})
    yield lake
    lake.detach()


@pytest.fixture
def rows(spark: SparkSession) -> DataFrame:
    return spark.range(3).withColumn("day", lit("mon"))


def saving(rows: DataFrame, mode: str = "error") -> DataFrameWriter:
    return rows.write.format("emberlake").mode(mode)


def ids(catalog: Catalog, name: str) -> list[int]:
    return sorted(catalog.get_table(name).to_arrow()["id"].to_pylist())


def test_a_new_table_is_created_in_the_lake_and_gets_a_name_in_spark(
    lake: Lake, rows: DataFrame, catalog: Catalog
) -> None:
    rows.write.format("emberlake").saveAsTable("saved.t")

    assert ids(catalog, "saved.t") == [0, 1, 2]
    assert lake.spark.table("saved.t").where("id > 0").count() == 2
    assert lake.sql("SELECT max(id) FROM saved.t").collect()[0][0] == 2


def test_keys_partitions_and_options_describe_the_new_table(
    lake: Lake, rows: DataFrame, catalog: Catalog
) -> None:
    writer = saving(rows).partitionBy("day").option("primary-keys", "day,id")
    writer.saveAsTable("saved.t", bucket=2)
    saving(rows.limit(1), "append").saveAsTable("saved.t")

    table = catalog.get_table("saved.t")
    assert table.partition_keys == ["day"]
    assert table.primary_keys == ["day", "id"]
    assert table.options["bucket"] == "2"
    assert ids(catalog, "saved.t") == [0, 1, 2]


@pytest.mark.parametrize(
    "name", ["t", "saved.t", "`saved`.`t`", "spark_catalog.saved.t", "paimon.saved.t"]
)
def test_a_name_is_read_as_spark_reads_it(
    lake: Lake, rows: DataFrame, catalog: Catalog, name: str
) -> None:
    lake.spark.sql("CREATE DATABASE IF NOT EXISTS saved")
    lake.spark.sql("USE saved")
    try:
        saving(rows).saveAsTable(name)
    finally:
        lake.spark.sql("USE default")

    assert ids(catalog, "saved.t") == [0, 1, 2]


def test_a_missing_database_is_created_with_its_table(
    lake: Lake, rows: DataFrame, catalog: Catalog
) -> None:
    saving(rows).saveAsTable("fresh.t")

    assert ids(catalog, "fresh.t") == [0, 1, 2]
    assert lake.spark.table("fresh.t").count() == 3


def test_the_modes_are_those_of_spark(lake: Lake, rows: DataFrame, catalog: Catalog) -> None:
    saving(rows.where("id = 0").withColumn("day", lit("sun")), "append").saveAsTable("saved.t")
    saving(rows, "append").saveAsTable("saved.t")
    assert ids(catalog, "saved.t") == [0, 0, 1, 2]

    saving(rows, "ignore").saveAsTable("saved.t")
    for mode in ("error", "errorifexists"):
        with pytest.raises(TableAlreadyExists, match=r"saved\.t"):
            saving(rows, mode).saveAsTable("saved.t")
    assert ids(catalog, "saved.t") == [0, 0, 1, 2]

    saving(rows.where("id = 1"), "overwrite").saveAsTable("saved.t")
    assert ids(catalog, "saved.t") == [1]
    assert lake.spark.table("saved.t").count() == 1


def test_an_overwrite_replaces_all_partitions_and_can_read_the_table_that_it_replaces(
    lake: Lake, rows: DataFrame, catalog: Catalog
) -> None:
    other = rows.withColumn("day", lit("tue")).withColumn("id", col("id") + 10)
    saving(rows.union(other)).partitionBy("day").saveAsTable("saved.t")

    kept = lake.spark.table("saved.t").where("day = 'tue'")
    saving(kept, "overwrite").saveAsTable("saved.t")

    assert ids(catalog, "saved.t") == [10, 11, 12]


def test_new_columns_are_added_when_asked_for_and_refused_otherwise(
    lake: Lake, rows: DataFrame, catalog: Catalog
) -> None:
    saving(rows).saveAsTable("saved.t")
    noted = rows.withColumn("note", lit("new"))

    with pytest.raises(DataMismatch, match="note"):
        saving(noted, "append").saveAsTable("saved.t")
    saving(noted, "append").option("mergeSchema", "true").saveAsTable("saved.t")

    assert lake.spark.table("saved.t").where("note = 'new'").count() == 3
    assert len(ids(catalog, "saved.t")) == 6


def test_rows_that_do_not_fit_can_be_left_out(
    lake: Lake, rows: DataFrame, catalog: Catalog
) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("day", pa.string())])
    catalog.create_table("saved.t", schema)

    bad = rows.select(lit(None).cast("bigint").alias("id"), "day")
    saving(rows.union(bad), "append").option("on-bad-rows", "skip").saveAsTable("saved.t")

    assert ids(catalog, "saved.t") == [0, 1, 2]


def test_spark_does_not_replace_the_name_of_a_table_of_the_lake(
    lake: Lake, rows: DataFrame, catalog: Catalog
) -> None:
    saving(rows).saveAsTable("saved.t")

    with pytest.raises(Unsupported, match=r'add format\("emberlake"\)'):
        rows.limit(1).write.mode("overwrite").saveAsTable("saved.t")
    with pytest.raises(Unsupported, match=r'add format\("emberlake"\)'):
        rows.limit(1).write.saveAsTable("SAVED.T", format="parquet", mode="overwrite")

    assert ids(catalog, "saved.t") == [0, 1, 2]
    assert lake.spark.table("saved.t").count() == 3


def test_an_append_without_the_format_is_answered_by_what_to_add(
    lake: Lake, rows: DataFrame, catalog: Catalog
) -> None:
    saving(rows).saveAsTable("saved.t")

    with pytest.raises(Unsupported, match=r'writer is parquet: add format\("emberlake"\)'):
        rows.write.mode("append").saveAsTable("saved.t")

    assert ids(catalog, "saved.t") == [0, 1, 2]


def test_tables_of_spark_stay_tables_of_spark(
    lake: Lake, rows: DataFrame, catalog: Catalog
) -> None:
    lake.spark.sql("CREATE DATABASE IF NOT EXISTS saved")
    rows.write.saveAsTable("saved.own")
    try:
        rows.write.mode("append").saveAsTable("saved.own", partitionBy=None)
        with pytest.raises(AnalysisException, match="ALREADY_EXISTS"):
            saving(rows).saveAsTable("saved.own")
        with pytest.raises(Unsupported, match="drop it yourself"):
            saving(rows, "overwrite").saveAsTable("saved.own")

        assert lake.spark.table("saved.own").count() == 6
        assert catalog.list_tables("saved") == []
    finally:
        lake.spark.sql("DROP TABLE saved.own")


def test_options_that_only_spark_knows_are_refused(lake: Lake, rows: DataFrame) -> None:
    with pytest.raises(Unsupported, match="options bucket and bucket-key"):
        saving(rows).bucketBy(2, "id").saveAsTable("saved.t")
    with pytest.raises(Unsupported, match="sortBy"):
        saving(rows).sortBy("id").saveAsTable("saved.t")
    with pytest.raises(InvalidOption, match="merge-schemas"):
        saving(rows).option("merge-schemas", "true").saveAsTable("saved.t")


def test_options_of_an_existing_table_are_not_silently_ignored(
    lake: Lake, rows: DataFrame, catalog: Catalog
) -> None:
    saving(rows).option("file.format", "orc").saveAsTable("saved.t")

    saving(rows, "append").option("file.format", "orc").saveAsTable("saved.t")
    saving(rows, "ignore").option("file.format", "avro").saveAsTable("saved.t")
    for mode in ("append", "overwrite"):
        with pytest.raises(InvalidInput, match=r"exists without file\.format=avro.*ALTER TABLE"):
            saving(rows, mode).option("file.format", "avro").saveAsTable("saved.t")

    assert ids(catalog, "saved.t") == [0, 0, 1, 1, 2, 2]


def test_a_catalog_in_the_options_must_be_that_of_the_lake(
    lake: Lake, rows: DataFrame, catalog: Catalog, tmp_path: Path
) -> None:
    saving(rows).option("warehouse", f"{tmp_path}/").saveAsTable("saved.t")
    assert ids(catalog, "saved.t") == [0, 1, 2]

    elsewhere = str(tmp_path / "elsewhere")
    for name in ("saved.t", "saved.u"):
        for mode in ("append", "overwrite", "error"):
            with pytest.raises(Unsupported, match="another catalog than"):
                saving(rows, mode).option("warehouse", elsewhere).saveAsTable(name)
    assert catalog.list_tables("saved") == ["t"]
    assert ids(catalog, "saved.t") == [0, 1, 2]


def test_a_path_beside_the_name_is_refused(lake: Lake, rows: DataFrame, catalog: Catalog) -> None:
    saving(rows).saveAsTable("saved.t")

    for name in ("saved.t", "saved.u"):
        with pytest.raises(Unsupported, match=r'leave out the option path.*save\("saved\.v"\)'):
            saving(rows, "overwrite").saveAsTable(name, path="saved.v")
    with pytest.raises(Unsupported, match=r'add format\("emberlake"\)'):
        rows.write.format("parquet").mode("overwrite").option("path", "/x").saveAsTable("saved.t")
    assert lake.spark.table("saved.t").count() == 3


def test_without_attach_a_path_gives_spark_a_name_that_only_a_with_clause_can_read(
    spark: SparkSession, rows: DataFrame, catalog: Catalog, tmp_path: Path
) -> None:
    catalog.create_database("saved")
    table = catalog.create_table("saved.t", pa.schema([("id", pa.int64()), ("day", pa.string())]))
    place = {"path": "saved.t", "warehouse": str(tmp_path)}

    saving(rows).options(**place).saveAsTable("lost_options")

    assert table.count() == 3
    with pytest.raises(AnalysisException, match="does not pass the options of its own tables"):
        spark.table("lost_options").count()
    spark.sql("DROP TABLE lost_options")


def test_each_of_two_lakes_gets_its_own_tables(
    lake: Lake, rows: DataFrame, catalog: Catalog, local_path: Path
) -> None:
    saving(rows).saveAsTable("saved.t")
    other_place = {"warehouse": str(local_path)}
    other = CatalogFactory.create(other_place)
    later = attach(lake.spark, other_place)
    try:
        saving(rows.limit(1), "overwrite").saveAsTable("saved.t")
        saving(rows).saveAsTable("saved.beside")  # the database is that of the first
        saving(rows).saveAsTable("fresh.t")
        saving(rows).options(**other_place).saveAsTable("saved.by_option")

        assert (catalog.get_table("saved.t").count(), lake.spark.table("saved.t").count()) == (1, 1)
        assert catalog.list_tables("saved") == ["beside", "t"]
        assert other.list_tables("fresh") == ["t"]
        assert other.list_tables("saved") == ["by_option"]
        assert lake.spark.table("saved.by_option").count() == 3
    finally:
        later.detach()


def test_threads_save_tables_side_by_side(lake: Lake, rows: DataFrame, catalog: Catalog) -> None:
    names = [f"saved.t{number}" for number in range(6)]

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda name: saving(rows).saveAsTable(name), names))

    assert [ids(catalog, name) for name in names] == [[0, 1, 2]] * 6
    assert lake.left_out == {}
    assert [lake.spark.table(name).count() for name in names] == [3] * 6


def test_a_save_that_fails_leaves_no_table_and_can_be_repeated(
    lake: Lake, rows: DataFrame, catalog: Catalog
) -> None:
    broken = rows.selectExpr("id", "raise_error('broken') AS day")
    with pytest.raises(Exception, match="broken"):
        saving(broken.selectExpr("id", "cast(day AS string) AS day")).saveAsTable("saved.t")
    assert catalog.list_tables("saved") == []

    saving(rows).saveAsTable("saved.t")
    assert ids(catalog, "saved.t") == [0, 1, 2]


def test_the_default_format_may_be_emberlake(
    lake: Lake, rows: DataFrame, catalog: Catalog, spark: SparkSession
) -> None:
    spark.conf.set("spark.sql.sources.default", "emberlake")
    try:
        rows.write.saveAsTable("saved.t")
    finally:
        spark.conf.unset("spark.sql.sources.default")

    assert ids(catalog, "saved.t") == [0, 1, 2]


def test_a_name_that_spark_cannot_have_is_refused_by_spark(
    lake: Lake, rows: DataFrame, catalog: Catalog
) -> None:
    for name in ("saved.`a-b`", "global_temp.t"):
        with pytest.raises(AnalysisException):
            saving(rows).saveAsTable(name)

    assert catalog.list_databases() == ["saved"]
    assert catalog.list_tables("saved") == []


def test_a_name_in_another_case_is_the_same_name_as_everywhere_in_spark(
    lake: Lake, rows: DataFrame, catalog: Catalog
) -> None:
    columns = pa.schema([("id", pa.int64()), ("day", pa.string())])
    catalog.create_table("saved.unseen", columns)  # by others: not refreshed

    saving(rows).saveAsTable("SAVED.t")
    for name in ("Saved.T", "saved.UNSEEN"):
        saving(rows, "append").saveAsTable(name)

    assert catalog.list_databases() == ["saved"]
    assert ids(catalog, "saved.t") == [0, 0, 1, 1, 2, 2]
    assert ids(catalog, "saved.unseen") == [0, 1, 2]


def test_a_name_that_spark_has_dropped_is_free_and_comes_back_with_the_next_rows(
    lake: Lake, rows: DataFrame, catalog: Catalog
) -> None:
    saving(rows).saveAsTable("saved.t")

    lake.spark.sql("DROP TABLE saved.t")
    rows.limit(1).write.mode("overwrite").saveAsTable("saved.t")  # a table of Spark
    assert lake.spark.table("saved.t").count() == 1
    lake.spark.sql("DROP TABLE saved.t")
    saving(rows, "append").saveAsTable("saved.t")

    assert lake.spark.table("saved.t").count() == len(ids(catalog, "saved.t")) == 6


def test_rows_that_are_saved_are_not_reported_as_a_failure(
    lake: Lake, rows: DataFrame, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise EmberlakeError("the network is down")

    monkeypatch.setattr("emberlake.sql.on_spark.attached.AttachedTables.update", fails)

    with pytest.warns(EmberlakeWarning, match=r"saved to saved\.t, but .*network") as warned:
        saving(rows).saveAsTable("saved.t")
    assert warned[0].filename == __file__
    with pytest.warns(EmberlakeWarning, match=r"is done, but .*network") as warned:
        lake.sql("INSERT INTO saved.t VALUES (3, 'mon')")
    assert warned[0].filename == __file__

    assert ids(catalog, "saved.t") == [0, 1, 2, 3]


@of_classic_sessions
def test_a_batch_of_a_stream_saves_tables_like_any_dataframe(
    lake: Lake, rows: DataFrame, catalog: Catalog, local_path: Path
) -> None:
    saving(rows).saveAsTable("saved.source")
    refused: list[str] = []

    def save(batch: DataFrame, _: int) -> None:
        saving(batch).saveAsTable("saved.t")
        saving(batch.limit(1), "overwrite").saveAsTable("saved.t")
        with pytest.raises(Unsupported, match=r'add format\("emberlake"\)') as caught:
            batch.write.mode("overwrite").saveAsTable("saved.t")
        refused.append(str(caught.value))

    stream = lake.spark.readStream.table("saved.source").writeStream.foreachBatch(save)
    stream = stream.option("checkpointLocation", str(local_path)).trigger(availableNow=True)
    stream.start().awaitTermination()

    assert len(refused) == 1
    assert catalog.get_table("saved.t").count() == lake.spark.table("saved.t").count() == 1


@of_classic_sessions
def test_other_sessions_with_the_same_catalog_save_to_the_lake_with_their_own_database(
    lake: Lake, rows: DataFrame, catalog: Catalog
) -> None:
    saving(rows).saveAsTable("saved.t")
    other = lake.spark.newSession()
    other.sql("USE saved")
    later = other.range(5, 6).withColumn("day", lit("tue"))

    saving(later, "overwrite").saveAsTable("t")
    with pytest.raises(Unsupported, match=r'add format\("emberlake"\)'):
        later.write.mode("overwrite").saveAsTable("t")

    assert ids(catalog, "saved.t") == [5]
    assert lake.spark.table("saved.t").count() == 1


@pytest.fixture
def elsewhere(spark: SparkSession) -> Iterator[str]:
    """A catalog of Spark, on Derby, with the name that a lake has in its own statements."""
    name = "paimon"
    settings = {
        name: "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog",
        f"{name}.url": "jdbc:derby:memory:elsewhere;create=true",
        f"{name}.driver": "org.apache.derby.iapi.jdbc.AutoloadedDriver",
    }
    for key, value in settings.items():
        spark.conf.set(f"spark.sql.catalog.{key}", value)
    yield name
    for key in settings:
        spark.conf.unset(f"spark.sql.catalog.{key}")


def test_tables_of_another_catalog_are_left_to_spark(
    lake: Lake, rows: DataFrame, catalog: Catalog, elsewhere: str
) -> None:
    saving(rows).saveAsTable("saved.t")

    for writer in (saving(rows, "overwrite"), rows.write.mode("overwrite")):
        with pytest.raises(AnalysisException):
            writer.saveAsTable(f"{elsewhere}.saved.t")

    assert ids(catalog, "saved.t") == [0, 1, 2]


def test_names_of_the_lake_are_in_the_catalog_of_spark_whichever_is_the_current_one(
    lake: Lake, rows: DataFrame, catalog: Catalog, elsewhere: str
) -> None:
    saving(rows).saveAsTable("saved.t")

    lake.spark.catalog.setCurrentCatalog(elsewhere)
    try:
        with pytest.raises(AnalysisException):
            saving(rows).saveAsTable("saved.u")
        saving(rows, "append").saveAsTable("spark_catalog.saved.t")
        saving(rows).saveAsTable("spark_catalog.fresh.u")
        lake.refresh()
        created = {row[0] for row in lake.spark.sql(f"SHOW NAMESPACES IN {elsewhere}").collect()}
    finally:
        lake.spark.catalog.setCurrentCatalog("spark_catalog")

    assert not {"saved", "fresh"} & created
    assert lake.spark.table("saved.t").count() == 6
    assert lake.spark.table("fresh.u").count() == 3


def test_a_temporary_view_of_the_name_is_not_written_to(
    lake: Lake, rows: DataFrame, catalog: Catalog
) -> None:
    rows.createOrReplaceTempView("t")
    lake.spark.sql("CREATE DATABASE IF NOT EXISTS saved")
    lake.spark.sql("USE saved")
    try:
        saving(rows.limit(1)).saveAsTable("t")
        assert lake.spark.table("t").count() == 3  # the view comes first, as everywhere in Spark
    finally:
        lake.spark.sql("USE default")
        lake.spark.catalog.dropTempView("t")

    assert len(ids(catalog, "saved.t")) == 1


def test_only_databases_that_were_attached_are_saved_to(
    spark: SparkSession, rows: DataFrame, catalog: Catalog, tmp_path: Path
) -> None:
    catalog.create_database("saved")
    lake = attach(spark, {"warehouse": str(tmp_path)}, databases=["saved"])
    try:
        saving(rows).saveAsTable("saved.t")
        with pytest.raises(AnalysisException):
            saving(rows).saveAsTable("unsaved.t")
    finally:
        lake.detach()

    assert catalog.list_databases() == ["saved"]


def test_after_detach_the_method_is_that_of_spark(
    spark: SparkSession, rows: DataFrame, catalog: Catalog, tmp_path: Path
) -> None:
    before = type(rows.write).saveAsTable
    lake = attach(spark, {"warehouse": str(tmp_path)})
    assert type(rows.write).saveAsTable is not before

    lake.detach()

    assert type(rows.write).saveAsTable is before
    with pytest.raises(AnalysisException, match="attach"):
        saving(rows).saveAsTable("t")
    assert catalog.list_databases() == []


def test_a_method_that_others_have_put_on_top_stays(
    spark: SparkSession, rows: DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = type(rows.write)
    monkeypatch.setattr(writer, "saveAsTable", writer.saveAsTable)  # put back in the end
    lake = attach(spark, {"warehouse": str(tmp_path)})
    of_lake = writer.saveAsTable

    def theirs(self: DataFrameWriter, name: str) -> None:
        of_lake(self, name)

    monkeypatch.setattr(writer, "saveAsTable", theirs)
    lake.detach()

    assert writer.saveAsTable is theirs
    rows.write.saveAsTable("of_spark")
    assert spark.table("of_spark").count() == 3
    spark.sql("DROP TABLE of_spark")

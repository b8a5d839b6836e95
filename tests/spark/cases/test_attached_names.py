"""The names that ``attach`` has given to Spark, under Spark's own ways to write to a table."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit

from emberlake import CatalogFactory, EmberlakeWarning, Table
from emberlake.errors import Unsupported
from emberlake.spark import Lake, attach


@pytest.fixture
def table(tmp_path: Path) -> Table:
    catalog = CatalogFactory.create({"warehouse": str(tmp_path)})
    catalog.create_database("named")
    table = catalog.create_table("named.t", pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": [1, 2]}))
    return table


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path, table: Table) -> Iterator[Lake]:
    lake = attach(spark, {"warehouse": str(tmp_path)})
    yield lake
    lake.detach()


@pytest.fixture
def rows(spark: SparkSession) -> DataFrame:
    return spark.range(10, 13)


def give_the_name_to_spark(spark: SparkSession, rows: DataFrame) -> None:
    spark.sql("DROP TABLE named.t")
    rows.write.saveAsTable("named.t")


def test_appends_go_to_the_table_of_the_lake(lake: Lake, rows: DataFrame, table: Table) -> None:
    rows.write.insertInto("named.t")
    rows.writeTo("named.t").append()

    assert table.count() == lake.spark.table("named.t").count() == 2 + 2 * 3


def test_overwrites_that_keep_the_name_replace_the_rows_of_the_lake(
    lake: Lake, rows: DataFrame, table: Table
) -> None:
    rows.write.insertInto("named.t", overwrite=True)
    assert table.count() == lake.spark.table("named.t").count() == 3

    rows.limit(1).writeTo("named.t").overwrite(lit(True))
    assert table.count() == lake.spark.table("named.t").count() == 1


def test_a_table_that_exists_is_neither_created_nor_touched(
    lake: Lake, rows: DataFrame, table: Table
) -> None:
    with pytest.raises(AnalysisException, match="ALREADY_EXISTS"):
        rows.write.mode("error").saveAsTable("named.t")
    with pytest.raises(AnalysisException, match="ALREADY_EXISTS"):
        rows.write.saveAsTable("named.t")
    rows.write.mode("ignore").saveAsTable("named.t")

    assert table.count() == lake.spark.table("named.t").count() == 2


def test_an_append_of_another_format_is_refused(lake: Lake, rows: DataFrame, table: Table) -> None:
    with pytest.raises(
        Unsupported, match=r'named\.t is a table of the lake.*format\("emberlake"\)'
    ):
        rows.write.mode("append").saveAsTable("named.t")

    assert table.count() == lake.spark.table("named.t").count() == 2


@pytest.mark.on_disk
def test_a_table_that_spark_cannot_have_is_listed_with_the_reason(
    lake: Lake, table: Table, tmp_path: Path
) -> None:
    lake.session.catalog.create_table("named.odd", pa.schema([("v", pa.string())]))
    schema = tmp_path / "named.db" / "odd" / "schema" / "schema-0"
    schema.write_text(schema.read_text().replace("STRING", "VARIANT"))

    lake.refresh()

    assert not lake.spark.catalog.tableExists("named.odd")
    (reason,) = lake.left_out.values()
    assert reason == "emberlake.errors.Unsupported: columns of type VARIANT cannot be read yet"
    assert repr(lake) == "Lake(paimon: 1 tables in Spark, 1 in left_out)"


def test_refresh_brings_back_a_name_that_spark_has_dropped(
    spark: SparkSession, lake: Lake, table: Table
) -> None:
    spark.sql("DROP TABLE named.t")

    lake.refresh()

    assert table.count() == spark.table("named.t").count() == 2
    assert lake.left_out == {}


def test_a_name_whose_columns_spark_has_altered_is_made_again_by_refresh(
    spark: SparkSession, lake: Lake, table: Table
) -> None:
    spark.sql("ALTER TABLE named.t ADD COLUMNS (x INT)")  # of the name only

    with pytest.raises(AnalysisException, match=r"no columns x .*lake\.refresh\(\) makes it again"):
        spark.table("named.t").collect()
    lake.refresh()

    assert spark.table("named.t").columns == table.field_names == ["id"]
    assert spark.table("named.t").count() == 2


def test_refresh_reports_that_spark_has_given_a_name_to_a_table_of_its_own(
    spark: SparkSession, lake: Lake, rows: DataFrame, table: Table
) -> None:
    give_the_name_to_spark(spark, rows)

    with pytest.warns(EmberlakeWarning, match=r"named\.t is now .*parquet") as warned:
        lake.refresh()

    assert warned[0].filename == __file__
    assert lake.left_out == {"named.t": "Spark has a table or view of that name"}
    assert spark.table("named.t").count() == 3
    assert lake.sql("SELECT * FROM named.t").count() == table.count() == 2
    lake.refresh()  # says it once

    spark.sql("DROP TABLE named.t")
    lake.refresh()
    assert spark.table("named.t").count() == 2
    assert lake.left_out == {}


def test_a_table_that_spark_has_made_outlives_the_lake(
    spark: SparkSession, lake: Lake, rows: DataFrame, table: Table
) -> None:
    give_the_name_to_spark(spark, rows)
    rows.write.saveAsTable("named.mine")

    with pytest.warns(EmberlakeWarning, match=r"named\.t is now a table of Spark"):
        lake.sql("ALTER TABLE named.t ADD COLUMN note STRING")  # makes the name again
    lake.detach()

    assert spark.table("named.t").count() == spark.table("named.mine").count() == 3
    spark.sql("DROP DATABASE named CASCADE")


def test_options_of_a_read_are_refused_since_spark_confuses_them(
    spark: SparkSession, lake: Lake, table: Table
) -> None:
    old = "named.t WITH (`snapshot-id` = 1)"

    with pytest.raises(AnalysisException, match=r"snapshot-id: Spark .* use lake\.sql"):
        spark.sql(f"SELECT * FROM {old}").count()
    with pytest.raises(AnalysisException, match=r"snapshot-id: Spark .* use lake\.sql"):
        spark.sql(f"SELECT * FROM {old} EXCEPT SELECT * FROM named.t").count()
    with pytest.raises(AnalysisException, match=r'load\("named\.t"\)'):
        spark.read.option("filter", "id > 2").table("named.t").count()


def test_options_of_a_write_are_checked(
    spark: SparkSession, lake: Lake, table: Table, tmp_path: Path
) -> None:
    rows = spark.range(1)

    for wrong, message in (
        ({"on-bad-row": "skip"}, "unknown option on-bad-row: did you mean on-bad-rows"),
        ({"commit-user": "me"}, "option commit-user is for stream writes"),
        ({"warehouse": str(tmp_path)}, r"the name stands for named\.t of the lake"),
    ):
        with pytest.raises(AnalysisException, match=message):
            rows.writeTo("named.t").options(**wrong).append()
    rows.writeTo("named.t").option("on-bad-rows", "skip").append()

    assert table.count() == 3


def test_streams_read_and_write_by_name(
    spark: SparkSession, lake: Lake, table: Table, local_path: Path
) -> None:
    target = lake.session.catalog.create_table("named.copy", pa.schema([("id", pa.int64())]))
    lake.refresh()

    def copy() -> None:
        writing = spark.readStream.table("named.t").writeStream.trigger(availableNow=True)
        writing.option("checkpointLocation", str(local_path)).toTable(
            "named.copy"
        ).awaitTermination()

    copy()
    table.append(pa.table({"id": [3]}))
    copy()

    assert sorted(target.to_arrow()["id"].to_pylist()) == [1, 2, 3]


def test_a_lake_that_is_attached_again_takes_over_its_names(
    spark: SparkSession, lake: Lake, table: Table, tmp_path: Path
) -> None:
    table.append(pa.table({"id": [3], "note": ["new"]}), merge_schema=True)

    again = attach(spark, {"warehouse": str(tmp_path)})

    assert again.left_out == {}
    assert spark.table("named.t").where("note = 'new'").count() == 1
    again.detach()
    assert not spark.catalog.tableExists("named.t")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("named.tt", "in named: did you mean t?"),
        ("namd.t", "in the lake: did you mean named?"),
        ("t", "in the lake: did you mean named.t?"),
    ],
)
def test_a_mistyped_name_is_answered_by_the_nearest_of_the_lake(
    lake: Lake, name: str, hint: str
) -> None:
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND") as caught:
        lake.sql(f"SELECT * FROM {name}").collect()

    assert caught.value.__notes__ == [hint]

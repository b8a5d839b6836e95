"""The names that ``attach`` has given to Spark, under Spark's own ways to write to a table."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit

from emberlake import CatalogFactory, EmberlakeWarning, Table
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
    for mode in ("error", "errorifexists"):
        with pytest.raises(AnalysisException, match="ALREADY_EXISTS"):
            rows.write.mode(mode).saveAsTable("named.t")
    with pytest.raises(AnalysisException, match="ALREADY_EXISTS"):
        rows.write.saveAsTable("named.t")
    rows.write.mode("ignore").saveAsTable("named.t")

    assert table.count() == lake.spark.table("named.t").count() == 2


def test_an_append_of_another_format_is_refused(lake: Lake, rows: DataFrame, table: Table) -> None:
    with pytest.raises(AnalysisException, match="doesn't match the specified format"):
        rows.write.mode("append").saveAsTable("named.t")

    assert table.count() == lake.spark.table("named.t").count() == 2


def test_refresh_brings_back_a_name_that_spark_has_dropped(
    spark: SparkSession, lake: Lake, table: Table
) -> None:
    spark.sql("DROP TABLE named.t")

    lake.refresh()

    assert table.count() == spark.table("named.t").count() == 2
    assert lake.left_out == {}


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


def test_modes_of_save_as_table_are_about_the_name_in_spark_not_about_the_table_at_its_path(
    spark: SparkSession, lake: Lake, rows: DataFrame, table: Table, tmp_path: Path
) -> None:
    place = {"path": "named.t", "warehouse": str(tmp_path)}

    rows.write.format("emberlake").options(**place).mode("error").saveAsTable("lost_options")

    assert table.count() == 5
    with pytest.raises(AnalysisException, match="does not pass the options of its own tables"):
        spark.table("lost_options").count()
    spark.sql("DROP TABLE lost_options")


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
    [("named.tt", "in named: did you mean t?"), ("namd.t", "in the lake: did you mean named?")],
)
def test_a_mistyped_name_is_answered_by_the_nearest_of_the_lake(
    lake: Lake, name: str, hint: str
) -> None:
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND") as caught:
        lake.sql(f"SELECT * FROM {name}").collect()

    assert caught.value.__notes__ == [hint]

"""``lake.sql`` gives the same answers, and leaves the same tables, as Java's connector."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from emberlake.spark import Lake, attach
from golden_sql import DIFFERENT, GoldenRun, scripts

pytestmark = pytest.mark.on_disk
# Beginnings of scripts, whose statements build on each other: a few of each kind.
SAMPLE = {"insert": range(1, 8), "merge_append": range(1, 8)}


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Iterator[Lake]:
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    lake = attach(spark, {"warehouse": str(tmp_path)}, databases=[])
    yield lake
    lake.detach()
    for table in spark.catalog.listTables():
        if table.isTemporary:
            spark.catalog.dropTempView(table.name)
    for key in [key for key in spark.conf.getAll if key.startswith("spark.paimon.")]:
        spark.conf.unset(key)
    spark.conf.set("spark.sql.session.timeZone", zone)


@pytest.mark.parametrize("name", SAMPLE)
def test_a_sample_of_statements_does_what_java_does(lake: Lake, tmp_path: Path, name: str) -> None:
    assert list(GoldenRun(lake.sql, tmp_path).differences(name, SAMPLE[name])) == []


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.filterwarnings("ignore::emberlake.EmberlakeWarning")
@pytest.mark.parametrize("name", sorted(scripts()))
def test_all_statements_do_what_java_does(lake: Lake, tmp_path: Path, name: str) -> None:
    found = list(GoldenRun(lake.sql, tmp_path).differences(name))

    numbers = {int(line.split(":")[1]) for line in found}
    assert numbers == DIFFERENT.get(name, set()), "\n".join(found)

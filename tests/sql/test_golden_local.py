"""What Java's connector for Spark did with a thousand statements, compared with ``catalog.sql``."""

from pathlib import Path

import pytest

from emberlake import CatalogFactory
from golden_sql import DIFFERENT, GoldenRun, scripts

QUICK = ("ddl_alter", "insert", "insert_more", "merge_more", "travel", "branches")


@pytest.mark.filterwarnings("ignore::emberlake.EmberlakeWarning")
@pytest.mark.parametrize(
    "script",
    [
        pytest.param(name, marks=() if name in QUICK else pytest.mark.slow)
        for name in sorted(scripts())
    ],
)
def test_statements_do_without_spark_what_they_do_in_java(script: str, tmp_path: Path) -> None:
    catalog = CatalogFactory.create({"warehouse": str(tmp_path)})

    found = list(GoldenRun(catalog.sql, tmp_path).differences(script))

    numbers = {int(line.split(":")[1]) for line in found}
    assert numbers == DIFFERENT.get(script, set()), "\n".join(found)

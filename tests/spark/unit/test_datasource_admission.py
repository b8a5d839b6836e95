"""Limits of a batch: passed to Spark if it asks for them, refused if it does not."""

import pytest
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadMaxBytes,
    ReadMaxFiles,
    ReadMaxRows,
)

from emberlake.datasource import admission
from emberlake.datasource.options import ReadLimits
from emberlake.errors import Unsupported


@pytest.mark.parametrize(
    ("limits", "limit"),
    [
        (ReadLimits(), ReadAllAvailable()),
        (ReadLimits(files=3), ReadMaxFiles(3)),
        (ReadLimits(rows=4, size=5), ReadMaxRows(4)),
        (ReadLimits(size=5), ReadMaxBytes(5)),
    ],
    ids=str,
)
def test_spark_gets_a_limit(limits: ReadLimits, limit: object) -> None:
    assert admission.to_read_limit(limits) == limit
    assert admission.is_read_all(limit) == limits.is_unbounded


def test_a_spark_that_reads_all_at_once_gets_no_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "admission", None)

    admission.check_limits(ReadLimits())
    assert admission.is_read_all(None)
    with pytest.raises(Unsupported, match="Spark 4\\.2"):
        admission.check_limits(ReadLimits(rows=1))

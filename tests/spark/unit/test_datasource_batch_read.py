"""Filters reach files only where Spark keeps what it planned with them apart."""

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql.datasource import EqualTo, GreaterThan, InputPartition
from pyspark.sql.types import StructType

from emberlake import EmberlakeWarning
from emberlake.datasource import batch_read
from emberlake.datasource.batch_read import BatchReader
from emberlake.datasource.columns import offered_schema
from emberlake.datasource.options import Use, parse_options
from emberlake.datasource.pin import Pin
from spark.reads import write
from spark.tables import new_table

FILTERS = [GreaterThan(("id",), 4), EqualTo(("price",), float("nan"))]


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[BatchReader]:
    write(new_table(tmp_path), range(6))
    options = parse_options({"path": "db.t", "warehouse": str(tmp_path)}, Use.BATCH_READ)
    pin = Pin.now(options)
    schema: StructType = offered_schema(options, pin.store.schema)
    return BatchReader(options, pin, schema)


def ids(reader: BatchReader) -> list[int]:
    partitions: list[InputPartition] = list(reader.partitions())
    batches = [batch for partition in partitions for batch in reader.read(partition)]
    return sorted(row for batch in batches for row in batch.column("id").to_pylist())


def test_a_spark_that_mixes_filters_up_gets_all_of_them_back_with_a_warning(
    reader: BatchReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_read, "KEEPS_FILTERS_APART", False)

    with pytest.warns(EmberlakeWarning, match="mixes up the filters .* set the option filter"):
        left = list(reader.pushFilters(FILTERS))

    assert left == FILTERS
    assert ids(reader) == [0, 1, 2, 3, 4, 5]


def test_the_warning_comes_once(reader: BatchReader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_read, "KEEPS_FILTERS_APART", False)
    monkeypatch.delattr(batch_read, "__warningregistry__", raising=False)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            list(reader.pushFilters(FILTERS))

    assert [warning.category for warning in caught] == [EmberlakeWarning]


def test_a_spark_that_keeps_filters_apart_gets_back_what_is_not_exact(
    reader: BatchReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_read, "KEEPS_FILTERS_APART", True)

    left = list(reader.pushFilters(FILTERS))

    assert left == FILTERS[1:]
    assert ids(reader) == [5]

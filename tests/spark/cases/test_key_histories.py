"""Random histories of key tables: reads on Spark give the rows that a read without Spark gives.

The tables have all engines, and keys of all types; their columns change, and they are compacted in
between. Spark reads by itself whatever it may, however many records are newer.
"""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from random import Random
from unittest.mock import patch

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from effort import examples
from emberlake import CatalogFactory
from emberlake.catalog import FileSystemCatalog
from emberlake.spark import read_paimon, sql
from emberlake.types import AtomicType
from key_histories import VALUES, History, Shape, random_shape
from spark.reads import local_rows, spark_rows
from spark.tables import warehouse_of

pytestmark = pytest.mark.on_disk

STEPS = 6
# Those that Spark may read by itself; it has TIME only where that is switched on.
TYPES = [text for text in VALUES if not text.startswith(("TIME(", "TIMESTAMP(9)"))]
ORDERING = {"sequence.field", "deletion-vectors.enabled"}
COMPARED = ["BOOLEAN", "TINYINT", "INT", "BIGINT", "DECIMAL(9, 2)", "STRING", "DATE"]


def newest(chance: Random) -> Shape:
    """A table whose newest records are its rows."""
    shape = random_shape(chance, "deduplicate")
    given = {k: v for k, v in shape.options.items() if k not in ORDERING}
    keys = tuple(chance.choice(COMPARED) for _ in shape.keys)
    return replace(shape, keys=keys, value=chance.choice(TYPES), options=given)


def apart(chance: Random) -> Shape:
    """The same, but each partition has its own rows for the same keys."""
    shape = replace(newest(chance), bucket=chance.choice(["1", "2"]))
    return replace(shape, partitioned=True, partition_in_key=False)


def ordered(chance: Random) -> Shape:
    """A table with an order of its own."""
    shape = newest(chance)
    return replace(shape, partition_in_key=True, options={**shape.options, "sequence.field": "n"})


def other(chance: Random) -> Shape:
    """A table whose rows depend on more than their newest records, or whose keys do."""
    engine = chance.choice(["deduplicate", "partial-update", "aggregation", "first-row"])
    shape = random_shape(chance, engine)
    keys = tuple(chance.choice(TYPES) for _ in shape.keys)
    return replace(shape, keys=keys, value=chance.choice(TYPES))


@contextmanager
def a_catalog() -> Iterator[FileSystemCatalog]:
    with tempfile.TemporaryDirectory() as warehouse:
        catalog = CatalogFactory.create({"warehouse": warehouse})
        assert isinstance(catalog, FileSystemCatalog)
        catalog.create_database("db")
        yield catalog


def a_condition(history: History, chance: Random) -> str:
    """About values, the key or the partition."""
    names = {column.place: column.name for column in history.columns}
    number, text = names[history.number], names[history.text]
    on_values = [f"{number} > 1", f"{number} IS NULL", f"{text} LIKE '%1%'", f"{text} IS NOT NULL"]
    on_keys = []
    for column in history.columns:
        if column.place in history.keys:
            root = AtomicType(column.type).root
            on_keys += [f"{column.name} > 0", f"{column.name} = 1"] * root.is_integer
            on_keys += [f"{column.name} >= 'b'", f"{column.name} = 'mon'"] * (root == "VARCHAR")
    return chance.choice(
        [
            chance.choice(on_values),
            chance.choice(on_keys or on_values),
            f"{chance.choice(on_keys or on_values)} AND {chance.choice(on_values)}",
            f"{chance.choice(on_keys or on_values)} OR {chance.choice(on_values)}",
        ]
    )


def check(history: History, chance: Random, spark: SparkSession) -> None:
    table, where = history.table, a_condition(history, chance)
    names = [column.name for column in history.columns]
    columns = chance.sample(names, chance.randint(1, len(names)))
    options = {"warehouse": warehouse_of(table)}

    whole = read_paimon("db.t", options, spark=spark)
    match chance.choice(["whole", "where", "filter", "sql"]):
        case "whole":
            assert whole.count() == len(local_rows(table)), history.done
            found, where, columns = whole, None, names
        case "where":
            found = whole.where(where).select(*columns)
        case "filter":
            found = read_paimon("db.t", options, spark=spark, filter=where, projection=columns)
        case _:
            query = f"SELECT {', '.join(columns)} FROM db.t WHERE {where}"
            found = sql(query, options, spark)

    assert spark_rows(found) == local_rows(table, where, columns), (history.done, where, columns)


KINDS = pytest.mark.parametrize("kind", [newest, apart, ordered, other])
# Histories shrink slowly; one that fails tells what was done.
PHASES = (Phase.reuse, Phase.generate)


@KINDS
@settings(examples(3), phases=PHASES)
@given(chance=st.randoms(note_method_calls=False))
def test_a_history_gives_the_rows_of_a_read_without_spark(
    spark: SparkSession, kind: Callable[[Random], Shape], chance: Random
) -> None:
    check_history(spark, kind, chance)


@pytest.mark.slow
@KINDS
@settings(examples(20), phases=PHASES)
@given(chance=st.randoms(note_method_calls=False))
def test_many_histories_give_the_rows_of_a_read_without_spark(
    spark: SparkSession, kind: Callable[[Random], Shape], chance: Random
) -> None:
    check_history(spark, kind, chance)


@patch("emberlake.spark.division._MOST_NEWER", 1.0)
def check_history(spark: SparkSession, kind: Callable[[Random], Shape], chance: Random) -> None:
    with a_catalog() as catalog:
        history = History(catalog, kind(chance), chance, TYPES)
        for _ in range(STEPS):
            history.step()

            check(history, chance, spark)

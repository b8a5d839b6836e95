"""Random tables with a primary key: DuckDB reads their files as the merge does.

A session reads each state several times: at first it joins, later it knows which records are dead.
Every query must give what it gives on the merged rows.
"""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from random import Random

import pyarrow as pa
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from canonical import Row, canonical_rows, sorted_rows
from effort import examples
from emberlake import CatalogFactory, Table
from emberlake.catalog import FileSystemCatalog
from emberlake.sql.local import LocalSession
from emberlake.sql.on_duckdb.native_keys import find_key_table
from emberlake.sql.on_duckdb.pinned import PinnedTable
from key_histories import NAME, History, Shape, random_shape

ENGINES = (*["deduplicate"] * 3, "first-row", "partial-update", "aggregation")
QUERIES = (
    "SELECT * FROM {rows}",
    "SELECT * FROM {rows}",
    "SELECT count(*) FROM {rows}",
    "SELECT {number}, {text} FROM {rows}",
    "SELECT * FROM {rows} WHERE {number} > 1",
    "SELECT * FROM {rows} WHERE {value} IS NULL OR {text} LIKE '%1%'",
    "SELECT * FROM {rows} WHERE {value} = (SELECT max({value}) FROM {rows})",
    "SELECT * FROM {rows} WHERE {value} > (SELECT min({value}) FROM {rows})",
    "SELECT * FROM {rows} WHERE {key} = (SELECT max({key}) FROM {rows})",
    "SELECT {number}, {value} FROM {rows} ORDER BY {order} LIMIT 3",
    "SELECT count(*) FROM (SELECT {text} FROM {rows} WHERE {number} > 1 LIMIT 3)",
    "SELECT count(a.{number}), count(b.{value}) FROM {rows} a JOIN {rows} b ON a.{key} = b.{key}",
    "SELECT {number}, count(*), count({value}) FROM {rows} GROUP BY {number}",
)
# Keys that any engine can compare, and values that DuckDB reads.
COMPARABLE = ("TINYINT", "INT", "BIGINT", "DECIMAL(38, 3)", "STRING", "DATE")
READABLE = (*COMPARABLE, "BOOLEAN", "DOUBLE", "FLOAT", "BYTES", "TIMESTAMP(3)", "TIMESTAMP(6)")


@contextmanager
def local_catalog() -> Iterator[FileSystemCatalog]:
    with tempfile.TemporaryDirectory() as warehouse:
        catalog = CatalogFactory.create({"warehouse": warehouse})
        catalog.create_database("db")
        assert isinstance(catalog, FileSystemCatalog)
        yield catalog


class Reading:
    """A session, and a table that it reads beside the merge."""

    def __init__(self, history: History) -> None:
        self.history, self.chance = history, history.chance
        self.session = LocalSession(history.catalog)

    def check(self, version: str = "") -> None:
        """Every query gives what it gives on merged rows."""
        history = self.history
        table = history.table.copy({"scan.version": version} if version else {})
        merged = table.to_arrow()
        named = {c.place: c.name for c in history.columns}
        names = {
            "number": named[history.number],
            "text": named[history.text],
            "value": named[history.value],
            "key": named[history.keys[-1]],
            "order": ", ".join(f"{named[place]} DESC" for place in history.keys),
        }
        rows = f"{NAME} VERSION AS OF {version}" if version else NAME
        queries = self.chance.sample(QUERIES, len(QUERIES)) if not version else QUERIES[:2]
        has_order = {*history.shape.keys} <= {*COMPARABLE, "BOOLEAN"}  # DuckDB has ties in others
        for query in queries:
            if "ORDER" in query and not has_order:
                continue
            found = self.run(query.format(rows=rows, **names), merged)
            wanted = self.run(query.format(rows="merged", **names), merged)
            assert found == wanted, (query, version, history.shape, history.done)

    def run(self, query: str, merged: pa.Table) -> list[Row]:
        result = self.session.run(query, variables={"merged": merged})
        return sorted_rows(canonical_rows(result.to_arrow()))


def comparable_shape(chance: Random, shape: Shape) -> Shape:
    """A table whose newest records are its rows, with so many keys that few records are newer."""
    keys = (*(chance.choice(COMPARABLE) for _ in range(2)), chance.choice([*COMPARABLE, "BOOLEAN"]))
    kept = {"data-file.thin-mode", "target-file-row-num", "changelog-producer"}
    kept |= {"dynamic-bucket.target-row-num"}
    options = {k: v for k, v in shape.options.items() if k in kept}
    return Shape("deduplicate", keys, chance.choice(READABLE), shape.bucket, options=options)


def is_native(table: Table) -> bool:
    return find_key_table(PinnedTable.of(table)) is not None


def roll_back(history: History) -> None:
    """The next snapshot has the number of one that is gone."""
    latest = history.table.latest_snapshot()
    if latest is not None and latest.id > 1:
        history.table.rollback_to(latest.id - 1)


@examples(10)
@given(seed=st.integers(0, 2**32), is_any=st.booleans())
def test_any_history_is_read_as_it_is_merged(seed: int, is_any: bool) -> None:
    check_history(seed, is_any)


@pytest.mark.slow
@examples(40)
@given(seed=st.integers(0, 2**32), is_any=st.booleans())
def test_each_of_many_histories_is_read_as_it_is_merged(seed: int, is_any: bool) -> None:
    check_history(seed, is_any)


def check_history(seed: int, is_any: bool) -> None:
    chance = Random(seed)
    shape = random_shape(chance, chance.choice(ENGINES))
    if is_any:
        shape = replace(shape, partitioned=chance.random() < 0.2, partition_in_key=True)
    else:
        shape = comparable_shape(chance, shape)
    with local_catalog() as catalog:
        history = History(catalog, shape, chance, READABLE)
        reading = Reading(history)
        actions: list[Callable[[], None]] = [
            *[history.write] * 5,
            *[history.compact] * 2,
            history.write_as_a_stream,
            history.overwrite,
            history.change_schema,
            lambda: roll_back(history),
        ]

        history.fill(50)
        reading.check()
        history.write()
        reading.check()
        assert is_any or is_native(history.table)
        for _ in range(4):
            action = chance.choice(actions)
            history.done.append(getattr(action, "__name__", ""))
            action()
            event(f"native: {is_native(history.table)}")
            reading.check()
        latest = history.table.latest_snapshot()
        assert latest is not None
        for number in range(1, latest.id + 1):
            reading.check(str(number))

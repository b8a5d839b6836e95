"""What is remembered about a table is about this table, at this snapshot."""

from pathlib import Path

import pyarrow as pa
import pytest

from emberlake import Catalog, CatalogFactory, Schema
from emberlake.sql.on_duckdb import connection, native_queries
from emberlake.sql.on_duckdb.native_queries import NativeQueries
from emberlake.sql.on_duckdb.pinned import PinnedTable


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = CatalogFactory.create({"warehouse": str(tmp_path)})
    catalog.create_database("db")
    return catalog


def make(catalog: Catalog, ids: list[int]) -> None:
    rows = pa.table({"id": pa.array(ids, pa.int64())})
    catalog.create_table("db.t", Schema.from_pyarrow_schema(rows.schema))
    catalog.get_table("db.t").append(rows)


def test_a_snapshot_is_decided_once(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    make(catalog, [1])
    queries = NativeQueries(connection.Database())
    first = queries.find(PinnedTable.of(catalog.get_table("db.t")))
    monkeypatch.setattr(native_queries, "native_query", lambda _: pytest.fail("decided again"))

    again = queries.find(PinnedTable.of(catalog.get_table("db.t")))

    assert first is not None
    assert again == first


def test_a_new_snapshot_is_seen(catalog: Catalog) -> None:
    make(catalog, [1])
    assert catalog.sql("SELECT id FROM db.t").fetchall() == [(1,)]

    catalog.get_table("db.t").append(pa.table({"id": [2]}))

    assert catalog.sql("SELECT id FROM db.t ORDER BY id").fetchall() == [(1,), (2,)]


def test_a_table_that_was_dropped_and_made_again_is_another_table(catalog: Catalog) -> None:
    make(catalog, [1])
    assert catalog.sql("SELECT id FROM db.t").fetchall() == [(1,)]
    catalog.drop_table("db.t")

    make(catalog, [7])

    assert catalog.sql("SELECT id FROM db.t").fetchall() == [(7,)]


def test_a_renamed_column_of_the_same_snapshot_is_found(catalog: Catalog) -> None:
    make(catalog, [1])
    assert catalog.sql("SELECT id FROM db.t").fetchall() == [(1,)]

    catalog.sql("ALTER TABLE db.t RENAME COLUMN id TO number")

    assert catalog.sql("SELECT number FROM db.t").fetchall() == [(1,)]


def test_only_the_last_tables_are_remembered(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native_queries, "_MOST_REMEMBERED", 1)
    make(catalog, [1])
    queries = NativeQueries(connection.Database())
    for number in (2, 3):
        queries.find(PinnedTable.of(catalog.get_table("db.t")))
        catalog.get_table("db.t").append(pa.table({"id": [number]}))
    decided: list[PinnedTable] = []
    monkeypatch.setattr(native_queries, "native_query", decided.append)
    first = catalog.get_table("db.t").copy({"scan.snapshot-id": "1"})

    queries.find(PinnedTable.of(first))

    assert len(decided) == 1


def test_views_of_files_are_made_once_and_only_so_many_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection, "_MOST_VIEWS", 2)
    database = connection.Database()

    names = [database.view_of(f"SELECT {n} AS n", "v") for n in (1, 2, 1, 3)]

    assert names == ["v1", "v2", "v1", "v3"]
    text = "SELECT view_name FROM duckdb_views() WHERE NOT internal ORDER BY 1"
    kept = database.stream(connection.Prepared(text)).read_all()
    assert kept.column(0).to_pylist() == ["v1", "v3"]
    assert database.view_of("SELECT 2 AS n", "v") == "v4"

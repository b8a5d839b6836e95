"""Key tables that DuckDB reads by itself have the rows that merging gives."""

import random
from pathlib import Path

import pyarrow as pa
import pytest

from emberlake import Catalog, CatalogFactory, Schema, Table
from emberlake.sql.on_duckdb.native_keys import native_key_query
from emberlake.sql.on_duckdb.pinned import PinnedTable

COLUMNS = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = CatalogFactory.create({"warehouse": str(tmp_path)})
    catalog.create_database("db")
    return catalog


def make(catalog: Catalog, buckets: str = "2", **options: str) -> Table:
    schema = Schema.from_pyarrow_schema(
        COLUMNS, primary_keys=["id"], options={"bucket": buckets, **options}
    )
    catalog.create_table("db.t", schema)
    return catalog.get_table("db.t")


def upsert(table: Table, ids: list[int], text: str, kind: str | None = None) -> None:
    rows = pa.table({"id": ids, "v": [f"{text} {i}" for i in ids]}, COLUMNS)
    builder = table.new_batch_write_builder()
    write = builder.new_write()
    write.write_arrow(rows, row_kind=kind)
    builder.new_commit().commit(write.prepare_commit())
    write.close()


def is_native(table: Table) -> bool:
    return native_key_query(PinnedTable.of(table)) is not None


def check(catalog: Catalog, table: Table) -> None:
    found = catalog.sql("SELECT id, v FROM db.t ORDER BY id").to_arrow()
    wanted = table.to_arrow().sort_by("id")
    assert found.to_pylist() == wanted.to_pylist()
    some = catalog.sql("SELECT count(*) FROM db.t WHERE v LIKE 'new%' AND id > 10").fetchall()
    assert some == [
        (
            len(
                wanted.filter(pa.compute.starts_with(wanted["v"], "new")).filter(
                    pa.compute.field("id") > 10
                )
            ),
        )
    ]


def test_newer_rows_and_deletes_replace_older_ones(catalog: Catalog) -> None:
    table = make(catalog)
    upsert(table, list(range(200)), "old")
    check(catalog, table)
    upsert(table, [3, 50, 51, 300], "new")
    upsert(table, [51, 52], "newest")
    upsert(table, [53, 3], "gone", "-D")

    assert is_native(table)
    check(catalog, table)
    table.compact(full=True)
    upsert(table, [53], "new")
    assert is_native(table)
    check(catalog, table)


@pytest.mark.parametrize("seed", range(4))
def test_any_history_gives_the_merged_rows(catalog: Catalog, seed: int) -> None:
    chance = random.Random(seed)
    table = make(catalog, chance.choice(["1", "3"]))
    upsert(table, list(range(100)), "old")
    for step in range(6):
        ids = sorted(chance.sample(range(140), chance.randint(1, 9)))
        upsert(table, ids, f"new{step}", chance.choice([None, None, "-D"]))
        if chance.random() < 0.3:
            table.compact()
        check(catalog, table)


@pytest.mark.parametrize(
    "options",
    [
        {"sequence.field": "v"},
        {"merge-engine": "first-row"},
        {"merge-engine": "partial-update"},
        {"deletion-vectors.enabled": "true"},
        {"ignore-delete": "true"},
    ],
)
def test_other_tables_are_merged(catalog: Catalog, options: dict[str, str]) -> None:
    table = make(catalog, **options)
    upsert(table, list(range(30)), "old")
    upsert(table, [1], "new")

    assert not is_native(table)


def test_many_newer_rows_are_merged(catalog: Catalog) -> None:
    table = make(catalog)
    upsert(table, list(range(30)), "old")
    upsert(table, list(range(20)), "new")

    assert not is_native(table)
    check(catalog, table)

"""System tables over the metadata that Java Paimon wrote: every row must fit the files on disk."""

from pathlib import Path

import pytest

from emberlake.catalog import Catalog, CatalogFactory
from emberlake.inspect import SYSTEM_TABLES


@pytest.fixture(scope="module")
def catalog(golden) -> Catalog:
    return CatalogFactory.create({"warehouse": golden.warehouse})


def rows(catalog: Catalog, name: str) -> list[dict]:
    builder = catalog.get_table(f"golden.{name}").new_read_builder()
    return builder.new_read().to_arrow(builder.new_scan().plan().splits()).to_pylist()


MAY_BE_EMPTY = ("tags", "branches", "consumers", "statistics", "table_indexes")


def test_every_system_table_of_every_table_can_be_read(catalog):
    for table in catalog.list_tables("golden"):
        for name in SYSTEM_TABLES:
            found = rows(catalog, f"{table}${name}")
            assert found or name in MAY_BE_EMPTY, f"{table}${name}"


def test_files_are_where_their_paths_say(catalog):
    for table in catalog.list_tables("golden"):
        for row in rows(catalog, f"{table}$files"):
            path = Path(row["file_path"])
            assert path.stat().st_size == row["file_size_in_bytes"]
            assert path.suffix == f".{row['file_format']}"


def test_files_partitions_and_buckets_add_up_to_the_snapshot(catalog):
    for table in catalog.list_tables("golden"):
        total = rows(catalog, f"{table}$snapshots")[-1]["total_record_count"]
        for name in ("files", "partitions", "buckets"):
            found = rows(catalog, f"{table}${name}")
            assert sum(row["record_count"] for row in found) == total, f"{table}${name}"


def test_the_partitions_of_any_type_are_named_readably(catalog):
    names = [row["partition"] for row in rows(catalog, "append_partition_types$partitions")]

    assert "d=1918-10-22/b=false/n=-43996260.28/l=3528033508737322118" in names
    assert any("l=__DEFAULT_PARTITION__" in name for name in names)


def test_tags_and_branches_are_found(catalog):
    assert [row["tag_name"] for row in rows(catalog, "append_tags_branches$tags")] == ["one", "two"]
    found = rows(catalog, "append_tags_branches$branches")
    assert [row["branch_name"] for row in found] == ["side"]
    assert rows(catalog, "append_tags_branches$branch_side$snapshots")

"""Another number of buckets, and fewer manifests: no row changes."""

from pathlib import Path

import pyarrow as pa
import pytest

from emberlake import Catalog, CatalogFactory, Schema
from emberlake.errors import InvalidInput, InvalidState, Unsupported

ROWS = pa.table({"id": pa.array(range(20), pa.int32()), "g": ["p", "q"] * 10})


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = CatalogFactory.create({"warehouse": str(tmp_path)})
    catalog.create_database("db")
    return catalog


def make(catalog: Catalog, **layout: object) -> None:
    required = pa.schema([f.with_nullable(False) for f in ROWS.schema])
    catalog.create_table("db.t", Schema.from_pyarrow_schema(required, **layout))


def buckets(catalog: Catalog) -> set[tuple[str | None, int]]:
    found = catalog.get_table("db.t$files").to_arrow(["partition", "bucket"]).to_pylist()
    return {(row["partition"], row["bucket"]) for row in found}


def test_rows_move_to_other_buckets_in_one_commit(catalog: Catalog) -> None:
    make(catalog, primary_keys=["id"], options={"bucket": "1"})
    table = catalog.get_table("db.t")
    table.append(ROWS)

    table.rescale(3)

    assert {bucket for _, bucket in buckets(catalog)} == {0, 1, 2}
    assert table.to_arrow().sort_by("id") == ROWS.cast(table.to_arrow().schema)
    assert table.options.get("bucket") == "1"
    latest = table.latest_snapshot()
    assert latest is not None
    assert (latest.id, latest.commit_kind.value) == (2, "OVERWRITE")
    assert table.check().ok


def test_only_partitions_that_match_are_rescaled(catalog: Catalog) -> None:
    options = {"bucket": "1", "bucket-key": "id"}
    make(catalog, partition_keys=["g"], options=options)
    table = catalog.get_table("db.t")
    table.append(ROWS)

    table.rescale(2, where="g = 'p'")

    assert buckets(catalog) == {("g=p", 0), ("g=p", 1), ("g=q", 0)}
    assert table.count() == 20


def test_what_cannot_be_rescaled_is_refused(catalog: Catalog) -> None:
    make(catalog)
    with pytest.raises(InvalidState, match="no snapshot"):
        catalog.get_table("db.t").rescale(2)
    catalog.get_table("db.t").append(ROWS)
    with pytest.raises(Unsupported, match="fixed number"):
        catalog.get_table("db.t").rescale(2)
    catalog.drop_table("db.t")
    make(catalog, primary_keys=["id"], options={"bucket": "1"})
    catalog.get_table("db.t").append(ROWS)
    with pytest.raises(InvalidInput, match="0 buckets"):
        catalog.get_table("db.t").rescale(0)


def test_manifests_are_merged_and_files_that_are_gone_are_forgotten(catalog: Catalog) -> None:
    make(catalog)
    table = catalog.get_table("db.t")
    for start in range(3):
        table.append(ROWS.slice(start, 1))
    table.delete("id = 1")
    before = table.to_arrow().sort_by("id")

    result = table.compact_manifests()

    manifests = catalog.get_table("db.t$manifests").to_arrow().to_pylist()
    assert [(m["num_added_files"], m["num_deleted_files"]) for m in manifests] == [(2, 0)]
    assert table.to_arrow().sort_by("id") == before
    assert result.snapshot_id == 5
    assert table.compact_manifests().snapshot_id is None

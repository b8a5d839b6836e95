"""The same history on a disk and on object stores: what can be seen of it is equal."""

import time
import urllib.request
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from canonical import canonical_rows, sorted_rows
from emberlake import Catalog, CatalogFactory, Schema, Table
from emberlake.errors import DatabaseNotFound, StorageError, TableNotFound
from servers import Server, signed_v4

COLUMNS = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), ("day", pa.string()), ("v", pa.float64())]
)


def rows(*ids: int, day: str = "mon", v: float = 0.5) -> pa.Table:
    return pa.table(
        {"id": list(ids), "day": [day] * len(ids), "v": [v + n for n in ids]}, schema=COLUMNS
    )


def seen(table: Table) -> list[Any]:
    return sorted_rows(canonical_rows(table.to_arrow()))


def append_history(catalog: Catalog) -> dict[str, Any]:
    schema = Schema.from_pyarrow_schema(COLUMNS, partition_keys=["day"])
    catalog.create_table("db.t", schema)
    table = catalog.get_table("db.t")
    said: dict[str, Any] = {"empty": seen(table)}
    for n in range(3):
        table.append(rows(n, 10 + n))
    table.append(rows(7, 8, day="tue"))
    table.create_tag("first")
    table.overwrite(rows(20, 21, day="tue"))
    said["overwritten"] = seen(table)
    table.compact(full=True)
    said["compacted"] = seen(table)
    said["filtered"] = sorted_rows(canonical_rows(table.to_arrow(filter="v > 11")))
    table.create_branch("work", "first")
    branch = catalog.get_table("db.t$branch_work")
    branch.append(rows(99))
    said["branch"] = seen(branch)
    said["tag"] = seen(table.copy({"scan.tag-name": "first"}))
    return said | versions(table)


def key_history(catalog: Catalog) -> dict[str, Any]:
    schema = Schema.from_pyarrow_schema(COLUMNS, primary_keys=["id"], options={"bucket": "2"})
    catalog.create_table("db.t", schema)
    table = catalog.get_table("db.t")
    said: dict[str, Any] = {}
    for turn in range(3):
        table.upsert(rows(*range(turn, turn + 20), v=float(turn)))
    said["upserted"] = seen(table)
    table.delete_keys(pa.table({"id": pa.array([3, 4], pa.int64())}))
    said["deleted"] = seen(table)
    table.create_tag("first")
    table.compact(full=True)
    said["compacted"] = seen(table)
    table.upsert(rows(1, 2, v=100.0))
    return said | versions(table)


def versions(table: Table) -> dict[str, Any]:
    """What snapshots, tags and branches look like, before and after they expire."""
    said: dict[str, Any] = {
        "snapshots": [s.id for s in table.snapshot_manager().list_snapshots()],
        "tags": table.list_tags(),
        "branches": table.list_branches(),
    }
    table.expire_snapshots(retain_max=2, retain_min=1)
    said["kept"] = [s.id for s in table.snapshot_manager().list_snapshots()]
    storage, root = table.store.storage, table.table_path
    storage.create(f"{root}/manifest/manifest-left-over", b"1234")
    time.sleep(0.05)
    found = table.remove_orphan_files(older_than=datetime.now(UTC))
    said["orphans"] = sorted(path.removeprefix(root) for path in found.paths)
    said["left"] = seen(table)
    said["problems"] = [str(problem) for problem in table.check().problems]
    return said


def dropped(catalog: Catalog) -> None:
    root = catalog.get_table("db.t").table_path
    catalog.drop_table("db.t")

    assert catalog.list_tables("db") == []
    assert not catalog.storage.exists(root)
    with pytest.raises(TableNotFound):
        catalog.get_table("db.t")
    catalog.drop_database("db")
    assert catalog.list_databases() == []
    with pytest.raises(DatabaseNotFound):
        catalog.get_database("db")


def test_a_database_that_cannot_be_deleted_is_not_reported_as_deleted(s3: Server) -> None:
    """Other programs write objects whose names end in a slash, which the client cannot name."""
    folder = f"{uuid.uuid4()}/wh"
    for key in (f"{folder}/db.db/", f"{folder}/db.db/t/"):
        request = signed_v4("PUT", s3.endpoint, f"/{s3.bucket}/{key}")
        urllib.request.urlopen(request, timeout=5).close()
    catalog = CatalogFactory.create({"warehouse": f"{s3.root}/{folder}", **s3.options})
    catalog.create_table("db.t", Schema.from_pyarrow_schema(COLUMNS)).append(rows(1))

    catalog.drop_table("db.t")
    assert catalog.list_tables("db") == []
    with pytest.raises(StorageError, match=r"names end in a slash.*store's own tools"):
        catalog.drop_database("db", cascade=True)


@pytest.mark.versitygw
@pytest.mark.filterwarnings("ignore:unfinished uploads:emberlake.EmberlakeWarning")
@pytest.mark.parametrize("cloud", ["s3", "azure", "gcs"])
@pytest.mark.parametrize("history", [append_history, key_history])
def test_a_history_is_the_same_as_on_disk(
    history: Callable[[Catalog], dict[str, Any]],
    cloud: str,
    request: pytest.FixtureRequest,
    tmp_path: Path,
) -> None:
    server: Server = request.getfixturevalue(cloud)
    on_disk = CatalogFactory.create({"warehouse": str(tmp_path)})
    warehouse = f"{server.root}/{uuid.uuid4()}/wh"
    on_store = CatalogFactory.create({"warehouse": warehouse, **server.options})
    for catalog in (on_disk, on_store):
        catalog.create_database("db")

    expected, found = history(on_disk), history(on_store)

    assert found == expected
    assert "/manifest/manifest-left-over" in found["orphans"]
    assert found["problems"] == []
    dropped(on_disk)
    dropped(on_store)

"""Dropping tables on an object store: many requests, any of which may be the last."""

import json
import subprocess
import sys

import pyarrow as pa
import pytest

from emberlake import Catalog, CatalogFactory, EmberlakeWarning
from emberlake.errors import InvalidState, TableNotFound
from emberlake.io import Storage
from servers import Proxy, Server, begin_upload, dying_with_parent

ROWS = pa.table({"n": range(10)})
DROPPER = """
import json, sys
from emberlake import CatalogFactory
CatalogFactory.create(json.loads(sys.argv[1])).drop_table("db.t")
"""


@pytest.fixture
def options(s3: Server, root: str) -> dict[str, str]:
    return {"warehouse": root, **s3.options}


@pytest.fixture
def catalog(options: dict[str, str]) -> Catalog:
    """A catalog with a table."""
    made = CatalogFactory.create(options)
    made.create_database("db")
    table = made.create_table("db.t", ROWS.schema)
    table.append(ROWS)
    table.append(ROWS)
    return made


def kill_dropper(options: dict[str, str], proxy: Proxy) -> None:
    """A process drops the table, and is killed at a request that the proxy holds."""
    given = json.dumps({**options, "s3.endpoint": proxy.endpoint})
    process = subprocess.Popen(dying_with_parent([sys.executable, "-c", DROPPER, given]))
    try:
        proxy.wait_until_held()
    finally:
        process.kill()
        process.wait(10)


@pytest.mark.parametrize("passed", [0, 1, 2])
def test_a_killed_drop_leaves_no_table_and_the_next_one_finishes_it(
    catalog: Catalog, options: dict[str, str], plain: Storage, root: str, proxy: Proxy, passed: int
) -> None:
    proxy.fail(method="POST", match="delete", how="wait", when="before", skip=passed)
    kill_dropper(options, proxy)
    proxy.clear()

    assert catalog.list_tables("db") == []
    with pytest.raises(TableNotFound):
        catalog.get_table("db.t")
    with pytest.raises(InvalidState, match="drop it again"):
        catalog.create_table("db.t", ROWS.schema)
    catalog.drop_table("db.t")

    assert [*plain.list_all(f"{root}/db.db")] == []
    catalog.create_table("db.t", ROWS.schema).append(ROWS)


def test_a_drop_that_is_killed_before_its_first_write_leaves_the_table_whole(
    catalog: Catalog, options: dict[str, str], proxy: Proxy
) -> None:
    proxy.fail(method="PUT", match="dropped", how="hold", when="before")
    kill_dropper(options, proxy)

    assert catalog.get_table("db.t").count() == 2 * len(ROWS)
    assert catalog.get_table("db.t").check().ok
    proxy.release()


def test_a_drop_ends_unfinished_uploads(
    catalog: Catalog, s3: Server, plain: Storage, root: str
) -> None:
    begin_upload(s3, f"{root}/db.db/t/bucket-0/data-lost.parquet")
    begin_upload(s3, f"{root}/db.db/t2/bucket-0/of-another-table")

    catalog.drop_table("db.t")

    (kept,) = plain.unfinished_uploads(f"{root}/db.db")
    assert kept.path == f"{root}/db.db/t2/bucket-0/of-another-table"
    plain.end_uploads([kept])


def test_who_may_not_list_uploads_drops_the_table_all_the_same(
    catalog: Catalog, options: dict[str, str], plain: Storage, root: str, proxy: Proxy
) -> None:
    far = CatalogFactory.create({**options, "s3.endpoint": proxy.endpoint})
    proxy.fail(method="GET", match="uploads=", how="403-AccessDenied", when="before")

    with pytest.warns(EmberlakeWarning, match="unfinished uploads into .* may be left: .*AccessDe"):
        far.drop_table("db.t")

    assert [*plain.list_all(f"{root}/db.db")] == []

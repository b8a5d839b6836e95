"""Sixteen writers of one table on an S3 server: every commit is there once, none is lost."""

import uuid
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

from emberlake import CatalogFactory, Schema, Table
from servers import Proxy, Server, proxy_of

WRITERS = 16
COLUMNS = pa.schema([("id", pa.int64()), ("writer", pa.int64())])
# Many writers of very small commits: each of them loses often.
PATIENT = {
    "commit.max-retries": "1000",
    "commit.min-retry-wait": "20 ms",
    "commit.max-retry-wait": "400 ms",
}
# How answers get lost, and how often: for a third of all requests that write.
FAULTS = (
    ("PUT", "drop", "before", 0.05),
    ("PUT", "drop", "after", 0.1),
    ("PUT", "503", "before", 0.05),
    ("PUT", "503", "after", 0.1),
    ("PUT", "500", "after", 0.05),
    ("GET", "drop", "after", 0.03),
)


def warehouse_of(server: Server) -> dict[str, str]:
    return {"warehouse": f"{server.root}/{uuid.uuid4()}/wh", **server.options}


def create(options: Mapping[str, str]) -> Table:
    catalog = CatalogFactory.create(options)
    catalog.create_database("db")
    catalog.create_table("db.t", Schema.from_pyarrow_schema(COLUMNS, options=PATIENT))
    return catalog.get_table("db.t")


def commit_all(options: Mapping[str, str], commits: int) -> dict[int, int]:
    """Let each writer open the table and commit; returns the snapshot that each commit reported."""

    def work(writer: int) -> dict[int, int]:
        table = CatalogFactory.create(options).get_table("db.t")
        done = {}
        for number in range(writer, commits, WRITERS):
            result = table.append(pa.table({"id": [number], "writer": [writer]}, schema=COLUMNS))
            assert result.snapshot_id is not None
            done[number] = result.snapshot_id
        return done

    with ThreadPoolExecutor(WRITERS) as pool:
        return {n: s for part in pool.map(work, range(WRITERS)) for n, s in part.items()}


def check_each_once(table: Table, committed: Mapping[int, int]) -> None:
    count = len(committed)
    assert sorted(table.to_arrow()["id"].to_pylist()) == list(range(count))
    assert sorted(committed.values()) == list(range(1, count + 1))
    store = table.store
    for number, snapshot_id in committed.items():
        delta = store.manifests.read_list(store.snapshots.load(snapshot_id).delta_manifest_list)
        (entry,) = store.manifests.read_manifests(delta).entries()
        path = store.data_file_path(entry.partition, entry.bucket, entry.file)
        assert store.storage.exists(path), f"commit {number}"
    assert Counter(p.kind for p in table.check(read_data=False).problems) == {}


def test_sixteen_committers_commit_each_row_once(s3: Server) -> None:
    options = warehouse_of(s3)
    table = create(options)

    committed = commit_all(options, 2 * WRITERS)

    check_each_once(table, committed)


def test_commits_whose_answers_get_lost_are_made_once(s3: Server, proxy: Proxy) -> None:
    straight = warehouse_of(s3)
    table = create(straight)
    for when in ("before", "after"):
        for how in ("drop", "503"):
            proxy.fail(method="PUT", match=r"/snapshot/snapshot-\d+$", how=how, when=when)

    committed = commit_all({**straight, "s3.endpoint": proxy.endpoint}, WRITERS)

    check_each_once(table, committed)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_thousand_commits_with_many_lost_answers(s3: Server, proxy: Proxy) -> None:
    straight = warehouse_of(s3)
    table = create(straight)
    for method, how, when, chance in FAULTS:
        rule = {"method": method, "how": how, "when": when, "chance": chance}
        proxy.fail(match="/wh/", times=10**9, **rule)

    committed = commit_all({**straight, "s3.endpoint": proxy.endpoint}, 1000)

    check_each_once(table, committed)


@pytest.mark.slow
@pytest.mark.parametrize("cloud", ["azure", "gcs", "minio"])
def test_committers_on_other_stores_whose_answers_get_lost_commit_each_row_once(
    cloud: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    server: Server = request.getfixturevalue(cloud)
    with proxy_of(server, tmp_path) as proxy:
        told_as = next(name for name in server.options if name.endswith("endpoint"))
        address = server.endpoint.replace(str(server.port), str(proxy.port))
        options = {**warehouse_of(server), told_as: address}
        table = create(options)
        for method, how, when, chance in FAULTS:
            proxy.fail(method=method, how=how, when=when, chance=chance, times=10_000)

        committed = commit_all(options, 48)

        assert proxy.clear() == []
        check_each_once(table, committed)

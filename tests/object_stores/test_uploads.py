"""Uploads that a killed process has left: found, ended, and nothing else is."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial

import pyarrow as pa
import pytest

from emberlake import CatalogFactory, EmberlakeWarning, Table
from emberlake.errors import StorageError
from emberlake.io import Storage, open_storage
from emberlake.io.object.upload import PART_BYTES
from servers import Proxy, Server, begin_upload, dying_with_parent

KILLED = """
import json, sys, time
from emberlake.io import open_storage
path, options = sys.argv[1], json.loads(sys.argv[2])
output = open_storage(path, options)[0].open_output(path)
output.write(bytes(3 * int(sys.argv[3])))
time.sleep(60)
"""


def wait_for_upload(storage: Storage, path: str) -> None:
    """Wait until the upload of a file has begun, which a thread of the library does."""
    deadline = time.monotonic() + 20
    folder = path.rpartition("/")[0]
    while path not in {upload.path for upload in storage.unfinished_uploads(folder)}:
        assert time.monotonic() < deadline, "no upload has begun"
        time.sleep(0.05)


def kill_writer_of(server: Server, storage: Storage, path: str) -> None:
    """A process writes a file, and is killed in the middle of it."""
    command = [sys.executable, "-c", KILLED, path, json.dumps(server.options), str(PART_BYTES)]
    process = subprocess.Popen(dying_with_parent(command))
    try:
        wait_for_upload(storage, path)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(10)


@pytest.fixture
def new_table(s3: Server, root: str) -> Callable[..., Table]:
    def new(**options: str) -> Table:
        catalog = CatalogFactory.create({"warehouse": root, **s3.options, **options})
        catalog.create_database("db", ignore_if_exists=True)
        columns = pa.schema([("n", pa.int64())])
        catalog.create_table("db.t", columns, ignore_if_exists=True)
        return catalog.get_table("db.t")

    return new


def test_the_upload_of_a_killed_writer_is_found_and_ended(
    s3: Server, plain: Storage, new_table: Callable[..., Table]
) -> None:
    table = new_table()
    table.append(pa.table({"n": [1, 2]}))
    lost = f"{table.table_path}/bucket-0/data-lost-0.parquet"
    kill_writer_of(s3, plain, lost)
    files = {info.path for info in plain.list_all(table.table_path)}
    assert lost not in files
    time.sleep(1.1)  # the store counts whole seconds
    now = datetime.now(UTC)

    young = table.remove_orphan_files()
    assert (young.uploads, young.paths) == (0, ())
    preview = table.remove_orphan_files(older_than=now, dry_run=True)
    assert (preview.uploads, preview.upload_paths, preview.paths) == (1, (lost,), ())
    assert len([*plain.unfinished_uploads(table.table_path)]) == 1

    done = table.remove_orphan_files(older_than=now)

    assert (done.uploads, done.paths) == (1, ())
    assert [*plain.unfinished_uploads(table.table_path)] == []
    assert {info.path for info in plain.list_all(table.table_path)} == files
    assert table.count() == 2


def test_an_upload_that_goes_on_stays_and_is_finished(
    s3: Server, plain: Storage, new_table: Callable[..., Table]
) -> None:
    table = new_table()
    folder = f"{table.table_path}/bucket-0"
    begin_upload(s3, f"{folder}/a b=ü.parquet")
    begin_upload(s3, f"{table.table_path}2/bucket-0/of-another-table")
    time.sleep(1.1)
    between = datetime.now(UTC)
    time.sleep(1.1)
    with plain.open_output(f"{folder}/running") as output:
        output.write(bytes(3 * PART_BYTES))
        wait_for_upload(plain, f"{folder}/running")
        done = table.remove_orphan_files(older_than=between)

    assert done.upload_paths == (f"{folder}/a b=ü.parquet",)
    assert plain.size(f"{folder}/running") == 3 * PART_BYTES
    (kept,) = plain.unfinished_uploads(f"{table.table_path}2")
    plain.end_uploads([kept])
    plain.end_uploads([kept])  # it has ended
    assert [*plain.unfinished_uploads(f"{table.table_path}2")] == []


def test_a_file_that_is_begun_twice_has_two_uploads(s3: Server, plain: Storage, root: str) -> None:
    begin_upload(s3, f"{root}/file")
    begin_upload(s3, f"{root}/file")

    found = [*plain.unfinished_uploads(root)]
    assert [upload.path for upload in found] == [f"{root}/file"] * 2
    plain.end_uploads(found[:1])

    assert [*plain.unfinished_uploads(root)] == found[1:]
    plain.end_uploads(found)


def test_more_uploads_than_a_page_holds_are_all_found(
    s3: Server, plain: Storage, root: str
) -> None:
    expected = [f"{root}/p={n % 3}/file-{n}" for n in range(1050)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(partial(begin_upload, s3), expected))

    found = [*plain.unfinished_uploads(root)]

    plain.end_uploads(found)
    assert sorted(upload.path for upload in found) == sorted(expected)
    assert [*plain.unfinished_uploads(root)] == []


@pytest.mark.parametrize("how", ["403-AccessDenied", "501-NotImplemented"])
def test_where_uploads_cannot_be_listed_the_orphans_still_go(
    plain: Storage, proxy: Proxy, new_table: Callable[..., Table], how: str
) -> None:
    table = new_table(**{"s3.endpoint": proxy.endpoint})
    orphan = f"{table.table_path}/bucket-0/data-lost-0.parquet"
    plain.put(orphan, b"1")
    time.sleep(1.1)
    proxy.fail(method="GET", match="uploads=", how=how, when="before", times=1)

    with pytest.warns(EmberlakeWarning, match="were not searched for: .*list the unfinished up"):
        done = table.remove_orphan_files(older_than=datetime.now(UTC))

    assert (done.paths, done.uploads) == ((orphan,), 0)


def test_a_listing_whose_answer_is_lost_is_requested_again(
    s3: Server, plain: Storage, storage: Storage, proxy: Proxy, root: str
) -> None:
    begin_upload(s3, f"{root}/file")
    proxy.fail(method="GET", match="uploads=", how="drop", when="after")
    proxy.fail(method="DELETE", match="uploadId=", how="drop", when="after")

    storage.end_uploads([*storage.unfinished_uploads(root)])

    assert [*plain.unfinished_uploads(root)] == []


def test_a_store_that_does_not_answer_in_time_is_reported(
    open_proxied: Callable[..., Storage], proxy: Proxy, root: str
) -> None:
    storage = open_proxied(**{"connection.timeout": "300 ms", "attempts.maximum": 1})
    proxy.fail(method="GET", match="uploads=", how="hang", when="before", seconds=2)

    with pytest.raises(StorageError, match="did not answer in time"):
        [*storage.unfinished_uploads(root)]


def test_wrong_keys_are_reported_without_showing_them(s3: Server, root: str) -> None:
    storage, _ = open_storage(root, {**s3.options, "s3.secret-key": "not-the-secret"})

    with pytest.raises(StorageError, match="the secret key does not match") as raised:
        [*storage.unfinished_uploads(root)]

    assert "not-the-secret" not in str(raised.value)

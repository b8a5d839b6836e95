"""Folders of a hundred thousand objects: listed by pages, in memory that does not grow."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from emberlake.io import Storage, open_storage
from servers import BUCKET, Proxy, Server, proxy_of, versitygw

pytestmark = [pytest.mark.slow, pytest.mark.versitygw, pytest.mark.timeout(600)]

COUNT, FOLDERS = 100_000, 100
PAGE = 1000
MEBIBYTE = 1024**2


@pytest.fixture(scope="module")
def server(s3: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose objects were put where it keeps them: requests would take minutes."""
    folder = tmp_path_factory.mktemp("many")
    with versitygw(folder) as started:
        for number in range(FOLDERS):
            place = folder / "objects" / BUCKET / "t" / f"p={number:02}" / "bucket-0"
            place.mkdir(parents=True)
            for file in range(COUNT // FOLDERS):
                (place / f"data-{number:02}-{file:04}.parquet").touch()
        yield started


@pytest.fixture(scope="module")
def proxy(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    with proxy_of(server, tmp_path_factory.mktemp("proxy")) as proxy:
        yield proxy


@pytest.fixture
def storage(server: Server, proxy: Proxy) -> Storage:
    opened, _ = open_storage(server.root, {**server.options, "s3.endpoint": proxy.endpoint})
    assert opened.exists(f"{server.root}/t")
    proxy.counted()
    return opened


def test_a_hundred_thousand_files_are_listed_by_pages_in_bounded_memory(
    server: Server, storage: Storage, proxy: Proxy
) -> None:
    before = start_peak()

    found, last = 0, ""
    for info in storage.list_all(f"{server.root}/t"):
        assert info.path > last
        found, last = found + 1, info.path

    assert found == COUNT
    assert proxy.counted()["requests"] == COUNT // PAGE
    assert status("VmHWM") - before < 24 * MEBIBYTE


def test_a_look_at_the_first_files_takes_one_request(
    server: Server, storage: Storage, proxy: Proxy
) -> None:
    listing = storage.list_all(f"{server.root}/t")

    assert next(listing).name == "data-00-0000.parquet"
    assert proxy.counted()["requests"] == 1


def start_peak() -> int:
    """Reset the peak memory of this process; returns its current memory."""
    Path("/proc/self/clear_refs").write_text("5")
    return status("VmRSS")


def status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))

"""How many requests a call makes, and that what it brings is right."""

import random
import time
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from emberlake.errors import FileNotFound, InvalidInput, StorageError
from emberlake.io import Storage, open_storage
from emberlake.io.object import probe, upload
from emberlake.io.object.reading import SMALL_BYTES
from emberlake.io.object.storage import FOLDER_MARK
from emberlake.io.object.upload import PART_BYTES
from servers import Proxy, Server, signed_v4

LARGE = random.Random(1).randbytes(SMALL_BYTES + 3_000_000)


@pytest.mark.parametrize("size", [1, SMALL_BYTES - 1, SMALL_BYTES])
def test_a_small_file_is_opened_and_read_in_one_request(
    storage: Storage, plain: Storage, proxy: Proxy, root: str, size: int
) -> None:
    plain.put(f"{root}/file", LARGE[:size])

    with storage.open_input(f"{root}/file") as source:
        assert source.size() == size
        assert source.read() == LARGE[:size]

    assert proxy.counted()["requests"] == 1


def test_an_empty_file_is_read(storage: Storage, plain: Storage, root: str) -> None:
    plain.put(f"{root}/file", b"")

    with storage.open_input(f"{root}/file") as source:
        assert (source.size(), source.read()) == (0, b"")
    assert storage.read_range(f"{root}/file", 0, 5) == b""


def test_a_large_file_is_read_at_any_place(
    storage: Storage, plain: Storage, proxy: Proxy, root: str
) -> None:
    plain.put(f"{root}/file", LARGE)
    chance = random.Random(2)

    with storage.open_input(f"{root}/file") as source:
        assert source.size() == len(LARGE)
        for _ in range(40):
            start, length = chance.randrange(len(LARGE) + 9), chance.choice([0, 1, 999, 200_000])
            source.seek(start)
            assert source.read(length) == LARGE[start : start + length]
            assert source.tell() == start + len(LARGE[start : start + length])

    assert proxy.counted()["requests"] < 40


def test_reading_straight_on_takes_few_requests(
    storage: Storage, plain: Storage, proxy: Proxy, root: str
) -> None:
    plain.put(f"{root}/file", LARGE)

    with storage.open_input(f"{root}/file") as source:
        pieces = []
        while piece := source.read(10_000):
            pieces.append(piece)

    assert b"".join(pieces) == LARGE
    assert proxy.counted()["requests"] <= 8


def test_the_end_of_a_large_file_comes_with_the_first_request(
    storage: Storage, plain: Storage, proxy: Proxy, root: str
) -> None:
    sink = pa.BufferOutputStream()
    pieces = [LARGE[n : n + 70_000] for n in range(0, 7_000_000, 70_000)]
    pq.write_table(pa.table({"piece": pieces}), sink)
    plain.put(f"{root}/file", sink.getvalue().to_pybytes())

    with storage.open_input(f"{root}/file") as source:
        assert pq.ParquetFile(source).metadata.num_rows == 100

    assert proxy.counted()["requests"] == 1


def test_a_file_that_is_deleted_while_it_is_read_is_named(
    storage: Storage, plain: Storage, root: str
) -> None:
    plain.put(f"{root}/file", LARGE)

    with storage.open_input(f"{root}/file") as source:
        plain.delete(f"{root}/file")

        with pytest.raises(FileNotFound, match=f"{root}/file"):
            source.read(10)


@pytest.mark.parametrize(
    ("size", "requests"),
    [(10, 1), (PART_BYTES - 1, 1), (PART_BYTES + 1, 5), (3 * PART_BYTES, 6)],
)
def test_an_output_is_one_request_or_one_a_part(
    storage: Storage, plain: Storage, proxy: Proxy, root: str, size: int, requests: int
) -> None:
    piece = b"0123456789" * 100_000
    with storage.open_output(f"{root}/file") as output:
        while output.position < size:
            output.write(piece[: size - output.position])

    assert proxy.counted()["requests"] == requests
    assert plain.size(f"{root}/file") == size


def test_what_an_output_was_given_may_be_changed_afterwards(
    storage: Storage, plain: Storage, root: str
) -> None:
    buffer = bytearray(b"a" * 5_000_000)
    with storage.open_output(f"{root}/file") as output:
        for letter in b"abc":
            buffer[:] = bytes([letter]) * len(buffer)
            output.write(buffer)

    assert plain.read(f"{root}/file") == b"".join(c * 5_000_000 for c in (b"a", b"b", b"c"))


def test_a_file_beyond_the_parts_of_an_upload_is_written_in_larger_ones(
    plain: Storage, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upload, "MOST_PARTS", 3)
    piece = memoryview(b"0123456789abcdef" * (PART_BYTES // 16))

    output = plain.open_output(f"{root}/small-parts")
    for _ in range(3):
        output.write(piece)
    with pytest.raises(InvalidInput, match="at most 3 parts, here of 8 MB, as fits target-file-s"):
        output.write(piece)
    output.abort()
    with plain.open_output(f"{root}/large-parts", target=4 * PART_BYTES) as output:
        for _ in range(6):
            output.write(piece)

    assert [info.name for info in plain.list(root)] == ["large-parts"]
    assert plain.read(f"{root}/large-parts") == bytes(piece) * 6


def test_a_large_output_never_replaces_a_file(plain: Storage, root: str) -> None:
    output = plain.open_output(f"{root}/file")
    output.write(bytes(2 * PART_BYTES))
    plain.put(f"{root}/other", b"first")

    with (
        pytest.raises(StorageError, match="other: it exists"),
        plain.open_output(f"{root}/other") as other,
    ):
        other.write(bytes(2 * PART_BYTES))
    output.close()

    assert plain.read(f"{root}/other") == b"first"
    deadline = time.monotonic() + 20  # the upload is given up aside
    while [*plain.unfinished_uploads(root)]:
        assert time.monotonic() < deadline, "the upload was not given up"
        time.sleep(0.05)


def test_requests_go_through_the_proxy_that_is_given(s3: Server, proxy: Proxy, root: str) -> None:
    given = {"s3.proxy.host": "127.0.0.1", "s3.proxy.port": str(proxy.port)}
    storage, _ = open_storage(s3.root, {**s3.options, **given})

    storage.put(f"{root}/file", b"1")

    (line,) = proxy.counted()["log"]
    assert line.startswith(f"PUT {s3.endpoint}/{s3.bucket}/")


def test_a_store_is_probed_before_the_first_publication_only(
    storage: Storage, proxy: Proxy, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "_process", probe._Process())

    storage.put_if_absent(f"{root}/one", b"1")
    first = proxy.counted()
    storage.put_if_absent(f"{root}/two", b"2")

    assert first["requests"] == 4
    assert proxy.counted()["requests"] == 1
    assert [info.name for info in storage.list(root)] == ["one", "reached", "two"]


def test_a_folder_or_a_file_is_looked_for_in_one_trip(
    storage: Storage, plain: Storage, proxy: Proxy, root: str
) -> None:
    plain.put(f"{root}/folder/file", b"1")
    proxy.delay(100)

    for path, is_there in (("folder", True), ("folder/file", True), ("fold", False)):
        assert storage.exists(f"{root}/{path}") is is_there
        assert proxy.counted()["trips"] <= 1


def test_many_files_are_listed_and_deleted_by_pages(
    open_proxied: Callable[..., Storage], plain: Storage, proxy: Proxy, root: str
) -> None:
    storage = open_proxied()
    expected = [f"{root}/t/p={n % 7}/file-{n}" for n in range(1100)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda path: plain.put(path, b"1"), expected))

    assert sorted(info.path for info in storage.list_all(f"{root}/t")) == sorted(expected)
    assert proxy.counted()["requests"] == 2

    storage.delete_folder(f"{root}/t")
    assert proxy.counted()["requests"] == 4
    assert list(storage.list_all(f"{root}/t")) == []


def test_marks_of_folders_are_no_files(plain: Storage, s3: Server, root: str) -> None:
    """Other programs write empty objects whose names end in a slash."""
    key = root.removeprefix(s3.root)
    for folder in ("", "/t", "/t/bucket-0"):
        request = signed_v4("PUT", s3.endpoint, f"/{s3.bucket}{key}{folder}/")
        urllib.request.urlopen(request, timeout=5).close()
    plain.put(f"{root}/t/bucket-0/data", b"1")
    plain.make_folder(f"{root}/u")

    assert [(i.name, i.is_folder) for i in plain.list(root)] == [("t", True), ("u", True)]
    assert [(i.name, i.is_folder) for i in plain.list(f"{root}/t")] == [("bucket-0", True)]
    assert [i.path for i in plain.list_all(root)] == [f"{root}/t/bucket-0/data"]
    assert plain.exists(f"{root}/u/{FOLDER_MARK}")

"""What every storage must do, run against each of them."""

import pickle
import threading
import uuid
from pathlib import Path
from typing import Any

import pytest

from emberlake.errors import AlreadyExists, FileNotFound, InvalidState, StorageError, Unsupported
from emberlake.io import (
    LocalStorage,
    MemoryStorage,
    RoutedStorage,
    Storage,
    Upload,
    WrappedStorage,
    open_storage,
)
from servers import Server

MOVING = {
    "local": LocalStorage,
    "memory": MemoryStorage,
    "wrapped": lambda: WrappedStorage(MemoryStorage()),
    "routed home": lambda: RoutedStorage(MemoryStorage(), "/"),
    "routed elsewhere": lambda: RoutedStorage(MemoryStorage(), "memory://home"),
}


# Servers take their time to start; of those for S3 one is enough for most runs.
CLOUDS = {**dict.fromkeys(("s3", "azure", "gcs"), "thorough"), "minio": "slow"}


def on(*names: str) -> list[Any]:
    """Storages to run a test on."""
    marked = {name: getattr(pytest.mark, mark) for name, mark in CLOUDS.items()}
    return [pytest.param(n, marks=[marked[n]] if n in marked else []) for n in names]


def opened(request: pytest.FixtureRequest) -> Storage:
    if request.param in CLOUDS:
        server: Server = request.getfixturevalue(request.param)
        return open_storage(server.root, server.options)[0]
    return MOVING[request.param]()


@pytest.fixture(params=on(*MOVING, *CLOUDS))
def storage(request: pytest.FixtureRequest) -> Storage:
    return opened(request)


@pytest.fixture(params=on(*MOVING, "s3", "minio"))
def ending(request: pytest.FixtureRequest) -> Storage:
    """A storage that ends the uploads of others, or has none."""
    return opened(request)


@pytest.fixture(params=MOVING)
def moving(request: pytest.FixtureRequest) -> Storage:
    """A storage that moves folders."""
    return MOVING[request.param]()


@pytest.fixture
def root(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    for cloud in CLOUDS:
        if cloud in request.node.name.partition("[")[2]:
            return f"{request.getfixturevalue(cloud).root}/{uuid.uuid4()}/warehouse"
    return str(tmp_path / "warehouse")


def names(storage: Storage, path: str) -> list[str]:
    return [info.name for info in storage.list(path)]


def test_it_is_a_storage(storage: Storage) -> None:
    assert isinstance(storage, Storage)


def test_what_was_put_is_read(storage: Storage, root: str) -> None:
    storage.put(f"{root}/a/b", b"hello")

    assert storage.read(f"{root}/a/b") == b"hello"
    assert storage.size(f"{root}/a/b") == 5


def test_put_replaces(storage: Storage, root: str) -> None:
    storage.put(f"{root}/hint", b"1")
    storage.put(f"{root}/hint", b"22")

    assert storage.read(f"{root}/hint") == b"22"
    assert names(storage, root) == ["hint"]


def test_a_hint_is_replaced_like_any_small_file(storage: Storage, root: str) -> None:
    storage.put_hint(f"{root}/hint", b"1")
    storage.put_hint(f"{root}/hint", b"22")

    assert storage.read(f"{root}/hint") == b"22"
    assert names(storage, root) == ["hint"]


def test_what_was_created_is_read_and_not_created_again(storage: Storage, root: str) -> None:
    storage.create(f"{root}/a/manifest-1", b"1")

    with pytest.raises(StorageError, match="manifest-1"):
        storage.create(f"{root}/a/manifest-1", b"2")

    assert storage.read(f"{root}/a/manifest-1") == b"1"


def test_a_file_is_put_after_those_that_it_refers_to(storage: Storage, root: str) -> None:
    files = [f"{root}/manifest-{n}" for n in range(100)]
    for path in files:
        storage.create(path, b"1")

    assert storage.put_if_absent(f"{root}/snapshot-1", b"1", files) is True
    assert storage.put_if_absent(f"{root}/snapshot-1", b"2", files) is False


def test_of_files_that_are_put_together_each_is_ours_or_not(storage: Storage, root: str) -> None:
    paths = [f"{root}/t{number}/snapshot-1" for number in range(3)]
    storage.put_if_absent(paths[1], b"theirs")

    outcomes = storage.put_each_if_absent([(path, b"ours") for path in paths])

    assert list(outcomes) == [True, False, True]
    assert [storage.read(path) for path in paths] == [b"ours", b"theirs", b"ours"]
    assert all(names(storage, path.rpartition("/")[0]) == ["snapshot-1"] for path in paths)


def test_nothing_is_put_after_a_file_that_is_missing(storage: Storage, root: str) -> None:
    storage.create(f"{root}/manifest-1", b"1")

    with pytest.raises(FileNotFound) as raised:
        storage.put_if_absent(
            f"{root}/snapshot/snapshot-1", b"1", [f"{root}/manifest-1", f"{root}/manifest-2"]
        )

    assert raised.value.path == f"{root}/manifest-2"
    assert names(storage, root) == ["manifest-1"]


def test_put_if_absent_creates_once(storage: Storage, root: str) -> None:
    assert storage.put_if_absent(f"{root}/snapshot-1", b"ours") is True
    assert storage.put_if_absent(f"{root}/snapshot-1", b"theirs") is False

    assert storage.read(f"{root}/snapshot-1") == b"ours"
    assert names(storage, root) == ["snapshot-1"]


def test_of_many_writers_of_one_name_exactly_one_wins(storage: Storage, root: str) -> None:
    wins: list[int] = []
    start = threading.Barrier(8)

    def publish(writer: int) -> None:
        start.wait()
        if storage.put_if_absent(f"{root}/snapshot-1", b"%d" % writer):
            wins.append(writer)

    threads = [threading.Thread(target=publish, args=(writer,)) for writer in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(wins) == 1
    assert storage.read(f"{root}/snapshot-1") == b"%d" % wins[0]


@pytest.mark.parametrize(
    ("offset", "length", "expected"), [(0, 3, b"012"), (4, 3, b"456"), (8, 9, b"89"), (20, 1, b"")]
)
def test_a_range_is_read(
    storage: Storage, root: str, offset: int, length: int, expected: bytes
) -> None:
    storage.put(f"{root}/file", b"0123456789")

    assert storage.read_range(f"{root}/file", offset, length) == expected


def test_an_input_is_seekable(storage: Storage, root: str) -> None:
    storage.put(f"{root}/file", b"0123456789")

    with storage.open_input(f"{root}/file") as source:
        source.seek(7)
        tail = source.read()

    assert tail == b"789"


@pytest.mark.parametrize("said", [10, 9, 20_000_000])
def test_an_input_shows_the_file_as_it_is_whatever_size_was_given(
    storage: Storage, root: str, said: int
) -> None:
    storage.put(f"{root}/file", b"0123456789")

    with storage.open_input(f"{root}/file", said) as source:
        assert source.size() == 10
        assert source.read() == b"0123456789"


def test_many_files_are_read_in_their_order(storage: Storage, root: str) -> None:
    paths = [f"{root}/m-{n}" for n in range(150)]
    storage.create_all([(path, path.encode()) for path in paths])

    assert [*storage.read_many(paths)] == [path.encode() for path in paths]
    assert [*storage.read_many([])] == []


def test_a_missing_file_among_many_is_an_error(storage: Storage, root: str) -> None:
    storage.create_all([(f"{root}/a", b"1"), (f"{root}/c", b"3")])

    with pytest.raises(FileNotFound, match="/b"):
        list(storage.read_many([f"{root}/a", f"{root}/b", f"{root}/c"]))


def test_files_are_not_created_together_where_one_exists(storage: Storage, root: str) -> None:
    storage.create(f"{root}/b", b"1")

    with pytest.raises(StorageError, match="/b"):
        storage.create_all([(f"{root}/a", b"2"), (f"{root}/b", b"2")])

    assert storage.read(f"{root}/b") == b"1"


def test_a_creation_that_loses_its_name_reports_what_has_it(storage: Storage, root: str) -> None:
    first = storage.put_or_read(f"{root}/snapshot-1", b"ours")
    second = storage.put_or_read(f"{root}/snapshot-1", b"theirs")

    assert (first.data, first.is_ours) == (b"ours", True)
    assert (second.data, second.is_ours) == (b"ours", False)
    assert first.etag == second.etag


def test_bytes_have_the_mark_of_the_listing(storage: Storage, root: str) -> None:
    storage.put(f"{root}/a", b"1")
    data, etag = storage.read_marked(f"{root}/a")
    listed = {info.etag for info in (*storage.list(root), *storage.list_all(root))}
    storage.put(f"{root}/a", b"2")

    assert (data, {etag}) == (b"1", listed)
    assert etag is None or storage.read_marked(f"{root}/a")[1] != etag


def test_an_output_becomes_a_file(storage: Storage, root: str) -> None:
    with storage.open_output(f"{root}/p=1/bucket-0/data") as sink:
        sink.write(b"abc")
        sink.write(b"def")

    assert storage.read(f"{root}/p=1/bucket-0/data") == b"abcdef"


def test_an_output_may_be_closed_by_its_writer(storage: Storage, root: str) -> None:
    with storage.open_output(f"{root}/data") as sink:
        sink.write(b"abc")
        sink.close()

    assert storage.read(f"{root}/data") == b"abc"


def test_an_output_that_fails_leaves_nothing(storage: Storage, root: str) -> None:
    storage.make_folder(root)

    with pytest.raises(TypeError), storage.open_output(f"{root}/data") as sink:
        list(map(sink.write, [b"abc", "not bytes"]))

    assert names(storage, root) == []


def test_an_output_counts_its_bytes_and_returns_its_size(storage: Storage, root: str) -> None:
    output = storage.open_output(f"{root}/data")

    assert (output.write(b"abc"), output.write(memoryview(b"de")), output.position) == (3, 2, 5)
    assert output.close() == 5


def test_an_output_is_seen_once_it_is_closed(storage: Storage, root: str) -> None:
    output = storage.open_output(f"{root}/data")
    output.write(b"abc")
    output.close()

    output.abort()

    assert storage.read(f"{root}/data") == b"abc"


def test_an_aborted_output_leaves_nothing(storage: Storage, root: str) -> None:
    storage.make_folder(root)
    output = storage.open_output(f"{root}/data")
    output.write(b"abc")

    output.abort()
    output.abort()

    assert names(storage, root) == []
    with pytest.raises(InvalidState, match="data was closed or aborted"):
        output.write(b"def")
    with pytest.raises(InvalidState, match="data was closed or aborted"):
        output.close()


def test_an_output_never_replaces_a_file(storage: Storage, root: str) -> None:
    storage.put(f"{root}/data", b"first")

    with pytest.raises(StorageError, match="data"), storage.open_output(f"{root}/data") as sink:
        sink.write(b"second")

    assert storage.read(f"{root}/data") == b"first"


def test_a_missing_file_is_named(storage: Storage, root: str) -> None:
    path = f"{root}/nothing"
    for ask in (
        lambda: storage.read(path),
        lambda: storage.read_range(path, 0, 1),
        lambda: storage.size(path),
        lambda: storage.open_input(path),
    ):
        with pytest.raises(FileNotFound) as raised:
            ask()
        assert raised.value.path == path


def test_files_and_folders_exist(storage: Storage, root: str) -> None:
    storage.put(f"{root}/folder/file", b"")

    assert storage.exists(f"{root}/folder/file")
    assert storage.exists(f"{root}/folder")
    assert storage.exists(f"{root}/folder/")
    assert not storage.exists(f"{root}/folder/other")
    assert not storage.exists(f"{root}/fold")


def test_a_listing_is_one_level_deep_and_sorted(storage: Storage, root: str) -> None:
    storage.put(f"{root}/b", b"12")
    storage.put(f"{root}/a/deep/file", b"1")
    storage.make_folder(f"{root}/c")

    found = [(i.path, i.name, i.size, i.is_folder) for i in storage.list(root)]

    assert found == [
        (f"{root}/a", "a", 0, True),
        (f"{root}/b", "b", 2, False),
        (f"{root}/c", "c", 0, True),
    ]


def test_a_listing_shows_when_a_file_was_written(storage: Storage, root: str) -> None:
    storage.put(f"{root}/file", b"")

    (info,) = storage.list(root)

    assert info.modified_ms > 1_600_000_000_000


def test_a_missing_folder_lists_nothing(storage: Storage, root: str) -> None:
    assert names(storage, f"{root}/nothing") == []


def test_all_files_of_a_folder_are_listed_at_any_depth(storage: Storage, root: str) -> None:
    storage.put(f"{root}/t/b", b"12")
    storage.put(f"{root}/t/a/deep/file", b"1")
    storage.put(f"{root}/t2/file", b"1")
    storage.make_folder(f"{root}/t/empty")

    found = sorted((i.path, i.name, i.size, i.is_folder) for i in storage.list_all(f"{root}/t"))

    assert found == [
        (f"{root}/t/a/deep/file", "file", 1, False),
        (f"{root}/t/b", "b", 2, False),
    ]
    assert list(storage.list_all(f"{root}/nothing")) == []


def test_many_files_are_deleted_together(storage: Storage, root: str) -> None:
    for n in range(20):
        storage.put(f"{root}/t/file-{n}", b"")

    storage.delete_all(f"{root}/t/file-{n}" for n in range(1, 30))

    assert names(storage, f"{root}/t") == ["file-0"]


def test_deleting_is_idempotent(storage: Storage, root: str) -> None:
    storage.make_folder(root)
    storage.put(f"{root}/file", b"")

    storage.delete(f"{root}/file")
    storage.delete(f"{root}/file")

    assert not storage.exists(f"{root}/file")
    assert storage.exists(root)


@pytest.mark.versitygw
def test_a_folder_is_deleted_with_all_that_is_in_it(storage: Storage, root: str) -> None:
    storage.put(f"{root}/t/a/file", b"")
    storage.put(f"{root}/t2/file", b"")

    storage.delete_folder(f"{root}/t")
    storage.delete_folder(f"{root}/t")

    assert names(storage, root) == ["t2"]
    assert not storage.exists(f"{root}/t/a/file")


@pytest.mark.versitygw
def test_only_folders_without_files_are_deleted_as_empty_ones(storage: Storage, root: str) -> None:
    storage.put(f"{root}/t/a/file", b"")
    storage.make_folder(f"{root}/t/b")

    storage.delete_empty_folder(f"{root}/t")
    assert storage.read(f"{root}/t/a/file") == b""
    storage.delete(f"{root}/t/a/file")
    storage.delete_folder(f"{root}/t/b")
    for _ in range(2):
        storage.delete_empty_folder(f"{root}/t")

    assert names(storage, root) == []


def test_making_a_folder_is_idempotent(storage: Storage, root: str) -> None:
    storage.make_folder(f"{root}/a/b")
    storage.make_folder(f"{root}/a/b")

    assert names(storage, f"{root}/a") == ["b"]


def test_a_folder_is_moved(moving: Storage, root: str) -> None:
    moving.put(f"{root}/old/a/file", b"1")

    moving.move_folder(f"{root}/old", f"{root}/other/new")

    assert moving.traits.moves_folders
    assert moving.read(f"{root}/other/new/a/file") == b"1"
    assert not moving.exists(f"{root}/old")


def test_a_folder_is_not_moved_onto_another(moving: Storage, root: str) -> None:
    moving.put(f"{root}/old/file", b"1")
    moving.make_folder(f"{root}/new")

    with pytest.raises(AlreadyExists, match="new"):
        moving.move_folder(f"{root}/old", f"{root}/new")

    assert moving.read(f"{root}/old/file") == b"1"


def test_a_missing_folder_cannot_be_moved(moving: Storage, root: str) -> None:
    with pytest.raises(FileNotFound):
        moving.move_folder(f"{root}/old", f"{root}/new")


def test_a_storage_that_cannot_move_a_folder_says_so(s3: Server) -> None:
    storage, _ = open_storage(s3.root, s3.options)

    assert not storage.traits.moves_folders
    with pytest.raises(Unsupported, match="cannot rename a folder"):
        storage.move_folder(f"{s3.root}/old", f"{s3.root}/new")


def test_it_survives_pickling(storage: Storage, root: str) -> None:
    storage.put(f"{root}/file", b"1")

    again = pickle.loads(pickle.dumps(storage))

    assert again.read(f"{root}/file") == b"1"
    assert again == storage
    assert hash(again) == hash(storage)


def test_names_are_taken_as_they_are(storage: Storage, root: str) -> None:
    path = f"{root}/dt=p%3D1/käse bröt/file"
    storage.put(path, b"1")

    assert storage.read(path) == b"1"
    assert names(storage, root) == ["dt=p%3D1"]


def test_a_storage_that_nobody_has_begun_to_write_to_has_no_uploads(
    ending: Storage, root: str
) -> None:
    ending.put(f"{root}/a/file", b"1")

    assert [*ending.unfinished_uploads(root)] == []
    assert [*ending.unfinished_uploads(f"{root}/nowhere")] == []


def test_ending_an_upload_that_is_not_there_changes_nothing(ending: Storage, root: str) -> None:
    ending.put(f"{root}/file", b"1")

    ending.end_uploads([])
    ending.end_uploads([Upload(f"{root}/file", str(uuid.uuid4()), 0)])

    assert ending.read(f"{root}/file") == b"1"


@pytest.mark.parametrize("cloud", on("azure", "gcs"))
def test_a_storage_that_cannot_end_uploads_says_so(
    cloud: str, root: str, request: pytest.FixtureRequest
) -> None:
    server: Server = request.getfixturevalue(cloud)
    storage, _ = open_storage(server.root, server.options)

    storage.end_uploads([])
    with pytest.raises(Unsupported, match="lifecycle rule"):
        storage.end_uploads([Upload(f"{root}/file", str(uuid.uuid4()), 0)])

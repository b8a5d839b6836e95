"""One storage for all paths of a table: each goes to where it lives."""

import pickle
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from emberlake.errors import FileNotFound, InvalidOption, Unsupported
from emberlake.io import LocalStorage, MemoryStorage, RoutedStorage, Upload, WrappedStorage
from emberlake.io.routed import is_same_folder, own_storage, place_of
from emberlake.io.routed import routed as as_routed

HOME = "memory://home"


@pytest.fixture
def memory() -> MemoryStorage:
    return MemoryStorage()


@pytest.fixture
def routed(memory: MemoryStorage) -> RoutedStorage:
    return RoutedStorage(memory, f"{HOME}/warehouse")


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("/a/b", "file"),
        ("file:///a", "file"),
        ("FILE:/a", "file"),
        ("s3://bucket/a:b", "s3://bucket"),
        ("S3://bucket", "s3://bucket"),
        ("hdfs://host:8020/a", "hdfs://host:8020"),
    ],
)
def test_a_place_is_a_scheme_and_an_authority(path: str, place: str) -> None:
    assert place_of(path) == place


@pytest.mark.parametrize("path", [f"{HOME}/warehouse/t/f", f"{HOME}/elsewhere/f"])
def test_paths_of_the_same_place_stay_at_home(
    routed: RoutedStorage, memory: MemoryStorage, path: str
) -> None:
    routed.put(path, b"1")

    assert memory.read(path) == b"1"


@pytest.mark.parametrize("scheme", ["", "file:", "file://"])
def test_other_paths_go_to_the_storage_of_their_scheme(
    routed: RoutedStorage, memory: MemoryStorage, tmp_path: Path, scheme: str
) -> None:
    routed.create(f"{scheme}{tmp_path}/a/f", b"1")

    assert (tmp_path / "a/f").read_bytes() == b"1"
    assert not [*memory.list_all("")]


def test_a_bucket_whose_name_begins_like_the_home_is_another_place(
    memory: MemoryStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
    routed = RoutedStorage(memory, "s3://b")

    with pytest.raises(InvalidOption, match="no credentials for s3"):
        routed.read("s3://bucket/f")


def test_a_place_is_opened_once_and_only_when_asked_for(
    routed: RoutedStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[tuple[str, object]] = []

    def opening(path: str, options: object) -> tuple[LocalStorage, str]:
        opened.append((path, options))
        return LocalStorage(), path

    monkeypatch.setattr("emberlake.io.routed.open_storage", opening)
    routed.exists(f"{HOME}/warehouse/t")
    assert not opened

    routed.exists(f"{tmp_path}/a")
    routed.exists(f"file:{tmp_path}/b")
    assert opened == [(f"{tmp_path}/a", {})]


def test_many_files_are_deleted_place_by_place(routed: RoutedStorage, tmp_path: Path) -> None:
    paths = [f"{HOME}/1", f"{tmp_path}/2", f"{HOME}/3", f"file:{tmp_path}/4"]
    for path in paths:
        routed.put(path, b"")

    routed.delete_all(paths)

    assert not any(map(routed.exists, paths))


def test_a_file_is_put_after_files_of_other_places(routed: RoutedStorage, tmp_path: Path) -> None:
    needed = [f"{HOME}/manifest", f"{tmp_path}/data"]
    for path in needed:
        routed.create(path, b"")

    assert routed.put_if_absent(f"{HOME}/snapshot-1", b"", needed)
    with pytest.raises(FileNotFound, match="gone"):
        routed.put_if_absent(f"{HOME}/snapshot-2", b"", [*needed, f"{tmp_path}/gone"])
    assert not routed.exists(f"{HOME}/snapshot-2")


def test_what_is_created_elsewhere_is_durable_at_once(
    routed: RoutedStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[int] = []
    monkeypatch.setattr("os.fsync", flushed.append)

    routed.create(f"{tmp_path}/index", b"1")

    assert len(flushed) == 1


def test_a_folder_does_not_move_to_another_place(routed: RoutedStorage, tmp_path: Path) -> None:
    routed.make_folder(f"{HOME}/a")

    with pytest.raises(Unsupported, match="another storage"):
        routed.move_folder(f"{HOME}/a", f"{tmp_path}/a")


def test_options_cross_processes_and_show_nowhere(memory: MemoryStorage) -> None:
    routed = RoutedStorage(memory, HOME, {"s3.secret-key": "hush"})

    assert pickle.loads(pickle.dumps(routed)).options == routed.options
    assert pickle.loads(pickle.dumps(routed)) == routed
    assert "hush" not in repr(routed)


def test_what_is_routed_is_not_routed_again(memory: MemoryStorage) -> None:
    storage = as_routed(memory, HOME, {"key": "value"})

    assert as_routed(storage, "/elsewhere", {}) is storage
    assert storage == RoutedStorage(memory, HOME)


def test_metadata_is_on_the_own_storage(routed: RoutedStorage, memory: MemoryStorage) -> None:
    wrapped = WrappedStorage(memory)

    assert own_storage(routed) is memory
    assert own_storage(wrapped) is wrapped


class Uploading(MemoryStorage):
    """Has one upload for every folder that is asked for, until it is ended."""

    def __init__(self) -> None:
        super().__init__()
        self.ended: list[str] = []

    def unfinished_uploads(self, path: str) -> Iterator[Upload]:
        yield Upload(f"{path}/file", "id", 0)

    def end_uploads(self, uploads: Iterable[Upload]) -> None:
        self.ended += [upload.path for upload in uploads]


def test_uploads_are_listed_and_ended_where_they_are(tmp_path: Path) -> None:
    home = Uploading()
    routed = RoutedStorage(WrappedStorage(home), HOME)
    (upload,) = routed.unfinished_uploads(f"{HOME}/t")

    routed.end_uploads([upload, Upload(f"{tmp_path}/file", "id", 0)])

    assert home.ended == [f"{HOME}/t/file"]
    assert [*routed.unfinished_uploads(str(tmp_path))] == []


def test_a_link_leads_to_the_same_folder(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    storage = RoutedStorage(LocalStorage(), str(tmp_path))

    assert is_same_folder(storage, f"{tmp_path}/link/t", f"file:{tmp_path}/a/t")
    assert not is_same_folder(storage, f"{tmp_path}/link/t", f"{tmp_path}/b/t")
    assert not is_same_folder(storage, "s3://bucket/t", f"{tmp_path}/b/t")


def test_without_a_disk_the_text_decides(routed: RoutedStorage) -> None:
    assert is_same_folder(routed, f"{HOME}/a", f"{HOME}/a")
    assert not is_same_folder(routed, f"{HOME}/a", f"{HOME}/b")

from pathlib import Path

import pytest

from emberlake.errors import InvalidInput, Unsupported
from emberlake.io import LocalStorage, open_storage


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("/data/warehouse", "/data/warehouse"),
        ("/data/warehouse/", "/data/warehouse"),
        ("/data/./x/../warehouse", "/data/warehouse"),
        ("file:/data/warehouse", "/data/warehouse"),
        ("file:///data/warehouse/", "/data/warehouse"),
        ("/data/with space%20", "/data/with space%20"),
    ],
)
def test_a_path_on_disk_gets_its_normal_form(given: str, expected: str) -> None:
    assert open_storage(given, {}) == (LocalStorage(), expected)


def test_a_relative_path_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    assert open_storage("warehouse", {})[1] == f"{tmp_path}/warehouse"


@pytest.mark.parametrize("path", ["hdfs://host:8020/x", "ftp://host/x"])
def test_a_scheme_without_a_storage_is_refused(path: str) -> None:
    with pytest.raises(Unsupported, match=path.split(":", maxsplit=1)[0]):
        open_storage(path, {})


def test_an_empty_path_is_refused() -> None:
    with pytest.raises(InvalidInput, match="empty"):
        open_storage(" ", {})


@pytest.mark.parametrize(("single", "expected"), [("false", True), ("true", False)])
def test_others_overwrite_in_an_object_store_unless_there_is_one_writer(
    single: str, *, expected: bool
) -> None:
    options = {"s3.access-key": "a", "s3.secret-key": "b", "s3.single-writer": single}
    storage, _ = open_storage("s3://bucket/folder", options)

    assert storage.traits.others_overwrite is expected
    assert not LocalStorage().traits.others_overwrite

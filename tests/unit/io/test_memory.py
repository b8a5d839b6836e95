import gc
import pickle

import pytest

from emberlake.base.env import Env
from emberlake.errors import InvalidState, StorageError
from emberlake.io import MemoryStorage


def test_a_pickle_of_a_storage_that_is_gone_cannot_be_opened() -> None:
    pickled = pickle.dumps(MemoryStorage())
    gc.collect()

    with pytest.raises(InvalidState, match="process that made it"):
        pickle.loads(pickled)


def test_times_come_from_the_environment() -> None:
    storage = MemoryStorage(Env(now_ms=lambda: 42))
    storage.put("t/file", b"")

    assert [info.modified_ms for info in storage.list("t")] == [42]


def test_two_storages_share_nothing() -> None:
    one, other = MemoryStorage(), MemoryStorage()
    one.put("t/file", b"")

    assert not other.exists("t/file")
    assert one != other


def test_a_folder_is_not_overwritten_by_a_file() -> None:
    storage = MemoryStorage()
    storage.make_folder("t/folder")

    with pytest.raises(StorageError, match="folder"):
        storage.put("t/folder", b"")

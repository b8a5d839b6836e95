"""Many files are deleted by few calls, which run side by side."""

import threading
from collections.abc import Iterable

import pytest

from emberlake.base.parallel import default_workers
from emberlake.io import MemoryStorage
from emberlake.maintenance.deletion import Deletion


class Counting(MemoryStorage):
    """Remembers how many files each call was given."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []
        self._guard = threading.Lock()

    def delete_all(self, paths: Iterable[str]) -> None:
        given = list(paths)
        with self._guard:
            self.sizes.append(len(given))
        super().delete_all(given)


@pytest.mark.parametrize("count", [0, 1, 7, 5000, 20_001])
def test_files_are_deleted_in_batches_for_all_workers(count):
    storage = Counting()
    storage.put("t/stays", b"")
    paths = [f"t/{number}" for number in range(count)]
    for path in paths[:10]:
        storage.put(path, b"")
    calls = []

    Deletion(storage, count, lambda *args: calls.append(args)).delete(paths)

    assert [info.path for info in storage.list_all("t")] == ["t/stays"]
    assert sum(storage.sizes) == count
    assert max(storage.sizes, default=0) <= 1000
    assert len(storage.sizes) >= min(count, 2 * default_workers())
    assert calls == [(number, count) for number in range(1, count + 1)]

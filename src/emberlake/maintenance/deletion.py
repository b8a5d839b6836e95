"""Deletes many files at once, and reports its progress."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from emberlake.base.parallel import default_workers, parallel_map
from emberlake.io.storage import Storage

Progress = Callable[[int, int], None]

_MOST_AT_ONCE: Final = 1000  # files in one call: as many as object stores accept
_CALLS_A_WORKER: Final = 4
_REQUESTS: Final = 4  # that delete at once, on object stores


class Deletion:
    """Deletes files in steps; each is done before the next one begins."""

    def __init__(self, storage: Storage, total: int, progress: Progress | None) -> None:
        self._storage = storage
        self._total = total
        self._progress = progress
        self._done = 0

    def delete(self, paths: Iterable[str]) -> None:
        """Delete files, in no particular order."""

        def delete(batch: Sequence[str]) -> int:
            self._storage.delete_all(batch)
            return len(batch)

        # An object store deletes them all with one request, however few there are.
        is_remote = self._storage.traits.is_remote
        batches = _batches(list(paths), _MOST_AT_ONCE if is_remote else 1)
        for deleted in parallel_map(delete, batches, workers=_REQUESTS if is_remote else None):
            for _ in range(deleted):
                self.count()

    def count(self) -> None:
        """One more file is gone."""
        self._done += 1
        if self._progress is not None:
            self._progress(self._done, self._total)


def _batches(paths: Sequence[str], least: int) -> Iterator[Sequence[str]]:
    """Batches that give every worker something to do: a disk deletes file by file."""
    fair = -(-len(paths) // (_CALLS_A_WORKER * default_workers()))
    size = max(least, min(fair, _MOST_AT_ONCE))
    return (paths[start : start + size] for start in range(0, len(paths), size))

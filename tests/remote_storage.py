"""A storage in memory that acts as object stores do: requests side by side, marks of bytes."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from emberlake.base.requests import ask_all, ask_each
from emberlake.io import FileInfo, MemoryStorage, Standing, StorageTraits, WrappedStorage

AT_ONCE = 8


def mark_of(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


@dataclass(frozen=True, eq=False)
class RemoteStorage(WrappedStorage):
    """Knows which calls were made; ``before_read`` is called with a path before it is read."""

    storage: MemoryStorage = field(default_factory=MemoryStorage)
    calls: list[str] = field(default_factory=list)
    before_read: Callable[[str], None] = lambda path: None

    @property
    def traits(self) -> StorageTraits:
        return replace(self.storage.traits, requests_at_once=AT_ONCE, moves_folders=False)

    def read(self, path: str) -> bytes:
        return self.read_marked(path)[0]

    def read_marked(self, path: str) -> tuple[bytes, str | None]:
        self.calls.append(f"read {path}")
        self.before_read(path)
        data = self.storage.read(path)
        return data, mark_of(data)

    def read_many(self, paths: Sequence[str]) -> Iterator[bytes]:
        return ask_each((partial(self.read, path) for path in paths), AT_ONCE)

    def create_all(self, files: Sequence[tuple[str, bytes]]) -> None:
        ask_all((partial(self.create, path, data) for path, data in files), AT_ONCE)

    def put_or_read(self, path: str, data: bytes, after: Sequence[str] = ()) -> Standing:
        is_ours = self.put_if_absent(path, data, after)
        standing = self.storage.read(path)
        return Standing(standing, mark_of(standing), is_ours)

    def list(self, path: str) -> Iterator[FileInfo]:
        self.calls.append(f"list {path}")
        return map(self._marked, self.storage.list(path))

    def list_all(self, path: str) -> Iterator[FileInfo]:
        self.calls.append(f"list {path}")
        return map(self._marked, self.storage.list_all(path))

    def _marked(self, info: FileInfo) -> FileInfo:
        return info if info.is_folder else replace(info, etag=mark_of(self.storage.read(info.path)))

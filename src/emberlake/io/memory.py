"""Storage in the memory of this process: for tests, and for tables that need not last."""

import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Final
from weakref import WeakValueDictionary

import pyarrow as pa

from emberlake.base.env import SYSTEM_ENV, Env
from emberlake.errors import AlreadyExists, FileNotFound, InvalidState, StorageError
from emberlake.io.storage import FileInfo, OneByOne, Output, StorageTraits

_TRAITS: Final = StorageTraits(
    is_shared=False,
    spark_reads=False,
    moves_folders=True,
    flushes_late=False,
    others_overwrite=False,
)
_LIVE: Final[WeakValueDictionary[str, "MemoryStorage"]] = WeakValueDictionary()


class MemoryStorage(OneByOne):
    """Files in a dictionary. In the same process, its pickle stands for the same storage."""

    def __init__(self, env: Env = SYSTEM_ENV) -> None:
        self._env = env
        self._lock = threading.RLock()
        self._files: dict[str, tuple[bytes, int]] = {}  # path -> bytes, modification time
        self._folders: set[str] = set()
        self._id = str(uuid.uuid4())
        _LIVE[self._id] = self

    @property
    def traits(self) -> StorageTraits:
        return _TRAITS

    def read(self, path: str) -> bytes:
        try:
            return self._files[_plain(path)][0]
        except KeyError:
            raise FileNotFound(path) from None

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        return self.read(path)[offset : offset + length]

    def open_input(self, path: str, size: int | None = None) -> AbstractContextManager[object]:
        del size
        opened: AbstractContextManager[object] = pa.BufferReader(self.read(path))
        return opened

    def local_file(self, path: str) -> str | None:
        del path
        return None

    def open_output(self, path: str, target: int | None = None) -> Output:
        del target
        return _MemoryOutput(self, path)

    def create(self, path: str, data: bytes) -> None:
        if not self.put_if_absent(path, data):
            raise StorageError(f"cannot create {path}: File exists")

    def put_if_absent(self, path: str, data: bytes, after: Sequence[str] = ()) -> bool:
        with self._lock:
            for needed in after:
                self.size(needed)
            if _plain(path) in self._files:
                return False
            self.put(path, data)
            return True

    def put(self, path: str, data: bytes) -> None:
        with self._lock:
            if _plain(path) in self._folders:
                raise StorageError(f"cannot write {path}: Is a directory")
            self._files[_plain(path)] = (bytes(data), self._env.now_ms())
            self.make_folder(_parent(_plain(path)))

    def put_hint(self, path: str, data: bytes) -> None:
        self.put(path, data)

    def exists(self, path: str) -> bool:
        return _plain(path) in self._files or _plain(path) in self._folders

    def size(self, path: str) -> int:
        return len(self.read(path))

    def list(self, path: str) -> Iterator[FileInfo]:
        folder = _plain(path)
        with self._lock:
            files = [
                FileInfo(name, _name(name), len(data), is_folder=False, modified_ms=modified_ms)
                for name, (data, modified_ms) in self._files.items()
                if _parent(name) == folder
            ]
            folders = [
                FileInfo(name, _name(name), 0, is_folder=True, modified_ms=0)
                for name in self._folders
                if _parent(name) == folder and name != folder
            ]
        return iter(sorted(files + folders, key=lambda info: info.name))

    def list_all(self, path: str) -> Iterator[FileInfo]:
        folder = _plain(path)
        with self._lock:
            files = [
                FileInfo(name, _name(name), len(data), is_folder=False, modified_ms=modified_ms)
                for name, (data, modified_ms) in self._files.items()
                if name != folder and _is_within(name, folder)
            ]
        return iter(files)

    def make_folder(self, path: str) -> None:
        with self._lock:
            folder = _plain(path)
            while folder and folder not in self._folders:
                self._folders.add(folder)
                folder = _parent(folder)

    def delete(self, path: str) -> None:
        with self._lock:
            self._files.pop(_plain(path), None)

    def delete_folder(self, path: str) -> None:
        folder = _plain(path)
        with self._lock:
            self._folders = {name for name in self._folders if not _is_within(name, folder)}
            for name in [name for name in self._files if _is_within(name, folder)]:
                del self._files[name]

    def delete_empty_folder(self, path: str) -> None:
        folder = _plain(path)
        with self._lock:
            self._folders -= {
                name
                for name in self._folders
                if _is_within(name, folder) and not any(_is_within(f, name) for f in self._files)
            }

    def move_folder(self, source: str, target: str) -> None:
        old, new = _plain(source), _plain(target)
        with self._lock:
            if self.exists(new):
                raise AlreadyExists(f"{target} exists; move {source} to another name")
            if old not in self._folders:
                raise FileNotFound(source)
            self._files = {_moved(name, old, new): file for name, file in self._files.items()}
            self._folders = {_moved(name, old, new) for name in self._folders}
            self.make_folder(_parent(new))

    def __reduce__(self) -> tuple[object, ...]:
        return _live_storage, (self._id,)


class _MemoryOutput(Output):
    def __init__(self, storage: MemoryStorage, path: str) -> None:
        super().__init__(path)
        self._storage = storage
        self._bytes = bytearray()

    def _append(self, data: memoryview) -> None:
        self._bytes += data

    def _finish(self) -> None:
        self._storage.create(self.path, bytes(self._bytes))

    def _drop(self) -> None:
        self._bytes.clear()


def _live_storage(storage_id: str) -> MemoryStorage:
    storage = _LIVE.get(storage_id)
    if storage is None:
        raise InvalidState(
            "a MemoryStorage is reachable only in the process that made it and only while it is "
            "in use; keep tables that cross processes on disk"
        )
    return storage


def _plain(path: str) -> str:
    return path.rstrip("/")


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + "/")


def _moved(path: str, old: str, new: str) -> str:
    return new + path.removeprefix(old) if _is_within(path, old) else path

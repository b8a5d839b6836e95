"""Where the tables of tests live: in memory, on a disk, or on an S3 server.

What ``builders`` make is made here, wherever that is: a test that uses them runs anywhere. The
paths are the same everywhere, so that a table can be copied from one place to another.
"""

import shutil
import uuid
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace

from emberlake.base.env import SYSTEM_ENV, Env
from emberlake.errors import FileNotFound, StorageError
from emberlake.io import FileInfo, MemoryStorage, Output, Standing, Storage, Upload, open_storage
from emberlake.io.wrapped import WrappedOutput, WrappedStorage
from servers import Server


@dataclass(frozen=True)
class Place:
    """A folder that has room for many storages and warehouses; without one, the memory."""

    name: str = "memory"
    root: str = ""
    options: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)

    @property
    def is_shared(self) -> bool:
        """Whether other processes reach it."""
        return bool(self.root)

    def new_storage(self, env: Env = SYSTEM_ENV) -> Storage:
        """A storage with nothing in it. Only in memory it goes by the clock of ``env``."""
        if not self.root:
            return MemoryStorage(env)
        storage = self.storage_at(f"{self.root}/{uuid.uuid4()}")
        if self.name == "disk":
            weakref.finalize(storage, shutil.rmtree, storage.root, ignore_errors=True)
        return storage

    def storage_at(self, root: str) -> "RootedStorage":
        """The storage with that root, which another process may have made."""
        opened, root = open_storage(root, self.options)
        return RootedStorage(opened, root)

    def new_warehouse(self) -> dict[str, str]:
        """The catalog options of an empty warehouse."""
        assert self.root, "what is in memory has no warehouse that can be named"
        return {"warehouse": f"{self.root}/{uuid.uuid4()}", **self.options}


def disk(folder: object) -> Place:
    return Place("disk", str(folder))


def s3(server: Server) -> Place:
    return Place("s3", server.root, server.options)


_here = [Place()]  # the last one


def here() -> Place:
    return _here[-1]


@contextmanager
def living_at(place: Place) -> Iterator[Place]:
    """Inside the context all storages are made there."""
    _here.append(place)
    try:
        yield place
    finally:
        _here.pop()


def new_storage(env: Env = SYSTEM_ENV) -> Storage:
    return here().new_storage(env)


@dataclass(frozen=True)
class RootedStorage(WrappedStorage):
    """A storage as it looks from one of its folders: paths are inside of it, as in memory."""

    root: str

    def read(self, path: str) -> bytes:
        with self._named():
            return self.storage.read(self._at(path))

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        with self._named():
            return self.storage.read_range(self._at(path), offset, length)

    def read_marked(self, path: str) -> tuple[bytes, str | None]:
        with self._named():
            return self.storage.read_marked(self._at(path))

    def read_many(self, paths: Sequence[str]) -> Iterator[bytes]:
        with self._named():
            yield from self.storage.read_many([self._at(path) for path in paths])

    def open_input(self, path: str, size: int | None = None) -> AbstractContextManager[object]:
        with self._named():
            return self.storage.open_input(self._at(path), size)

    def local_file(self, path: str) -> str | None:
        return self.storage.local_file(self._at(path))

    def open_output(self, path: str, target: int | None = None) -> Output:
        return _RootedOutput(self.storage.open_output(self._at(path), target), path)

    def create(self, path: str, data: bytes) -> None:
        self.storage.create(self._at(path), data)

    def create_all(self, files: Sequence[tuple[str, bytes]]) -> None:
        self.storage.create_all([(self._at(path), data) for path, data in files])

    def put_if_absent(self, path: str, data: bytes, after: Sequence[str] = ()) -> bool:
        with self._named():
            return self.storage.put_if_absent(self._at(path), data, [*map(self._at, after)])

    def put_each_if_absent(
        self, files: Sequence[tuple[str, bytes]]
    ) -> Sequence[bool | StorageError]:
        return self.storage.put_each_if_absent([(self._at(path), data) for path, data in files])

    def put_or_read(self, path: str, data: bytes, after: Sequence[str] = ()) -> Standing:
        with self._named():
            return self.storage.put_or_read(self._at(path), data, [*map(self._at, after)])

    def put(self, path: str, data: bytes) -> None:
        self.storage.put(self._at(path), data)

    def put_hint(self, path: str, data: bytes) -> None:
        self.storage.put_hint(self._at(path), data)

    def exists(self, path: str) -> bool:
        return self.storage.exists(self._at(path))

    def size(self, path: str) -> int:
        with self._named():
            return self.storage.size(self._at(path))

    def list(self, path: str) -> Iterator[FileInfo]:
        return map(self._seen, self.storage.list(self._at(path)))

    def list_all(self, path: str) -> Iterator[FileInfo]:
        return map(self._seen, self.storage.list_all(self._at(path)))

    def make_folder(self, path: str) -> None:
        self.storage.make_folder(self._at(path))

    def delete(self, path: str) -> None:
        self.storage.delete(self._at(path))

    def delete_all(self, paths: Iterable[str]) -> None:
        self.storage.delete_all(map(self._at, paths))

    def delete_folder(self, path: str) -> None:
        self.storage.delete_folder(self._at(path))

    def delete_empty_folder(self, path: str) -> None:
        self.storage.delete_empty_folder(self._at(path))

    def move_folder(self, source: str, target: str) -> None:
        with self._named():
            self.storage.move_folder(self._at(source), self._at(target))

    def unfinished_uploads(self, path: str) -> Iterator[Upload]:
        found = self.storage.unfinished_uploads(self._at(path))
        return (replace(upload, path=self._inside(upload.path)) for upload in found)

    def end_uploads(self, uploads: Iterable[Upload]) -> None:
        self.storage.end_uploads(replace(one, path=self._at(one.path)) for one in uploads)

    def _at(self, path: str) -> str:
        return self.root + path

    def _inside(self, path: str) -> str:
        return path.removeprefix(self.root)

    def _seen(self, info: FileInfo) -> FileInfo:
        return replace(info, path=self._inside(info.path))

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Errors name a file as it is known here."""
        try:
            yield
        except FileNotFound as error:
            raise FileNotFound(self._inside(error.path), error.detail) from error


class _RootedOutput(WrappedOutput):
    def __init__(self, output: Output, path: str) -> None:
        super().__init__(output)
        self.path = path
